#include "readiness.hpp"

#include "recibo/core/json.hpp"
#include "recibo/http/problem.hpp"
#include "recibo/observe/log.hpp"

namespace recibo::app {

http::response readiness::livez() {
  http::response r;
  r.body = R"({"status":"live"})";
  return r;
}

std::vector<std::string> readiness::reasons() const {
  std::vector<std::string> out;
  if (draining_) out.emplace_back("draining");
  if (!looked_) {
    out.emplace_back("starting");
    return out;
  }
  if (!last_.reached) out.emplace_back("database_away");
  if (last_.reached) {
    if (last_.read_only) out.emplace_back("database_read_only");
    if (!last_.schema_fits) out.emplace_back("schema_mismatch");
    if (last_.schema_fits && last_.partitions_ahead < partitions_ahead_min) out.emplace_back("partitions_missing");
    if (clock_skewed_) out.emplace_back("clock_skewed");
    if (!recorder_.healthy()) out.emplace_back("recorder_not_writing");
  }
  return out;
}

http::response readiness::readyz() {
  const auto missing = reasons();
  http::response r;
  if (missing.empty()) {
    r.body = R"({"status":"ready","reasons":[]})";
    return r;
  }
  r = http::problem(503, "not_ready", "This replica should get no traffic now.");
  // The problem, with one member more (RFC 9457, extension members).
  r.body.pop_back();
  r.body += R"(,"reasons":[)";
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (i > 0) r.body += ',';
    append_json_string(r.body, missing[i]);
  }
  r.body += "]}";
  return r;
}

void readiness::saw(look what) {
  const bool skewed = what.reached ? std::chrono::abs(what.clock_skew) > what.clock_skew_max : clock_skewed_;
  if (skewed != clock_skewed_)
    log::warn(skewed ? "clock in doubt: it disagrees with the database's" : "clock agrees with the database's again",
              {{"skew_ms", std::chrono::duration_cast<std::chrono::milliseconds>(what.clock_skew).count()}});
  if (what.reached && !what.schema_fits && (!looked_ || last_.schema_fits || !last_.reached))
    log::error("schema does not fit this binary", {{"detail", what.schema_why}});
  clock_skewed_ = skewed;
  last_ = std::move(what);
  looked_ = true;
}

}  // namespace recibo::app
