// What is known of a preset's provider beside its signatures (R18): how long it waits, which answers it wants, how it sends
// again, and which verification request it has. Defaults that the configuration overrides. The data are
// src/config/provider_profiles.json, which is embedded; docs/providers/ is made of the same file.
#pragma once

#include "recibo/config/handshake.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::config {

struct profile {
  // Only where it needs nothing but the secret; others are configured.
  std::optional<handshake_kind> handshake;
  // A fifth less than the provider's limit, for the way there and back.
  std::optional<std::chrono::milliseconds> answer_within;
  // Statuses by disposition word, where the usual ones would hurt: a 4xx that switches the endpoint off, drops the event or holds
  // back what is behind it; a 2xx that this provider does not take for success.
  std::map<std::string, int> statuses;
  // The literal body of a 2xx; "": none.
  std::optional<std::string> body;
  std::string content_type = "application/json";
  // From the first attempt to the second, at least, and from the first to the last. nullopt: no source says, or there is no
  // second.
  std::optional<std::chrono::seconds> resend_gap, resend_span;
};

// nullptr: nothing is known. Parsed once; thread-safe; lives as long as the process.
const profile* find_profile(std::string_view preset);
// All of them by preset.
const std::map<std::string, profile, std::less<>>& profiles();

}  // namespace recibo::config
