// Named SQL of the outbox: claiming what is due, and recording what became of it (R19, decision 6). Times are judged by the
// database's clock.
// Everything that writes is one transaction and may be repeated: a claim that was not heard of runs out with its lease.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/reads.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// Of one running dispatcher: the fence of its leases.
using dispatcher_id = uuid_of<struct dispatcher_tag>;
// Of one request of a person about notifications: a replay or a discard.
using notification_action_id = uuid_of<struct notification_action_tag>;

// One notification in hand, with the operation as it stood when the fact was recorded.
struct claimed_notification {
  notification_id id;
  operation_id operation;
  std::int32_t sequence = 0;
  std::string type;
  std::int32_t attempts = 0;  // this one included
  std::int32_t attempts_before = 0;
  sys_micros created_at{}, due_at{};
  // The transition that it speaks of; empty: it speaks of none.
  std::string event, from, to, item_id;
  // What was said last of that item, up to the fact, as JSON; empty: nothing.
  std::string item_result;
  // After the operation's last own transition up to the fact; empty and 0: it had not moved.
  std::string state, result;
  std::int64_t version = 0;
  std::optional<sys_micros> state_at;
  // It speaks of a provider, and of no operation: `operation` is the provider's key (provider_activity.key).
  struct provider_fact {
    std::string provider, reason;
    sys_micros silent_since{};
    std::optional<sys_micros> heard_at;
  };
  std::optional<provider_fact> of_provider;
};

struct claim_query {
  int limit = 1;
  std::chrono::milliseconds lease{30'000};
  // What follows a dead one of its operation waits: it is marked `held` instead of being claimed.
  bool hold = true;
  // Rows that were due before it have been seen to: keeps the look out of what is dead in the index (decision 6).
  std::optional<sys_micros> due_since;
  // The breaker is not closed: take the probe, and claim with it what may be sent. Exactly one replica has it, for `lease`;
  // nobody has where there is nothing to send. What was tried before and is due goes before what was not; after every other probe
  // in vain it is the other way round.
  bool probe = false;
  // Of so many that are due first, those that wait behind an attempt that is put off are put off with it. 0: this is not looked
  // for.
  int put_behind = 0;
};
// One claim in hand.
struct held_claim {
  operation_id operation;
  std::int32_t sequence = 0, attempt = 0;
};
// Longer leases for these claims of `by`, and for no others: a claim whose answer was lost is in nobody's hand, and has to run
// out. One that somebody holds locked keeps the lease that it has.
boost::asio::awaitable<result<void>> extend_leases(postgres::pool& pool, std::string destination, dispatcher_id by,
                                                   std::vector<held_claim> in_hand, std::chrono::milliseconds lease,
                                                   postgres::deadline until);

// What became of one attempt.
struct attempt_outcome {
  enum class next {
    delivered,
    retry,  // after `wait`
    dead,
    returned,  // nothing was sent, or it was cut off by us: due after `wait`, and none of the attempts that the schedule has
  };
  notification_id id;
  operation_id operation;
  std::int32_t sequence = 0, attempt = 0;
  next what = next::retry;
  std::chrono::milliseconds wait{};
  std::string reason;  // "delivered" or the word for what went wrong
  bool theirs = true;
  std::optional<int> answer_status;
  std::chrono::milliseconds duration{};
  std::string excerpt;
  // What it says of the destination, which is noted with it: it took something, or it did not; nullopt: nothing.
  std::optional<bool> taken;
};
struct held_row {
  operation_id operation;
  std::int32_t sequence = 0;
};
struct claims {
  std::vector<claimed_notification> all;
  // The probe was taken, and stands until then unless it is given back; nullopt: it was not asked for, or not to be had.
  std::optional<sys_micros> probe_until;
  // How many were put off with one before them.
  std::int64_t put_behind = 0;
  // Whose outcome is not settled, as somebody holds the row: to be said again. Their attempts are on record.
  std::vector<held_row> busy;
};
// Records what came back and claims what is due, in one transaction and one round trip: the next of an operation is claimed
// with the outcome of the one before it. Claimed is the first of each operation that is due and that nobody holds, oldest first.
// Rows that another dispatcher has claimed since, or a person has discarded, are left alone; the attempt is on record all the
// same. It waits for no row of a notification.
boost::asio::awaitable<result<claims>> exchange_outbox(postgres::pool& pool, std::string destination, dispatcher_id by,
                                                       std::vector<attempt_outcome> done, std::optional<claim_query> next,
                                                       postgres::deadline until);

// Held notifications that nothing stands before any more become pending. `hold`: dead ones stand before them. One step of a pass
// over those that are held or dead: up to `limit` of them behind a place.
struct held_place {
  operation_id operation{};
  std::int32_t sequence = 0;
};
struct held_step {
  std::int64_t freed = 0;
  std::optional<held_place> next;  // nullopt: the pass is over
};
boost::asio::awaitable<result<held_step>> release_held(postgres::pool& pool, std::string destination, bool hold, held_place after,
                                                       int limit, postgres::deadline until);

// Attempts that are older than `keep`, some thousands at a time. Returns how many have gone.
boost::asio::awaitable<result<std::int64_t>> sweep_attempts(postgres::pool& pool, std::chrono::seconds keep,
                                                            postgres::deadline until);

// The replicas tell each other that there is something to deliver. A word is "<who>:<destination>,<destination>", of "*": any;
// who has sent it knows already. Nothing depends on it: what is not heard is found by looking.
boost::asio::awaitable<result<void>> ring_outbox(postgres::pool& pool, std::string word, postgres::deadline until);
// From now on `on` hears it (connection::listen).
boost::asio::awaitable<bool> listen_to_outbox(postgres::connection& on, postgres::deadline until);
// For those who make notifications due by hand, in their transaction.
void append_ring(postgres::pipeline& to);

}  // namespace recibo::storage
