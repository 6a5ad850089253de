#include "carrier.hpp"

#include "recibo/notify/message.hpp"

#include <algorithm>
#include <utility>

namespace recibo::notify {
namespace {

using std::chrono::milliseconds;

// An answer beyond it is cut: only its status counts.
constexpr std::size_t answer_most = 4 << 10;

class http_carrier final : public carrier {
 public:
  explicit http_carrier(http::client& client) : client_(client) {}

  boost::asio::awaitable<sent> send(const config::destination& to, parcel one) override {
    sent out;
    auto headers = headers_of(one.what, one.body, to.keys, recibo::now());
    if (!headers) {
      out.judged = {verdict::unsigned_now, "no_valid_secret", false, {}};
      out.unsent = true;
      co_return out;
    }
    http::outbound_request request;
    request.method = "POST";
    request.url = to.parsed_url;
    request.headers = std::move(*headers);
    request.body = std::move(one.body);
    // It is at-least-once anyway, and carries its ID.
    request.repeatable = true;
    http::outbound_rules rules;
    rules.timeout = to.timeout;
    rules.connect_timeout = std::min<milliseconds>(rules.connect_timeout, to.timeout);
    rules.body_limit = answer_most;
    rules.cut_body = true;
    rules.plain_http = !to.parsed_url.tls;
    rules.allow = to.allow_networks;
    rules.keep_idle = static_cast<std::size_t>(to.concurrency);
    auto pending = client_.send(std::move(request), std::move(rules));
    const auto answer = co_await std::move(pending);
    if (!answer) {
      out.judged = judge(answer.error());
      out.unsent = !out.judged.theirs;  // it was refused here
      out.excerpt = excerpt_of_ours(answer.error().detail);
      co_return out;
    }
    out.answer_status = answer->status;
    const auto now = recibo::now();
    out.judged = judge(answer->status, longest_wish(answer->headers, now), now);
    if (out.judged.what != verdict::delivered) out.excerpt = excerpt_of(answer->body);
    co_return out;
  }

  // Who sends is cancelled; the client is everybody's.
  void stop() override {}
  boost::asio::awaitable<void> wait(std::chrono::steady_clock::time_point) override { co_return; }

 private:
  http::client& client_;
};

}  // namespace

std::unique_ptr<carrier> make_http_carrier(http::client& client) { return std::make_unique<http_carrier>(client); }

}  // namespace recibo::notify
