// Columns of an operation and their mapping, for single reads and for lists.
#pragma once

#include "recibo/storage/reads.hpp"

#include <string>

namespace recibo::storage {

// Where an operation stands with what was registered, as corrections have left it; and a column of the latter.
inline const std::string operation_source =
    "recibo.operations o JOIN recibo.registrations r ON r.operation = o.id "
    "LEFT JOIN recibo.corrections c ON c.operation = o.id AND c.sequence = o.corrected ";
inline std::string registered(const std::string& column) {
  return "(CASE WHEN c.operation IS NULL THEN r." + column + " ELSE c." + column + " END)";
}

// What differs between an operation as it stands and as it stood: an expression each.
struct operation_parts {
  std::string workflow, review_open, references, items, result, called_back, notified, due;
};

// Everything that an operation shows, in the order of read_operation_view(). What is behind a subquery is found by the
// operation's ID: an index or one partition each.
inline std::string columns_of_operation(const operation_parts& of) {
  return "o.id, o.request_id, o.provider, o.state, " + of.workflow + ", o.version, o.revision, " + of.review_open +
         ", o.state_at, o.updated_at, " + registered("client") + ", " + registered("action") + ", " + registered("metadata") +
         "::text, " + registered("reference") + ", " + registered("amount") + ", " + registered("currency") + ", " +
         registered("deadline") + ", r.accepted_at, " + of.references + ", " + of.items + ", " + of.result + ", " +
         of.called_back + ", " + of.notified + ", now(), " + registered("account") + ", " + of.due;
}
inline const std::string operation_columns = columns_of_operation(
    {"o.workflow", "o.review_open",
     "(SELECT json_agg(a.alias ORDER BY a.learned_at, a.alias)::text FROM recibo.aliases a WHERE a.operation = o.id)",
     "(SELECT json_agg(json_build_array(s.state, s.n, s.attention) ORDER BY s.state)::text FROM "
     "(SELECT i.state, count(*) AS n, count(i.attention) AS attention FROM recibo.items i WHERE i.operation = o.id "
     "GROUP BY i.state) s)",
     "(SELECT t.result FROM recibo.transitions t WHERE t.operation = o.id AND t.item_id IS NULL AND t.result IS NOT NULL ORDER "
     "BY "
     "t.sequence DESC LIMIT 1)",
     "EXISTS (SELECT FROM recibo.audit a WHERE a.operation = o.id AND a.kind IN ('delivery', 'replay'))",
     "coalesce((SELECT t.notifications > 0 AND NOT EXISTS (SELECT FROM recibo.notifications n WHERE n.operation = t.operation "
     "AND n.sequence = t.sequence AND n.status <> 'delivered') "
     "FROM recibo.transitions t WHERE t.operation = o.id AND t.item_id IS NULL ORDER BY t.sequence DESC LIMIT 1), false)",
     "(SELECT min(t.due_at) FROM recibo.timers t WHERE t.operation = o.id)"});
inline constexpr int operation_column_count = 26;

operation_view read_operation_view(const postgres::rows& from, int row);

}  // namespace recibo::storage
