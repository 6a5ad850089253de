#include "recibo/storage/keys.hpp"

#include "columns.hpp"

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

#define RECIBO_KEY_COLUMNS                                                                                          \
  "k.operation, k.key, k.delivery, k.content_digest, k.body_digest, k.disposition, k.state, k.answer_status::int, " \
  "k.answer_body, "                                                                                                 \
  "k.duplicates, k.signed_digest, k.provider, k.answer_items, k.payload "

// By the operation first and then its keys, whatever the planner knows of their number: each OFFSET 0 keeps the order. A plan
// that was made while there were few keys would look for them by the key alone, through the whole index.
const statement find_keys{
    "find_keys",
    "SELECT k.* FROM unnest($1, $2) AS w(request_id, key) "
    "CROSS JOIN LATERAL (SELECT o.id FROM recibo.operations o WHERE o.request_id = w.request_id OFFSET 0) o "
    "CROSS JOIN LATERAL (SELECT " RECIBO_KEY_COLUMNS
    "FROM recibo.idempotency_keys k WHERE k.operation = o.id AND k.key = w.key OFFSET 0) k",
    {oid::text_array, oid::bytea_array}};

const statement find_operation_keys{"find_operation_keys",
                                    "SELECT " RECIBO_KEY_COLUMNS
                                    "FROM unnest($1, $2) AS w(operation, key) "
                                    "JOIN recibo.idempotency_keys k ON k.operation = w.operation AND k.key = w.key",
                                    {oid::uuid_array, oid::bytea_array}};

const statement find_signed_keys{"find_signed_keys",
                                 "SELECT " RECIBO_KEY_COLUMNS
                                 "FROM unnest($1, $2) AS w(operation, digest) "
                                 "JOIN recibo.idempotency_keys k ON k.operation = w.operation AND k.signed_digest = w.digest "
                                 "UNION ALL SELECT " RECIBO_KEY_COLUMNS
                                 "FROM unnest($1, $2) AS w(operation, digest) "
                                 "JOIN recibo.signed_contents s ON s.owner = w.operation AND s.signed_digest = w.digest "
                                 "JOIN recibo.idempotency_keys k ON k.operation = s.owner AND k.key = s.key",
                                 {oid::uuid_array, oid::bytea_array}};

const statement find_provider_keys{"find_provider_keys",
                                   "SELECT " RECIBO_KEY_COLUMNS
                                   "FROM unnest($1, $2) AS w(provider, key) "
                                   "JOIN recibo.idempotency_keys k ON k.provider = w.provider AND k.key = w.key",
                                   {oid::text_array, oid::bytea_array}};

#undef RECIBO_KEY_COLUMNS

const statement find_client_keys{
    "find_client_keys",
    "SELECT k.client, k.key, o.request_id, o.id, k.fingerprint FROM unnest($1, $2) AS w(client, key) "
    "JOIN recibo.client_keys k ON k.client = w.client AND k.key = w.key "
    "JOIN recibo.operations o ON o.id = k.operation",
    {oid::text_array, oid::text_array}};

const statement insert_keys{"insert_keys",
                            "INSERT INTO recibo.idempotency_keys (operation, key, delivery, content_digest, body_digest, "
                            "disposition, state, answer_status, "
                            "answer_body, signed_digest, provider, expires_at, answer_items, payload) "
                            "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                            {oid::uuid_array, oid::bytea_array, oid::uuid_array, oid::bytea_array, oid::bytea_array,
                             oid::text_array, oid::text_array, oid::int4_array, oid::text_array, oid::bytea_array,
                             oid::text_array, oid::timestamptz_array, oid::text_array, oid::uuid_array}};

const statement repeat_keys{
    "repeat_keys",
    "WITH changed AS (UPDATE recibo.idempotency_keys k SET duplicates = k.duplicates + u.times "
    "FROM unnest($1, $2, $3) AS u(operation, key, times) WHERE k.operation = u.operation AND k.key = u.key "
    "RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
    {oid::uuid_array, oid::bytea_array, oid::int4_array}};

const statement insert_client_keys{"insert_client_keys",
                                   "INSERT INTO recibo.client_keys (client, key, operation, fingerprint, used_at) "
                                   "SELECT * FROM unnest($1, $2, $3, $4, $5)",
                                   {oid::text_array, oid::text_array, oid::uuid_array, oid::bytea_array, oid::timestamptz_array}};

}  // namespace

void append_find_keys(checked_pipeline& to, const std::vector<key_name>& names) {
  binary_array request_ids(oid::text), keys(oid::bytea);
  for (const auto& n : names) {
    request_ids.add(n.request_id);
    keys.add(n.key);
  }
  parameters with;
  with.array(std::move(request_ids)).array(std::move(keys));
  to.add(find_keys, std::move(with));
}

void append_find_operation_keys(checked_pipeline& to, const std::vector<operation_key_name>& names) {
  binary_array operations(oid::uuid), keys(oid::bytea);
  for (const auto& n : names) {
    operations.add(n.operation.binary());
    keys.add(n.key);
  }
  parameters with;
  with.array(std::move(operations)).array(std::move(keys));
  to.add(find_operation_keys, std::move(with));
}

void append_find_signed_keys(checked_pipeline& to, const std::vector<signed_name>& names) {
  binary_array operations(oid::uuid), digests(oid::bytea);
  for (const auto& n : names) {
    operations.add(n.operation.binary());
    digests.add(binary(n.digest));
  }
  parameters with;
  with.array(std::move(operations)).array(std::move(digests));
  to.add(find_signed_keys, std::move(with));
}

void append_find_provider_keys(checked_pipeline& to, const std::vector<provider_key_name>& names) {
  binary_array providers(oid::text), keys(oid::bytea);
  for (const auto& n : names) {
    providers.add(n.provider);
    keys.add(n.key);
  }
  parameters with;
  with.array(std::move(providers)).array(std::move(keys));
  to.add(find_provider_keys, std::move(with));
}

std::vector<key_row> read_keys(const rows& from) {
  std::vector<key_row> out(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    auto& k = out[static_cast<std::size_t>(i)];
    k.operation = from.id<operation_id>(i, 0);
    k.key = from.string(i, 1);
    k.delivery = from.id<delivery_id>(i, 2);
    k.content_digest = digest_at(from, i, 3);
    k.body_digest = digest_at(from, i, 4);
    k.disposition = from.string(i, 5);
    k.state = from.string(i, 6);
    k.answer_status = from.int4(i, 7);
    k.answer_body = from.text_or_null(i, 8);
    k.duplicates = from.int4(i, 9);
    k.signed_digest = digest_or_null(from, i, 10);
    k.provider = from.text_or_null(i, 11);
    k.answer_items = from.text_or_null(i, 12);
    if (!from.is_null(i, 13)) k.payload = from.id<delivery_id>(i, 13);
  }
  return out;
}

void append_find_client_keys(checked_pipeline& to, const std::vector<client_key_name>& names) {
  binary_array clients(oid::text), keys(oid::text);
  for (const auto& n : names) {
    clients.add(n.client);
    keys.add(n.key);
  }
  parameters with;
  with.array(std::move(clients)).array(std::move(keys));
  to.add(find_client_keys, std::move(with));
}

std::vector<client_key_row> read_client_keys(const rows& from) {
  std::vector<client_key_row> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({from.string(i, 0), from.string(i, 1), from.string(i, 2), from.id<operation_id>(i, 3), digest_at(from, i, 4)});
  return out;
}

new_keys::new_keys() : rows(insert_keys) {}
void new_keys::add(const key_row& k) {
  rows.next().add(k.operation.binary());
  rows.next().add(k.key);
  rows.next().add(k.delivery.binary());
  rows.next().add(binary(k.content_digest));
  rows.next().add(binary(k.body_digest));
  rows.next().add(k.disposition);
  rows.next().add(k.state);
  rows.next().add_int4(k.answer_status);
  rows.next().add(k.answer_body);
  add_digest(rows.next(), k.signed_digest);
  rows.next().add(k.provider);
  rows.next().add_time(k.expires_at);
  rows.next().add(k.answer_items);
  add_id_or_null(rows.next(), k.payload);
}

repeated_keys::repeated_keys() : rows(repeat_keys) {}
void repeated_keys::add(operation_id id, std::string_view key, std::int32_t times) {
  rows.next().add(id.binary());
  rows.next().add(key);
  rows.next().add_int4(times);
}

new_client_keys::new_client_keys() : rows(insert_client_keys) {}
void new_client_keys::add(std::string_view client, std::string_view key, operation_id id, const sha256_digest& fingerprint,
                          sys_micros at) {
  rows.next().add(client);
  rows.next().add(key);
  rows.next().add(id.binary());
  rows.next().add(binary(fingerprint));
  rows.next().add_time(at);
}

}  // namespace recibo::storage
