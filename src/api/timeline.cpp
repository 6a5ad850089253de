// GET /v1/operations/{request_id}/timeline: everything that happened, oldest first (R26).
#include "handlers.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// A case is read whole: most have a handful of facts, and this many still fit one answer.
constexpr int facts_max = 1000;

awaitable<http::response> read_timeline(inside& in, call& of) {
  auto cursor = read_cursor(of, 't', 8);
  if (!cursor) co_return refuse(of, cursor.error(), of.path[0]);
  auto found = co_await find_case(in, of);
  if (!found) co_return refuse(of, found.error(), of.path[0]);
  const auto after = *cursor ? number_at(**cursor) : 0;
  const auto limit = limit_of(of, facts_max);
  auto facts = co_await storage::read_case(in.with.pool, found->operation.id, after, limit, of.until);
  if (!facts) co_return refuse(of, facts.error(), of.path[0]);

  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& e : evidence::make_timeline(found->operation, *facts, after == 0)) evidence::write_timeline_entry(out, e);
  out.end_array();
  out.text_or_null("next_cursor", facts->more ? make_cursor('t', number_place(facts->facts.back().sequence)) : std::string());
  out.end_object();
  co_return answer_json(200, std::move(out));
}

schema entry_schema() {
  return object({
      required("at", instant()),
      required("kind", one_of({"accepted", "delivery", "transition", "notification", "status_check", "reconciliation", "review",
                               "correction", "replay", "payload_access"})),
      required("actor", about(string(), "Provider, name of an API token, clock, or recibo itself.")),
      optional("sequence", about(integer(), "Number of the audit row.")),
      optional("delivery_id", text(text_rule::uuid)),
      optional("disposition", about(nullable(string()), "Of a delivery; null where its row has been retired.")),
      optional("secret", about(nullable(string()), "Name of the secret that verified it.")),
      optional("key", nullable(string())),
      optional("answer_status", nullable(integer())),
      optional("count", about(integer(), "Repetitions beyond the hundredth, which have no row of their own.")),
      optional("event", about(nullable(string()), "Of a transition: the workflow's event; of a delivery: the provider's word.")),
      optional("from", string()),
      optional("to", string()),
      optional("version", integer()),
      optional("item_id", string()),
      optional("actor_kind", one_of({"provider", "client", "operator", "clock"})),
      optional("reason", string()),
      optional("evidence", map()),
      optional("result", map()),
      optional("notification_id", text(text_rule::uuid)),
      optional("destination", string()),
      optional("type", string()),
      optional("status", string()),
      optional("attempts", integer()),
      optional("delivered_at", nullable(instant())),
      optional("next_attempt_at", nullable(instant())),
      optional("change",
               about(one_of({"registered", "edited", "workflow"}),
                     "Of a correction: a client registered what a callback had begun, an event edited it, or it went on "
                     "under another version of its workflow.")),
      optional("action", string()),
      optional("amount", nullable(text(text_rule::decimal))),
      optional("currency", nullable(text(text_rule::currency))),
      optional("account", nullable(string())),
      optional("deadline", nullable(instant())),
      optional("review_id", text(text_rule::uuid)),
      optional("review_kind", string()),
      optional("failed_callback_id", about(text(text_rule::uuid), "Of a replay: what could not be understood when it came.")),
      optional("detail", about(string(), "Of a review: why it was opened, or what was decided.")),
      optional("owner", string()),
      optional("assignee", about(string(), "Of a review: who takes it from then on.")),
      optional("due_at", instant()),
      optional("look_up_id", about(text(text_rule::uuid), "Of a status_check; of a delivery: the look-up that fetched it.")),
      optional("cause",
               about(one_of({"request", "hint", "state", "catch_up", "retry"}), "Of a status_check: why the provider is asked.")),
      optional("times", about(integer(), "Of a status_check: how often it was asked for before it began.")),
      optional("settled_at", nullable(instant())),
      optional("requests", about(list(object({required("at", instant()), required("host", string()),
                                              required("answer_status", nullable(integer())), required("outcome", string()),
                                              required("duration_ms", integer())})),
                                 "Of a status_check: the latest twenty requests to the provider.")),
      optional("transition", about(integer(), "Of a resolved review: `sequence` of the transition that was made with it.")),
  });
}

}  // namespace

void add_timeline(endpoint_table& to) {
  to.schemas.emplace_back("TimelineEntry", entry_schema());
  endpoint e;
  e.method = "GET";
  e.path = "/v1/operations/{request_id}/timeline";
  e.id = "readTimeline";
  e.tag = "operations";
  e.summary = "Everything that happened to an operation, oldest first.";
  e.who.client = true;
  e.query = paged({}, facts_max);
  e.query.front().value.about = "How many recorded facts at most, 1000 unless said; each may give several entries.";
  e.answers = {{200, "The entries.", page_of("TimelineEntry"), "application/json", {}}};
  e.run = read_timeline;
  to.endpoints.push_back(std::move(e));
}

}  // namespace recibo::api
