// What an attempt to deliver a notification means, and when the next one comes (R19, R21, K27).
// Pure: no clock and no random source of its own. Safe from any thread.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/http/message.hpp"

#include <bitset>
#include <chrono>
#include <optional>
#include <string_view>

namespace recibo::notify {

enum class verdict {
  delivered,     // 2xx
  again,         // may pass later
  never,         // the same bytes will be refused again: dead at once
  unauthorized,  // 401, 403, 407: nothing will pass until a person has acted; the destination is paused
  gone,          // 410: it wants nothing any more; the destination is paused
  unsigned_now,  // no secret is valid now, so that nothing was sent; the destination is paused, and no attempt is counted
};

struct judgement {
  verdict what = verdict::again;
  // The stable word for lists, metrics and the log; a literal.
  std::string_view reason;
  // The destination did not take it, or cannot be reached; else what we send or are configured with is to blame.
  bool theirs = true;
  // How long it asked us to wait; at most retry_after_most.
  std::optional<std::chrono::seconds> retry_after;
  // `never`, and it speaks of the address and not of what was sent: most of them, and it is the destination's trouble.
  bool of_address = false;
};

// Whoever asks for more asks for as long as may be: no wish is too long to be one.
inline constexpr std::chrono::seconds retry_after_most = std::chrono::hours(24 * 366);

// Of several lines of Retry-After the value of the one that asks for most; empty: there is none that can be read. Borrows.
std::string_view longest_wish(const http::header_list& headers, sys_micros now);

// By the answer's status. `retry_after`: the header's value, seconds or an HTTP date (RFC 9110 section 10.2.3), empty: none;
// one that is neither counts as none. Redirects are not followed and will not pass (K29).
judgement judge(int status, std::string_view retry_after, sys_micros now);
// No answer: by what the client said.
judgement judge(const error& why);

// How long to wait after attempt number `attempts` (from 1) failed: a random part of an interval that doubles from
// `rule.first` up to `rule.max`, at least a twentieth of it, so that those who failed together do not come back together
// (S37). `random` is from [0, 1). A longer wait that was asked for is kept to, up to `rule.max`, and spread out too.
// nullopt: that was the last attempt.
std::optional<std::chrono::milliseconds> next_wait(const config::retry_rule& rule, int attempts, const judgement& last,
                                                   double random);

// Attempts to one destination by one replica: whether those of the last minute, or the latest answers, say that it is out of
// order.
class recent_attempts {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  void add(bool passed, time_point now);
  // It failed, and by the answer nobody was there who could have read it (judgement::of_address).
  void add_astray(time_point now);
  // Ten attempts or more in the last minute, and half of them or more failed. Or ten of the latest twenty that were taken or went
  // astray went astray, however long that took and however many were taken before: each of them would be dead.
  bool out_of_order(time_point now) const;
  void clear() { *this = {}; }

 private:
  static constexpr std::size_t slots = 6;
  static constexpr std::chrono::seconds slot_time{10};
  struct slot {
    std::int64_t number = -1;  // of ten seconds since the clock's beginning
    int passed = 0, failed = 0;
  };
  slot all_[slots];
  // Of those that were taken or went astray, the latest first: a one is one that went astray.
  static constexpr std::size_t latest = 20;
  std::bitset<latest> astray_;
};

// How long a breaker that opened for the n-th time in a row stays open: doubles from 10 s to 10 min, give or take a fifth.
std::chrono::milliseconds breaker_wait(int openings, double random);

}  // namespace recibo::notify
