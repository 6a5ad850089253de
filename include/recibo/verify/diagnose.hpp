// Why a request does not verify: repeats the verification with one thing changed, then with two, until it succeeds, and says
// what was changed. For people who connect a provider; nothing here decides about a callback.
// Pure: no I/O and no clock; safe from any thread. It knows schemes only by what they say of themselves and by verify().
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/verify/keyring.hpp"
#include "recibo/verify/scheme.hpp"
#include "recibo/verify/verifier.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::verify {

// The most likely reason, as a word for programs.
enum class cause {
  none,               // it verifies
  header_missing,     // no signature where the scheme looks for it, nor anywhere else
  header_renamed,     // it verifies with the signature of another header
  header_repeated,    // a signature, time stamp or signed field stands twice
  signature_form,     // another prefix or encoding than configured
  timestamp_missing,  // the scheme needs a time stamp
  timestamp_form,     // not in the scheme's format, such as milliseconds for seconds
  too_old,            // signed longer ago than the tolerance: a queue, a late resend, a recorded request
  clock_ahead,        // signed in what is the future here: one of the two clocks is wrong
  content_missing,    // a header or field that the scheme signs is absent
  body_changed,       // the body is not the bytes that were signed, and how it was changed is known
  url_differs,        // the provider signed another spelling of the URL
  secret_not_valid,   // made by a secret outside its `from` and `until`
  secret_form,        // the secret's text is to be decoded otherwise, or has blanks that do not belong to it
  other_provider,     // made by a secret of another provider of this configuration
  other_scheme,       // it verifies by another preset, or another hash
  secret_of_nobody,   // nothing that is known here made it, at least by none of the usual mistakes: most likely another secret
  key_unknown,        // the request names a key that is not the provider's, or that the provider does not know
  callback_url,       // its URL is no operation's: a wrong or expired token, or none
  not_examined,       // the search was bounded away before the usual mistakes were through
};
std::string_view to_string(cause c) noexcept;

// Another provider of the same configuration: its secret may have been given by mistake.
struct other_sender {
  std::string_view name;
  const scheme* how = nullptr;
  const keyring* keys = nullptr;
};

// What a search may cost. Bytes are those of bodies that are hashed again.
struct effort {
  std::size_t trials_max = 20'000;
  std::size_t bytes_max = std::size_t{256} << 20;
};
// For requests of strangers: one to two milliseconds. Enough for the usual mistakes with some sixty providers.
inline constexpr effort small_effort{200, std::size_t{1} << 20};

struct question {
  const scheme& how;
  const signed_message& message;
  const keyring& keys;
  sys_micros now;
  std::span<const other_sender> others{};
  effort bound{};
  const fetched_key* fetched = nullptr;  // as verify() takes it
};

struct diagnosis {
  // As verify() says it.
  result<std::string> verdict = std::string();
  cause why = cause::none;
  // Sentences for people: no secret, no value of the request; header names only of a request that was proved authentic.
  std::string explanation;
  // Name of the secret that made the signature, by the changes of the explanation; empty: not found.
  std::string secret;
  std::size_t trials = 0;
};

diagnosis diagnose(const question& asked);

// What a scheme finds in a request, for people who compare it with what they sent.
struct findings {
  // Of each place where a signature may stand: its name, how often it is there, and the length of its first value.
  struct place_found {
    std::string name;
    int times = 0;
    std::size_t length = 0;
  };
  std::vector<place_found> signatures;
  // The time stamp as received, escaped and cut; nullopt: the scheme has none, or it is not there.
  std::optional<std::string> timestamp;
  // Its distance from now, positive in the past; nullopt: it cannot be read.
  std::optional<std::chrono::seconds> age;
  // Bytes that are signed, escaped and cut to `shown_max`, the secret's place as {secret}; nullopt: a part is absent, or
  // the scheme's content is made by code of its own.
  std::optional<std::string> content;
  std::size_t content_size = 0;
};
inline constexpr std::size_t shown_max = 1024;

findings look_into(const scheme& how, const signed_message& message, sys_micros now);

}  // namespace recibo::verify
