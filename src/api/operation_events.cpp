// POST /v1/operations/{request_id}/events: what clients and operators may do (R5, R9, R25).
#include "handlers.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/storage/look_ups.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// The one event that may change what was registered.
constexpr std::string_view edit_event = "edit";

// How long a retry waits for what the provider says, how often it looks, and what is left of the request's time then.
constexpr std::chrono::seconds ask_for{8}, answer_in{2};
constexpr std::chrono::milliseconds look_every{100}, look_seldom{1'000};

// `changes`: a member that is there replaces what was registered, null takes it away.
result<std::optional<record::intent_changes>> read_changes(const call& of, std::string_view event) {
  const auto* given = present(of.body, "changes");
  const bool edits = event == edit_event;
  if (given == nullptr && edits) return error(permanent::missing_field, "/changes: edit says what it changes");
  if (given == nullptr) return std::optional<record::intent_changes>();
  if (!edits) return error(permanent::malformed_field, "/changes: belong to the event edit");
  if (given->members.empty()) return error(permanent::missing_field, "/changes: says nothing");
  record::intent_changes out;
  const auto member = [&](std::string_view name) { return given->find(name); };
  const auto text_or_null = [](const json_value& v) {
    return v.is(json_value::kind::null) ? std::optional<std::string>() : std::optional(v.text);
  };
  if (const auto* v = member("action")) out.action = v->text;
  if (const auto* v = member("amount")) {
    out.amount.emplace();
    if (const auto text = text_or_null(*v)) {
      auto amount = parse_decimal(*text);
      if (!amount) return error(permanent::malformed_field, "/changes/amount: " + amount.error().detail);
      *out.amount = std::move(*amount);
    }
  }
  if (const auto* v = member("currency")) {
    out.currency.emplace();
    if (const auto text = text_or_null(*v)) {
      auto currency = parse_currency(*text);
      if (!currency) return error(permanent::malformed_field, "/changes/currency: " + currency.error().detail);
      *out.currency = std::move(*currency);
    }
  }
  if (const auto* v = member("account")) out.account = text_or_null(*v);
  if (const auto* v = member("deadline")) {
    out.deadline.emplace();
    if (const auto text = text_or_null(*v)) {
      const auto at = parse_rfc3339(*text);
      if (!at) return error(permanent::malformed_field, "/changes/deadline: " + at.error().detail);
      *out.deadline = *at;
    }
  }
  if (const auto* v = member("metadata")) {
    auto canonical = canonical_json(*v);
    if (!canonical) return error(permanent::malformed_field, "/changes/metadata: " + canonical.error().detail);
    if (canonical->size() > metadata_bytes_max)
      return error(permanent::malformed_field, "/changes/metadata: has at most 16384 bytes as compact JSON");
    out.metadata = std::move(*canonical);
  }
  return std::optional(std::move(out));
}

result<record::event> read_event(const call& of) {
  record::event e;
  e.settings = of.settings;
  e.at = now();
  e.request_id = of.path[0];
  e.client = of.who.client;
  // An operator may raise what a client may, and it is on record as the operator's.
  e.who = of.who.role == config::role::client ? transition::actor_kind::client : transition::actor_kind::operator_;
  e.actor = of.who.name;
  e.name = *text_of(of.body, "event");
  e.item_id = text_of(of.body, "item_id");
  e.reason = text_of(of.body, "reason").value_or("");
  e.trace_id = of.request.trace_id;
  if (const auto* references = present(of.body, "references")) {
    for (const auto& r : references->elements) e.references.push_back(r.text);
  }
  auto evidence = read_evidence(of);
  if (!evidence) return evidence.error();
  e.evidence = std::move(*evidence);
  auto changes = read_changes(of, e.name);
  if (!changes) return changes.error();
  e.changes = std::move(*changes);
  auto key = read_idempotency_key(of);
  if (!key) return key.error();
  e.idempotency_key = std::move(*key);
  auto revisions = read_revisions(of);
  if (!revisions) return revisions.error();
  e.if_revisions = std::move(*revisions);
  canonical asked;
  asked.add("recibo.event.1").add(e.request_id).add(e.name).add(e.reason).add(e.evidence);
  for (const auto& r : e.references) asked.add(r);
  if (const auto* given = present(of.body, "changes")) {
    const auto changes_text = canonical_json(*given);
    asked.add("changes").add(changes_text ? *changes_text : std::string());
  }
  // Nothing is added for the operation itself, so that such requests keep their fingerprint.
  if (e.item_id) asked.add("item").add(*e.item_id);
  e.fingerprint = sha256(asked.bytes());
  return e;
}

// Until the look-up ahead of a retry has ended, or for as long as there is.
awaitable<void> wait_for_provider(inside& in, std::string request_id, std::chrono::steady_clock::time_point until) {
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor);
  // Less and less often: many may wait.
  for (auto pause = look_every; std::chrono::steady_clock::now() < until; pause = std::min(2 * pause, look_seldom)) {
    const auto status = co_await storage::retry_look_up_status(in.with.pool, request_id, until);
    if (status && *status && **status != "queued" && **status != "asking") co_return;
    timer.expires_after(pause);
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
}

// Records a retry; where the provider is asked first, again once that has ended (R23).
awaitable<result<record::outcome>> record_event(inside& in, call& of, record::event event) {
  record::work first(event);
  auto recorded = co_await in.with.record(std::move(first), of.until);
  if (!recorded || recorded->detail != record::retry_asks) co_return recorded;
  const auto now = std::chrono::steady_clock::now();
  co_await wait_for_provider(in, event.request_id, std::min(now + ask_for, of.until - answer_in));
  event.asked_at = recorded->asked_at;
  // They held when it was asked. What was recorded of the answer is no move, and a move is found out all the same.
  event.if_revisions.reset();
  record::work second(std::move(event));
  co_return co_await in.with.record(std::move(second), of.until);
}

// nullopt: it was raised.
awaitable<std::optional<http::response>> refuse_retry(inside& in, call& of, std::string word,
                                                      std::optional<std::string> item_id) {
  if (word.empty()) co_return std::nullopt;
  if (word == record::retry_asks || word == record::retry_unknown) {
    const bool gave_up = word == record::retry_unknown;
    co_return refuse(of, 503, "status_unknown",
                     gave_up ? "The provider was asked before the retry and did not say what is so; nothing was raised."
                             : "The provider is being asked before the retry, and has not answered yet; nothing was raised.",
                     of.path[0]);
  }
  const bool moved = word == record::retry_overtaken;
  auto refused = refuse(of, 409, moved ? "overtaken" : "status_unclear",
                        moved ? "The operation has moved while the provider was asked; the retry was not raised."
                              : "What the provider says of the operation has to be looked at before it is retried.",
                        of.path[0]);
  auto told = co_await add_what_is_allowed(in, of, std::move(refused), of.path[0], std::move(item_id));
  co_return std::optional(std::move(told));
}

awaitable<http::response> raise_event(inside& in, call& of) {
  if (!check_request_id(of.path[0])) co_return not_found(of, "operation");
  auto event = read_event(of);
  of.body = {};
  if (!event) co_return refuse(of, event.error(), of.path[0]);
  const auto item_id = event->item_id;
  auto recorded = co_await record_event(in, of, std::move(*event));
  if (!recorded) {
    if (recorded.error().code == make_error_code(permanent::illegal_transition))
      co_return co_await refuse_illegal(in, of, recorded.error(), of.path[0], item_id);
    co_return refuse(of, recorded.error(), of.path[0]);
  }
  auto refused = co_await refuse_retry(in, of, recorded->detail, item_id);
  if (refused) co_return std::move(*refused);
  auto found = co_await find_case(in, of);
  // Recorded, but it cannot be shown: 503, and the same request with its Idempotency-Key shows it later.
  if (!found) co_return refuse(of, found.error(), of.path[0]);
  auto answer = answer_operation(of, 200, found->operation, *found->table);
  if (recorded->replayed) answer.headers.emplace_back("Idempotent-Replayed", "true");
  co_return answer;
}

}  // namespace

void add_operation_events(endpoint_table& to) {
  endpoint e;
  e.method = "POST";
  e.path = "/v1/operations/{request_id}/events";
  e.id = "raiseEvent";
  e.tag = "operations";
  e.summary = "Raises an event of the workflow, as the table allows it to clients and operators.";
  e.who.least = config::role::operator_;
  e.who.client = true;
  e.headers = conditions_of_events();
  e.body = closed_object({
      required("event", about(text(63), "One of allowed_events.")),
      optional("item_id", about(text(text_rule::alias), "The item that it is raised for; without it the operation.")),
      optional("reason", about(text(2000, text_rule::prose), "Why; on record.")),
      optional("evidence", about(any(), "An object, or a text; some events of operators need it.")),
      optional("references", about(list(text(text_rule::alias), 100), "References of the provider that are known from now on.")),
      optional("changes", about(closed_object({
                                    optional("action", text(255)),
                                    optional("amount", nullable(text(text_rule::decimal))),
                                    optional("currency", nullable(text(text_rule::currency))),
                                    optional("account", nullable(text(text_rule::alias))),
                                    optional("deadline", nullable(instant())),
                                    optional("metadata", map()),
                                }),
                                "Of the event edit alone: what was registered is another from now on; null takes a value away.")),
  });
  e.answers = {
      {200,
       "The operation after it. A `retry` asks the provider first, where it can be asked: 409 overtaken, when its answer has "
       "moved the operation, or status_unclear, when a person has to look; 503 status_unknown, when it has not answered in "
       "time.",
       component("Operation"),
       "application/json",
       {required("ETag", string()), optional("Idempotent-Replayed", one_of({"true"}))}}};
  e.run = raise_event;
  to.endpoints.push_back(std::move(e));
}

}  // namespace recibo::api
