#include "recibo/core/money.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace recibo {
namespace {

constexpr std::size_t integer_digits_max = 30;
constexpr std::size_t fraction_digits_max = 12;

// The digits that count: no zeros before the first or after the last of them.
struct significant {
  bool negative = false;
  std::string_view integer, fraction;

  explicit significant(std::string_view text) noexcept {
    if (!text.empty() && text.front() == '-') {
      negative = true;
      text.remove_prefix(1);
    }
    const auto point = text.find('.');
    integer = text.substr(0, point);
    if (point != std::string_view::npos) fraction = text.substr(point + 1);
    while (!integer.empty() && integer.front() == '0') integer.remove_prefix(1);
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
    if (integer.empty() && fraction.empty()) negative = false;
  }
};

std::size_t leading_digits(std::string_view text) noexcept {
  std::size_t n = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
  return n;
}

}  // namespace

result<decimal> parse_decimal(std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '-') rest.remove_prefix(1);
  const std::size_t before = leading_digits(rest);
  if (before == 0) return malformed("an amount is digits with an optional minus sign and point");
  if (before > integer_digits_max) return malformed("an amount has at most 30 digits before the point");
  rest.remove_prefix(before);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    const std::size_t after = leading_digits(rest);
    if (after == 0) return malformed("an amount has digits after its point");
    if (after > fraction_digits_max) return malformed("an amount has at most 12 digits after the point");
    rest.remove_prefix(after);
  }
  if (!rest.empty()) return malformed("an amount is digits with an optional minus sign and point");
  return decimal{std::string(text)};
}

namespace {

// Digits with the point `shift` places further right (left, where it is negative).
std::string shifted(std::string_view digits, std::size_t point, std::int64_t shift) {
  std::string all(digits);
  auto place = static_cast<std::int64_t>(point) + shift;
  if (place < 1) {
    all.insert(0, static_cast<std::size_t>(1 - place), '0');
    place = 1;
  }
  if (static_cast<std::size_t>(place) > all.size()) all.append(static_cast<std::size_t>(place) - all.size(), '0');
  // As a number, so that leading zeros mean nothing and one stands before the point.
  std::string whole = all.substr(0, static_cast<std::size_t>(place)), fraction = all.substr(static_cast<std::size_t>(place));
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  return fraction.empty() ? whole : whole + '.' + fraction;
}

result<decimal> move_point(std::string_view text, std::int64_t shift) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  if (point < text.size()) digits += text.substr(point + 1);
  std::string out = shifted(digits, point, shift);
  // Zeros behind the last digit that counts would only use up the places that a decimal has.
  if (out.find('.') != std::string::npos && shift > 0) out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return parse_decimal((negative ? "-" : "") + out);
}

}  // namespace

result<decimal> parse_json_decimal(std::string_view text) {
  const auto mark = text.find_first_of("eE");
  if (mark == std::string_view::npos) return parse_decimal(text);
  const auto mantissa = parse_decimal(text.substr(0, mark));
  if (!mantissa) return mantissa;
  std::string_view exponent = text.substr(mark + 1);
  const bool down = exponent.starts_with('-');
  if (down || exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t shift = 0;
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), shift);
  if (exponent.empty() || leading_digits(exponent) != exponent.size() || read.ec != std::errc() || shift > 60)
    return malformed("an amount has at most 30 digits before the point and 12 after it");
  return move_point(mantissa->text, down ? -shift : shift);
}

int minor_unit_digits(std::string_view currency) noexcept {
  // ISO 4217, list one of 2024-06: those whose minor unit is not 2.
  constexpr std::array<std::string_view, 17> none{"BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG",
                                                  "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"};
  constexpr std::array<std::string_view, 7> three{"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"};
  constexpr std::array<std::string_view, 2> four{"CLF", "UYW"};
  const auto is_in = [&](const auto& list) { return std::find(list.begin(), list.end(), currency) != list.end(); };
  return is_in(none) ? 0 : is_in(three) ? 3 : is_in(four) ? 4 : 2;
}

result<decimal> from_minor_unit(const decimal& amount, std::string_view currency) {
  const auto point = amount.text.find('.');
  // "1999.00" is whole, too.
  if (point != std::string::npos && amount.text.find_first_not_of('0', point + 1) != std::string::npos)
    return malformed("an amount in the smallest unit of its currency is a whole number");
  return move_point(std::string_view(amount.text).substr(0, point), -minor_unit_digits(currency));
}

bool same_value(const decimal& a, const decimal& b) noexcept {
  const significant left(a.text), right(b.text);
  return left.negative == right.negative && left.integer == right.integer && left.fraction == right.fraction;
}

result<std::string> parse_currency(std::string_view text) {
  if (text.size() != 3) return malformed("a currency is three letters");
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c < 'A' || c > 'Z') return malformed("a currency is three letters");
  }
  return out;
}

}  // namespace recibo
