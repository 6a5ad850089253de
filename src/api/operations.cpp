// POST /v1/operations: accepting (R1-R4).
#include "handlers.hpp"

#include "recibo/accept/accept.hpp"
#include "recibo/config/state_limit.hpp"

#include <algorithm>
#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// The validated body and headers as what accept/ understands; the tree is not needed after it.
result<accept::request> read_request(const call& of) {
  accept::request out;
  const auto& body = of.body;
  out.client = of.who.name;
  out.trace_id = of.request.trace_id;
  out.request_id = text_of(body, "request_id");
  out.provider = *text_of(body, "provider");
  out.workflow = text_of(body, "workflow");
  out.action = text_of(body, "action").value_or("");
  out.amount = text_of(body, "amount");
  out.currency = text_of(body, "currency");
  out.account = text_of(body, "account");
  if (const auto reference = text_of(body, "reference")) out.references.push_back(*reference);
  if (const auto* more = present(body, "references")) {
    for (const auto& r : more->elements) out.references.push_back(r.text);
  }
  if (const auto deadline = text_of(body, "deadline")) {
    auto at = parse_rfc3339(*deadline);
    if (!at) return at.error();
    out.deadline = *at;
  }
  if (const auto* items = present(body, "items")) {
    for (const auto& i : items->elements) out.items.push_back(*text_of(i, "item_id"));
  }
  if (const auto* metadata = present(body, "metadata")) {
    auto canonical = canonical_json(*metadata);
    if (!canonical) return error(permanent::malformed_field, "/metadata: " + canonical.error().detail);
    if (canonical->size() > metadata_bytes_max)
      return error(permanent::malformed_field, "/metadata: has at most 16384 bytes as compact JSON");
    out.metadata = std::move(*canonical);
  }
  auto key = header_of(of, "Idempotency-Key");
  if (!key) return key.error();
  if (*key) {
    if (auto checked = validate_text(text(text_rule::alias), **key, "Idempotency-Key"); !checked) return checked.error();
    out.idempotency_key = std::move(**key);
  }
  return out;
}

// What is true of the operation as its own transaction left it.
storage::operation_view view_of(const record::registration& r, const record::outcome& recorded) {
  storage::operation_view o;
  o.id = r.id;
  o.request_id = recorded.request_id;
  o.provider = r.provider;
  o.state = recorded.state;
  o.workflow = r.workflow->version_key();
  o.version = recorded.version;
  o.revision = recorded.revision;
  o.accepted_at = r.accepted_at;
  o.state_at = o.updated_at = o.read_at = recorded.at;
  o.client = r.client;
  o.action = r.action;
  o.metadata = r.metadata;
  o.references = r.references;
  std::sort(o.references.begin(), o.references.end());  // learned at one time, they are shown by name
  if (!r.references.empty()) o.reference = r.references.front();
  if (r.amount) o.amount = r.amount->text;
  o.currency = r.currency;
  o.account = r.account;
  o.deadline = r.deadline;
  o.due_at = r.deadline;
  if (const auto* limit = config::limit_of(*r.workflow, o.state, r.provider, *r.settings);
      limit != nullptr && (!o.due_at || o.state_at + limit->after < *o.due_at)) {
    o.due_at = o.state_at + limit->after;
  }
  std::int64_t ordinal = 0;
  for (const auto& i : r.items) {
    if (ordinal == storage::items_shown_max) break;
    auto& item = o.items.emplace_back();
    item.item_id = i.item_id;
    item.state = r.workflow->initial();
    item.ordinal = ordinal++;
    item.updated_at = recorded.at;
  }
  if (!r.items.empty()) o.items_by_state.push_back({r.workflow->initial(), static_cast<std::int64_t>(r.items.size())});
  return o;
}

// 409: the present state of what stands there, for the one whose it is.
awaitable<http::response> refuse_conflict(inside& in, const call& of, error why, std::string request_id) {
  auto refused = refuse(of, why, request_id);
  auto found = co_await storage::find_operation(in.with.pool, request_id, of.until);
  if (found && *found && of.may_see((*found)->client)) {
    json_writer state, path;
    state.text((*found)->state);
    path.text(evidence::operation_path(request_id));
    add_member(refused, "state", state.str());
    add_member(refused, "operation", path.str());
  }
  co_return refused;
}

// Whether the transaction that registered it recorded nothing else, so that the answer need not be read back.
bool is_all_that_happened(const record::outcome& recorded) {
  return !recorded.replayed && recorded.version == 0 && recorded.revision == 1;
}

awaitable<http::response> accept_operation(inside& in, call& of) {
  auto wanted = read_request(of);
  of.body = {};
  if (!wanted) co_return refuse(of, wanted.error());
  auto registration = accept::make_registration(of.settings, std::move(*wanted), now());
  if (!registration) co_return refuse(of, registration.error());

  const bool given = registration->request_id_given;
  const auto request_id = registration->request_id;
  const auto kept = *registration;
  record::work work(std::move(*registration));
  auto recorded = co_await in.with.record(std::move(work), of.until);
  if (!recorded) {
    const auto& why = recorded.error();
    if (why.code == make_error_code(permanent::intent_conflict)) co_return co_await refuse_conflict(in, of, why, request_id);
    co_return refuse(of, why, given ? std::string_view(request_id) : std::string_view());
  }
  if (recorded->replayed && given && recorded->request_id != request_id) {
    const error why(permanent::idempotency_key_reused, "this Idempotency-Key was used before for another request_id");
    co_return refuse(of, why, request_id);
  }

  const int status = recorded->replayed ? 200 : 201;
  http::response answer;
  if (is_all_that_happened(*recorded)) {
    answer = answer_operation(of, status, view_of(kept, *recorded), *kept.workflow);
  } else {
    // An early callback has made something of it, or it is another request's: what is true is in the database (R1).
    auto found = co_await evidence::read_case_view(in.with.pool, in.workflows, of.settings, recorded->request_id, of.until);
    if (found && *found) {
      answer = answer_operation(of, status, (*found)->operation, *(*found)->table);
    } else if (!recorded->replayed) {
      answer = answer_operation(of, status, view_of(kept, *recorded), *kept.workflow);
    } else {
      const error away(transient::database_away, "The operation exists and cannot be read at the moment.");
      co_return refuse(of, found ? away : found.error(), recorded->request_id);
    }
  }
  answer.headers.emplace_back("Location", evidence::operation_path(recorded->request_id));
  if (recorded->replayed) answer.headers.emplace_back("Idempotent-Replayed", "true");
  co_return answer;
}

schema registration_body() {
  auto body = closed_object({
      optional("request_id",
               about(text(text_rule::request_id), "The stable identity, kept as given; a UUIDv7 is made when there is none.")),
      required("provider", about(text(63), "Name in the configuration.")),
      optional("workflow", about(text(63), "Name in the configuration; the provider's unless said.")),
      optional("action", about(text(255), "What is asked of the provider, in your words.")),
      optional("reference", about(text(text_rule::alias), "The provider's own reference, where it is known already.")),
      optional("references", about(list(text(text_rule::alias), 100), "More of them; each is unique per provider.")),
      optional("amount", about(text(text_rule::decimal), "A decimal, never a float; callbacks are held against it.")),
      optional("currency", about(text(text_rule::currency), "ISO 4217.")),
      optional("account", about(text(text_rule::alias), "Whose money it is; callbacks are held against it, byte for byte.")),
      optional("deadline", about(instant(), "When it should be done; later than this it is overdue.")),
      optional("items",
               about(list(closed_object({required("item_id", text(text_rule::alias))}), 10'000), "The items of a batch.")),
      optional("metadata", about(map(), "Your own fields, at most 16384 bytes; searchable, never interpreted.")),
  });
  body.together = {"amount", "currency"};
  return body;
}

}  // namespace

void add_operations(endpoint_table& to) {
  endpoint e;
  e.method = "POST";
  e.path = "/v1/operations";
  e.id = "acceptOperation";
  e.tag = "operations";
  e.summary = "Accepts an operation before the provider is called; repeating it is harmless.";
  e.who.least = config::role::operator_;
  e.who.client = true;
  e.headers = {optional("Idempotency-Key",
                        about(text(text_rule::alias), "Makes the request repeatable without a request_id, within the client."))};
  e.body = registration_body();
  const auto location = required("Location", string());
  const auto tag = required("ETag", about(string(), "The revision of the operation."));
  e.answers = {
      {201, "Accepted: the operation is durable.", component("Operation"), "application/json", {location, tag}},
      {200,
       "Accepted before: the operation as it stands now.",
       component("Operation"),
       "application/json",
       {location, tag, required("Idempotent-Replayed", one_of({"true"}))}},
  };
  e.run = accept_operation;
  to.endpoints.push_back(std::move(e));
}

}  // namespace recibo::api
