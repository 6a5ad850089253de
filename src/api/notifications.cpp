// GET /v1/notifications, and what people do about dead ones (R19, R20).
#include "handlers.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/storage/reads_outbox.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// How many one request replays; the answer says how many are left.
constexpr int replay_most = 10'000;

schema outbox_reason() { return about(words(2000, text_rule::prose), "Why; on record."); }

void write_notification(json_writer& out, const storage::outbox_view& v, const config::settings& settings) {
  const auto id = to_string(v.id);
  const auto to = settings.destinations.find(v.destination);
  out.text("notification_id", id)
      .text("request_id", v.request_id)
      .text("provider", v.provider)
      .text("destination", v.destination)
      .text("type", v.type);
  out.text("status", v.status).number("sequence", v.sequence).number("attempts", v.attempts);
  out.time("created_at", v.created_at).time("next_attempt_at", v.next_attempt_at).time("delivered_at", v.delivered_at);
  out.time("dead_at", v.dead_at).text("reason", v.reason).text("reason_class", v.reason_class);
  out.text_or_null("owner", to == settings.destinations.end() ? std::string() : to->second.owner);
  out.key("_links").begin_object();
  out.text("self", "/v1/notifications/" + id);
  if (v.request_id) out.text("operation", evidence::operation_path(*v.request_id));
  out.end_object();
}

void write_notification_details(json_writer& out, const storage::outbox_details& d, const config::settings& settings) {
  out.begin_object();
  write_notification(out, d.notification, settings);
  out.key("attempt_list").begin_array();
  for (const auto& a : d.attempts) {
    out.begin_object().number("attempt", a.attempt).time("at", a.at).number("duration_ms", a.duration_ms);
    out.number("answer_status", a.answer_status).text("outcome", a.outcome).text("excerpt", a.excerpt).end_object();
  }
  out.end_array().key("actions").begin_array();
  for (const auto& a : d.actions) {
    out.begin_object().text("action_id", a.action).text("kind", a.kind).text("actor", a.actor);
    out.text("reason", a.reason).time("at", a.at).end_object();
  }
  out.end_array().end_object();
}

awaitable<http::response> read_one_notification(inside& in, call& of) {
  const auto id = parse_id<notification_id>(of.path[0]);
  if (!id) co_return not_found(of, "notification");
  auto found = co_await storage::find_notification(in.with.pool, *id, of.until);
  if (!found) co_return refuse(of, found.error());
  if (!*found) co_return not_found(of, "notification");
  json_writer out;
  write_notification_details(out, **found, *of.settings);
  co_return answer_json(200, std::move(out));
}

result<std::optional<sys_micros>> read_bound(const std::optional<std::string>& text, const char* name) {
  if (!text) return std::optional<sys_micros>();
  const auto at = parse_rfc3339(*text);
  if (!at) return error(permanent::malformed_field, "/filter/" + std::string(name) + ": " + at.error().detail);
  return std::optional<sys_micros>(*at);
}

awaitable<http::response> list_outbox(inside& in, call& of) {
  auto cursor = read_cursor(of, 'n', 16);
  if (!cursor) co_return refuse(of, cursor.error());
  storage::outbox_query what;
  what.filter.status = of.query_of("status");
  what.filter.destination = of.query_of("destination");
  what.filter.type = of.query_of("type");
  what.filter.reason = of.query_of("reason");
  what.filter.reason_class = of.query_of("reason_class");
  what.filter.request_id = of.query_of("request_id");
  if (*cursor) what.after = id_at<notification_id>(**cursor);
  what.limit = limit_of(of);
  auto found = co_await storage::list_notifications(in.with.pool, std::move(what), of.until);
  if (!found) co_return refuse(of, found.error());
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& v : found->notifications) {
    out.begin_object();
    write_notification(out, v, *of.settings);
    out.end_object();
  }
  out.end_array();
  out.text_or_null("next_cursor", found->next ? make_cursor('n', found->next->binary()) : std::string());
  out.end_object();
  co_return answer_json(200, std::move(out));
}

storage::outbox_action outbox_action_of(const call& of) {
  storage::outbox_action out;
  out.id = make_id<storage::notification_action_id>(now());
  out.actor = of.who.name;
  out.reason = *text_of(of.body, "reason");
  return out;
}

storage::notification_action_id action_of(canonical all) {
  const auto digest = sha256(all.bytes());
  storage::notification_action_id out;
  std::copy_n(binary(digest).begin(), out.bytes.size(), reinterpret_cast<char*>(out.bytes.data()));
  out.bytes[6] = static_cast<std::uint8_t>((out.bytes[6] & 0x0f) | 0x80);
  out.bytes[8] = static_cast<std::uint8_t>((out.bytes[8] & 0x3f) | 0x80);
  return out;
}

// The same request of the same person under the same key about one notification is one action: its ID comes of them (version 8,
// RFC 9562). `what`: is done. nullopt: there is no key.
result<std::optional<storage::notification_action_id>> action_under_key(const call& of, std::string_view what) {
  const auto key = read_idempotency_key(of);
  if (!key) return key.error();
  if (!*key) return std::optional<storage::notification_action_id>();
  const auto body = canonical_json(of.body);
  if (!body) return body.error();
  canonical all;
  all.add(what).add(of.who.name).add(**key).add(of.path[0]).add(*body);
  return std::optional(action_of(std::move(all)));
}

bool was_done(const storage::outbox_details& to, const std::optional<storage::notification_action_id>& action) {
  const auto text = action ? to_string(*action) : std::string();
  return action && std::any_of(to.actions.begin(), to.actions.end(), [&](const auto& one) { return one.action == text; });
}

// Does one thing to one notification and shows it as it is then; 409 when its status does not allow it.
template <class Act>
awaitable<http::response> act_on_notification(inside& in, call& of, Act act, std::string_view refusal,
                                              std::optional<storage::notification_action_id> action = std::nullopt) {
  const auto id = parse_id<notification_id>(of.path[0]);
  if (!id) co_return not_found(of, "notification");
  auto why = outbox_action_of(of);
  if (action) why.id = *action;
  auto acting = act(in.with.pool, *id, std::move(why), of.until);
  const auto moved = co_await std::move(acting);
  if (!moved) co_return refuse(of, moved.error());
  auto found = co_await storage::find_notification(in.with.pool, *id, of.until);
  if (!found) co_return refuse(of, found.error());
  if (!*found) co_return not_found(of, "notification");
  // Somebody was quicker with the same request.
  const bool again = !*moved && was_done(**found, action);
  if (!*moved && !again) {
    auto refused = refuse(of, 409, "illegal_status", std::string(refusal));
    json_writer status;
    status.text((*found)->notification.status);
    add_member(refused, "status_of_notification", status.str());
    co_return refused;
  }
  json_writer out;
  write_notification_details(out, **found, *of.settings);
  auto shown = answer_json(200, std::move(out));
  if (again) shown.headers.emplace_back("Idempotent-Replayed", "true");
  co_return shown;
}

// One for a destination that is not configured would be pending for ever: nobody sends it.
awaitable<http::response> replay_one_notification(inside& in, call& of) {
  const auto action = action_under_key(of, "recibo.notification_replay.1");
  if (!action) co_return refuse(of, action.error());
  if (const auto id = parse_id<notification_id>(of.path[0])) {
    const auto found = co_await storage::find_notification(in.with.pool, *id, of.until);
    if (!found) co_return refuse(of, found.error());
    if (*found && was_done(**found, *action)) {
      json_writer out;
      write_notification_details(out, **found, *of.settings);
      auto again = answer_json(200, std::move(out));
      again.headers.emplace_back("Idempotent-Replayed", "true");
      co_return again;
    }
    // Of one that cannot be replayed that is told, wherever it would go.
    if (*found && (*found)->notification.status == "dead" &&
        !of.settings->destinations.contains((*found)->notification.destination))
      co_return refuse(of, 409, "destination_not_configured",
                       "The configuration does not name its destination any more: nobody would send it.");
  }
  auto acting = act_on_notification(in, of, storage::replay_notification, "Only a dead notification can be replayed.", *action);
  co_return co_await std::move(acting);
}

awaitable<http::response> discard_one_notification(inside& in, call& of) {
  const auto action = action_under_key(of, "recibo.notification_discard.1");
  if (!action) co_return refuse(of, action.error());
  auto acting = act_on_notification(in, of, storage::discard_notification,
                                    "It is delivered, discarded, or being sent right now, and cannot be discarded.", *action);
  co_return co_await std::move(acting);
}

// One of many under a key has its ID of who asks and the key. nullopt: there is no key.
awaitable<result<std::optional<storage::replay_begun>>> begin_under_key(inside& in, const call& of, storage::outbox_action& why) {
  const auto key = read_idempotency_key(of);
  if (!key) co_return key.error();
  if (!*key) co_return std::optional<storage::replay_begun>();
  const auto body = canonical_json(of.body);
  if (!body) co_return body.error();
  canonical all;
  all.add("recibo.notification_replays.1").add(of.who.name).add(**key);
  why.id = action_of(std::move(all));
  auto begun = co_await storage::begin_replay(in.with.pool, why.id, sha256(*body), of.until);
  if (!begun) co_return begun.error();
  if (!begun->same_body)
    co_return error(permanent::idempotency_key_reused, "this Idempotency-Key was used before for another replay");
  co_return std::optional(*begun);
}

// Counts first: what a filter would replay is known before it does. What nobody would send stays dead, and is counted apart.
awaitable<http::response> replay_many_notifications(inside& in, call& of) {
  const json_value* given = present(of.body, "filter");
  storage::outbox_filter which;
  which.destination = text_of(*given, "destination");
  which.type = text_of(*given, "type");
  which.reason = text_of(*given, "reason");
  which.reason_class = text_of(*given, "reason_class");
  which.request_id = text_of(*given, "request_id");
  for (const auto& [name, to] :
       {std::pair{"created_after", &which.created_after}, std::pair{"created_before", &which.created_before},
        std::pair{"dead_after", &which.dead_after}, std::pair{"dead_before", &which.dead_before}}) {
    const auto bound = read_bound(text_of(*given, name), name);
    if (!bound) co_return refuse(of, bound.error());
    *to = *bound;
  }
  const auto* wish = present(of.body, "dry_run");
  const bool dry = wish != nullptr && wish->boolean;
  // The same request again goes on with what the first one left, where it broke off, and takes nothing that died since.
  auto why = outbox_action_of(of);
  storage::replay_begun begun;
  if (!dry) {
    auto beginning = begin_under_key(in, of, why);
    const auto keyed = co_await std::move(beginning);
    if (!keyed) co_return refuse(of, keyed.error());
    begun = keyed->value_or(begun);
    if (*keyed && (!which.dead_before || *which.dead_before > begun.began_at)) which.dead_before = begun.began_at;
  }
  const auto groups = co_await storage::group_dead(in.with.pool, which, of.until);
  if (!groups) co_return refuse(of, groups.error());
  std::int64_t unconfigured = 0, replayed = begun.replayed, matched = replayed;
  std::set<std::string> names;
  for (const auto& group : *groups) {
    matched += group.count;
    if (of.settings->destinations.contains(group.destination)) {
      names.insert(group.destination);
    } else {
      unconfigured += group.count;
    }
  }
  for (const auto& name : names) {
    if (dry || replayed >= replay_most) break;
    which.destination = name;
    const auto most = replay_most - static_cast<int>(replayed);
    const auto moved = co_await storage::replay_dead(in.with.pool, which, why, most, of.until);
    if (!moved) co_return refuse(of, moved.error());
    replayed += *moved;
  }
  if (begun.again) {  // somebody may be at the same beside this one
    auto looking = begin_under_key(in, of, why);
    const auto now_done = co_await std::move(looking);
    if (!now_done) co_return refuse(of, now_done.error());
    if (*now_done) replayed = std::max(replayed, (*now_done)->replayed);
    matched = std::max(matched, replayed);
  }
  const auto action = to_string(why.id);
  json_writer out;
  out.begin_object().text_or_null("replay_id", dry || replayed == 0 ? std::string_view() : std::string_view(action));
  out.flag("dry_run", dry).number("matched", matched).number("replayed", replayed);
  out.number("left", std::max<std::int64_t>(0, matched - replayed - unconfigured)).number("unconfigured", unconfigured);
  out.end_object();
  auto told = answer_json(200, std::move(out));
  if (begun.again) told.headers.emplace_back("Idempotent-Replayed", "true");
  co_return told;
}

std::vector<member> notification_members() {
  return {
      required("notification_id", about(text(text_rule::uuid), "The event ID that consumers de-duplicate by; kept by a replay.")),
      or_null("request_id", about(string(), "Of the operation that it speaks of; null: it speaks of a provider.")),
      or_null("provider", about(string(), "That has gone silent, or speaks again; null: it speaks of an operation.")),
      required("destination", string()),
      required("type", string()),
      required("status", about(one_of({"pending", "delivered", "held", "dead", "discarded"}),
                               "held: an earlier one of its operation is dead.")),
      required("sequence", about(integer(), "The operation's, or the provider's, count of facts; sent as recibo-sequence.")),
      required("attempts", integer()),
      required("created_at", instant()),
      or_null("next_attempt_at", instant()),
      or_null("delivered_at", instant()),
      or_null("dead_at", instant()),
      or_null("reason", about(string(), "What became of the last attempt that failed.")),
      or_null("reason_class",
              about(string(), "theirs: the destination did not take it; ours: what we send or are configured with.")),
      or_null("owner", about(string(), "Who looks after the destination, as configured.")),
      required("_links", object({required("self", string()), optional("operation", string())})),
  };
}

schema notification_details() {
  auto members = notification_members();
  members.push_back(required("attempt_list", list(object({
                                                 required("attempt", integer()),
                                                 required("at", instant()),
                                                 required("duration_ms", integer()),
                                                 or_null("answer_status", integer()),
                                                 required("outcome", string()),
                                                 or_null("excerpt", about(string(), "The beginning of the answer, printable.")),
                                             }))));
  members.push_back(required("actions", list(object({
                                            required("action_id", text(text_rule::uuid)),
                                            required("kind", one_of({"replay", "discard"})),
                                            required("actor", string()),
                                            required("reason", string()),
                                            required("at", instant()),
                                        }))));
  return object(std::move(members));
}

endpoint notification_action(const char* path, const char* id, const char* summary, schema body, answer done, handler run) {
  endpoint e;
  e.method = "POST";
  e.path = path;
  e.id = id;
  e.tag = "notifications";
  e.summary = summary;
  e.who.least = config::role::operator_;
  e.body = std::move(body);
  e.answers = {std::move(done)};
  e.run = run;
  return e;
}

}  // namespace

void add_notifications(endpoint_table& to) {
  to.schemas.emplace_back("Notification", object(notification_members()));
  to.schemas.emplace_back("NotificationDetails", notification_details());
  endpoint all;
  all.method = "GET";
  all.path = "/v1/notifications";
  all.id = "listNotifications";
  all.tag = "notifications";
  all.summary = "What downstream is told, newest first.";
  all.query = paged({optional("status", one_of({"pending", "delivered", "held", "dead", "discarded"})),
                     optional("destination", text(63)), optional("type", text(127)), optional("reason", text(63)),
                     optional("reason_class", one_of({"theirs", "ours"})), optional("request_id", text(255))});
  all.answers = {{200, "A page of notifications.", page_of("Notification"), "application/json", {}}};
  all.run = list_outbox;
  to.endpoints.push_back(std::move(all));

  endpoint one;
  one.method = "GET";
  one.path = "/v1/notifications/{id}";
  one.id = "readNotification";
  one.tag = "notifications";
  one.summary = "One notification, with its attempts and what people did about it.";
  one.answers = {{200, "The notification.", component("NotificationDetails"), "application/json", {}}};
  one.run = read_one_notification;
  to.endpoints.push_back(std::move(one));

  const std::vector<member> done_before{optional("Idempotent-Replayed", one_of({"true"}))};
  const auto only_once = [&](endpoint e) {
    e.headers = {optional("Idempotency-Key", about(text(text_rule::alias),
                                                   "The same request again with it does nothing twice, also to what has died "
                                                   "again or was delivered since, and nothing that died later. Another "
                                                   "filter with it: 422."))};
    for (auto& a : e.answers) a.headers = done_before;
    return e;
  };
  const answer shown_after{200, "The notification after it.", component("NotificationDetails"), "application/json", {}};
  const auto only_why = closed_object({required("reason", outbox_reason())});
  to.endpoints.push_back(
      only_once(notification_action("/v1/notifications/{id}/replay", "replayNotification",
                                    "Sends a dead notification again, under the same ID; the business state is not touched.",
                                    only_why, shown_after, replay_one_notification)));
  to.endpoints.push_back(only_once(notification_action("/v1/notifications/{id}/discard", "discardNotification",
                                                       "Gives a notification up; what was held behind it goes on.", only_why,
                                                       shown_after, discard_one_notification)));
  const auto filter = closed_object({
      optional("destination", text(63)),
      optional("type", text(127)),
      optional("reason", text(63)),
      optional("reason_class", one_of({"theirs", "ours"})),
      optional("request_id", text(255)),
      optional("created_after", text(text_rule::time)),
      optional("created_before", text(text_rule::time)),
      optional("dead_after", text(text_rule::time)),
      optional("dead_before", text(text_rule::time)),
  });
  const auto many = closed_object({
      required("filter", about(filter, "Which dead ones; {}: all.")),
      optional("dry_run", about(boolean(), "Only counts.")),
      required("reason", outbox_reason()),
  });
  const auto counted = object({
      or_null("replay_id", about(string(), "On record with each of them; null: nothing was replayed.")),
      required("dry_run", boolean()),
      required("matched", integer()),
      required("replayed", integer()),
      required("left", about(integer(), "At most 10,000 are replayed by one request.")),
      required("unconfigured", about(integer(), "They stay dead: the configuration does not name their destinations any more.")),
  });
  to.endpoints.push_back(only_once(notification_action(
      "/v1/notifications/replay", "replayNotifications", "Sends dead notifications again, those that a filter names.", many,
      {200, "How many.", counted, "application/json", {}}, replay_many_notifications)));
}

}  // namespace recibo::api
