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

void write_review(json_writer& out, const storage::review_view& v) {
  const auto id = to_string(v.id);
  out.begin_object();
  out.text("review_id", id)
      .text("request_id", v.request_id)
      .text("provider", v.provider)
      .text("item_id", v.item_id)
      .text("kind", v.kind)
      .text("status", v.status);
  out.text("detail", v.detail)
      .text("last_safe_state", v.state)
      .text("present_state", v.present_state)
      .text_or_null("owner", v.owner);
  out.number("count", v.count).time("opened_at", v.opened_at).time("last_seen_at", v.last_seen_at).time("due_at", v.due_at);
  out.text("assigned_to", v.assigned_to).time("resolved_at", v.resolved_at).text("resolved_by", v.resolved_by);
  out.text("resolution", v.resolution).text("reason", v.reason);
  // For a conflict both: the one that holds the key, and the one that came with other content.
  out.key("deliveries").begin_array();
  if (v.first_delivery) write_delivery(out, "first", *v.first_delivery, v.first_digest.value_or(""), v.first_body_digest);
  write_delivery(out, "opened_by", v.delivery, v.digest, v.body_digest);
  out.end_array();
  out.key("_links")
      .begin_object()
      .text("self", "/v1/reviews/" + id)
      .text("operation", evidence::operation_path(v.request_id))
      .end_object();
  out.end_object();
}

awaitable<http::response> read_review(inside& in, call& of) {
  const auto id = parse_id<review_id>(of.path[0]);
  if (!id) co_return not_found(of, "review");
  auto found = co_await storage::find_review(in.with.pool, *id, of.until);
  if (!found) co_return refuse(of, found.error());
  if (!*found) co_return not_found(of, "review");
  json_writer out;
  write_review(out, **found);
  co_return answer_json(200, std::move(out));
}

awaitable<http::response> list_reviews(inside& in, call& of) {
  auto cursor = read_cursor(of, 'r', 16);
  if (!cursor) co_return refuse(of, cursor.error());
  const auto limit = limit_of(of);
  storage::review_query what;
  what.status = of.query_of("status");
  what.provider = of.query_of("provider");
  what.request_id = of.query_of("request_id");
  if (*cursor) what.after = id_at<review_id>(**cursor);
  what.limit = limit + 1;
  auto reviews = co_await storage::list_reviews(in.with.pool, std::move(what), of.until);
  if (!reviews) co_return refuse(of, reviews.error());
  const bool more = reviews->size() > static_cast<std::size_t>(limit);
  if (more) reviews->pop_back();
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& v : *reviews) write_review(out, v);
  out.end_array();
  out.text_or_null("next_cursor", more ? make_cursor('r', reviews->back().id.binary()) : std::string());
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
  return object({
      required("review_id", text(text_rule::uuid)),
      required("request_id", string()),
      required("provider", string()),
      required("kind", about(string(),
                             "contradiction, conflict, amount_mismatch, currency_mismatch, alias_taken, "
                             "identity_mismatch, unknown_item.")),
      or_null("item_id", about(string(), "The item that it is about; null: the operation.")),
      required("status", one_of({"open", "resolved"})),
      required("detail", string()),
      required("last_safe_state", string()),
      required("present_state", string()),
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
      required("deliveries", list(delivery)),
      required("_links", object({required("self", string()), required("operation", string())})),
  });
}

}  // namespace

void add_reviews(endpoint_table& to) {
  to.schemas.emplace_back("Review", review_schema());
  endpoint all;
  all.method = "GET";
  all.path = "/v1/reviews";
  all.id = "listReviews";
  all.tag = "reviews";
  all.summary = "Exceptions that a person has to decide, newest first.";
  all.query = paged(
      {optional("status", one_of({"open", "resolved"})), optional("provider", text(63)), optional("request_id", text(255))});
  all.answers = {{200, "A page of reviews.", page_of("Review"), "application/json", {}}};
  all.run = list_reviews;
  to.endpoints.push_back(std::move(all));

  endpoint one;
  one.method = "GET";
  one.path = "/v1/reviews/{id}";
  one.id = "readReview";
  one.tag = "reviews";
  one.summary = "One exception, with the deliveries that it is about.";
  one.answers = {{200, "The review.", component("Review"), "application/json", {}}};
  one.run = read_review;
  to.endpoints.push_back(std::move(one));
}

}  // namespace recibo::api
