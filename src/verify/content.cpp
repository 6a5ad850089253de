#include "content.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// HubSpot v3 signs the URL with these twelve escapes of its query decoded, the others left, and without a fragment.
// Source: HubSpot, "Validating requests", v3.
std::string hubspot_url(std::string_view url) {
  static constexpr std::pair<std::string_view, char> escapes[] = {{"3a", ':'}, {"2f", '/'}, {"3f", '?'},  {"40", '@'},
                                                                  {"21", '!'}, {"24", '$'}, {"27", '\''}, {"28", '('},
                                                                  {"29", ')'}, {"2a", '*'}, {"2c", ','},  {"3b", ';'}};
  url = url.substr(0, url.find('#'));
  std::string out;
  out.reserve(url.size());
  std::size_t i = std::min(url.find('?'), url.size());
  out.append(url, 0, i);
  for (; i < url.size(); ++i) {
    if (url[i] == '%' && i + 2 < url.size()) {
      const std::string code = lower_case(url.substr(i + 1, 2));
      const auto known = std::find_if(std::begin(escapes), std::end(escapes), [&](const auto& e) { return e.first == code; });
      if (known != std::end(escapes)) {
        out += known->second;
        i += 2;
        continue;
      }
    }
    out += url[i];
  }
  return out;
}

}  // namespace

result<signed_content> signed_content::gather(const scheme& how, reading& from, std::string_view time) {
  using source = content_part::source;
  signed_content out;
  out.pieces_.reserve(how.content.size() + 2);
  for (const content_part& part : how.content) {
    occurrence found{1, {}};
    const signed_message& message = from.message();
    switch (part.what) {
      case source::literal: found.value = part.names.front(); break;
      case source::body: found.value = message.body; break;
      case source::timestamp: found.value = time; break;
      case source::method: found.value = message.method; break;
      case source::secret: break;
      case source::url: found = {message.url.empty() ? 0 : 1, message.url}; break;
      case source::url_hubspot: found = {message.url.empty() ? 0 : 1, out.keep(hubspot_url(message.url))}; break;
      case source::header: found = from.header(part.names); break;
      case source::query: found = from.query(part.names); break;
      case source::json: found = from.json(part.names); break;
      case source::form: found = from.form(part.names); break;
    }
    if (found.times > 1) return error(permanent::signature_repeated, "a header or field that is signed stands more than once");
    if (found.times == 0) {
      // An empty string in its place would let a request without the field pass as one with an empty field.
      if (part.optional) continue;
      if (!part.fallback) return error(permanent::content_missing, "a header or field that is signed is absent");
      found.value = *part.fallback;
    }
    if (part.lower) found.value = out.keep(lower_case(found.value));
    if (!part.before.empty()) out.pieces_.push_back(part.before);
    if (part.what == source::secret) out.secrets_.push_back(out.pieces_.size());
    out.pieces_.push_back(found.value);
    if (!part.after.empty()) out.pieces_.push_back(part.after);
  }
  return out;
}

std::vector<std::string_view> signed_content::with(std::string_view key) const {
  std::vector<std::string_view> out = pieces_;
  for (const std::size_t at : secrets_) out[at] = key;
  return out;
}

}  // namespace recibo::verify
