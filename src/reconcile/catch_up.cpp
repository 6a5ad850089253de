#include "recibo/reconcile/catch_up.hpp"

#include "recibo/observe/log.hpp"

#include <utility>

namespace recibo::reconcile {

boost::asio::awaitable<result<std::vector<storage::catch_up_id>>> start_catch_ups(
    postgres::pool& pool, std::shared_ptr<const config::settings> settings, std::string by, sys_micros since,
    postgres::deadline until) {
  std::vector<storage::catch_up_id> out;
  for (const auto& [name, of] : settings->providers) {
    if (!of.status) continue;
    const auto id = co_await storage::start_catch_up(pool, name, by, since, until);
    if (!id) co_return id.error();
    log::info("a catch-up is wanted", {{"provider", name}, {"catch_up_id", to_string(*id)}, {"actor", by}});
    out.push_back(*id);
  }
  co_return out;
}

}  // namespace recibo::reconcile
