#include "recibo/storage/operations.hpp"

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

// Corrections are read by the sequence that the lock returned, so that an older snapshot finds that one or nothing.
const statement find_intents{
    "find_intents",
    "SELECT r.operation, (CASE WHEN c.operation IS NULL THEN r.client ELSE c.client END), (CASE WHEN c.operation IS NULL THEN "
    "r.action ELSE c.action END), (CASE WHEN c.operation IS NULL THEN r.metadata ELSE c.metadata END)::text, "
    "(CASE WHEN c.operation IS NULL THEN r.reference ELSE c.reference END), (CASE WHEN c.operation IS NULL THEN r.amount ELSE "
    "c.amount END), (CASE WHEN c.operation IS NULL THEN r.currency ELSE c.currency END), (CASE WHEN c.operation IS NULL THEN "
    "r.account ELSE c.account END), (CASE WHEN c.operation IS NULL THEN r.deadline ELSE c.deadline END), (CASE WHEN c.operation "
    "IS NULL THEN r.intent ELSE c.intent END) "
    "FROM unnest($1, $2) AS w(operation, corrected) JOIN recibo.registrations r ON r.operation = w.operation "
    "LEFT JOIN recibo.corrections c ON c.operation = w.operation AND c.sequence = w.corrected",
    {oid::uuid_array, oid::int4_array}};

const statement insert_corrections{
    "insert_corrections",
    "INSERT INTO recibo.corrections (operation, sequence, kind, client, action, reference, amount, currency, account, deadline, "
    "metadata, intent, at, actor) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    {oid::uuid_array, oid::int4_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array,
     oid::text_array, oid::text_array, oid::timestamptz_array, oid::jsonb_array, oid::bytea_array, oid::timestamptz_array,
     oid::text_array}};

const statement find_aliases{"find_aliases",
                             "SELECT a.provider, a.alias, o.request_id, o.id FROM unnest($1, $2) AS w(provider, alias) "
                             "JOIN recibo.aliases a ON a.provider = w.provider AND a.alias = w.alias "
                             "JOIN recibo.operations o ON o.id = a.operation",
                             {oid::text_array, oid::text_array}};

#define RECIBO_KEY_COLUMNS                                                                                          \
  "k.operation, k.key, k.delivery, k.content_digest, k.body_digest, k.disposition, k.state, k.answer_status::int, " \
  "k.answer_body, "                                                                                                 \
  "k.duplicates, k.signed_digest, k.provider, k.answer_items, k.payload "

const statement find_keys{"find_keys",
                          "SELECT " RECIBO_KEY_COLUMNS
                          "FROM unnest($1, $2) AS w(request_id, key) "
                          "JOIN recibo.operations o ON o.request_id = w.request_id "
                          "JOIN recibo.idempotency_keys k ON k.operation = o.id AND k.key = w.key",
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

const statement add_workflow_version{"add_workflow_version",
                                     "INSERT INTO recibo.workflow_versions (version_key, digest, name, definition) "
                                     "VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                                     {oid::int8, oid::bytea, oid::text, oid::text}};

const statement find_item_states{
    "find_item_states", "SELECT DISTINCT operation, state FROM recibo.items WHERE operation = ANY($1)", {oid::uuid_array}};

const statement insert_workflow_changes{"insert_workflow_changes",
                                        "INSERT INTO recibo.workflow_changes (operation, sequence, from_workflow, to_workflow, "
                                        "from_state, to_state, at, actor, reason) "
                                        "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                                        {oid::uuid_array, oid::int4_array, oid::int8_array, oid::int8_array, oid::text_array,
                                         oid::text_array, oid::timestamptz_array, oid::text_array, oid::text_array}};

const statement find_workflows{"find_workflows",
                               "SELECT version_key, definition FROM recibo.workflow_versions WHERE version_key = ANY($1)",
                               {oid::int8_array}};

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

const statement insert_registrations{
    "insert_registrations",
    "INSERT INTO recibo.registrations (operation, client, action, reference, amount, currency, deadline, metadata, intent, "
    "accepted_at, "
    "trace_id, account, delivery) SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    {oid::uuid_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array, oid::timestamptz_array,
     oid::jsonb_array, oid::bytea_array, oid::timestamptz_array, oid::text_array, oid::text_array, oid::uuid_array}};

const statement insert_aliases{
    "insert_aliases",
    "INSERT INTO recibo.aliases (provider, alias, operation, learned_at) SELECT * FROM unnest($1, $2, $3, $4)",
    {oid::text_array, oid::text_array, oid::uuid_array, oid::timestamptz_array}};

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

binary_array text_array(const std::vector<std::string_view>& values) {
  binary_array out(oid::text);
  for (const auto v : values) out.add(v);
  return out;
}

void append_alias_names(checked_pipeline& to, const statement& what, const std::vector<alias_name>& names) {
  binary_array providers(oid::text), aliases(oid::text);
  for (const auto& n : names) {
    providers.add(n.provider);
    aliases.add(n.alias);
  }
  parameters with;
  with.array(std::move(providers)).array(std::move(aliases));
  to.add(what, std::move(with));
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

void append_find_aliases(checked_pipeline& to, const std::vector<alias_name>& names) {
  append_alias_names(to, find_aliases, names);
}

std::vector<alias_row> read_aliases(const rows& from) {
  std::vector<alias_row> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({from.string(i, 0), from.string(i, 1), from.string(i, 2), from.id<operation_id>(i, 3)});
  return out;
}

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

void append_workflow_version(checked_pipeline& to, std::int64_t version_key, const sha256_digest& digest, std::string_view name,
                             std::string_view definition) {
  parameters with;
  with.int8(version_key).bytes(binary(digest)).text(name).text(definition);
  to.add(add_workflow_version, std::move(with));
}

void append_find_item_states(checked_pipeline& to, const std::vector<operation_id>& operations) {
  binary_array ids(oid::uuid);
  for (const auto& id : operations) ids.add(id.binary());
  parameters with;
  with.array(std::move(ids));
  to.add(find_item_states, std::move(with));
}

std::vector<item_state_row> read_item_states(const rows& from) {
  std::vector<item_state_row> out;
  for (int i = 0; i < from.size(); ++i) out.push_back({from.id<operation_id>(i, 0), from.string(i, 1)});
  return out;
}

new_workflow_changes::new_workflow_changes() : rows(insert_workflow_changes) {}
void new_workflow_changes::add(operation_id id, std::int32_t sequence, std::int64_t from_workflow, std::int64_t to_workflow,
                               std::string_view from, std::string_view to, sys_micros at, std::string_view actor,
                               std::string_view reason) {
  rows.next().add(id.binary());
  rows.next().add_int4(sequence);
  rows.next().add_int8(from_workflow);
  rows.next().add_int8(to_workflow);
  rows.next().add(from);
  rows.next().add(to);
  rows.next().add_time(at);
  rows.next().add(actor);
  rows.next().add(reason);
}

void append_find_workflows(checked_pipeline& to, const std::vector<std::int64_t>& version_keys) {
  binary_array keys(oid::int8);
  for (const auto k : version_keys) keys.add_int8(k);
  parameters with;
  with.array(std::move(keys));
  to.add(find_workflows, std::move(with));
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

new_registrations::new_registrations() : rows(insert_registrations) {}
void new_registrations::add(operation_id id, std::string_view client, std::string_view action,
                            const std::optional<std::string>& reference, const std::optional<std::string>& amount,
                            const std::optional<std::string>& currency, const std::optional<sys_micros>& deadline,
                            std::string_view metadata, const sha256_digest& intent, sys_micros accepted_at,
                            std::string_view trace_id, const std::optional<std::string>& account,
                            const std::optional<delivery_id>& delivery) {
  rows.next().add(id.binary());
  rows.next().add(client);
  rows.next().add(action);
  rows.next().add(reference);
  rows.next().add(amount);
  rows.next().add(currency);
  rows.next().add_time(deadline);
  rows.next().add_jsonb(metadata);
  rows.next().add(binary(intent));
  rows.next().add_time(accepted_at);
  rows.next().add(trace_id);
  rows.next().add(account);
  if (delivery) {
    rows.next().add(delivery->binary());
  } else {
    rows.next().add_null();
  }
}

void append_find_intents(checked_pipeline& to, const std::vector<std::pair<operation_id, std::int32_t>>& operations) {
  binary_array ids(oid::uuid), corrected(oid::int4);
  for (const auto& [id, sequence] : operations) {
    ids.add(id.binary());
    corrected.add_int4(sequence);
  }
  parameters with;
  with.array(std::move(ids)).array(std::move(corrected));
  to.add(find_intents, std::move(with));
}

std::vector<intent_row> read_intents(const rows& from) {
  std::vector<intent_row> out(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    auto& r = out[static_cast<std::size_t>(i)];
    r.operation = from.id<operation_id>(i, 0);
    r.client = from.string(i, 1);
    r.action = from.string(i, 2);
    r.metadata = from.string(i, 3);
    r.reference = from.text_or_null(i, 4);
    r.amount = from.text_or_null(i, 5);
    r.currency = from.text_or_null(i, 6);
    r.account = from.text_or_null(i, 7);
    r.deadline = from.time_or_null(i, 8);
    r.intent = digest_at(from, i, 9);
  }
  return out;
}

new_corrections::new_corrections() : rows(insert_corrections) {}
void new_corrections::add(const intent_row& now, std::int32_t sequence, std::string_view kind, sys_micros at,
                          std::string_view actor) {
  rows.next().add(now.operation.binary());
  rows.next().add_int4(sequence);
  rows.next().add(kind);
  rows.next().add(now.client);
  rows.next().add(now.action);
  rows.next().add(now.reference);
  rows.next().add(now.amount);
  rows.next().add(now.currency);
  rows.next().add(now.account);
  rows.next().add_time(now.deadline);
  rows.next().add_jsonb(now.metadata);
  rows.next().add(binary(now.intent));
  rows.next().add_time(at);
  rows.next().add(actor);
}

new_aliases::new_aliases() : rows(insert_aliases) {}
void new_aliases::add(std::string_view provider, std::string_view alias, operation_id id, sys_micros at) {
  rows.next().add(provider);
  rows.next().add(alias);
  rows.next().add(id.binary());
  rows.next().add_time(at);
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
