#include "recibo/storage/items.hpp"

#include "columns.hpp"

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

const statement find_items{"find_items",
                           "SELECT i.operation, i.item_id, i.state, i.ordinal, i.version, i.watermark_at, i.watermark_sequence, "
                           "i.result, i.attention, i.attention_detail, i.attention_delivery, i.attention_at "
                           "FROM unnest($1, $2) AS w(operation, item_id) "
                           "JOIN recibo.items i ON i.operation = w.operation AND i.item_id = w.item_id",
                           {oid::uuid_array, oid::text_array}};

const statement count_items{"count_items",
                            "SELECT i.operation, i.state, count(*) FROM unnest($1) AS w(operation) "
                            "JOIN recibo.items i ON i.operation = w.operation GROUP BY i.operation, i.state",
                            {oid::uuid_array}};

const statement insert_items{
    "insert_items",
    "INSERT INTO recibo.items (operation, item_id, ordinal, state, version, watermark_at, watermark_sequence, result, attention, "
    "attention_detail, attention_delivery, attention_at, updated_at) "
    "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    {oid::uuid_array, oid::text_array, oid::int4_array, oid::text_array, oid::int4_array, oid::timestamptz_array, oid::int8_array,
     oid::text_array, oid::text_array, oid::text_array, oid::uuid_array, oid::timestamptz_array, oid::timestamptz_array}};

const statement update_items{
    "update_items",
    "WITH changed AS (UPDATE recibo.items i SET state = u.state, version = u.version, watermark_at = u.watermark_at, "
    "watermark_sequence = u.watermark_sequence, result = u.result, attention = u.attention, attention_detail = "
    "u.attention_detail, attention_delivery = u.attention_delivery, attention_at = u.attention_at, updated_at = u.updated_at "
    "FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS u(operation, item_id, read_version, state, version, "
    "watermark_at, watermark_sequence, result, attention, attention_detail, attention_delivery, attention_at, updated_at) "
    "WHERE i.operation = u.operation AND i.item_id = u.item_id AND i.version = u.read_version RETURNING 1) "
    "SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array, oid::text_array, oid::int4_array, oid::text_array, oid::int4_array, oid::timestamptz_array, oid::int8_array,
     oid::text_array, oid::text_array, oid::text_array, oid::uuid_array, oid::timestamptz_array, oid::timestamptz_array}};

// The columns that a recorded fact may change, in the order in which both statements name them.
void add_changing_columns(bulk& rows, const item_row& i, sys_micros at) {
  rows.next().add(i.state);
  rows.next().add_int4(i.version);
  rows.next().add_time(i.watermark_at);
  rows.next().add_int8(i.watermark_sequence);
  rows.next().add(i.result);
  rows.next().add(i.attention);
  rows.next().add(i.attention_detail);
  add_id_or_null(rows.next(), i.attention_delivery);
  rows.next().add_time(i.attention_at);
  rows.next().add_time(at);
}

}  // namespace

void append_find_items(checked_pipeline& to, const std::vector<item_name>& names) {
  binary_array operations(oid::uuid), items(oid::text);
  for (const auto& n : names) {
    operations.add(n.operation.binary());
    items.add(n.item_id);
  }
  parameters with;
  with.array(std::move(operations)).array(std::move(items));
  to.add(find_items, std::move(with));
}

std::vector<item_row> read_items(const rows& from) {
  std::vector<item_row> out(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    auto& item = out[static_cast<std::size_t>(i)];
    item.operation = from.id<operation_id>(i, 0);
    item.item_id = from.string(i, 1);
    item.state = from.string(i, 2);
    item.ordinal = from.int4(i, 3);
    item.version = from.int4(i, 4);
    item.watermark_at = from.time_or_null(i, 5);
    item.watermark_sequence = from.int8_or_null(i, 6);
    item.result = from.text_or_null(i, 7);
    item.attention = from.text_or_null(i, 8);
    item.attention_detail = from.text_or_null(i, 9);
    if (!from.is_null(i, 10)) item.attention_delivery = from.id<delivery_id>(i, 10);
    item.attention_at = from.time_or_null(i, 11);
  }
  return out;
}

void append_count_items(checked_pipeline& to, const std::vector<operation_id>& operations) {
  binary_array ids(oid::uuid);
  for (const auto& id : operations) ids.add(id.binary());
  parameters with;
  with.array(std::move(ids));
  to.add(count_items, std::move(with));
}

std::vector<item_count_row> read_item_counts(const rows& from) {
  std::vector<item_count_row> out;
  for (int i = 0; i < from.size(); ++i) out.push_back({from.id<operation_id>(i, 0), from.string(i, 1), from.int8(i, 2)});
  return out;
}

new_items::new_items() : rows(insert_items) {}
void new_items::add(const item_row& i, sys_micros at) {
  rows.next().add(i.operation.binary());
  rows.next().add(i.item_id);
  rows.next().add_int4(i.ordinal);
  add_changing_columns(rows, i, at);
}

changed_items::changed_items() : rows(update_items) {}
void changed_items::add(const item_row& i, std::int32_t read_version, sys_micros at) {
  rows.next().add(i.operation.binary());
  rows.next().add(i.item_id);
  rows.next().add_int4(read_version);
  add_changing_columns(rows, i, at);
}

}  // namespace recibo::storage
