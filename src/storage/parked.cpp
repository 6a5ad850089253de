#include "recibo/storage/parked.hpp"

#include "columns.hpp"

#include <algorithm>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

const statement try_locks{
    "try_locks", "SELECT w.key FROM unnest($1) AS w(key) WHERE NOT pg_try_advisory_xact_lock(w.key)", {oid::int8_array}};

#define RECIBO_PARKED_COLUMNS                                                                                                  \
  "p.id, p.provider, p.identity, p.key, p.disposition, p.content_digest, p.body_digest, p.request_id, p.event, p.event_raw, "  \
  "p.result, p.secret, p.occurred_at, p.provider_sequence, p.amount, p.currency, p.answer_status::int, p.parked_at, "          \
  "p.duplicates, p.signed_digest, p.account, p.items, p.payload, p.key_beside, p.part, p.head, "                               \
  "(SELECT string_agg(x.identity, E'\\x1f') FROM recibo.parked_identities x WHERE x.parked = p.id AND x.kind = 'reference'), " \
  "p.replay, (SELECT y.failed_callback FROM recibo.replays y WHERE y.id = p.replay), "                                         \
  "(SELECT y.actor FROM recibo.replays y WHERE y.id = p.replay), (SELECT y.reason FROM recibo.replays y WHERE y.id = "         \
  "p.replay), "                                                                                                                \
  "(SELECT string_agg(s.signed_digest, '' ORDER BY s.signed_digest) FROM recibo.signed_contents s WHERE s.owner = p.id), "     \
  "(SELECT d.look_up FROM recibo.deliveries d WHERE d.id = p.id) "

const statement find_parked{
    "find_parked",
    "SELECT " RECIBO_PARKED_COLUMNS
    ", w.kind, w.identity FROM unnest($1, $2, $3) AS w(kind, provider, identity) "
    "JOIN recibo.parked_identities i ON i.provider = w.provider AND i.kind = w.kind AND i.identity = w.identity "
    "JOIN recibo.parked p ON p.id = i.parked ORDER BY p.disposition = 'conflict', p.id LIMIT 1000",
    {oid::text_array, oid::text_array, oid::text_array}};

const statement find_parked_keys{
    "find_parked_keys",
    "SELECT " RECIBO_PARKED_COLUMNS
    ", w.kind, w.identity FROM unnest($1, $2, $3, $4) AS w(kind, provider, identity, key) "
    "JOIN recibo.parked_identities i ON i.provider = w.provider AND i.kind = w.kind AND i.identity = w.identity "
    "AND i.key = w.key JOIN recibo.parked p ON p.id = i.parked ORDER BY p.id",
    {oid::text_array, oid::text_array, oid::text_array, oid::bytea_array}};

const statement find_parked_signed{
    "find_parked_signed",
    "SELECT " RECIBO_PARKED_COLUMNS
    ", '', '' FROM unnest($1, $2) AS w(provider, digest) "
    "CROSS JOIN LATERAL (SELECT x.id FROM recibo.parked x WHERE x.provider = w.provider AND x.signed_digest = w.digest "
    "UNION SELECT s.owner FROM recibo.signed_contents s WHERE s.signed_digest = w.digest) AS same "
    "JOIN recibo.parked p ON p.id = same.id AND p.provider = w.provider ORDER BY p.id",
    {oid::text_array, oid::bytea_array}};

const statement find_parked_of{
    "find_parked_of",
    "SELECT " RECIBO_PARKED_COLUMNS
    ", '', '' FROM recibo.parked p WHERE p.id IN ("
    "SELECT i.parked FROM recibo.operations o JOIN recibo.parked_identities i "
    "ON i.provider = o.provider AND i.kind = 'request_id' AND i.identity = o.request_id WHERE o.request_id = ANY($1) "
    "UNION ALL "
    "SELECT i.parked FROM recibo.operations o JOIN recibo.aliases a ON a.operation = o.id JOIN recibo.parked_identities i "
    "ON i.provider = a.provider AND i.kind = 'reference' AND i.identity = a.alias WHERE o.request_id = ANY($1)) "
    "ORDER BY p.disposition = 'conflict', p.id LIMIT 1000",
    {oid::text_array}};

#undef RECIBO_PARKED_COLUMNS

const statement count_parked{
    "count_parked",
    "SELECT i.kind, i.provider, i.identity, count(*) FROM unnest($1, $2, $3) AS w(kind, provider, identity) "
    "JOIN recibo.parked_identities i ON i.provider = w.provider AND i.kind = w.kind AND i.identity = "
    "w.identity GROUP BY 1, 2, 3",
    {oid::text_array, oid::text_array, oid::text_array}};

const statement insert_parked{
    "insert_parked",
    "INSERT INTO recibo.parked (id, provider, identity, key, disposition, content_digest, body_digest, request_id, event, "
    "event_raw, "
    "result, secret, occurred_at, provider_sequence, amount, currency, answer_status, parked_at, signed_digest, account, items, "
    "payload, replay, key_beside, part, head) "
    "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, "
    "$23, $24, $25, $26)",
    {oid::uuid_array,        oid::text_array, oid::text_array, oid::bytea_array, oid::text_array, oid::bytea_array,
     oid::bytea_array,       oid::text_array, oid::text_array, oid::text_array,  oid::text_array, oid::text_array,
     oid::timestamptz_array, oid::int8_array, oid::text_array, oid::text_array,  oid::int4_array, oid::timestamptz_array,
     oid::bytea_array,       oid::text_array, oid::text_array, oid::uuid_array,  oid::uuid_array, oid::bytea_array,
     oid::int4_array,        oid::text_array}};

const statement insert_parked_identities{
    "insert_parked_identities",
    "INSERT INTO recibo.parked_identities (kind, provider, identity, key, parked) SELECT * FROM unnest($1, $2, $3, $4, $5)",
    {oid::text_array, oid::text_array, oid::text_array, oid::bytea_array, oid::uuid_array}};

const statement repeat_parked{"repeat_parked",
                              "WITH changed AS (UPDATE recibo.parked p SET duplicates = p.duplicates + u.times "
                              "FROM unnest($1, $2) AS u(id, times) WHERE p.id = u.id "
                              "RETURNING 1) SELECT recibo.expect_rows(count(*), cardinality($1)) FROM changed",
                              {oid::uuid_array, oid::int4_array}};

const statement delete_parked{"delete_parked",
                              "WITH names AS (DELETE FROM recibo.parked_identities WHERE parked = ANY($1)), "
                              "signed AS (DELETE FROM recibo.signed_contents WHERE owner = ANY($1)), "
                              "gone AS (DELETE FROM recibo.parked WHERE id = ANY($1) RETURNING 1) "
                              "SELECT recibo.expect_rows(count(*), cardinality($1)) FROM gone",
                              {oid::uuid_array}};

// References hold no control characters (core/ids.hpp), so one may stand between them.
std::vector<std::string> split(std::string_view joined) {
  std::vector<std::string> out;
  while (!joined.empty()) {
    const auto end = std::min(joined.find('\x1f'), joined.size());
    out.emplace_back(joined.substr(0, end));
    joined.remove_prefix(std::min(end + 1, joined.size()));
  }
  return out;
}

std::string_view kind_of(bool is_reference) { return is_reference ? "reference" : "request_id"; }

void append_names(checked_pipeline& to, const statement& what, const std::vector<identity_name>& names) {
  binary_array kinds(oid::text), providers(oid::text), identities(oid::text);
  for (const auto& n : names) {
    kinds.add(kind_of(n.is_reference));
    providers.add(n.provider);
    identities.add(n.identity);
  }
  parameters with;
  with.array(std::move(kinds)).array(std::move(providers)).array(std::move(identities));
  to.add(what, std::move(with));
}

}  // namespace

std::int64_t identity_name::lock_key() const {
  canonical name;
  name.add("recibo identity").add(is_reference ? provider : std::string_view()).add(identity);
  const auto digest = sha256(name.bytes());
  std::int64_t key = 0;
  for (std::size_t i = 0; i < 8; ++i) key = static_cast<std::int64_t>(static_cast<std::uint64_t>(key) << 8 | digest[i]);
  return key;
}

void append_try_locks(checked_pipeline& to, const std::vector<std::int64_t>& sorted_keys) {
  binary_array keys(oid::int8);
  for (const auto k : sorted_keys) keys.add_int8(k);
  parameters with;
  with.array(std::move(keys));
  to.add(try_locks, std::move(with));
}

std::vector<std::int64_t> read_refused_locks(const rows& from) {
  std::vector<std::int64_t> out;
  for (int i = 0; i < from.size(); ++i) out.push_back(from.int8(i, 0));
  std::sort(out.begin(), out.end());
  return out;
}

void append_find_parked(checked_pipeline& to, const std::vector<identity_name>& names) { append_names(to, find_parked, names); }

void append_find_parked_keys(checked_pipeline& to, const std::vector<parked_name>& names) {
  binary_array kinds(oid::text), providers(oid::text), identities(oid::text), keys(oid::bytea);
  for (const auto& n : names) {
    kinds.add(kind_of(n.name.is_reference));
    providers.add(n.name.provider);
    identities.add(n.name.identity);
    keys.add(n.key);
  }
  parameters with;
  with.array(std::move(kinds)).array(std::move(providers)).array(std::move(identities)).array(std::move(keys));
  to.add(find_parked_keys, std::move(with));
}

void append_find_parked_signed(checked_pipeline& to, const std::vector<signed_parked_name>& names) {
  binary_array providers(oid::text), digests(oid::bytea);
  for (const auto& n : names) {
    providers.add(n.provider);
    digests.add(binary(n.digest));
  }
  parameters with;
  with.array(std::move(providers)).array(std::move(digests));
  to.add(find_parked_signed, std::move(with));
}

void append_find_parked_of(checked_pipeline& to, const std::vector<std::string_view>& request_ids) {
  binary_array ids(oid::text);
  for (const auto id : request_ids) ids.add(id);
  parameters with;
  with.array(std::move(ids));
  to.add(find_parked_of, std::move(with));
}

std::vector<parked_row> read_parked(const rows& from) {
  std::vector<parked_row> out(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    auto& p = out[static_cast<std::size_t>(i)];
    p.id = from.id<delivery_id>(i, 0);
    p.provider = from.string(i, 1);
    p.identity = from.string(i, 2);
    p.key = from.string(i, 3);
    p.disposition = from.string(i, 4);
    p.content_digest = digest_at(from, i, 5);
    p.body_digest = digest_at(from, i, 6);
    p.request_id = from.text_or_null(i, 7);
    p.event = from.string(i, 8);
    p.event_raw = from.string(i, 9);
    p.result = from.string(i, 10);
    p.secret = from.string(i, 11);
    p.occurred_at = from.time_or_null(i, 12);
    p.provider_sequence = from.int8_or_null(i, 13);
    p.amount = from.text_or_null(i, 14);
    p.currency = from.text_or_null(i, 15);
    p.answer_status = from.int4(i, 16);
    p.parked_at = from.time(i, 17);
    p.duplicates = from.int4(i, 18);
    p.signed_digest = digest_or_null(from, i, 19);
    p.account = from.text_or_null(i, 20);
    p.items = from.string(i, 21);
    if (!from.is_null(i, 22)) p.payload = from.id<delivery_id>(i, 22);
    p.key_beside = from.string(i, 23);
    if (!from.is_null(i, 24)) p.part = from.int4(i, 24);
    p.head = from.text_or_null(i, 25).value_or("");
    p.references = split(from.text_or_null(i, 26).value_or(""));
    if (!from.is_null(i, 27))
      p.replay = parked_row::replayed{from.id<replay_id>(i, 27), from.id<failed_callback_id>(i, 28), from.string(i, 29),
                                      from.text_or_null(i, 30).value_or("")};
    p.signed_again = digests_at(from, i, 31);
    if (!from.is_null(i, 32)) p.listed = from.id<look_up_id>(i, 32);
    p.matched_reference = from.text(i, 33) == "reference";
    p.matched = from.string(i, 34);
  }
  return out;
}

void append_count_parked(checked_pipeline& to, const std::vector<identity_name>& names) { append_names(to, count_parked, names); }

std::vector<parked_count> read_parked_counts(const rows& from) {
  std::vector<parked_count> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({{from.text(i, 0) == "reference", from.string(i, 1), from.string(i, 2)}, from.int8(i, 3)});
  return out;
}

new_parked::new_parked() : rows(insert_parked), identities(insert_parked_identities) {}
void new_parked::add(const parked_row& p, const std::vector<std::string>& references) {
  rows.next().add(p.id.binary());
  rows.next().add(p.provider);
  rows.next().add(p.identity);
  rows.next().add(p.key);
  rows.next().add(p.disposition);
  rows.next().add(binary(p.content_digest));
  rows.next().add(binary(p.body_digest));
  rows.next().add(p.request_id);
  rows.next().add(p.event);
  rows.next().add(p.event_raw);
  rows.next().add(p.result);
  rows.next().add(p.secret);
  rows.next().add_time(p.occurred_at);
  rows.next().add_int8(p.provider_sequence);
  rows.next().add(p.amount);
  rows.next().add(p.currency);
  rows.next().add_int4(p.answer_status);
  rows.next().add_time(p.parked_at);
  add_digest(rows.next(), p.signed_digest);
  rows.next().add(p.account);
  rows.next().add(p.items);
  add_id_or_null(rows.next(), p.payload);
  if (p.replay) {
    rows.next().add(p.replay->id.binary());
  } else {
    rows.next().add_null();
  }
  rows.next().add(p.key_beside);
  add_number_or_null(rows.next(), p.part);
  add_text_or_null(rows.next(), p.head);
  const auto name = [&](bool is_reference, std::string_view identity) {
    identities.next().add(kind_of(is_reference));
    identities.next().add(p.provider);
    identities.next().add(identity);
    identities.next().add(p.key);
    identities.next().add(p.id.binary());
  };
  if (p.request_id) name(false, *p.request_id);
  for (const auto& r : references) name(true, r);
}

repeated_parked::repeated_parked() : rows(repeat_parked) {}
void repeated_parked::add(delivery_id id, std::int32_t times) {
  rows.next().add(id.binary());
  rows.next().add_int4(times);
}

applied_parked::applied_parked() : rows(delete_parked) {}
void applied_parked::add(delivery_id id) { rows.next().add(id.binary()); }

}  // namespace recibo::storage
