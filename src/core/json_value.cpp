#include "recibo/core/json_value.hpp"

#include "recibo/core/json.hpp"
#include "recibo/core/json_events.hpp"

#include <algorithm>
#include <cstdint>

namespace recibo {
namespace {

class tree_builder final : public json_events {
 public:
  void scalar(json_value::kind kind, std::string_view text) override {
    auto& value = next(kind);
    if (kind == json_value::kind::boolean) {
      value.boolean = text == "true";
    } else if (kind != json_value::kind::null) {
      value.text = text;
    }
  }
  void begin(json_value::kind kind) override { open_.push_back(&next(kind)); }
  void end() override { open_.pop_back(); }
  void key(std::string_view name, bool) override { open_.back()->members.emplace_back().name = name; }

  json_value root;

 private:
  json_value& next(json_value::kind kind) {
    auto& value = place();
    value.type = kind;
    return value;
  }
  json_value& place() {
    if (open_.empty()) return root;
    auto& in = *open_.back();
    return in.type == json_value::kind::object ? in.members.back().value : in.elements.emplace_back();
  }

  // From the root to the innermost; a container's place holds while it is open, as nothing is added around it.
  std::vector<json_value*> open_;
};

// Moves the decimal point as the exponent says, so that what is left has none. Leading zeros go, trailing ones stay,
// because numeric keeps them. false: too many digits.
bool append_plain_number(std::string& out, std::string_view number) {
  const bool negative = number.front() == '-';
  if (negative) number.remove_prefix(1);
  const auto exponent_at = number.find_first_of("eE");
  const auto mantissa = number.substr(0, exponent_at);
  const auto point_at = mantissa.find('.');
  std::string digits(mantissa.substr(0, point_at));
  std::int64_t fraction = 0;  // digits behind the point
  if (point_at != std::string_view::npos) {
    digits += mantissa.substr(point_at + 1);
    fraction = static_cast<std::int64_t>(mantissa.size() - point_at - 1);
  }
  constexpr auto most = static_cast<std::int64_t>(json_number_digits_max);
  if (exponent_at != std::string_view::npos) {
    auto exponent = number.substr(exponent_at + 1);
    const bool down = exponent.front() == '-';
    if (exponent.front() == '-' || exponent.front() == '+') exponent.remove_prefix(1);
    exponent.remove_prefix(std::min(exponent.find_first_not_of('0'), exponent.size() - 1));
    if (exponent.size() > 4) return false;
    std::int64_t by = 0;
    for (const char c : exponent) by = by * 10 + (c - '0');
    fraction += down ? by : -by;
  }
  if (static_cast<std::int64_t>(digits.size()) > most || fraction > most || -fraction > most) return false;
  const bool zero = digits.find_first_not_of('0') == std::string::npos;
  if (fraction < 0) {
    if (!zero) digits.append(static_cast<std::size_t>(-fraction), '0');
    fraction = 0;
  }
  const auto behind = static_cast<std::size_t>(fraction);
  if (digits.size() <= behind) digits.insert(0, behind + 1 - digits.size(), '0');
  const auto before = digits.size() - behind;
  const auto leading = std::min(digits.find_first_not_of('0'), before - 1);
  if (digits.size() - leading > json_number_digits_max) return false;
  if (negative && !zero) out += '-';
  out.append(digits, leading, before - leading);
  if (behind > 0) {
    out += '.';
    out.append(digits, before);
  }
  return true;
}

bool append_canonical(std::string& out, const json_value& value) {
  switch (value.type) {
    case json_value::kind::null: out += "null"; return true;
    case json_value::kind::boolean: out += value.boolean ? "true" : "false"; return true;
    case json_value::kind::number: return append_plain_number(out, value.text);
    case json_value::kind::string: append_json_string(out, value.text); return true;
    case json_value::kind::array: {
      out += '[';
      for (std::size_t i = 0; i < value.elements.size(); ++i) {
        if (i > 0) out += ',';
        if (!append_canonical(out, value.elements[i])) return false;
      }
      out += ']';
      return true;
    }
    case json_value::kind::object: {
      std::vector<const json_member*> sorted;
      sorted.reserve(value.members.size());
      for (const auto& member : value.members) sorted.push_back(&member);
      std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
      out += '{';
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (i > 0) out += ',';
        append_json_string(out, sorted[i]->name);
        out += ':';
        if (!append_canonical(out, sorted[i]->value)) return false;
      }
      out += '}';
      return true;
    }
  }
  return false;
}

}  // namespace

const json_value* json_value::find(std::string_view name) const noexcept {
  for (const auto& member : members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

std::string_view json_type_name(json_value::kind k) noexcept {
  switch (k) {
    case json_value::kind::null: return "null";
    case json_value::kind::boolean: return "a boolean";
    case json_value::kind::number: return "a number";
    case json_value::kind::string: return "a string";
    case json_value::kind::array: return "an array";
    case json_value::kind::object: return "an object";
  }
  return "a value";
}

result<json_value> parse_json(std::string_view text) {
  tree_builder tree;
  auto fault = read_json_events(text, json_numbers::any, tree);
  if (!fault) return std::move(tree.root);
  if (fault->byte > 0) fault->why += " (byte " + std::to_string(fault->byte) + ")";
  return error(permanent::malformed_json, std::move(fault->why));
}

result<std::string> canonical_json(const json_value& value) {
  std::string out;
  if (!append_canonical(out, value)) return error(permanent::malformed_json, "a number has more than 400 digits");
  return out;
}

result<std::string> canonical_json(std::string_view text) {
  auto value = parse_json(text);
  if (!value) return value.error();
  return canonical_json(*value);
}

std::string json_pointer_token(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace recibo
