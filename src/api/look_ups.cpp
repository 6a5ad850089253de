// Look-ups: POST /v1/operations/{request_id}/status-check, and catch-ups of a provider (R23, R44).
#include "handlers.hpp"

#include "recibo/storage/event_lists.hpp"
#include "recibo/storage/look_ups.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// How far back they go unless it is said.
constexpr std::chrono::hours catch_up_span{30 * 24}, event_list_span{24};

http::response no_status(const call& of, const std::string& provider) {
  return refuse(of, 409, "no_status", "The configuration does not say how " + provider + " is asked: it has no `status`.");
}

bool has_status(const call& of, const std::string& provider) {
  const auto found = of.settings->providers.find(provider);
  return found != of.settings->providers.end() && found->second.status;
}

awaitable<http::response> check_status(inside& in, call& of) {
  if (!check_request_id(of.path[0])) co_return not_found(of, "operation");
  auto found = co_await find_case(in, of);
  if (!found) co_return refuse(of, found.error(), of.path[0]);
  const auto provider = found->operation.provider;
  if (!has_status(of, provider)) co_return no_status(of, provider);
  record::look_up wanted;
  wanted.settings = of.settings;
  wanted.request_id = of.path[0];
  wanted.client = of.who.client;
  wanted.actor = of.who.name;
  record::work work(std::move(wanted));
  auto recorded = co_await in.with.record(std::move(work), of.until);
  if (!recorded) co_return refuse(of, recorded.error(), of.path[0]);
  // The one that waits, or has begun meanwhile: whichever it is, it is asked after this request came.
  const auto id = co_await storage::find_latest_look_up(in.with.pool, of.path[0], of.until);
  if (!id) co_return refuse(of, id.error(), of.path[0]);
  json_writer out;
  out.begin_object().text("look_up_id", *id ? to_string(**id) : std::string()).text("request_id", of.path[0]);
  out.text("provider", provider).end_object();
  co_return answer_json(202, std::move(out));
}

void write_catch_up(json_writer& out, const storage::catch_up_report& r) {
  out.begin_object().text("catch_up_id", to_string(r.id)).text("provider", r.provider).text("started_by", r.started_by);
  out.time("started_at", r.started_at).time("accepted_after", r.since).flag("done", r.done());
  out.number("asked", r.asked).number("open", r.open).number("answered", r.answered).number("healed", r.healed);
  out.number("review", r.review).number("failed", r.failed).end_object();
}

awaitable<http::response> answer_catch_up(inside& in, call& of, storage::catch_up_id id, int status) {
  const auto report = co_await storage::read_catch_up(in.with.pool, id, of.until);
  if (!report) co_return refuse(of, report.error());
  if (!*report) co_return not_found(of, "catch-up");
  json_writer out;
  write_catch_up(out, **report);
  co_return answer_json(status, std::move(out));
}

awaitable<http::response> start_catch_up(inside& in, call& of) {
  const auto provider = of.path[0];
  if (!of.settings->providers.contains(provider)) co_return not_found(of, "provider");
  if (!has_status(of, provider)) co_return no_status(of, provider);
  auto since = now() - catch_up_span;
  if (const auto given = text_of(of.body, "accepted_after")) {
    const auto at = parse_rfc3339(*given);
    if (!at) co_return refuse(of, error(permanent::malformed_field, "/accepted_after: " + at.error().detail));
    since = *at;
  }
  const auto id = co_await storage::start_catch_up(in.with.pool, provider, of.who.name, since, of.until);
  if (!id) co_return refuse(of, id.error());
  co_return co_await answer_catch_up(in, of, *id, 202);
}

awaitable<http::response> answer_event_list(inside& in, call& of, look_up_id id, int status) {
  const auto report = co_await storage::read_event_list(in.with.pool, id, of.until);
  if (!report) co_return refuse(of, report.error());
  if (!*report) co_return not_found(of, "event list");
  const auto& r = **report;
  json_writer out;
  out.begin_object().text("event_list_id", to_string(r.id)).text("provider", r.provider).text("started_by", r.started_by);
  out.time("started_at", r.started_at).time("since", r.since).flag("done", r.ended_at.has_value());
  out.text_or_null("reason", r.reason.value_or(""))
      .number("pages", r.pages)
      .number("events", r.events)
      .number("healed", r.healed);
  out.time("next_attempt_at", r.next_attempt_at);
  out.number("known", r.known).number("parked", r.parked).number("review", r.review).number("failed", r.failed).end_object();
  co_return answer_json(status, std::move(out));
}

awaitable<http::response> start_event_list(inside& in, call& of) {
  const auto provider = of.path[0];
  const auto configured = of.settings->providers.find(provider);
  if (configured == of.settings->providers.end()) co_return not_found(of, "provider");
  if (!configured->second.list)
    co_return refuse(of, 409, "no_list",
                     "The configuration does not say where " + provider + " lists its events: it has no `catch_up`.");
  auto since = now() - event_list_span;
  if (const auto given = text_of(of.body, "since")) {
    const auto at = parse_rfc3339(*given);
    if (!at) co_return refuse(of, error(permanent::malformed_field, "/since: " + at.error().detail));
    since = *at;
  }
  const auto id = co_await storage::start_event_list(in.with.pool, provider, of.who.name, since, of.until);
  if (!id) co_return refuse(of, id.error());
  co_return co_await answer_event_list(in, of, *id, 202);
}

awaitable<http::response> read_one_event_list(inside& in, call& of) {
  const auto id = parse_id<look_up_id>(of.path[0]);
  if (!id) co_return not_found(of, "event list");
  co_return co_await answer_event_list(in, of, *id, 200);
}

awaitable<http::response> read_one_catch_up(inside& in, call& of) {
  const auto id = parse_id<storage::catch_up_id>(of.path[0]);
  if (!id) co_return not_found(of, "catch-up");
  co_return co_await answer_catch_up(in, of, *id, 200);
}

}  // namespace

void add_look_ups(endpoint_table& to) {
  to.schemas.emplace_back(
      "CatchUp", object({
                     required("catch_up_id", text(text_rule::uuid)),
                     required("provider", string()),
                     required("started_by", string()),
                     required("started_at", instant()),
                     required("accepted_after", about(instant(), "Operations accepted since then are looked up.")),
                     required("done", about(boolean(), "Every open operation was seen, and every look-up has ended.")),
                     required("asked", about(integer(), "Operations that are looked up because of it, so far.")),
                     required("open", about(integer(), "Of these, look-ups that have not ended.")),
                     required("answered", integer()),
                     required("healed", about(integer(), "Answers that moved their operation: what never arrived.")),
                     required("review", about(integer(), "Answers, or their absence, that a person has to decide about.")),
                     required("failed", about(integer(), "Look-ups that were given up.")),
                 }));
  endpoint one;
  one.method = "POST";
  one.path = "/v1/operations/{request_id}/status-check";
  one.id = "checkStatus";
  one.tag = "operations";
  one.summary = "Asks the provider what it knows of the operation; what it says appears in the timeline.";
  one.who.least = config::role::operator_;
  one.who.client = true;
  one.answers = {
      {202,
       "The look-up that was queued, or the one that waits already. 409 no_status: the provider cannot be asked.",
       object({required("look_up_id", text(text_rule::uuid)), required("request_id", string()), required("provider", string())}),
       "application/json",
       {}}};
  one.run = check_status;
  to.endpoints.push_back(std::move(one));

  endpoint all;
  all.method = "POST";
  all.path = "/v1/providers/{provider}/catch-ups";
  all.id = "startCatchUp";
  all.tag = "providers";
  all.summary = "Looks up every open operation of a provider, at its rate; one at a time.";
  all.who.least = config::role::operator_;
  all.body =
      closed_object({optional("accepted_after", about(instant(), "Only operations accepted since then; 30 days unless said."))});
  all.answers = {{202, "The catch-up, or the one that is under way.", component("CatchUp"), "application/json", {}}};
  all.run = start_catch_up;
  to.endpoints.push_back(std::move(all));

  endpoint read;
  read.method = "GET";
  read.path = "/v1/catch-ups/{catch_up_id}";
  read.id = "readCatchUp";
  read.tag = "providers";
  read.summary = "How far a catch-up has come, and how many operations it healed.";
  read.answers = {{200, "The catch-up.", component("CatchUp"), "application/json", {}}};
  read.run = read_one_catch_up;
  to.endpoints.push_back(std::move(read));

  to.schemas.emplace_back(
      "EventList",
      object({
          required("event_list_id", text(text_rule::uuid)),
          required("provider", string()),
          required("started_by", string()),
          required("started_at", instant()),
          required("since", about(instant(), "Events since then.")),
          required("done", about(boolean(), "The last page was read, or it is given up.")),
          or_null("reason", about(string(),
                                  "Why it is given up, or what is in the way; cursor_repeated: it ended with a page that named "
                                  "itself; null: nothing.")),
          or_null("next_attempt_at", about(instant(), "When it is tried again, where something is in the way; null: at once.")),
          required("pages", about(integer(), "Pages whose events are on record.")),
          required("events", about(integer(), "Events in them.")),
          required("healed", about(integer(), "Of these, moved their operation: what never arrived.")),
          required("known", about(integer(), "Of these, said what was so already.")),
          required("parked", about(integer(), "Of these, wait for their operation.")),
          required("review", about(integer(), "Of these, a person has to decide about.")),
          required("failed", about(integer(), "Of these, could not be understood.")),
      }));
  endpoint list;
  list.method = "POST";
  list.path = "/v1/providers/{provider}/event-lists";
  list.id = "startEventList";
  list.tag = "providers";
  list.summary = "Reads the provider's own list of events for what never arrived; one reading at a time.";
  list.who.least = config::role::operator_;
  list.body = closed_object({optional("since", about(instant(), "Events since then; a day back unless said."))});
  list.answers = {{202,
                   "The reading, or the one that is under way. 409 no_list: the provider's events are not listed.",
                   component("EventList"),
                   "application/json",
                   {}}};
  list.run = start_event_list;
  to.endpoints.push_back(std::move(list));

  endpoint progress;
  progress.method = "GET";
  progress.path = "/v1/event-lists/{event_list_id}";
  progress.id = "readEventList";
  progress.tag = "providers";
  progress.summary = "How far the reading of an event list has come, and how many operations it healed.";
  progress.answers = {{200, "The reading.", component("EventList"), "application/json", {}}};
  progress.run = read_one_event_list;
  to.endpoints.push_back(std::move(progress));
}

}  // namespace recibo::api
