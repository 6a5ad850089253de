// Named SQL of look-ups: the write path's half, and what those who ask need (R23, R40, R44). Times are judged by the
// database's clock. What asks is one transaction and may be repeated: a claim that was not heard of runs out with its lease.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/bulk.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::storage {

// Of one running service: the fence of its leases.
using look_up_holder = uuid_of<struct look_up_holder_tag>;
using catch_up_id = uuid_of<struct catch_up_tag>;

// One that is wanted. Where one about the same waits already, that is counted instead.
struct look_up_row {
  operation_id operation;
  std::string provider, reference;
  std::string_view cause;  // request, hint, state, retry; a literal
  std::string asked_by;
  std::int32_t times = 1;
  // Ahead of a retry: how many facts the operation had.
  std::optional<std::int32_t> sequence;
};
struct new_look_ups {
  bulk rows;
  new_look_ups();
  void add(const look_up_row& r, sys_micros at);
};
// Look-ups ahead of a retry that wait for another attempt while somebody waits for them: within five seconds.
struct hastened_look_ups {
  bulk rows;
  hastened_look_ups();
  void add(const operation_id& operation);
};
// Look-ups whose answer has been decided, with the attempt. One that somebody else has claimed since is left alone.
struct answered_look_ups {
  bulk rows;
  answered_look_ups();
  struct row {
    look_up_id id;
    std::string_view holder;  // 16 bytes
    std::int32_t attempt = 0;
    std::string_view status, outcome, disposition, host;
    delivery_id delivery;
    std::int32_t duration_ms = 0;
    std::optional<std::int32_t> answer_status;
    // What may be repeated by this answer: a JSON list of items' IDs, "" for the operation; empty: nothing.
    std::string_view repeatable;
  };
  void add(const row& r, sys_micros at);
};

// The latest look-up ahead of a retry of an operation in hand; read after the lock (R23).
struct retry_look_up {
  operation_id operation;
  std::int32_t sequence = 0;          // of the operation when it was asked for
  std::optional<std::int32_t> moved;  // the sequence of the last move of the operation or an item
  std::string status, reason, disposition;
  std::string repeatable;  // of answered_look_ups::row
  bool fresh = false;      // it has ended within the last half minute
  bool by_clock = false;   // the clock asked for it, and it was answered, or not known, within the last five minutes
};
void append_find_retry_look_ups(checked_pipeline& to, const std::vector<operation_id>& operations);
std::vector<retry_look_up> read_retry_look_ups(const postgres::rows& from);
// How the latest look-up ahead of a retry stands; nullopt: there is none.
boost::asio::awaitable<result<std::optional<std::string>>> retry_look_up_status(postgres::pool& pool, std::string request_id,
                                                                                postgres::deadline until);

// Whether there is anything to do for a provider, without a lock.
struct look_up_peek {
  bool due = false;      // something could be claimed
  bool listing = false;  // a catch-up goes on
  std::string breaker;
};
boost::asio::awaitable<result<look_up_peek>> peek_look_ups(postgres::pool& pool, std::string provider, postgres::deadline until);

// One in hand, with what its URL is made of.
struct claimed_look_up {
  look_up_id id;
  std::string request_id, reference, cause, reason;
  std::int32_t attempts = 0;  // this one included
  std::int32_t times = 1;     // how often it was asked for
};
struct look_up_claim {
  std::string provider;
  look_up_holder by;
  std::chrono::milliseconds lease{30'000};
  double per_second = 1, burst = 1;
  int concurrency = 1;  // of all replicas
  int limit = 1;        // of this call
};
struct claimed_look_ups {
  std::vector<claimed_look_up> all;
  std::string breaker = "closed";
  int openings = 0;
};
// What is due and nobody holds, catch-ups last and oldest first, within rate, concurrency and breaker. Where the breaker is open
// and its time has come, one is claimed as a probe: `breaker` is half_open then. None while the provider asked not to be asked.
boost::asio::awaitable<result<claimed_look_ups>> claim_look_ups(postgres::pool& pool, look_up_claim what,
                                                                postgres::deadline until);

// An attempt that came to nothing yet.
struct look_up_outcome {
  enum class next {
    retry,     // after `wait`
    returned,  // cut off by us: after `wait`, and it does not count
    failed,    // given up, without a review
  };
  look_up_id id;
  std::int32_t attempt = 0;
  next what = next::retry;
  std::chrono::milliseconds wait{}, duration{};
  std::string host, reason;
  std::optional<std::int32_t> answer_status;
};
boost::asio::awaitable<result<void>> settle_look_up(postgres::pool& pool, look_up_holder by, look_up_outcome what,
                                                    postgres::deadline until);
// `theirs`: it does not answer, rather than refuse us; then it is known to be out, and its limits stand still (R44).
boost::asio::awaitable<result<void>> open_look_up_breaker(postgres::pool& pool, std::string provider,
                                                          std::chrono::milliseconds wait, bool theirs, postgres::deadline until);
// Where it was out for minutes, what may have been missed is asked about in the same transaction.
struct missed_by {
  bool look_ups = false;    // all its open operations are looked up
  bool event_list = false;  // its list of events is read
};
boost::asio::awaitable<result<void>> close_look_up_breaker(postgres::pool& pool, std::string provider, missed_by ask,
                                                           postgres::deadline until);
// The provider asked not to be asked for so long (Retry-After): no replica claims meanwhile. A longer wish stands.
boost::asio::awaitable<result<void>> hold_look_ups(postgres::pool& pool, std::string provider, std::chrono::milliseconds wait,
                                                   postgres::deadline until);

// Ends look-ups of providers that are not among these: nobody can ask them any more. Only what has been due for `grace` without
// any replica having asked that provider meanwhile, so that a configuration may be rolled out or back. How many, by provider. So
// do event lists of providers that are not among `listed_by`.
boost::asio::awaitable<result<std::vector<std::pair<std::string, std::int64_t>>>> end_unaskable_look_ups(
    postgres::pool& pool, std::vector<std::string> askable, std::vector<std::string> listed_by, std::chrono::seconds grace,
    postgres::deadline until);
// Deletes attempts and look-ups without effect older than this (at least a day), five thousand of each at most; how many. So does
// it outages, ours and the provider's, that no timer was set before.
boost::asio::awaitable<result<std::int64_t>> sweep_look_ups(postgres::pool& pool, std::chrono::seconds keep,
                                                            postgres::deadline until);

// The latest about an operation.
boost::asio::awaitable<result<std::optional<look_up_id>>> find_latest_look_up(postgres::pool& pool, std::string request_id,
                                                                              postgres::deadline until);

// Seconds that the oldest open one has waited, by provider.
boost::asio::awaitable<result<std::vector<std::pair<std::string, double>>>> oldest_look_ups(postgres::pool& pool,
                                                                                            postgres::deadline until);
// Seconds since the latest event list of a provider was wanted, where it has not been read to its end.
boost::asio::awaitable<result<std::vector<std::pair<std::string, double>>>> unread_event_lists(postgres::pool& pool,
                                                                                               postgres::deadline until);

// Look-ups about every open operation of a provider that was accepted since `since`, the newest first (R44). One at a time for
// each provider: while one lists, its ID is returned, and it begins anew. The running services list it in steps.
boost::asio::awaitable<result<catch_up_id>> start_catch_up(postgres::pool& pool, std::string provider, std::string by,
                                                           sys_micros since, postgres::deadline until);
// A step of the catch-up of a provider, while fewer than `backlog` of its look-ups wait; nullopt: there is none to do. Else
// whether there is more.
boost::asio::awaitable<result<std::optional<bool>>> advance_catch_up(postgres::pool& pool, std::string provider, int backlog,
                                                                     postgres::deadline until);

// How far one has come. `healed`: its look-ups moved their operation or an item.
struct catch_up_report {
  catch_up_id id;
  std::string provider, started_by;
  sys_micros started_at{}, since{};
  std::optional<sys_micros> listed_at;
  std::int64_t asked = 0, open = 0, answered = 0, healed = 0, review = 0, failed = 0;
  bool done() const noexcept { return listed_at && open == 0; }
};
boost::asio::awaitable<result<std::optional<catch_up_report>>> read_catch_up(postgres::pool& pool, catch_up_id id,
                                                                             postgres::deadline until);

}  // namespace recibo::storage
