#include "recibo/notify/retry.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>

namespace recibo::notify {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int attempts_least = 10;
constexpr std::size_t astray_least = 10;
constexpr milliseconds breaker_first{10'000}, breaker_most{600'000};

constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Years of two digits that would be more than so many ahead are of the past (RFC 9110 section 5.6.7).
constexpr int years_ahead_most = 50;

// The three forms that a recipient reads (RFC 9110 section 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT", and the obsolete
// "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994". What day of the week it says is not checked.
std::optional<std::chrono::sys_seconds> read_http_date(std::string_view text, sys_micros now) {
  const std::string copy(text.substr(0, 64));
  char month[4] = {};
  int day = 0, year = 0, hour = 0, minute = 0, second = 0, used = -1;
  bool short_year = false;
  const auto whole = [&](int fields) { return fields == 6 && used == static_cast<int>(copy.size()); };
  const char* of = copy.c_str();
  if (!whole(std::sscanf(of, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &day, month, &year, &hour, &minute, &second,
                         &used))) {
    used = -1;
    if (whole(std::sscanf(of, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &day, month, &year, &hour, &minute, &second,
                          &used))) {
      short_year = true;
    } else {
      used = -1;
      if (!whole(std::sscanf(of, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month, &day, &hour, &minute, &second, &year,
                             &used)))
        return std::nullopt;
    }
  }
  if (short_year) {
    const std::chrono::year_month_day today(std::chrono::floor<std::chrono::days>(now));
    const int this_year = static_cast<int>(today.year());
    year += this_year / 100 * 100;
    if (year > this_year + years_ahead_most) year -= 100;
  }
  const auto at = std::find(months.begin(), months.end(), std::string_view(month));
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(at - months.begin() + 1)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) + seconds(second);
}

std::optional<seconds> read_retry_after(std::string_view text, sys_micros now) {
  if (text.empty()) return std::nullopt;
  if (std::all_of(text.begin(), text.end(), is_digit)) {
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    return failed == std::errc() ? std::min(seconds(number), retry_after_most) : retry_after_most;
  }
  const auto date = read_http_date(text, now);
  if (!date) return std::nullopt;
  return std::clamp(std::chrono::ceil<seconds>(*date - now), seconds(0), retry_after_most);
}

// What an interval of `whole` becomes, so that not all come at once: between a twentieth and all of it.
milliseconds part_of(milliseconds whole, double random) {
  return milliseconds(static_cast<std::int64_t>(static_cast<double>(whole.count()) * (0.05 + 0.95 * random)));
}

}  // namespace

std::string_view longest_wish(const http::header_list& headers, sys_micros now) {
  std::string_view out;
  std::optional<seconds> longest;
  for (const auto& [name, value] : headers) {
    if (!same_text(name, "retry-after")) continue;
    const auto wait = read_retry_after(value, now);
    if (!wait || (longest && *wait <= *longest)) continue;
    longest = wait;
    out = value;
  }
  return out;
}

judgement judge(int status, std::string_view retry_after, sys_micros now) {
  if (status >= 200 && status < 300) return {verdict::delivered, "delivered", true, {}};
  if (status >= 300 && status < 400) return {verdict::never, "redirect", false, {}, true};
  const auto wait = read_retry_after(retry_after, now);
  switch (status) {
    case 401:
    case 403:
    case 407: return {verdict::unauthorized, "unauthorized", false, {}};
    case 410: return {verdict::gone, "gone", true, {}};
    // Nobody is there who could have read it.
    case 404:
    case 405:
    case 421: return {verdict::never, "no_endpoint", false, {}, true};
    case 408:
    case 425: return {verdict::again, "too_early_or_slow", true, wait};
    case 409:
    case 423: return {verdict::again, "busy", true, wait};
    case 429: return {verdict::again, "over_rate", true, wait};
    default: break;
  }
  if (status >= 400 && status < 500) return {verdict::never, "refused", false, {}};
  return {verdict::again, "server_error", true, wait};
}

judgement judge(const error& why) {
  if (why.code == make_error_code(permanent::url_refused)) return {verdict::never, "url_refused", false, {}};
  if (why.code == make_error_code(permanent::malformed_field)) return {verdict::never, "malformed_field", false, {}};
  // A name may lead elsewhere later, and a certificate may be renewed: both are mended without us.
  if (why.code == make_error_code(permanent::address_refused)) return {verdict::again, "address_refused", false, {}};
  return {verdict::again, code_word(why.code), true, {}};
}

std::optional<milliseconds> next_wait(const config::retry_rule& rule, int attempts, const judgement& last, double random) {
  if (attempts >= rule.attempts) return std::nullopt;
  milliseconds interval = rule.first;
  for (int i = 1; i < attempts && interval < rule.max; ++i) interval *= 2;
  interval = std::min(interval, milliseconds(rule.max));
  const auto own = part_of(interval, random);
  if (!last.retry_after) return own;
  const milliseconds asked = std::min<seconds>(*last.retry_after, rule.max);
  return std::max(own, asked + part_of(std::min(interval, asked), random));
}

void recent_attempts::add(bool passed, time_point now) {
  const std::int64_t number = now.time_since_epoch() / slot_time;
  slot& at = all_[static_cast<std::size_t>(number) % slots];
  if (at.number != number) at = {number, 0, 0};
  ++(passed ? at.passed : at.failed);
  if (passed) astray_ <<= 1;
}

void recent_attempts::add_astray(time_point now) {
  add(false, now);
  astray_ <<= 1;
  astray_.set(0);
}

bool recent_attempts::out_of_order(time_point now) const {
  const std::int64_t number = now.time_since_epoch() / slot_time;
  int passed = 0, failed = 0;
  for (const slot& one : all_) {
    if (one.number <= number - static_cast<std::int64_t>(slots)) continue;
    passed += one.passed;
    failed += one.failed;
  }
  return (passed + failed >= attempts_least && failed >= passed) || astray_.count() >= astray_least;
}

milliseconds breaker_wait(int openings, double random) {
  milliseconds wait = breaker_first;
  for (int i = 1; i < openings && wait < breaker_most; ++i) wait *= 2;
  wait = std::min(wait, breaker_most);
  return milliseconds(static_cast<std::int64_t>(static_cast<double>(wait.count()) * (0.8 + 0.4 * random)));
}

}  // namespace recibo::notify
