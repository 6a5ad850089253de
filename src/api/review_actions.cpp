// POST /v1/reviews/{id}/assign and …/resolve: what people do about an exception (R25). Each is an event with an actor, on
// record for good; the row of the review only says where things stand.
#include "handlers.hpp"

#include "recibo/core/digest.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// What both have in common; the rest of the body is read by the caller.
result<record::review_action> read_action(const call& of, review_id id) {
  record::review_action a;
  a.settings = of.settings;
  a.at = now();
  a.review = id;
  a.actor = of.who.name;
  a.reason = text_of(of.body, "reason").value_or("");
  auto key = read_idempotency_key(of);
  if (!key) return key.error();
  a.idempotency_key = std::move(*key);
  auto revisions = read_revisions(of);
  if (!revisions) return revisions.error();
  a.if_revisions = std::move(*revisions);
  return a;
}

void take_fingerprint(record::review_action& a) {
  canonical asked;
  asked.add("recibo.review.1").add(a.review.binary()).add(a.assignee).add(a.resolution).add(a.reason).add(a.event);
  asked.add(a.evidence);
  a.fingerprint = sha256(asked.bytes());
}

awaitable<http::response> act(inside& in, call& of, record::review_action a) {
  const auto id = a.review;
  auto found = co_await storage::find_review(in.with.pool, id, of.until);
  if (!found) co_return refuse(of, found.error());
  if (!*found) co_return not_found(of, "review");
  // Which operation a review belongs to never changes.
  std::string request_id;
  if ((*found)->workflow) request_id = (*found)->request_id.value_or("");
  a.request_id = request_id;
  record::work work(std::move(a));
  auto recorded = co_await in.with.record(std::move(work), of.until);
  if (!recorded) {
    if (recorded.error().code == make_error_code(permanent::illegal_transition) && !request_id.empty())
      co_return co_await refuse_illegal(in, of, recorded.error(), std::move(request_id));
    co_return refuse(of, recorded.error(), request_id);
  }
  auto answer = co_await answer_review(in, of, id);
  if (recorded->replayed && answer.status == 200) answer.headers.emplace_back("Idempotent-Replayed", "true");
  co_return answer;
}

awaitable<http::response> assign(inside& in, call& of) {
  const auto id = parse_id<review_id>(of.path[0]);
  if (!id) co_return not_found(of, "review");
  auto a = read_action(of, *id);
  if (!a) co_return refuse(of, a.error());
  a->assignee = *text_of(of.body, "assignee");
  of.body = {};
  take_fingerprint(*a);
  co_return co_await act(in, of, std::move(*a));
}

awaitable<http::response> resolve(inside& in, call& of) {
  const auto id = parse_id<review_id>(of.path[0]);
  if (!id) co_return not_found(of, "review");
  auto a = read_action(of, *id);
  if (!a) co_return refuse(of, a.error());
  auto evidence = read_evidence(of);
  if (!evidence) co_return refuse(of, evidence.error());
  a->resolves = true;
  a->resolution = *text_of(of.body, "resolution");
  a->event = text_of(of.body, "event").value_or("");
  if (a->event == "edit")
    co_return refuse(of, error(permanent::malformed_field, "/event: edit is raised with its changes, at the operation's events"));
  a->evidence = std::move(*evidence);
  of.body = {};
  take_fingerprint(*a);
  co_return co_await act(in, of, std::move(*a));
}

endpoint action(std::string path, std::string id, std::string summary, std::string answered, handler run) {
  endpoint e;
  e.method = "POST";
  e.path = std::move(path);
  e.id = std::move(id);
  e.tag = "reviews";
  e.summary = std::move(summary);
  e.who.least = config::role::operator_;
  e.headers = conditions_of_events();
  e.answers = {{200,
                std::move(answered),
                component("Review"),
                "application/json",
                {optional("ETag", string()), optional("Idempotent-Replayed", one_of({"true"}))}}};
  e.run = run;
  return e;
}

}  // namespace

void add_review_actions(endpoint_table& to) {
  auto take = action("/v1/reviews/{id}/assign", "assignReview", "Says who takes an exception; on record.",
                     "The review; nothing is recorded where it is assigned so already.", assign);
  take.body = closed_object({
      required("assignee", about(words(255), "Who takes it.")),
      optional("reason", about(text(2000, text_rule::prose), "Why; on record.")),
  });
  to.endpoints.push_back(std::move(take));

  auto close = action("/v1/reviews/{id}/resolve", "resolveReview",
                      "Decides an exception, for good; where an event is given, it moves the operation in the same transaction.",
                      "The review; the same said again by the same is answered so too, and changes nothing.", resolve);
  close.body = closed_object({
      required("resolution", about(words(255), "What was decided, in a word or a line.")),
      required("reason", about(words(2000, text_rule::prose), "Why; on record.")),
      optional("event", about(text(63), "One of allowed_events; raised as an operator.")),
      optional("evidence", about(any(), "Of the event: an object, or a text; some events need it.")),
  });
  to.endpoints.push_back(std::move(close));
}

}  // namespace recibo::api
