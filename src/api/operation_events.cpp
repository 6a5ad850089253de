// POST /v1/operations/{request_id}/events: what clients and operators may do (R5, R9, R25).
#include "handlers.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/http/preconditions.hpp"

#include <charconv>
#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

constexpr std::size_t evidence_bytes_max = 64 << 10;
// The one event that may change what was registered.
constexpr std::string_view edit_event = "edit";

// The revisions that If-Match names; nullopt: any. A tag that is not of this service's making matches nothing.
result<std::optional<std::vector<std::int64_t>>> read_revisions(const call& of) {
  bool malformed = false;
  const auto condition = http::read_if_match(of.request.headers, malformed);
  if (malformed) return error(permanent::malformed_field, "If-Match: is not a list of entity tags in quotes, or *");
  std::optional<std::vector<std::int64_t>> out;
  if (!condition || condition->any) return out;
  out.emplace();
  for (const auto& tag : condition->tags) {
    std::int64_t revision = 0;
    const auto [end, failed] = std::from_chars(tag.data(), tag.data() + tag.size(), revision);
    // Revisions begin at 1 and are written without leading zeros.
    if (failed == std::errc() && end == tag.data() + tag.size() && tag.front() >= '1') out->push_back(revision);
  }
  return out;
}

result<std::string> read_evidence(const call& of) {
  const auto* given = present(of.body, "evidence");
  if (given == nullptr) return std::string();
  if (given->is(json_value::kind::string)) {
    // A sentence is evidence, too; it is kept as a document, because that is what the column holds.
    json_writer out;
    out.begin_object().text("note", given->text).end_object();
    return given->text.empty() ? std::string() : out.take();
  }
  if (!given->is(json_value::kind::object)) return error(permanent::malformed_field, "/evidence: is an object or a text");
  if (given->members.empty()) return std::string();
  auto canonical = canonical_json(*given);
  if (!canonical) return error(permanent::malformed_field, "/evidence: " + canonical.error().detail);
  if (canonical->size() > evidence_bytes_max)
    return error(permanent::malformed_field, "/evidence: has at most 65536 bytes as compact JSON");
  return canonical;
}

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
  auto key = header_of(of, "Idempotency-Key");
  if (!key) return key.error();
  if (*key) {
    if (auto checked = validate_text(text(text_rule::alias), **key, "Idempotency-Key"); !checked) return checked.error();
    e.idempotency_key = std::move(**key);
  }
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

// 409 says what may be done instead.
awaitable<http::response> refuse_illegal(inside& in, call& of, error why, std::optional<std::string> item_id) {
  auto refused = refuse(of, why, of.path[0]);
  auto found = co_await find_case(in, of);
  if (found && item_id) {
    storage::item_query what;
    what.operation = found->operation.id;
    what.item_id = std::move(item_id);
    auto items = co_await storage::list_items(in.with.pool, std::move(what), of.until);
    // What may be raised is asked of the item's state.
    if (items && !items->empty()) found->operation.state = items->front().state;
  }
  if (found) {
    json_writer state, events;
    state.text(found->operation.state);
    events.begin_array();
    for (const auto e : evidence::allowed_events(found->operation, *found->table, of.audience())) events.text(e);
    events.end_array();
    add_member(refused, "state", state.str());
    add_member(refused, "allowed_events", events.str());
  }
  co_return refused;
}

awaitable<http::response> raise_event(inside& in, call& of) {
  if (!check_request_id(of.path[0])) co_return not_found(of, "operation");
  auto event = read_event(of);
  of.body = {};
  if (!event) co_return refuse(of, event.error(), of.path[0]);
  const auto item_id = event->item_id;
  record::work work(std::move(*event));
  auto recorded = co_await in.with.record(std::move(work), of.until);
  if (!recorded) {
    if (recorded.error().code == make_error_code(permanent::illegal_transition))
      co_return co_await refuse_illegal(in, of, recorded.error(), item_id);
    co_return refuse(of, recorded.error(), of.path[0]);
  }
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
  e.headers = {
      optional("Idempotency-Key",
               about(text(text_rule::alias), "The same again is answered with the operation, and moves nothing.")),
      optional("If-Match",
               about(text(1024), "Only on a revision that was looked at: its ETag, several of them, or *; else 412.")),
  };
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
  e.answers = {{200,
                "The operation after it.",
                component("Operation"),
                "application/json",
                {required("ETag", string()), optional("Idempotent-Replayed", one_of({"true"}))}}};
  e.run = raise_event;
  to.endpoints.push_back(std::move(e));
}

}  // namespace recibo::api
