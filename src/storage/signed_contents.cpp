#include "recibo/storage/signed_contents.hpp"

#include "columns.hpp"

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::statement;

const statement find_signed_contents{"find_signed_contents",
                                     "SELECT s.owner, s.signed_digest, s.key FROM unnest($1, $2) AS w(owner, digest) "
                                     "JOIN recibo.signed_contents s ON s.owner = w.owner AND s.signed_digest = w.digest",
                                     {oid::uuid_array, oid::bytea_array}};

const statement insert_signed_contents{
    "insert_signed_contents",
    "WITH new AS (SELECT * FROM unnest($1, $2, $3, $4) AS u(owner, signed_digest, key, seen_at)) "
    "INSERT INTO recibo.signed_contents (owner, signed_digest, key, seen_at) SELECT * FROM new ON CONFLICT DO NOTHING",
    {oid::uuid_array, oid::bytea_array, oid::bytea_array, oid::timestamptz_array}};

void add_row(bulk& rows, std::string_view owner, const sha256_digest& digest, std::string_view key, sys_micros at) {
  rows.next().add(owner);
  rows.next().add(binary(digest));
  rows.next().add(key);
  rows.next().add_time(at);
}

}  // namespace

void append_find_signed_contents(checked_pipeline& to, const std::vector<signed_name>& names) {
  binary_array operations(oid::uuid), digests(oid::bytea);
  for (const auto& n : names) {
    operations.add(n.operation.binary());
    digests.add(binary(n.digest));
  }
  parameters with;
  with.array(std::move(operations)).array(std::move(digests));
  to.add(find_signed_contents, std::move(with));
}

std::vector<signed_content_row> read_signed_contents(const postgres::rows& from) {
  std::vector<signed_content_row> out;
  for (int i = 0; i < from.size(); ++i) out.push_back({from.id<operation_id>(i, 0), digest_at(from, i, 1), from.string(i, 2)});
  return out;
}

new_signed_contents::new_signed_contents() : rows(insert_signed_contents) {}
void new_signed_contents::add(operation_id operation, const sha256_digest& digest, std::string_view key, sys_micros at) {
  add_row(rows, operation.binary(), digest, key, at);
}
void new_signed_contents::add(delivery_id parked, const sha256_digest& digest, std::string_view key, sys_micros at) {
  add_row(rows, parked.binary(), digest, key, at);
}
void new_signed_contents::add(failed_callback_id failed, const sha256_digest& digest, std::string_view key, sys_micros at) {
  add_row(rows, failed.binary(), digest, key, at);
}

}  // namespace recibo::storage
