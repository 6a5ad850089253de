#include "recibo/core/ids.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/utf8.hpp"

#include <algorithm>

namespace recibo {
namespace {

using uuid_bytes = std::array<std::uint8_t, 16>;

constexpr std::size_t id_bytes_max = 255;
constexpr std::uint64_t millis_max = (std::uint64_t{1} << 48) - 1;
// How far a clock may step back and still be held where it was.
constexpr std::uint64_t held_back_ms = 10'000;

// One thread's store of random bytes: asking OpenSSL once per identifier costs more than the identifier.
class random_store {
 public:
  std::uint64_t next() {
    if (used_ + 8 > bytes_.size()) {
      fill_random(bytes_.data(), bytes_.size());
      used_ = 0;
    }
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = (value << 8) | bytes_[used_++];
    return value;
  }

 private:
  std::array<std::uint8_t, 1024> bytes_{};
  std::size_t used_ = bytes_.size();
};

// The last identifier of this thread, as its three numbers.
struct generator {
  random_store random;
  std::uint64_t millis = 0;
  std::uint64_t high = 0;  // rand_a, 12 bits
  std::uint64_t low = 0;   // rand_b, 62 bits

  void renew(std::uint64_t at) {
    millis = at;
    high = random.next() & 0xfff;
    low = random.next() >> 2;
  }
  // A random step of 1 to 2^32: increasing, and still not to be guessed from its neighbour.
  void step() {
    low += (random.next() >> 32) + 1;
    if (low >> 62 == 0) return;
    low &= (std::uint64_t{1} << 62) - 1;
    if (++high >> 12 == 0) return;
    renew(std::min(millis + 1, millis_max));
  }
};

error broken_rule(std::string_view what, std::string_view rule) {
  std::string detail(what);
  detail += ' ';
  detail += rule;
  return error(permanent::malformed_field, std::move(detail));
}

// Unicode's White_Space, and what is as invisible without being called so.
constexpr bool is_blank(char32_t c) noexcept {
  return c == 0x20 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200d) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x2060 || c == 0x3000 || c == 0xfeff;
}

}  // namespace

uuid_bytes uuid_v7_bytes(sys_micros at) {
  thread_local generator g;
  const auto since = std::chrono::floor<std::chrono::milliseconds>(at).time_since_epoch().count();
  const std::uint64_t millis = since < 0 ? 0 : std::min(static_cast<std::uint64_t>(since), millis_max);
  if (millis > g.millis || millis + held_back_ms < g.millis) {
    g.renew(millis);
  } else {
    g.step();
  }
  uuid_bytes out{};
  for (std::size_t i = 0; i < 6; ++i) out[i] = static_cast<std::uint8_t>(g.millis >> (40 - 8 * i));
  out[6] = static_cast<std::uint8_t>(0x70 | (g.high >> 8));
  out[7] = static_cast<std::uint8_t>(g.high);
  out[8] = static_cast<std::uint8_t>(0x80 | (g.low >> 56));
  for (std::size_t i = 9; i < 16; ++i) out[i] = static_cast<std::uint8_t>(g.low >> (8 * (15 - i)));
  return out;
}

std::string uuid_text(const uuid_bytes& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out(36, '-');
  std::size_t to = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) ++to;
    out[to++] = digits[bytes[i] >> 4];
    out[to++] = digits[bytes[i] & 0x0f];
  }
  return out;
}

result<uuid_bytes> parse_uuid_bytes(std::string_view text) {
  const auto refused = [] { return error(permanent::malformed_field, "a UUID is 32 hex digits in five groups"); };
  if (text.size() != 36) return refused();
  uuid_bytes out{};
  std::size_t from = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      if (text[from++] != '-') return refused();
    }
    const int high = hex_value(text[from]), low = hex_value(text[from + 1]);
    if (high < 0 || low < 0) return refused();
    out[i] = static_cast<std::uint8_t>(high << 4 | low);
    from += 2;
  }
  return out;
}

sys_micros uuid_v7_time(const uuid_bytes& bytes) noexcept {
  std::int64_t millis = 0;
  for (std::size_t i = 0; i < 6; ++i) millis = (millis << 8) | bytes[i];
  return sys_micros{std::chrono::milliseconds{millis}};
}

result<void> check_request_id(std::string_view id, std::string_view what) {
  if (id.empty()) return broken_rule(what, "is empty");
  if (id.size() > id_bytes_max) return broken_rule(what, "is longer than 255 bytes");
  for (const char c : id) {
    if (c < 0x21 || c > 0x7e) return broken_rule(what, "holds a character that is not printable ASCII, or a space");
    if (c == '/' || c == '?' || c == '#' || c == '%') return broken_rule(what, "holds one of / ? # %");
  }
  if (id == "." || id == "..") return broken_rule(what, "is . or .., which a URL cannot carry");
  return {};
}

result<void> check_alias(std::string_view id, std::string_view what) {
  if (id.empty()) return broken_rule(what, "is empty");
  if (id.size() > id_bytes_max) return broken_rule(what, "is longer than 255 bytes");
  bool only_blanks = true;
  for (std::size_t i = 0; i < id.size();) {
    char32_t c = 0;
    const std::size_t length = utf8_character(id.substr(i), c);
    if (length == 0) return broken_rule(what, "is not valid UTF-8");
    if (c < 0x20 || (c >= 0x7f && c <= 0x9f)) return broken_rule(what, "holds a control character");
    only_blanks = only_blanks && is_blank(c);
    i += length;
  }
  if (only_blanks) return broken_rule(what, "holds nothing but blanks");
  return {};
}

}  // namespace recibo
