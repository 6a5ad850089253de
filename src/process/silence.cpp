#include "recibo/process/silence.hpp"

#include "recibo/config/state_limit.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/transition/disposition.hpp"

#include <algorithm>
#include <utility>

namespace recibo::process {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds listen_limit{5};

}  // namespace

void hearing::heard(std::string_view provider, steady_clock::time_point at) {
  const auto known = last_.find(provider);
  if (known == last_.end()) {
    last_.emplace(std::string(provider), at);
  } else {
    known->second = std::max(known->second, at);
  }
}

std::map<std::string, steady_clock::time_point, std::less<>> hearing::take() { return std::exchange(last_, {}); }

void hearing::give_back(const std::map<std::string, steady_clock::time_point, std::less<>>& untold) {
  for (const auto& [provider, at] : untold) heard(provider, at);
}

bool is_its_voice(std::string_view word) noexcept {
  // Handshakes may be anybody's, and what is turned away at the door was not looked at.
  return transition::parse_disposition(word).has_value();
}

boost::asio::awaitable<std::vector<storage::provider_change>> listen_once(postgres::pool& pool, const config::snapshot& settings,
                                                                          hearing& ears) {
  const auto now_in_force = settings.get();
  const auto heard = ears.take();
  const auto at = steady_clock::now();
  std::vector<storage::provider_watch> all;
  for (const auto& [name, p] : now_in_force->providers) {
    auto& one = all.emplace_back();
    one.provider = name;
    one.alert = p.silence_alert;
    one.resend_gap = config::resend_gap_of(name, *now_in_force);
    if (const auto last = heard.find(name); last != heard.end())
      one.heard_since =
          std::chrono::duration_cast<std::chrono::milliseconds>(std::max(at - last->second, steady_clock::duration::zero()));
  }
  if (all.empty()) co_return std::vector<storage::provider_change>();
  const auto changed = co_await storage::watch_providers(pool, std::move(all), at + listen_limit);
  if (!changed) {
    ears.give_back(heard);
    co_return std::vector<storage::provider_change>();
  }
  for (const auto& one : *changed) {
    if (one.silent) {
      log::warn("a provider has gone silent", {{"provider", one.provider}, {"quiet_s", one.quiet_for.count()}});
    } else {
      log::info("a provider speaks again", {{"provider", one.provider}});
    }
  }
  co_return *changed;
}

}  // namespace recibo::process
