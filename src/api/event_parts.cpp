// What requests that raise events have in common: evidence, conditions, and the refusal that says what is allowed.
#include "handlers.hpp"

#include "recibo/http/preconditions.hpp"

#include <charconv>
#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

constexpr std::size_t evidence_bytes_max = 64 << 10;

}  // namespace

// The revisions that If-Match names; nullopt: any. A tag that is not of this service's making matches nothing.
result<std::optional<std::vector<std::int64_t>>> read_revisions(const call& of) {
  bool malformed = false;
  const auto condition = http::read_if_match(of.request.headers, malformed);
  if (malformed) return error(permanent::malformed_field, "If-Match: is not a list of entity tags in quotes, or *");
  std::optional<std::vector<std::int64_t>> out;
  if (!condition || condition->any) return out;
  out.emplace();
  for (const auto& tag : condition->tags) {
    std::int64_t revision = 0;
    const auto [end, failed] = std::from_chars(tag.data(), tag.data() + tag.size(), revision);
    // Revisions begin at 1 and are written without leading zeros.
    if (failed == std::errc() && end == tag.data() + tag.size() && tag.front() >= '1') out->push_back(revision);
  }
  return out;
}

result<std::string> read_evidence(const call& of) {
  const auto* given = present(of.body, "evidence");
  if (given == nullptr) return std::string();
  if (given->is(json_value::kind::string)) {
    // A sentence is evidence, too; it is kept as a document, because that is what the column holds.
    json_writer out;
    out.begin_object().text("note", given->text).end_object();
    return given->text.empty() ? std::string() : out.take();
  }
  if (!given->is(json_value::kind::object)) return error(permanent::malformed_field, "/evidence: is an object or a text");
  if (given->members.empty()) return std::string();
  auto canonical = canonical_json(*given);
  if (!canonical) return error(permanent::malformed_field, "/evidence: " + canonical.error().detail);
  if (canonical->size() > evidence_bytes_max)
    return error(permanent::malformed_field, "/evidence: has at most 65536 bytes as compact JSON");
  return canonical;
}

result<std::optional<std::string>> read_idempotency_key(const call& of) {
  auto key = header_of(of, "Idempotency-Key");
  if (!key || !*key) return key;
  if (auto checked = validate_text(text(text_rule::alias), **key, "Idempotency-Key"); !checked) return checked.error();
  return key;
}

std::vector<member> conditions_of_events() {
  return {
      optional("Idempotency-Key",
               about(text(text_rule::alias), "The same again is answered as the first time, and moves nothing.")),
      optional("If-Match",
               about(text(1024), "Only on a revision that was looked at: its ETag, several of them, or *; else 412.")),
  };
}

// 409 says what may be done instead.
awaitable<http::response> refuse_illegal(inside& in, call& of, error why, std::string request_id,
                                         std::optional<std::string> item_id) {
  auto refused = refuse(of, why, request_id);
  co_return co_await add_what_is_allowed(in, of, std::move(refused), std::move(request_id), std::move(item_id));
}

awaitable<http::response> add_what_is_allowed(inside& in, call& of, http::response refused, std::string request_id,
                                              std::optional<std::string> item_id) {
  auto found = co_await find_case(in, of, std::move(request_id));
  if (found && item_id) {
    storage::item_query what;
    what.operation = found->operation.id;
    what.item_id = std::move(item_id);
    auto items = co_await storage::list_items(in.with.pool, std::move(what), of.until);
    // What may be raised is asked of the item's state.
    if (items && !items->empty()) found->operation.state = items->front().state;
  }
  if (found) {
    json_writer state, events;
    state.text(found->operation.state);
    events.begin_array();
    for (const auto e : evidence::allowed_events(found->operation, *found->table, of.audience())) events.text(e);
    events.end_array();
    add_member(refused, "state", state.str());
    add_member(refused, "allowed_events", events.str());
  }
  co_return refused;
}

}  // namespace recibo::api
