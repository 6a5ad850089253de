#include "recibo/storage/workflow_versions.hpp"

#include "columns.hpp"

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

const statement add_workflow_version{"add_workflow_version",
                                     "INSERT INTO recibo.workflow_versions (version_key, digest, name, definition) "
                                     "VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                                     {oid::int8, oid::bytea, oid::text, oid::text}};

const statement find_item_states{
    "find_item_states", "SELECT DISTINCT operation, state FROM recibo.items WHERE operation = ANY($1)", {oid::uuid_array}};

const statement insert_workflow_changes{
    "insert_workflow_changes",
    "INSERT INTO recibo.workflow_changes (operation, sequence, from_workflow, to_workflow, "
    "from_state, to_state, at, actor, reason, item_states) "
    "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    {oid::uuid_array, oid::int4_array, oid::int8_array, oid::int8_array, oid::text_array, oid::text_array, oid::timestamptz_array,
     oid::text_array, oid::text_array, oid::text_array}};

const statement rename_item_states{"rename_item_states",
                                   "UPDATE recibo.items i SET state = u.to_state, updated_at = u.at "
                                   "FROM unnest($1, $2, $3, $4) AS u(operation, from_state, to_state, at) WHERE i.operation = "
                                   "u.operation AND i.state = u.from_state",
                                   {oid::uuid_array, oid::text_array, oid::text_array, oid::timestamptz_array}};

const statement find_workflows{"find_workflows",
                               "SELECT version_key, definition FROM recibo.workflow_versions WHERE version_key = ANY($1)",
                               {oid::int8_array}};

}  // namespace

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
                               std::string_view reason, std::string_view item_states) {
  rows.next().add(id.binary());
  rows.next().add_int4(sequence);
  rows.next().add_int8(from_workflow);
  rows.next().add_int8(to_workflow);
  rows.next().add(from);
  rows.next().add(to);
  rows.next().add_time(at);
  rows.next().add(actor);
  rows.next().add(reason);
  add_text_or_null(rows.next(), item_states);
}

renamed_item_states::renamed_item_states() : rows(rename_item_states) {}
void renamed_item_states::add(operation_id operation, std::string_view from, std::string_view to, sys_micros at) {
  rows.next().add(operation.binary());
  rows.next().add(from);
  rows.next().add(to);
  rows.next().add_time(at);
}

void append_find_workflows(checked_pipeline& to, const std::vector<std::int64_t>& version_keys) {
  binary_array keys(oid::int8);
  for (const auto k : version_keys) keys.add_int8(k);
  parameters with;
  with.array(std::move(keys));
  to.add(find_workflows, std::move(with));
}

}  // namespace recibo::storage
