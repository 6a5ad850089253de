// Operations as they stood at one of their facts, for who tells of it later: a repetition says the same, whatever has been
// recorded since (R19, decision 26). Named SQL and row mapping; one statement for all, which takes no lock.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/reads.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace recibo::storage {

// One fact of an operation: its audit row.
struct fact_name {
  operation_id operation;
  std::int32_t sequence = 0;
};

// An operation right after a fact.
struct operation_then {
  std::int32_t sequence = 0;
  // What was registered, references, workflow, items, reviews and callbacks as of then; without the single items. State,
  // version, result and their times are those of now: who has the transition puts them back. What nobody can tell any more is
  // said to be so: how many items needed attention, and how many there were in which state once states got other names
  // (items_known, items_attention). A review counts as open where it cannot be told whether it was.
  operation_view operation;
  // What a change of its workflow made of its state, where no transition came between that and the fact; nullopt: none did.
  struct renamed_state {
    std::string state;
    sys_micros at{};
  };
  std::optional<renamed_state> renamed;
};
// In any order; those that are not known are missing. Errors of the pool.
boost::asio::awaitable<result<std::vector<operation_then>>> find_operations_then(postgres::pool& pool,
                                                                                 const std::vector<fact_name>& facts,
                                                                                 postgres::deadline until);

}  // namespace recibo::storage
