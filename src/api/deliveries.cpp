// GET /v1/deliveries: what came in, byte for byte where the token may see it (R27, R29).
#include "handlers.hpp"

#include "recibo/core/digest.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// `with_items`: lists of deliveries leave them out.
void write_delivery(json_writer& out, const storage::delivery_view& d, bool with_items = false) {
  const auto id = to_string(d.id);
  const auto path = "/v1/deliveries/" + id;
  out.begin_object();
  out.text("delivery_id", id).text("provider", d.provider).text("request_id", d.request_id).text("disposition", d.disposition);
  out.time("received_at", d.received_at)
      .text("event", d.event)
      .time("occurred_at", d.occurred_at)
      .number("sequence", d.provider_sequence);
  if (d.key) {
    out.text("key", evidence::key_text(*d.key));
  } else {
    out.null("key");
  }
  out.text("secret", d.secret)
      .text("peer", d.peer)
      .number("answer_status", d.answer_status)
      .text("body_sha256", to_hex(d.body_digest));
  // A repetition of the same bytes points to those that are kept.
  out.key("payload").begin_object().flag("available", d.payload_size.has_value()).number("size", d.payload_size);
  out.text("content_type", d.content_type).text("stored_with", to_string(d.payload)).end_object();
  out.text("trace_id", d.trace_id);
  if (d.given_up_at) out.time("given_up_at", *d.given_up_at);
  if (d.look_up) out.text("look_up_id", *d.look_up);
  if (with_items && d.items) out.raw("items", *d.items);
  out.key("_links").begin_object().text("self", path).text("payload", path + "/payload");
  if (d.operation && d.request_id) out.text("operation", evidence::operation_path(*d.request_id));
  out.end_object().end_object();
}

// permanent::not_found   no such delivery, or no ID at all
awaitable<result<storage::delivery_view>> find(inside& in, const call& of) {
  const auto missing = [] { return error(permanent::not_found, "There is no such delivery."); };
  const auto id = parse_id<delivery_id>(of.path[0]);
  if (!id) co_return missing();
  auto found = co_await storage::find_delivery(in.with.pool, *id, of.until);
  if (!found) co_return found.error();
  if (!*found) co_return missing();
  co_return std::move(**found);
}

awaitable<http::response> read_delivery(inside& in, call& of) {
  auto found = co_await find(in, of);
  if (!found) co_return refuse(of, found.error());
  json_writer out;
  write_delivery(out, *found, true);
  co_return answer_json(200, std::move(out));
}

awaitable<http::response> list_deliveries(inside& in, call& of) {
  auto cursor = read_cursor(of, 'd', 16);
  if (!cursor) co_return refuse(of, cursor.error());
  storage::delivery_query what;
  what.provider = of.query_of("provider");
  what.request_id = of.query_of("request_id");
  what.disposition = of.query_of("disposition");
  using parked = storage::delivery_query::parked;
  const auto which = of.query_of("parked");
  if (which) what.which = *which == "waiting" ? parked::waiting : parked::given_up;
  if (which && what.request_id) {
    co_return refuse(
        of, malformed("parked and request_id are not taken together: what waits for an operation is listed by its request_id"));
  }
  if (*cursor) what.after = id_at<delivery_id>(**cursor);
  for (const auto& [name, provider] : of.settings->providers) what.providers.push_back(name);
  what.limit = limit_of(of);
  auto page = co_await storage::list_deliveries(in.with.pool, std::move(what), of.until);
  if (!page) co_return refuse(of, page.error());
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& d : page->deliveries) write_delivery(out, d);
  out.end_array();
  out.text_or_null("next_cursor", page->next ? make_cursor('d', page->next->binary()) : std::string());
  out.end_object();
  co_return answer_json(200, std::move(out));
}

awaitable<http::response> read_payload(inside& in, call& of) {
  auto found = co_await find(in, of);
  if (!found) co_return refuse(of, found.error());
  if (!found->payload_size) {
    co_return refuse(of, error(permanent::not_found, "The raw body was purged; its digest and history stay."));
  }
  // On record before a byte leaves, and no byte without it (R29).
  record::payload_access access;
  if (found->operation && found->request_id) access.request_id = *found->request_id;
  access.delivery = found->id;
  access.at = now();
  access.actor = of.who.name;
  record::work work(std::move(access));
  auto recorded = co_await in.with.record(std::move(work), of.until);
  if (!recorded) co_return refuse(of, recorded.error());
  auto body = co_await storage::read_payload(in.with.pool, found->payload, of.until);
  if (!body) co_return refuse(of, body.error());
  if (!*body) co_return refuse(of, error(permanent::not_found, "The raw body was purged; its digest and history stay."));

  http::response out;
  // Bytes, whatever the sender called them: a browser must not run what a provider sent (K30).
  out.content_type = "application/octet-stream";
  out.body = std::move(**body);
  out.headers.emplace_back("Content-Disposition", "attachment; filename=\"" + to_string(found->id) + ".bin\"");
  // RFC 9530.
  out.headers.emplace_back("Repr-Digest", "sha-256=:" + to_base64(found->body_digest) + ":");
  out.headers.emplace_back("Cache-Control", "no-store");
  co_return out;
}

schema delivery_schema() {
  return object({
      required("delivery_id", text(text_rule::uuid)),
      required("provider", string()),
      or_null("request_id", about(string(), "Of its operation; else as the callback said it.")),
      required("disposition", about(string(), "What was decided when it came.")),
      required("received_at", instant()),
      or_null("event", about(string(), "The provider's word.")),
      or_null("occurred_at", instant()),
      or_null("sequence", integer()),
      or_null("key", about(string(), "The idempotency key for people: its parts joined by \" / \".")),
      required("secret", about(string(), "Name of the secret that verified it; empty for what was fetched.")),
      required("peer", about(string(), "Address of the sender; of what was fetched, the host that was asked.")),
      optional("look_up_id", about(text(text_rule::uuid), "The look-up that fetched it: nobody sent it.")),
      required("answer_status", integer()),
      required("body_sha256", about(string(), "Of the raw body, hex.")),
      required("payload",
               object({required("available", about(boolean(), "False: purged.")), or_null("size", integer()),
                       or_null("content_type", string()),
                       required("stored_with", about(text(text_rule::uuid), "The delivery that first brought these bytes."))})),
      or_null("trace_id", string()),
      optional("given_up_at", about(instant(), "It was parked, and no operation came in time (`parking.expire`).")),
      optional("items", about(list(map()), "What was decided about each item that it speaks of; in single ones only.")),
      required("_links", object({required("self", string()), required("payload", string()), optional("operation", string())})),
  });
}

endpoint reading_deliveries(std::string path, std::string id, std::string summary, handler run) {
  endpoint e;
  e.method = "GET";
  e.path = std::move(path);
  e.id = std::move(id);
  e.tag = "deliveries";
  e.summary = std::move(summary);
  e.run = run;
  return e;
}

}  // namespace

void add_deliveries(endpoint_table& to) {
  to.schemas.emplace_back("Delivery", delivery_schema());

  auto all = reading_deliveries("/v1/deliveries", "listDeliveries", "Recorded callbacks, newest first.", list_deliveries);
  all.query = paged({optional("provider", text(63)), optional("request_id", text(255)),
                     optional("disposition", one_of({"applied", "redundant", "partial", "duplicate", "stale", "parked", "review",
                                                     "conflict", "unmapped", "unprocessable"})),
                     optional("parked", about(one_of({"waiting", "given_up"}),
                                              "Those alone that wait for their operation, or that were given up."))});
  all.answers = {{200, "A page of deliveries.", page_of("Delivery"), "application/json", {}}};
  to.endpoints.push_back(std::move(all));

  auto one = reading_deliveries("/v1/deliveries/{id}", "readDelivery", "One recorded callback.", read_delivery);
  one.answers = {{200, "The delivery.", component("Delivery"), "application/json", {}}};
  to.endpoints.push_back(std::move(one));

  auto payload = reading_deliveries("/v1/deliveries/{id}/payload", "readPayload",
                                    "The raw body as it was signed. That it was looked at goes on record.", read_payload);
  payload.who.payload = true;
  payload.answers = {
      {200,
       "The bytes.",
       std::nullopt,
       "application/octet-stream",
       {required("Repr-Digest", about(string(), "SHA-256 of the body (RFC 9530).")), required("Content-Disposition", string())}}};
  to.endpoints.push_back(std::move(payload));
}

}  // namespace recibo::api
