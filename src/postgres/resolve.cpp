#include "resolve.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace recibo::postgres {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

struct lookup {
  explicit lookup(const asio::any_io_executor& executor) : resolver(executor), done(executor) {}
  tcp::resolver resolver;  // asks on a thread of its own
  asio::steady_timer done;
  std::vector<std::string> addresses;
};

}  // namespace

asio::awaitable<std::vector<target>> resolve(asio::any_io_executor executor, target at, deadline until) {
  if (!at.needs_lookup()) {
    std::vector<target> as_it_is;
    as_it_is.push_back(std::move(at));
    co_return as_it_is;
  }
  // A lookup that has begun cannot be stopped, only given up: its handler keeps what it writes to alive.
  const auto asked = std::make_shared<lookup>(executor);
  asked->done.expires_at(until);
  asked->resolver.async_resolve(at.host, "", [asked](boost::system::error_code ec, const tcp::resolver::results_type& found) {
    if (!ec) {
      for (const auto& entry : found) {
        auto address = entry.endpoint().address().to_string();
        if (std::find(asked->addresses.begin(), asked->addresses.end(), address) == asked->addresses.end()) {
          asked->addresses.push_back(std::move(address));
        }
      }
    }
    asked->done.cancel();
  });
  co_await asked->done.async_wait(asio::as_tuple(asio::use_awaitable));
  asked->resolver.cancel();

  std::vector<target> out;
  for (const auto& address : asked->addresses) {
    out.push_back(at);
    out.back().hostaddr = address;
  }
  co_return out;
}

}  // namespace recibo::postgres
