#include "recibo/receive/endpoint.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/config/takes_unsigned_key.hpp"
#include "recibo/core/utf8.hpp"
#include "recibo/http/problem.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/receive/answers.hpp"
#include "recibo/receive/callback_url.hpp"
#include "recibo/receive/extract.hpp"
#include "recibo/receive/kept_head.hpp"
#include "recibo/verify/signed_digest.hpp"
#include "recibo/verify/verifier.hpp"

#include "route.hpp"

#include <algorithm>

namespace recibo::receive {
namespace {

using steady = std::chrono::steady_clock;

http::response method_not_allowed(const std::string& allowed) {
  auto out = http::problem(405, "method_not_allowed", "This resource has " + allowed + " only.");
  out.headers.emplace_back("Allow", allowed);
  return out;
}

// A GET that brings a callback: only at the URL of one operation, and only where the configuration says so. A HEAD never does.
bool is_callback_by_get(const config::provider& from, const route& to, std::string_view method) {
  return method == "GET" && !to.token.empty() && from.callback_url && from.callback_url->get;
}

bool takes(const config::provider& from, const route& to, std::string_view method) {
  if (to.token.empty() || !from.callback_url) return takes_method(from, method);
  if (method == "POST") return from.callback_url->post;
  return is_callback_by_get(from, to, method) || takes_method(from, method);
}

std::string allowed_methods(const config::provider& from, const route& to) {
  std::string out;
  for (const char* method : {"GET", "HEAD", "POST"})
    if (takes(from, to, method)) out.append(out.empty() ? "" : ", ").append(method);
  return out;
}

// The URL that the provider was given, with the query of this request. Nothing of it comes from Host or X-Forwarded-*, unless
// the configuration says `forwarded`; then a request that came through no trusted proxy has none, and does not verify.
std::string public_url(const config::settings& settings, const config::provider& from, const http::request& whole) {
  if (from.public_url_forwarded) {
    if (whole.origin.empty()) return {};
    return whole.origin + whole.path + (whole.query.empty() ? "" : '?' + whole.query);
  }
  // Each operation's own begins with the configured base, too.
  if (from.callback_url) return verify::called_url(settings.callback_urls.base + whole.path, whole.query);
  return verify::called_url(from.public_url, whole.query);
}

bool is_about_time(const error& e) noexcept {
  return e.code == permanent::timestamp_missing || e.code == permanent::timestamp_malformed ||
         e.code == permanent::timestamp_stale;
}

// How long the recorder is waited for: a little less than the sender waits, so that the answer is still under way in time.
std::chrono::milliseconds patience(std::chrono::milliseconds answer_within) noexcept {
  return answer_within - std::min(std::chrono::milliseconds(200), answer_within / 10);
}

// What the contract calls an error that is no disposition.
std::string_view counted_as(const error& e) noexcept { return e.code == transient::over_rate ? "overloaded" : "unavailable"; }

}  // namespace

callbacks::callbacks(parts p) : parts_(std::move(p)) {}

std::optional<http::response> callbacks::refuse_early(const http::request& head) {
  const auto settings = parts_.settings->get();
  return refuse(head, *settings);
}

std::optional<http::response> callbacks::refuse(const http::request& head, const config::settings& now) const {
  const route to = find_route(head.path);
  switch (to.what) {
    case route::resource::unknown: return http::problem(404, "not_found", "There is nothing at this path.");
    case route::resource::livez:
    case route::resource::readyz:
      if (head.method != "GET" && head.method != "HEAD") return method_not_allowed("GET, HEAD");
      return std::nullopt;
    case route::resource::callback: break;
  }
  const auto from = now.providers.find(to.provider);
  if (from == now.providers.end()) return http::problem(error(permanent::unknown_provider, "No such provider is configured."));
  if (!to.token.empty() && !from->second.callback_url) return http::problem(404, "not_found", "There is nothing at this path.");
  if (!takes(from->second, to, head.method)) return method_not_allowed(allowed_methods(from->second, to));
  if (!is_identity_coded(head.headers)) {
    auto out =
        http::problem(415, "unsupported_media_type", "The body must not be compressed: the signature covers what is sent.");
    out.headers.emplace_back("Accept-Encoding", "identity");
    return out;
  }
  return std::nullopt;
}

boost::asio::awaitable<http::response> callbacks::handle(http::request& whole) {
  const auto began = steady::now();
  const auto settings = parts_.settings->get();
  // Again, because a reload may have come between the head and the body.
  if (auto refused = refuse(whole, *settings)) co_return std::move(*refused);
  const route to = find_route(whole.path);
  if (to.what == route::resource::livez) co_return parts_.health->livez();
  if (to.what == route::resource::readyz) co_return parts_.health->readyz();

  const config::provider& from = settings->providers.find(to.provider)->second;
  const bool by_get = is_callback_by_get(from, to, whole.method);
  const bool asks = whole.method != "POST" && !by_get;
  std::optional<verify::callback_identity> meant;
  // A question to the provider's common URL is answered as ever; everything else needs the URL of an operation.
  if (from.callback_url && !(asks && to.token.empty())) {
    result<verify::callback_identity> read = error(permanent::signature_missing, "this is no operation's callback URL");
    if (!to.token.empty())
      read = verify::verify_callback_token(settings->callback_urls.keys, from.name, to.token, parts_.clock());
    if (!read) co_return refuse_told(verify::cause::callback_url, read.error(), whole, from);
    meant = std::move(*read);
  }
  if (asks) {
    http::response told = answer_question(from, whole, parts_.clock());
    co_return shake(std::move(told), whole, from);
  }
  if (by_get) {
    if (!whole.body.empty()) co_return http::problem(400, "unexpected_body", "A callback by GET says everything in its query.");
    // What it says, and what is kept of it: the query is a form that stands elsewhere.
    whole.body = whole.query;
  }
  const auto until = began + patience(from.answer_within);
  std::optional<verify::fetched_key> key;
  if (from.verify.needs_foreign_key()) {
    std::optional<http::response> refused;
    key = co_await fetch_key(whole, settings, from, until, refused);
    if (refused) co_return std::move(*refused);
  }
  auto judged = judge(whole, settings, from, key ? &*key : nullptr, meant ? &*meant : nullptr);
  if (auto* told = std::get_if<http::response>(&judged)) co_return std::move(*told);
  if (auto* hands = std::get_if<signed_handshake>(&judged)) {
    if (!hands->confirm_url.empty()) {
      result<int> status = error(transient::not_ready, "Nothing here can fetch the confirmation.");
      if (parts_.fetch) {
        auto fetched = parts_.fetch(from, std::move(hands->confirm_url), until);
        status = co_await std::move(fetched);
      }
      // Sent again, the same confirmation may succeed; a 2xx without one would leave the subscription pending for ever.
      if (!status || *status < 200 || *status > 299)
        hands->answer = http::problem(error(transient::not_ready, "The subscription could not be confirmed."));
    }
    co_return shake(std::move(hands->answer), whole, from);
  }

  auto& what = std::get<record::work>(judged);
  const auto* single = std::get_if<record::callback>(&what);
  const auto& first = single ? *single : std::get<record::callback_group>(what).parts.front();
  const known_ids known{to_string(first.id), single ? first.request_id : std::string(), first.trace_id};
  auto pending = parts_.record(std::move(what), until);
  const auto outcome = co_await std::move(pending);
  parts_.counts->stage(from.name, "total", steady::now() - began);
  if (!outcome) co_return refuse_record(outcome.error(), known, from);

  // Each event of a request is a callback.
  if (outcome->parts.empty()) parts_.counts->callback(from.name, receive::counted_as(*outcome));
  for (const auto& part : outcome->parts) parts_.counts->callback(from.name, receive::counted_as(part));
  auto out = answer(*outcome, from.answers, known.trace_id);
  if (out.status >= 400) {
    log::warn("callback refused", {{"provider", from.name},
                                   {"reason", transition::to_string(outcome->disposition)},
                                   {"detail", outcome->detail},
                                   {"delivery_id", to_string(outcome->delivery)},
                                   {"trace_id", known.trace_id}});
  }
  co_return out;
}

boost::asio::awaitable<std::optional<verify::fetched_key>> callbacks::fetch_key(const http::request& whole,
                                                                                std::shared_ptr<const config::settings> settings,
                                                                                const config::provider& from,
                                                                                steady::time_point until,
                                                                                std::optional<http::response>& refusal) {
  const std::string url = public_url(*settings, from, whole);
  const verify::signed_message signed_part{whole.method, url, whole.query, whole.headers, whole.body};
  auto needed = verify::which_key(from.verify, signed_part, from.keys, parts_.clock());
  if (!needed) {
    const auto cause =
        verify::speaks_of_other_body(from.verify, signed_part) ? verify::cause::body_changed : verify::cause::key_unknown;
    refusal = needed.error().code == permanent::signature_mismatch
                  ? refuse_told(cause, needed.error(), whole, from)
                  : refuse_signature(needed.error(), whole, *settings, from, signed_part);
    co_return std::nullopt;
  }
  if (!*needed) co_return std::nullopt;
  result<verify::fetched_key> got = error(transient::not_ready, "Keys are not fetched here.");
  if (parts_.keys) {
    auto asking = parts_.keys(std::move(settings), from, std::move(**needed), whole.peer, until);
    got = co_await std::move(asking);
  }
  if (got) co_return std::move(*got);
  const known_ids known{{}, {}, whole.trace_id};
  refusal = got.error().is_permanent() ? refuse_told(verify::cause::key_unknown, got.error(), whole, from)
                                       : refuse_record(got.error(), known, from);
  co_return std::nullopt;
}

std::variant<http::response, signed_handshake, record::work> callbacks::judge(http::request& whole,
                                                                              std::shared_ptr<const config::settings> settings,
                                                                              const config::provider& from,
                                                                              const verify::fetched_key* fetched,
                                                                              const verify::callback_identity* meant) {
  const auto began = steady::now();
  const sys_micros at = parts_.clock();
  const std::string url = public_url(*settings, from, whole);
  const verify::signed_message signed_part{whole.method, url, whole.query, whole.headers, whole.body};
  auto secret_name = verify::verify(from.verify, signed_part, from.keys, at, fetched);
  parts_.counts->stage(from.name, "verify", steady::now() - began);
  // What carries a signature is judged by it; only what carries none may be a handshake that nobody signs.
  const bool is_unsigned = !secret_name && (secret_name.error().code == permanent::signature_missing ||
                                            secret_name.error().code == permanent::content_missing);
  if (is_unsigned || (secret_name && secret_name->empty())) {
    if (auto told = answer_unsigned(from, whole)) return shake(std::move(*told), whole, from);
  }
  if (!secret_name) return refuse_signature(secret_name.error(), whole, *settings, from, signed_part);
  if (signed_by_a_handshake(from, whole)) {
    const error given_away(permanent::signature_mismatch, "a handshake gives this signature to anybody");
    return refuse_signature(given_away, whole, *settings, from, signed_part);
  }
  if (fetched != nullptr && parts_.vouch) parts_.vouch(from.name, whole.peer);
  // Only authentic callbacks use up the rate: a forger must not be able to shut out the provider.
  if (from.rate && !rates_.take(from.name, *from.rate, began)) {
    const known_ids known{{}, {}, whole.trace_id};
    return refuse_record(error(transient::over_rate, "Over the rate that is configured for this provider."), known, from);
  }
  if (!secret_name->empty()) parts_.counts->secret_used(from.name, *secret_name, at);
  if (meant) parts_.counts->secret_used(from.name, recorded_name(meant->secret_name), at);
  auto hands = answer_signed(from, whole, *secret_name);
  if (hands && !hands->unusable) return std::move(*hands);

  record::callback common;
  if (config::takes_unsigned_key(from)) common.signed_digest = verify::signed_digest(from.verify, signed_part);
  if (meant) common.request_id = meant->request_id;
  common.settings = std::move(settings);
  common.provider = &from;
  common.received_at = at;
  common.peer = whole.peer;
  common.trace_id = whole.trace_id;
  // The URL is what verified it, where nothing is signed.
  common.secret_name = meant && secret_name->empty() ? recorded_name(meant->secret_name) : std::move(*secret_name);
  // Nobody signs it: what PostgreSQL could not hold as text is left out rather than in the way of the callback.
  if (const auto type = http::find_header(whole.headers, "content-type"); type && is_utf8(*type)) common.content_type = *type;
  if (whole.method == "GET") common.content_type = "application/x-www-form-urlencoded";
  std::optional<error> unusable;
  if (hands) unusable = std::move(hands->unusable);
  return read(whole, std::move(common), from, signed_part, std::move(unusable));
}

std::variant<http::response, signed_handshake, record::work> callbacks::read(http::request& whole, record::callback common,
                                                                             const config::provider& from,
                                                                             const verify::signed_message& signed_part,
                                                                             std::optional<error> unusable) {
  const std::string url_of = common.request_id;
  // What a replay needs beside the body, and has no longer then. The digest as it is before the key's own parts are added.
  const auto keep_for_replay = [&](record::callback& c) {
    const bool failed = std::any_of(c.items.begin(), c.items.end(), [](const auto& i) { return !i.understood(); });
    if (!failed && c.understood()) return;
    c.head = keep_head(from, whole, url_of);
    // Of what was understood in part the key is claimed, and what names it beside the key stays as it is.
    if (!c.understood()) c.signed_digest = verify::signed_digest(from.verify, signed_part);
  };
  const auto ignored = [](const record::callback& c) { return c.event == "ignore" && !c.unprocessable; };
  const auto ignore = [&](const std::string& request_id) {
    parts_.counts->callback(from.name, transition::to_string(transition::disposition::ignored));
    return answer_ignored(request_id, from.answers, whole.trace_id);
  };
  if (!from.extract.each) {
    extract(from, whole, common);
    if (unusable) common.unprocessable = std::move(unusable);
    if (ignored(common)) return ignore(common.request_id);
    keep_for_replay(common);
    common.id = make_id<delivery_id>(common.received_at);
    common.body = std::move(whole.body);
    return record::work(std::move(common));
  }
  record::callback_group group;
  group.parts = extract_each(from, whole, common);
  if (unusable)
    for (auto& part : group.parts) part.unprocessable = unusable;
  std::for_each(group.parts.begin(), group.parts.end(), keep_for_replay);
  if (std::all_of(group.parts.begin(), group.parts.end(), ignored)) return ignore({});
  group.body = std::move(whole.body);
  group.content_type = std::move(common.content_type);
  return record::work(std::move(group));
}

http::response callbacks::shake(http::response told, const http::request& whole, const config::provider& from) {
  const std::string_view kind = config::to_string(from.handshake->kind);
  const bool fine = told.status < 300;
  parts_.counts->callback(from.name, fine ? "handshake" : told.status >= 500 ? "unavailable" : "unauthenticated");
  const log::level at = fine ? log::level::info : log::level::warn;
  log::write(at, fine ? "handshake answered" : "handshake refused",
             {{"provider", from.name},
              {"handshake", kind},
              {"status", told.status},
              {"peer", whole.peer},
              {"trace_id", whole.trace_id}});
  return told;
}

http::response callbacks::refuse_signature(const error& why, const http::request& whole, const config::settings& settings,
                                           const config::provider& from, const verify::signed_message& signed_part) {
  if (parts_.refused) parts_.refused->add(settings, from, signed_part, why, whole, parts_.clock(), steady::now());
  return unauthenticated(why, whole, from);
}

http::response callbacks::refuse_told(verify::cause cause, const error& why, const http::request& whole,
                                      const config::provider& from) {
  if (parts_.refused) parts_.refused->add_told(from, cause, why, whole, parts_.clock());
  return unauthenticated(why, whole, from);
}

http::response callbacks::unauthenticated(const error& why, const http::request& whole, const config::provider& from) {
  const std::string_view reason = code_word(why.code);
  parts_.counts->signature_failure(from.name, reason);
  const bool in_doubt = is_about_time(why) && parts_.health->clock_in_doubt();
  parts_.counts->callback(from.name, in_doubt ? "unavailable" : "unauthenticated");
  log::warn("callback refused",
            {{"provider", from.name}, {"reason", reason}, {"peer", whole.peer}, {"trace_id", whole.trace_id}});
  const http::problem_context known{{}, {}, whole.trace_id};
  if (in_doubt)
    return http::problem(error(transient::clock_in_doubt, "The clock here is in doubt, so time stamps cannot be judged."), known);
  http::response out = http::problem(why, known);
  if (refuses_without_body(from)) out.body.clear();
  return out;
}

http::response callbacks::refuse_record(const error& why, const known_ids& known, const config::provider& from) {
  const http::problem_context context{known.request_id, known.delivery_id, known.trace_id};
  parts_.counts->callback(from.name, counted_as(why));
  log::warn("callback refused", {{"provider", from.name},
                                 {"reason", code_word(why.code)},
                                 {"delivery_id", known.delivery_id},
                                 {"trace_id", known.trace_id}});
  // A callback can never be refused for good by the recorder: that would be a disposition. What says so is a fault of ours.
  if (why.is_permanent()) return http::problem(error(transient::our_fault), context);
  return http::problem(why, context);
}

}  // namespace recibo::receive
