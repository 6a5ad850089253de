// Fetches what a verified handshake names: the SubscribeURL of AWS SNS, whose host receive has judged.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/core/network.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace recibo::http {
class client;
}

namespace recibo::app {

// GETs `url` over TLS and returns the status; follows no redirect and reaches no private network but those of `allow`. Everything
// is over by `until`. `by` outlives it.
// permanent::malformed_field   no URL
// otherwise                    the errors of http::client::send
boost::asio::awaitable<result<int>> fetch_confirmation(http::client& by, std::string url, std::vector<network> allow,
                                                       std::chrono::steady_clock::time_point until);

}  // namespace recibo::app
