#include "recibo/storage/operations_then.hpp"

#include "by_index.hpp"
#include "reads_operation.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;

// Each change says what it was before: the first one after the fact says what it was then.
const std::string workflow_then =
    "coalesce((SELECT wc.from_workflow FROM recibo.workflow_changes wc WHERE wc.operation = o.id AND wc.sequence > w.sequence "
    "ORDER BY wc.sequence LIMIT 1), o.workflow)";

// Opened by a fact up to this one, and not resolved by one. What opened it is the fact of its time, of its delivery where that
// has several; what is not found has been open from the beginning.
const std::string review_open_then =
    "EXISTS (SELECT FROM recibo.reviews v WHERE v.operation = o.id "
    "AND NOT EXISTS (SELECT FROM recibo.review_actions ra WHERE ra.review = v.id AND ra.action = 'resolved' "
    "AND ra.sequence <= w.sequence) "
    "AND coalesce((SELECT min(a.sequence) FROM recibo.audit a WHERE a.operation = o.id AND a.at = v.opened_at "
    "AND a.delivery = v.delivery), (SELECT min(a.sequence) FROM recibo.audit a WHERE a.operation = o.id AND a.at = v.opened_at), "
    "0) <= w.sequence)";

// Learned at the acceptance, or by a fact up to this one: by the same clock, so that their times are equal.
const std::string references_then =
    "(SELECT json_agg(x.alias ORDER BY x.learned_at, x.alias)::text FROM recibo.aliases x WHERE x.operation = o.id "
    "AND (x.learned_at = r.accepted_at OR EXISTS (SELECT FROM recibo.audit a WHERE a.operation = o.id "
    "AND a.sequence <= w.sequence AND a.at = x.learned_at)))";

std::string summed_items(const std::string& counts) {
  return "(SELECT json_agg(json_build_array(s.state, s.n, 0) ORDER BY s.state)::text FROM (SELECT d.state, sum(d.n) AS n FROM (" +
         counts + ") d GROUP BY d.state HAVING sum(d.n) <> 0) s)";
}
// Both ways of a move count, so that what an item passed through cancels out: as many steps as there are moves, and no joins.
std::string moves_of_items(const std::string& ways, const std::string& when) {
  return "SELECT m.state, m.n FROM recibo.transitions t CROSS JOIN LATERAL (VALUES " + ways +
         ") AS m(state, n) WHERE t.operation = o.id AND t.sequence " + when + " w.sequence AND t.item_id IS NOT NULL";
}
// As they are now, with what came after the fact taken back.
const std::string registered_items =
    summed_items("SELECT i.state, 1 AS n FROM recibo.items i WHERE i.operation = o.id UNION ALL " +
                 moves_of_items("(t.from_state, 1), (t.to_state, -1)", ">"));
// Before a client has registered it, an item is there from its first move.
const std::string brought_items =
    summed_items(moves_of_items("(t.to_state, 1), (t.from_state, CASE WHEN t.version > 1 THEN -1 ELSE 0 END)", "<="));
const std::string is_registered = registered("client") + " <> ''";
const std::string items_then = "CASE WHEN " + is_registered + " THEN " + registered_items + " ELSE " + brought_items + " END";
// States that got other names among the moves that were counted do not cancel out.
const std::string items_lost =
    "EXISTS (SELECT FROM recibo.workflow_changes wc WHERE wc.operation = o.id AND wc.item_states IS NOT NULL "
    "AND (wc.sequence > w.sequence) = (" +
    is_registered + "))";

const std::string columns_then = columns_of_operation(
    {workflow_then, review_open_then, references_then, items_then, "NULL::text",
     "EXISTS (SELECT FROM recibo.audit a WHERE a.operation = o.id AND a.sequence <= w.sequence AND a.kind IN ('delivery', "
     "'replay'))",
     "false", "NULL::timestamptz"});

const postgres::statement select_then{
    "find_operations_then",
    "SELECT " + columns_then + ", w.sequence, renamed.to_state, renamed.at, " + items_lost +
        " FROM unnest($1, $2) AS w(operation, sequence) JOIN recibo.operations o ON o.id = w.operation "
        "JOIN recibo.registrations r ON r.operation = o.id "
        // An edit moves the operation, and its correction is the fact right behind the move.
        "LEFT JOIN LATERAL (SELECT x.* FROM recibo.corrections x WHERE o.corrected IS NOT NULL AND x.operation = o.id "
        "AND x.sequence <= w.sequence + 1 AND (x.sequence <= w.sequence OR x.kind = 'edited') "
        "ORDER BY x.sequence DESC LIMIT 1) c ON true "
        "LEFT JOIN LATERAL (SELECT wc.to_state, wc.at FROM recibo.workflow_changes wc WHERE wc.operation = o.id "
        "AND wc.sequence <= w.sequence AND wc.to_state <> wc.from_state AND NOT EXISTS (SELECT FROM recibo.transitions t WHERE "
        "t.operation = o.id AND t.item_id IS NULL AND t.sequence > wc.sequence AND t.sequence <= w.sequence) "
        "ORDER BY wc.sequence DESC LIMIT 1) renamed ON true",
    {oid::uuid_array, oid::int4_array}};

}  // namespace

boost::asio::awaitable<result<std::vector<operation_then>>> find_operations_then(postgres::pool& pool,
                                                                                 const std::vector<fact_name>& facts,
                                                                                 postgres::deadline until) {
  postgres::binary_array operations(oid::uuid), sequences(oid::int4);
  for (const auto& one : facts) {
    operations.add(one.operation.binary());
    sequences.add_int4(one.sequence);
  }
  postgres::parameters with;
  with.array(std::move(operations)).array(std::move(sequences));
  postgres::pipeline work;
  work.add(by_index).add(select_then, std::move(with));
  const auto ran = co_await pool.run(work, until);
  if (!ran.ok()) co_return postgres::to_error(ran);
  const auto& found = ran.answers.back();
  std::vector<operation_then> out;
  for (int i = 0; i < found.size(); ++i) {
    auto& one = out.emplace_back();
    one.operation = read_operation_view(found, i);
    one.sequence = found.int4(i, operation_column_count);
    if (const auto state = found.text_or_null(i, operation_column_count + 1))
      one.renamed = {*state, found.time(i, operation_column_count + 2)};
    one.operation.items_attention.reset();
    one.operation.items_known = !found.boolean(i, operation_column_count + 3);
  }
  co_return out;
}

}  // namespace recibo::storage
