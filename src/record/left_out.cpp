#include "recibo/record/left_out.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/record/work.hpp"

#include <algorithm>
#include <charconv>

namespace recibo::record {
namespace {

std::optional<std::size_t> place_in(const json_value& number) {
  std::size_t out = 0;
  const char* const end = number.text.data() + number.text.size();
  const auto [at, fault] = std::from_chars(number.text.data(), end, out);
  return number.is(json_value::kind::number) && fault == std::errc() && at == end ? std::optional(out) : std::nullopt;
}

}  // namespace

std::vector<left_part> left_of(std::string_view stored, const replay& by) {
  if (!stored.empty()) return read_left_out(stored);
  std::vector<left_part> all(by.part ? by.parts : 1);
  if (!by.part) return all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i].part = i;
  return all;
}

std::vector<left_part>::iterator replayed_part(std::vector<left_part>& left, const replay& by) {
  return std::find_if(left.begin(), left.end(), [&](const auto& one) { return one.part == by.part; });
}

bool speaks_of_items(std::string_view stored) { return stored.find("\"items\"") != std::string_view::npos; }

std::string write_left_out(const std::vector<left_part>& left) {
  json_writer out;
  out.begin_array();
  for (const auto& one : left) {
    out.begin_object();
    if (one.part) out.number("part", static_cast<std::int64_t>(*one.part));
    if (one.delivery) out.text("delivery", to_string(*one.delivery));
    if (!one.items.empty()) {
      out.key("items").begin_array();
      for (const auto i : one.items) out.number(static_cast<std::int64_t>(i));
      out.end_array();
    }
    out.end_object();
  }
  out.end_array();
  return out.take();
}

std::vector<left_part> read_left_out(std::string_view text) {
  const auto read = parse_json(text);
  if (!read) return {};
  std::vector<left_part> out;
  for (const auto& one : read->elements) {
    auto& part = out.emplace_back();
    if (const auto* at = one.find("part")) part.part = place_in(*at);
    if (const auto* id = one.find("delivery")) {
      if (const auto parsed = parse_id<delivery_id>(id->text)) part.delivery = *parsed;
    }
    const auto* items = one.find("items");
    if (items == nullptr) continue;
    for (const auto& element : items->elements)
      if (const auto at = place_in(element)) part.items.push_back(*at);
  }
  return out;
}

}  // namespace recibo::record
