#include "confirm.hpp"

#include "recibo/http/client.hpp"

#include <algorithm>

namespace recibo::app {

boost::asio::awaitable<result<int>> fetch_confirmation(http::client& by, std::string url, std::vector<network> allow,
                                                       std::chrono::steady_clock::time_point until) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
  if (left <= milliseconds(0)) co_return error(transient::deadline_passed);
  auto target = parse_http_url(url);
  if (!target.url) co_return malformed("the confirmation's URL is none: " + target.why);
  http::outbound_request what;
  what.url = std::move(*target.url);
  http::outbound_rules rules;
  rules.timeout = left;
  rules.connect_timeout = std::min(rules.connect_timeout, left);
  rules.cut_body = true;
  rules.allow = std::move(allow);
  auto pending = by.send(std::move(what), std::move(rules));
  const auto answer = co_await std::move(pending);
  if (!answer) co_return answer.error();
  co_return answer->status;
}

}  // namespace recibo::app
