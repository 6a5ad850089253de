// Named SQL and row mapping of reads: operations with what was registered, for API, case view and console.
// Every read is one statement, so that it shows one instant; all are bounded, and none takes a lock.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// How many items an operation shows within itself; the rest is behind the paged list of items.
inline constexpr int items_shown_max = 1000;

struct item_view {
  std::string item_id, state;
  std::int64_t version = 0, ordinal = 0;
  sys_micros updated_at{};
  std::string result;  // JSON text; empty: none
  // Why somebody has to look at it: a disposition or the kind of a review; empty: nobody has to.
  std::string attention, attention_detail, attention_delivery;
  std::optional<sys_micros> attention_at{};
};

struct item_count {
  std::string state;
  std::int64_t count = 0;
};

// One operation as it stands now.
struct operation_view {
  operation_id id;
  std::string request_id, provider, state;
  std::int64_t workflow = 0;
  std::int64_t version = 0, revision = 0;
  bool review_open = false;
  sys_micros state_at{}, updated_at{};
  std::string client, action, metadata;
  std::optional<std::string> reference, amount, currency, account;
  std::optional<sys_micros> deadline;
  // When the limit of the present state or the deadline runs out, whichever is first; nullopt: nothing does.
  std::optional<sys_micros> due_at;
  sys_micros accepted_at{};
  std::vector<std::string> references;
  std::vector<item_count> items_by_state;
  bool items_known = true;                         // false: how they stood cannot be told any more (operations_then.hpp)
  std::optional<std::int64_t> items_attention{0};  // how many of them somebody has to look at; nullopt: it cannot be told
  std::vector<item_view> items;                    // at most items_shown_max; empty in lists
  std::string result;                              // of the latest transition that has one, JSON text; empty: none
  bool called_back = false;                        // a callback is on record
  bool notified = false;                           // the latest transition had notifications, and all are delivered
  sys_micros read_at{};                            // the database's clock: what "overdue" is measured by
};

// nullopt: no such operation. Errors of the pool.
boost::asio::awaitable<result<std::optional<operation_view>>> find_operation(postgres::pool& pool, std::string request_id,
                                                                             postgres::deadline until);

// A page of the items of one operation, in the order of their registration.
struct item_query {
  operation_id operation;
  std::optional<std::string> state, item_id;
  std::optional<bool> attention;
  std::int64_t after = -1;  // ordinal
  int limit = 50;
};
boost::asio::awaitable<result<std::vector<item_view>>> list_items(postgres::pool& pool, item_query what,
                                                                  postgres::deadline until);

struct operation_query {
  std::optional<std::string> state, provider, workflow, client, reference;
  std::optional<bool> review, overdue;
  std::optional<sys_micros> accepted_after, accepted_before;
  // JSON objects that the metadata must contain, either of them; empty: any metadata.
  std::string metadata_as_text, metadata_as_value;
  // For `reference`: aliases are unique per provider, so the providers to look at.
  std::vector<std::string> providers;
  bool newest_first = true;
  std::optional<operation_id> after;  // where the page before ended
  int limit = 50;
};

struct operation_page {
  std::vector<operation_view> operations;
  // Where the next page begins; none: this was the last. A page may be shorter than the limit, even empty, and not be the
  // last: then the search used up its time there (filters on what changes have no index, decision 2).
  std::optional<operation_id> next;
};
boost::asio::awaitable<result<operation_page>> list_operations(postgres::pool& pool, operation_query what,
                                                               postgres::deadline until);

// A workflow table by its key; nullopt: not known to the database.
boost::asio::awaitable<result<std::optional<std::string>>> find_workflow_definition(postgres::pool& pool,
                                                                                    std::int64_t version_key,
                                                                                    postgres::deadline until);

struct workflow_version_view {
  std::int64_t version_key = 0;
  std::string name, definition;
  sys_micros first_used_at{};
};
// Operations of a version that are in one of `states`, in the order of their IDs, behind `after`.
struct version_member {
  operation_id id;
  std::string request_id, state;
  std::string unknown_item_state;  // one that an item of it is in and that is not among the `known`; empty: none
};
boost::asio::awaitable<result<std::vector<version_member>>> list_version_members(postgres::pool& pool, std::int64_t version_key,
                                                                                 std::vector<std::string> states,
                                                                                 std::vector<std::string> known,
                                                                                 operation_id after, int limit,
                                                                                 postgres::deadline until);
// How many operations are in which state of which version, items counted as well. Reads the whole table: for commands, on a
// session without a statement time-out.
struct state_use {
  std::string workflow, state;
  std::int64_t version_key = 0, operations = 0;
};
extern const postgres::statement count_states_in_use;
// version_key, name, definition, first_used_at.
extern const postgres::statement select_versions;
std::vector<state_use> read_states_in_use(const postgres::rows& from);

boost::asio::awaitable<result<std::vector<workflow_version_view>>> list_workflow_versions(postgres::pool& pool,
                                                                                          postgres::deadline until);

// What there is, by provider and state. Exact while the table is small; beyond that scaled up from a sample of its pages,
// so that it stays cheap however much there is.
struct operation_count {
  std::string provider, state;
  std::int64_t count = 0;
};
struct statistics {
  std::vector<operation_count> operations;
  bool exact = true;
  std::int64_t reviews_open = 0, failed_callbacks = 0, parked = 0;
  sys_micros read_at{};
};
boost::asio::awaitable<result<statistics>> read_statistics(postgres::pool& pool, postgres::deadline until);

}  // namespace recibo::storage
