#include "queue.hpp"

#include <algorithm>
#include <unordered_set>

namespace recibo::record {
namespace {

// Digests kept at most; deaths of one suspect before it has to wait, and what it waits for each further one.
constexpr std::size_t suspects_max = 4096;
constexpr int suspect_deaths_free = 5;
constexpr std::chrono::seconds suspect_wait{1}, suspect_wait_max{60};

void count_down(std::unordered_map<std::string, std::size_t>& counts, const std::string& of) {
  const auto it = counts.find(of);
  if (it == counts.end()) return;
  if (--it->second == 0) counts.erase(it);
}

std::string suspect_key(const entry& e) {
  const auto* digest = digest_of(e.what);
  return digest ? std::string(binary(*digest)) : std::string();
}

}  // namespace

result<void> queue::push(entry_ptr e) {
  if (size_ >= bounds_.entries || bytes_ + e->bytes > bounds_.bytes)
    return error(transient::queue_full, "too much is waiting to be recorded");
  if (const auto it = suspects_.find(suspect_key(*e)); it != suspects_.end() && it->second.deaths > suspect_deaths_free) {
    const auto wait = std::min<std::chrono::seconds>(suspect_wait * (it->second.deaths - suspect_deaths_free), suspect_wait_max);
    if (e->arrived < it->second.last + wait)
      return error(transient::our_fault, "this callback has failed repeatedly and has to wait");
  }
  if (!e->identity.empty()) {
    auto& of_operation = per_operation_[e->identity];
    if (of_operation >= bounds_.per_operation) return error(transient::operation_busy, "too much is waiting for this operation");
    ++of_operation;
  }
  if (!e->provider.empty()) {
    auto& of_provider = per_provider_[std::string(e->provider)];
    if (of_provider >= bounds_.per_provider) {
      if (!e->identity.empty()) count_down(per_operation_, e->identity);
      return error(transient::queue_full, "too much of this provider is waiting to be recorded");
    }
    ++of_provider;
  }
  ++size_;
  bytes_ += e->bytes;
  waiting_.push_back(std::move(e));
  return {};
}

void queue::forget(const entry_ptr& e) {
  --size_;
  bytes_ -= e->bytes;
  if (!e->identity.empty()) count_down(per_operation_, e->identity);
  if (!e->provider.empty()) count_down(per_provider_, std::string(e->provider));
}

bool queue::drop_if_gone(const entry_ptr& e, steady_time now) {
  if (!e->abandoned && e->until > now) return false;
  e->finish(error(transient::deadline_passed, "not recorded in time"));
  forget(e);
  return true;
}

bool queue::is_suspect(const entry_ptr& e) const { return !suspects_.empty() && suspects_.contains(suspect_key(*e)); }

std::vector<entry_ptr> queue::take(std::size_t rows, std::size_t bytes, steady_time now) {
  std::vector<entry_ptr> out;
  std::size_t taken_bytes = 0, taken_rows = 0;
  std::unordered_set<std::string_view> passed_over;  // operations whose earlier work stays here
  std::size_t looked_at = 0;
  for (auto it = waiting_.begin(); it != waiting_.end() && out.size() < rows && looked_at < 4 * rows; ++looked_at) {
    auto& e = *it;
    if (drop_if_gone(e, now)) {
      it = waiting_.erase(it);
      continue;
    }
    if (!e->identity.empty()) {
      if (const auto held = held_.find(e->identity); held != held_.end()) {
        held->second.entries.push_back(std::move(e));
        it = waiting_.erase(it);
        continue;
      }
      if (in_hand_.contains(e->identity) || passed_over.contains(e->identity)) {
        passed_over.insert(e->identity);
        ++it;
        continue;
      }
    }
    const bool alone = e->alone || is_suspect(e);
    if (alone && !out.empty()) {
      passed_over.insert(e->identity);
      ++it;
      continue;
    }
    // A request of many events or items may be larger than a batch, and is then one by itself.
    if (!out.empty() && (taken_bytes + e->bytes > bytes || taken_rows + e->rows > rows)) break;
    taken_bytes += e->bytes;
    taken_rows += e->rows;
    e->begun = true;
    out.push_back(std::move(e));
    it = waiting_.erase(it);
    if (alone) break;
  }
  // Only now, so that several pieces of work for one operation may share the batch.
  for (const auto& e : out)
    if (!e->identity.empty()) ++in_hand_[e->identity];
  return out;
}

std::vector<entry_ptr> queue::take_from_lane(std::size_t rows, steady_time now) {
  std::vector<entry_ptr> out;
  while (!lane_.empty() && out.empty()) {
    const auto identity = std::move(lane_.front());
    lane_.pop_front();
    const auto held = held_.find(identity);
    if (held == held_.end()) continue;
    auto entries = std::move(held->second.entries);
    held_.erase(held);
    std::deque<entry_ptr> rest;
    for (auto& e : entries) {
      if (drop_if_gone(e, now)) continue;
      const bool ends_here = !out.empty() && (e->alone || out.back()->alone);
      if (out.size() < rows && rest.empty() && !ends_here) {
        e->begun = true;
        out.push_back(std::move(e));
      } else {
        rest.push_back(std::move(e));
      }
    }
    for (auto it = rest.rbegin(); it != rest.rend(); ++it) waiting_.push_front(std::move(*it));
  }
  for (const auto& e : out) ++in_hand_[e->identity];
  return out;
}

std::vector<entry_ptr> queue::take_parking(std::size_t rows, steady_time now) {
  std::vector<entry_ptr> out;
  while (!parking_.empty() && out.size() < rows) {
    auto e = std::move(parking_.front());
    parking_.pop_front();
    if (drop_if_gone(e, now)) {
      if (!e->identity.empty()) count_down(in_hand_, e->identity);
      continue;
    }
    const bool alone = e->alone || is_suspect(e);
    if (alone && !out.empty()) {
      parking_.push_front(std::move(e));
      break;
    }
    e->begun = true;
    out.push_back(std::move(e));
    if (alone) break;
  }
  return out;
}

std::vector<entry_ptr> queue::keep_order(std::vector<entry_ptr> entries) {
  std::vector<entry_ptr> out;
  for (auto& e : entries) {
    if (const auto held = held_.find(e->identity); !e->identity.empty() && held != held_.end()) {
      count_down(in_hand_, e->identity);
      e->begun = false;
      held->second.entries.push_back(std::move(e));
      continue;
    }
    const auto earlier = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const auto& w) {
      return !e->identity.empty() && w->identity == e->identity && w->arrived <= e->arrived;
    });
    if (earlier != waiting_.rend()) {
      count_down(in_hand_, e->identity);
      e->begun = false;
      waiting_.insert(earlier.base(), std::move(e));
      continue;
    }
    out.push_back(std::move(e));
  }
  return out;
}

void queue::to_parking(const entry_ptr& e) {
  e->begun = false;
  parking_.push_back(e);
}

void queue::suspect(const std::vector<entry_ptr>& entries, steady_time now) {
  std::unordered_set<std::string> counted;  // many copies in one batch died one death
  for (const auto& e : entries) {
    auto key = suspect_key(*e);
    if (key.empty() || !counted.insert(key).second) continue;
    if (suspects_.size() >= suspects_max && !suspects_.contains(key)) suspects_.erase(suspects_.begin());
    auto& known = suspects_[std::move(key)];
    ++known.deaths;
    known.last = now;
  }
}

void queue::cleared(const entry_ptr& e) {
  if (!suspects_.empty()) suspects_.erase(suspect_key(*e));
}

void queue::done(const entry_ptr& e) {
  if (!e->identity.empty()) count_down(in_hand_, e->identity);
  if (e->answer) forget(e);
}

void queue::hold(const entry_ptr& e, steady_time now) {
  if (!e->identity.empty()) count_down(in_hand_, e->identity);
  e->begun = false;
  ++e->misses;
  auto& held = held_[e->identity];
  held.entries.push_back(e);
  if (held.in_lane) return;
  if (e->misses >= misses_before_lane) {
    held.in_lane = true;
    lane_.push_back(e->identity);
    return;
  }
  if (held.entries.size() == 1) held.due = now + std::chrono::milliseconds(std::uniform_int_distribution<int>(5, 50)(random_));
}

void queue::put_back(const std::vector<entry_ptr>& entries) {
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    if (!(*it)->identity.empty()) count_down(in_hand_, (*it)->identity);
    (*it)->begun = false;
    waiting_.push_front(*it);
  }
}

std::optional<steady_time> queue::release_held(steady_time now) {
  std::optional<steady_time> next;
  for (auto it = held_.begin(); it != held_.end();) {
    auto& held = it->second;
    if (held.in_lane) {
      ++it;
      continue;
    }
    if (held.due > now) {
      if (!next || held.due < *next) next = held.due;
      ++it;
      continue;
    }
    for (auto e = held.entries.rbegin(); e != held.entries.rend(); ++e) waiting_.push_front(std::move(*e));
    it = held_.erase(it);
  }
  return next;
}

void queue::fail_all(const error& why) {
  const auto fail = [&](const entry_ptr& e) {
    e->finish(why);
    forget(e);
  };
  for (const auto& e : waiting_) fail(e);
  waiting_.clear();
  for (auto& [identity, held] : held_)
    for (const auto& e : held.entries) fail(e);
  held_.clear();
  lane_.clear();
  for (const auto& e : parking_) {
    if (!e->identity.empty()) count_down(in_hand_, e->identity);
    fail(e);
  }
  parking_.clear();
}

}  // namespace recibo::record
