#include "recibo/evidence/case_view.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <utility>

namespace recibo::evidence {
namespace {

// A state of the operation's own table. A table is immutable and holds every state an operation can be in; what is not
// there was written by something else, and is shown as it stands.
const transition::state& state_of(const transition::workflow& table, std::string_view name) {
  static const transition::state unknown;
  const auto* found = table.find_state(name);
  return found ? *found : unknown;
}

std::string_view label_of(const transition::workflow& table, std::string_view name) {
  const auto& state = state_of(table, name);
  return state.label.empty() ? name : std::string_view(state.label);
}

std::string encode_segment(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool unreserved = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
                            c == '_' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append(1, '%').append(1, digits[byte >> 4]).append(1, digits[byte & 0x0f]);
    }
  }
  return out;
}

void write_retry(json_writer& out, const storage::operation_view& o, const transition::workflow& table) {
  const auto advice = retry_safe(o, table);
  out.key("retry_safe").begin_object().flag("safe", advice.safe).text("why", advice.why).end_object();
}

void write_items_summary(json_writer& out, const storage::operation_view& o) {
  std::int64_t total = 0;
  for (const auto& s : o.items_by_state) total += s.count;
  out.key("items_summary").begin_object().number("total", total).key("by_state").begin_object();
  for (const auto& s : o.items_by_state) out.number(s.state, s.count);
  out.end_object();
  if (o.items_attention) out.number("needs_attention", *o.items_attention);
  out.end_object();
}

std::vector<std::string_view> events_from(std::string_view state, const transition::workflow& table, audience who) {
  std::vector<std::string_view> out;
  for (const auto& move : table.moves()) {
    if (move.from != state) continue;
    const bool theirs = move.permits(transition::actor_kind::client) ||
                        (who == audience::operators && move.permits(transition::actor_kind::operator_));
    if (theirs) out.push_back(move.event);
  }
  return out;
}

}  // namespace

bool is_overdue(const storage::operation_view& o, const judged_by& by) {
  return !state_of(by.table, o.state).terminal && o.due_at && *o.due_at <= o.read_at;
}

std::vector<std::string_view> allowed_events(const storage::operation_view& o, const transition::workflow& table, audience who) {
  return events_from(o.state, table, who);
}

retry_advice retry_safe(const storage::operation_view& o, const transition::workflow& table) {
  const auto& state = state_of(table, o.state);
  if (o.review_open) return {false, "A person is checking this case; wait for the decision."};
  if (state.done) return {false, "It is completed; asking again would do it twice."};
  if (!state.terminal) return {false, "It is not decided yet; asking again could do it twice."};
  return {true, "It ended without being done; it may be asked again as a new operation."};
}

std::string_view last_stage(const storage::operation_view& o) {
  if (o.notified) return "notified";
  if (o.version > 0) return "transitioned";
  return o.called_back ? "received" : "accepted";
}

std::string operation_path(std::string_view request_id) { return "/v1/operations/" + encode_segment(request_id); }

void write_item(json_writer& out, const storage::item_view& item, const transition::workflow& table, audience who) {
  const auto& state = state_of(table, item.state);
  out.begin_object();
  out.text("item_id", item.item_id).text("state", item.state).text("label", label_of(table, item.state));
  out.flag("terminal", state.terminal).flag("done", state.done);
  out.number("version", item.version).time("updated_at", item.updated_at);
  out.raw("result", item.result.empty() ? std::string_view("null") : std::string_view(item.result));
  out.key("needs_attention");
  if (item.attention.empty()) {
    out.null();
  } else {
    out.begin_object().text("why", item.attention).text("detail", item.attention_detail);
    out.text_or_null("delivery_id", item.attention_delivery).time("since", item.attention_at).end_object();
  }
  out.key("allowed_events").begin_array();
  for (const auto e : events_from(item.state, table, who)) out.text(e);
  out.end_array().end_object();
}

void write_operation(json_writer& out, const storage::operation_view& o, const judged_by& by, audience who, bool with_items) {
  const auto& state = state_of(by.table, o.state);
  out.begin_object();
  out.text("request_id", o.request_id).text("provider", o.provider).text("workflow", by.table.name()).text("action", o.action);
  out.text("state", o.state).text("label", label_of(by.table, o.state)).flag("terminal", state.terminal).flag("done", state.done);
  out.number("version", o.version).time("accepted_at", o.accepted_at).time("updated_at", o.updated_at);
  out.time("deadline", o.deadline).flag("overdue", is_overdue(o, by));
  // Registered, or learned since: the first by which the provider knows it.
  out.text("reference", o.reference || o.references.empty() ? o.reference : std::optional<std::string>(o.references.front()));
  out.key("references").begin_array();
  for (const auto& r : o.references) out.text(r);
  out.end_array();
  out.text("amount", o.amount).text("currency", o.currency).text("account", o.account);
  out.raw("result", o.result.empty() ? std::string_view("null") : std::string_view(o.result));
  out.text("last_stage", last_stage(o));

  if (o.items_known) write_items_summary(out, o);
  if (with_items) {
    out.key("items").begin_array();
    for (const auto& i : o.items) write_item(out, i, by.table, who);
    out.end_array();
  }
  out.null("reconciled").flag("review_open", o.review_open);
  out.key("allowed_events").begin_array();
  for (const auto e : allowed_events(o, by.table, who)) out.text(e);
  out.end_array();
  write_retry(out, o, by.table);
  out.raw("metadata", o.metadata);
  const auto path = operation_path(o.request_id);
  out.key("_links").begin_object();
  out.text("self", path).text("status", path + "/status").text("timeline", path + "/timeline").text("items", path + "/items");
  out.text("events", path + "/events");
  out.end_object().end_object();
}

void write_status(json_writer& out, const storage::operation_view& o, const transition::workflow& table) {
  const auto& state = state_of(table, o.state);
  out.begin_object();
  out.text("request_id", o.request_id)
      .text("label", label_of(table, o.state))
      .flag("terminal", state.terminal)
      .flag("done", state.done);
  out.time("accepted_at", o.accepted_at).time("updated_at", o.updated_at);
  write_retry(out, o, table);
  out.end_object();
}

std::string key_text(std::string_view key) {
  std::string out;
  auto rest = key;
  for (bool first = true; !rest.empty(); first = false) {
    if (rest.size() < 4) return to_hex(key);
    std::size_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(rest[static_cast<std::size_t>(i)]);
    rest.remove_prefix(4);
    if (!first) out += " / ";
    if (length == 0xffffffff) continue;
    if (length > rest.size() || !is_utf8(rest.substr(0, length))) return to_hex(key);
    out += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return out;
}

boost::asio::awaitable<result<std::optional<found_case>>> read_case_view(postgres::pool& pool, workflow_library& library,
                                                                         std::shared_ptr<const config::settings> settings,
                                                                         std::string request_id, postgres::deadline until) {
  auto found = co_await storage::find_operation(pool, std::move(request_id), until);
  if (!found) co_return found.error();
  if (!*found) co_return std::optional<found_case>();
  auto table = co_await library.get(pool, std::move(settings), (*found)->workflow, until);
  if (!table) co_return table.error();
  found_case out{std::move(**found), std::move(*table)};
  co_return std::optional<found_case>(std::move(out));
}

}  // namespace recibo::evidence
