#include "items_text.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/core/json_writer.hpp"

#include <charconv>

namespace recibo::record {
namespace {

std::string text_at(const json_value& of, std::string_view name) {
  const auto* found = of.find(name);
  return found ? found->text : std::string();
}

std::optional<std::int64_t> number_at(const json_value& of, std::string_view name) {
  const auto* found = of.find(name);
  if (!found) return std::nullopt;
  std::int64_t out = 0;
  std::from_chars(found->text.data(), found->text.data() + found->text.size(), out);
  return out;
}

}  // namespace

std::string write_item_news(const std::vector<item_news>& items) {
  if (items.empty()) return {};
  json_writer out;
  out.begin_array();
  for (const auto& i : items) {
    out.begin_object().text("item_id", i.item_id).text("event_raw", i.event_raw).text("event", i.event);
    if (i.occurred_at) out.number("occurred_at_us", i.occurred_at->time_since_epoch().count());
    if (i.sequence) out.number("sequence", *i.sequence);
    if (!i.result.empty()) out.text("result", i.result);
    if (i.unprocessable) {
      out.text("fault", code_word(i.unprocessable->code)).text("detail", i.unprocessable->detail);
    }
    out.end_object();
  }
  out.end_array();
  return out.take();
}

std::vector<item_news> read_item_news(std::string_view text) {
  std::vector<item_news> out;
  if (text.empty()) return out;
  const auto list = parse_json(text);
  if (!list) return out;
  out.reserve(list->elements.size());
  for (const auto& one : list->elements) {
    auto& item = out.emplace_back();
    item.item_id = text_at(one, "item_id");
    item.event_raw = text_at(one, "event_raw");
    item.event = text_at(one, "event");
    if (const auto at = number_at(one, "occurred_at_us")) item.occurred_at = sys_micros(std::chrono::microseconds(*at));
    item.sequence = number_at(one, "sequence");
    item.result = text_at(one, "result");
    if (const auto fault = text_at(one, "fault"); !fault.empty()) {
      const bool missing = fault == code_word(make_error_code(permanent::missing_field));
      item.unprocessable = error(missing ? permanent::missing_field : permanent::malformed_field, text_at(one, "detail"));
    }
  }
  return out;
}

sha256_digest item_digest(std::string_view item_id, const sha256_digest& content) {
  canonical bytes;
  bytes.add("recibo.item.1").add(item_id).add(binary(content));
  return sha256(bytes.bytes());
}

std::string write_item_results(const std::vector<item_result>& results) {
  json_writer out;
  out.begin_array();
  for (const auto& r : results) {
    out.begin_object();
    if (r.item_id.empty()) {
      out.number("index", static_cast<std::int64_t>(r.index));
    } else {
      out.text("item_id", r.item_id);
    }
    out.text("disposition", transition::to_string(r.outcome));
    if (!r.state.empty()) out.text("state", r.state);
    if (!r.detail.empty()) out.text("detail", r.detail);
    out.end_object();
  }
  out.end_array();
  return out.take();
}

}  // namespace recibo::record
