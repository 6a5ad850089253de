// Questions about whole tables, for the verification of the evidence: rows that name what is not there, and work that was
// left lying. Each finds what is wrong in the database itself and gives back at most a thousand findings.
#include "recibo/storage/reads_verify.hpp"

#include <string>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::statement;

// $1, $2: oldest delivery and payload; $3: seconds of grace for what a replica has to come back to. Every statement takes all
// three.
statement whole_statement(const char* name, const std::string& body) {
  const std::string used = "($1::uuid IS NULL OR $2::uuid IS NULL OR $3::bigint IS NULL)";
  return {std::string("verify_whole_") + name,
          "SELECT s.request_id, s.operation, s.what FROM (" + body + ") s WHERE " + used + " IS NOT NULL LIMIT 1000",
          {oid::uuid, oid::uuid, oid::int8}};
}

std::string orphans(const std::string& table, const std::string& what) {
  return "SELECT NULL::text AS request_id, x.operation, format('" + what + "', count(*)) AS what FROM recibo." + table +
         " x LEFT JOIN recibo.operations o ON o.id = x.operation WHERE x.operation IS NOT NULL AND o.id IS NULL GROUP BY "
         "x.operation";
}

const statement orphan_registrations =
    whole_statement("registrations", orphans("registrations", "%s registration without its operation"));
const statement orphan_aliases = whole_statement("aliases", orphans("aliases", "%s alias rows without their operation"));
const statement orphan_items = whole_statement("items", orphans("items", "%s item rows without their operation"));
const statement orphan_keys = whole_statement("keys", orphans("idempotency_keys", "%s claimed keys without their operation"));
const statement orphan_client_keys =
    whole_statement("client_keys", orphans("client_keys", "%s Idempotency-Keys without their operation"));
const statement orphan_notifications =
    whole_statement("notifications",
                    "SELECT NULL::text AS request_id, n.operation, format('%s outbox rows without their operation', count(*)) AS "
                    "what FROM recibo.notifications n LEFT JOIN recibo.operations o ON o.id = n.operation LEFT JOIN "
                    "recibo.provider_events e ON e.key = n.operation AND e.sequence = n.sequence AND e.type = n.type "
                    "WHERE o.id IS NULL AND e.key IS NULL GROUP BY n.operation");
const statement orphan_transitions =
    whole_statement("transitions", orphans("transitions", "%s transitions without their operation"));
const statement orphan_audit = whole_statement("audit", orphans("audit", "%s audit rows without their operation"));
const statement orphan_accesses =
    whole_statement("accesses", orphans("payload_accesses", "%s payload accesses without their operation"));
const statement orphan_reviews = whole_statement("reviews", orphans("reviews", "%s reviews without their operation"));

const statement orphan_timers = whole_statement("timers", orphans("timers", "%s timers without their operation"));

const statement orphan_review_actions =
    whole_statement("review_actions", orphans("review_actions", "%s actions about reviews without their operation"));

// What was done about a review, and how it stands.
const statement review_states = whole_statement(
    "review_states",
    "SELECT coalesce(o.request_id, v.request_id) AS request_id, v.operation, format('review %s is %s, and %s', v.id, v.status, "
    "CASE WHEN v.status = 'open' THEN 'an action resolved it' ELSE 'no action resolved it' END) AS what "
    "FROM recibo.reviews v LEFT JOIN recibo.operations o ON o.id = v.operation "
    "WHERE (v.status = 'resolved') <> EXISTS (SELECT FROM recibo.review_actions a WHERE a.review = v.id AND a.action = "
    "'resolved') "
    "UNION ALL "
    "SELECT o.request_id, v.operation, format('review %s was opened by the clock, and no action says so', v.id) FROM "
    "recibo.reviews v "
    "LEFT JOIN recibo.operations o ON o.id = v.operation WHERE v.kind = 'overdue' AND NOT EXISTS (SELECT FROM "
    "recibo.review_actions a "
    "WHERE a.review = v.id AND a.action = 'opened' AND a.actor = 'clock') "
    "UNION ALL "
    "SELECT NULL, a.operation, format('an action about review %s, which does not exist', a.review) FROM recibo.review_actions a "
    "LEFT JOIN recibo.reviews v ON v.id = a.review WHERE v.id IS NULL");

// The age of a parked callback is over with its waiting.
const statement outgrown_reviews = whole_statement(
    "outgrown_reviews",
    "SELECT v.request_id, NULL::uuid AS operation, format('review %s is open, and its callback does not wait any more', v.id) AS "
    "what "
    "FROM recibo.reviews v WHERE v.kind = 'parked_age' AND v.status = 'open' "
    "AND NOT EXISTS (SELECT FROM recibo.parked p WHERE p.id = v.delivery)");

const statement unrecorded_deliveries = whole_statement(
    "deliveries",
    "SELECT o.request_id, d.operation, format('delivery %s has no audit row', d.id) AS what FROM recibo.deliveries d "
    "LEFT JOIN recibo.audit a ON a.operation = d.operation AND a.delivery = d.id AND a.kind = 'delivery' "
    "LEFT JOIN recibo.operations o ON o.id = d.operation WHERE d.operation IS NOT NULL AND a.operation IS NULL");

// Deliveries of operations are judged with their audit rows.
const statement lone_deliveries =
    whole_statement("lone_deliveries",
                    "SELECT d.request_id, NULL::uuid AS operation, format('delivery %s: %s', d.id, CASE WHEN p.id IS NULL THEN "
                    "'its payload does not exist' "
                    "ELSE 'its payload has other bytes than it says' END) AS what "
                    "FROM recibo.deliveries d LEFT JOIN recibo.payloads p ON p.id = d.payload WHERE d.operation IS NULL AND "
                    "CASE WHEN p.id IS NULL THEN d.payload >= $2 ELSE sha256(p.body) <> d.body_digest END");

const statement lone_payloads = whole_statement("lone_payloads",
                                                "SELECT NULL::text AS request_id, NULL::uuid AS operation, format('payload %s "
                                                "without its delivery', p.id) AS what FROM recibo.payloads p "
                                                "LEFT JOIN recibo.deliveries d ON d.id = p.id WHERE d.id IS NULL AND p.id >= $1");

const statement review_deliveries = whole_statement(
    "review_deliveries",
    "SELECT o.request_id, v.operation, format('review %s names delivery %s, which does not exist', v.id, w.delivery) AS what "
    "FROM recibo.reviews v "
    "LEFT JOIN recibo.operations o ON o.id = v.operation CROSS JOIN LATERAL (VALUES (v.delivery), (v.first_delivery)) AS "
    "w(delivery) "
    "LEFT JOIN LATERAL (SELECT x.id FROM recibo.deliveries x WHERE x.id = w.delivery LIMIT 1) d ON true "
    "WHERE w.delivery IS NOT NULL AND d.id IS NULL AND w.delivery >= $1");

// Where only some items failed, the delivery was partial, or had been parked before.
const statement failed_deliveries = whole_statement(
    "failed_deliveries",
    "SELECT f.request_id, NULL::uuid AS operation, format('failed callback %s: its delivery %s', f.id, CASE WHEN "
    "d.id IS NULL THEN 'does not exist' "
    "ELSE 'has another body or disposition' END) AS what FROM recibo.failed_callbacks f "
    "LEFT JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id = f.delivery LIMIT 1) d ON true "
    "WHERE CASE WHEN d.id IS NULL THEN f.delivery >= $1 ELSE d.body_digest <> f.body_digest OR (f.attempts = 0 "
    "AND d.disposition <> "
    "f.disposition AND d.disposition NOT IN ('partial', 'parked') AND NOT (starts_with(f.reason, 'item_') AND EXISTS (SELECT "
    "FROM recibo.replays y WHERE y.delivery = f.delivery))) END");

// A parked callback waits, or an operation's history tells what became of it: gone is lost (R11).
const statement lost_parked =
    whole_statement("lost_parked",
                    "SELECT d.request_id, NULL::uuid AS operation, format('delivery %s was %s, and neither waits nor is part of "
                    "an operation', d.id, d.disposition) AS what "
                    "FROM recibo.deliveries d WHERE d.operation IS NULL AND d.disposition IN ('parked', 'conflict') "
                    "AND NOT EXISTS (SELECT FROM recibo.parked p WHERE p.id = d.id) "
                    "AND NOT EXISTS (SELECT FROM recibo.unclaimed u WHERE u.delivery = d.id) "
                    "AND NOT EXISTS (SELECT FROM recibo.audit a WHERE a.delivery = d.id AND a.kind = 'delivery')");

// A failed callback waits, or is on record as done; one that a replay closed is not there any more. What was closed before this
// was recorded is known by the migration's time alone.
const statement closed_failed =
    whole_statement("closed_failed",
                    "SELECT d.request_id, NULL::uuid AS operation, format('delivery %s was %s, and neither waits nor is on "
                    "record as done', d.id, "
                    "d.disposition) AS what FROM recibo.deliveries d "
                    "WHERE d.operation IS NULL AND d.disposition IN ('unmapped', 'unprocessable') "
                    "AND d.received_at > (SELECT m.applied_at FROM recibo.schema_migrations m WHERE m.version = 19) "
                    "AND NOT EXISTS (SELECT FROM recibo.failed_callbacks f WHERE f.delivery = d.id) "
                    "AND NOT EXISTS (SELECT FROM recibo.replays y WHERE y.delivery = d.id AND (y.closes OR y.action "
                    "IN ('replayed', 'resent'))) "
                    "UNION ALL "
                    "SELECT f.request_id, NULL, format('failed callback %s waits although it is on record as done', f.id) "
                    "FROM recibo.failed_callbacks f JOIN recibo.replays y ON y.failed_callback = f.id AND y.closes "
                    "UNION ALL "
                    "SELECT NULL, y.operation, format('replay %s names delivery %s, which does not exist', y.id, w.delivery) "
                    "FROM recibo.replays y CROSS JOIN LATERAL (VALUES (y.delivery), (y.resent_as)) AS w(delivery) "
                    "LEFT JOIN LATERAL (SELECT x.id FROM recibo.deliveries x WHERE x.id = w.delivery LIMIT 1) d ON true "
                    "WHERE w.delivery IS NOT NULL AND d.id IS NULL AND w.delivery >= $1 AND y.action <> 'resent'");

// What was replayed and parked waits, or has met its operation.
const statement replayed_parked = whole_statement(
    "replayed_parked",
    "SELECT NULL::text AS request_id, NULL::uuid AS operation, format('delivery %s was replayed and parked, and neither waits "
    "nor "
    "is part of an operation', y.delivery) AS what "
    "FROM recibo.replays y WHERE y.action = 'replayed' AND y.disposition IN ('parked', 'conflict') AND y.operation "
    "IS "
    "NULL AND NOT EXISTS (SELECT FROM recibo.parked p WHERE p.replay = y.id) "
    "AND NOT EXISTS (SELECT FROM recibo.unclaimed u WHERE u.delivery = y.delivery) "
    "AND NOT EXISTS (SELECT FROM recibo.replays m WHERE m.failed_callback = y.failed_callback AND m.delivery = y.delivery AND "
    "m.action = 'met')");

const statement parked_deliveries = whole_statement(
    "parked_deliveries",
    "SELECT p.request_id, NULL::uuid AS operation, format('parked callback %s: %s', p.id, CASE WHEN d.id IS NULL THEN 'its "
    "delivery does not exist' "
    "WHEN a.kind IS NOT NULL THEN 'it is part of an operation already' ELSE 'its delivery says otherwise' END) AS what "
    "FROM recibo.parked p LEFT JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id = p.id LIMIT 1) d ON true "
    "LEFT JOIN recibo.audit a ON a.delivery = p.id AND a.kind IN ('delivery', 'replay') "
    "WHERE CASE WHEN d.id IS NULL THEN p.id >= $1 WHEN p.replay IS NOT NULL THEN a.kind IS NOT NULL OR d.body_digest <> "
    "p.body_digest ELSE a.kind IS NOT NULL OR d.key IS DISTINCT FROM p.key OR d.body_digest <> "
    "p.body_digest "
    "OR d.disposition <> p.disposition OR d.answer_status <> p.answer_status OR d.secret <> p.secret END");

const statement parked_names =
    whole_statement("parked_names",
                    "SELECT NULL::text AS request_id, NULL::uuid AS operation, format('a name of parked callback %s, which does "
                    "not wait', i.parked) AS what "
                    "FROM recibo.parked_identities i LEFT JOIN recibo.parked p ON p.id = i.parked WHERE p.id IS NULL");

// The backstop has had its time.
const statement forgotten_parked =
    whole_statement("forgotten_parked",
                    "SELECT o.request_id, o.id AS operation, format('parked callback %s waits although its operation exists', "
                    "p.id) AS what FROM recibo.parked p "
                    "JOIN recibo.operations o ON o.request_id = p.request_id AND o.provider = p.provider "
                    "JOIN recibo.registrations r ON r.operation = o.id "
                    "WHERE p.parked_at < now() - $3 * interval '1 second' AND r.accepted_at < now() - $3 * interval '1 second'");

const statement access_deliveries = whole_statement(
    "access_deliveries",
    "SELECT o.request_id, x.operation, format('payload access %s: %s', x.id, CASE WHEN d.id IS NULL THEN 'its delivery does not "
    "exist' "
    "ELSE 'it has no audit row' END) AS what FROM recibo.payload_accesses x LEFT JOIN recibo.operations o ON o.id = x.operation "
    "LEFT JOIN LATERAL (SELECT y.id FROM recibo.deliveries y WHERE y.id = x.delivery LIMIT 1) d ON true "
    "LEFT JOIN LATERAL (SELECT a.kind FROM recibo.audit a WHERE a.operation = x.operation AND a.sequence = x.sequence LIMIT 1) a "
    "ON true "
    "WHERE (d.id IS NULL AND x.delivery >= $1) OR (x.operation IS NOT NULL AND a.kind IS DISTINCT FROM 'payload_access')");

const statement stuck_leases = whole_statement(
    "leases",
    "SELECT o.request_id, n.operation, format('notification %s to %s is leased beyond its time', n.id, n.destination) AS what "
    "FROM recibo.notifications n LEFT JOIN recibo.operations o ON o.id = n.operation "
    "WHERE n.lease_until IS NOT NULL AND n.status = 'pending' AND n.lease_until < now() - $3 * interval '1 second'");

const statement half_leases = whole_statement(
    "half_leases",
    "SELECT o.request_id, n.operation, format('notification %s to %s is half leased', n.id, n.destination) AS what "
    "FROM recibo.notifications n LEFT JOIN recibo.operations o ON o.id = n.operation WHERE (n.lease_until IS NULL) <> "
    "(n.leased_by IS "
    "NULL)");

const statement unclaimed_deliveries = whole_statement(
    "unclaimed_deliveries",
    "SELECT u.request_id, NULL::uuid AS operation, format('callback %s was given up: %s', u.delivery, CASE WHEN p.id IS NOT NULL "
    "THEN 'and still waits' WHEN a.kind IS NOT NULL THEN 'and is part of an operation' ELSE 'and its delivery does not exist or "
    "was not parked' END) AS what FROM recibo.unclaimed u LEFT JOIN recibo.parked p ON p.id = u.delivery "
    "LEFT JOIN LATERAL (SELECT x.disposition FROM recibo.deliveries x WHERE x.id = u.delivery LIMIT 1) d ON true "
    "LEFT JOIN recibo.audit a ON a.delivery = u.delivery AND a.kind IN ('delivery', 'replay') "
    "WHERE p.id IS NOT NULL OR a.kind IS NOT NULL OR (d.disposition IS NULL AND u.delivery >= $1) OR (d.disposition NOT IN "
    "('parked', 'conflict') AND NOT EXISTS (SELECT FROM recibo.replays y WHERE y.delivery = u.delivery AND y.action = 'replayed' "
    "AND y.disposition IN ('parked', 'conflict')))");

const statement orphan_corrections =
    whole_statement("corrections", orphans("corrections", "%s corrections without their operation"));
const statement orphan_workflow_changes =
    whole_statement("workflow_changes", orphans("workflow_changes", "%s changes of the workflow without their operation"));
const statement swept_operations =
    whole_statement("swept", orphans("swept_keys", "%s rows of swept keys without their operation"));

const whole_check checks[] = {
    {"references", &orphan_registrations},
    {"references", &orphan_aliases},
    {"references", &orphan_items},
    {"references", &orphan_keys},
    {"references", &orphan_client_keys},
    {"references", &orphan_notifications},
    {"references", &orphan_transitions},
    {"references", &orphan_audit},
    {"references", &orphan_accesses},
    {"references", &orphan_reviews},
    {"references", &orphan_review_actions},
    {"references", &orphan_timers},
    {"reviews", &review_states},
    {"reviews", &outgrown_reviews},
    {"deliveries", &unrecorded_deliveries},
    {"payloads", &lone_deliveries},
    {"payloads", &lone_payloads},
    {"references", &review_deliveries},
    {"references", &failed_deliveries},
    {"references", &access_deliveries},
    {"references", &orphan_corrections},
    {"references", &orphan_workflow_changes},
    {"references", &swept_operations},
    {"parked", &lost_parked},
    {"parked", &unclaimed_deliveries},
    {"parked", &parked_deliveries},
    {"failed", &closed_failed},
    {"failed", &replayed_parked},
    {"parked", &parked_names},
    {"parked", &forgotten_parked},
    {"leases", &stuck_leases},
    {"leases", &half_leases},
};

}  // namespace

std::span<const whole_check> whole_checks() { return checks; }

}  // namespace recibo::storage
