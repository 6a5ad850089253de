#include "recibo/storage/registrations.hpp"

#include "alias_names.hpp"
#include "columns.hpp"

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

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

}  // namespace

void append_find_aliases(checked_pipeline& to, const std::vector<alias_name>& names) {
  append_alias_names(to, find_aliases, names);
}

std::vector<alias_row> read_aliases(const rows& from) {
  std::vector<alias_row> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({from.string(i, 0), from.string(i, 1), from.string(i, 2), from.id<operation_id>(i, 3)});
  return out;
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

}  // namespace recibo::storage
