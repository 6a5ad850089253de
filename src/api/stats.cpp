// GET /v1/stats: how much there is, by provider and state.
#include "handlers.hpp"

#include <utility>

namespace recibo::api {
namespace {

// Consoles ask often, and counting is the most expensive question there is.
constexpr std::chrono::seconds kept{5};

http::response answer_text(const std::string& body) {
  http::response out;
  out.body = body;
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

boost::asio::awaitable<http::response> read_stats(inside& in, call& of) {
  if (std::chrono::steady_clock::now() < in.statistics_until) co_return answer_text(in.statistics);
  auto found = co_await storage::read_statistics(in.with.pool, of.until);
  if (!found) co_return refuse(of, found.error());
  json_writer out;
  out.begin_object().time("as_of", found->read_at).flag("exact", found->exact).key("operations").begin_array();
  for (const auto& c : found->operations) {
    out.begin_object().text("provider", c.provider).text("state", c.state).number("count", c.count).end_object();
  }
  out.end_array();
  out.number("reviews_open", found->reviews_open)
      .number("failed_callbacks", found->failed_callbacks)
      .number("parked", found->parked)
      .end_object();
  in.statistics = out.take();
  in.statistics_until = std::chrono::steady_clock::now() + kept;
  co_return answer_text(in.statistics);
}

}  // namespace

void add_stats(endpoint_table& to) {
  endpoint e;
  e.method = "GET";
  e.path = "/v1/stats";
  e.id = "readStats";
  e.tag = "operations";
  e.summary = "Counts of operations by provider and state, and of what waits for a person.";
  e.answers = {
      {200,
       "The counts, at most five seconds old.",
       object({
           required("as_of", instant()),
           required("exact", about(boolean(), "False: there is too much to count, and this is scaled up from a sample.")),
           required("operations",
                    list(object({required("provider", string()), required("state", string()), required("count", integer())}))),
           required("reviews_open", integer()),
           required("failed_callbacks", integer()),
           required("parked", about(integer(), "Callbacks that wait for their operation.")),
       }),
       "application/json",
       {}}};
  e.run = read_stats;
  to.endpoints.push_back(std::move(e));
}

}  // namespace recibo::api
