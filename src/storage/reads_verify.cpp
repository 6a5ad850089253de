#include "recibo/storage/reads_verify.hpp"

#include "columns.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

// The client may think between two pages, and each page has its own bounds: no plan fits all of them.
const statement begin_snapshot{"verify_begin", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {}};
const statement set_session{
    "verify_settings",
    "SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '60s', true), "
    "set_config('plan_cache_mode', 'force_custom_plan', true)",
    {}};
const statement end_snapshot{"verify_end", "COMMIT", {}};

const statement select_horizon{
    "verify_horizon",
    "SELECT recibo.month_bound(to_timestamp(min(m.name) FILTER (WHERE m.parent = 'deliveries') || '_01 +00', 'YYYY_MM_DD TZH')), "
    "recibo.month_bound(to_timestamp(min(m.name) FILTER (WHERE m.parent = 'payloads') || '_01 +00', 'YYYY_MM_DD TZH')) "
    "FROM (SELECT p.relname AS parent, right(c.relname, 7) AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhparent IN ('recibo.deliveries'::regclass, 'recibo.payloads'::regclass)) m",
    {}};

const statement select_workflows{
    "verify_workflows", "SELECT version_key, digest, name, definition FROM recibo.workflow_versions", {}};
const statement select_id{"verify_find", "SELECT id FROM recibo.operations WHERE request_id = $1", {oid::text}};

const std::string operation_select =
    "SELECT o.id, o.request_id, o.provider, o.state, o.workflow, o.version::int8, o.sequence::int8, o.chain_hash, o.review_open, "
    "EXISTS (SELECT FROM recibo.reviews v WHERE v.operation = o.id AND v.status = 'open'), "
    "r.operation IS NOT NULL, r.client, r.action, r.reference, r.amount, r.currency, r.deadline, r.metadata::text, r.intent, "
    "(SELECT json_agg(json_build_array(a.alias, (extract(epoch FROM a.learned_at) * 1000000)::bigint) ORDER BY a.alias)::text "
    "FROM recibo.aliases a WHERE a.operation = o.id), "
    "(SELECT count(*) FROM recibo.items i WHERE i.operation = o.id), r.account, coalesce(o.corrected, 0)::int8, "
    "coalesce((SELECT w.from_workflow FROM recibo.workflow_changes w WHERE w.operation = o.id ORDER BY w.sequence LIMIT 1), "
    "o.workflow) "
    "FROM recibo.operations o LEFT JOIN recibo.registrations r ON r.operation = o.id ";
const statement select_operations{
    "verify_operations", operation_select + "WHERE o.id > $1 ORDER BY o.id LIMIT $2", {oid::uuid, oid::int8}};
const statement select_one{"verify_operation", operation_select + "WHERE o.id = $1", {oid::uuid}};

// One row for each audit row, with everything that its digest is over and everything that must agree with it.
// A delivery is read with its own fact alone: thousands of items may have moved by it.
const statement facts_to_verify{
    "verify_facts",
    "SELECT a.operation, a.sequence::int8, a.kind, a.at, a.actor, a.delivery, a.digest, a.hash, "
    "d.id IS NOT NULL, d.provider, d.disposition, d.key, d.body_digest, d.secret, d.answer_status::int8, d.operation, "
    "d.received_at, d.payload, "
    "p.digest IS NOT NULL, p.digest, k.delivery, "
    "t.operation IS NOT NULL, t.version::int8, t.item_id, t.event, t.from_state, t.to_state, t.at, t.actor_kind, t.actor, "
    "t.delivery, t.reason, "
    "t.evidence::text, t.result, t.notifications::int8, n.total, n.strangers, "
    "EXISTS (SELECT FROM recibo.payload_accesses x WHERE x.delivery = a.delivery AND x.operation = a.operation AND x.sequence = "
    "a.sequence "
    "AND x.at = a.at AND x.actor = a.actor), z.through, "
    "EXISTS (SELECT FROM recibo.reviews v WHERE v.operation = a.operation AND v.delivery = a.delivery AND v.first_delivery IS "
    "NOT "
    "NULL), "
    "y.kind, y.actor, y.client, y.action, y.reference, y.amount, y.currency, y.account, y.metadata::text, y.at, y.deadline, "
    "y.intent, "
    "w.from_workflow, w.to_workflow, w.from_state, w.to_state, w.actor, w.reason, w.at, d.items, "
    "ra.review, ra.action, ra.assignee, ra.resolution, ra.reason, ra.actor, ra.at, ra.transition::int8, rt.actor, "
    "ra.notifications::int8, "
    "coalesce(rv.operation = a.operation AND (ra.action <> 'resolved' OR (rv.status = 'resolved' AND rv.resolved_at = ra.at "
    "AND rv.resolved_by = ra.actor AND rv.resolution = ra.resolution AND rv.reason IS NOT DISTINCT FROM ra.reason)), false), "
    "rp.failed_callback, rp.disposition, rp.key, rp.reason, rk.delivery, coalesce(rp.at = a.at AND rp.actor = a.actor AND "
    "rp.delivery = a.delivery, false), rp.items, d.look_up, w.item_states "
    "FROM recibo.audit a "
    "LEFT JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE a.kind IN ('delivery', 'replay') AND x.id = a.delivery LIMIT 1) "
    "d ON true "
    "LEFT JOIN LATERAL (SELECT sha256(x.body) AS digest FROM recibo.payloads x WHERE x.id = d.payload LIMIT 1) p ON true "
    "LEFT JOIN recibo.idempotency_keys k ON k.operation = a.operation AND k.key = d.key "
    "LEFT JOIN recibo.workflow_changes w ON w.operation = a.operation AND w.sequence = a.sequence "
    "LEFT JOIN recibo.corrections y ON y.operation = a.operation AND y.sequence = a.sequence "
    "LEFT JOIN recibo.swept_keys z ON z.operation = a.operation "
    "LEFT JOIN recibo.transitions t ON t.operation = a.operation AND t.sequence = a.sequence AND t.operation >= $1 AND "
    "t.operation <= $3 "
    "LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE t.operation IS NULL OR x.type = e.type) AS total, "
    "count(*) FILTER (WHERE x.type IS DISTINCT FROM e.type AND (a.kind = 'accept' OR x.type NOT LIKE 'operation.review\\_%')) AS "
    "strangers "
    "FROM recibo.notifications x, LATERAL (SELECT CASE WHEN t.operation IS NOT NULL THEN CASE WHEN t.item_id IS NULL THEN "
    "'operation.' ELSE 'item.' END || t.to_state WHEN a.kind = 'accept' THEN 'operation.accepted' END AS type) e "
    "WHERE x.operation = a.operation AND x.sequence = a.sequence) n ON true "
    "LEFT JOIN recibo.review_actions ra ON ra.operation = a.operation AND ra.sequence = a.sequence "
    "LEFT JOIN recibo.reviews rv ON rv.id = ra.review "
    "LEFT JOIN recibo.replays rp ON rp.operation = a.operation AND rp.sequence = a.sequence "
    "LEFT JOIN recibo.idempotency_keys rk ON rk.operation = a.operation AND rk.key = rp.key "
    "LEFT JOIN recibo.transitions rt ON rt.operation = a.operation AND rt.sequence = ra.transition AND rt.operation >= $1 AND "
    "rt.operation <= $3 "
    "WHERE a.operation >= $1 AND a.operation <= $3 AND (a.operation, a.sequence) > ($1, $2) ORDER BY a.operation, a.sequence "
    "LIMIT $4",
    {oid::uuid, oid::int4, oid::uuid, oid::int8}};

const statement items_to_verify{
    "verify_items", "SELECT item_id, state, version::int8 FROM recibo.items WHERE operation = $1 ORDER BY item_id", {oid::uuid}};

// Rows of a page of operations that no audit row speaks of, and claims that are not what their delivery says.
const statement select_strays{
    "verify_strays",
    "SELECT o.request_id, s.operation, s.what FROM ("
    "SELECT t.operation, format('transition %s has no audit row', t.sequence) AS what FROM recibo.transitions t "
    "WHERE t.operation BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM recibo.audit a WHERE a.operation = t.operation AND "
    "a.sequence = t.sequence "
    "AND a.operation BETWEEN $1 AND $2) "
    "UNION ALL "
    "SELECT y.operation, format('correction %s has no audit row', y.sequence) FROM recibo.corrections y "
    "WHERE y.operation BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM recibo.audit a WHERE a.operation = y.operation AND "
    "a.sequence = y.sequence AND a.kind = 'correction' AND a.operation BETWEEN $1 AND $2) "
    "UNION ALL "
    "SELECT w.operation, format('change %s of the workflow has no audit row', w.sequence) FROM recibo.workflow_changes w "
    "WHERE w.operation BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM recibo.audit a WHERE a.operation = w.operation AND "
    "a.sequence = w.sequence AND a.kind = 'workflow' AND a.operation BETWEEN $1 AND $2) "
    "UNION ALL "
    "SELECT x.operation, format('action %s about review %s has no audit row', x.id, x.review) FROM recibo.review_actions x "
    "WHERE x.operation BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM recibo.audit a WHERE a.operation = x.operation AND "
    "a.sequence = x.sequence AND a.kind = 'review' AND a.operation BETWEEN $1 AND $2) "
    "UNION ALL "
    "SELECT y.operation, format('replay %s of delivery %s has no audit row', y.id, y.delivery) FROM recibo.replays y "
    "WHERE y.operation BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM recibo.audit a WHERE a.operation = y.operation AND "
    "a.sequence = y.sequence AND a.kind = 'replay' AND a.operation BETWEEN $1 AND $2) "
    "UNION ALL "
    "SELECT n.operation, format('notification %s to %s has no audit row', n.id, n.destination) FROM recibo.notifications n "
    "WHERE n.operation BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM recibo.audit a WHERE a.operation = n.operation AND "
    "a.sequence = n.sequence "
    "AND a.operation BETWEEN $1 AND $2) "
    "UNION ALL "
    "SELECT k.operation, format('the key claimed by delivery %s: %s', k.delivery, CASE WHEN d.id IS NULL THEN 'the delivery does "
    "not exist' "
    "WHEN d.key IS DISTINCT FROM k.key THEN 'the delivery has another key' "
    "WHEN d.operation <> k.operation THEN 'the delivery is of another operation' "
    "WHEN d.body_digest <> k.body_digest THEN 'the delivery has another body' "
    "WHEN d.disposition <> k.disposition AND d.disposition <> 'parked' THEN 'the delivery has another disposition' "
    "ELSE 'the delivery was answered otherwise' END) "
    "FROM recibo.idempotency_keys k LEFT JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id = k.delivery LIMIT 1) d ON "
    "true "
    "WHERE k.operation BETWEEN $1 AND $2 AND NOT EXISTS (SELECT FROM recibo.replays y WHERE y.operation = k.operation AND "
    "y.delivery = "
    "k.delivery AND y.key = k.key AND y.disposition = k.disposition) AND CASE WHEN d.id IS NULL THEN k.delivery >= $3 ELSE d.key "
    "IS DISTINCT FROM k.key "
    "OR d.operation <> k.operation OR d.body_digest <> k.body_digest "
    "OR (d.disposition <> 'parked' AND (d.disposition <> k.disposition OR d.answer_status <> k.answer_status)) END "
    ") s JOIN recibo.operations o ON o.id = s.operation ORDER BY s.operation LIMIT 1000",
    {oid::uuid, oid::uuid, oid::uuid}};

std::string text_at(const rows& from, int row, int column) {
  return from.is_null(row, column) ? std::string() : from.string(row, column);
}

template <class Id>
std::optional<Id> id_or_null(const rows& from, int row, int column) {
  return from.is_null(row, column) ? std::nullopt : std::optional(from.id<Id>(row, column));
}

std::vector<verify_operation::alias> read_aliases(std::string_view json) {
  std::vector<verify_operation::alias> out;
  const auto list = parse_json(json);
  if (!list) return out;
  for (const auto& a : list->elements) {
    std::int64_t micros = 0;
    const auto& digits = a.elements[1].text;
    std::from_chars(digits.data(), digits.data() + digits.size(), micros);
    out.push_back({a.elements[0].text, sys_micros(std::chrono::microseconds(micros))});
  }
  return out;
}

verify_operation operation_to_verify(const rows& from, int row) {
  verify_operation o;
  o.id = from.id<operation_id>(row, 0);
  o.request_id = from.string(row, 1);
  o.provider = from.string(row, 2);
  o.state = from.string(row, 3);
  o.workflow = from.int8(row, 4);
  o.version = from.int8(row, 5);
  o.sequence = from.int8(row, 6);
  o.chain_hash = digest_at(from, row, 7);
  o.review_open = from.boolean(row, 8);
  o.has_open_review = from.boolean(row, 9);
  o.registered = from.boolean(row, 10);
  o.client = text_at(from, row, 11);
  o.action = text_at(from, row, 12);
  o.reference = from.text_or_null(row, 13);
  o.amount = from.text_or_null(row, 14);
  o.currency = from.text_or_null(row, 15);
  o.deadline = from.time_or_null(row, 16);
  o.metadata = text_at(from, row, 17);
  o.intent = digest_at(from, row, 18);
  if (!from.is_null(row, 19)) o.aliases = read_aliases(from.text(row, 19));
  o.items = from.int8(row, 20);
  o.account = from.text_or_null(row, 21);
  o.corrected = from.int8(row, 22);
  o.first_workflow = from.int8(row, 23);
  return o;
}

verify_fact fact_to_verify(const rows& from, int row) {
  verify_fact f;
  f.operation = from.id<operation_id>(row, 0);
  f.sequence = from.int8(row, 1);
  f.kind = from.string(row, 2);
  f.at = from.time(row, 3);
  f.actor = from.string(row, 4);
  f.delivery = id_or_null<delivery_id>(from, row, 5);
  f.digest = digest_at(from, row, 6);
  f.hash = digest_at(from, row, 7);
  f.has_delivery = from.boolean(row, 8);
  f.provider = text_at(from, row, 9);
  f.disposition = text_at(from, row, 10);
  f.key = text_at(from, row, 11);
  f.body_digest = digest_at(from, row, 12);
  f.secret = text_at(from, row, 13);
  f.answer_status = from.int8_or_null(row, 14).value_or(0);
  f.delivery_operation = id_or_null<operation_id>(from, row, 15);
  f.received_at = from.time_or_null(row, 16).value_or(sys_micros{});
  if (const auto payload = id_or_null<delivery_id>(from, row, 17)) f.payload = *payload;
  f.has_payload = from.boolean(row, 18);
  f.payload_digest = digest_at(from, row, 19);
  f.key_holder = id_or_null<delivery_id>(from, row, 20);
  f.has_transition = from.boolean(row, 21);
  f.version = from.int8_or_null(row, 22).value_or(0);
  f.item_id = text_at(from, row, 23);
  f.event = text_at(from, row, 24);
  f.from = text_at(from, row, 25);
  f.to = text_at(from, row, 26);
  f.transition_at = from.time_or_null(row, 27).value_or(sys_micros{});
  f.actor_kind = text_at(from, row, 28);
  f.transition_actor = text_at(from, row, 29);
  f.transition_delivery = id_or_null<delivery_id>(from, row, 30);
  f.reason = text_at(from, row, 31);
  f.evidence = text_at(from, row, 32);
  f.result = text_at(from, row, 33);
  f.notifications = from.int8_or_null(row, 34).value_or(0);
  f.outbox_rows = from.int8(row, 35);
  f.outbox_strangers = from.int8(row, 36);
  f.access_recorded = from.boolean(row, 37);
  f.keys_swept_through = id_or_null<delivery_id>(from, row, 38);
  f.first_reviewed = from.boolean(row, 39);
  if (!from.is_null(row, 40)) {
    auto& y = f.corrected.emplace();
    y.kind = from.string(row, 40);
    y.actor = from.string(row, 41);
    y.client = from.string(row, 42);
    y.action = from.string(row, 43);
    y.reference = text_at(from, row, 44);
    y.amount = text_at(from, row, 45);
    y.currency = text_at(from, row, 46);
    y.account = text_at(from, row, 47);
    y.metadata = from.string(row, 48);
    y.at = from.time(row, 49);
    y.deadline = from.time_or_null(row, 50);
    y.intent = digest_at(from, row, 51);
  }
  if (!from.is_null(row, 52)) {
    auto& w = f.workflow_changed.emplace();
    w.from_workflow = from.int8(row, 52);
    w.to_workflow = from.int8(row, 53);
    w.from = from.string(row, 54);
    w.to = from.string(row, 55);
    w.actor = from.string(row, 56);
    w.reason = from.string(row, 57);
    w.at = from.time(row, 58);
    w.item_states = text_at(from, row, 79);
  }
  f.delivery_items = text_at(from, row, 59);
  f.review = id_or_null<review_id>(from, row, 60);
  f.action = text_at(from, row, 61);
  f.assignee = text_at(from, row, 62);
  f.resolution = text_at(from, row, 63);
  f.review_reason = text_at(from, row, 64);
  f.review_actor = text_at(from, row, 65);
  f.review_at = from.time_or_null(row, 66).value_or(sys_micros{});
  f.caused = from.int8_or_null(row, 67);
  f.caused_actor = from.text_or_null(row, 68);
  f.review_notifications = from.int8_or_null(row, 69).value_or(0);
  f.review_agrees = from.boolean(row, 70);
  f.failed = id_or_null<failed_callback_id>(from, row, 71);
  f.replay_disposition = text_at(from, row, 72);
  f.replay_key = text_at(from, row, 73);
  f.replay_reason = text_at(from, row, 74);
  f.replay_key_holder = id_or_null<delivery_id>(from, row, 75);
  f.replay_agrees = from.boolean(row, 76);
  f.replay_items = text_at(from, row, 77);
  f.delivery_look_up = id_or_null<look_up_id>(from, row, 78);
  return f;
}

std::vector<finding> read_findings(const rows& from) {
  std::vector<finding> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({from.text_or_null(i, 0), id_or_null<operation_id>(from, i, 1), from.string(i, 2)});
  return out;
}

// A page of a table of millions may sort and spill; the user waits and may interrupt.
postgres::deadline patience() { return std::chrono::steady_clock::now() + std::chrono::hours(6); }

}  // namespace

awaitable<result<rows>> verify_reader::query(const statement& what, parameters with) {
  postgres::pipeline one;
  one.add(what, std::move(with));
  auto came = co_await on_.run(one, patience());
  if (!came.ok()) co_return postgres::to_error(came);
  co_return std::move(came.answers.front());
}

awaitable<result<void>> verify_reader::begin() {
  postgres::pipeline both;
  both.add(begin_snapshot).add(set_session);
  const auto came = co_await on_.run(both, patience());
  if (!came.ok()) co_return postgres::to_error(came);
  co_return result<void>();
}

awaitable<result<void>> verify_reader::end() {
  parameters none;
  auto came = co_await query(end_snapshot, std::move(none));
  if (!came) co_return came.error();
  co_return result<void>();
}

awaitable<result<horizon>> verify_reader::oldest() {
  parameters none;
  auto came = co_await query(select_horizon, std::move(none));
  if (!came) co_return came.error();
  horizon out;
  if (const auto id = id_or_null<delivery_id>(*came, 0, 0)) out.deliveries = *id;
  if (const auto id = id_or_null<delivery_id>(*came, 0, 1)) out.payloads = *id;
  co_return out;
}

awaitable<result<std::vector<verify_workflow>>> verify_reader::workflows() {
  parameters none;
  auto came = co_await query(select_workflows, std::move(none));
  if (!came) co_return came.error();
  std::vector<verify_workflow> out;
  for (int i = 0; i < came->size(); ++i)
    out.push_back({came->int8(i, 0), digest_at(*came, i, 1), came->string(i, 2), came->string(i, 3)});
  co_return out;
}

awaitable<result<std::optional<operation_id>>> verify_reader::find(std::string request_id) {
  parameters with;
  with.text(request_id);
  auto came = co_await query(select_id, std::move(with));
  if (!came) co_return came.error();
  if (came->empty()) co_return std::optional<operation_id>();
  co_return std::optional<operation_id>(came->id<operation_id>(0, 0));
}

awaitable<result<std::vector<verify_operation>>> verify_reader::operations(operation_id after, int limit) {
  parameters with;
  with.uuid(after).int8(limit);
  auto came = co_await query(select_operations, std::move(with));
  if (!came) co_return came.error();
  std::vector<verify_operation> out;
  for (int i = 0; i < came->size(); ++i) out.push_back(operation_to_verify(*came, i));
  co_return out;
}

awaitable<result<std::vector<verify_operation>>> verify_reader::one(operation_id only) {
  parameters with;
  with.uuid(only);
  auto came = co_await query(select_one, std::move(with));
  if (!came) co_return came.error();
  std::vector<verify_operation> out;
  for (int i = 0; i < came->size(); ++i) out.push_back(operation_to_verify(*came, i));
  co_return out;
}

awaitable<result<std::vector<verify_fact>>> verify_reader::facts(operation_id operation, std::int64_t sequence, operation_id last,
                                                                 int limit) {
  parameters with;
  with.uuid(operation).int4(static_cast<std::int32_t>(sequence)).uuid(last).int8(limit);
  auto came = co_await query(facts_to_verify, std::move(with));
  if (!came) co_return came.error();
  std::vector<verify_fact> out;
  out.reserve(static_cast<std::size_t>(came->size()));
  for (int i = 0; i < came->size(); ++i) out.push_back(fact_to_verify(*came, i));
  co_return out;
}

awaitable<result<std::vector<verify_item>>> verify_reader::items(operation_id operation) {
  parameters with;
  with.uuid(operation);
  auto came = co_await query(items_to_verify, std::move(with));
  if (!came) co_return came.error();
  std::vector<verify_item> out;
  for (int i = 0; i < came->size(); ++i) out.push_back({came->string(i, 0), came->string(i, 1), came->int8(i, 2)});
  co_return out;
}

awaitable<result<std::vector<finding>>> verify_reader::strays(operation_id first, operation_id last,
                                                              delivery_id oldest_delivery) {
  parameters with;
  with.uuid(first).uuid(last).uuid(oldest_delivery);
  auto came = co_await query(select_strays, std::move(with));
  if (!came) co_return came.error();
  co_return read_findings(*came);
}

awaitable<result<std::vector<finding>>> verify_reader::whole(const whole_check& which, const horizon& oldest,
                                                             std::int64_t lease_grace_s) {
  parameters with;
  with.uuid(oldest.deliveries).uuid(oldest.payloads).int8(lease_grace_s);
  auto came = co_await query(*which.sql, std::move(with));
  if (!came) co_return came.error();
  co_return read_findings(*came);
}

}  // namespace recibo::storage
