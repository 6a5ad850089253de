// What the receiving side counts (contract section 8). The application wires it to the metrics.
#pragma once

#include "recibo/core/clock.hpp"

#include <chrono>
#include <string_view>

namespace recibo::receive {

// Called on the listener's thread; must neither block nor throw. `provider` is always a configured name (S40).
class meter {
 public:
  virtual ~meter() = default;
  // `what`: the word of a disposition (a replay is "duplicate"), or "unauthenticated", "unavailable", "overloaded".
  virtual void callback(std::string_view provider, std::string_view what) noexcept = 0;
  // `reason`: the code word of the error, for example "signature_mismatch".
  virtual void signature_failure(std::string_view provider, std::string_view reason) noexcept = 0;
  // `stage`: "verify" or "total".
  virtual void stage(std::string_view provider, std::string_view stage, std::chrono::duration<double> took) noexcept = 0;
  // A secret verified a callback (R38).
  virtual void secret_used(std::string_view provider, std::string_view secret_name, sys_micros at) noexcept = 0;
};

}  // namespace recibo::receive
