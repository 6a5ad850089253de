#include "recibo/storage/operations.hpp"

#include "alias_names.hpp"
#include "columns.hpp"

#include <algorithm>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

#define RECIBO_OPERATION_COLUMNS                                                                                       \
  "o.id, o.request_id, o.provider, o.workflow, o.state, o.version, o.revision, o.watermark_at, o.watermark_sequence, " \
  "o.sequence, o.chain_hash, o.review_open, o.state_at, r.client, r.amount, r.currency, r.intent, o.corrected, "       \
  "r.account, r.delivery "                                                                                             \
  "FROM recibo.operations o JOIN recibo.registrations r ON r.operation = o.id "

// registrations are immutable and come into being with their operation, so that reading them in the locking statement is
// safe; nothing else may be read there (write path, rule 1).
const statement lock_by_request_id{"lock_by_request_id",
                                   "SELECT " RECIBO_OPERATION_COLUMNS
                                   "WHERE o.request_id = ANY($1) ORDER BY o.request_id FOR NO KEY UPDATE OF o SKIP LOCKED",
                                   {oid::text_array}};

const statement lock_by_alias{"lock_by_alias",
                              "SELECT " RECIBO_OPERATION_COLUMNS
                              "WHERE o.id IN (SELECT a.operation FROM unnest($1, $2) AS w(provider, alias) "
                              "JOIN recibo.aliases a ON a.provider = w.provider AND a.alias = w.alias) "
                              "ORDER BY o.request_id FOR NO KEY UPDATE OF o SKIP LOCKED",
                              {oid::text_array, oid::text_array}};

const statement lock_waiting{
    "lock_waiting", "SELECT " RECIBO_OPERATION_COLUMNS "WHERE o.request_id = $1 FOR NO KEY UPDATE OF o", {oid::text}};

const statement lock_waiting_by_alias{
    "lock_waiting_by_alias",
    "SELECT " RECIBO_OPERATION_COLUMNS
    "WHERE o.id = (SELECT a.operation FROM recibo.aliases a WHERE a.provider = $1 AND a.alias = $2) "
    "FOR NO KEY UPDATE OF o",
    {oid::text, oid::text}};

#undef RECIBO_OPERATION_COLUMNS

const statement existing{"existing",
                         "SELECT request_id, provider FROM recibo.operations WHERE request_id = ANY($1) ORDER BY request_id",
                         {oid::text_array}};

// Where another transaction was faster, the unique key says so (23505): the batch fails whole and starts again.
const statement insert_operations{
    "insert_operations",
    "INSERT INTO recibo.operations (id, request_id, provider, state, version, revision, "
    "watermark_at, watermark_sequence, "
    "sequence, chain_hash, review_open, state_at, updated_at, workflow, corrected) "
    "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
    {oid::uuid_array, oid::text_array, oid::text_array, oid::text_array, oid::int4_array, oid::int4_array, oid::timestamptz_array,
     oid::int8_array, oid::int4_array, oid::bytea_array, oid::boolean_array, oid::timestamptz_array, oid::timestamptz_array,
     oid::int8_array, oid::int4_array}};

const statement update_operations{
    "update_operations",
    "WITH changed AS (UPDATE recibo.operations o SET state = u.state, version = u.version, revision = u.revision, watermark_at = "
    "u.watermark_at, "
    "watermark_sequence = u.watermark_sequence, sequence = u.sequence, chain_hash = u.chain_hash, review_open = u.review_open, "
    "state_at = u.state_at, updated_at = u.updated_at, workflow = u.workflow, corrected = u.corrected "
    "FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS u(id, locked_revision, state, version, "
    "revision, "
    "watermark_at, "
    "watermark_sequence, sequence, chain_hash, review_open, state_at, updated_at, workflow, corrected) "
    "WHERE o.id = u.id AND o.revision = u.locked_revision RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM "
    "changed",
    {oid::uuid_array, oid::int4_array, oid::text_array, oid::int4_array, oid::int4_array, oid::timestamptz_array, oid::int8_array,
     oid::int4_array, oid::bytea_array, oid::boolean_array, oid::timestamptz_array, oid::timestamptz_array, oid::int8_array,
     oid::int4_array}};

binary_array text_array(const std::vector<std::string_view>& values) {
  binary_array out(oid::text);
  for (const auto v : values) out.add(v);
  return out;
}

}  // namespace

const statement begin{"begin", "BEGIN", {}};
const statement commit{"commit", "COMMIT", {}};

void append_lock_by_request_id(checked_pipeline& to, const std::vector<std::string_view>& request_ids) {
  parameters with;
  with.array(text_array(request_ids));
  to.add(lock_by_request_id, std::move(with));
}

void append_lock_by_alias(checked_pipeline& to, const std::vector<alias_name>& names) {
  append_alias_names(to, lock_by_alias, names);
}

void append_lock_waiting(checked_pipeline& to, std::string_view request_id) {
  parameters with;
  with.text(request_id);
  to.add(lock_waiting, std::move(with));
}

void append_lock_waiting(checked_pipeline& to, const alias_name& name) {
  parameters with;
  with.text(name.provider).text(name.alias);
  to.add(lock_waiting_by_alias, std::move(with));
}

std::vector<operation_row> read_operations(const rows& from) {
  std::vector<operation_row> out(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    auto& o = out[static_cast<std::size_t>(i)];
    o.id = from.id<operation_id>(i, 0);
    o.request_id = from.string(i, 1);
    o.provider = from.string(i, 2);
    o.workflow = from.int8(i, 3);
    o.state = from.string(i, 4);
    o.version = from.int4(i, 5);
    o.revision = from.int4(i, 6);
    o.watermark_at = from.time_or_null(i, 7);
    o.watermark_sequence = from.int8_or_null(i, 8);
    o.sequence = from.int4(i, 9);
    o.chain_hash = digest_at(from, i, 10);
    o.review_open = from.boolean(i, 11);
    o.state_at = from.time(i, 12);
    o.client = from.string(i, 13);
    o.amount = from.text_or_null(i, 14);
    o.currency = from.text_or_null(i, 15);
    o.intent = digest_at(from, i, 16);
    if (!from.is_null(i, 17)) o.corrected = from.int4(i, 17);
    o.account = from.text_or_null(i, 18);
    if (!from.is_null(i, 19)) o.made_by = from.id<delivery_id>(i, 19);
  }
  return out;
}

void append_existing(checked_pipeline& to, const std::vector<std::string_view>& request_ids) {
  parameters with;
  with.array(text_array(request_ids));
  to.add(existing, std::move(with));
}

std::vector<existing_row> read_existing(const rows& from) {
  std::vector<existing_row> out;
  for (int i = 0; i < from.size(); ++i) out.push_back({from.string(i, 0), from.string(i, 1)});
  return out;
}

const existing_row* find_existing(const std::vector<existing_row>& in, std::string_view request_id) {
  const auto it = std::lower_bound(in.begin(), in.end(), request_id,
                                   [](const auto& row, std::string_view id) { return row.request_id < id; });
  return it != in.end() && it->request_id == request_id ? &*it : nullptr;
}

namespace {

// The columns that a recorded fact may change, in the order in which both statements name them.
void add_changing_columns(bulk& rows, const operation_row& o, sys_micros at) {
  rows.next().add(o.state);
  rows.next().add_int4(o.version);
  rows.next().add_int4(o.revision);
  rows.next().add_time(o.watermark_at);
  rows.next().add_int8(o.watermark_sequence);
  rows.next().add_int4(o.sequence);
  rows.next().add(binary(o.chain_hash));
  rows.next().add_bool(o.review_open);
  rows.next().add_time(o.state_at);
  rows.next().add_time(at);
  rows.next().add_int8(o.workflow);
  if (o.corrected) {
    rows.next().add_int4(*o.corrected);
  } else {
    rows.next().add_null();
  }
}

}  // namespace

new_operations::new_operations() : rows(insert_operations) {}
void new_operations::add(const operation_row& o, sys_micros at) {
  rows.next().add(o.id.binary());
  rows.next().add(o.request_id);
  rows.next().add(o.provider);
  add_changing_columns(rows, o, at);
}

changed_operations::changed_operations() : rows(update_operations) {}
void changed_operations::add(const operation_row& o, std::int32_t locked_revision, sys_micros at) {
  rows.next().add(o.id.binary());
  rows.next().add_int4(locked_revision);
  add_changing_columns(rows, o, at);
}

}  // namespace recibo::storage
