// Named SQL of reading a provider's list of events (R44): one reading at a time for each provider, a page at a time, claimed by
// lease by any replica. What is on record of a page is never lost with its holder: the page is read again, and its events are
// duplicates then. Times are judged by the database's clock.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/look_ups.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace recibo::storage {

// Begins one, or returns the one that is under way: that begins anew where it is wanted from earlier on.
boost::asio::awaitable<result<look_up_id>> start_event_list(postgres::pool& pool, std::string provider, std::string by,
                                                            sys_micros since, postgres::deadline until);

// A page to read.
struct claimed_page {
  look_up_id id;
  sys_micros since{};
  std::string cursor;
  std::int32_t pages = 0, attempts = 0;  // that are on record; at this page, this one included
  std::int32_t rounds = 0;               // how often all attempts at this page were in vain
};
// nullopt: there is none, somebody else has it, or it has to wait.
boost::asio::awaitable<result<std::optional<claimed_page>>> claim_page(postgres::pool& pool, std::string provider,
                                                                       look_up_holder by, std::chrono::milliseconds lease,
                                                                       postgres::deadline until);

// What came of it.
struct page_outcome {
  enum class next {
    on,      // to the page `cursor`, after `wait`
    done,    // it was the last
    retry,   // after `wait`: `reason` was in the way
    cut,     // the same, and the attempt does not count
    later,   // after `wait`, with all attempts again: this round of them was in vain
    failed,  // given up for `reason`
  };
  look_up_id id;
  std::int32_t attempts = 0;
  next what = next::retry;
  std::string cursor, reason;
  std::chrono::milliseconds wait{};
  std::int64_t events = 0, known = 0, parked = 0, review = 0, failed = 0;
  // Of events that are on record: those that this list brought and that moved something count as healed, once, and not as known.
  std::vector<delivery_id> deliveries;
};
// Nothing happens where somebody else has claimed it since.
boost::asio::awaitable<result<void>> settle_page(postgres::pool& pool, look_up_holder by, page_outcome what,
                                                 postgres::deadline until);

struct event_list_report {
  look_up_id id;
  std::string provider, started_by;
  sys_micros started_at{}, since{};
  std::optional<sys_micros> ended_at, next_attempt_at;
  std::optional<std::string> reason;
  std::int64_t pages = 0, events = 0, healed = 0, known = 0, parked = 0, review = 0, failed = 0;
};
boost::asio::awaitable<result<std::optional<event_list_report>>> read_event_list(postgres::pool& pool, look_up_id id,
                                                                                 postgres::deadline until);

}  // namespace recibo::storage
