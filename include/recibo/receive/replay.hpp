// Replays failed callbacks: the kept bytes pass extraction, with the configuration of now, and the recorder (R17, R37). For the
// API and for `recibo replay`. The signature was verified when they came and is not asked again: its time stamp is old by now,
// and its secret may have gone; which one it was is on record with the delivery.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/record/work.hpp"
#include "recibo/storage/replays.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace recibo::receive {

// As record::recorder::record.
using replay_record =
    std::function<boost::asio::awaitable<result<record::outcome>>(record::work, std::chrono::steady_clock::time_point)>;

// What replays need; everything outlives them.
struct replay_parts {
  postgres::pool& pool;
  std::shared_ptr<const config::settings> settings;
  replay_record record;
};

// Whose replay it is, and why. A dry run says what would happen, and nothing of it stays.
struct replay_order {
  std::string actor, reason;
  bool dry_run = false;
};

// What came of one.
struct replay_result {
  failed_callback_id failed;
  record::outcome outcome;
  std::string word;  // the disposition, `duplicate` where the claim of another stands
  bool closed = false;
  bool repeated = false;  // it was closed before; this tells how
};

// permanent::not_found         there is no such failed callback, and never was
// permanent::already_resolved  it was discarded, or the provider sent it again
// permanent::check_failed      its body is gone
// permanent::unknown_provider  its provider is not configured any more
// Errors of the pool and of the recorder.
boost::asio::awaitable<result<replay_result>> replay_failed(const replay_parts& with, failed_callback_id id, replay_order order,
                                                            std::chrono::steady_clock::time_point until);

// A step of a replay of many: at most `limit`, in the order in which they first came, behind `after`, one after the other.
struct replay_step {
  std::int64_t matched = 0;  // that the filter meets when the step begins, wherever they stand
  std::int64_t taken = 0, closed = 0;
  std::map<std::string, std::int64_t> by_word;  // by disposition, or by the code of an error
  std::optional<failed_callback_id> next;       // where to go on; none: there is nothing left
};
// Stops before `until`, with `next` set. An error only where nothing was taken.
boost::asio::awaitable<result<replay_step>> replay_many(const replay_parts& with, storage::failed_filter which,
                                                        std::optional<failed_callback_id> after, int limit, replay_order order,
                                                        std::chrono::steady_clock::time_point until);

// Gives one up, on record; its delivery and body stay. The same again is no error.
// permanent::not_found, already_resolved
boost::asio::awaitable<result<bool>> discard_failed(const replay_parts& with, failed_callback_id id, std::string actor,
                                                    std::string reason, std::chrono::steady_clock::time_point until);

}  // namespace recibo::receive
