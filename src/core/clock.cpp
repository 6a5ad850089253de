#include "recibo/core/clock.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace recibo {
namespace {

using namespace std::chrono;

constexpr sys_micros first_instant = sys_days{year{1} / January / 1};
constexpr sys_micros last_instant = sys_days{year{10000} / January / 1} - microseconds{1};

// Reads a text from the left; every step says whether it fitted.
class reader {
 public:
  explicit reader(std::string_view text) : rest_(text) {}

  // Exactly `count` digits.
  std::optional<int> digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_digit(rest_[i])) return std::nullopt;
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  bool one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return false;
    last_ = rest_.front();
    rest_.remove_prefix(1);
    return true;
  }
  // Microseconds of a fraction of any length, at least one digit; what is finer is cut off.
  std::optional<microseconds> fraction() {
    std::size_t count = 0;
    std::int64_t value = 0;
    while (count < rest_.size() && is_digit(rest_[count])) {
      if (count < 6) value = value * 10 + (rest_[count] - '0');
      ++count;
    }
    if (count == 0) return std::nullopt;
    for (std::size_t i = count; i < 6; ++i) value *= 10;
    rest_.remove_prefix(count);
    return microseconds{value};
  }
  char last() const noexcept { return last_; }
  bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
  char last_ = 0;
};

result<std::int64_t> parse_count(std::string_view text) {
  // Seventeen digits fit into 63 bits, so nothing here can overflow.
  if (text.empty() || text.size() > 17) return malformed("a Unix time has 1 to 17 digits");
  std::int64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return malformed("a Unix time consists of digits only");
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

sys_micros now() noexcept { return floor<microseconds>(system_clock::now()); }

std::string to_rfc3339(sys_micros at) {
  at = std::clamp(at, first_instant, last_instant);
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss<microseconds> time{at - day};
  std::string out = "0000-00-00T00:00:00.000000Z";
  const auto put = [&](std::size_t from, std::size_t count, std::int64_t value) {
    for (std::size_t i = count; i-- > 0; value /= 10) out[from + i] = static_cast<char>('0' + value % 10);
  };
  put(0, 4, int{date.year()});
  put(5, 2, unsigned{date.month()});
  put(8, 2, unsigned{date.day()});
  put(11, 2, time.hours().count());
  put(14, 2, time.minutes().count());
  put(17, 2, time.seconds().count());
  put(20, 6, time.subseconds().count());
  return out;
}

result<sys_micros> parse_rfc3339(std::string_view text) {
  reader in(text);
  const auto y = in.digits(4);
  if (!y || !in.one_of("-")) return malformed("a time starts with a date, YYYY-MM-DD");
  const auto mo = in.digits(2);
  if (!mo || !in.one_of("-")) return malformed("a time starts with a date, YYYY-MM-DD");
  const auto d = in.digits(2);
  if (!d) return malformed("a time starts with a date, YYYY-MM-DD");
  const year_month_day date{year{*y}, month{static_cast<unsigned>(*mo)}, day{static_cast<unsigned>(*d)}};
  if (*y < 1 || !date.ok()) return malformed("no such date");
  if (!in.one_of("Tt")) return malformed("date and time are joined by T");

  const auto h = in.digits(2);
  if (!h || !in.one_of(":")) return malformed("the time of day is hh:mm:ss");
  const auto mi = in.digits(2);
  if (!mi || !in.one_of(":")) return malformed("the time of day is hh:mm:ss");
  const auto s = in.digits(2);
  if (!s) return malformed("the time of day is hh:mm:ss");
  if (*h > 23 || *mi > 59 || *s > 60) return malformed("no such time of day");
  microseconds part{};
  if (in.one_of(".")) {
    const auto read = in.fraction();
    if (!read) return malformed("a fraction has at least one digit");
    part = *read;
  }

  minutes offset{};
  if (in.one_of("+-")) {
    const bool west = in.last() == '-';
    const auto oh = in.digits(2);
    if (!oh || !in.one_of(":")) return malformed("an offset is Z or +hh:mm or -hh:mm");
    const auto om = in.digits(2);
    if (!om || *oh > 23 || *om > 59) return malformed("an offset is Z or +hh:mm or -hh:mm");
    offset = hours{*oh} + minutes{*om};
    if (west) offset = -offset;
  } else if (!in.one_of("Zz")) {
    return malformed("the offset (Z or +hh:mm or -hh:mm) is missing or malformed");
  }
  if (!in.at_end()) return malformed("something follows the offset");

  const sys_micros at = sys_days{date} + hours{*h} + minutes{*mi} + seconds{*s} + part - offset;
  if (*s == 60) {
    // A leap second is the last one of a month in UTC: taken as the next second, it falls on the first midnight.
    const auto midnight = floor<days>(at);
    if (at - midnight >= seconds{1} || year_month_day{midnight}.day() != day{1}) return malformed("no such time of day");
  }
  if (at < first_instant || at > last_instant) return malformed("a time lies in the years 0001 to 9999");
  return at;
}

result<sys_micros> parse_unix_seconds(std::string_view digits) {
  const auto count = parse_count(digits);
  if (!count) return count.error();
  if (*count > duration_cast<seconds>(last_instant.time_since_epoch()).count())
    return malformed("a Unix time in seconds beyond the year 9999");
  return sys_micros{seconds{*count}};
}

result<sys_micros> parse_unix_millis(std::string_view digits) {
  const auto count = parse_count(digits);
  if (!count) return count.error();
  if (*count > duration_cast<milliseconds>(last_instant.time_since_epoch()).count()) {
    return malformed("a Unix time in milliseconds beyond the year 9999");
  }
  return sys_micros{milliseconds{*count}};
}

}  // namespace recibo
