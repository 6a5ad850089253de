// What stands behind the api listener (contract sections 3 and 5): finds the endpoint, checks the token, decodes and
// validates, and answers. Every refusal is a problem of RFC 9457.
#pragma once

#include "recibo/config/load.hpp"
#include "recibo/config/snapshot.hpp"
#include "recibo/http/health.hpp"
#include "recibo/http/server.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/record/work.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace recibo::receive {
class refusals;
}

namespace recibo::api {

// What came of a reload of the configuration: all or nothing (R38).
struct reloaded {
  bool taken = false;
  std::vector<config::diagnostic> problems, warnings;  // as `recibo check` says them
  std::string digest;                                  // of the settings in force now
};

// The last reload, for GET /v1/config.
struct reload_record {
  sys_micros at{};
  std::string by;  // "SIGHUP", the name of a token, or "a changed secret"
  reloaded what;
};

// What the service needs from the rest; everything outlives it. Called on the listener's thread.
struct dependencies {
  const config::snapshot& settings;
  // record::recorder::record, behind a function so that tests can stand in for it.
  std::function<boost::asio::awaitable<result<record::outcome>>(record::work, std::chrono::steady_clock::time_point)> record;
  postgres::pool& pool;
  http::health& health;
  // Prometheus' text format.
  std::function<std::string()> metrics;
  // Reads the configuration again on behalf of `actor`, the name of a token, which goes on record.
  std::function<boost::asio::awaitable<reloaded>(std::string actor)> reload;
  // nullopt: none since the start. Absent: never any.
  std::function<std::optional<reload_record>()> last_reload = {};
  // The latest refused callbacks of this replica; null: none are kept.
  std::shared_ptr<const receive::refusals> refusals = {};
};

class api_service : public http::service {
 public:
  explicit api_service(dependencies with);
  ~api_service() override;

  std::optional<http::response> refuse_early(const http::request& head) override;
  boost::asio::awaitable<http::response> handle(http::request& whole) override;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::api
