// GET /v1/destinations: how those fare who are notified; and stopping or resuming one (R19, R21).
#include "handlers.hpp"

#include "recibo/observe/log.hpp"
#include "recibo/storage/destinations.hpp"
#include "recibo/storage/reads_outbox.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

void write_destination(json_writer& out, const storage::destination_view& d, const config::settings& settings) {
  const auto configured = settings.destinations.find(d.row.name);
  out.begin_object().text("name", d.row.name);
  // Path and query of the URL may hold a token.
  out.text_or_null("origin", configured == settings.destinations.end() ? std::string() : configured->second.origin());
  out.text_or_null("owner", configured == settings.destinations.end() ? std::string() : configured->second.owner);
  out.flag("configured", configured != settings.destinations.end());
  out.text("breaker", d.row.breaker).time("breaker_since", d.row.breaker_since).time("retry_at", d.row.retry_at);
  out.flag("paused", d.row.paused_at.has_value()).time("paused_at", d.row.paused_at);
  out.text_or_null("paused_by", d.row.paused_by).text_or_null("paused_reason", d.row.paused_reason);
  out.number("pending", d.pending).number("held", d.held).number("dead", d.dead).time("oldest_pending_at", d.oldest_pending_at);
  out.number("recent_attempts", d.attempts).number("recent_delivered", d.delivered).end_object();
}

awaitable<result<std::vector<storage::destination_view>>> look_at_destinations(inside& in, call& of) {
  std::vector<std::string> names;
  for (const auto& [name, to] : of.settings->destinations) names.push_back(name);
  auto looking = storage::list_destinations(in.with.pool, std::move(names), of.until);
  co_return co_await std::move(looking);
}

awaitable<http::response> list_outbox_destinations(inside& in, call& of) {
  const auto found = co_await look_at_destinations(in, of);
  if (!found) co_return refuse(of, found.error());
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& d : *found) write_destination(out, d, *of.settings);
  out.end_array().null("next_cursor").end_object();
  co_return answer_json(200, std::move(out));
}

// After an action: the one of the path.
awaitable<http::response> show_destination(inside& in, call& of) {
  const auto found = co_await look_at_destinations(in, of);
  if (!found) co_return refuse(of, found.error());
  for (const auto& d : *found) {
    if (d.row.name != of.path[0]) continue;
    json_writer out;
    write_destination(out, d, *of.settings);
    co_return answer_json(200, std::move(out));
  }
  co_return not_found(of, "destination");
}

awaitable<http::response> pause_one(inside& in, call& of) {
  if (!of.settings->destinations.contains(of.path[0])) co_return not_found(of, "destination");
  const auto done =
      co_await storage::pause_destination(in.with.pool, of.path[0], of.who.name, *text_of(of.body, "reason"), of.until);
  if (!done) co_return refuse(of, done.error());
  log::warn("destination paused by hand",
            {{"destination", of.path[0]}, {"actor", of.who.name}, {"reason", *text_of(of.body, "reason")}});
  co_return co_await show_destination(in, of);
}

awaitable<http::response> resume_one(inside& in, call& of) {
  if (!of.settings->destinations.contains(of.path[0])) co_return not_found(of, "destination");
  const auto done = co_await storage::resume_destination(in.with.pool, of.path[0], of.until);
  if (!done) co_return refuse(of, done.error());
  if (*done) log::info("destination resumed by hand", {{"destination", of.path[0]}, {"actor", of.who.name}});
  co_return co_await show_destination(in, of);
}

schema destination_schema() {
  return object({
      required("name", string()),
      or_null("origin", about(string(), "Scheme, host and port; null: no longer configured.")),
      or_null("owner", about(string(), "Who looks after it, as configured.")),
      required("configured", boolean()),
      required("breaker", about(one_of({"closed", "open", "half_open"}), "open: nothing is sent; half_open: one is tried.")),
      or_null("breaker_since", instant()),
      or_null("retry_at", about(instant(), "When the next one is tried.")),
      required("paused", about(boolean(), "Nothing is sent until it is resumed.")),
      or_null("paused_at", instant()),
      or_null("paused_by", about(string(), "Name of the token; recibo: what the destination answered.")),
      or_null("paused_reason",
              about(string(), "gone (410), unauthorized (401, 403, 407), failing, no_valid_secret, or an operator's words.")),
      required("pending", integer()),
      required("held", integer()),
      required("dead", integer()),
      or_null("oldest_pending_at", instant()),
      required("recent_attempts", about(integer(), "In the last five minutes.")),
      required("recent_delivered", about(integer(), "Of these.")),
  });
}

}  // namespace

void add_destinations(endpoint_table& to) {
  to.schemas.emplace_back("Destination", destination_schema());
  endpoint all;
  all.method = "GET";
  all.path = "/v1/destinations";
  all.id = "listDestinations";
  all.tag = "destinations";
  all.summary = "Who is notified, and how it goes.";
  all.answers = {{200, "All of them.", page_of("Destination"), "application/json", {}}};
  all.run = list_outbox_destinations;
  to.endpoints.push_back(std::move(all));

  endpoint one;
  one.method = "POST";
  one.tag = "destinations";
  one.who.least = config::role::operator_;
  one.answers = {{200, "The destination after it.", component("Destination"), "application/json", {}}};
  one.path = "/v1/destinations/{name}/pause";
  one.id = "pauseDestination";
  one.summary = "Sends nothing more to it; what is due waits.";
  one.body = closed_object({required("reason", about(words(2000, text_rule::prose), "Why; shown while it lasts."))});
  one.run = pause_one;
  to.endpoints.push_back(one);

  one.path = "/v1/destinations/{name}/resume";
  one.id = "resumeDestination";
  one.summary = "Sends again, at once, whatever the breaker says.";
  one.body.reset();
  one.run = resume_one;
  to.endpoints.push_back(std::move(one));
}

}  // namespace recibo::api
