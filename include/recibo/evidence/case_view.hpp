// One case as people and programs see it: what is true now, what happened, what may be done (R26, R45). API, console,
// terminal and notifications print what is decided here, so that they all say the same.
// Pure, but for read_case_view(): rows, table and settings are arguments. Safe from any thread.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/evidence/workflow_library.hpp"
#include "recibo/storage/reads.hpp"
#include "recibo/storage/reads_evidence.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::evidence {

// Who looks: that decides which events are shown as allowed.
enum class audience {
  client,     // the service that registered it: a client's events
  operators,  // everybody else: what clients and operators may raise
};

// What an operation is judged with: its own workflow version, and its provider's own limits where it is configured.
struct judged_by {
  const transition::workflow& table;
  const config::settings& settings;
};

// Not terminal, and its deadline or the limit of its state has passed: as its timers say, which outages put off (R44).
bool is_overdue(const storage::operation_view& o, const judged_by& by);

// The events that may be raised now, in the order of the table.
std::vector<std::string_view> allowed_events(const storage::operation_view& o, const transition::workflow& table, audience who);

// Whether the same thing may be asked of the provider again, as a new operation, in words that a customer may hear.
struct retry_advice {
  bool safe = false;
  std::string_view why;
};
retry_advice retry_safe(const storage::operation_view& o, const transition::workflow& table);

// The last stage that is complete: accepted, received (a callback is on record, nothing moved), transitioned, notified
// (every destination has the latest transition).
std::string_view last_stage(const storage::operation_view& o);

// The operation as contract section 5 names its fields. Lists leave the items out.
void write_operation(json_writer& out, const storage::operation_view& o, const judged_by& by, audience who,
                     bool with_items = true);
void write_item(json_writer& out, const storage::item_view& item, const transition::workflow& table, audience who);
// The customer-safe words alone (role `support`).
void write_status(json_writer& out, const storage::operation_view& o, const transition::workflow& table);

// "/v1/operations/<request_id>", percent-encoded.
std::string operation_path(std::string_view request_id);

// The parts of a composite key, joined by " / ": for people, never for comparing. Bytes that are no such key come as hex.
std::string key_text(std::string_view key);

// One thing that happened. What does not belong to its kind is empty.
struct timeline_entry {
  enum class kind {
    accepted,
    delivery,
    transition,
    notification,
    review,
    replay,
    payload_access,
    correction,
    status_check,
  };

  sys_micros at{};
  kind what = kind::accepted;
  std::string actor;
  std::int64_t sequence = 0;  // of the audit row; 0: none
  // delivery, and what came of one
  std::optional<delivery_id> delivery;
  std::string disposition, secret, key, provider_event;
  std::optional<std::int64_t> answer_status;
  std::int64_t count = 0;  // repetitions that have no row of their own
  std::string failed;      // replay: the failed callback
  std::string look_up;     // delivery: the look-up that fetched it
  // transition
  std::string event, from, to, item_id, actor_kind, reason, evidence, result;
  std::int64_t version = 0;
  // correction: registered or edited, and what is registered from then on
  std::string change, action;
  std::optional<std::string> amount, currency, account;
  std::optional<sys_micros> deadline;
  // notification, review
  std::string id, destination, type, status, detail;
  std::string owner, assignee;         // review: who has to act; who takes it from now on
  std::optional<std::int64_t> caused;  // review: sequence of the transition that was made with it
  std::optional<sys_micros> due_at;    // review
  std::int64_t attempts = 0;
  std::optional<sys_micros> delivered_at, next_attempt_at;
  // status_check: why it was asked for and how often before it began, when it ended, and each request as JSON
  std::string cause, requests;
  std::int64_t times = 0;
  std::optional<sys_micros> settled_at;
};
std::string_view to_string(timeline_entry::kind k) noexcept;

// Everything in `facts`, oldest first. `first` and `last` say whether it is the beginning and the end of the case: reviews
// fall into the page of their time.
std::vector<timeline_entry> make_timeline(const storage::operation_view& o, const storage::case_facts& facts, bool first);
void write_timeline_entry(json_writer& out, const timeline_entry& e);

// One case for a terminal; lines end in LF. Foreign text cannot move the terminal (K30).
std::string draw_case(const storage::operation_view& o, const judged_by& by, const std::vector<timeline_entry>& timeline,
                      bool complete);

// An operation with the table it is judged by; nullopt: no such operation. Errors of the pool.
struct found_case {
  storage::operation_view operation;
  workflow_ptr table;
};
boost::asio::awaitable<result<std::optional<found_case>>> read_case_view(postgres::pool& pool, workflow_library& library,
                                                                         std::shared_ptr<const config::settings> settings,
                                                                         std::string request_id, postgres::deadline until);

}  // namespace recibo::evidence
