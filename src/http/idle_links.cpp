#include "idle_links.hpp"

#include <algorithm>

namespace recibo::http {

std::unique_ptr<link> idle_links::take(const std::string& origin, std::span<const network> allow, time_point now) {
  const auto at = all_.find(origin);
  if (at == all_.end()) return nullptr;
  std::unique_ptr<link> out;
  auto& waiting = at->second;
  for (auto i = waiting.size(); i-- > 0 && !out;) {
    if (!may_reach(waiting[i]->address, allow)) continue;
    if (!over(*waiting[i], now) && !waiting[i]->stale()) out = std::move(waiting[i]);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
    --size_;
  }
  if (waiting.empty()) all_.erase(at);
  return out;
}

void idle_links::put(const std::string& origin, std::unique_ptr<link> one, time_point now, std::size_t keep) {
  one->idle_since = now;
  if (per_origin_ == 0 || over(*one, now)) return;
  expire(now);
  auto& waiting = all_[origin];
  if (waiting.size() >= std::max(per_origin_, keep)) {
    waiting.pop_front();
    --size_;
  }
  if (size_ < most_) {
    waiting.push_back(std::move(one));
    ++size_;
  }
  if (waiting.empty()) all_.erase(origin);
}

void idle_links::expire(time_point now) {
  for (auto at = all_.begin(); at != all_.end();) {
    size_ -= std::erase_if(at->second, [&](const auto& one) { return over(*one, now); });
    at = at->second.empty() ? all_.erase(at) : std::next(at);
  }
}

void idle_links::clear() {
  all_.clear();
  size_ = 0;
}

}  // namespace recibo::http
