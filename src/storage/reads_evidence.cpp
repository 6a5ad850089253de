#include "recibo/storage/reads_evidence.hpp"

#include "search.hpp"

#include "reads_review.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::deadline;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

// In the order of read_delivery(). The size of a body is known without reading it.
const std::string delivery_columns =
    "d.id, d.provider, d.disposition, d.received_at, coalesce(o.request_id, d.request_id), d.operation, d.key, d.event, "
    "d.occurred_at, "
    "d.provider_sequence, d.body_digest, d.payload, p.size, p.content_type, d.secret, d.peer, d.answer_status::int, d.trace_id, "
    "d.items, (SELECT u.ended_at FROM recibo.unclaimed u WHERE u.delivery = d.id), d.look_up::text";
constexpr int delivery_column_count = 21;
const std::string delivery_joins =
    " LEFT JOIN recibo.operations o ON o.id = d.operation "
    "LEFT JOIN LATERAL (SELECT octet_length(p.body)::bigint AS size, p.content_type FROM recibo.payloads p WHERE p.id = "
    "d.payload LIMIT 1) p "
    "ON true ";

const statement select_delivery{"read_delivery",
                                "SELECT " + delivery_columns + " FROM recibo.deliveries d" + delivery_joins + "WHERE d.id = $1",
                                {oid::uuid}};

const std::string delivery_page_sql =
    "page AS MATERIALIZED (SELECT s.id FROM w s WHERE ($3 IS NULL OR s.provider = $3) AND ($4 IS NULL OR s.disposition = $4) "
    "ORDER BY s.id DESC LIMIT $5) "
    "SELECT " +
    delivery_columns +
    ", (SELECT w.id FROM w ORDER BY w.id LIMIT 1), (SELECT count(*) FROM w) "
    "FROM (VALUES (1)) AS always LEFT JOIN (page JOIN recibo.deliveries d ON d.id = page.id" +
    delivery_joins + ") ON true ORDER BY page.id DESC";

// As the lists of operations: a window of up to $2 deliveries before $1, and where it ended.
const statement list_all{
    "list_deliveries",
    "WITH w AS MATERIALIZED (SELECT s.id, s.provider, s.disposition FROM recibo.deliveries s WHERE s.id < $1 "
    "ORDER BY s.id DESC LIMIT $2), " +
        delivery_page_sql,
    {oid::uuid, oid::int8, oid::text, oid::text, oid::int8}};

// Deliveries have no index on their operation: its audit rows name them. What belongs to none is known by its open work row.
const statement list_of_operation{
    "list_deliveries_of_operation",
    "WITH c AS MATERIALIZED (SELECT a.delivery AS id FROM recibo.audit a "
    "WHERE a.operation = (SELECT n.id FROM recibo.operations n WHERE n.request_id = $6) AND a.kind IN ('delivery', 'replay') "
    "UNION SELECT f.delivery FROM recibo.failed_callbacks f WHERE f.request_id = $6 "
    "UNION SELECT i.parked FROM recibo.parked_identities i WHERE i.provider = ANY($7) AND i.kind = 'request_id' AND i.identity = "
    "$6), "
    "w AS MATERIALIZED (SELECT s.id, s.provider, s.disposition FROM c JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id "
    "= c.id LIMIT 1) s "
    "ON true WHERE s.id < $1 ORDER BY s.id DESC LIMIT $2), " +
        delivery_page_sql,
    {oid::uuid, oid::int8, oid::text, oid::text, oid::int8, oid::text, oid::text_array}};

// What waits, and what was given up, is known by rows of its own.
const std::string of_open_work =
    "w AS MATERIALIZED (SELECT s.id, s.provider, s.disposition FROM c JOIN LATERAL (SELECT * FROM recibo.deliveries x WHERE x.id "
    "= c.id LIMIT 1) s ON true ORDER BY s.id DESC), ";
const statement list_waiting{
    "list_waiting_deliveries",
    "WITH c AS MATERIALIZED (SELECT p.id FROM recibo.parked p WHERE p.id < $1 ORDER BY p.id DESC LIMIT $2), " + of_open_work +
        delivery_page_sql,
    {oid::uuid, oid::int8, oid::text, oid::text, oid::int8}};
const statement list_given_up{
    "list_given_up_deliveries",
    "WITH c AS MATERIALIZED (SELECT u.delivery AS id FROM recibo.unclaimed u WHERE u.delivery < $1 ORDER BY u.delivery DESC "
    "LIMIT $2), " +
        of_open_work + delivery_page_sql,
    {oid::uuid, oid::int8, oid::text, oid::text, oid::int8}};

const statement select_payload{"read_payload", "SELECT body FROM recibo.payloads WHERE id = $1", {oid::uuid}};

const statement select_review{"read_review", review_select + "WHERE v.id = $1", {oid::uuid}};

// As the lists of operations: up to $8 reviews before $1 are looked at, of which up to $4 that pass come back, each with where
// the look ended and how many it saw. The status is a literal, because only that can use the index of what is open.
statement reviews_from(const char* name, const std::string& candidates) {
  return {name,
          "WITH w AS MATERIALIZED (SELECT s.id FROM " + candidates +
              " s.id < $1 ORDER BY s.id DESC LIMIT $8), page AS MATERIALIZED (SELECT w.id FROM w JOIN recibo.reviews v ON v.id = "
              "w.id "
              "LEFT JOIN recibo.operations o ON o.id = v.operation WHERE ($2 IS NULL OR coalesce(o.provider, v.provider) = $2) "
              "AND ($3 IS NULL OR coalesce(o.request_id, v.request_id) = $3) AND ($5 IS NULL OR v.owner = $5) "
              "AND ($6 IS NULL OR v.assigned_to = $6) "
              "AND ($7 IS NULL OR (v.status = 'open' AND coalesce(v.due_at < now(), false)) = ($7 = 'true')) "
              "AND ($9 IS NULL OR v.status = $9) ORDER BY w.id DESC LIMIT $4) SELECT " +
              review_columns +
              ", (SELECT w.id FROM w ORDER BY w.id LIMIT 1), (SELECT count(*) FROM w) FROM (VALUES (1)) AS always LEFT JOIN "
              "(page JOIN recibo.reviews v ON v.id = page.id LEFT JOIN recibo.operations o ON o.id = v.operation) ON true "
              "ORDER BY page.id DESC",
          {oid::uuid, oid::text, oid::text, oid::int8, oid::text, oid::text, oid::text, oid::int8, oid::text}};
}
const statement list_open_reviews = reviews_from("list_open_reviews", "recibo.reviews s WHERE s.status = 'open' AND");
const statement list_any_reviews = reviews_from("list_reviews", "recibo.reviews s WHERE");
// Of an operation, or of callbacks that say the request ID and found none.
const statement list_reviews_of_request = reviews_from(
    "list_reviews_of_request",
    "((SELECT x.id FROM recibo.reviews x WHERE x.operation = (SELECT n.id FROM recibo.operations n WHERE n.request_id = $3)) "
    "UNION (SELECT x.id FROM recibo.reviews x WHERE x.request_id = $3)) "
    "s WHERE");
const statement select_review_actions{"read_review_actions",
                                      "SELECT a.action, a.actor, a.at, a.assignee, a.resolution, a.reason, t.event, "
                                      "a.transition::int8 FROM recibo.review_actions a "
                                      "LEFT JOIN recibo.transitions t ON t.operation = a.operation AND t.sequence = a.transition "
                                      "WHERE a.review = $1 ORDER BY a.at, a.id LIMIT 1000",
                                      {oid::uuid}};

const std::string failed_columns =
    "f.id, f.provider, f.disposition, f.reason, f.detail, f.delivery, f.body_digest, f.request_id, f.event, "
    "f.answer_status::int, "
    "f.count, f.first_seen_at, f.last_seen_at, f.attempts, f.last_attempt_at";
constexpr int failed_column_count = 15;
const statement select_failed{
    "read_failed_callback", "SELECT " + failed_columns + " FROM recibo.failed_callbacks f WHERE f.id = $1", {oid::uuid}};
const statement list_failed{
    "list_failed_callbacks",
    "WITH w AS MATERIALIZED (SELECT s.id, s.provider, s.disposition, s.reason, s.event FROM recibo.failed_callbacks s WHERE s.id "
    "< "
    "$1 ORDER BY s.id DESC LIMIT $7), page AS MATERIALIZED (SELECT w.id FROM w WHERE ($2 IS NULL OR w.provider = $2) "
    "AND ($3 IS NULL OR w.disposition = $3) AND ($5 IS NULL OR w.reason = $5) AND ($6 IS NULL OR w.event = $6) "
    "ORDER BY w.id DESC LIMIT $4) SELECT " +
        failed_columns +
        ", (SELECT w.id FROM w ORDER BY w.id LIMIT 1), (SELECT count(*) FROM w) FROM (VALUES (1)) AS always LEFT JOIN "
        "(page JOIN recibo.failed_callbacks f ON f.id = page.id) ON true ORDER BY page.id DESC",
    {oid::uuid, oid::text, oid::text, oid::int8, oid::text, oid::text, oid::int8}};

template <class Id>
Id newest() noexcept {
  Id id;
  id.bytes.fill(0xff);
  return id;
}

// One more than asked for tells whether there is another page.
template <class View>
std::int64_t rows_missing(const std::vector<View>& have, int limit) noexcept {
  return limit + 1 - static_cast<std::int64_t>(have.size());
}

// Whether the page is full and another follows, which then begins behind its last row.
template <class View, class Id>
bool end_page(std::vector<View>& have, int limit, std::optional<Id>& next) {
  const auto wanted = static_cast<std::size_t>(limit);
  if (have.size() <= wanted) return false;
  have.resize(wanted);
  next = have.back().id;
  return true;
}

delivery_view read_delivery(const rows& from, int row) {
  delivery_view d;
  d.id = from.id<delivery_id>(row, 0);
  d.provider = from.string(row, 1);
  d.disposition = from.string(row, 2);
  d.received_at = from.time(row, 3);
  d.request_id = from.text_or_null(row, 4);
  if (!from.is_null(row, 5)) d.operation = from.id<operation_id>(row, 5);
  d.key = from.text_or_null(row, 6);
  d.event = from.text_or_null(row, 7);
  d.occurred_at = from.time_or_null(row, 8);
  d.provider_sequence = from.int8_or_null(row, 9);
  d.body_digest = from.string(row, 10);
  d.payload = from.id<delivery_id>(row, 11);
  d.payload_size = from.int8_or_null(row, 12);
  d.content_type = from.text_or_null(row, 13);
  d.secret = from.string(row, 14);
  d.peer = from.string(row, 15);
  d.answer_status = from.int4(row, 16);
  d.trace_id = from.text_or_null(row, 17);
  d.items = from.text_or_null(row, 18);
  d.given_up_at = from.time_or_null(row, 19);
  d.look_up = from.text_or_null(row, 20);
  return d;
}

failed_view read_failed_view(const rows& from, int row) {
  failed_view f;
  f.id = from.id<failed_callback_id>(row, 0);
  f.provider = from.string(row, 1);
  f.disposition = from.string(row, 2);
  f.reason = from.string(row, 3);
  f.detail = from.string(row, 4);
  f.delivery = from.id<delivery_id>(row, 5);
  f.body_digest = from.string(row, 6);
  f.request_id = from.text_or_null(row, 7);
  f.event = from.text_or_null(row, 8);
  f.answer_status = from.int4(row, 9);
  f.count = from.int4(row, 10);
  f.first_seen_at = from.time(row, 11);
  f.last_seen_at = from.time(row, 12);
  f.attempts = from.int4(row, 13);
  f.last_attempt_at = from.time_or_null(row, 14);
  return f;
}

}  // namespace

review_view read_review_view(const rows& from, int row) {
  review_view v;
  v.id = from.id<review_id>(row, 0);
  v.request_id = from.text_or_null(row, 1);
  v.provider = from.string(row, 2);
  v.kind = from.string(row, 3);
  v.detail = from.string(row, 4);
  v.state = from.string(row, 5);
  v.owner = from.string(row, 6);
  v.status = from.string(row, 7);
  v.present_state = from.text_or_null(row, 8).value_or("");
  v.count = from.int4(row, 9);
  v.opened_at = from.time(row, 10);
  v.last_seen_at = from.time(row, 11);
  v.due_at = from.time_or_null(row, 12);
  v.resolved_at = from.time_or_null(row, 13);
  v.assigned_to = from.text_or_null(row, 14);
  v.resolved_by = from.text_or_null(row, 15);
  v.resolution = from.text_or_null(row, 16);
  v.reason = from.text_or_null(row, 17);
  v.delivery = from.id<delivery_id>(row, 18);
  if (!from.is_null(row, 19)) v.first_delivery = from.id<delivery_id>(row, 19);
  v.digest = from.string(row, 20);
  v.first_digest = from.text_or_null(row, 21);
  v.body_digest = from.text_or_null(row, 22);
  v.first_body_digest = from.text_or_null(row, 23);
  v.item_id = from.text_or_null(row, 24);
  v.workflow = from.int8_or_null(row, 25);
  v.revision = from.int8_or_null(row, 26).value_or(0);
  return v;
}

awaitable<result<std::optional<delivery_view>>> find_delivery(postgres::pool& pool, delivery_id id, deadline until) {
  parameters with;
  with.uuid(id);
  auto found = co_await pool.query(select_delivery, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<delivery_view>();
  co_return std::optional<delivery_view>(read_delivery(*found, 0));
}

awaitable<result<delivery_page>> list_deliveries(postgres::pool& pool, delivery_query what, deadline until) {
  using parked = delivery_query::parked;
  const auto& sql = what.request_id                  ? list_of_operation
                    : what.which == parked::waiting  ? list_waiting
                    : what.which == parked::given_up ? list_given_up
                                                     : list_all;
  auto from = what.after.value_or(newest<delivery_id>());
  const auto give_up = std::min(until, std::chrono::steady_clock::now() + search_time);
  const auto wanted = static_cast<std::size_t>(what.limit);
  delivery_page page;
  for (std::size_t step = 0;; ++step) {
    const auto window = windows[std::min(step, windows.size() - 1)];
    parameters with;
    with.uuid(from).int8(window).text(what.provider).text(what.disposition);
    with.int8(static_cast<std::int64_t>(wanted + 1 - page.deliveries.size()));
    if (what.request_id) {
      postgres::binary_array providers(oid::text);
      for (const auto& p : what.providers) providers.add(p);
      with.text(what.request_id).array(std::move(providers));
    }
    auto found = co_await pool.query(sql, std::move(with), until);
    if (!found) co_return found.error();
    for (int i = 0; i < found->size(); ++i) {
      if (!found->is_null(i, 0)) page.deliveries.push_back(read_delivery(*found, i));
    }
    if (page.deliveries.size() > wanted) {
      page.deliveries.resize(wanted);
      page.next = page.deliveries.back().id;
      co_return page;
    }
    if (found->int8(0, delivery_column_count + 1) < window) co_return page;
    from = found->id<delivery_id>(0, delivery_column_count);
    if (std::chrono::steady_clock::now() >= give_up) {
      page.next = from;
      co_return page;
    }
  }
}

awaitable<result<std::optional<std::string>>> read_payload(postgres::pool& pool, delivery_id payload, deadline until) {
  parameters with;
  with.uuid(payload);
  auto found = co_await pool.query(select_payload, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<std::string>();
  co_return std::optional<std::string>(found->string(0, 0));
}

awaitable<result<std::optional<review_view>>> find_review(postgres::pool& pool, review_id id, deadline until) {
  parameters with;
  with.uuid(id);
  auto found = co_await pool.query(select_review, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<review_view>();
  co_return std::optional<review_view>(read_review_view(*found, 0));
}

awaitable<result<std::vector<review_action_view>>> list_review_actions(postgres::pool& pool, review_id id, deadline until) {
  parameters with;
  with.uuid(id);
  auto found = co_await pool.query(select_review_actions, std::move(with), until);
  if (!found) co_return found.error();
  std::vector<review_action_view> out(static_cast<std::size_t>(found->size()));
  for (int i = 0; i < found->size(); ++i) {
    auto& a = out[static_cast<std::size_t>(i)];
    a.action = found->string(i, 0);
    a.actor = found->string(i, 1);
    a.at = found->time(i, 2);
    a.assignee = found->text_or_null(i, 3);
    a.resolution = found->text_or_null(i, 4);
    a.reason = found->text_or_null(i, 5);
    a.event = found->text_or_null(i, 6);
    a.transition = found->int8_or_null(i, 7);
  }
  co_return out;
}

awaitable<result<review_page>> list_reviews(postgres::pool& pool, review_query what, deadline until) {
  const bool open = what.status == "open";
  const auto& sql = what.request_id ? list_reviews_of_request : open ? list_open_reviews : list_any_reviews;
  const auto give_up = std::min(until, std::chrono::steady_clock::now() + search_time);
  auto from = what.after.value_or(newest<review_id>());
  review_page page;
  for (std::size_t step = 0;; ++step) {
    const auto window = windows[std::min(step, windows.size() - 1)];
    parameters with;
    with.uuid(from).text(what.provider).text(what.request_id).int8(rows_missing(page.reviews, what.limit));
    with.text(what.owner).text(what.assigned_to);
    with.text(what.overdue ? std::optional<std::string>(*what.overdue ? "true" : "false") : std::nullopt);
    with.int8(window).text(what.status);
    auto found = co_await pool.query(sql, std::move(with), until);
    if (!found) co_return found.error();
    for (int i = 0; i < found->size(); ++i)
      if (!found->is_null(i, 0)) page.reviews.push_back(read_review_view(*found, i));
    if (end_page(page.reviews, what.limit, page.next)) co_return page;
    if (found->int8(0, review_column_count + 1) < window) co_return page;
    from = found->id<review_id>(0, review_column_count);
    if (std::chrono::steady_clock::now() >= give_up) {
      page.next = from;
      co_return page;
    }
  }
}

awaitable<result<std::optional<failed_view>>> find_failed_callback(postgres::pool& pool, failed_callback_id id, deadline until) {
  parameters with;
  with.uuid(id);
  auto found = co_await pool.query(select_failed, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<failed_view>();
  co_return std::optional<failed_view>(read_failed_view(*found, 0));
}

awaitable<result<failed_page>> list_failed_callbacks(postgres::pool& pool, failed_query what, deadline until) {
  const auto give_up = std::min(until, std::chrono::steady_clock::now() + search_time);
  auto from = what.after.value_or(newest<failed_callback_id>());
  failed_page page;
  for (std::size_t step = 0;; ++step) {
    const auto window = windows[std::min(step, windows.size() - 1)];
    parameters with;
    with.uuid(from).text(what.provider).text(what.disposition).int8(rows_missing(page.failed, what.limit));
    with.text(what.reason).text(what.event).int8(window);
    auto found = co_await pool.query(list_failed, std::move(with), until);
    if (!found) co_return found.error();
    for (int i = 0; i < found->size(); ++i)
      if (!found->is_null(i, 0)) page.failed.push_back(read_failed_view(*found, i));
    if (end_page(page.failed, what.limit, page.next)) co_return page;
    if (found->int8(0, failed_column_count + 1) < window) co_return page;
    from = found->id<failed_callback_id>(0, failed_column_count);
    if (std::chrono::steady_clock::now() >= give_up) {
      page.next = from;
      co_return page;
    }
  }
}

}  // namespace recibo::storage
