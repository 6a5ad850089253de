#include "recibo/storage/deliveries.hpp"

#include "columns.hpp"

#include <algorithm>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

const statement insert_deliveries{
    "insert_deliveries",
    "INSERT INTO recibo.deliveries (id, operation, provider, disposition, received_at, request_id, key, event, occurred_at, "
    "provider_sequence, body_digest, payload, secret, peer, answer_status, trace_id, items, look_up) "
    "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
    {oid::uuid_array, oid::uuid_array, oid::text_array, oid::text_array, oid::timestamptz_array, oid::text_array,
     oid::bytea_array, oid::text_array, oid::timestamptz_array, oid::int8_array, oid::bytea_array, oid::uuid_array,
     oid::text_array, oid::text_array, oid::int4_array, oid::text_array, oid::text_array, oid::uuid_array}};

const statement insert_payloads{"insert_payloads",
                                "INSERT INTO recibo.payloads (id, body, content_type) SELECT * FROM unnest($1, $2, $3)",
                                {oid::uuid_array, oid::bytea_array, oid::text_array}};

const statement find_failed{
    "find_failed",
    "SELECT f.id, f.provider, f.body_digest, f.disposition, f.reason, f.detail, f.delivery, f.request_id, f.event, "
    "f.answer_status::int, f.left_out, f.key_beside, f.signed_digest "
    "FROM recibo.failed_callbacks f JOIN unnest($1, $2, $3) AS w(provider, body_digest, key_beside) "
    "ON f.provider = w.provider AND f.body_digest = w.body_digest AND f.key_beside = w.key_beside "
    "ORDER BY f.provider, f.body_digest, f.key_beside FOR NO KEY UPDATE OF f",
    {oid::text_array, oid::bytea_array, oid::bytea_array}};

// In a statement of its own behind the lock, whose wait may have been for one of these.
const statement find_failed_signed{
    "find_failed_signed",
    "SELECT f.id, s.signed_digest FROM recibo.failed_callbacks f JOIN unnest($1, $2, $3) AS w(provider, body_digest, key_beside) "
    "ON f.provider = w.provider AND f.body_digest = w.body_digest AND f.key_beside = w.key_beside "
    "JOIN recibo.signed_contents s ON s.owner = f.id",
    {oid::text_array, oid::bytea_array, oid::bytea_array}};

const statement any_failed{"any_failed", "SELECT EXISTS (SELECT FROM recibo.failed_callbacks)", {}};

const statement insert_failed{
    "insert_failed",
    "INSERT INTO recibo.failed_callbacks (id, provider, body_digest, disposition, reason, detail, delivery, request_id, event, "
    "answer_status, head, signed_digest, left_out, key_beside, first_seen_at, last_seen_at) "
    "SELECT u.*, u.at FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) "
    "AS u(id, provider, body_digest, disposition, reason, detail, delivery, request_id, event, answer_status, head, "
    "signed_digest, left_out, key_beside, at)",
    {oid::uuid_array, oid::text_array, oid::bytea_array, oid::text_array, oid::text_array, oid::text_array, oid::uuid_array,
     oid::text_array, oid::text_array, oid::int4_array, oid::text_array, oid::bytea_array, oid::text_array, oid::bytea_array,
     oid::timestamptz_array}};

const statement repeat_failed{
    "repeat_failed",
    "WITH changed AS (UPDATE recibo.failed_callbacks f SET count = f.count + u.times, last_seen_at = u.at "
    "FROM unnest($1, $2, $3) AS u(id, times, at) WHERE f.id = u.id "
    "RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array, oid::int4_array, oid::timestamptz_array}};

void append_failed_names(checked_pipeline& to, const statement& what, const std::vector<failed_name>& names) {
  binary_array providers(oid::text), digests(oid::bytea), keys(oid::bytea);
  for (const auto& n : names) {
    providers.add(n.provider);
    digests.add(binary(n.body_digest));
    keys.add(n.key_beside);
  }
  parameters with;
  with.array(std::move(providers)).array(std::move(digests)).array(std::move(keys));
  to.add(what, std::move(with));
}

void add_optional(binary_array& to, const std::optional<std::string_view>& value) {
  if (value) {
    to.add(*value);
  } else {
    to.add_null();
  }
}

}  // namespace

new_deliveries::new_deliveries() : rows(insert_deliveries) {}
void new_deliveries::add(const delivery_row& d) {
  rows.next().add(d.id.binary());
  if (d.operation) {
    rows.next().add(d.operation->binary());
  } else {
    rows.next().add_null();
  }
  rows.next().add(d.provider);
  rows.next().add(d.disposition);
  rows.next().add_time(d.received_at);
  add_optional(rows.next(), d.request_id);
  add_optional(rows.next(), d.key);
  add_optional(rows.next(), d.event);
  rows.next().add_time(d.occurred_at);
  rows.next().add_int8(d.provider_sequence);
  rows.next().add(binary(d.body_digest));
  rows.next().add(d.payload.binary());
  rows.next().add(d.secret);
  rows.next().add(d.peer);
  rows.next().add_int4(d.answer_status);
  rows.next().add(d.trace_id);
  if (d.items.empty()) {
    rows.next().add_null();
  } else {
    rows.next().add(d.items);
  }
  add_id_or_null(rows.next(), d.look_up);
}

new_payloads::new_payloads() : rows(insert_payloads) {}
void new_payloads::add(delivery_id id, std::string_view body, std::string_view content_type) {
  rows.next().add(id.binary());
  rows.next().add(body);
  rows.next().add(content_type);
}

void append_find_failed(checked_pipeline& to, const std::vector<failed_name>& names) {
  append_failed_names(to, find_failed, names);
}

std::vector<failed_row> read_failed(const rows& from) {
  std::vector<failed_row> out(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    auto& f = out[static_cast<std::size_t>(i)];
    f.id = from.id<failed_callback_id>(i, 0);
    f.provider = from.string(i, 1);
    f.body_digest = digest_at(from, i, 2);
    f.disposition = from.string(i, 3);
    f.reason = from.string(i, 4);
    f.detail = from.string(i, 5);
    f.delivery = from.id<delivery_id>(i, 6);
    f.request_id = from.text_or_null(i, 7);
    f.event = from.text_or_null(i, 8);
    f.answer_status = from.int4(i, 9);
    f.left_out = from.text_or_null(i, 10).value_or("");
    f.key_beside = from.string(i, 11);
    f.signed_digest = digest_or_null(from, i, 12);
  }
  return out;
}

void append_find_failed_signed(checked_pipeline& to, const std::vector<failed_name>& names) {
  append_failed_names(to, find_failed_signed, names);
}

std::vector<failed_signed_row> read_failed_signed(const rows& from) {
  std::vector<failed_signed_row> out;
  for (int i = 0; i < from.size(); ++i) out.push_back({from.id<failed_callback_id>(i, 0), digest_at(from, i, 1)});
  return out;
}

void append_any_failed(checked_pipeline& to) { to.add(any_failed, {}); }

new_failed::new_failed() : rows(insert_failed) {}
void new_failed::add(const failed_row& f, sys_micros at) {
  rows.next().add(f.id.binary());
  rows.next().add(f.provider);
  rows.next().add(binary(f.body_digest));
  rows.next().add(f.disposition);
  rows.next().add(f.reason);
  rows.next().add(f.detail);
  rows.next().add(f.delivery.binary());
  rows.next().add(f.request_id);
  rows.next().add(f.event);
  rows.next().add_int4(f.answer_status);
  add_text_or_null(rows.next(), f.head);
  add_digest(rows.next(), f.signed_digest);
  add_text_or_null(rows.next(), f.left_out);
  rows.next().add(f.key_beside);
  rows.next().add_time(at);
}

repeated_failed::repeated_failed() : rows(repeat_failed) {}
void repeated_failed::add(failed_callback_id id, std::int32_t times, sys_micros at) {
  rows.next().add(id.binary());
  rows.next().add_int4(times);
  rows.next().add_time(at);
}

}  // namespace recibo::storage
