// A provider's configured rate as a token bucket (429 over it). Pure but for its own buckets; one thread.
#pragma once

#include "recibo/config/settings.hpp"

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace recibo::receive {

class rate_limiter {
 public:
  // Takes a token of this provider's bucket; false when there is none. A bucket starts full, holds `burst` tokens (one
  // second's worth when that is 0, at least one) and gains `per_second`. A changed rate takes effect with the next call.
  // Call it for configured providers only: each name has a bucket.
  bool take(std::string_view provider, const config::rate& allowed, std::chrono::steady_clock::time_point now);

 private:
  struct bucket {
    double tokens = 0;
    std::chrono::steady_clock::time_point filled_at;
  };
  std::map<std::string, bucket, std::less<>> buckets_;
};

}  // namespace recibo::receive
