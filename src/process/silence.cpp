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

void hearing::heard(std::string_view provider, steady_clock::time_point at, std::int64_t callbacks) {
  auto known = all_.find(provider);
  if (known == all_.end()) known = all_.emplace(std::string(provider), voice{at, 0}).first;
  known->second.last = std::max(known->second.last, at);
  known->second.callbacks += callbacks;
}

hearing::voices hearing::take() { return std::exchange(all_, {}); }

void hearing::give_back(const voices& untold) {
  for (const auto& [provider, one] : untold) heard(provider, one.last, one.callbacks);
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
    if (const auto voice = heard.find(name); voice != heard.end()) {
      const auto ago = std::max(at - voice->second.last, steady_clock::duration::zero());
      one.heard_since = std::chrono::duration_cast<std::chrono::milliseconds>(ago);
      one.callbacks = voice->second.callbacks;
    }
    one.look_ups = p.status && !(p.list && p.list->instead);
    one.event_list = p.list.has_value();
    if (!p.expected_rate) continue;
    one.at_least = p.expected_rate->at_least;
    one.within = p.expected_rate->within;
  }
  if (all.empty()) co_return std::vector<storage::provider_change>();
  std::vector<storage::silence_listener> listeners;
  for (const auto& [name, to] : now_in_force->destinations)
    for (const char* type : {"provider.silent", "provider.resumed"})
      if (to.subscribes(type)) listeners.push_back({name, type});
  const auto changed = co_await storage::watch_providers(pool, std::move(all), std::move(listeners), at + listen_limit);
  if (!changed) {
    ears.give_back(heard);
    co_return std::vector<storage::provider_change>();
  }
  for (const auto& one : *changed) {
    if (one.silent) {
      log::warn("a provider has gone silent",
                {{"provider", one.provider}, {"reason", one.reason}, {"quiet_s", one.quiet_for.count()}});
    } else {
      log::info("a provider speaks again", {{"provider", one.provider}});
    }
  }
  co_return *changed;
}

}  // namespace recibo::process
