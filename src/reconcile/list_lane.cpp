#include "list_lane.hpp"

#include "list_page.hpp"
#include "recibo/notify/retry.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/reconcile/status_request.hpp"
#include "recibo/record/listed.hpp"

#include <algorithm>
#include <utility>

namespace recibo::reconcile {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using page_next = storage::page_outcome::next;

constexpr milliseconds page_round_every = 500ms, page_database_limit = 5s, page_record_limit = 10s;
// Beyond its deadline a page needs the recorder; then its holder has gone.
constexpr milliseconds page_lease_beyond = 20s;
// Attempts beyond the schedule's: each is one whose holder never settled it.
constexpr int page_lost_most = 3;
// Where all attempts were in vain, the provider may be out for longer: as many again after a while, for a day or so.
constexpr std::chrono::hours page_again_after{1};
constexpr int page_rounds_most = 24;
// The last page names itself as the one behind it: some do, and some that do not keep to the cursor, so that it is told.
constexpr std::string_view cursor_repeated = "cursor_repeated";

const config::provider* listing_provider(const config::settings& settings, const std::string& name) {
  const auto found = settings.providers.find(name);
  return found == settings.providers.end() || !found->second.list ? nullptr : &found->second;
}

bool is_whole(const record::callback& c) {
  return c.understood() && std::all_of(c.items.begin(), c.items.end(), [](const auto& i) { return i.understood(); });
}

void count(const record::outcome& one, storage::page_outcome& into) {
  using transition::disposition;
  switch (one.disposition) {
    case disposition::applied:
    case disposition::partial:
    case disposition::duplicate:
    case disposition::redundant:
    case disposition::stale:
    case disposition::hint:
      ++into.known;
      into.deliveries.push_back(one.delivery);
      break;
    case disposition::parked: ++into.parked; break;
    case disposition::review:
    case disposition::conflict: one.replayed ? ++into.known : ++into.review; break;
    case disposition::unmapped:
    case disposition::unprocessable: ++into.failed; break;
    case disposition::unknown_operation:
    case disposition::ignored: break;
  }
}

}  // namespace

list_lane::list_lane(boost::asio::any_io_executor executor, status_checks::parts p, storage::look_up_holder by, std::string name)
    : parts_(std::move(p)),
      by_(by),
      name_(std::move(name)),
      worker_(executor, "event lists", page_round_every, [this] { return round(); }),
      random_(std::random_device{}()) {}

awaitable<void> list_lane::stop(time_point until) {
  stopping_ = true;
  co_await worker_.stop(until);
  if (!in_hand_) co_return;
  auto cut = std::move(*in_hand_);
  in_hand_.reset();
  co_await storage::settle_page(parts_.pool, by_, std::move(cut), steady_clock::now() + page_database_limit);
}

awaitable<bool> list_lane::round() {
  const auto settings = parts_.settings.get();
  const auto* of = listing_provider(*settings, name_);
  if (stopping_ || of == nullptr) co_return false;
  const auto lease = of->list->timeout + page_lease_beyond;
  auto claimed = co_await storage::claim_page(parts_.pool, name_, by_, lease, steady_clock::now() + page_database_limit);
  if (!claimed || !*claimed) co_return false;
  storage::page_outcome outcome;
  outcome.id = (*claimed)->id;
  outcome.attempts = (*claimed)->attempts;
  outcome.cursor = (*claimed)->cursor;
  in_hand_ = outcome;
  in_hand_->what = page_next::cut;
  co_await read_page(settings, **claimed, outcome);
  tell(outcome);
  const auto done =
      co_await storage::settle_page(parts_.pool, by_, std::move(outcome), steady_clock::now() + page_database_limit);
  if (!done)
    log::warn("a page of an event list is left to its lease", {{"provider", name_}, {"code", code_word(done.error().code)}});
  in_hand_.reset();
  co_return false;
}

void list_lane::tell(const storage::page_outcome& outcome) {
  const auto say = [&](log::level at, const char* what, const char* word) {
    parts_.counts.listed(name_, word);
    log::write(at, what, {{"provider", name_}, {"event_list_id", to_string(outcome.id)}, {"reason", outcome.reason}});
  };
  switch (outcome.what) {
    case page_next::done:
      return say(outcome.reason.empty() ? log::level::info : log::level::warn, "a list of events has been read", "done");
    case page_next::failed: return say(log::level::error, "a list of events is given up", "failed");
    case page_next::later:
      return say(log::level::error, "a list of events cannot be read; it is tried again after a while", "later");
    case page_next::on:
    case page_next::retry:
    case page_next::cut: return;
  }
}

awaitable<void> list_lane::read_page(settings_ptr settings, storage::claimed_page page, storage::page_outcome& outcome) {
  const auto& rule = *listing_provider(*settings, name_)->list;
  if (page.pages >= rule.pages) {
    outcome.what = page_next::failed;
    outcome.reason = "too_many_pages";
    co_return;
  }
  if (page.attempts > rule.retry.attempts + page_lost_most) {
    outcome.what = page_next::failed;
    outcome.reason = lost_attempts;
    co_return;
  }
  auto request = page_request(rule, page.since, page.cursor);
  if (!request) {
    outcome.what = page_next::failed;
    outcome.reason = code_word(request.error().code);
    co_return;
  }
  auto pending = parts_.client.send(std::move(*request), status_rules(rule));
  auto answer = co_await std::move(pending);
  if (!answer && stopping_) {
    outcome.what = page_next::cut;
    co_return;
  }
  // There is no news yet in that nothing was found: what is asked for is a list.
  const auto judged = judge_attempt(answer, {}, recibo::now());
  parts_.counts.attempt(name_, judged.reason);
  if (judged.unauthorized)
    log::error("a provider refuses the credentials of its event list: it needs a person", {{"provider", name_}});
  if (judged.what != next_step::read) {
    std::optional<std::chrono::seconds> wanted;
    if (answer) wanted = notify::judge(answer->status, judged.retry_after, recibo::now()).retry_after;
    // Its other questions wait, too.
    if (wanted)
      co_await storage::hold_look_ups(parts_.pool, name_, std::min(*wanted, rule.retry.max),
                                      steady_clock::now() + page_database_limit);
    if (judged.what == next_step::give_up) {
      outcome.what = page_next::failed;
      outcome.reason = judged.reason;
    } else {
      put_off(rule, page, judged.reason, wanted, outcome);
    }
    co_return;
  }
  http::request whole;
  whole.method = "POST";
  whole.headers = std::move(answer->headers);
  whole.body = std::move(answer->body);
  const bool recorded = co_await record_page(settings, page, std::move(whole), outcome);
  if (!recorded) co_return;
  const std::chrono::duration<double> pace(1.0 / rule.rate.per_second);
  outcome.what = outcome.cursor.empty() ? page_next::done : page_next::on;
  outcome.wait = std::chrono::ceil<milliseconds>(pace);
}

awaitable<bool> list_lane::record_page(settings_ptr settings, storage::claimed_page page, http::request answer,
                                       storage::page_outcome& outcome) {
  const auto& rule = *listing_provider(*settings, name_)->list;
  record::callback common;
  common.settings = settings;
  common.provider = rule.reads.get();
  common.received_at = recibo::now();
  common.peer = rule.url.base().host;
  common.listed = page.id;
  record::callback_group group;
  group.parts = parts_.read_each(*rule.reads, answer, common);
  const auto* const whole = group.parts.size() == 1 ? &group.parts.front().unprocessable : nullptr;
  const bool is_list =
      whole == nullptr || !*whole || ((*whole)->code != permanent::malformed_json && !(*whole)->detail.starts_with("each:"));
  if (!is_list) {
    put_off(rule, page, "no_list", std::nullopt, outcome);
    co_return false;
  }
  const auto behind = next_page(rule, answer.body, page.cursor, group.parts.size());
  outcome.events = static_cast<std::int64_t>(group.parts.size());
  // What cannot be understood is counted, and kept nowhere: the list still has it when the map is mended.
  std::erase_if(group.parts, [&](const record::callback& c) {
    if (!is_whole(c)) ++outcome.failed;
    return !is_whole(c) || c.event == "ignore";
  });
  if (!group.parts.empty()) {
    for (auto& part : group.parts) {
      part.listed = page.id;
      part.content_digest = record::listed_content(part.key);
    }
    group.body = std::move(answer.body);
    group.content_type = "application/json";
    record::work work(std::move(group));
    auto pending = parts_.record(std::move(work), steady_clock::now() + page_record_limit);
    const auto recorded = co_await std::move(pending);
    if (!recorded) {
      log::warn("what a list of events brought could not be recorded",
                {{"provider", name_}, {"event_list_id", to_string(page.id)}, {"code", code_word(recorded.error().code)}});
      outcome.events = outcome.failed = 0;
      if (recorded.error().code == transient::shutting_down) {
        outcome.what = page_next::cut;
      } else {
        put_off(rule, page, not_recorded, std::nullopt, outcome);
      }
      co_return false;
    }
    for (const auto& one : recorded->parts) count(one, outcome);
  }
  if (!behind) {
    // It is read again, and counted when what is behind it can be asked for; what it has moved already counts once all the same.
    outcome.events = outcome.known = outcome.parked = outcome.review = outcome.failed = 0;
    put_off(rule, page, code_word(behind.error().code), std::nullopt, outcome);
    co_return false;
  }
  outcome.cursor = behind->cursor;
  if (behind->repeated) outcome.reason = cursor_repeated;
  co_return true;
}

void list_lane::put_off(const config::list_rule& rule, const storage::claimed_page& page, std::string_view reason,
                        std::optional<std::chrono::seconds> wanted, storage::page_outcome& outcome) {
  notify::judgement asked;
  asked.retry_after = wanted;
  const auto wait = notify::next_wait(rule.retry, outcome.attempts, asked, random());
  if (wait) {
    outcome.what = page_next::retry;
    outcome.wait = *wait;
  } else {
    outcome.what = page.rounds < page_rounds_most ? page_next::later : page_next::failed;
    outcome.wait = std::max<milliseconds>(page_again_after, rule.retry.max);
  }
  outcome.reason = reason;
}

}  // namespace recibo::reconcile
