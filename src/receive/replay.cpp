#include "recibo/receive/replay.hpp"

#include "recibo/config/takes_unsigned_key.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/receive/extract.hpp"
#include "recibo/receive/kept_head.hpp"
#include "recibo/record/left_out.hpp"

#include <algorithm>
#include <utility>

namespace recibo::receive {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;
using transition::disposition;

// What a replay could only do by half; it stays as it is.
constexpr permanent not_replayable = permanent::illegal_transition;

std::string word_of(const error& why) {
  return std::string(why.code == make_error_code(not_replayable) ? "not_replayable" : code_word(why.code));
}

// How often it is read again because others have decided a part of it meanwhile.
constexpr int read_again_most = 10;

// Of the time that a step has, what the last replay may need.
constexpr std::chrono::seconds one_needs{3};

// A request as it is kept, ready for extraction.
struct kept_request {
  http::request again;
  record::callback whole;  // what its events have in common
};

kept_request restore(const storage::failed_material& kept, std::shared_ptr<const config::settings> settings,
                     const config::provider& from) {
  kept_request out;
  out.again.method = "POST";
  const auto url_of = restore_head(kept.head.value_or(""), out.again);
  if (!kept.content_type.empty()) out.again.headers.emplace_back("Content-Type", kept.content_type);
  out.again.body = *kept.body;
  auto& c = out.whole;
  if (config::takes_unsigned_key(from)) c.signed_digest = kept.signed_digest;
  // The URL proved whose it is; what the callback itself says of that is only compared.
  if (from.callback_url) c.request_id = url_of;
  if (from.callback_url && url_of.empty())
    c.unprocessable = error(permanent::missing_field, "callback URL: it came before the provider had one for each operation");
  c.settings = std::move(settings);
  c.provider = &from;
  c.id = kept.delivery;
  c.received_at = kept.received_at;
  c.peer = kept.peer;
  c.trace_id = kept.trace_id;
  c.secret_name = kept.secret;
  c.head = kept.head.value_or("");
  return out;
}

// The events of it that are still to be decided, each with the replay that it is part of.
result<std::vector<record::callback>> read_left(const storage::failed_material& kept, const config::provider& from,
                                                const kept_request& request, const record::replay& order) {
  auto listed = record::read_left_out(kept.left_out);
  const bool each = from.extract.each.has_value();
  // Places in another list are not these: what is left there waits until the configuration reads it again.
  const auto elsewhere = [&](const auto& one) {
    return one.part.has_value() != each || (!one.place.empty() && one.place != record::place_of(from));
  };
  if (!listed.empty() && std::all_of(listed.begin(), listed.end(), elsewhere))
    return error(not_replayable,
                 "its provider's `each` or `items` is another than when it came, and some of it was understood then");
  std::erase_if(listed, elsewhere);
  std::vector<record::callback> out;
  if (!each) {
    auto& c = out.emplace_back(request.whole);
    auto fault = std::move(c.unprocessable);
    extract(from, request.again, c);
    c.key_beside = kept.key_beside;
    if (fault) c.unprocessable = std::move(fault);
    auto by = order;
    if (!listed.empty()) by.items = listed.front().items;
    if (!listed.empty() && listed.front().delivery) c.id = *listed.front().delivery;
    if (c.understood() && !by.items.empty() && by.items.back() >= c.items.size())
      return error(not_replayable, "its list of items is another one under this configuration");
    c.replay = std::make_shared<const record::replay>(std::move(by));
    return out;
  }
  auto events = extract_each(from, request.again, request.whole);
  if (events.empty()) return error(not_replayable, "under this configuration its list of events is empty: discard it");
  auto wanted = record::left_of(kept.left_out, events.size());
  // Where nothing of it was understood, the delivery that it came as is that of its first event.
  const bool all = kept.left_out.empty() || record::leaves_others(kept.left_out);
  if (all && !wanted.front().delivery) wanted.front().delivery = kept.delivery;
  std::erase_if(wanted, elsewhere);
  for (const auto& one : wanted) {
    if (*one.part >= events.size()) return error(not_replayable, "its list of events is another one under this configuration");
    auto& c = out.emplace_back(std::move(events[*one.part]));
    c.key_beside = kept.key_beside;
    c.head = request.whole.head;
    if (request.whole.unprocessable) c.unprocessable = request.whole.unprocessable;
    if (c.understood() && !one.items.empty() && one.items.back() >= c.items.size())
      return error(not_replayable, "its list of items is another one under this configuration");
    auto by = order;
    by.part = one.part;
    by.parts = events.size();
    by.new_delivery = !one.delivery;
    by.payload = kept.payload;
    by.items = one.items;
    if (one.delivery) c.id = *one.delivery;
    c.replay = std::make_shared<const record::replay>(std::move(by));
  }
  return out;
}

// What is left of it, as the configuration of now reads it; permanent::check_failed (purged), illegal_transition (not
// replayable), unknown_provider.
result<std::vector<record::callback>> read_again(const storage::failed_material& kept,
                                                 std::shared_ptr<const config::settings> settings, const record::replay& order) {
  const auto provider = settings->providers.find(kept.provider);
  if (provider == settings->providers.end())
    return error(permanent::unknown_provider, "its provider is not in the configuration any more");
  // Of what came to an older version nothing says which of its items were left out.
  if (kept.reason.starts_with("item_") && kept.left_out.empty())
    return error(not_replayable, "only some of its items failed: raise their events by item_id, then discard it");
  if (!kept.body) return error(permanent::check_failed, "its raw body has been purged, so there is nothing to replay");
  const auto request = restore(kept, std::move(settings), provider->second);
  return read_left(kept, provider->second, request, order);
}

// What several events of one request came to.
record::outcome together(std::vector<record::outcome> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  record::outcome out;
  std::vector<disposition> words;
  for (const auto& one : parts) words.push_back(one.replayed ? disposition::duplicate : one.disposition);
  out.disposition = transition::combined(words);
  out.delivery = parts.front().delivery;
  out.parts = std::move(parts);
  return out;
}

// One that is done already: a replay is answered as it was.
awaitable<result<replay_result>> answer_closed(postgres::pool& pool, failed_callback_id id, steady_clock::time_point until) {
  auto done = co_await storage::find_closing(pool, id, until);
  if (!done) co_return done.error();
  if (!*done) co_return error(permanent::not_found, "There is no such failed callback.");
  const auto& what = **done;
  if (what.action == "discarded") co_return error(permanent::already_resolved, "it was discarded");
  if (what.action == "resent") co_return error(permanent::already_resolved, "the provider sent it again, and it was understood");
  replay_result out;
  out.failed = id;
  out.word = what.disposition.value_or("");
  out.outcome.disposition = transition::parse_disposition(out.word).value_or(disposition::applied);
  out.outcome.delivery = what.delivery;
  out.outcome.request_id = what.request_id.value_or("");
  out.outcome.state = what.state.value_or("");
  out.closed = true;
  out.repeated = true;
  co_return out;
}

// Decides what is left of it; empty: others have decided all of that since it was read.
awaitable<result<std::vector<record::outcome>>> replay_left(const replay_parts& with, const storage::failed_material& kept,
                                                            const record::replay& by, steady_clock::time_point until) {
  auto events = read_again(kept, with.settings, by);
  if (!events) co_return events.error();
  std::vector<record::outcome> outcomes;
  std::optional<error> turned_down;
  // One after the other, each in a transaction of its own: who is stopped in between goes on with what is left. One that cannot
  // be replayed stays, and is no harm to the others.
  for (auto& c : *events) {
    record::work work(std::move(c));
    auto recorded = co_await with.record(std::move(work), until);
    if (!recorded && recorded.error().code == make_error_code(permanent::already_resolved)) continue;
    if (!recorded && recorded.error().code == make_error_code(not_replayable)) {
      turned_down = recorded.error();
      continue;
    }
    if (!recorded) co_return recorded.error();
    outcomes.push_back(std::move(*recorded));
  }
  if (outcomes.empty() && turned_down) co_return std::move(*turned_down);
  co_return outcomes;
}

}  // namespace

awaitable<result<replay_result>> replay_failed(const replay_parts& with, failed_callback_id id, replay_order order,
                                               steady_clock::time_point until) {
  record::replay by;
  by.failed = id;
  by.actor = std::move(order.actor);
  by.reason = std::move(order.reason);
  by.dry_run = order.dry_run;
  std::vector<record::outcome> outcomes;
  for (int attempt = 0; outcomes.empty(); ++attempt) {
    if (attempt == read_again_most) co_return error(transient::operation_busy, "others replay it at the same time");
    auto kept = co_await storage::read_failed_material(with.pool, id, until);
    if (!kept) co_return kept.error();
    if (!*kept) co_return co_await answer_closed(with.pool, id, until);
    auto decided = co_await replay_left(with, **kept, by, until);
    if (!decided) co_return decided.error();
    outcomes = std::move(*decided);
  }
  const bool stays = std::any_of(outcomes.begin(), outcomes.end(), [](const auto& one) {
    return one.disposition == disposition::unmapped || one.disposition == disposition::unprocessable ||
           one.disposition == disposition::unknown_operation;
  });
  replay_result out;
  out.failed = id;
  out.outcome = together(std::move(outcomes));
  out.word = transition::to_string(out.outcome.replayed ? disposition::duplicate : out.outcome.disposition);
  out.closed = !order.dry_run && !stays;
  if (out.closed) {
    // Elements of a list of items may be left, or an event that cannot be replayed.
    auto done = co_await storage::find_closing(with.pool, id, until);
    if (!done) co_return done.error();
    out.closed = done->has_value();
  }
  if (!order.dry_run)
    log::info("failed callback replayed",
              {{"failed_callback_id", to_string(id)}, {"disposition", out.word}, {"closed", out.closed}});
  co_return out;
}

awaitable<result<replay_step>> replay_many(const replay_parts& with, storage::failed_filter which,
                                           std::optional<failed_callback_id> after, int limit, replay_order order,
                                           steady_clock::time_point until) {
  auto matched = co_await storage::count_failed(with.pool, which, until);
  if (!matched) co_return matched.error();
  // One more than asked for tells whether there is more.
  auto ids = co_await storage::list_failed_ids(with.pool, std::move(which), after, limit + 1, until);
  if (!ids) co_return ids.error();
  replay_step out;
  out.matched = *matched;
  const auto more = static_cast<int>(ids->size()) > limit;
  if (more) ids->pop_back();
  for (const auto& id : *ids) {
    if (steady_clock::now() + one_needs > until) {
      if (out.taken == 0) co_return error(transient::deadline_passed, "nothing could be replayed in time");
      co_return out;
    }
    auto one = co_await replay_failed(with, id, order, until);
    if (!one && !one.error().is_permanent()) {
      if (out.taken == 0) co_return one.error();
      co_return out;
    }
    ++out.taken;
    ++out.by_word[one ? one->word : word_of(one.error())];
    if (one && one->closed) ++out.closed;
    out.next = id;
  }
  if (!more) out.next.reset();
  co_return out;
}

awaitable<result<bool>> discard_failed(const replay_parts& with, failed_callback_id id, std::string actor, std::string reason,
                                       steady_clock::time_point until) {
  // Who finds it in the hands of others reads again what they left of it.
  for (int attempt = 0; attempt < read_again_most; ++attempt) {
    auto kept = co_await storage::read_failed_material(with.pool, id, until);
    if (!kept) co_return kept.error();
    if (!*kept) {
      auto done = co_await storage::find_closing(with.pool, id, until);
      if (!done) co_return done.error();
      if (!*done) co_return error(permanent::not_found, "There is no such failed callback.");
      if ((*done)->action == "discarded" && (*done)->actor == actor && (*done)->reason == reason) co_return false;
      co_return error(permanent::already_resolved, "this failed callback is done: replayed, sent again or discarded");
    }
    record::discard work;
    work.failed = id;
    work.provider = (*kept)->provider;
    work.body_digest = (*kept)->body_digest;
    work.key_beside = (*kept)->key_beside;
    work.actor = actor;
    work.reason = reason;
    record::work what(std::move(work));
    auto recorded = co_await with.record(std::move(what), until);
    if (recorded) co_return true;
    if (recorded.error().code != make_error_code(permanent::already_resolved)) co_return recorded.error();
  }
  co_return error(transient::operation_busy, "others work on it at the same time");
}

}  // namespace recibo::receive
