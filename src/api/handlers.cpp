#include "handlers.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/core/json.hpp"
#include "recibo/receive/callback_url.hpp"

#include <charconv>
#include <cstring>
#include <utility>

namespace recibo::api {

http::response answer_json(int status, json_writer&& body) {
  http::response out;
  out.status = status;
  out.body = body.take();
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

http::response refuse(const call& of, const error& why, std::string_view request_id) {
  http::problem_context context;
  context.request_id = request_id;
  context.trace_id = of.request.trace_id;
  // A registration names its provider in a field: that it does not exist is a wrong field, not a wrong place.
  if (why.code == make_error_code(permanent::unknown_provider))
    return http::problem(422, "unknown_provider", why.detail, context);
  return http::problem(why, context);
}

http::response refuse(const call& of, int status, std::string_view code, std::string detail, std::string_view request_id) {
  http::problem_context context;
  context.request_id = request_id;
  context.trace_id = of.request.trace_id;
  return http::problem(status, code, std::move(detail), context);
}

http::response not_found(const call& of, std::string_view what, std::string_view request_id) {
  return refuse(of, error(permanent::not_found, "There is no such " + std::string(what) + "."), request_id);
}

void add_member(http::response& to, std::string_view name, std::string_view json) {
  to.body.pop_back();
  to.body += ',';
  append_json_string(to.body, name);
  to.body.append(1, ':').append(json).append(1, '}');
}

int limit_of(const call& of, int otherwise) {
  const auto given = of.query_of("limit");
  if (!given) return otherwise;
  int limit = otherwise;
  std::from_chars(given->data(), given->data() + given->size(), limit);
  return limit;
}

std::string make_cursor(char kind, std::string_view place) { return to_base64url(kind + std::string(place)); }

result<std::optional<std::string>> read_cursor(const call& of, char kind, std::size_t size) {
  const auto given = of.query_of("cursor");
  if (!given) return std::optional<std::string>();
  auto place = place_of(*given, kind, size);
  if (!place) return place.error();
  return std::optional(std::move(*place));
}

result<std::string> place_of(std::string_view cursor, char kind, std::size_t size) {
  auto bytes = from_base64url(cursor);
  if (!bytes || bytes->size() != size + 1 || bytes->front() != kind)
    return error(permanent::malformed_field, "cursor: is not the next_cursor of this list");
  return bytes->substr(1);
}

std::string number_place(std::int64_t number) {
  std::string out(8, '\0');
  for (std::size_t i = 8; i-- > 0;) {
    out[i] = static_cast<char>(number & 0xff);
    number >>= 8;
  }
  return out;
}

std::int64_t number_at(std::string_view place) {
  std::uint64_t number = 0;
  for (const char c : place) number = number << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(number);
}

result<std::optional<std::string>> header_of(const call& of, std::string_view name) {
  const auto times = http::count_header(of.request.headers, name);
  if (times == 0) return std::optional<std::string>();
  if (times > 1) return error(permanent::malformed_field, std::string(name) + ": stands twice");
  return std::optional(std::string(*http::find_header(of.request.headers, name)));
}

boost::asio::awaitable<result<evidence::found_case>> find_case(inside& in, call& of) { return find_case(in, of, of.path[0]); }

boost::asio::awaitable<result<evidence::found_case>> find_case(inside& in, call& of, std::string request_id) {
  const auto missing = [] { return error(permanent::not_found, "There is no such operation."); };
  // What can be no request ID names nothing, and never reaches the database.
  if (!check_request_id(request_id)) co_return missing();
  auto found = co_await evidence::read_case_view(in.with.pool, in.workflows, of.settings, std::move(request_id), of.until);
  if (!found) co_return found.error();
  if (!*found || !of.may_see((*found)->operation.client)) co_return missing();
  co_return std::move(**found);
}

http::response answer_operation(const call& of, int status, const storage::operation_view& o, const transition::workflow& table) {
  const evidence::judged_by by{table, *of.settings};
  json_writer out;
  evidence::write_operation(out, o, by, of.audience());
  auto answer = answer_json(status, std::move(out));
  // Not in lists and notifications, nor for readers: whoever has the URL may speak as the provider does of this operation.
  const auto role = of.who.role;
  if (role == config::role::client || role == config::role::operator_ || role == config::role::admin) {
    const auto url = receive::callback_url(*of.settings, o.provider, o.request_id, o.accepted_at, now());
    if (!url.empty()) add_member(answer, "callback_url", json_string(url));
  }
  answer.headers.emplace_back("ETag", '"' + std::to_string(o.revision) + '"');
  return answer;
}

std::vector<member> paged(std::vector<member> filters, std::int64_t most) {
  filters.push_back(optional("limit", about(integer(1, most), "How many at most; 50 unless said.")));
  filters.push_back(optional("cursor", about(text(255), "next_cursor of the page before.")));
  return filters;
}

schema page_of(std::string name) {
  return object({required("data", list(component(std::move(name)))),
                 or_null("next_cursor", about(string(),
                                              "Where the next page begins; null: this was the last. A page may be shorter than "
                                              "the limit and not be the last."))});
}

}  // namespace recibo::api
