#include "recibo/config/load.hpp"

#include "sections.hpp"

#include "recibo/core/file.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace recibo::config {
namespace {

constexpr std::size_t file_bytes_max = 4 << 20;

// Names of the file's workflows, refused ones too: a provider that names one gets no second complaint about it.
std::vector<std::string_view> names_of(const field& f) {
  std::vector<std::string_view> out;
  if (!f) return out;
  for (const auto& e : f.value->entries) out.push_back(e.key);
  return out;
}

void read_all(reading& r, const document& text, settings& out) {
  section s(r, {"configuration", &text.root, text.root.at, {}});
  read_listen(r, s.get("listen"), out);
  read_database(r, s.get("database"), out);
  read_limits(r, s.get("limits"), out);
  read_record(r, s.get("record"), out);
  read_outbox(r, s.get("outbox"), out);
  read_reviews(r, s.get("reviews"), out);
  read_outbound(r, s.get("outbound"), out);
  read_callback_urls(r, s.get("callback_urls"), out);
  read_api(r, s.get("api"), out);
  read_retention(r, s.get("retention"), out);
  read_drain(r, s.get("drain"), out);
  read_log(r, s.get("log"), out);
  read_tracing(r, s.get("tracing"), out);
  const field workflows = s.get("workflows");
  read_workflows(r, workflows, out);
  read_providers(r, s.get("providers"), names_of(workflows), out);
  read_destinations(r, s.get("destinations"), out);
  // What is missing as a whole is no fault of the file, but somebody should know.
  if (s.good() && !s.has("providers")) r.warn({}, "no providers: nothing can be received");
  if (out.tokens.empty()) r.warn({}, "no api.tokens: nobody can use the API");
  if (r.problems.empty() && out.database.url.empty()) r.warn({}, "no database.url: this can be checked, but not served");
}

// The same thing may be found on two ways, for example for each state of one row.
void tidy(std::vector<diagnostic>& list) {
  const auto order = [](const diagnostic& d) { return std::tie(d.line, d.column, d.message); };
  std::stable_sort(list.begin(), list.end(), [](const diagnostic& a, const diagnostic& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  std::vector<diagnostic> out;
  for (diagnostic& d : list) {
    const bool again = std::any_of(out.rbegin(), out.rend(), [&](const diagnostic& o) { return order(o) == order(d); });
    if (!again) out.push_back(std::move(d));
  }
  list = std::move(out);
}

std::string digest_of(std::string_view text, const document& doc, const reading& r) {
  canonical all;
  all.add(binary(sha256(text)));
  for (const auto& [name, value] : doc.variables) all.add(name).add(binary(sha256(value)));
  all.add(r.also_read.bytes());
  return to_hex(binary(sha256(all.bytes())));
}

loaded refused(const std::string& name, std::string message) {
  loaded out;
  out.problems.push_back({name, 0, 0, std::move(message), severity::error});
  return out;
}

}  // namespace

std::string to_string(const diagnostic& d) {
  std::string out = d.file;
  if (d.line > 0) out += ":" + std::to_string(d.line) + ":" + std::to_string(d.column);
  switch (d.severity) {
    case severity::error: return out + ": error: " + d.message;
    case severity::warning: return out + ": warning: " + d.message;
  }
  return out;
}

environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

loaded load_text(const std::string& name, std::string_view text, const std::filesystem::path& folder, const environment& env) {
  const document doc = parse_document(text, env);
  reading r(name, folder, env, now());
  for (const fault& f : doc.faults) r.error(f.at, f.message);
  auto made = std::make_shared<settings>();
  // Without a tree there is nothing more to say than why.
  if (doc.root.what != node::kind::null || doc.faults.empty()) read_all(r, doc, *made);
  loaded out;
  out.problems = std::move(r.problems);
  out.warnings = std::move(r.warnings);
  tidy(out.problems);
  tidy(out.warnings);
  if (!out.problems.empty()) return out;
  made->digest = digest_of(text, doc, r);
  out.settings = std::move(made);
  out.origin = std::make_shared<const origin>(origin{secret(std::string(text)), folder, std::move(r.watched)});
  return out;
}

loaded load_again(const std::string& name, const origin& in_force, const environment& env) {
  return load_text(name, in_force.text.reveal(), in_force.folder, env);
}

loaded load_file(const std::filesystem::path& path, const environment& env, file_kinds kinds) {
  const std::string name = path.string();
  const file_reading read = read_file(path, file_bytes_max, kinds == file_kinds::any);
  if (!read) return refused(name, "this file " + to_string(read.why, file_bytes_max));
  return load_text(name, read.bytes, path.parent_path(), env);
}

}  // namespace recibo::config
