// POST /v1/failed-callbacks/{id}/replay and …/discard, and /v1/failed-callbacks/replay for many (R17, R37).
#include "handlers.hpp"

#include "recibo/receive/replay.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// Of one request about many; more in further steps.
constexpr std::int64_t step_max = 1000, step_usual = 200;

receive::replay_parts parts_of(inside& in, const call& of) { return {in.with.pool, of.settings, in.with.record}; }

// Words of these endpoints for what is done, and for what is gone (R31).
http::response refuse_replay(const call& of, const error& why) {
  if (why.code == make_error_code(permanent::already_resolved)) return refuse(of, 409, "already_closed", why.detail);
  if (why.code == make_error_code(permanent::check_failed)) return refuse(of, 410, "payload_purged", why.detail);
  if (why.code == make_error_code(permanent::illegal_transition)) return refuse(of, 409, "not_replayable", why.detail);
  return refuse(of, why);
}

receive::replay_order read_order(const call& of) {
  receive::replay_order order;
  order.actor = of.who.name;
  order.reason = text_of(of.body, "reason").value_or("");
  const auto* dry = present(of.body, "dry_run");
  order.dry_run = dry != nullptr && dry->boolean;
  return order;
}

awaitable<http::response> replay_one(inside& in, call& of) {
  const auto id = parse_id<failed_callback_id>(of.path[0]);
  if (!id) co_return not_found(of, "failed callback");
  auto order = read_order(of);
  const bool dry_run = order.dry_run;
  of.body = {};
  const auto with = parts_of(in, of);
  auto done = co_await receive::replay_failed(with, *id, std::move(order), of.until);
  if (!done) co_return refuse_replay(of, done.error());
  const auto& what = done->outcome;
  json_writer out;
  out.begin_object().text("failed_callback_id", to_string(*id)).text("delivery_id", to_string(what.delivery));
  out.flag("dry_run", dry_run).text("disposition", done->word).flag("closed", done->closed);
  out.text_or_null("request_id", what.request_id).text_or_null("state", what.state).text_or_null("detail", what.detail);
  if (!what.items.empty()) out.key("items").raw(what.items);
  if (!what.parts.empty()) {
    out.key("events").begin_array();
    for (const auto& one : what.parts) {
      const auto word = one.replayed ? transition::disposition::duplicate : one.disposition;
      out.begin_object().text("disposition", to_string(word)).text_or_null("request_id", one.request_id);
      out.text_or_null("state", one.state).text_or_null("detail", one.detail);
      if (!one.items.empty()) out.key("items").raw(one.items);
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
  auto answer = answer_json(200, std::move(out));
  if (done->repeated) answer.headers.emplace_back("Idempotent-Replayed", "true");
  co_return answer;
}

result<storage::failed_filter> read_filter(const json_value& body) {
  storage::failed_filter which;
  const auto* filter = present(body, "filter");
  if (filter == nullptr) return which;
  which.provider = text_of(*filter, "provider");
  which.disposition = text_of(*filter, "disposition");
  which.reason = text_of(*filter, "reason");
  which.event = text_of(*filter, "event");
  which.request_id = text_of(*filter, "request_id");
  for (const auto& [name, at] :
       {std::pair("first_seen_after", &which.first_seen_after), std::pair("first_seen_before", &which.first_seen_before)}) {
    const auto given = text_of(*filter, name);
    if (!given) continue;
    const auto read = parse_rfc3339(*given);
    if (!read) return error(permanent::malformed_field, "/filter/" + std::string(name) + ": " + read.error().detail);
    *at = *read;
  }
  return which;
}

awaitable<http::response> replay_many(inside& in, call& of) {
  auto which = read_filter(of.body);
  if (!which) co_return refuse(of, which.error());
  auto order = read_order(of);
  const bool dry_run = order.dry_run;
  std::optional<failed_callback_id> after;
  if (const auto cursor = text_of(of.body, "cursor")) {
    const auto place = place_of(*cursor, 'y', 16);
    if (!place) co_return refuse(of, place.error());
    after = id_at<failed_callback_id>(*place);
  }
  auto limit = step_usual;
  if (const auto* given = present(of.body, "limit")) limit = std::stoll(given->text);
  of.body = {};
  const auto with = parts_of(in, of);
  auto step = co_await receive::replay_many(with, std::move(*which), after, static_cast<int>(limit), std::move(order), of.until);
  if (!step) co_return refuse(of, step.error());
  json_writer out;
  out.begin_object().number("matched", step->matched).flag("dry_run", dry_run).number("taken", step->taken);
  out.number("closed", step->closed).key("by_disposition").begin_object();
  for (const auto& [word, count] : step->by_word) out.number(word, count);
  out.end_object();
  out.text_or_null("next_cursor", step->next ? make_cursor('y', step->next->binary()) : std::string());
  out.end_object();
  co_return answer_json(200, std::move(out));
}

awaitable<http::response> discard_one(inside& in, call& of) {
  const auto id = parse_id<failed_callback_id>(of.path[0]);
  if (!id) co_return not_found(of, "failed callback");
  auto reason = *text_of(of.body, "reason");
  of.body = {};
  const auto with = parts_of(in, of);
  auto done = co_await receive::discard_failed(with, *id, of.who.name, std::move(reason), of.until);
  if (!done) co_return refuse_replay(of, done.error());
  json_writer out;
  out.begin_object().text("failed_callback_id", to_string(*id)).flag("discarded", true).end_object();
  auto answer = answer_json(200, std::move(out));
  if (!*done) answer.headers.emplace_back("Idempotent-Replayed", "true");
  co_return answer;
}

member dry_run_member() { return optional("dry_run", about(boolean(), "Says what would happen; nothing of it stays.")); }
member reason_member() { return required("reason", about(words(2000, text_rule::prose), "Why; on record.")); }

endpoint action(std::string path, std::string id, std::string summary, handler run) {
  endpoint e;
  e.method = "POST";
  e.path = std::move(path);
  e.id = std::move(id);
  e.tag = "failed-callbacks";
  e.summary = std::move(summary);
  e.who.least = config::role::operator_;
  e.run = run;
  return e;
}

const std::vector<member> replayed_before{optional("Idempotent-Replayed", one_of({"true"}))};

}  // namespace

void add_failed_callback_actions(endpoint_table& to) {
  auto one = action("/v1/failed-callbacks/{id}/replay", "replayFailedCallback",
                    "Takes it through extraction and the recorder again, with the configuration of now.", replay_one);
  one.body = closed_object({reason_member(), dry_run_member()});
  one.answers = {{200, "What became of it; where it was replayed before, what became of it then.",
                  object({
                      required("failed_callback_id", text(text_rule::uuid)),
                      required("delivery_id", about(text(text_rule::uuid), "The delivery that holds what was decided.")),
                      required("dry_run", boolean()),
                      required("disposition", string()),
                      required("closed", about(boolean(), "It is done, and no failed callback any more.")),
                      or_null("request_id", string()),
                      or_null("state", about(string(), "Of the operation, after it.")),
                      or_null("detail", about(string(), "What is still wrong with it.")),
                      optional("items", about(list(map()), "What was decided about each item that it speaks of.")),
                      optional("events", about(list(map()), "Of a request with many events: what became of each that was left.")),
                  }),
                  "application/json", replayed_before}};
  to.endpoints.push_back(std::move(one));

  auto many =
      action("/v1/failed-callbacks/replay", "replayFailedCallbacks",
             "The same for all that a filter meets, in the order in which they came and in steps: count them with dry_run first.",
             replay_many);
  many.body = closed_object({
      required("filter", closed_object({
                             optional("provider", text(63)),
                             optional("disposition", one_of({"unprocessable", "unmapped"})),
                             optional("reason", text(63)),
                             optional("event", text(255)),
                             optional("request_id", text(255)),
                             optional("first_seen_after", text(text_rule::time)),
                             optional("first_seen_before", text(text_rule::time)),
                         })),
      reason_member(),
      dry_run_member(),
      optional("limit", about(integer(1, step_max), "How many in this step at most; 200 unless said.")),
      optional("cursor", about(text(255), "next_cursor of the step before.")),
  });
  many.answers = {{200,
                   "What became of those of this step.",
                   object({
                       required("matched", about(integer(), "How many the filter meets now.")),
                       required("dry_run", boolean()),
                       required("taken", about(integer(), "How many this step took.")),
                       required("closed", integer()),
                       required("by_disposition", about(map(), "How many came to what; errors by their code.")),
                       or_null("next_cursor", about(string(), "For the next step; null: that was all.")),
                   }),
                   "application/json",
                   {}}};
  to.endpoints.push_back(std::move(many));

  auto away = action("/v1/failed-callbacks/{id}/discard", "discardFailedCallback",
                     "Gives it up, on record; its delivery and body stay.", discard_one);
  away.body = closed_object({reason_member()});
  away.answers = {{200, "It is done.",
                   object({required("failed_callback_id", text(text_rule::uuid)), required("discarded", boolean())}),
                   "application/json", replayed_before}};
  to.endpoints.push_back(std::move(away));
}

}  // namespace recibo::api
