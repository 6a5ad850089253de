// Connections that wait for their next request, by origin. Bounded in number, in time unused and in age.
#pragma once

#include "link.hpp"

#include "recibo/http/client.hpp"

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace recibo::http {

class idle_links {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit idle_links(const client_options& bounds)
      : per_origin_(bounds.idle_per_destination),
        most_(bounds.idle_most),
        timeout_(bounds.idle_timeout),
        lifetime_(bounds.lifetime) {}

  // The one used last that is still alive, or nullptr. Its address has to pass the rules of this very request: another
  // one's may have been wider.
  std::unique_ptr<link> take(const std::string& origin, std::span<const network> allow, time_point now);
  // `keep`: of this origin; 0: as of any.
  void put(const std::string& origin, std::unique_ptr<link> one, time_point now, std::size_t keep = 0);
  // Closes those that have waited too long.
  void expire(time_point now);
  void clear();
  std::size_t size() const noexcept { return size_; }

 private:
  bool over(const link& one, time_point now) const noexcept {
    return now - one.idle_since >= timeout_ || now - one.born >= lifetime_;
  }

  const std::size_t per_origin_, most_;
  const std::chrono::milliseconds timeout_, lifetime_;
  std::map<std::string, std::deque<std::unique_ptr<link>>> all_;
  std::size_t size_ = 0;
};

}  // namespace recibo::http
