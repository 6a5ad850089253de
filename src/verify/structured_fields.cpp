#include "structured_fields.hpp"

#include "recibo/core/digest.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

constexpr bool digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool small_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool letter(char c) noexcept { return small_letter(c) || (c >= 'A' && c <= 'Z'); }
constexpr bool token_character(char c) noexcept {
  return letter(c) || digit(c) || std::string_view("!#$%&'*+-.^_`|~:/").find(c) != std::string_view::npos;
}

class sf_parser {
 public:
  explicit sf_parser(std::string_view text) : rest_(text) {}

  std::optional<std::vector<sf_member>> dictionary() {
    std::vector<sf_member> out;
    skip(" ");
    while (!rest_.empty()) {
      sf_member one;
      if (out.size() == sf_members_max || !key(one.name) || find_member(out, one.name) != nullptr) return std::nullopt;
      if (take('=')) {
        if (!member_value(one)) return std::nullopt;
      } else {
        one.items.emplace_back();
        if (!parameters(one.items.back().parameters)) return std::nullopt;
      }
      out.push_back(std::move(one));
      skip(" \t");
      if (rest_.empty()) return out;
      if (!take(',')) return std::nullopt;
      skip(" \t");
      // A comma with nothing behind it.
      if (rest_.empty()) return std::nullopt;
    }
    return out;
  }

 private:
  bool take(char c) noexcept {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip(std::string_view blanks) noexcept {
    while (!rest_.empty() && blanks.find(rest_.front()) != std::string_view::npos) rest_.remove_prefix(1);
  }

  bool key(std::string& out) {
    if (rest_.empty() || !(small_letter(rest_.front()) || rest_.front() == '*')) return false;
    std::size_t size = 0;
    while (size < rest_.size() && (small_letter(rest_[size]) || digit(rest_[size]) ||
                                   std::string_view("_-.*").find(rest_[size]) != std::string_view::npos))
      ++size;
    out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  bool member_value(sf_member& out) {
    if (!take('(')) {
      out.items.emplace_back();
      return item(out.items.back());
    }
    out.is_list = true;
    while (true) {
      skip(" ");
      if (take(')')) return parameters(out.parameters);
      if (out.items.size() == sf_items_max) return false;
      out.items.emplace_back();
      if (!item(out.items.back())) return false;
      if (rest_.empty() || (rest_.front() != ' ' && rest_.front() != ')')) return false;
    }
  }

  bool item(sf_item& out) { return bare(out.value) && parameters(out.parameters); }

  bool parameters(std::vector<sf_parameter>& out) {
    while (take(';')) {
      skip(" ");
      sf_parameter one;
      if (out.size() == sf_parameters_max || !key(one.name) || find_parameter(out, one.name) != nullptr) return false;
      if (take('=') && !bare(one.value)) return false;
      out.push_back(std::move(one));
    }
    return true;
  }

  bool bare(sf_bare& out) {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    if (c == '"') return string(out);
    if (c == ':') return bytes(out);
    if (c == '?') return boolean(out);
    if (c == '-' || digit(c)) return number(out);
    if (letter(c) || c == '*') return token(out);
    return false;
  }

  bool string(sf_bare& out) {
    out = {sf_bare::kind::string, {}};
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\\')) return false;
        c = rest_.front();
        rest_.remove_prefix(1);
      }
      if (c < ' ' || c > '~') return false;
      out.value += c;
    }
    return false;
  }

  bool bytes(sf_bare& out) {
    const std::size_t end = rest_.find(':', 1);
    if (end == std::string_view::npos) return false;
    auto decoded = from_base64(rest_.substr(1, end - 1));
    if (!decoded) return false;
    out = {sf_bare::kind::bytes, std::move(*decoded)};
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool boolean(sf_bare& out) {
    if (rest_.size() < 2 || (rest_[1] != '0' && rest_[1] != '1')) return false;
    out = {sf_bare::kind::boolean, std::string(1, rest_[1])};
    rest_.remove_prefix(2);
    return true;
  }

  bool token(sf_bare& out) {
    std::size_t size = 0;
    while (size < rest_.size() && token_character(rest_[size])) ++size;
    out = {sf_bare::kind::token, std::string(rest_.substr(0, size))};
    rest_.remove_prefix(size);
    return true;
  }

  // Integers of at most 15 digits, decimals of 12 and 3; written again without leading zeros and trailing ones.
  bool number(sf_bare& out) {
    std::string sign = take('-') ? "-" : "";
    std::size_t whole = 0;
    while (whole < rest_.size() && digit(rest_[whole])) ++whole;
    if (whole == 0) return false;
    std::string digits(rest_.substr(0, whole));
    rest_.remove_prefix(whole);
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
    if (!take('.')) {
      if (whole > 15) return false;
      out = {sf_bare::kind::integer, (digits == "0" ? "" : sign) + digits};
      return true;
    }
    std::size_t fraction = 0;
    while (fraction < rest_.size() && digit(rest_[fraction])) ++fraction;
    if (whole > 12 || fraction == 0 || fraction > 3) return false;
    std::string behind(rest_.substr(0, fraction));
    rest_.remove_prefix(fraction);
    while (behind.size() > 1 && behind.back() == '0') behind.pop_back();
    out = {sf_bare::kind::decimal, sign + digits + '.' + behind};
    return true;
  }

  std::string_view rest_;
};

std::string serialize_bare(const sf_bare& from) {
  switch (from.what) {
    case sf_bare::kind::integer:
    case sf_bare::kind::decimal:
    case sf_bare::kind::token: return from.value;
    case sf_bare::kind::string: return serialize_string(from.value);
    case sf_bare::kind::bytes: return ':' + to_base64(from.value) + ':';
    case sf_bare::kind::boolean: return '?' + from.value;
  }
  return {};
}

void append_parameters(std::string& out, const std::vector<sf_parameter>& all) {
  for (const sf_parameter& one : all) {
    out.append(";").append(one.name);
    if (one.value.what != sf_bare::kind::boolean || one.value.value != "1") out.append("=").append(serialize_bare(one.value));
  }
}

}  // namespace

std::optional<std::vector<sf_member>> parse_dictionary(std::string_view text) { return sf_parser(text).dictionary(); }

std::string serialize_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out += '"';
}

std::string serialize(const sf_item& item) {
  std::string out = serialize_bare(item.value);
  append_parameters(out, item.parameters);
  return out;
}

std::string serialize(const sf_member& member) {
  if (!member.is_list) return serialize(member.items.front());
  std::string out = "(";
  for (const sf_item& one : member.items) {
    if (out.size() > 1) out += ' ';
    out += serialize(one);
  }
  out += ')';
  append_parameters(out, member.parameters);
  return out;
}

const sf_bare* find_parameter(const std::vector<sf_parameter>& in, std::string_view name) noexcept {
  const auto at = std::find_if(in.begin(), in.end(), [&](const sf_parameter& p) { return p.name == name; });
  return at == in.end() ? nullptr : &at->value;
}

const sf_member* find_member(const std::vector<sf_member>& in, std::string_view name) noexcept {
  const auto at = std::find_if(in.begin(), in.end(), [&](const sf_member& m) { return m.name == name; });
  return at == in.end() ? nullptr : &*at;
}

}  // namespace recibo::verify
