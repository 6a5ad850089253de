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

std::string place_of(const config::provider& from) {
  const auto& how = from.extract;
  return (how.each ? "each " + *how.each : std::string()) + "\n" +
         (how.items && how.items->each ? "items " + *how.items->each : std::string());
}

std::vector<left_part> left_of(std::string_view stored, std::optional<std::size_t> events) {
  auto listed = read_left_out(stored);
  if (!stored.empty() && !leaves_others(stored)) return listed;
  if (!events) return listed.empty() ? std::vector<left_part>(1) : listed;
  std::vector<left_part> all(*events);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].part = i;
  for (auto& one : listed) {
    if (one.part && *one.part < *events) {
      all[*one.part] = std::move(one);
    } else {
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::vector<left_part> left_of(std::string_view stored, const replay& by) {
  return left_of(stored, by.part ? std::optional(by.parts) : std::nullopt);
}

std::vector<left_part>::iterator replayed_part(std::vector<left_part>& left, const replay& by, std::string_view place) {
  return std::find_if(left.begin(), left.end(),
                      [&](const auto& one) { return one.part == by.part && (one.place.empty() || one.place == place); });
}

bool speaks_of_items(std::string_view stored) { return stored.find("\"items\"") != std::string_view::npos; }

bool leaves_others(std::string_view stored) { return stored.find("\"others\"") != std::string_view::npos; }

std::string write_left_out(const std::vector<left_part>& left, bool and_others) {
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
    if (!one.place.empty()) out.text("in", one.place);
    out.end_object();
  }
  if (and_others) out.begin_object().flag("others", true).end_object();
  out.end_array();
  return out.take();
}

std::vector<left_part> read_left_out(std::string_view text) {
  const auto read = parse_json(text);
  if (!read) return {};
  std::vector<left_part> out;
  for (const auto& one : read->elements) {
    if (one.find("others") != nullptr) continue;
    auto& part = out.emplace_back();
    if (const auto* at = one.find("part")) part.part = place_in(*at);
    if (const auto* id = one.find("delivery")) {
      if (const auto parsed = parse_id<delivery_id>(id->text)) part.delivery = *parsed;
    }
    if (const auto* place = one.find("in")) part.place = place->text;
    const auto* items = one.find("items");
    if (items == nullptr) continue;
    for (const auto& element : items->elements)
      if (const auto at = place_in(element)) part.items.push_back(*at);
  }
  return out;
}

}  // namespace recibo::record
