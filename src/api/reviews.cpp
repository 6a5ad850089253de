// GET /v1/reviews: what waits for a person (R25).
#include "handlers.hpp"

#include "recibo/core/digest.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

void write_delivery(json_writer& out, std::string_view role, const delivery_id& id, const std::string& content,
                    const std::optional<std::string>& body) {
  const auto path = "/v1/deliveries/" + to_string(id);
  out.begin_object().text("role", role).text("delivery_id", to_string(id)).text("content_sha256", to_hex(content));
  out.text("body_sha256", body ? std::optional(to_hex(*body)) : std::nullopt);
  out.key("_links").begin_object().text("self", path).text("payload", path + "/payload").end_object();
  out.end_object();
}

void write_actions(json_writer& out, const std::vector<storage::review_action_view>& actions) {
  out.key("actions").begin_array();
  for (const auto& a : actions) {
    out.begin_object().text("action", a.action).time("at", a.at).text("actor", a.actor).text("assignee", a.assignee);
    out.text("resolution", a.resolution).text("reason", a.reason).text("event", a.event);
    out.number("transition", a.transition).end_object();
  }
  out.end_array();
}

// `table` is the operation's; nullptr: it has none. `actions` is nullptr in lists.
void write_review(json_writer& out, const storage::review_view& v, const transition::workflow* table,
                  const std::vector<storage::review_action_view>* actions) {
  const auto id = to_string(v.id);
  const bool open = v.status == "open";
  out.begin_object();
  out.text("review_id", id)
      .text("request_id", v.request_id)
      .text("provider", v.provider)
      .text("item_id", v.item_id)
      .text("kind", v.kind)
      .text("status", v.status);
  out.text("detail", v.detail)
      .text_or_null("last_safe_state", v.state)
      .text_or_null("present_state", v.present_state)
      .text_or_null("owner", v.owner);
  out.number("count", v.count).time("opened_at", v.opened_at).time("last_seen_at", v.last_seen_at).time("due_at", v.due_at);
  out.text("assigned_to", v.assigned_to).time("resolved_at", v.resolved_at).text("resolved_by", v.resolved_by);
  out.text("resolution", v.resolution).text("reason", v.reason);
  out.flag("overdue", open && v.due_at && *v.due_at < now());
  out.key("permitted_actions").begin_array();
  if (open) out.text("assign").text("resolve");
  out.end_array();
  out.key("allowed_events").begin_array();
  if (open && table != nullptr && !v.item_id) {  // an event moves the operation
    storage::operation_view o;
    o.state = v.present_state;
    for (const auto e : evidence::allowed_events(o, *table, evidence::audience::operators)) out.text(e);
  }
  out.end_array();
  if (actions != nullptr) write_actions(out, *actions);
  // For a conflict both: the one that holds the key, and the one that came with other content.
  out.key("deliveries").begin_array();
  if (v.first_delivery) write_delivery(out, "first", *v.first_delivery, v.first_digest.value_or(""), v.first_body_digest);
  if (!v.delivery.is_nil()) write_delivery(out, "opened_by", v.delivery, v.digest, v.body_digest);
  out.end_array();
  out.key("_links")
      .begin_object()
      .text("self", "/v1/reviews/" + id)
      .text("operation", v.workflow ? std::optional(evidence::operation_path(*v.request_id)) : std::nullopt);
  if (open) out.text("assign", "/v1/reviews/" + id + "/assign").text("resolve", "/v1/reviews/" + id + "/resolve");
  out.end_object();
  out.end_object();
}

// The table of the review's operation; nullptr where it has none.
awaitable<result<evidence::workflow_ptr>> table_of(inside& in, call& of, const storage::review_view& v) {
  if (!v.workflow) co_return evidence::workflow_ptr();
  co_return co_await in.workflows.get(in.with.pool, of.settings, *v.workflow, of.until);
}

awaitable<http::response> read_review(inside& in, call& of) {
  const auto id = parse_id<review_id>(of.path[0]);
  if (!id) co_return not_found(of, "review");
  co_return co_await answer_review(in, of, *id);
}

awaitable<http::response> list_reviews(inside& in, call& of) {
  auto cursor = read_cursor(of, 'r', 16);
  if (!cursor) co_return refuse(of, cursor.error());
  storage::review_query what;
  what.status = of.query_of("status");
  what.provider = of.query_of("provider");
  what.request_id = of.query_of("request_id");
  what.owner = of.query_of("owner");
  what.assigned_to = of.query_of("assigned_to");
  if (const auto overdue = of.query_of("overdue")) what.overdue = *overdue == "true";
  if (*cursor) what.after = id_at<review_id>(**cursor);
  what.limit = limit_of(of);
  auto reviews = co_await storage::list_reviews(in.with.pool, std::move(what), of.until);
  if (!reviews) co_return refuse(of, reviews.error());
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& v : reviews->reviews) {
    auto table = co_await table_of(in, of, v);
    if (!table) co_return refuse(of, table.error());
    write_review(out, v, table->get(), nullptr);
  }
  out.end_array();
  out.text_or_null("next_cursor", reviews->next ? make_cursor('r', reviews->next->binary()) : std::string());
  out.end_object();
  co_return answer_json(200, std::move(out));
}

schema review_schema() {
  const auto delivery = object({
      required("role", about(one_of({"first", "opened_by"}), "first: it holds the key; opened_by: what does not fit.")),
      required("delivery_id", text(text_rule::uuid)),
      required("content_sha256",
               about(string(), "Over the extracted fields, or the body: what \"same content\" means for the provider.")),
      or_null("body_sha256", about(string(), "Of the raw body; null where the delivery has been retired.")),
      required("_links", object({required("self", string()), required("payload", string())})),
  });
  const auto action = object({
      required("action", about(one_of({"opened", "assigned", "reminded", "resolved"}),
                               "opened: by the clock; reminded: its age limit has passed, told once.")),
      required("at", instant()),
      required("actor", about(string(), "Name of an API token; clock for what ran out, recibo for what it does by itself.")),
      or_null("assignee", string()),
      or_null("resolution", string()),
      or_null("reason", string()),
      or_null("event", about(string(), "What was raised with it.")),
      or_null("transition", about(integer(), "`sequence` of that transition in the timeline.")),
  });
  return object({
      required("review_id", text(text_rule::uuid)),
      or_null("request_id", about(string(), "Of the operation; of a parked callback, as it says itself.")),
      required("provider", string()),
      required("kind", about(string(),
                             "contradiction, conflict, amount_mismatch, currency_mismatch, account_mismatch, alias_taken, "
                             "identity_mismatch, unknown_item, ambiguity, parked_age, overdue, look_up.")),
      or_null("item_id", about(string(), "The item that it is about; null: the operation.")),
      required("status", one_of({"open", "resolved"})),
      required("detail", string()),
      or_null("last_safe_state", about(string(), "State of the operation when it was opened; null where there is none yet.")),
      or_null("present_state", string()),
      or_null("owner", string()),
      required("count", about(integer(), "How often the same was seen.")),
      required("opened_at", instant()),
      required("last_seen_at", instant()),
      or_null("due_at", instant()),
      or_null("assigned_to", string()),
      or_null("resolved_at", instant()),
      or_null("resolved_by", string()),
      or_null("resolution", string()),
      or_null("reason", string()),
      required("overdue", about(boolean(), "Open, and due_at has passed.")),
      required("permitted_actions", list(one_of({"assign", "resolve"}))),
      required("allowed_events", about(list(string()), "What may be raised with the resolution, now.")),
      optional("actions", about(list(action), "What was done about it, oldest first; not in lists.")),
      required("deliveries", about(list(delivery), "What it is about; none where the clock opened it.")),
      required("_links", object({required("self", string()), or_null("operation", string()), optional("assign", string()),
                                 optional("resolve", string())})),
  });
}

}  // namespace

awaitable<http::response> answer_review(inside& in, call& of, review_id id) {
  auto found = co_await storage::find_review(in.with.pool, id, of.until);
  if (!found) co_return refuse(of, found.error());
  if (!*found) co_return not_found(of, "review");
  auto table = co_await table_of(in, of, **found);
  if (!table) co_return refuse(of, table.error());
  auto actions = co_await storage::list_review_actions(in.with.pool, id, of.until);
  if (!actions) co_return refuse(of, actions.error());
  json_writer out;
  write_review(out, **found, table->get(), &*actions);
  auto answer = answer_json(200, std::move(out));
  // Everything about a review is a fact of its operation: If-Match with this tag misses nothing.
  if ((*found)->workflow) answer.headers.emplace_back("ETag", '"' + std::to_string((*found)->revision) + '"');
  co_return answer;
}

void add_reviews(endpoint_table& to) {
  to.schemas.emplace_back("Review", review_schema());
  endpoint all;
  all.method = "GET";
  all.path = "/v1/reviews";
  all.id = "listReviews";
  all.tag = "reviews";
  all.summary = "Exceptions that a person has to decide, newest first.";
  all.query = paged({optional("status", one_of({"open", "resolved"})), optional("provider", text(63)),
                     optional("request_id", text(255)), optional("owner", text(255)), optional("assigned_to", text(255)),
                     optional("overdue", about(one_of({"true", "false"}), "Open, and due_at has passed."))});
  all.answers = {{200, "A page of reviews.", page_of("Review"), "application/json", {}}};
  all.run = list_reviews;
  to.endpoints.push_back(std::move(all));

  endpoint one;
  one.method = "GET";
  one.path = "/v1/reviews/{id}";
  one.id = "readReview";
  one.tag = "reviews";
  one.summary = "One exception, with the deliveries that it is about.";
  one.answers = {{200, "The review.", component("Review"), "application/json", {optional("ETag", string())}}};
  one.run = read_review;
  to.endpoints.push_back(std::move(one));
}

}  // namespace recibo::api
