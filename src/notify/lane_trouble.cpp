// What a lane makes of the answers of its destination as a whole: breaker, pause, and how long nothing was taken; and how it
// makes a notification of a row.
#include "lane.hpp"

#include "recibo/notify/message.hpp"
#include "recibo/observe/log.hpp"

#include <algorithm>
#include <utility>

namespace recibo::notify {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds trouble_limit{5}, spread_limit{2};
// A step of what is spread: some milliseconds of the database. As few as that come at once.
constexpr int spread_most = 2'000, few_at_once = 10;

}  // namespace

// Nothing is forgotten before the database has taken it: whatever could not be written is decided again in the next round.
awaitable<bool> lane::heed_trouble() {
  const auto now = steady_clock::now();
  const auto until = now + trouble_limit;
  const auto settings = parts_.settings.get();
  const auto to = settings->destinations.find(name_);
  const bool for_long = failing_ && to != settings->destinations.end() && row_.failing_for &&
                        *row_.failing_for >= to->second.pause_after && !row_.paused_at;
  if (!stopped_for_.empty() || for_long) {
    const std::string_view why = stopped_for_.empty() ? std::string_view("failing") : stopped_for_;
    // What another replica may have seen taken meanwhile is asked with it.
    result<bool> paused;
    if (stopped_for_.empty()) {
      paused = co_await storage::pause_failing(parts_.pool, name_, to->second.pause_after, until);
    } else {
      paused = co_await storage::pause_destination(parts_.pool, name_, "recibo", std::string(why), until);
    }
    if (!paused) co_return false;
    if (*paused) log::error("a destination is paused: it needs a person", {{"destination", name_}, {"reason", why}});
    stopped_for_ = {};
    looked_ = {};
  }
  if (for_long) failing_ = false;
  auto heeding = heed_breaker(now);
  co_return co_await std::move(heeding);
}

void lane::heed_wish(const sent& came, const config::destination& to) {
  // A resource that is busy (409, 423) speaks for itself alone.
  const int status = came.answer_status.value_or(0);
  if (!came.judged.retry_after || (status != 429 && status < 500)) return;
  asked_until_ = std::max(asked_until_, steady_clock::now() + std::min(*came.judged.retry_after, to.retry.max));
}

awaitable<bool> lane::heed_breaker(time_point now) {
  const auto until = now + trouble_limit;
  // What it asked for counts, where that is longer than what we would wait.
  const auto asked = std::chrono::duration_cast<std::chrono::milliseconds>(asked_until_ - now);
  if (probed_) {
    const bool passed = *probed_;
    result<void> moved;
    if (passed) {
      auto spreading = spread_what_waited();
      co_await std::move(spreading);
      moved = co_await storage::close_breaker(parts_.pool, name_, steady_clock::now() + trouble_limit);
    } else {
      const auto wait = std::max(asked, breaker_wait(row_.openings + 1, random()));
      moved = co_await storage::open_breaker(parts_.pool, name_, wait, until);
    }
    if (!moved) co_return false;
    row_.breaker = passed ? "closed" : "open";
    if (passed) log::info("a breaker closed", {{"destination", name_}});
    probed_.reset();
    probe_until_.reset();
    probe_unused_ = false;
    recent_.clear();
    looked_ = {};
  } else if (probe_until_ && (probe_unused_ || (senders_ == 0 && ready_.empty()))) {
    const auto back = co_await storage::give_back_probe(parts_.pool, name_, *probe_until_, until);
    if (!back) co_return false;
    probe_until_.reset();
    probe_unused_ = false;
    looked_ = {};
  } else if (row_.breaker == "closed" && recent_.out_of_order(now)) {
    const auto wait = std::max(asked, breaker_wait(1, random()));
    const auto opened = co_await storage::open_breaker(parts_.pool, name_, wait, until);
    if (!opened) co_return false;
    recent_.clear();
    row_.breaker = "open";
    log::warn("a breaker opened", {{"destination", name_}});
    looked_ = {};
  }
  // While a probe is out nothing else is sent; what becomes of it comes first.
  if (asked.count() <= 0 || row_.breaker == "half_open") co_return true;
  const auto left = co_await storage::leave_alone(parts_.pool, name_, asked, until);
  if (!left) co_return false;
  looked_ = {};
  if (!*left) co_return true;
  log::info("a destination asked to be left alone", {{"destination", name_}, {"wait_ms", asked.count()}});
  asked_until_ = {};
  co_return true;
}

// While the breaker still holds everybody up. What is not spread comes at once, and keeps no breaker open.
awaitable<void> lane::spread_what_waited() {
  const auto until = steady_clock::now() + spread_limit;
  const auto settings = parts_.settings.get();
  const auto to = settings->destinations.find(name_);
  if (to == settings->destinations.end()) co_return;
  const config::destination& how = to->second;
  storage::spread_rule rule{how.retry.first, how.retry.max, std::min(how.concurrency, few_at_once)};
  for (std::optional<sys_micros> place = sys_micros{}; place && steady_clock::now() < until;) {
    auto stepping = storage::spread_retries(parts_.pool, name_, rule, *place, spread_most, until);
    const auto step = co_await std::move(stepping);
    if (!step)
      log::warn("what waited for a breaker is not spread", {{"destination", name_}, {"code", code_word(step.error().code)}});
    if (step && step->spread > 0) rule.few = 0;
    place = step ? step->next : std::nullopt;
  }
}

// What takes too long is given back, and tried in smaller groups.
awaitable<void> lane::pack(settings_ptr settings, std::vector<storage::claimed_notification> claimed) {
  const auto until = steady_clock::now() + trouble_limit;
  auto at = claimed.begin();
  for (bool packed = true; at != claimed.end() && packed;) {
    const auto end = at + std::min<std::ptrdiff_t>(pack_most_, claimed.end() - at);
    std::vector<storage::claimed_notification> some(std::make_move_iterator(at), std::make_move_iterator(end));
    at = end;
    auto packing = pack_some(settings, std::move(some), until);
    packed = co_await std::move(packing);
    pack_most_ = packed ? std::min(pack_most, pack_most_ * 2) : std::max(1, pack_most_ / 2);
    if (!packed) ahead_ = 0;
  }
  for (; at != claimed.end(); ++at) give_back(*at);
}

// Reads the operations of all at once. What cannot be packed goes back. Returns whether they could be read.
awaitable<bool> lane::pack_some(settings_ptr settings, std::vector<storage::claimed_notification> claimed, time_point until) {
  std::vector<storage::fact_name> facts;
  for (const auto& one : claimed)
    if (!one.of_provider) facts.push_back({one.operation, one.sequence});
  result<std::vector<storage::operation_then>> operations;
  if (!facts.empty()) operations = co_await storage::find_operations_then(parts_.pool, facts, until);
  if (!operations)
    log::warn("what notifications tell of could not be read",
              {{"destination", name_}, {"notifications", facts.size()}, {"code", code_word(operations.error().code)}});
  for (auto& one : claimed) {
    if (one.of_provider) {
      auto provider = one.of_provider->provider;
      auto body = body_of_provider(one);
      ready_.push_back({std::move(one), std::move(provider), std::string(), std::move(body)});
      continue;
    }
    storage::operation_then* then = nullptr;
    if (operations) {
      const auto found = std::find_if(operations->begin(), operations->end(), [&](const auto& x) {
        return x.operation.id == one.operation && x.sequence == one.sequence;
      });
      if (found != operations->end()) then = &*found;
    }
    evidence::workflow_ptr table;
    if (then != nullptr) {
      auto read = co_await workflows_.get(parts_.pool, settings, then->operation.workflow, until);
      if (read) table = std::move(*read);
    }
    if (!table) {
      give_back(one);
      continue;
    }
    auto shown = put_back(std::move(*then), one, *table);
    auto body = body_of(one, shown, {*table, *settings});
    ready_.push_back({std::move(one), std::move(shown.provider), std::move(shown.request_id), std::move(body)});
  }
  co_return operations.has_value();
}

}  // namespace recibo::notify
