// The latest callbacks that were refused for their signature, by provider, in the memory of this replica: for whoever asks
// why a provider gets 401. Of the request itself only its peer and trace ID are kept. Unauthenticated traffic costs a bounded
// amount of memory, and a bounded share of time: only some refusals are looked into (verify/diagnose.hpp).
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/http/message.hpp"
#include "recibo/receive/rate.hpp"
#include "recibo/verify/diagnose.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::receive {

// Refusals that are alike: same reason, same cause, same secret. A flood is one entry with a high count.
struct refusal_entry {
  sys_micros first_at{}, last_at{};
  std::uint64_t count = 0;
  std::string reason;       // the word of the error, as in the metric
  std::string cause;        // the word of the diagnosis
  std::string explanation;  // for people, of the latest
  std::string secret;       // name of the secret that made the signature all the same; empty: none
  std::string last_peer, last_trace_id;
};

// Lives on the thread of the listeners.
class refusals {
 public:
  static constexpr std::size_t kept_max = 20;  // entries for each provider

  // `why`: what verify() or which_key() said of `message`, which is looked into when there is time for it.
  void add(const config::settings& settings, const config::provider& from, const verify::signed_message& message,
           const error& why, const http::request& whole, sys_micros at, std::chrono::steady_clock::time_point now);

  // What needs no look: the key that a request names is none, or its URL is no operation's. `why` is all there is to say.
  void add_told(const config::provider& from, verify::cause cause, const error& why, const http::request& whole, sys_micros at);

  // Newest first; empty for a provider that refused nothing.
  std::vector<refusal_entry> latest(std::string_view provider) const;

 private:
  void note(const config::provider& from, refusal_entry made, const http::request& whole, sys_micros at);
  refusal_entry& entry_for(std::string_view provider, refusal_entry made);

  std::map<std::string, std::deque<refusal_entry>, std::less<>> entries_;  // the latest at the back
  rate_limiter looks_;
};

}  // namespace recibo::receive
