// The callbacks listener: POST /callbacks/{provider} and /callbacks/{provider}/{token}, bytes → verify → extract → record →
// answer, the verification requests of providers that have some, and the health checks (contract sections 3 and 4). The one place
// on the public side that meets foreign requests.
#pragma once

#include "recibo/config/snapshot.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/http/health.hpp"
#include "recibo/http/server.hpp"
#include "recibo/receive/handshakes.hpp"
#include "recibo/receive/meter.hpp"
#include "recibo/receive/rate.hpp"
#include "recibo/receive/refusals.hpp"
#include "recibo/record/work.hpp"
#include "recibo/verify/callback_token.hpp"
#include "recibo/verify/foreign_key.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace recibo::receive {

// Lives on its listener's thread; `parts` outlive it.
class callbacks : public http::service {
 public:
  // record::recorder::record, with its promises: completes after the commit, or with the reason why nothing is known to
  // be recorded.
  using record_function =
      std::function<boost::asio::awaitable<result<record::outcome>>(record::work, std::chrono::steady_clock::time_point)>;

  using fetch_function = std::function<boost::asio::awaitable<result<int>>(const config::provider&, std::string,
                                                                           std::chrono::steady_clock::time_point)>;
  using key_function = std::function<boost::asio::awaitable<result<verify::fetched_key>>(
      std::shared_ptr<const config::settings>, const config::provider&, verify::needed_key, std::string peer,
      std::chrono::steady_clock::time_point)>;

  struct parts {
    std::shared_ptr<const config::snapshot> settings;
    record_function record;
    std::shared_ptr<http::health> health;
    std::shared_ptr<meter> counts;
    // GETs a URL that a signed handshake names and handshakes.hpp has checked; the status. Follows no redirect, reads no private
    // network but those of verify.fetch.allow. Absent: such a handshake is answered 503.
    fetch_function fetch{};
    // key_cache::get, for the schemes whose keys are fetched; without it they get 503.
    key_function keys;
    // key_cache::vouch: a callback that a fetched key verified.
    std::function<void(std::string_view provider, std::string_view peer)> vouch = {};
    // The wall clock, for tests.
    std::function<sys_micros()> clock = now;
    // Where refused signatures are remembered; null: nowhere.
    std::shared_ptr<receive::refusals> refused = {};
  };

  explicit callbacks(parts p);

  // 404 for a path or provider that is not there, 405 with Allow, 415 for a coded body: before the body is awaited.
  std::optional<http::response> refuse_early(const http::request& head) override;
  // Everything else. Whatever is wrong with the signature, the answer is one and the same 401; 503 where our clock is in
  // doubt and a time stamp was refused. Counts, and writes a log line for each callback that is refused.
  // The provider's answer_within counts from here: how long a sender took to send is its own affair.
  boost::asio::awaitable<http::response> handle(http::request& whole) override;

 private:
  std::optional<http::response> refuse(const http::request& head, const config::settings& now) const;
  // Verified and extracted, or a handshake, or the answer that needs no record.
  // `fetched`: the key that the request names, or nullptr where its scheme has none to name. `meant`: the operation of the
  // callback URL; nullptr where the provider has one URL for all.
  std::variant<http::response, signed_handshake, record::work> judge(http::request& whole,
                                                                     std::shared_ptr<const config::settings> settings,
                                                                     const config::provider& from,
                                                                     const verify::fetched_key* fetched,
                                                                     const verify::callback_identity* meant);
  // What a verified request has to record; or the answer, where all of it is ignored by rule. `unusable`: why it is kept as
  // unprocessable, whatever it holds.
  std::variant<http::response, signed_handshake, record::work> read(http::request& whole, record::callback common,
                                                                    const config::provider& from,
                                                                    const verify::signed_message& signed_part,
                                                                    std::optional<error> unusable);
  // The key that this request needs and the configuration does not have; nullopt: none. `refusal` is filled with the answer
  // when it cannot be had: 401 where there is no such key, 503 where the provider could not be asked.
  boost::asio::awaitable<std::optional<verify::fetched_key>> fetch_key(const http::request& whole,
                                                                       std::shared_ptr<const config::settings> settings,
                                                                       const config::provider& from,
                                                                       std::chrono::steady_clock::time_point until,
                                                                       std::optional<http::response>& refusal);
  // What an answer tells of its request, where known.
  struct known_ids {
    std::string delivery_id, request_id, trace_id;
  };
  // A handshake's answer, counted and logged.
  http::response shake(http::response told, const http::request& whole, const config::provider& from);
  // 401, counted and logged.
  http::response unauthenticated(const error& why, const http::request& whole, const config::provider& from);
  // The same, and remembered for whoever asks why: what is told by `why` alone, and what has to be looked into.
  http::response refuse_told(verify::cause cause, const error& why, const http::request& whole, const config::provider& from);
  http::response refuse_signature(const error& why, const http::request& whole, const config::settings& settings,
                                  const config::provider& from, const verify::signed_message& signed_part);
  http::response refuse_record(const error& why, const known_ids& known, const config::provider& from);

  parts parts_;
  rate_limiter rates_;
};

}  // namespace recibo::receive
