#include "extract_items.hpp"

#include "sources.hpp"
#include "values.hpp"

namespace recibo::receive {
namespace {

using record::item_news;
using verify::pointed_value;

class element_extraction {
 public:
  element_extraction(const config::provider& how, const json_value& element)
      : how_(how), rule_(*how.extract.items), element_(element) {}

  item_news run() {
    identity();
    event();
    occurred_at();
    sequence();
    result_object();
    return std::move(out_);
  }

 private:
  // The first one stands: it is what a person mends first.
  void fault(error why) {
    if (!out_.unprocessable) out_.unprocessable = std::move(why);
  }
  void malformed(const std::string& what, const std::string& why) { fault({permanent::malformed_field, what + ": " + why}); }

  std::optional<pointed_value> read(const config::source& from, const std::string& what) {
    auto found = read_element(element_, from, what);
    if (found) return std::move(*found);
    fault(std::move(found.error()));
    return std::nullopt;
  }

  std::optional<pointed_value> scalar(const config::source& from, const std::string& what) {
    auto found = read(from, what);
    if (!found || !is_container(*found)) return found;
    malformed(what, "an object or array stands where a single value is wanted");
    return std::nullopt;
  }
  std::optional<pointed_value> scalar(const config::sources& from, const std::string& what) {
    if (from.empty()) return std::nullopt;
    return scalar(from.front(), what);
  }

  // Of several sources, which make one word, all are needed.
  std::optional<std::string> identifier(const config::sources& from, const std::string& what) {
    std::vector<std::string> parts;
    for (const config::source& one : from) {
      auto found = scalar(one, what);
      if (!found || is_blank(found->text)) break;
      parts.push_back(std::move(found->text));
    }
    if (parts.empty() || parts.size() < from.size()) {
      fault({permanent::missing_field, what + (from.size() > 1 ? ": one of its parts is absent or blank" : ": absent or blank")});
      return std::nullopt;
    }
    std::string word = join_word(parts);
    if (auto fine = check_alias(word, what); !fine) {
      fault(std::move(fine.error()));
      return std::nullopt;
    }
    return word;
  }

  void identity() {
    if (auto id = identifier(rule_.item_id, "item_id")) out_.item_id = std::move(*id);
  }

  void event() {
    auto word = identifier(rule_.event, "event");
    if (!word) return;
    out_.event_raw = std::move(*word);
    if (const auto mapped = how_.events.find(out_.event_raw); mapped != how_.events.end()) out_.event = mapped->second;
  }

  void occurred_at() {
    const auto found = scalar(rule_.occurred_at, "occurred_at");
    if (!found) return;
    const auto at = read_instant(*found, rule_.occurred_at.front().format.value_or(verify::timestamp_format::rfc3339));
    if (!at) return malformed("occurred_at", at.error().detail);
    out_.occurred_at = *at;
  }

  void sequence() {
    const auto found = scalar(rule_.sequence, "sequence");
    if (!found) return;
    const auto number = read_sequence(found->text);
    if (!number) return malformed("sequence", number.error().detail);
    out_.sequence = *number;
  }

  void result_object() {
    if (rule_.result.empty()) return;
    result_text text;
    for (const auto& [name, from] : rule_.result) {
      const auto found = read(from, "result." + name);
      if (found && !text.add(name, *found))
        return malformed("result." + name, "longer than 4096 bytes, or no text without U+0000");
    }
    auto whole = text.take();
    if (!whole) return malformed("result", whole.error().detail);
    if (*whole != "{}") out_.result = std::move(*whole);
  }

  const config::provider& how_;
  const config::item_rule& rule_;
  const json_value& element_;
  item_news out_;
};

}  // namespace

result<std::vector<item_news>> extract_items(const config::provider& how, const json_value& body) {
  std::vector<item_news> out;
  const auto& rule = *how.extract.items;
  if (!rule.each) {
    const auto id = read_element(body, rule.item_id.front(), "item_id");
    // A body without an item speaks of the operation.
    if (!id || *id) out.push_back(element_extraction(how, body).run());
    return out;
  }
  const auto* list = find_pointer(body, *rule.each);
  if (list == nullptr || list->is(json_value::kind::null)) return out;
  if (list->is(json_value::kind::object)) {
    out.push_back(element_extraction(how, *list).run());
    return out;
  }
  if (!list->is(json_value::kind::array))
    return error(permanent::malformed_field, "items: something else stands where a list is wanted");
  if (list->elements.size() > record::items_in_callback_max)
    return error(permanent::malformed_field, "items: more than " + std::to_string(record::items_in_callback_max) + " elements");
  out.reserve(list->elements.size());
  for (const auto& element : list->elements) out.push_back(element_extraction(how, element).run());
  return out;
}

}  // namespace recibo::receive
