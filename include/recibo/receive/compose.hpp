// The inverse of extract: a callback as the provider would send it, put where its sources stand and signed. For
// `recibo send` and tests. Pure but for the identifiers that it makes up where none is given.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/http/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace recibo::receive {

// What the callback shall say; empty: absent.
struct composition {
  std::string request_id{}, reference{};
  // The provider's word, of several parts "A/B" where it joins several, or the workflow's event, which is mapped back to the
  // first word that means it.
  std::string event{};
  // Parts of the idempotency key, in the order of its sources; those that are missing are made up.
  std::vector<std::string> key{};
  // The amount in major units (19.99), whatever unit the provider counts in.
  std::string amount{}, currency{}, account{};
  // RFC 3339, written in the form that the source has; any other text is sent as it is. Empty: `at`.
  std::string occurred_at{};
  std::string sequence{};
  // Instead of the provider's own, where the scheme signs the URL.
  std::string public_url{};
  // A body to send as it is: then nothing above is written into JSON or a form.
  std::optional<std::string> body{};
};

// A POST (a GET, where the provider's own callback URLs take nothing else) with its query, headers and body, signed with the
// first secret that is valid at `at`.
// permanent::wrong_usage   two sources that cannot both be written, a value without a source, a word of another number of parts,
// an
//                          amount that its currency does not have, or no valid secret
// permanent::…             what verify::sign refuses
result<http::request> compose(const config::provider& how, const composition& what, sys_micros at);

}  // namespace recibo::receive
