// Lists of operations: bounded looks, one after the other, over what has no index (decision 2).
#include "reads_operation.hpp"
#include "search.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::deadline;
using postgres::parameters;
using postgres::statement;

// Where the rows of a list come from, in the order of their IDs: a window of the table, or what an index names.
enum class origin {
  window,
  reference,
  metadata,
  review,
  overdue,
};
constexpr std::size_t origin_count = 5;

std::string candidates_of(origin from) {
  switch (from) {
    case origin::window: return "";
    case origin::reference:
      return "SELECT DISTINCT a.operation AS id FROM recibo.aliases a WHERE a.provider = ANY($15) AND a.alias = $14";
    case origin::metadata:
      return "SELECT m.operation AS id FROM recibo.registrations m WHERE m.metadata <> '{}' AND (m.metadata @> $12 OR m.metadata "
             "@> $13) UNION SELECT m.operation FROM recibo.corrections m WHERE m.metadata <> '{}' AND (m.metadata @> $12 OR "
             "m.metadata @> $13)";
    case origin::review: return "SELECT DISTINCT v.operation AS id FROM recibo.reviews v WHERE v.status = 'open'";
    case origin::overdue:
      return "SELECT t.operation AS id FROM recibo.timers t WHERE t.fired_at IS NULL AND t.due_at <= now() UNION "
             "SELECT t.operation FROM recibo.timers t WHERE t.fired_at IS NOT NULL";
  }
  return "";
}

// The operations that `ids` names, one by one: not all of them in their order until enough have been met.
std::string sources_of(const std::string& ids) {
  constexpr std::string_view all = "recibo.operations o ";
  assert(operation_source.starts_with(all));
  return ids + " CROSS JOIN LATERAL (SELECT * FROM recibo.operations x WHERE x.id = " + ids + ".id OFFSET 0) o " +
         operation_source.substr(all.size());
}

// One look at up to $3 operations behind $1, of which up to $4 that pass the filters come back, each with where the look
// ended and how many it saw: in one statement, so that both are of one instant.
statement make_list(origin from, bool newest_first) {
  const std::string order = newest_first ? " DESC" : "";
  const std::string bounds = newest_first ? "s.id < $1 AND s.id > $2" : "s.id > $1 AND s.id < $2";
  const auto candidates = candidates_of(from);
  std::string sql = "WITH ";
  if (!candidates.empty()) sql += "c AS MATERIALIZED (" + candidates + "), ";
  sql += "w AS MATERIALIZED (SELECT s.id FROM " + std::string(candidates.empty() ? "recibo.operations" : "c") + " s WHERE " +
         bounds + " ORDER BY s.id" + order + " LIMIT $3), ";
  sql +=
      "page AS MATERIALIZED (SELECT w.id FROM " + sources_of("w") +
      "WHERE ($5 IS NULL OR o.state = $5) AND ($6 IS NULL OR o.provider = $6) AND ($8 IS NULL OR " + registered("client") +
      " = $8) "
      "AND ($7 IS NULL OR o.workflow IN (SELECT v.version_key FROM recibo.workflow_versions v WHERE v.name = $7)) "
      "AND ($9 IS NULL OR o.review_open = $9) "
      "AND ($10 IS NULL OR r.accepted_at >= $10) AND ($11 IS NULL OR r.accepted_at < $11) "
      "AND ($12 IS NULL OR " +
      registered("metadata") + " @> $12 OR " + registered("metadata") +
      " @> $13) "
      "AND ($14 IS NULL OR EXISTS (SELECT FROM recibo.aliases a WHERE a.operation = o.id AND a.alias = $14)) AND ($15 IS NULL OR "
      "true) "
      "AND ($16 IS NULL OR $16 = EXISTS (SELECT FROM recibo.timers t WHERE t.operation = o.id AND t.due_at <= now())) "
      "ORDER BY w.id" +
      order + " LIMIT $4) ";
  sql += "SELECT " + operation_columns + ", (SELECT w.id FROM w ORDER BY w.id" + std::string(newest_first ? "" : " DESC") +
         " LIMIT 1), (SELECT count(*) FROM w) "
         "FROM (VALUES (1)) AS always LEFT JOIN (" +
         sources_of("page") + ") ON true ORDER BY page.id" + order;
  const std::string name = "list_operations_" + std::to_string(static_cast<int>(from)) + (newest_first ? "_newest" : "_oldest");
  return {name,
          sql,
          {oid::uuid, oid::uuid, oid::int8, oid::int8, oid::text, oid::text, oid::text, oid::text, oid::boolean, oid::timestamptz,
           oid::timestamptz, oid::jsonb, oid::jsonb, oid::text, oid::text_array, oid::boolean}};
}

const statement& list_statement(origin from, bool newest_first) {
  static const auto all = [] {
    std::vector<statement> made;
    for (std::size_t i = 0; i < origin_count; ++i) {
      made.push_back(make_list(static_cast<origin>(i), false));
      made.push_back(make_list(static_cast<origin>(i), true));
    }
    return made;
  }();
  return all[static_cast<std::size_t>(from) * 2 + (newest_first ? 1 : 0)];
}

origin origin_of(const operation_query& what) noexcept {
  if (what.reference) return origin::reference;
  if (!what.metadata_as_text.empty()) return origin::metadata;
  if (what.review.value_or(false)) return origin::review;
  if (what.overdue.value_or(false)) return origin::overdue;
  return origin::window;
}

operation_id bound(std::uint8_t every_byte) noexcept {
  operation_id id;
  id.bytes.fill(every_byte);
  return id;
}

// An ID at `at`, nudged by the ten seconds that IDs may be ahead of or behind the clock (core/ids.hpp).
operation_id bound_at(sys_micros at, std::chrono::seconds nudge) noexcept {
  const auto instant = std::max(at + nudge, sys_micros{});
  auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(instant.time_since_epoch()).count();
  operation_id id;
  for (std::size_t i = 6; i-- > 0;) {
    id.bytes[i] = static_cast<std::uint8_t>(millis & 0xff);
    millis >>= 8;
  }
  return id;
}

parameters& add(parameters& to, const std::optional<bool>& v) { return v ? to.boolean(*v) : to.null(); }

parameters list_parameters(const operation_query& what, const operation_id& from, const operation_id& until, std::int64_t window,
                           std::int64_t limit) {
  binary_array providers(oid::text);
  for (const auto& p : what.providers) providers.add(p);
  parameters with;
  with.uuid(from).uuid(until).int8(window).int8(limit);
  with.text(what.state).text(what.provider).text(what.workflow).text(what.client);
  add(with, what.review);
  with.time(what.accepted_after).time(what.accepted_before);
  if (what.metadata_as_text.empty()) {
    with.null().null();
  } else {
    with.jsonb(what.metadata_as_text).jsonb(what.metadata_as_value);
  }
  with.text(what.reference).array(std::move(providers));
  add(with, what.overdue);
  return with;
}

}  // namespace

awaitable<result<operation_page>> list_operations(postgres::pool& pool, operation_query what, deadline until) {
  constexpr std::chrono::seconds nudge{10};
  const auto& sql = list_statement(origin_of(what), what.newest_first);
  auto oldest = what.accepted_after ? bound_at(*what.accepted_after, -nudge) : bound(0);
  auto newest = what.accepted_before ? bound_at(*what.accepted_before, nudge) : bound(0xff);
  auto from = what.newest_first ? newest : oldest;
  const auto end = what.newest_first ? oldest : newest;
  if (what.after) from = *what.after;

  const auto give_up = std::min(until, std::chrono::steady_clock::now() + search_time);
  const auto wanted = static_cast<std::size_t>(what.limit);
  operation_page page;
  for (std::size_t step = 0;; ++step) {
    const auto window = windows[std::min(step, windows.size() - 1)];
    // One more than asked for tells whether there is another page.
    const auto limit = static_cast<std::int64_t>(wanted + 1 - page.operations.size());
    auto with = list_parameters(what, from, end, window, limit);
    auto found = co_await pool.query(sql, std::move(with), until);
    if (!found) co_return found.error();
    for (int i = 0; i < found->size(); ++i) {
      if (!found->is_null(i, 0)) page.operations.push_back(read_operation_view(*found, i));
    }
    if (page.operations.size() > wanted) {
      page.operations.resize(wanted);
      page.next = page.operations.back().id;
      co_return page;
    }
    const auto seen = found->int8(0, operation_column_count + 1);
    if (seen < window) co_return page;
    from = found->id<operation_id>(0, operation_column_count);
    if (std::chrono::steady_clock::now() >= give_up) {
      page.next = from;
      co_return page;
    }
  }
}

}  // namespace recibo::storage
