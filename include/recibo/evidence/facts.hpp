// What each kind of audit row says, as the fact that its digest is over (R28, decision 5). The recorder writes with these
// functions and `recibo audit verify` recomputes with them from the rows, so the two cannot drift apart.
// Pure; safe from any thread. Arguments borrow and are copied into the fact. An empty text and an absent one (SQL NULL)
// are the same fact: no column of ours gives the two different meanings.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/evidence/audit_chain.hpp"
#include "recibo/transition/workflow.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::evidence {

// Values of audit.kind.
inline constexpr std::string_view kind_accept = "accept", kind_delivery = "delivery", kind_item = "item", kind_items = "items",
                                  kind_event = "event", kind_payload_access = "payload_access", kind_correction = "correction",
                                  kind_workflow = "workflow", kind_review = "review", kind_replay = "replay";
// Values of corrections.kind: a client registered what a callback had begun; an event edited what was registered.
inline constexpr std::string_view registered_intent = "registered", edited_intent = "edited";

// The actor of what runs out by itself.
inline constexpr std::string_view clock_actor = "clock";

// A move of the workflow table, as its row in `transitions` holds it.
struct moved {
  std::string_view event, from, to;
  std::int64_t version = 0;  // transitions.version
  std::string_view item_id;  // empty: the operation moved
  std::string_view result;   // transitions.result, byte for byte; empty: none
};

// An operation was accepted. The actor of the row is the client.
struct accepted {
  std::int64_t sequence = 0;  // audit.sequence, from 1
  sys_micros at{};            // audit.at
  std::string_view request_id, provider, client;
  std::int64_t workflow = 0;  // operations.workflow, the version key
  sha256_digest intent{};     // registrations.intent
  std::string_view state;     // the workflow's initial state
};
audit_fact accept_fact(const accepted& what);

// A callback was recorded for an operation. The actor of the row is the provider. `disposition` and `answer_status` are
// those of the row in `deliveries`, which is never updated: a parked callback that is applied later is a delivery fact
// with the disposition `parked` and the move it made.
struct delivered {
  std::int64_t sequence = 0;
  sys_micros at{};
  std::string_view provider;
  delivery_id delivery;
  std::string_view disposition;
  std::string_view key;  // deliveries.key; empty: none
  sha256_digest body_digest{};
  std::string_view secret;  // name of the secret that verified it
  int answer_status = 0;
  std::optional<moved> move;
  std::string_view items;             // deliveries.items, byte for byte; empty: none, and then no part of the fact
  std::optional<look_up_id> look_up;  // deliveries.look_up; none is no part of the fact
};
audit_fact delivery_fact(const delivered& what);

// A callback about items moved one of them, or, by its word on the operation itself, that. Follows the fact of its delivery;
// each such move is a fact of its own.
struct item_moved {
  std::int64_t sequence = 0;
  sys_micros at{};
  std::string_view provider;
  delivery_id delivery;
  moved move;  // item_id is empty where the operation moved
};
audit_fact item_fact(const item_moved& what);

// What the items have become moved their operation, by a rule of the workflow. `who` and `actor` are those of the fact
// that moved the item.
struct items_moved {
  std::int64_t sequence = 0;
  sys_micros at{};
  transition::actor_kind who = transition::actor_kind::provider;
  std::string_view actor;
  std::optional<delivery_id> delivery;
  moved move;
};
audit_fact items_fact(const items_moved& what);

// A client, an operator or the clock raised an event, and it moved something. `evidence` is canonical_json() of what is
// stored as jsonb: the one text that a round trip through jsonb does not change.
struct raised {
  std::int64_t sequence = 0;
  sys_micros at{};
  transition::actor_kind who = transition::actor_kind::client;
  std::string_view actor;
  moved move;
  std::string_view reason;    // empty: none
  std::string_view evidence;  // empty: none
};
audit_fact event_fact(const raised& what);

// What a client asked for when it registered: everything that makes one registration the same as another (R3), and
// nothing of when and by whom. Order of references and items, and the spelling of the amount, mean nothing.
struct intent {
  std::string_view provider, workflow;  // the workflow by its name: a new version of the table is no other intent
  std::string_view action;
  std::vector<std::string> references;
  std::string_view amount, currency, account;  // empty: none
  std::optional<sys_micros> deadline;
  std::vector<std::string> items;  // their IDs
  std::string_view metadata;       // canonical_json() of an object
};
// SHA-256 over the canonical fields, with a version: registrations.intent.
sha256_digest intent_digest(intent what);
// The same for an operation that a callback registered (`unmatched: register`): nobody asked for anything.
sha256_digest callback_intent_digest(std::string_view provider, std::string_view request_id);

// Somebody looked at a raw body (R29).
struct payload_seen {
  std::int64_t sequence = 0;
  sys_micros at{};
  std::string_view actor;
  delivery_id delivery;
};
audit_fact payload_access_fact(const payload_seen& what);

// What was registered is another from now on, as its row in `corrections` holds it: whole, not what differs.
struct corrected {
  std::int64_t sequence = 0;
  sys_micros at{};
  std::string_view actor, kind;
  std::string_view client, action, reference, amount, currency, account;  // empty: none
  std::optional<sys_micros> deadline;
  std::string_view metadata;  // canonical_json() of an object
  sha256_digest intent{};     // of the registration that stands
};
audit_fact correction_fact(const corrected& what);

// An operation went on under another version of its workflow, as its row in `workflow_changes` holds it.
struct workflow_changed {
  std::int64_t sequence = 0;
  sys_micros at{};
  std::string_view actor, reason;
  std::int64_t from_workflow = 0, to_workflow = 0;  // version keys
  std::string_view from, to;                        // states; equal where both versions have it
  std::string_view item_states;  // JSON object, old name → new, of states of items; empty: none is called otherwise
};
audit_fact workflow_fact(const workflow_changed& what);

// A review was assigned or resolved, as its row in `review_actions` holds it (R25). That it was opened is part of the
// delivery's fact.
struct reviewed {
  std::int64_t sequence = 0;
  sys_micros at{};
  std::string_view actor;
  review_id review;
  std::string_view action;                        // assigned, resolved
  std::string_view assignee, resolution, reason;  // empty: none
  std::optional<std::int64_t> transition;         // sequence of the event that was raised with it
};
audit_fact review_fact(const reviewed& what);

// A failed callback was replayed and became part of the operation (R17). The actor of the row is who replayed it; its delivery
// is on record as it was answered when it came.
struct replayed {
  std::int64_t sequence = 0;
  sys_micros at{};
  std::string_view actor;
  failed_callback_id failed;
  delivery_id delivery;
  std::string_view disposition;  // replays.disposition
  std::string_view key;          // replays.key: as the mended configuration extracts it
  sha256_digest body_digest{};
  std::string_view reason;
  std::string_view items;  // replays.items
  std::optional<moved> move;
};
audit_fact replay_fact(const replayed& what);

}  // namespace recibo::evidence
