#include "recibo/storage/reads_evidence.hpp"

#include "reads_review.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

// LATERAL with LIMIT: a delivery is found in its one partition by its ID, whatever the planner thinks of the table.
const statement select_facts{
    "read_case_facts",
    "SELECT a.sequence, a.kind, a.actor, a.at, a.delivery, d.received_at, d.disposition, d.secret, d.key, d.event, "
    "d.answer_status::int8, "
    "t.event, t.from_state, t.to_state, t.item_id, t.actor_kind, t.reason, t.evidence::text, t.result, t.version::int8, "
    "y.kind, y.action, y.amount, y.currency, y.account, y.deadline, w.from_state, w.to_state, w.reason, "
    "ra.review::text, v.kind, ra.action, ra.assignee, ra.resolution, ra.reason, ra.transition::int8, "
    "rp.failed_callback::text, rp.disposition, rp.key, rp.reason, t.actor, d.look_up::text "
    "FROM recibo.audit a "
    "LEFT JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id = a.delivery LIMIT 1) d ON true "
    "LEFT JOIN recibo.transitions t ON t.operation = $1 AND t.sequence = a.sequence "
    "LEFT JOIN recibo.workflow_changes w ON w.operation = $1 AND w.sequence = a.sequence "
    "LEFT JOIN recibo.corrections y ON y.operation = $1 AND y.sequence = a.sequence "
    "LEFT JOIN recibo.review_actions ra ON a.kind = 'review' AND ra.operation = $1 AND ra.sequence = a.sequence "
    "LEFT JOIN recibo.reviews v ON v.id = ra.review "
    "LEFT JOIN recibo.replays rp ON a.kind = 'replay' AND rp.operation = $1 AND rp.sequence = a.sequence "
    "WHERE a.operation = $1 AND a.sequence > $2 ORDER BY a.sequence LIMIT $3",
    {oid::uuid, oid::int4, oid::int8}};

const statement select_notifications{"read_case_notifications",
                                     "SELECT n.id::text, n.destination, n.type, n.status, n.sequence::int8, n.attempts::int8, "
                                     "n.created_at, n.delivered_at, n.next_attempt_at "
                                     "FROM recibo.notifications n WHERE n.operation = $1 AND n.sequence > $2 AND n.sequence <= "
                                     "(SELECT max(s.sequence) FROM (SELECT a.sequence FROM recibo.audit a WHERE a.operation = $1 "
                                     "AND a.sequence > $2 ORDER BY a.sequence LIMIT $3) s) "
                                     "ORDER BY n.sequence, n.destination",
                                     {oid::uuid, oid::int4, oid::int8}};

const statement select_case_reviews{
    "read_case_reviews", review_select + "WHERE v.operation = $1 ORDER BY v.id LIMIT 1000", {oid::uuid}};

// The first hundred repetitions have rows of their own (R27); what is counted here came after the last of these.
const statement select_repeated{
    "read_case_repeated",
    "SELECT k.key, k.delivery, (k.duplicates - 100)::int8, (SELECT max(d.received_at) FROM recibo.audit a "
    "JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id = a.delivery LIMIT 1) d ON d.key = k.key AND d.disposition = "
    "'duplicate' "
    "WHERE a.operation = $1) FROM recibo.idempotency_keys k WHERE k.operation = $1 AND k.duplicates > 100 ORDER BY k.key LIMIT "
    "1000",
    {oid::uuid}};

const statement select_case_look_ups{
    "read_case_look_ups",
    "SELECT l.id::text, l.cause, l.asked_by, l.status, l.reason, l.disposition, l.asked_at, l.times::int8, l.attempts::int8, "
    "l.settled_at, CASE WHEN l.status = 'asking' THEN l.next_attempt_at END, l.delivery, "
    "coalesce((SELECT json_agg(json_build_object('at', to_char(r.at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), "
    "'host', r.host, 'answer_status', r.answer_status, 'outcome', r.outcome, 'duration_ms', r.duration_ms) ORDER BY r.attempt) "
    "FROM (SELECT * FROM recibo.look_up_attempts a WHERE a.look_up = l.id ORDER BY a.attempt DESC LIMIT 20) r)::text, '[]') "
    "FROM recibo.look_ups l WHERE l.operation = $1 ORDER BY l.id DESC LIMIT 1000",
    {oid::uuid}};

std::string text_or_empty(const rows& from, int row, int column) {
  return from.is_null(row, column) ? std::string() : from.string(row, column);
}

fact_view read_fact(const rows& from, int row) {
  fact_view f;
  f.sequence = from.int4(row, 0);
  f.kind = from.string(row, 1);
  f.actor = from.string(row, 2);
  f.at = from.time(row, 3);
  if (!from.is_null(row, 4)) f.delivery = from.id<delivery_id>(row, 4);
  f.received_at = from.time_or_null(row, 5);
  f.disposition = text_or_empty(from, row, 6);
  f.secret = text_or_empty(from, row, 7);
  f.key = text_or_empty(from, row, 8);
  f.provider_event = text_or_empty(from, row, 9);
  f.answer_status = from.int8_or_null(row, 10);
  f.event = text_or_empty(from, row, 11);
  f.from = text_or_empty(from, row, 12);
  f.to = text_or_empty(from, row, 13);
  f.item_id = text_or_empty(from, row, 14);
  f.actor_kind = text_or_empty(from, row, 15);
  f.reason = text_or_empty(from, row, 16);
  f.evidence = text_or_empty(from, row, 17);
  f.result = text_or_empty(from, row, 18);
  f.version = from.int8_or_null(row, 19).value_or(0);
  f.change = text_or_empty(from, row, 20);
  f.action = text_or_empty(from, row, 21);
  f.amount = from.text_or_null(row, 22);
  f.currency = from.text_or_null(row, 23);
  f.account = from.text_or_null(row, 24);
  f.deadline = from.time_or_null(row, 25);
  if (!from.is_null(row, 26)) {
    f.change = "workflow";
    f.from = from.string(row, 26);
    f.to = from.string(row, 27);
    f.reason = from.string(row, 28);
  }
  f.review = text_or_empty(from, row, 29);
  f.review_kind = text_or_empty(from, row, 30);
  f.review_action = text_or_empty(from, row, 31);
  f.assignee = text_or_empty(from, row, 32);
  f.resolution = text_or_empty(from, row, 33);
  f.review_reason = text_or_empty(from, row, 34);
  f.caused = from.int8_or_null(row, 35);
  f.failed = text_or_empty(from, row, 36);
  f.replay_disposition = text_or_empty(from, row, 37);
  f.replay_key = text_or_empty(from, row, 38);
  f.replay_reason = text_or_empty(from, row, 39);
  f.transition_actor = text_or_empty(from, row, 40);
  f.look_up = text_or_empty(from, row, 41);
  return f;
}

look_up_view read_look_up(const rows& from, int row) {
  look_up_view l;
  l.id = from.string(row, 0);
  l.cause = from.string(row, 1);
  l.asked_by = from.string(row, 2);
  l.status = from.string(row, 3);
  l.reason = text_or_empty(from, row, 4);
  l.disposition = text_or_empty(from, row, 5);
  l.asked_at = from.time(row, 6);
  l.times = from.int8(row, 7);
  l.attempts = from.int8(row, 8);
  l.settled_at = from.time_or_null(row, 9);
  l.next_attempt_at = from.time_or_null(row, 10);
  if (!from.is_null(row, 11)) l.delivery = from.id<delivery_id>(row, 11);
  l.requests = from.string(row, 12);
  return l;
}

notification_view read_notification(const rows& from, int row) {
  notification_view n;
  n.id = from.string(row, 0);
  n.destination = from.string(row, 1);
  n.type = from.string(row, 2);
  n.status = from.string(row, 3);
  n.sequence = from.int8(row, 4);
  n.attempts = from.int8(row, 5);
  n.created_at = from.time(row, 6);
  n.delivered_at = from.time_or_null(row, 7);
  n.next_attempt_at = from.time_or_null(row, 8);
  return n;
}

}  // namespace

boost::asio::awaitable<result<case_facts>> read_case(postgres::pool& pool, operation_id operation, std::int64_t after, int limit,
                                                     postgres::deadline until) {
  // One more than asked for tells whether there is more.
  const auto page = [&](std::int64_t rows) {
    parameters with;
    with.uuid(operation).int4(static_cast<std::int32_t>(after)).int8(rows);
    return with;
  };
  const auto one = [&] {
    parameters with;
    with.uuid(operation);
    return with;
  };
  postgres::pipeline look;
  look.add(select_facts, page(limit + 1))
      .add(select_notifications, page(limit))
      .add(select_case_reviews, one())
      .add(select_repeated, one())
      .add(select_case_look_ups, one());
  const auto found = co_await pool.run(look, until);
  if (!found.ok()) co_return postgres::to_error(found);

  case_facts out;
  const auto& facts = found.answers[0];
  out.more = facts.size() > limit;
  for (int i = 0; i < std::min(facts.size(), limit); ++i) out.facts.push_back(read_fact(facts, i));
  const auto& notifications = found.answers[1];
  for (int i = 0; i < notifications.size(); ++i) out.notifications.push_back(read_notification(notifications, i));
  const auto& reviews = found.answers[2];
  for (int i = 0; i < reviews.size(); ++i) out.reviews.push_back(read_review_view(reviews, i));
  const auto& repeated = found.answers[3];
  for (int i = 0; i < repeated.size(); ++i) {
    auto& r = out.repeated.emplace_back();
    r.key = repeated.string(i, 0);
    r.delivery = repeated.id<delivery_id>(i, 1);
    r.beyond = repeated.int8(i, 2);
    r.last_at = repeated.time_or_null(i, 3);
  }
  const auto& look_ups = found.answers[4];
  for (int i = 0; i < look_ups.size(); ++i) out.look_ups.push_back(read_look_up(look_ups, i));
  co_return out;
}

}  // namespace recibo::storage
