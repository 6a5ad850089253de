// What handlers get, and the answers they share. Private to api/.
#pragma once

#include "recibo/api/endpoint.hpp"
#include "recibo/api/service.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/evidence/case_view.hpp"
#include "recibo/http/auth.hpp"
#include "recibo/http/problem.hpp"

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::api {

// The client's own fields, as compact JSON.
inline constexpr std::size_t metadata_bytes_max = 16 << 10;

// Of the service, shared by all its requests.
struct inside {
  explicit inside(dependencies d) : with(std::move(d)) {}

  dependencies with;
  evidence::workflow_library workflows;
  // GET /v1/stats: the last answer, and until when it is good enough.
  std::string statistics;
  std::chrono::steady_clock::time_point statistics_until{};
};

// One request, decoded and validated.
struct call {
  const http::request& request;
  const endpoint& at;
  std::shared_ptr<const config::settings> settings;
  http::principal who;            // of endpoints that need a token
  std::vector<std::string> path;  // values of the path's {…}, in order
  std::map<std::string, std::string, std::less<>> query;
  std::vector<std::pair<std::string, std::string>> metadata;  // of metadata.<key>=value
  json_value body;                                            // valid by the endpoint's schema; take it before awaiting
  std::chrono::steady_clock::time_point until;

  std::optional<std::string> query_of(std::string_view name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::nullopt : std::optional(found->second);
  }
  evidence::audience audience() const {
    return who.role == config::role::client ? evidence::audience::client : evidence::audience::operators;
  }
  // Whether an operation of this tenant exists for the caller (R35).
  bool may_see(std::string_view client) const { return who.role != config::role::client || client == who.name; }
};

// 200 and the like, application/json, not to be kept by anybody.
http::response answer_json(int status, json_writer&& body);
// A problem with the trace of the request, and the operation where it is known.
http::response refuse(const call& of, const error& why, std::string_view request_id = {});
http::response refuse(const call& of, int status, std::string_view code, std::string detail, std::string_view request_id = {});
http::response not_found(const call& of, std::string_view what, std::string_view request_id = {});
// Adds a member to a problem: `json` is its value.
void add_member(http::response& to, std::string_view name, std::string_view json);

// `limit` of a list: 1 to 200, 50 unless said. The table has checked it.
int limit_of(const call& of, int otherwise = 50);
// An opaque place in a list: `kind` tells lists apart, so that a cursor of one is not taken for another's.
std::string make_cursor(char kind, std::string_view place);
// nullopt: there is none. permanent::malformed_field   not one of ours, or another list's
result<std::optional<std::string>> read_cursor(const call& of, char kind, std::size_t size);
// The same for a cursor that stands elsewhere.
result<std::string> place_of(std::string_view cursor, char kind, std::size_t size);
template <class Id>
Id id_at(std::string_view place) {
  Id id;
  std::copy(place.begin(), place.end(), reinterpret_cast<char*>(id.bytes.data()));
  return id;
}
std::string number_place(std::int64_t number);
std::int64_t number_at(std::string_view place);

// The one value of a header; nullopt: absent. permanent::malformed_field   it stands twice
result<std::optional<std::string>> header_of(const call& of, std::string_view name);

// Of requests that raise an event. The revisions that If-Match names; nullopt: any. A tag that is not of this service's
// making matches nothing. permanent::malformed_field   a header or the evidence breaks its rule
result<std::optional<std::vector<std::int64_t>>> read_revisions(const call& of);
result<std::optional<std::string>> read_idempotency_key(const call& of);
// `evidence` of the body as a canonical JSON object; empty: none was given.
result<std::string> read_evidence(const call& of);
// These headers, for the table.
std::vector<member> conditions_of_events();
// 409 with the operation's state and what may be done there instead.
// `item_id`: of its item's state.
boost::asio::awaitable<http::response> refuse_illegal(inside& in, call& of, error why, std::string request_id,
                                                      std::optional<std::string> item_id = std::nullopt);
// The same for a refusal that is there already.
boost::asio::awaitable<http::response> add_what_is_allowed(inside& in, call& of, http::response refused, std::string request_id,
                                                           std::optional<std::string> item_id);

// The operation of the path's first segment, if it exists for the caller.
// permanent::not_found   it does not; else errors of the pool
boost::asio::awaitable<result<evidence::found_case>> find_case(inside& in, call& of);
// The same for an operation that is named otherwise.
boost::asio::awaitable<result<evidence::found_case>> find_case(inside& in, call& of, std::string request_id);
// An operation as an answer, with its ETag.
http::response answer_operation(const call& of, int status, const storage::operation_view& o, const transition::workflow& table);

// `limit` and `cursor`, as every list takes them.
std::vector<member> paged(std::vector<member> filters, std::int64_t most = 200);
// {"data": […], "next_cursor": …}
schema page_of(std::string component);

// An endpoint that reads operations, as clients may too.
endpoint reading_operations(std::string path, std::string id, std::string summary, handler run);

// A review with what may be done about it and what was done; 404 when there is none.
boost::asio::awaitable<http::response> answer_review(inside& in, call& of, review_id id);

// Each adds the endpoints of one resource.
void add_operations(endpoint_table& to);
void add_operation_reads(endpoint_table& to);
void add_operation_lists(endpoint_table& to);
void add_operation_events(endpoint_table& to);
void add_timeline(endpoint_table& to);
void add_deliveries(endpoint_table& to);
void add_reviews(endpoint_table& to);
void add_review_actions(endpoint_table& to);
void add_failed_callbacks(endpoint_table& to);
void add_failed_callback_actions(endpoint_table& to);
void add_notifications(endpoint_table& to);
void add_destinations(endpoint_table& to);
void add_look_ups(endpoint_table& to);
void add_providers(endpoint_table& to);
void add_refusals(endpoint_table& to);
void add_workflows(endpoint_table& to);
void add_stats(endpoint_table& to);
void add_config(endpoint_table& to);
void add_system(endpoint_table& to);

}  // namespace recibo::api
