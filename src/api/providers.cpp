// GET /v1/providers: who may call back, by the configuration in force.
#include "handlers.hpp"

#include "recibo/storage/activity.hpp"

#include <map>
#include <string_view>
#include <utility>

namespace recibo::api {
namespace {

boost::asio::awaitable<http::response> list_providers(inside& in, call& of) {
  auto known = co_await storage::read_provider_activity(in.with.pool, of.until);
  if (!known) co_return refuse(of, known.error());
  std::map<std::string_view, const storage::provider_activity*> activity;
  for (const auto& one : *known) activity.emplace(one.provider, &one);
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& [name, p] : of.settings->providers) {
    out.begin_object().text("name", name).text("workflow", p.workflow).text("unmatched", to_string(p.unmatched));
    out.key("events").begin_object();
    for (const auto& [said, event] : p.events) out.text(said, event);
    out.end_object();
    out.number("answer_within_ms", p.answer_within.count());
    out.number("silence_alert_s", p.silence_alert ? std::optional<std::int64_t>(p.silence_alert->count()) : std::nullopt);
    if (p.expected_rate) {
      out.key("expected_rate").begin_object().number("at_least", p.expected_rate->at_least);
      out.number("within_s", p.expected_rate->within.count()).end_object();
    } else {
      out.null("expected_rate");
    }
    const bool watched = p.silence_alert || p.expected_rate;
    const auto at = activity.find(name);
    const storage::provider_activity* const heard = at == activity.end() ? nullptr : at->second;
    out.time("last_callback_at", heard ? heard->heard_at : std::nullopt);
    out.number("silent_for_s", heard ? std::optional(static_cast<std::int64_t>(heard->quiet_s)) : std::nullopt);
    const bool silent = watched && heard && heard->silent_at;
    out.flag("silent", silent);
    out.time("silent_since", silent ? heard->silent_at : std::nullopt);
    out.text("silent_reason", silent ? heard->silent_reason : std::nullopt);
    out.text("callback_path", "/callbacks/" + name);
    out.end_object();
  }
  out.end_array().null("next_cursor").end_object();
  co_return answer_json(200, std::move(out));
}

}  // namespace

void add_providers(endpoint_table& to) {
  to.schemas.emplace_back(
      "Provider",
      object({
          required("name", string()),
          required("workflow", string()),
          required("unmatched", about(one_of({"park", "reject", "register", "ignore"}), "What an unknown operation means.")),
          required("events", about(map(), "The provider's word → the workflow's event, or ignore.")),
          required("answer_within_ms", integer()),
          or_null("silence_alert_s", integer()),
          or_null("last_callback_at", about(instant(), "When one last verified, at any replica; null: never.")),
          or_null("silent_for_s", about(integer(), "Since then, or since it is configured.")),
          or_null("expected_rate", about(object({required("at_least", integer()), required("within_s", integer())}),
                                         "How many callbacks are expected in how long.")),
          required("silent", about(boolean(), "For longer than silence_alert, or below expected_rate.")),
          or_null("silent_since", about(instant(), "When it was found silent.")),
          or_null("silent_reason", about(one_of({"quiet", "below_rate"}), "Which of them; null: it is not silent.")),
          required("callback_path", about(string(), "On the callbacks listener.")),
      }));
  endpoint e;
  e.method = "GET";
  e.path = "/v1/providers";
  e.id = "listProviders";
  e.tag = "providers";
  e.summary = "The providers of the configuration in force, and when each was last heard.";
  e.answers = {{200, "All of them.", page_of("Provider"), "application/json", {}}};
  e.run = list_providers;
  to.endpoints.push_back(std::move(e));
}

}  // namespace recibo::api
