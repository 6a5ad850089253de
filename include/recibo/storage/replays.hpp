// Named SQL and row mapping of what is done about failed callbacks: the write path's half, and what a replay needs to read.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/bulk.hpp"
#include "recibo/storage/deliveries.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

using replay_id = uuid_of<struct replay_tag>;

// One row of `replays`; borrows. Empty texts are stored as NULL.
struct replay_row {
  replay_id id;
  failed_callback_id failed;
  std::string_view provider;
  delivery_id delivery;
  std::string_view action;  // replayed, met, discarded; resent, where something is left; resent_failed writes the one that closes
  sys_micros at{};
  std::string_view actor, reason, disposition;
  bool closes = false;
  std::optional<operation_id> operation;
  std::optional<std::int32_t> sequence;  // of the audit row
  std::string_view key;
  std::string_view items;  // what was decided about each item
  std::optional<delivery_id> resent_as{};
};
struct new_replays {
  bulk rows;
  new_replays();
  void add(const replay_row& r);
};

// Failed callbacks that are done: each must be there.
struct closed_failed {
  bulk rows;
  closed_failed();
  void add(failed_callback_id id);
};
// Failed callbacks that were replayed, of which something is left that could not be understood, and why.
struct tried_failed {
  bulk rows;
  tried_failed();
  // `left_out`: as failed_row's.
  void add(failed_callback_id id, sys_micros at, std::string_view disposition, std::string_view reason, std::string_view detail,
           std::string_view left_out);
};
// Failed callbacks of which something else is left now, by a resend or by what waited.
struct relisted_failed {
  bulk rows;
  relisted_failed();
  // `left_out`: as failed_row's.
  void add(failed_callback_id id, std::string_view left_out);
};
// Failed callbacks whose provider sent the same bytes again, and they were understood: closed, on record. Those that do not
// exist are no error. `repeats`: their key is used, so that they moved nothing this time; a row about items that were left out
// then stays open. Without a key beside the body, then or now, the body alone says which is meant.
struct resent_failed {
  bulk rows;
  resent_failed();
  void add(const failed_name& which, delivery_id resent_as, sys_micros at, bool repeats);
};

// What a replay reads of a failed callback. `body` is nullopt where it has been purged.
struct failed_material {
  failed_callback_id id;
  std::string provider;
  delivery_id delivery;
  sys_micros received_at{};
  std::string secret, peer, trace_id, content_type;
  std::optional<std::string> body;
  std::optional<std::string> head;
  std::optional<sha256_digest> signed_digest;
  sha256_digest body_digest{};
  std::string key_beside;
  std::string reason, left_out;  // as in failed_callbacks; no `left_out`: all is left
  delivery_id payload;           // what the body is kept under
};
boost::asio::awaitable<result<std::optional<failed_material>>> read_failed_material(postgres::pool& pool, failed_callback_id id,
                                                                                    postgres::deadline until);

// What became of a failed callback that is done; nullopt: it is not, or there was never one.
struct closing_view {
  std::string action, actor, provider;
  sys_micros at{};
  std::optional<std::string> reason, disposition, request_id, state;
  delivery_id delivery;
  std::optional<delivery_id> resent_as;
};
boost::asio::awaitable<result<std::optional<closing_view>>> find_closing(postgres::pool& pool, failed_callback_id id,
                                                                         postgres::deadline until);

// Which failed callbacks are meant; nothing: all.
struct failed_filter {
  std::optional<std::string> provider, disposition, reason, event, request_id;
  std::optional<sys_micros> first_seen_after, first_seen_before;
};
boost::asio::awaitable<result<std::int64_t>> count_failed(postgres::pool& pool, failed_filter which, postgres::deadline until);
// Their IDs in the order in which they first came, behind `after`.
boost::asio::awaitable<result<std::vector<failed_callback_id>>> list_failed_ids(postgres::pool& pool, failed_filter which,
                                                                                std::optional<failed_callback_id> after,
                                                                                int limit, postgres::deadline until);

}  // namespace recibo::storage
