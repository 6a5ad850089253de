#include "recibo/receive/rate.hpp"

#include <algorithm>

namespace recibo::receive {

bool rate_limiter::take(std::string_view provider, const config::rate& allowed, std::chrono::steady_clock::time_point now) {
  const double size = std::max(1.0, allowed.burst > 0 ? allowed.burst : allowed.per_second);
  auto at = buckets_.find(provider);
  if (at == buckets_.end()) at = buckets_.emplace(std::string(provider), bucket{size, now}).first;
  bucket& mine = at->second;
  const double gained = std::chrono::duration<double>(now - mine.filled_at).count() * allowed.per_second;
  mine.tokens = std::min(size, mine.tokens + std::max(0.0, gained));
  mine.filled_at = now;
  if (mine.tokens < 1) return false;
  mine.tokens -= 1;
  return true;
}

}  // namespace recibo::receive
