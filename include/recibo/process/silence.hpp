// Providers that have gone quiet (R30): a fault that sends nothing is noticed by nobody else. All replicas hear for one another,
// and one of them tells, once when it begins and once when it ends: in the log, and those destinations that ask for it.
#pragma once

#include "recibo/config/snapshot.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/activity.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::process {

// What this replica has heard since it last told the others. Lives on one thread.
class hearing {
 public:
  struct voice {
    std::chrono::steady_clock::time_point last;
    std::int64_t callbacks = 0;
  };
  using voices = std::map<std::string, voice, std::less<>>;

  // A callback of the provider has verified, whatever becomes of it.
  void heard(std::string_view provider, std::chrono::steady_clock::time_point at, std::int64_t callbacks = 1);
  // What was heard since the last call, which is forgotten: what could not be told is given back.
  voices take();
  void give_back(const voices& untold);

 private:
  voices all_;
};

// Whether an answer with this word (a disposition, or one of the words beside them) was to the provider itself: it verified.
bool is_its_voice(std::string_view word) noexcept;

// One round over the configured providers; call it while this replica is ready to take callbacks. All outlive it. Returns
// what changed; nothing when the database is away.
boost::asio::awaitable<std::vector<storage::provider_change>> listen_once(postgres::pool& pool, const config::snapshot& settings,
                                                                          hearing& ears);

}  // namespace recibo::process
