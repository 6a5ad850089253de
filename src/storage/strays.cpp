#include "recibo/storage/strays.hpp"

#include <utility>

namespace recibo::storage {
namespace {

// The names in an index, one after the other.
std::string names_where(const std::string& name, const std::string& condition) {
  const std::string least = "SELECT min(n.destination) AS name FROM recibo.notifications n WHERE " + condition;
  return name + " AS ((" + least + ") UNION ALL SELECT (" + least + " AND n.destination > last.name) FROM " + name +
         " last WHERE last.name IS NOT NULL)";
}
const std::string is_pending = "n.status = 'pending'", is_stopped = "n.status IN ('held', 'dead')";
// Those of one name, as many as are counted, in the order of the index.
std::string first_where(const std::string& condition, const std::string& order) {
  return "(SELECT n.status, n.created_at FROM recibo.notifications n WHERE n.destination = found.name AND " + condition +
         " ORDER BY " + order + " LIMIT " + std::to_string(strays_counted) + " + 1)";
}

const postgres::statement select_strays{
    "find_strays",
    "WITH RECURSIVE " + names_where("waiting", is_pending) + ", " + names_where("stopped", is_stopped) +
        " SELECT found.name, p.waiting + s.held, s.dead, coalesce(extract(epoch FROM now() - s.since), 0)::int8 "
        "FROM (SELECT w.name FROM waiting w UNION SELECT s.name FROM stopped s) found "
        "CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM " +
        first_where(is_pending, "coalesce(n.next_attempt_at, n.created_at)") +
        " one) p CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE one.status = 'held') AS held, count(*) FILTER (WHERE "
        "one.status = 'dead') AS dead, min(one.created_at) FILTER (WHERE one.status = 'held') AS since FROM " +
        first_where(is_stopped, "n.operation, n.sequence") +
        " one) s WHERE found.name IS NOT NULL AND found.name <> ALL($1) ORDER BY 1",
    {postgres::oid::text_array}};

}  // namespace

boost::asio::awaitable<result<std::vector<stray_destination>>> find_strays(postgres::pool& pool,
                                                                           std::vector<std::string> configured,
                                                                           postgres::deadline until) {
  postgres::binary_array names(postgres::oid::text);
  for (const auto& name : configured) names.add(name);
  postgres::parameters with;
  with.array(std::move(names));
  auto found = co_await pool.query(select_strays, std::move(with), until);
  if (!found) co_return found.error();
  std::vector<stray_destination> out;
  for (int i = 0; i < found->size(); ++i)
    out.push_back({found->string(i, 0), found->int8(i, 1), found->int8(i, 2), std::chrono::seconds(found->int8(i, 3))});
  co_return out;
}

std::string told(const stray_destination& one) {
  const auto count = one.waiting > strays_counted ? "more than " + std::to_string(strays_counted) : std::to_string(one.waiting);
  return count + (one.waiting == 1 ? " notification waits" : " notifications wait") + " for \"" + one.name +
         "\", which the configuration does not name: nobody sends " + (one.waiting == 1 ? "it" : "them");
}

}  // namespace recibo::storage
