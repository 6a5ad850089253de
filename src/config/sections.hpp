// One reader per top-level section of the configuration. Each reports into `r` and fills what it could read.
#pragma once

#include "reader.hpp"

#include "recibo/config/settings.hpp"

namespace recibo::config {

void read_listen(reading& r, const field& f, settings& out);
// `tls` of one listener; left alone when something is wrong.
void read_tls_files(reading& r, const field& f, std::optional<tls>& out);
void read_limits(reading& r, const field& f, settings& out);
void read_database(reading& r, const field& f, settings& out);
void read_record(reading& r, const field& f, settings& out);
void read_outbox(reading& r, const field& f, settings& out);
void read_reviews(reading& r, const field& f, settings& out);
void read_outbound(reading& r, const field& f, settings& out);
void read_callback_urls(reading& r, const field& f, settings& out);
void read_retention(reading& r, const field& f, settings& out);
void read_drain(reading& r, const field& f, settings& out);
void read_log(reading& r, const field& f, settings& out);
void read_tracing(reading& r, const field& f, settings& out);
void read_api(reading& r, const field& f, settings& out);
// Puts the built-in workflow `default` beside those of the file, unless the file has one of that name.
void read_workflows(reading& r, const field& f, settings& out);
// Need the workflows, the retention and the callback URLs. `workflows_in_file`: also those that were refused, so that nothing is
// said twice.
void read_providers(reading& r, const field& f, const std::vector<std::string_view>& workflows_in_file, settings& out);
void read_destinations(reading& r, const field& f, settings& out);

// `callback_url` of one provider, which `verify: {scheme: callback-url}` implies.
void read_minted_url(reading& r, const field& f, const settings& so_far, provider& out);

// `extract` of one provider. `scheme` is nullptr when `verify` could not be read; then nothing is said of what it covers.
struct extract_rules {
  bool minted = false;          // each operation has a callback URL of its own, which names it
  bool hint = false;            // a callback names an operation and says nothing of it
  bool identity_known = false;  // it is the answer to a question about one operation
};
void read_extract(reading& r, const field& f, const verify::scheme* scheme, const extract_rules& how, extract& out);

// Reports the words that no event of `from` can be, because it joins another number of parts.
void check_parts(reading& r, position at, const extract& from, const std::map<std::string, std::string, std::less<>>& words);

// Reads a map of a provider's words into events of its workflow.
using words_of_provider = std::function<void(const field&, std::map<std::string, std::string, std::less<>>&)>;
// `status` of one provider, of which everything else has been read. `table` may be nullptr.
void read_status(reading& r, const field& f, const transition::workflow* table, const words_of_provider& words, provider& out);
// `catch_up`, the same.
void read_list(reading& r, const field& f, const words_of_provider& words, provider& out);

// `limit: {after, event}` or `limit: none`; false when a problem was reported.
bool read_limit(reading& r, const field& f, std::optional<transition::limit>& out);

// The states and moves of the workflow that is built in.
std::shared_ptr<const transition::workflow> default_workflow();

// What is known of a preset's provider, as defaults that the configuration overrides (profile.hpp).
void apply_profile(std::string_view preset, provider& out);

}  // namespace recibo::config
