// What this replica knows about itself: the truth behind /livez and /readyz (contract section 3).
#pragma once

#include "recibo/app/look.hpp"
#include "recibo/http/health.hpp"
#include "recibo/record/recorder.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace recibo::app {

class readiness final : public http::health {
 public:
  explicit readiness(const record::recorder& recorder) : recorder_(recorder) {}

  http::response livez() override;
  http::response readyz() override;
  bool clock_in_doubt() const noexcept override { return clock_skewed_; }

  // The words of what is missing; empty: ready.
  std::vector<std::string> reasons() const;

  // What the last look at the database found (upkeep).
  void saw(look what);
  void begin_drain() noexcept { draining_ = true; }

 private:
  const record::recorder& recorder_;
  look last_;
  bool looked_ = false, clock_skewed_ = false, draining_ = false;
};

}  // namespace recibo::app
