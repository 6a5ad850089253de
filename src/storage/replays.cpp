#include "recibo/storage/replays.hpp"

#include "columns.hpp"

#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::deadline;
using postgres::parameters;
using postgres::statement;

const statement insert_replays{
    "insert_replays",
    "INSERT INTO recibo.replays (id, failed_callback, provider, delivery, action, at, actor, reason, disposition, closes, "
    "operation, sequence, key, items, resent_as) "
    "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    {oid::uuid_array, oid::uuid_array, oid::text_array, oid::uuid_array, oid::text_array, oid::timestamptz_array, oid::text_array,
     oid::text_array, oid::text_array, oid::boolean_array, oid::uuid_array, oid::int4_array, oid::bytea_array, oid::text_array,
     oid::uuid_array}};

const statement delete_failed{"delete_failed",
                              "WITH signed AS (DELETE FROM recibo.signed_contents WHERE owner = ANY($1)), "
                              "gone AS (DELETE FROM recibo.failed_callbacks f WHERE f.id = ANY($1) RETURNING 1) "
                              "SELECT recibo.expect_rows(count(*), cardinality($1)) FROM gone",
                              {oid::uuid_array}};

const statement try_failed{
    "try_failed",
    "WITH changed AS (UPDATE recibo.failed_callbacks f SET attempts = f.attempts + 1, last_attempt_at = u.at, "
    "disposition = u.disposition, reason = u.reason, detail = u.detail, left_out = u.left_out "
    "FROM unnest($1, $2, $3, $4, $5, $6) AS u(id, at, disposition, reason, detail, left_out) WHERE f.id = u.id "
    "RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array, oid::timestamptz_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array}};

const statement relist_failed{
    "relist_failed",
    "WITH changed AS (UPDATE recibo.failed_callbacks f SET left_out = u.left_out FROM unnest($1, $2) AS u(id, left_out) "
    "WHERE f.id = u.id RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array, oid::text_array}};

const statement close_resent{
    "close_resent",
    "WITH gone AS (DELETE FROM recibo.failed_callbacks f USING unnest($1, $2, $3, $4, $5, $6, $7) AS w(id, provider, "
    "body_digest, key_beside, resent_as, at, repeats) WHERE f.provider = w.provider AND f.body_digest = w.body_digest "
    "AND (f.key_beside = w.key_beside OR f.key_beside = '' OR w.key_beside = '') "
    "AND NOT (w.repeats AND (starts_with(f.reason, 'item_') OR coalesce(f.left_out, '') LIKE '%\"items\"%')) "
    "RETURNING w.id AS row, f.id, f.provider, f.delivery, w.resent_as, w.at), "
    "signed AS (DELETE FROM recibo.signed_contents s USING gone g WHERE s.owner = g.id) "
    "INSERT INTO recibo.replays (id, failed_callback, provider, delivery, action, at, actor, closes, resent_as) "
    "SELECT CASE WHEN row_number() OVER (PARTITION BY g.row ORDER BY g.id) = 1 THEN g.row "
    "ELSE (left(g.row::text, 24) || right(gen_random_uuid()::text, 12))::uuid END, g.id, g.provider, g.delivery, 'resent', g.at, "
    "g.provider, true, g.resent_as FROM gone g",
    {oid::uuid_array, oid::text_array, oid::bytea_array, oid::bytea_array, oid::uuid_array, oid::timestamptz_array,
     oid::boolean_array}};

const statement select_material{
    "read_failed_material",
    "SELECT f.id, f.provider, f.delivery, d.received_at, d.secret, d.peer, d.trace_id, p.content_type, p.body, f.head, "
    "coalesce(f.signed_digest, (SELECT s.signed_digest FROM recibo.signed_contents s WHERE s.owner = f.id ORDER BY s.seen_at "
    "LIMIT 1)), f.body_digest, f.reason, f.left_out, coalesce(d.payload, f.delivery), f.key_beside FROM "
    "recibo.failed_callbacks f "
    "LEFT JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id = f.delivery LIMIT 1) d ON true "
    "LEFT JOIN LATERAL (SELECT * FROM recibo.payloads x WHERE x.id = coalesce(d.payload, f.delivery) LIMIT 1) p ON true WHERE "
    "f.id = $1",
    {oid::uuid}};

const statement select_closing{
    "read_closing",
    "SELECT r.action, r.actor, r.provider, r.at, r.reason, coalesce(m.disposition, r.disposition), o.request_id, o.state, "
    "r.delivery, r.resent_as FROM recibo.replays r "
    "LEFT JOIN recibo.replays m ON m.failed_callback = r.failed_callback AND m.delivery = r.delivery AND m.action = 'met' "
    "LEFT JOIN recibo.operations o ON o.id = coalesce(m.operation, r.operation) WHERE r.failed_callback = $1 AND r.closes",
    {oid::uuid}};

const std::string filters =
    "($1 IS NULL OR f.provider = $1) AND ($2 IS NULL OR f.disposition = $2) AND ($3 IS NULL OR f.reason = $3) AND ($4 IS NULL OR "
    "f.event = $4) AND ($5 IS NULL OR f.request_id = $5) AND ($6 IS NULL OR f.first_seen_at >= $6) AND ($7 IS NULL OR "
    "f.first_seen_at < $7)";
const statement count_matching{"count_failed",
                               "SELECT count(*) FROM recibo.failed_callbacks f WHERE " + filters,
                               {oid::text, oid::text, oid::text, oid::text, oid::text, oid::timestamptz, oid::timestamptz}};
const statement list_matching{
    "list_failed_ids",
    "SELECT f.id FROM recibo.failed_callbacks f WHERE " + filters + " AND f.id > $8 ORDER BY f.id LIMIT $9",
    {oid::text, oid::text, oid::text, oid::text, oid::text, oid::timestamptz, oid::timestamptz, oid::uuid, oid::int8}};

parameters parameters_of(const failed_filter& which) {
  parameters with;
  with.text(which.provider).text(which.disposition).text(which.reason).text(which.event).text(which.request_id);
  with.time(which.first_seen_after).time(which.first_seen_before);
  return with;
}

}  // namespace

new_replays::new_replays() : rows(insert_replays) {}
void new_replays::add(const replay_row& r) {
  rows.next().add(r.id.binary());
  rows.next().add(r.failed.binary());
  rows.next().add(r.provider);
  rows.next().add(r.delivery.binary());
  rows.next().add(r.action);
  rows.next().add_time(r.at);
  rows.next().add(r.actor);
  add_text_or_null(rows.next(), r.reason);
  add_text_or_null(rows.next(), r.disposition);
  rows.next().add_bool(r.closes);
  add_id_or_null(rows.next(), r.operation);
  add_number_or_null(rows.next(), r.sequence);
  add_text_or_null(rows.next(), r.key);
  add_text_or_null(rows.next(), r.items);
  add_id_or_null(rows.next(), r.resent_as);
}

closed_failed::closed_failed() : rows(delete_failed) {}
void closed_failed::add(failed_callback_id id) { rows.next().add(id.binary()); }

tried_failed::tried_failed() : rows(try_failed) {}
void tried_failed::add(failed_callback_id id, sys_micros at, std::string_view disposition, std::string_view reason,
                       std::string_view detail, std::string_view left_out) {
  rows.next().add(id.binary());
  rows.next().add_time(at);
  rows.next().add(disposition);
  rows.next().add(reason);
  rows.next().add(detail);
  add_text_or_null(rows.next(), left_out);
}

relisted_failed::relisted_failed() : rows(relist_failed) {}
void relisted_failed::add(failed_callback_id id, std::string_view left_out) {
  rows.next().add(id.binary());
  add_text_or_null(rows.next(), left_out);
}

resent_failed::resent_failed() : rows(close_resent) {}
void resent_failed::add(const failed_name& which, delivery_id resent_as, sys_micros at, bool repeats) {
  const auto id = make_id<replay_id>(at);
  rows.next().add(id.binary());
  rows.next().add(which.provider);
  rows.next().add(binary(which.body_digest));
  rows.next().add(which.key_beside);
  rows.next().add(resent_as.binary());
  rows.next().add_time(at);
  rows.next().add_bool(repeats);
}

awaitable<result<std::optional<failed_material>>> read_failed_material(postgres::pool& pool, failed_callback_id id,
                                                                       deadline until) {
  parameters with;
  with.uuid(id);
  auto found = co_await pool.query(select_material, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<failed_material>();
  failed_material out;
  out.id = found->id<failed_callback_id>(0, 0);
  out.provider = found->string(0, 1);
  out.delivery = found->id<delivery_id>(0, 2);
  out.received_at = found->time_or_null(0, 3).value_or(uuid_v7_time(out.delivery.bytes));
  out.secret = found->text_or_null(0, 4).value_or("");
  out.peer = found->text_or_null(0, 5).value_or("");
  out.trace_id = found->text_or_null(0, 6).value_or("");
  out.content_type = found->text_or_null(0, 7).value_or("");
  out.body = found->text_or_null(0, 8);
  out.head = found->text_or_null(0, 9);
  out.signed_digest = digest_or_null(*found, 0, 10);
  out.body_digest = digest_at(*found, 0, 11);
  out.reason = found->string(0, 12);
  out.left_out = found->text_or_null(0, 13).value_or("");
  out.payload = found->id<delivery_id>(0, 14);
  out.key_beside = found->string(0, 15);
  co_return std::optional<failed_material>(std::move(out));
}

awaitable<result<std::optional<closing_view>>> find_closing(postgres::pool& pool, failed_callback_id id, deadline until) {
  parameters with;
  with.uuid(id);
  auto found = co_await pool.query(select_closing, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<closing_view>();
  closing_view out;
  out.action = found->string(0, 0);
  out.actor = found->string(0, 1);
  out.provider = found->string(0, 2);
  out.at = found->time(0, 3);
  out.reason = found->text_or_null(0, 4);
  out.disposition = found->text_or_null(0, 5);
  out.request_id = found->text_or_null(0, 6);
  out.state = found->text_or_null(0, 7);
  out.delivery = found->id<delivery_id>(0, 8);
  if (!found->is_null(0, 9)) out.resent_as = found->id<delivery_id>(0, 9);
  co_return std::optional<closing_view>(std::move(out));
}

awaitable<result<std::int64_t>> count_failed(postgres::pool& pool, failed_filter which, deadline until) {
  auto with = parameters_of(which);
  auto found = co_await pool.query(count_matching, std::move(with), until);
  if (!found) co_return found.error();
  co_return found->int8(0, 0);
}

awaitable<result<std::vector<failed_callback_id>>> list_failed_ids(postgres::pool& pool, failed_filter which,
                                                                   std::optional<failed_callback_id> after, int limit,
                                                                   deadline until) {
  auto with = parameters_of(which);
  with.uuid(after.value_or(failed_callback_id{})).int8(limit);
  auto found = co_await pool.query(list_matching, std::move(with), until);
  if (!found) co_return found.error();
  std::vector<failed_callback_id> out;
  for (int i = 0; i < found->size(); ++i) out.push_back(found->id<failed_callback_id>(i, 0));
  co_return out;
}

}  // namespace recibo::storage
