#include "stream.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <array>
#include <cassert>
#include <chrono>
#include <ctime>

namespace recibo::bench {
namespace {

// How many operations behind its registration each kind of callback comes.
constexpr std::uint64_t callback_lag = 1, bad_lag = 1, late_lag = 2, duplicate_lag = 3;

// Where an operation stands among its thousand; 7919 has no factor in common with 1000, so each place is met once.
std::uint64_t place(std::uint64_t user, std::uint64_t operation) { return (user * 37 + operation) * 7919 % 1000; }

// Of 1,000 operations 962 are completed, 260 twice over, 65 hear something old afterwards, 13 hear from a forger:
// 1,300 callbacks, 20 % duplicates, 5 % out of order, 1 % badly signed.
constexpr std::uint64_t completed = 962, repeated = 260, late_from = 300, late_to = 365, bad_from = 400, bad_to = 413;

std::string utc(std::time_t at) {
  std::array<char, 32> text{};
  std::tm parts{};
  gmtime_r(&at, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace

std::optional<step> stream::next() {
  while (ready_.empty()) {
    if (operations_ > 0 && at_ >= operations_ + (what_ == phase::registers ? 0 : duplicate_lag)) return std::nullopt;
    fill();
    ++at_;
  }
  const step out = ready_.front();
  ready_.pop_front();
  return out;
}

void stream::fill() {
  const auto known = [&](std::uint64_t lag) { return at_ >= lag && (operations_ == 0 || at_ - lag < operations_); };
  const auto add = [&](step_kind what, std::uint64_t operation) { ready_.push_back({what, user_, operation}); };
  if (what_ != phase::callbacks && known(0)) add(step_kind::registration, at_);
  if (what_ == phase::registers) return;
  if (known(callback_lag) && place(user_, at_ - callback_lag) < completed) add(step_kind::callback, at_ - callback_lag);
  if (known(bad_lag)) {
    const auto p = place(user_, at_ - bad_lag);
    if (p >= bad_from && p < bad_to) add(step_kind::badly_signed, at_ - bad_lag);
  }
  if (known(late_lag)) {
    const auto p = place(user_, at_ - late_lag);
    if (p >= late_from && p < late_to) add(step_kind::late, at_ - late_lag);
  }
  if (known(duplicate_lag) && place(user_, at_ - duplicate_lag) < repeated) add(step_kind::duplicate, at_ - duplicate_lag);
}

wording::wording(std::string run, std::string secret) : run_(std::move(run)), secret_(std::move(secret)) {
  const auto now = std::time(nullptr);
  happened_ = utc(now);
  earlier_ = utc(now - 60);
}

std::string wording::request_id(const step& s) const {
  return run_ + '-' + std::to_string(s.user) + '-' + std::to_string(s.operation);
}

std::string wording::key(const step& s) const {
  switch (s.what) {
    case step_kind::registration: return {};
    case step_kind::callback:
    case step_kind::duplicate: return request_id(s) + "-done";
    case step_kind::late: return request_id(s) + "-seen";
    case step_kind::badly_signed: return request_id(s) + "-forged";
  }
  return {};
}

std::string wording::registration_body(const step& s) const {
  return R"({"request_id":")" + request_id(s) + R"(","provider":"bench","action":"charge","amount":"19.99","currency":"EUR"})";
}

std::string wording::callback_body(const step& s) const {
  const bool late = s.what == step_kind::late;
  std::string out = R"({"request_id":")" + request_id(s) + R"(","event_id":")" + key(s) + R"(","status":")" +
                    (late ? "processing" : "succeeded") + R"(","amount":"19.99","currency":"EUR","occurred_at":")" +
                    (late ? earlier_ : happened_) + R"(","note":")";
  assert(out.size() + 2 <= body_bytes);
  // Words as a provider sends them along: nothing reads them.
  constexpr std::string_view filler = "settled by the acquirer in batch 20261130, ";
  while (out.size() + 2 < body_bytes) out += filler.substr(0, body_bytes - 2 - out.size());
  return out + "\"}";
}

std::string wording::signature(const std::string& timestamp, const std::string& body) const {
  const std::string content = timestamp + '.' + body;
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned length = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), reinterpret_cast<const unsigned char*>(content.data()),
       content.size(), mac.data(), &length);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < length; ++i) {
    out += digits[mac[i] >> 4U];
    out += digits[mac[i] & 15U];
  }
  return out;
}

}  // namespace recibo::bench
