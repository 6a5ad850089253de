// Providers that have gone quiet (R30): a fault that sends nothing is noticed by nobody else. All replicas hear for one another,
// and one of them tells, once when it begins and once when it ends.
#pragma once

#include "recibo/config/snapshot.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/activity.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::process {

// What this replica has heard since it last told the others. Lives on one thread.
class hearing {
 public:
  // A callback of the provider has verified, whatever becomes of it.
  void heard(std::string_view provider, std::chrono::steady_clock::time_point at);
  // Each since when, and forgets it: what could not be told is given back.
  std::map<std::string, std::chrono::steady_clock::time_point, std::less<>> take();
  void give_back(const std::map<std::string, std::chrono::steady_clock::time_point, std::less<>>& untold);

 private:
  std::map<std::string, std::chrono::steady_clock::time_point, std::less<>> last_;
};

// Whether an answer with this word (a disposition, or one of the words beside them) was to the provider itself: it verified.
bool is_its_voice(std::string_view word) noexcept;

// One round over the configured providers; call it while this replica is ready to take callbacks. All outlive it. Returns
// what changed; nothing when the database is away.
boost::asio::awaitable<std::vector<storage::provider_change>> listen_once(postgres::pool& pool, const config::snapshot& settings,
                                                                          hearing& ears);

}  // namespace recibo::process
