// GET /v1/failed-callbacks: authentic callbacks that could not be understood (R17, R37).
#include "handlers.hpp"

#include "recibo/core/digest.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

void write_failed(json_writer& out, const storage::failed_view& f) {
  const auto id = to_string(f.id);
  const auto delivery = "/v1/deliveries/" + to_string(f.delivery);
  out.begin_object();
  out.text("failed_callback_id", id)
      .text("provider", f.provider)
      .text("disposition", f.disposition)
      .text("reason", f.reason)
      .text("detail", f.detail);
  out.text("delivery_id", to_string(f.delivery))
      .text("body_sha256", to_hex(f.body_digest))
      .text("request_id", f.request_id)
      .text("event", f.event);
  out.number("answer_status", f.answer_status)
      .number("count", f.count)
      .time("first_seen_at", f.first_seen_at)
      .time("last_seen_at", f.last_seen_at)
      .number("attempts", f.attempts)
      .time("last_attempt_at", f.last_attempt_at);
  out.key("_links")
      .begin_object()
      .text("self", "/v1/failed-callbacks/" + id)
      .text("delivery", delivery)
      .text("payload", delivery + "/payload")
      .text("replay", "/v1/failed-callbacks/" + id + "/replay")
      .text("discard", "/v1/failed-callbacks/" + id + "/discard")
      .end_object();
  out.end_object();
}

awaitable<http::response> read_failed(inside& in, call& of) {
  const auto id = parse_id<failed_callback_id>(of.path[0]);
  if (!id) co_return not_found(of, "failed callback");
  auto found = co_await storage::find_failed_callback(in.with.pool, *id, of.until);
  if (!found) co_return refuse(of, found.error());
  if (!*found) co_return not_found(of, "failed callback");
  json_writer out;
  write_failed(out, **found);
  co_return answer_json(200, std::move(out));
}

awaitable<http::response> list_failed(inside& in, call& of) {
  auto cursor = read_cursor(of, 'f', 16);
  if (!cursor) co_return refuse(of, cursor.error());
  storage::failed_query what;
  what.provider = of.query_of("provider");
  what.disposition = of.query_of("disposition");
  what.reason = of.query_of("reason");
  what.event = of.query_of("event");
  if (*cursor) what.after = id_at<failed_callback_id>(**cursor);
  what.limit = limit_of(of);
  auto failed = co_await storage::list_failed_callbacks(in.with.pool, std::move(what), of.until);
  if (!failed) co_return refuse(of, failed.error());
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& f : failed->failed) write_failed(out, f);
  out.end_array();
  out.text_or_null("next_cursor", failed->next ? make_cursor('f', failed->next->binary()) : std::string());
  out.end_object();
  co_return answer_json(200, std::move(out));
}

schema failed_schema() {
  return object({
      required("failed_callback_id", text(text_rule::uuid)),
      required("provider", string()),
      required("disposition", one_of({"unprocessable", "unmapped"})),
      required("reason",
               about(string(),
                     "The stable word: malformed_json, missing_field, unmapped, …; of the last replay, where there was one.")),
      required("detail", about(string(), "What is wrong, without payload.")),
      required("delivery_id", text(text_rule::uuid)),
      required("body_sha256", string()),
      or_null("request_id", about(string(), "Where it could be extracted.")),
      or_null("event", about(string(), "The provider's word, where it could be extracted.")),
      required("answer_status", integer()),
      required("count", about(integer(), "How often these bytes came.")),
      required("first_seen_at", instant()),
      required("last_seen_at", instant()),
      required("attempts", about(integer(), "How often it was replayed and could still not be understood.")),
      or_null("last_attempt_at", instant()),
      required("_links", object({required("self", string()), required("delivery", string()), required("payload", string()),
                                 required("replay", string()), required("discard", string())})),
  });
}

}  // namespace

void add_failed_callbacks(endpoint_table& to) {
  to.schemas.emplace_back("FailedCallback", failed_schema());
  endpoint all;
  all.method = "GET";
  all.path = "/v1/failed-callbacks";
  all.id = "listFailedCallbacks";
  all.tag = "failed-callbacks";
  all.summary = "Authentic callbacks that could not be understood, newest first.";
  all.query = paged({optional("provider", text(63)), optional("disposition", one_of({"unprocessable", "unmapped"})),
                     optional("reason", text(63)), optional("event", text(255))});
  all.answers = {{200, "A page of failed callbacks.", page_of("FailedCallback"), "application/json", {}}};
  all.run = list_failed;
  to.endpoints.push_back(std::move(all));

  endpoint one;
  one.method = "GET";
  one.path = "/v1/failed-callbacks/{id}";
  one.id = "readFailedCallback";
  one.tag = "failed-callbacks";
  one.summary = "One callback that could not be understood.";
  one.answers = {{200, "The failed callback.", component("FailedCallback"), "application/json", {}}};
  one.run = read_failed;
  to.endpoints.push_back(std::move(one));
}

}  // namespace recibo::api
