// Fetches what a verified handshake names: the SubscribeURL of AWS SNS, whose host receive has judged.
#pragma once

#include "recibo/core/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <string>

namespace recibo::http {
class client;
}

namespace recibo::app {

// GETs `url` over TLS and returns the status; follows no redirect and reaches no private network. Everything is over by `until`.
// `by` outlives it.
// permanent::malformed_field   no URL
// otherwise                    the errors of http::client::send
boost::asio::awaitable<result<int>> fetch_confirmation(http::client& by, std::string url,
                                                       std::chrono::steady_clock::time_point until);

}  // namespace recibo::app
