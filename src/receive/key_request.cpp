#include "key_request.hpp"

#include "recibo/core/json.hpp"
#include "recibo/core/url.hpp"

#include <nlohmann/json.hpp>

namespace recibo::receive {
namespace {

using form = verify::needed_key::form;

error no_key() { return error(permanent::signature_mismatch, "the provider knows no such key"); }

result<http_url> url_of(const config::provider& from, const verify::needed_key& what) {
  if (what.what == form::certificate) {
    auto read = parse_http_url(what.url);
    if (!read.url) return error(permanent::signature_mismatch, "the certificate's URL is none");
    return std::move(*read.url);
  }
  const auto how = url_template::parse(from.key_source.url, {"id"});
  if (!how) return error(transient::not_ready, "verify.fetch.url cannot be used");
  return how->fill({{"id", what.id}});
}

// Plaid answers 400 to an ID that it does not know, and to credentials that are wrong; the code tells them apart.
// Source: Plaid's API reference, "/webhook_verification_key/get" and "Invalid input errors".
bool plaid_knows_none(const http::outbound_answer& answer) {
  const auto said = nlohmann::json::parse(answer.body, nullptr, false);
  if (!said.is_object()) return false;
  const auto code = said.find("error_code");
  return code != said.end() && code->is_string() && code->get_ref<const std::string&>() == "INVALID_WEBHOOK_VERIFICATION_KEY_ID";
}

bool knows_none(form what, const http::outbound_answer& answer) {
  switch (what) {
    // Stores of files answer 403 for what is not there.
    case form::certificate: return answer.status == 404 || answer.status == 410 || answer.status == 403;
    case form::plaid: return answer.status == 404 || (answer.status == 400 && plaid_knows_none(answer));
    case form::circle: return answer.status == 404 || answer.status == 410 || answer.status == 400;
  }
  return false;
}

}  // namespace

result<key_question> ask_for_key(const config::provider& from, const verify::needed_key& what) {
  auto url = url_of(from, what);
  if (!url) return url.error();
  key_question out;
  out.request.url = std::move(*url);
  out.request.repeatable = true;
  if (what.what != form::certificate) {
    for (const auto& [name, value] : from.key_source.headers) out.request.headers.emplace_back(name, std::string(value.reveal()));
  }
  if (what.what == form::plaid) {
    const nlohmann::json body = {{"client_id", from.key_source.client_id.reveal()},
                                 {"secret", from.key_source.client_secret.reveal()},
                                 {"key_id", what.id}};
    out.request.method = "POST";
    out.request.headers.emplace_back("Content-Type", "application/json");
    out.request.body = body.dump();
  }
  out.rules.timeout = std::chrono::seconds(10);
  out.rules.connect_timeout = std::chrono::seconds(5);
  out.rules.body_limit = verify::fetched_bytes_max;
  out.rules.allow = from.key_source.allow;
  return out;
}

result<verify::fetched_key> read_key_answer(const config::provider& from, const verify::needed_key& what,
                                            const http::outbound_answer& answer,
                                            const std::shared_ptr<const verify::trust_store>& authorities, sys_micros now) {
  if (answer.status == 200) {
    verify::certificate_rules rules;
    // PayPal serves the chain, so that it is judged; AWS SNS the leaf alone, for which TLS to its host vouches.
    const bool chain = what.what == form::certificate && !from.verify.key.certificate_url_header.empty();
    if (chain && !authorities) return error(transient::not_ready, "this system has no certificates of authorities");
    if (chain) rules.trusted = authorities;
    return verify::read_fetched_key(from.verify, what, answer.body, rules, now);
  }
  if (knows_none(what.what, answer)) return no_key();
  return error(transient::not_ready, "the provider answered " + std::to_string(answer.status) + " when it was asked for a key");
}

}  // namespace recibo::receive
