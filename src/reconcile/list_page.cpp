#include "list_page.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/reconcile/status_request.hpp"

#include <algorithm>
#include <charconv>

namespace recibo::reconcile {
namespace {

// In an answer and in a URL.
constexpr std::size_t cursor_bytes_max = 2048;

std::string written(sys_micros at, verify::timestamp_format how) {
  const auto since = at.time_since_epoch();
  switch (how) {
    case verify::timestamp_format::unix_s: return std::to_string(std::chrono::floor<std::chrono::seconds>(since).count());
    case verify::timestamp_format::unix_ms: return std::to_string(std::chrono::floor<std::chrono::milliseconds>(since).count());
    case verify::timestamp_format::unix_any:
    case verify::timestamp_format::rfc3339: break;
  }
  return to_rfc3339(at);
}

// RFC 6901; nullptr: nothing stands there.
const json_value* value_at(const json_value& within, std::string_view pointer) {
  const json_value* at = &within;
  while (!pointer.empty() && at != nullptr) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    std::string name;
    for (std::size_t i = 0; i < end; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
      name += escaped ? (pointer[++i] == '0' ? '~' : '/') : pointer[i];
    }
    pointer.remove_prefix(end);
    at = at->is(json_value::kind::object) ? at->find(name) : nullptr;
  }
  return at;
}

int number_of(std::string_view cursor, int otherwise) {
  int out = otherwise;
  std::from_chars(cursor.data(), cursor.data() + cursor.size(), out);
  return out;
}

}  // namespace

result<http::outbound_request> page_request(const config::list_rule& rule, sys_micros since, std::string_view cursor) {
  const auto from = written(since, rule.since);
  auto url = rule.url.fill({{"since", from}});
  if (!url) return url.error();
  if (!cursor.empty()) {
    url->target += url->target.find('?') == std::string::npos ? '?' : '&';
    url->target += rule.parameter + '=' + percent_encode(cursor);
  }
  http::outbound_request out;
  out.url = std::move(*url);
  out.headers = status_headers(rule);
  return out;
}

result<page_behind> next_page(const config::list_rule& rule, std::string_view body, std::string_view cursor, std::size_t events) {
  if (rule.parameter.empty()) return page_behind();
  if (!rule.next) return events == 0 ? page_behind() : page_behind{std::to_string(number_of(cursor, rule.first) + 1)};
  const auto whole = parse_json(body);
  if (!whole) return error(permanent::answer_malformed, "the page is not JSON");
  const auto* at = value_at(*whole, *rule.next);
  if (at == nullptr || at->is(json_value::kind::null)) return page_behind();
  if (at->is(json_value::kind::boolean) && !at->boolean) return page_behind();
  if (!at->is(json_value::kind::string) && !at->is(json_value::kind::number))
    return error(permanent::answer_malformed, "what stands at next.from is no text and no number");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (at->text.size() > cursor_bytes_max || std::any_of(at->text.begin(), at->text.end(), control))
    return error(permanent::answer_malformed, "what stands at next.from cannot be asked for");
  if (!at->text.empty() && at->text == cursor) return page_behind{std::string(), true};
  return page_behind{at->text};
}

}  // namespace recibo::reconcile
