#include "http_components.hpp"

#include "recibo/core/digest.hpp"

#include "mac.hpp"

#include <algorithm>
#include <array>

namespace recibo::verify {
namespace {

constexpr char smaller(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower_text(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), smaller);
  return out;
}

// The pieces of the URL as the provider knows it, without a fragment.
struct url_parts {
  std::string_view whole, scheme, authority, path, query;  // the query with its '?', if there is one
};

std::optional<url_parts> parts_of(std::string_view url) noexcept {
  url_parts out;
  out.whole = url.substr(0, url.find('#'));
  const std::size_t colon = out.whole.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  out.scheme = out.whole.substr(0, colon);
  std::string_view rest = out.whole.substr(colon + 3);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  out.authority = rest.substr(0, end);
  rest.remove_prefix(end);
  const std::size_t question = std::min(rest.find('?'), rest.size());
  out.path = rest.substr(0, question);
  out.query = rest.substr(question);
  return out;
}

std::string path_of(const url_parts& url) { return url.path.empty() ? "/" : std::string(url.path); }

// Lower case, without the port that the scheme implies (section 2.2.3).
std::string authority_of(const url_parts& url) {
  std::string out = lower_text(url.authority);
  const std::string_view implied = lower_text(url.scheme) == "https" ? ":443" : ":80";
  if (out.ends_with(implied)) out.resize(out.size() - implied.size());
  return out;
}

// Exactly one parameter of that name (section 2.2.8).
std::optional<std::string> query_parameter(const sf_item& component, const url_parts& url) {
  const sf_bare* const name = find_parameter(component.parameters, "name");
  if (name == nullptr || name->what != sf_bare::kind::string || component.parameters.size() != 1) return std::nullopt;
  const auto all = url.query.empty() ? fields() : decode_fields(url.query.substr(1));
  if (!all) return std::nullopt;
  std::optional<std::string> out;
  for (const auto& [one, value] : *all) {
    if (encode_query_text(one) != name->value) continue;
    if (out) return std::nullopt;
    out = encode_query_text(value);
  }
  return out;
}

std::optional<std::string> derived_value(const sf_item& component, const reading& from) {
  const std::string& name = component.value.value;
  const auto url = parts_of(from.message().url);
  if (name == "@query-param") return url ? query_parameter(component, *url) : std::nullopt;
  if (!component.parameters.empty()) return std::nullopt;
  if (name == "@method") return std::string(from.message().method);
  if (!url) return std::nullopt;
  if (name == "@target-uri") return std::string(url->whole);
  if (name == "@authority") return authority_of(*url);
  if (name == "@scheme") return lower_text(url->scheme);
  if (name == "@path") return path_of(*url);
  if (name == "@query") return url->query.empty() ? "?" : std::string(url->query);
  if (name == "@request-target") return path_of(*url) + std::string(url->query);
  return std::nullopt;
}

// Fields that are known to be dictionaries: only for those can "sf" be computed.
bool is_dictionary_field(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 6> known{"content-digest",   "repr-digest",     "want-content-digest",
                                                  "want-repr-digest", "signature-input", "signature"};
  return std::find(known.begin(), known.end(), name) != known.end();
}

std::optional<std::string> field_value(const sf_item& component, const reading& from) {
  const std::string& name = component.value.value;
  const auto values = from.every_header({&name, 1});
  if (values.empty() || component.parameters.size() > 1) return std::nullopt;
  const std::string how = component.parameters.empty() ? "" : component.parameters.front().name;
  std::string joined;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) joined += ", ";
    joined += how == "bs" ? ':' + to_base64(values[i]) + ':' : std::string(values[i]);
  }
  if (how.empty() || how == "bs") return joined;
  if (how != "key" && (how != "sf" || !is_dictionary_field(name))) return std::nullopt;
  const auto members = parse_dictionary(joined);
  if (!members) return std::nullopt;
  if (how == "key") {
    const sf_bare& key = component.parameters.front().value;
    const sf_member* const one = key.what == sf_bare::kind::string ? find_member(*members, key.value) : nullptr;
    return one == nullptr ? std::nullopt : std::optional(serialize(*one));
  }
  std::string out;
  for (const sf_member& one : *members) {
    out.append(out.empty() ? "" : ", ").append(one.name);
    const std::string value = serialize(one);
    // A member that is plain true is written by its name and parameters alone.
    out += value.starts_with("?1") ? value.substr(2) : '=' + value;
  }
  return out;
}

bool is_component_name(const std::string& name) noexcept {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f && smaller(c) == c; });
}

// One "name=base64" of the older Digest, whose names are of any case.
std::optional<hash_name> digest_algorithm(std::string_view name) {
  const std::string small = lower_text(name);
  if (small == "sha-256") return hash_name::sha256;
  if (small == "sha-512") return hash_name::sha512;
  return std::nullopt;
}

struct digest_check {
  const reading& from;
  bool any = false, fine = true;

  void hold(hash_name how, std::string_view said) {
    any = true;
    fine = equal_constant_time(said, digest(how, std::array{from.message().body}).view()) && fine;
  }
  result<void> verdict() const {
    if (!fine) return error(permanent::signature_mismatch, "the body is not the one whose digest is in the header");
    if (!any) return error(permanent::content_missing, "the digest of the body is in no algorithm that counts");
    return {};
  }
};

std::string joined_header(const reading& from, std::string_view name) {
  const std::string wanted(name);
  std::string out;
  for (const std::string_view value : from.every_header({&wanted, 1})) out.append(out.empty() ? "" : ", ").append(value);
  return out;
}

result<void> judge_content_digest(const reading& from) {
  const auto members = parse_dictionary(joined_header(from, "content-digest"));
  if (!members) return error(permanent::content_missing, "Content-Digest cannot be read");
  digest_check check{from};
  for (const sf_member& one : *members) {
    const auto how = digest_algorithm(one.name);
    if (!how) continue;
    if (one.is_list || one.items.front().value.what != sf_bare::kind::bytes)
      return error(permanent::content_missing, "Content-Digest cannot be read");
    check.hold(*how, one.items.front().value.value);
  }
  return check.verdict();
}

result<void> judge_older_digest(const reading& from) {
  const std::string all = joined_header(from, "digest");
  digest_check check{from};
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view one = trim(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.find(',') == std::string_view::npos ? rest.size() : rest.find(',') + 1, rest.size()));
    const auto how = digest_algorithm(one.substr(0, one.find('=')));
    if (!how) continue;
    const auto bytes = from_base64(one.substr(one.find('=') + 1));
    check.hold(*how, bytes.value_or(std::string()));
  }
  return check.verdict();
}

}  // namespace

std::string encode_query_text(std::string_view decoded) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : decoded) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '*' || c == '-' ||
                       c == '.' || c == '_';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append("%").append(1, hex[byte >> 4]).append(1, hex[byte & 15]);
    }
  }
  return out;
}

std::optional<std::string> component_value(const sf_item& component, const reading& from) {
  if (component.value.what != sf_bare::kind::string || !is_component_name(component.value.value)) return std::nullopt;
  return component.value.value.front() == '@' ? derived_value(component, from) : field_value(component, from);
}

std::optional<std::string> signature_base(const sf_member& input, const reading& from) {
  std::vector<std::string> seen;
  std::string out;
  for (const sf_item& component : input.items) {
    std::string name = serialize(component);
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return std::nullopt;
    const auto value = component_value(component, from);
    // A line end in a value would let one component pass as two.
    if (!value || value->find_first_of("\r\n") != std::string::npos) return std::nullopt;
    out.append(name).append(": ").append(*value).append("\n");
    seen.push_back(std::move(name));
  }
  return out.append("\"@signature-params\": ").append(serialize(input));
}

result<void> judge_digests(const reading& from) {
  if (from.header("content-digest").times > 0) {
    if (auto fine = judge_content_digest(from); !fine) return fine;
  }
  if (from.header("digest").times > 0) {
    if (auto fine = judge_older_digest(from); !fine) return fine;
  }
  return {};
}

}  // namespace recibo::verify
