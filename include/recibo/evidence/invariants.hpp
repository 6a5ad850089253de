// Holds the database against the invariants of contract section 7, as far as rows can tell: claims (2), transitions
// through the workflow table (3), audit and outbox rows of each transition (4), the hash chain recomputed from the rows
// that it is about (5), leases (6), and that whatever one row names exists. Shared by `recibo audit verify` and by tests.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/postgres/connection.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace recibo::evidence {

struct violation {
  std::string request_id;  // of the operation; its ID where it has none; empty: of none
  std::string rule;        // claims, transitions, outbox, chain, registration, deliveries, payloads, references, workflows,
                           // leases, parked, failed, reviews
  std::string what;        // one line, without payload
};

struct verify_options {
  std::optional<std::string> request_id;  // only this operation
  // A lease may be over, and a parked callback's operation be there, that long before they count as forgotten.
  std::chrono::seconds lease_grace{60};
  int operations_per_page = 200;
  int facts_per_page = 2'000;
};

struct verify_report {
  bool found = true;  // false: there is no operation of that request ID
  std::int64_t operations = 0, facts = 0, violations = 0;
  // Facts about deliveries whose month has been retired: only their place in the chain can be checked.
  std::int64_t retired = 0;
};

// Reads everything in pages out of one snapshot; memory is that of a page and of one operation's items. `tell` is called
// for each violation, in the order they are found. `on` has no statement time-out, and no transaction open.
// Errors of the database; nothing is known then.
boost::asio::awaitable<result<verify_report>> verify_evidence(postgres::connection& on, verify_options how,
                                                              std::function<void(const violation&)> tell);

}  // namespace recibo::evidence
