// Verification keys that are not in the configuration but fetched from the provider (signatures.md): the certificates of
// AWS SNS and PayPal by their URL, the keys of Plaid and Circle by their ID. What a request needs is said by
// verify::which_key(), what came back is judged by verify::read_fetched_key(); here it is fetched, kept and bounded:
// one fetch of a key at a time, few new ones a minute (key_budget.hpp), and a failure is remembered, so that whoever invents IDs
// drives little traffic to the provider and shuts out nobody whose key is kept. A key that is not kept waits for one of the
// budgets: who repeats each of his inventions, for as long as he does, can make that wait long after a restart (503).
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/http/client.hpp"
#include "recibo/receive/key_budget.hpp"
#include "recibo/verify/foreign_key.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace recibo::receive {

// Belongs to the thread of its executor.
class key_cache {
 public:
  // http::client::send.
  using fetch_function =
      std::function<boost::asio::awaitable<result<http::outbound_answer>>(http::outbound_request, http::outbound_rules)>;

  struct options {
    // From then on a key that is in use is fetched again, while the old one still serves; and until then it serves at most.
    std::chrono::seconds fresh{3600}, usable{86'400};
    // How long it is remembered that the provider knows no such key, or that it could not be asked: at first, growing with
    // each repetition up to the second.
    std::chrono::seconds absent_first{60}, absent_most{600}, failed_first{1}, failed_most{60};
    // How many keys that were never seen before a provider is asked for.
    key_budget::rules budget{};
    std::size_t entries_most = 512;
    // Whom a chain of certificates has to end in, where the provider sends one (PayPal). nullptr: no such key can be had.
    std::shared_ptr<const verify::trust_store> authorities;
    // The wall clock, for tests.
    std::function<sys_micros()> clock = now;
  };

  key_cache(boost::asio::any_io_executor executor, fetch_function fetch, options how);
  ~key_cache();
  key_cache(const key_cache&) = delete;
  key_cache& operator=(const key_cache&) = delete;

  // From what is kept, or from the provider: then it is waited for until `until`, and the fetch goes on for the next request.
  // `peer`: the address of whoever names the key.
  // permanent::signature_mismatch   the provider knows no such key, or names one that is none (401)
  // transient::not_ready            it could not be asked, or is not asked again yet (503)
  boost::asio::awaitable<result<verify::fetched_key>> get(std::shared_ptr<const config::settings> settings,
                                                          const config::provider& from, verify::needed_key what, std::string peer,
                                                          std::chrono::steady_clock::time_point until);
  // A callback of `provider` from `peer` has verified: new keys that are named from there are not taken for inventions.
  void vouch(std::string_view provider, std::string_view peer);

  // Ends the fetches under way.
  void stop();
  std::size_t size() const noexcept;

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::receive
