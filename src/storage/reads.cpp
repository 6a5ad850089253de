#include "recibo/storage/reads.hpp"

#include "reads_operation.hpp"
#include "recibo/core/json_value.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::deadline;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

const statement select_operation{
    "read_operation",
    "SELECT " + operation_columns +
        ", (SELECT json_agg(json_build_array(i.item_id, i.state, i.version, i.ordinal, (extract(epoch FROM i.updated_at) * "
        "1000000)::bigint, coalesce(i.result, ''), coalesce(i.attention, ''), coalesce(i.attention_detail, ''), "
        "coalesce(i.attention_delivery::text, ''), (extract(epoch FROM i.attention_at) * 1000000)::bigint) "
        "ORDER BY i.ordinal)::text FROM (SELECT * FROM recibo.items i WHERE i.operation = o.id ORDER BY i.ordinal LIMIT " +
        std::to_string(items_shown_max) +
        ") i) "
        "FROM " +
        operation_source + "WHERE o.request_id = $1",
    {oid::text}};

const statement select_items{"read_items",
                             "SELECT item_id, state, version, ordinal, updated_at, result, attention, attention_detail, "
                             "attention_delivery::text, attention_at FROM recibo.items "
                             "WHERE operation = $1 AND ordinal > $2 AND ($3 IS NULL OR state = $3) AND ($5 IS NULL OR item_id = "
                             "$5) AND ($6 IS NULL OR (attention IS NOT NULL) = ($6 = 'true')) ORDER BY ordinal LIMIT $4",
                             {oid::uuid, oid::int4, oid::text, oid::int8, oid::text, oid::text}};

const statement select_definition{
    "read_workflow_definition", "SELECT definition FROM recibo.workflow_versions WHERE version_key = $1", {oid::int8}};

const statement select_version_members{
    "read_version_members",
    "SELECT o.id, o.request_id, o.state, "
    "(SELECT min(i.state) FROM recibo.items i WHERE i.operation = o.id AND i.state <> ALL($5)) "
    "FROM recibo.operations o WHERE o.workflow = $1 AND o.state = ANY($2) AND o.id > $3 ORDER BY o.id LIMIT $4",
    {oid::int8, oid::text_array, oid::uuid, oid::int8, oid::text_array}};

std::int64_t to_number(std::string_view text) noexcept {
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::int64_t number_at(const json_value& list, std::size_t i) noexcept { return to_number(list.elements[i].text); }

std::vector<item_view> read_shown_items(std::string_view json) {
  std::vector<item_view> out;
  const auto list = parse_json(json);
  if (!list) return out;
  out.reserve(list->elements.size());
  for (const auto& i : list->elements) {
    auto& item = out.emplace_back();
    item.item_id = i.elements[0].text;
    item.state = i.elements[1].text;
    item.version = number_at(i, 2);
    item.ordinal = number_at(i, 3);
    item.updated_at = sys_micros(std::chrono::microseconds(number_at(i, 4)));
    item.result = i.elements[5].text;
    item.attention = i.elements[6].text;
    item.attention_detail = i.elements[7].text;
    item.attention_delivery = i.elements[8].text;
    if (!item.attention.empty()) item.attention_at = sys_micros(std::chrono::microseconds(number_at(i, 9)));
  }
  return out;
}

}  // namespace

const statement select_versions{
    "read_workflow_versions",
    "SELECT version_key, name, definition, first_used_at FROM recibo.workflow_versions ORDER BY name, first_used_at",
    {}};

const statement count_states_in_use{
    "count_states_in_use",
    "SELECT v.name, s.state, s.workflow, count(*) FROM ("
    "SELECT o.id, o.workflow, o.state FROM recibo.operations o UNION "
    "SELECT o.id, o.workflow, i.state FROM recibo.items i JOIN recibo.operations o ON o.id = i.operation) s "
    "JOIN recibo.workflow_versions v ON v.version_key = s.workflow GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    {}};

std::vector<state_use> read_states_in_use(const rows& from) {
  std::vector<state_use> out;
  for (int i = 0; i < from.size(); ++i) out.push_back({from.string(i, 0), from.string(i, 1), from.int8(i, 2), from.int8(i, 3)});
  return out;
}

awaitable<result<std::vector<version_member>>> list_version_members(postgres::pool& pool, std::int64_t version_key,
                                                                    std::vector<std::string> states,
                                                                    std::vector<std::string> known, operation_id after, int limit,
                                                                    deadline until) {
  binary_array words(oid::text), names(oid::text);
  for (const auto& s : states) words.add(s);
  for (const auto& s : known) names.add(s);
  parameters with;
  with.int8(version_key).array(std::move(words)).uuid(after).int8(limit).array(std::move(names));
  auto found = co_await pool.query(select_version_members, std::move(with), until);
  if (!found) co_return found.error();
  std::vector<version_member> out;
  for (int i = 0; i < found->size(); ++i)
    out.push_back(
        {found->id<operation_id>(i, 0), found->string(i, 1), found->string(i, 2), found->text_or_null(i, 3).value_or("")});
  co_return out;
}

operation_view read_operation_view(const rows& from, int row) {
  operation_view o;
  o.id = from.id<operation_id>(row, 0);
  o.request_id = from.string(row, 1);
  o.provider = from.string(row, 2);
  o.state = from.string(row, 3);
  o.workflow = from.int8(row, 4);
  o.version = from.int4(row, 5);
  o.revision = from.int4(row, 6);
  o.review_open = from.boolean(row, 7);
  o.state_at = from.time(row, 8);
  o.updated_at = from.time(row, 9);
  o.client = from.string(row, 10);
  o.action = from.string(row, 11);
  // As it was registered, digit for digit; jsonb puts blanks in.
  const auto metadata = canonical_json(from.text(row, 12));
  o.metadata = metadata ? *metadata : from.string(row, 12);
  o.reference = from.text_or_null(row, 13);
  o.amount = from.text_or_null(row, 14);
  o.currency = from.text_or_null(row, 15);
  o.deadline = from.time_or_null(row, 16);
  o.accepted_at = from.time(row, 17);
  if (!from.is_null(row, 18)) {
    if (const auto list = parse_json(from.text(row, 18))) {
      for (const auto& alias : list->elements) o.references.push_back(alias.text);
    }
  }
  if (!from.is_null(row, 19)) {
    if (const auto list = parse_json(from.text(row, 19))) {
      for (const auto& s : list->elements) {
        o.items_by_state.push_back({s.elements[0].text, number_at(s, 1)});
        *o.items_attention += number_at(s, 2);
      }
    }
  }
  if (!from.is_null(row, 20)) o.result = from.string(row, 20);
  o.called_back = from.boolean(row, 21);
  o.notified = from.boolean(row, 22);
  o.read_at = from.time(row, 23);
  o.account = from.text_or_null(row, 24);
  o.due_at = from.time_or_null(row, 25);
  return o;
}

awaitable<result<std::optional<operation_view>>> find_operation(postgres::pool& pool, std::string request_id, deadline until) {
  parameters with;
  with.text(request_id);
  auto found = co_await pool.query(select_operation, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<operation_view>();
  auto o = read_operation_view(*found, 0);
  if (!found->is_null(0, operation_column_count)) o.items = read_shown_items(found->text(0, operation_column_count));
  co_return std::optional<operation_view>(std::move(o));
}

awaitable<result<std::vector<item_view>>> list_items(postgres::pool& pool, item_query what, deadline until) {
  parameters with;
  with.uuid(what.operation).int4(static_cast<std::int32_t>(what.after)).text(what.state).int8(what.limit);
  with.text(what.item_id).text(what.attention ? std::optional<std::string>(*what.attention ? "true" : "false") : std::nullopt);
  auto found = co_await pool.query(select_items, std::move(with), until);
  if (!found) co_return found.error();
  std::vector<item_view> out;
  for (int i = 0; i < found->size(); ++i) {
    auto& item = out.emplace_back();
    item.item_id = found->string(i, 0);
    item.state = found->string(i, 1);
    item.version = found->int4(i, 2);
    item.ordinal = found->int4(i, 3);
    item.updated_at = found->time(i, 4);
    item.result = found->text_or_null(i, 5).value_or("");
    item.attention = found->text_or_null(i, 6).value_or("");
    item.attention_detail = found->text_or_null(i, 7).value_or("");
    item.attention_delivery = found->text_or_null(i, 8).value_or("");
    item.attention_at = found->time_or_null(i, 9);
  }
  co_return out;
}

awaitable<result<std::optional<std::string>>> find_workflow_definition(postgres::pool& pool, std::int64_t version_key,
                                                                       deadline until) {
  parameters with;
  with.int8(version_key);
  auto found = co_await pool.query(select_definition, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<std::string>();
  co_return std::optional<std::string>(found->string(0, 0));
}

awaitable<result<std::vector<workflow_version_view>>> list_workflow_versions(postgres::pool& pool, deadline until) {
  parameters none;
  auto found = co_await pool.query(select_versions, std::move(none), until);
  if (!found) co_return found.error();
  std::vector<workflow_version_view> out;
  for (int i = 0; i < found->size(); ++i) {
    auto& v = out.emplace_back();
    v.version_key = found->int8(i, 0);
    v.name = found->string(i, 1);
    v.definition = found->string(i, 2);
    v.first_used_at = found->time(i, 3);
  }
  co_return out;
}

}  // namespace recibo::storage
