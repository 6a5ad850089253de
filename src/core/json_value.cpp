#include "recibo/core/json_value.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/core/json.hpp"
#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_set>

namespace recibo {
namespace {

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

// Below this many names a look at each is faster than a set.
constexpr std::size_t few_names = 16;

// Recursive descent, with the depth bounded. The first broken rule stops it and stays in `why_`.
class json_reader {
 public:
  explicit json_reader(std::string_view text) : text_(text) {}

  result<json_value> read() {
    json_value value;
    blanks();
    if (!read_value(value, 0)) return failure();
    blanks();
    if (at_ != text_.size()) {
      fail("there is something behind the value");
      return failure();
    }
    return value;
  }

 private:
  bool fail(const char* why) {
    if (why_ == nullptr) {
      why_ = why;
      broken_at_ = at_;
    }
    return false;
  }

  error failure() const { return {permanent::malformed_json, std::string(why_) + " (byte " + std::to_string(broken_at_) + ")"}; }

  void blanks() noexcept {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }

  bool next_is(char c) const noexcept { return at_ < text_.size() && text_[at_] == c; }

  bool take(char c) noexcept {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  bool read_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return fail("this is no JSON value");
    at_ += word.size();
    return true;
  }

  bool read_value(json_value& out, int depth) {
    if (at_ == text_.size()) return fail("the text ends where a value should stand");
    switch (text_[at_]) {
      case '{': return read_object(out, depth + 1);
      case '[': return read_array(out, depth + 1);
      case '"': out.type = json_value::kind::string; return read_string(out.text);
      case 't':
        out.type = json_value::kind::boolean;
        out.boolean = true;
        return read_word("true");
      case 'f':
        out.type = json_value::kind::boolean;
        out.boolean = false;
        return read_word("false");
      case 'n': out.type = json_value::kind::null; return read_word("null");
      default: break;
    }
    if (text_[at_] == '-' || is_digit(text_[at_])) return read_number(out);
    return fail("this is no JSON value");
  }

  bool read_object(json_value& out, int depth) {
    if (depth > json_depth_max) return fail("nested deeper than 64 levels");
    out.type = json_value::kind::object;
    ++at_;
    blanks();
    if (take('}')) return true;
    std::unordered_set<std::string> names;
    while (true) {
      const auto name_at = at_;
      if (!next_is('"')) return fail("a member's name should stand here");
      auto& member = out.members.emplace_back();
      if (!read_string(member.first)) return false;
      if (!is_new(out, names)) {
        at_ = name_at;
        return fail("a name stands twice in one object");
      }
      blanks();
      if (!take(':')) return fail("a colon should stand here");
      blanks();
      if (!read_value(member.second, depth)) return false;
      blanks();
      if (take('}')) return true;
      if (!take(',')) return fail("a comma or the end of the object should stand here");
      blanks();
    }
  }

  // Whether the last member's name is the first of its kind.
  static bool is_new(const json_value& object, std::unordered_set<std::string>& names) {
    const auto& members = object.members;
    const auto& name = members.back().first;
    if (members.size() <= few_names) {
      return std::none_of(members.begin(), members.end() - 1, [&](const auto& m) { return m.first == name; });
    }
    if (names.empty()) {
      for (auto m = members.begin(); m != members.end() - 1; ++m) names.insert(m->first);
    }
    return names.insert(name).second;
  }

  bool read_array(json_value& out, int depth) {
    if (depth > json_depth_max) return fail("nested deeper than 64 levels");
    out.type = json_value::kind::array;
    ++at_;
    blanks();
    if (take(']')) return true;
    while (true) {
      if (!read_value(out.elements.emplace_back(), depth)) return false;
      blanks();
      if (take(']')) return true;
      if (!take(',')) return fail("a comma or the end of the array should stand here");
      blanks();
    }
  }

  bool read_digits() {
    if (at_ == text_.size() || !is_digit(text_[at_])) return fail("a digit should stand here");
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return true;
  }

  bool read_number(json_value& out) {
    out.type = json_value::kind::number;
    const auto begin = at_;
    take('-');
    if (take('0')) {
      if (at_ < text_.size() && is_digit(text_[at_])) return fail("a number has a leading zero");
    } else if (!read_digits()) {
      return false;
    }
    if (take('.') && !read_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!read_digits()) return false;
    }
    out.text = text_.substr(begin, at_ - begin);
    return true;
  }

  bool read_hex(std::uint32_t& unit) {
    unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == text_.size()) return fail("an escape is cut off");
      const char c = text_[at_];
      unit <<= 4;
      if (is_digit(c)) {
        unit |= static_cast<std::uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        unit |= static_cast<std::uint32_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        unit |= static_cast<std::uint32_t>(c - 'A' + 10);
      } else {
        return fail("an escape is not hexadecimal");
      }
    }
    return true;
  }

  bool read_unicode_escape(std::string& out) {
    std::uint32_t unit = 0;
    if (!read_hex(unit)) return false;
    if (unit == 0) return fail("U+0000 cannot be stored");
    if (unit >= 0xdc00 && unit <= 0xdfff) return fail("a surrogate stands alone");
    if (unit >= 0xd800 && unit <= 0xdbff) {
      std::uint32_t low = 0;
      if (!take('\\') || !take('u')) return fail("a surrogate stands alone");
      if (!read_hex(low)) return false;
      if (low < 0xdc00 || low > 0xdfff) return fail("a surrogate stands alone");
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, unit);
    return true;
  }

  bool read_escape(std::string& out) {
    if (at_ == text_.size()) return fail("a string is not closed");
    const char c = text_[at_++];
    switch (c) {
      case '"': out += '"'; return true;
      case '\\': out += '\\'; return true;
      case '/': out += '/'; return true;
      case 'b': out += '\b'; return true;
      case 'f': out += '\f'; return true;
      case 'n': out += '\n'; return true;
      case 'r': out += '\r'; return true;
      case 't': out += '\t'; return true;
      case 'u': return read_unicode_escape(out);
      default: break;
    }
    --at_;
    return fail("an escape is not one of JSON's");
  }

  bool read_string(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const auto byte = static_cast<std::uint8_t>(text_[at_]);
      if (byte == '"') {
        ++at_;
        return true;
      }
      if (byte == '\\') {
        ++at_;
        if (!read_escape(out)) return false;
      } else if (byte < 0x20) {
        return fail("a control character stands in a string");
      } else if (byte < 0x80) {
        out += text_[at_++];
      } else {
        char32_t ignored = 0;
        const auto length = utf8_character(text_.substr(at_), ignored);
        if (length == 0) return fail("a string is not valid UTF-8");
        out.append(text_, at_, length);
        at_ += length;
      }
    }
    return fail("a string is not closed");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  const char* why_ = nullptr;
  std::size_t broken_at_ = 0;
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
      std::vector<const std::pair<std::string, json_value>*> sorted;
      sorted.reserve(value.members.size());
      for (const auto& member : value.members) sorted.push_back(&member);
      std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
      out += '{';
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (i > 0) out += ',';
        append_json_string(out, sorted[i]->first);
        out += ':';
        if (!append_canonical(out, sorted[i]->second)) return false;
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
    if (member.first == name) return &member.second;
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

result<json_value> parse_json(std::string_view text) { return json_reader(text).read(); }

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
