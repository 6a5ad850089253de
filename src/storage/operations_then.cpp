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

// The first move after the fact says where an item was then. An item that a callback brought is there from its first move, or
// from the registration that came after; others from the acceptance. States that got other names since cannot be told.
const std::string items_then =
    "(SELECT json_agg(json_build_array(s.state, s.n, 0) ORDER BY s.state)::text FROM (SELECT coalesce(later.from_state, i.state) "
    "AS state, count(*) AS n FROM recibo.items i LEFT JOIN (SELECT DISTINCT ON (t.item_id) t.item_id, t.from_state FROM "
    "recibo.transitions t WHERE t.operation = o.id AND t.sequence > w.sequence AND t.item_id IS NOT NULL "
    "ORDER BY t.item_id, t.sequence) later ON later.item_id = i.item_id WHERE i.operation = o.id "
    "AND (c.client <> '' OR (c.operation IS NULL AND r.client <> '') OR EXISTS (SELECT FROM recibo.transitions t WHERE "
    "t.operation = o.id AND t.item_id = i.item_id AND t.sequence <= w.sequence)) GROUP BY 1) s)";

const std::string columns_then = columns_of_operation(
    {workflow_then, review_open_then, references_then, items_then, "NULL::text",
     "EXISTS (SELECT FROM recibo.audit a WHERE a.operation = o.id AND a.sequence <= w.sequence AND a.kind IN ('delivery', "
     "'replay'))",
     "false", "NULL::timestamptz"});

const postgres::statement select_then{
    "find_operations_then",
    "SELECT " + columns_then +
        ", w.sequence, renamed.to_state, renamed.at, EXISTS (SELECT FROM recibo.workflow_changes wc WHERE wc.operation = o.id "
        "AND wc.sequence > w.sequence AND wc.item_states IS NOT NULL) "
        "FROM unnest($1, $2) AS w(operation, sequence) JOIN recibo.operations o ON o.id = w.operation "
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
