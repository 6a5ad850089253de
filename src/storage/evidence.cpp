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

const statement insert_notifications{
    "insert_notifications",
    "INSERT INTO recibo.notifications (id, operation, sequence, destination, type, created_at) SELECT * FROM unnest($1, $2, $3, "
    "$4, $5, $6)",
    {oid::uuid_array, oid::uuid_array, oid::int4_array, oid::text_array, oid::text_array, oid::timestamptz_array}};

const statement insert_reviews{
    "insert_reviews",
    "INSERT INTO recibo.reviews (id, operation, kind, digest, key, delivery, first_delivery, first_digest, signed_digest, "
    "detail, state, owner, item_id, opened_at, last_seen_at) SELECT u.*, u.at FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, "
    "$10, $11, $12, $13, $14) AS u(id, operation, kind, digest, key, delivery, first_delivery, first_digest, signed_digest, "
    "detail, state, owner, item_id, at)",
    {oid::uuid_array, oid::uuid_array, oid::text_array, oid::bytea_array, oid::bytea_array, oid::uuid_array, oid::uuid_array,
     oid::bytea_array, oid::bytea_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array,
     oid::timestamptz_array}};

const statement find_reviews{"find_reviews",
                             "SELECT r.id, r.operation, r.kind, r.digest, r.key, r.delivery, r.status = 'open', r.signed_digest "
                             "FROM unnest($1, $2, $3) AS w(operation, digest, signed_digest) "
                             "JOIN recibo.reviews r ON r.operation = w.operation "
                             "AND (r.digest = w.digest OR r.signed_digest = w.signed_digest)",
                             {oid::uuid_array, oid::bytea_array, oid::bytea_array}};

const statement repeat_reviews{"repeat_reviews",
                               "WITH changed AS (UPDATE recibo.reviews r SET count = r.count + u.times, last_seen_at = u.at "
                               "FROM unnest($1, $2, $3) AS u(id, times, at) WHERE r.id = u.id "
                               "RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
                               {oid::uuid_array, oid::int4_array, oid::timestamptz_array}};

const statement insert_payload_accesses{
    "insert_payload_accesses",
    "INSERT INTO recibo.payload_accesses (id, delivery, at, actor, operation, sequence) SELECT * FROM unnest($1, $2, $3, $4, $5, "
    "$6)",
    {oid::uuid_array, oid::uuid_array, oid::timestamptz_array, oid::text_array, oid::uuid_array, oid::int4_array}};

void add_text_or_null(binary_array& to, std::string_view text) {
  if (text.empty()) {
    to.add_null();
  } else {
    to.add(text);
  }
}

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

new_reviews::new_reviews() : rows(insert_reviews) {}
void new_reviews::add(const review_row& r) {
  rows.next().add(r.id.binary());
  rows.next().add(r.operation.binary());
  rows.next().add(r.kind);
  rows.next().add(binary(r.digest));
  rows.next().add(r.key);
  rows.next().add(r.delivery.binary());
  add_id_or_null(rows.next(), r.first_delivery);
  add_digest(rows.next(), r.first_digest);
  add_digest(rows.next(), r.signed_digest);
  rows.next().add(r.detail);
  rows.next().add(r.state);
  rows.next().add(r.owner);
  add_text_or_null(rows.next(), r.item_id);
  rows.next().add_time(r.at);
}

void append_find_reviews(checked_pipeline& to, const std::vector<review_name>& names) {
  binary_array operations(oid::uuid), digests(oid::bytea), signed_digests(oid::bytea);
  for (const auto& n : names) {
    operations.add(n.operation.binary());
    digests.add(binary(n.digest));
    add_digest(signed_digests, n.signed_digest);
  }
  parameters with;
  with.array(std::move(operations)).array(std::move(digests)).array(std::move(signed_digests));
  to.add(find_reviews, std::move(with));
}

std::vector<known_review> read_reviews(const postgres::rows& from) {
  std::vector<known_review> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({from.id<review_id>(i, 0), from.id<operation_id>(i, 1), from.string(i, 2), digest_at(from, i, 3),
                   from.string(i, 4), from.id<delivery_id>(i, 5), from.boolean(i, 6), digest_or_null(from, i, 7)});
  return out;
}

repeated_reviews::repeated_reviews() : rows(repeat_reviews) {}
void repeated_reviews::add(review_id id, std::int32_t times, sys_micros at) {
  rows.next().add(id.binary());
  rows.next().add_int4(times);
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
