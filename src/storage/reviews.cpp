#include "recibo/storage/reviews.hpp"

#include "columns.hpp"

#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

const statement insert_reviews{
    "insert_reviews",
    "INSERT INTO recibo.reviews (id, operation, kind, digest, key, delivery, first_delivery, first_digest, detail, state, owner, "
    "opened_at, last_seen_at, due_at, provider, request_id, signed_digest, item_id) "
    "SELECT u.id, u.operation, u.kind, u.digest, u.key, u.delivery, u.first_delivery, u.first_digest, u.detail, u.state, "
    "u.owner, "
    "u.at, u.at, u.due, u.provider, u.request_id, u.signed_digest, u.item_id FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, "
    "$10, "
    "$11, $12, $13, $14, $15, $16, $17) "
    "AS u(id, operation, kind, digest, key, delivery, first_delivery, first_digest, detail, state, owner, at, due, provider, "
    "request_id, signed_digest, item_id)",
    {oid::uuid_array, oid::uuid_array, oid::text_array, oid::bytea_array, oid::bytea_array, oid::uuid_array, oid::uuid_array,
     oid::bytea_array, oid::text_array, oid::text_array, oid::text_array, oid::timestamptz_array, oid::timestamptz_array,
     oid::text_array, oid::text_array, oid::bytea_array, oid::text_array}};

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

const statement lock_reviews{
    "lock_reviews",
    "SELECT v.id, v.operation, v.kind, v.digest, v.key, v.status = 'open', v.assigned_to, v.resolved_by, v.resolution, v.reason, "
    "(SELECT t.event FROM recibo.review_actions a JOIN recibo.transitions t ON t.operation = a.operation AND t.sequence = "
    "a.transition WHERE a.review = v.id AND a.action = 'resolved'), v.item_id IS NOT NULL, "
    "v.status = 'open' AND v.reminded_at IS NULL AND coalesce(v.due_at <= now(), false) "
    "FROM recibo.reviews v WHERE v.id = ANY($1) ORDER BY v.id FOR NO KEY UPDATE OF v",
    {oid::uuid_array}};

const statement count_open_reviews{
    "count_open_reviews",
    "SELECT v.operation, count(*) FROM recibo.reviews v WHERE v.operation = ANY($1) AND v.status = 'open' GROUP BY v.operation",
    {oid::uuid_array}};

const statement assign_reviews{
    "assign_reviews",
    "WITH changed AS (UPDATE recibo.reviews r SET assigned_to = u.assignee "
    "FROM unnest($1, $2) AS u(id, assignee) WHERE r.id = u.id AND r.status IS NOT DISTINCT FROM 'open' "
    "RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array, oid::text_array}};

const statement resolve_reviews{
    "resolve_reviews",
    "WITH changed AS (UPDATE recibo.reviews r SET status = 'resolved', resolved_at = u.at, resolved_by = u.actor, "
    "resolution = u.resolution, reason = u.reason "
    "FROM unnest($1, $2, $3, $4, $5) AS u(id, at, actor, resolution, reason) WHERE r.id = u.id AND r.status IS NOT DISTINCT FROM "
    "'open' "
    "RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array, oid::timestamptz_array, oid::text_array, oid::text_array, oid::text_array}};

const statement remind_reviews{
    "remind_reviews",
    "WITH changed AS (UPDATE recibo.reviews r SET reminded_at = now() FROM unnest($1) AS u(id) "
    "WHERE r.id = u.id AND r.status IS NOT DISTINCT FROM 'open' AND r.reminded_at IS NULL RETURNING 1) "
    "SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array}};

const statement insert_review_actions{
    "insert_review_actions",
    "INSERT INTO recibo.review_actions (id, review, operation, sequence, action, at, actor, assignee, resolution, reason, "
    "transition, notifications) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    {oid::uuid_array, oid::uuid_array, oid::uuid_array, oid::int4_array, oid::text_array, oid::timestamptz_array, oid::text_array,
     oid::text_array, oid::text_array, oid::text_array, oid::int4_array, oid::int4_array}};

const statement lock_old_parked{"lock_old_parked",
                                "SELECT p.id, p.provider, p.request_id, p.content_digest, p.parked_at, "
                                "EXISTS (SELECT FROM recibo.reviews v WHERE v.delivery = p.id AND v.kind = 'parked_age') "
                                "FROM recibo.parked p WHERE p.id = ANY($1) ORDER BY p.id FOR NO KEY UPDATE OF p SKIP LOCKED",
                                {oid::uuid_array}};

const statement close_outgrown_reviews{
    "close_outgrown_reviews",
    "WITH closed AS (UPDATE recibo.reviews r SET status = 'resolved', resolved_at = u.at, resolved_by = 'recibo', "
    "resolution = 'registered', reason = 'its operation was registered' FROM unnest($1, $2, $3) AS u(action, parked, at) "
    "WHERE r.delivery = u.parked AND r.kind = 'parked_age' AND r.status IS NOT DISTINCT FROM 'open' RETURNING r.id, u.action, "
    "u.at) "
    "INSERT INTO recibo.review_actions (id, review, action, at, actor, resolution, reason) "
    "SELECT c.action, c.id, 'resolved', c.at, 'recibo', 'registered', 'its operation was registered' FROM closed c",
    {oid::uuid_array, oid::uuid_array, oid::timestamptz_array}};

std::string_view binary_of(const std::array<std::uint8_t, 16>& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

template <class Id>
binary_array ids_of(const std::vector<Id>& ids) {
  binary_array out(oid::uuid);
  for (const auto& id : ids) out.add(id.binary());
  return out;
}

}  // namespace

new_reviews::new_reviews() : rows(insert_reviews) {}
void new_reviews::add(const review_row& r) {
  rows.next().add(r.id.binary());
  add_id_or_null(rows.next(), r.operation);
  rows.next().add(r.kind);
  rows.next().add(binary(r.digest));
  rows.next().add(r.key);
  add_id_or_null(rows.next(), r.delivery.is_nil() ? std::nullopt : std::optional(r.delivery));
  add_id_or_null(rows.next(), r.first_delivery);
  add_digest(rows.next(), r.first_digest);
  rows.next().add(r.detail);
  rows.next().add(r.state);
  rows.next().add(r.owner);
  rows.next().add_time(r.at);
  rows.next().add_time(r.due_at);
  add_text_or_null(rows.next(), r.provider);
  add_text_or_null(rows.next(), r.request_id);
  add_digest(rows.next(), r.signed_digest);
  add_text_or_null(rows.next(), r.item_id);
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

std::vector<known_review> read_reviews(const rows& from) {
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

void append_lock_reviews(checked_pipeline& to, const std::vector<review_id>& ids) {
  parameters with;
  with.array(ids_of(ids));
  to.add(lock_reviews, std::move(with));
}

std::vector<acted_review> read_acted_reviews(const rows& from) {
  std::vector<acted_review> out(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    auto& v = out[static_cast<std::size_t>(i)];
    v.id = from.id<review_id>(i, 0);
    if (!from.is_null(i, 1)) v.operation = from.id<operation_id>(i, 1);
    v.kind = from.string(i, 2);
    v.digest = digest_at(from, i, 3);
    v.key = from.string(i, 4);
    v.open = from.boolean(i, 5);
    v.assigned_to = from.text_or_null(i, 6);
    v.resolved_by = from.text_or_null(i, 7);
    v.resolution = from.text_or_null(i, 8);
    v.reason = from.text_or_null(i, 9);
    v.event = from.text_or_null(i, 10);
    v.of_item = from.boolean(i, 11);
    v.untold = from.boolean(i, 12);
  }
  return out;
}

void append_count_open_reviews(checked_pipeline& to, const std::vector<operation_id>& operations) {
  parameters with;
  with.array(ids_of(operations));
  to.add(count_open_reviews, std::move(with));
}

std::vector<open_reviews> read_open_reviews(const rows& from) {
  std::vector<open_reviews> out;
  for (int i = 0; i < from.size(); ++i) out.push_back({from.id<operation_id>(i, 0), from.int8(i, 1)});
  return out;
}

assigned_reviews::assigned_reviews() : rows(assign_reviews) {}
void assigned_reviews::add(review_id id, std::string_view assignee) {
  rows.next().add(id.binary());
  rows.next().add(assignee);
}

resolved_reviews::resolved_reviews() : rows(resolve_reviews) {}
void resolved_reviews::add(review_id id, sys_micros at, std::string_view by, std::string_view resolution,
                           std::string_view reason) {
  rows.next().add(id.binary());
  rows.next().add_time(at);
  rows.next().add(by);
  rows.next().add(resolution);
  add_text_or_null(rows.next(), reason);
}

reminded_reviews::reminded_reviews() : rows(remind_reviews) {}
void reminded_reviews::add(review_id id) { rows.next().add(id.binary()); }

new_review_actions::new_review_actions() : rows(insert_review_actions) {}
void new_review_actions::add(const review_action_row& a) {
  rows.next().add(binary_of(uuid_v7_bytes(a.at)));
  rows.next().add(a.review.binary());
  add_id_or_null(rows.next(), a.operation);
  add_number_or_null(rows.next(), a.sequence);
  rows.next().add(a.action);
  rows.next().add_time(a.at);
  rows.next().add(a.actor);
  add_text_or_null(rows.next(), a.assignee);
  add_text_or_null(rows.next(), a.resolution);
  add_text_or_null(rows.next(), a.reason);
  add_number_or_null(rows.next(), a.transition);
  rows.next().add_int4(a.notifications);
}

void append_lock_old_parked(checked_pipeline& to, const std::vector<delivery_id>& ids) {
  parameters with;
  with.array(ids_of(ids));
  to.add(lock_old_parked, std::move(with));
}

std::vector<old_parked> read_old_parked(const rows& from) {
  std::vector<old_parked> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({from.id<delivery_id>(i, 0), from.string(i, 1), from.text_or_null(i, 2), digest_at(from, i, 3), from.time(i, 4),
                   from.boolean(i, 5)});
  return out;
}

outgrown_reviews::outgrown_reviews() : rows(close_outgrown_reviews) {}
void outgrown_reviews::add(delivery_id parked, sys_micros at) {
  rows.next().add(binary_of(uuid_v7_bytes(at)));
  rows.next().add(parked.binary());
  rows.next().add_time(at);
}

}  // namespace recibo::storage
