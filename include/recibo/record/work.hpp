// What may change state, as values: everything passes record(work) (decision 8).
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/core/money.hpp"
#include "recibo/transition/decide.hpp"
#include "recibo/transition/disposition.hpp"
#include "recibo/transition/timer.hpp"

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace recibo::record {

// Elements of one request about items, at most: as many as an operation may have.
inline constexpr std::size_t items_in_callback_max = 10'000;

// What a callback says of one item (R7).
struct item_news {
  std::string item_id;    // empty: it could not be read
  std::string event_raw;  // the provider's word
  std::string event;      // the workflow's event, or "ignore"; empty: not in the map
  std::optional<sys_micros> occurred_at;
  std::optional<std::int64_t> sequence;
  std::string result;  // as callback::result, of the item
  // Why it cannot be understood; the other elements are not the worse for it.
  std::optional<error> unprocessable;

  bool understood() const noexcept { return !unprocessable && !event.empty(); }
  friend bool operator==(const item_news& a, const item_news& b) {
    return a.item_id == b.item_id && a.event == b.event && a.occurred_at == b.occurred_at && a.sequence == b.sequence &&
           a.result == b.result;
  }
};

// A failed callback that somebody replays: its delivery is on record already, and what is decided about it now is that
// person's fact (R17).
struct replay {
  failed_callback_id failed;
  std::string actor, reason;
  bool dry_run = false;  // decided and taken back: the outcome says what would happen
  bool met = false;      // it was parked by the replay, and its operation has come
  // Of a request with many events: which of them this is, and how many there are as extraction reads it now.
  std::optional<std::size_t> part;
  std::size_t parts = 0;
  // The event has no delivery of its own yet: it is put on record under the callback's ID, as what it was when it came.
  bool new_delivery = false;
  delivery_id payload;  // what that delivery's body is kept under
  // Only these elements of its list of items are decided: the rest of the callback was.
  std::vector<std::size_t> items;
};

// The event of a callback of a provider with `mode: hint`; no workflow can have one of this name.
inline constexpr std::string_view hint_event = "(hint)";

// One attempt of a look-up, as it was claimed: who holds it may settle it (R23).
struct look_up_attempt {
  look_up_id id;
  std::array<std::uint8_t, 16> holder{};  // the fence of its lease
  std::int32_t number = 0;                // from 1
  std::string host;                       // that was asked
  std::optional<int> answer_status;
  std::chrono::milliseconds duration{};
  std::string outcome;  // "answered", or the word for why it is given up
};

// A verified callback, extracted, or what a provider answered to a look-up. Owns all it names.
struct callback {
  std::shared_ptr<const config::settings> settings;  // keeps `provider` alive
  const config::provider* provider = nullptr;
  delivery_id id;
  sys_micros received_at{};
  std::string peer, trace_id;
  std::string secret_name;

  // The raw body, and its digest.
  std::string body, content_type;
  sha256_digest body_digest{};

  // Set when the callback cannot be understood (malformed_json, missing_field, malformed_field, …): it goes to the
  // failed-callbacks queue; what could be extracted all the same is below.
  std::optional<error> unprocessable;
  // Of what cannot be understood: query and headers as JSON, without what authenticates, for a replay.
  std::string head;
  // nullptr: it was received just now.
  std::shared_ptr<const record::replay> replay;
  // Set where it stood in the provider's list of events: what was on record under its key is a duplicate, whatever fields the
  // list leaves out.
  std::optional<look_up_id> listed;
  // Set where it is what a look-up came to; then `request_id` is the operation's own, and `unprocessable` opens a review.
  std::shared_ptr<const look_up_attempt> looked_up;

  // What was extracted; empty where it was absent or not configured.
  std::string request_id;
  std::vector<std::string> references;
  // References that stand outside what authenticates the callback: they must not be another operation's, and nothing is
  // learned of them.
  std::vector<std::string> unproven_references;
  // Set where the callback URL is of one operation and the callback names another: nothing of it is applied.
  std::optional<std::string> named_instead;
  std::string key;        // canonical bytes of the composite key (length-prefixed fields), never empty for a good callback
  std::string key_text;   // the same for people: parts joined by " / "
  std::string event_raw;  // the provider's word
  std::string event;      // the workflow's event; empty: not in the map (unmapped), or only items are spoken of
  std::vector<item_news> items;
  std::optional<sys_micros> occurred_at;
  std::optional<std::int64_t> sequence;
  std::optional<decimal> amount;
  std::optional<std::string> currency;
  std::optional<std::string> account;
  std::string result;  // JSON object of the allow-listed fields, canonical; empty: none configured
  // Over the extracted fields, or over the body (`content: bytes`).
  sha256_digest content_digest{};
  // Set where the signature does not cover the key (`unsigned: accept`): over what it does cover, and over those parts of
  // the key that stand there. Within its operation it names the callback as the key does, so that signed bytes sent
  // again under another key are the same callback.
  std::optional<sha256_digest> signed_digest;
  // What was added to that: those parts of the key, in canonical bytes, so that other signed contents of the same bytes can
  // be told by it too.
  std::string signed_parts;
  // SHA-256 over what names it and stands outside the body: the operation of its callback URL, identities, signed parts of the
  // key; empty: nothing. The same body with another one of these is another callback, also where it cannot be understood.
  std::string key_beside;
  // Of a key with parts that are not signed: these, and what of `key` stands before, between and behind them; canonical bytes.
  std::string unsigned_key;
  std::vector<std::string> key_frame;
  // Its place among the events of its request, from 0; nullopt: the request is one event.
  std::optional<std::size_t> part;

  // Otherwise it goes to the failed callbacks. What speaks of items alone has no word for the operation.
  bool understood() const noexcept { return !unprocessable && (!event.empty() || (!items.empty() && event_raw.empty())); }
  bool is_hint() const noexcept { return event == hint_event; }
};

struct registered_item {
  std::string item_id;
};

// An operation to accept (R1-R4).
struct registration {
  std::shared_ptr<const config::settings> settings;
  operation_id id;
  sys_micros accepted_at{};
  std::string request_id;  // given, or generated by the caller of record()
  bool request_id_given = false;
  std::string client;  // name of the API token: the tenant
  std::string provider;
  std::shared_ptr<const transition::workflow> workflow;
  std::string action;
  std::vector<std::string> references;
  std::optional<decimal> amount;
  std::optional<std::string> currency;
  std::optional<std::string> account;
  std::optional<sys_micros> deadline;
  std::string metadata = "{}";  // canonical JSON object
  std::vector<registered_item> items;
  std::optional<std::string> idempotency_key;
  // Set where a callback registers it (`unmatched: register`): then nobody asked for anything, and what the callback says of the
  // money stands until a client registers it.
  std::optional<delivery_id> delivery;
  // Over every meaningful field but the time: same identity and same fingerprint is the same registration.
  sha256_digest intent{};
  std::string trace_id;
};

// What an event `edit` changes of what was registered (R5). Outer nullopt: it stays; inner: it is taken away.
struct intent_changes {
  std::optional<std::string> action;
  std::optional<std::optional<decimal>> amount;  // with the currency, or neither
  std::optional<std::optional<std::string>> currency;
  std::optional<std::optional<std::string>> account;
  std::optional<std::optional<sys_micros>> deadline;
  std::optional<std::string> metadata;  // canonical JSON object
};

// An event by a client, an operator or the clock (POST …/events).
struct event {
  std::shared_ptr<const config::settings> settings;
  sys_micros at{};
  std::string request_id;
  std::optional<std::string> client;  // set for role `client`: only its own operations exist for it
  transition::actor_kind who = transition::actor_kind::client;
  std::string actor;  // name of the token
  std::string name;
  std::optional<std::string> item_id;
  std::string reason;
  std::string evidence;                   // JSON object; empty: none
  std::vector<std::string> references;    // learned with the event (`submitted` with the provider's reference)
  std::optional<intent_changes> changes;  // of the event `edit` alone
  std::optional<std::string> idempotency_key;
  std::optional<std::vector<std::int64_t>> if_revisions;  // If-Match: one of these; none of them fits an empty list
  sha256_digest fingerprint{};
  std::string trace_id;
  // Of a `retry` that was told to ask the provider first: outcome::asked_at of that.
  std::optional<std::int32_t> asked_at;
};

// The event that repeats what may have happened: where the provider can be asked, it is asked first (R23).
inline constexpr std::string_view retry_event = "retry";
// In outcome::detail of such an event that was not raised; empty: it was. Decided under the operation's lock.
inline constexpr std::string_view retry_asks = "asks",  // a look-up has been asked for: hand it in again once that has ended
    retry_overtaken = "overtaken",                      // the operation has moved since
    retry_unclear = "unclear",                          // what the provider says needs a person
    retry_unknown = "unknown";                          // the provider did not say

// Somebody looked at a payload (R29): an audit row, and nothing else.
struct payload_access {
  std::string request_id;  // of the delivery's operation; empty: none, then a service-wide record
  delivery_id delivery;
  sys_micros at{};
  std::string actor;
};

// Applies what is parked although its operation exists: the backstop behind registration and alias learning (R11).
struct rematch {
  std::shared_ptr<const config::settings> settings;
  std::string request_id;
};

// Puts an operation under another version of its workflow (decision 7): by command only.
struct workflow_change {
  std::shared_ptr<const config::settings> settings;
  std::string request_id;
  std::shared_ptr<const transition::workflow> to;
  // State of the version that it leaves → state of the one it gets; a state that is not there keeps its name.
  std::map<std::string, std::string, std::less<>> states;
  std::string actor, reason;
};
// Somebody takes a review, or resolves it, with or without an event that moves the operation (R25).
struct review_action {
  std::shared_ptr<const config::settings> settings;
  sys_micros at{};
  review_id review;
  std::string request_id;  // of the review's operation; empty: it has none
  std::string actor;       // name of the token
  bool resolves = false;   // else it assigns
  std::string assignee;
  std::string resolution, reason;
  std::string event;     // raised as an operator; empty: nothing moves
  std::string evidence;  // of the event: JSON object; empty: none
  std::optional<std::string> idempotency_key;
  std::optional<std::vector<std::int64_t>> if_revisions;  // of the operation, as event's
  sha256_digest fingerprint{};
};

// A parked callback has waited too long: a person should know (R11, R25). Does nothing when it has gone, or was reviewed before.
struct parked_review {
  std::shared_ptr<const config::settings> settings;
  delivery_id parked;
};

// A timer of an operation has run out (R22): raises its event. Does nothing when it was acted on before, when the state that it
// was for is over, or when no replica is ready to take callbacks; puts it off when an outage stood in between (R44).
struct timer_due {
  std::shared_ptr<const config::settings> settings;
  std::string request_id;
  transition::timer_kind kind = transition::timer_kind::limit;
};

// The age limit of a review has passed: somebody is reminded, once (R25). Does nothing when it is resolved, or was told before.
struct review_due {
  std::shared_ptr<const config::settings> settings;
  review_id review;
  std::string request_id;  // of the review's operation; empty: it has none
};

// What the clock raised, in outcome::detail; empty: nothing.
inline constexpr std::string_view timer_fired = "fired", timer_reviewed = "reviewed", timer_put_off = "put_off",
                                  review_reminded = "reminded";

// Somebody wants the provider to be asked about an operation (R23).
struct look_up {
  std::shared_ptr<const config::settings> settings;
  std::string request_id;
  std::optional<std::string> client;  // set for role `client`: only its own operations exist for it
  std::string actor;                  // name of the token
};

// A failed callback is given up (R17); its delivery stays.
struct discard {
  failed_callback_id failed;
  std::string provider;
  sha256_digest body_digest{};
  std::string key_beside;
  std::string actor, reason;
};

// What came of it, read back from rows that its own transaction committed or read under the lock.
struct outcome {
  // For callbacks: the disposition of the answer body (for a duplicate, the first's), and whether this was a replay.
  transition::disposition disposition = transition::disposition::applied;
  bool replayed = false;
  delivery_id delivery;    // of the first for a replay
  std::string request_id;  // empty: not known
  std::string state;       // after this work; empty: no operation
  // For callbacks: status and literal body as decided and stored; body empty optional: the contract's JSON.
  int status = 200;
  std::optional<std::string> body;
  std::string items;   // JSON array: what was decided about each item; empty: it spoke of none
  std::string detail;  // for unprocessable and conflict: the reason, safe to show
  // For several events of one request: what came of each, in order; the members above then say what they come to.
  std::vector<outcome> parts;
  // For registrations and events.
  std::int64_t version = 0, revision = 0;
  std::int32_t asked_at = 0;  // of retry_asks
  // When it was decided: the time of the rows that it made.
  sys_micros at{};
};

// Several events of one request, for different operations (R41): each has its own key and disposition, all of them are
// recorded before the one answer. Those whose operation is known are decided in one transaction, and put back together when
// one of these operations is busy; those that have to be parked are parked in one transaction before.
struct callback_group {
  std::vector<callback> parts;  // in the order of the request; without bodies
  std::string body, content_type;
  // What is decided already, by part: parked, and committed.
  std::vector<std::optional<outcome>> settled;
  // The delivery that the body is kept under, once there is one.
  std::optional<delivery_id> payload;
};

// Events of one request at most.
inline constexpr std::size_t events_in_request_max = 1'000;

using work = std::variant<callback, callback_group, registration, event, payload_access, rematch, workflow_change, review_action,
                          parked_review, timer_due, review_due, discard, look_up>;

}  // namespace recibo::record
