// Reads for the verification of the evidence: everything in pages, out of one snapshot, so that millions of rows work in
// bounded memory. Named SQL and row mapping; what the rows must satisfy is judged in evidence/.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/connection.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

struct verify_operation {
  operation_id id;
  std::string request_id, provider, state;
  std::int64_t workflow = 0, version = 0, sequence = 0;
  sha256_digest chain_hash{};
  bool review_open = false, has_open_review = false;
  // Of the registration; `registered` is false where there is none.
  bool registered = false;
  std::string client, action, metadata;
  std::optional<std::string> reference, amount, currency, account;
  std::optional<sys_micros> deadline;
  sha256_digest intent{};
  struct alias {
    std::string name;
    sys_micros learned_at{};
  };
  std::vector<alias> aliases;
  std::int64_t items = 0;
  std::int64_t first_workflow = 0;  // the version under which it was accepted
  std::int64_t corrected = 0;       // sequence of the latest correction; 0: none
};

struct verify_correction {
  std::string kind, actor, client, action, reference, amount, currency, account, metadata;
  sys_micros at{};
  std::optional<sys_micros> deadline;
  sha256_digest intent{};
};

struct verify_workflow_change {
  std::int64_t from_workflow = 0, to_workflow = 0;
  std::string from, to, actor, reason;
  sys_micros at{};
  std::string item_states;  // JSON object; empty: no item's state got another name
};

struct verify_fact {
  operation_id operation;
  std::int64_t sequence = 0;
  std::string kind, actor;
  sys_micros at{};
  std::optional<delivery_id> delivery;
  sha256_digest digest{}, hash{};
  // Of the delivery that the row names; false where there is none.
  bool has_delivery = false;
  std::string provider, disposition, key, secret, delivery_items;
  std::optional<look_up_id> delivery_look_up;
  sha256_digest body_digest{};
  std::int64_t answer_status = 0;
  std::optional<operation_id> delivery_operation;
  sys_micros received_at{};
  delivery_id payload;
  bool has_payload = false;
  sha256_digest payload_digest{};         // recomputed from the stored bytes
  std::optional<delivery_id> key_holder;  // of the claim on its key
  // Of the operation: keys of deliveries up to this one may have expired. nullopt: none has.
  std::optional<delivery_id> keys_swept_through;
  bool first_reviewed = false;  // a review says which delivery it contradicts
  // Of the transition with the same sequence; false where there is none.
  bool has_transition = false;
  std::int64_t version = 0, notifications = 0;
  std::string item_id, event, from, to, actor_kind, transition_actor, reason, evidence, result;
  sys_micros transition_at{};
  std::optional<delivery_id> transition_delivery;
  // Outbox rows with the same sequence, and how many of them have a type that does not belong to the fact.
  std::int64_t outbox_rows = 0, outbox_strangers = 0;
  bool access_recorded = false;  // a row of payload_accesses says the same
  // Of the correction with the same sequence; nullopt where there is none.
  std::optional<verify_correction> corrected;
  // Of the change of the workflow with the same sequence; nullopt where there is none.
  std::optional<verify_workflow_change> workflow_changed;
  // Of the row of review_actions with the same sequence; nullopt: there is none.
  std::optional<review_id> review;
  std::string action, assignee, resolution, review_reason, review_actor;
  sys_micros review_at{};
  std::optional<std::int64_t> caused;       // sequence of the transition that was made with it
  std::optional<std::string> caused_actor;  // its actor; nullopt: there is no such transition
  std::int64_t review_notifications = 0;
  // Of the row of replays with the same sequence; nullopt: there is none.
  std::optional<failed_callback_id> failed;
  std::string replay_disposition, replay_key, replay_reason, replay_items;
  std::optional<delivery_id> replay_key_holder;  // of the claim on that key
  bool replay_agrees = false;                    // time, actor and delivery are those of the audit row
  bool review_agrees = false;                    // the review is of this operation and, where it was resolved, says the same
};

struct verify_item {
  std::string item_id, state;
  std::int64_t version = 0;
};

struct verify_workflow {
  std::int64_t version_key = 0;
  sha256_digest digest{};
  std::string name, definition;
};

// Something that is not as it must be, found by the database itself.
struct finding {
  std::optional<std::string> request_id;  // of the operation, where it has one
  std::optional<operation_id> operation;
  std::string what;
};

// A question about whole tables.
struct whole_check {
  std::string_view rule;
  const postgres::statement* sql;
};
std::span<const whole_check> whole_checks();

// Rows below these IDs have been retired with their month; what points to them is not broken.
struct horizon {
  delivery_id deliveries, payloads;
};

class verify_reader {
 public:
  // `on` outlives it and has no statement time-out. Statements fail with the errors of postgres::to_error.
  explicit verify_reader(postgres::connection& on) : on_(on) {}

  // Begins the snapshot that all reads below see.
  boost::asio::awaitable<result<void>> begin();
  boost::asio::awaitable<result<void>> end();

  boost::asio::awaitable<result<horizon>> oldest();
  boost::asio::awaitable<result<std::vector<verify_workflow>>> workflows();
  boost::asio::awaitable<result<std::optional<operation_id>>> find(std::string request_id);
  // Operations behind `after`, in the order of their IDs; with `only`, that one.
  boost::asio::awaitable<result<std::vector<verify_operation>>> operations(operation_id after, int limit);
  boost::asio::awaitable<result<std::vector<verify_operation>>> one(operation_id only);
  // Audit rows behind (operation, sequence), up to those of `last`.
  boost::asio::awaitable<result<std::vector<verify_fact>>> facts(operation_id operation, std::int64_t sequence, operation_id last,
                                                                 int limit);
  boost::asio::awaitable<result<std::vector<verify_item>>> items(operation_id operation);
  // What belongs to operations from `first` to `last` and has no audit row, or claims a key wrongly.
  boost::asio::awaitable<result<std::vector<finding>>> strays(operation_id first, operation_id last, delivery_id oldest_delivery);
  // At most a thousand findings.
  boost::asio::awaitable<result<std::vector<finding>>> whole(const whole_check& which, const horizon& oldest,
                                                             std::int64_t lease_grace_s);

 private:
  boost::asio::awaitable<result<postgres::rows>> query(const postgres::statement& what, postgres::parameters with);

  postgres::connection& on_;
};

}  // namespace recibo::storage
