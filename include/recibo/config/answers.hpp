// What a provider is told about each disposition (contract section 4): the defaults, and its own `answers`. Pure.
// Decided once, when the callback is, and stored with its key: a later change of `answers` changes no old answer (R15).
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/transition/disposition.hpp"

#include <optional>
#include <string>

namespace recibo::config {

struct answer_shape {
  int status = 200;
  // The literal body of a 2xx; an empty string is no body at all. nullopt: the contract's JSON, or a problem when the
  // status is no 2xx.
  std::optional<std::string> body;
};

// Status of the contract's table, without a provider's own.
int default_status(transition::disposition what) noexcept;

answer_shape shape_of(const answers& how, transition::disposition what);

}  // namespace recibo::config
