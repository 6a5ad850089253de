#include "recibo/core/money.hpp"

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
