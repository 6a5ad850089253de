#include "recibo/storage/evidence.hpp"

#include "columns.hpp"

#include <algorithm>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::statement;

const statement insert_transitions{"insert_transitions",
                                   "INSERT INTO recibo.transitions (operation, sequence, version, item_id, event, from_state, "
                                   "to_state, at, actor_kind, actor, delivery, "
                                   "reason, evidence, result, notifications) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, "
                                   "$8, $9, $10, $11, $12, $13, $14, $15)",
                                   {oid::uuid_array, oid::int4_array, oid::int4_array, oid::text_array, oid::text_array,
                                    oid::text_array, oid::text_array, oid::timestamptz_array, oid::text_array, oid::text_array,
                                    oid::uuid_array, oid::text_array, oid::jsonb_array, oid::text_array, oid::int4_array}};

const statement insert_audit{"insert_audit",
                             "INSERT INTO recibo.audit (operation, sequence, kind, at, actor, delivery, digest, hash) "
                             "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)",
                             {oid::uuid_array, oid::int4_array, oid::text_array, oid::timestamptz_array, oid::text_array,
                              oid::uuid_array, oid::bytea_array, oid::bytea_array}};

// Due at once by the clock that judges it, whatever the service's says.
const statement insert_notifications{
    "insert_notifications",
    "INSERT INTO recibo.notifications (id, operation, sequence, destination, type, created_at) SELECT n.id, n.operation, "
    "n.sequence, n.destination, n.type, least(n.at, clock_timestamp()) FROM unnest($1, $2, $3, $4, $5, $6) AS n(id, operation, "
    "sequence, destination, type, at)",
    {oid::uuid_array, oid::uuid_array, oid::int4_array, oid::text_array, oid::text_array, oid::timestamptz_array}};

const statement insert_payload_accesses{
    "insert_payload_accesses",
    "INSERT INTO recibo.payload_accesses (id, delivery, at, actor, operation, sequence) SELECT * FROM unnest($1, $2, $3, $4, $5, "
    "$6)",
    {oid::uuid_array, oid::uuid_array, oid::timestamptz_array, oid::text_array, oid::uuid_array, oid::int4_array}};

}  // namespace

new_transitions::new_transitions() : rows(insert_transitions) {}
void new_transitions::add(const transition_row& t) {
  rows.next().add(t.operation.binary());
  rows.next().add_int4(t.sequence);
  rows.next().add_int4(t.version);
  rows.next().add(t.item_id);
  rows.next().add(t.event);
  rows.next().add(t.from);
  rows.next().add(t.to);
  rows.next().add_time(t.at);
  rows.next().add(t.actor_kind);
  rows.next().add(t.actor);
  add_id_or_null(rows.next(), t.delivery);
  add_text_or_null(rows.next(), t.reason);
  if (t.evidence.empty()) {
    rows.next().add_null();
  } else {
    rows.next().add_jsonb(t.evidence);
  }
  add_text_or_null(rows.next(), t.result);
  rows.next().add_int4(t.notifications);
}

new_audit::new_audit() : rows(insert_audit) {}
void new_audit::add(operation_id operation, std::int32_t sequence, std::string_view kind, sys_micros at, std::string_view actor,
                    const std::optional<delivery_id>& delivery, const sha256_digest& digest, const sha256_digest& hash) {
  rows.next().add(operation.binary());
  rows.next().add_int4(sequence);
  rows.next().add(kind);
  rows.next().add_time(at);
  rows.next().add(actor);
  add_id_or_null(rows.next(), delivery);
  rows.next().add(binary(digest));
  rows.next().add(binary(hash));
}

new_notifications::new_notifications() : rows(insert_notifications) {}
void new_notifications::add(notification_id id, operation_id operation, std::int32_t sequence, std::string_view destination,
                            std::string_view type, sys_micros at) {
  rows.next().add(id.binary());
  rows.next().add(operation.binary());
  rows.next().add_int4(sequence);
  rows.next().add(destination);
  rows.next().add(type);
  rows.next().add_time(at);
}

new_payload_accesses::new_payload_accesses() : rows(insert_payload_accesses) {}
void new_payload_accesses::add(const std::array<std::uint8_t, 16>& id, delivery_id delivery, sys_micros at,
                               std::string_view actor, const std::optional<operation_id>& operation,
                               const std::optional<std::int32_t>& sequence) {
  rows.next().add(std::string_view(reinterpret_cast<const char*>(id.data()), id.size()));
  rows.next().add(delivery.binary());
  rows.next().add_time(at);
  rows.next().add(actor);
  add_id_or_null(rows.next(), operation);
  if (sequence) {
    rows.next().add_int4(*sequence);
  } else {
    rows.next().add_null();
  }
}

}  // namespace recibo::storage
