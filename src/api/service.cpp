#include "handlers.hpp"

#include "recibo/core/utf8.hpp"
#include "recibo/http/router.hpp"

#include <algorithm>
#include <utility>

namespace recibo::api {
namespace {

// A request is answered within this time or with 503; reads and the recorder's own limits are shorter.
constexpr std::chrono::seconds answer_within{10};

constexpr std::string_view metadata_prefix = "metadata.";

bool under(std::string_view path, std::string_view prefix) { return path.substr(0, prefix.size()) == prefix; }

// application/json, or none named. Parameters say nothing but the charset, and that is UTF-8.
bool is_json_type(const http::header_list& headers) {
  const auto given = http::find_header(headers, "Content-Type");
  if (!given || given->empty()) return true;
  std::string type(given->substr(0, given->find(';')));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return type == "application/json";
}

// The endpoints that this listener serves, and the router over them.
struct route_table {
  http::router by_path;
  std::vector<const endpoint*> served;
};

const route_table& routes() {
  static const auto made = [] {
    route_table t;
    for (const auto& e : endpoints().endpoints) {
      if (e.run == nullptr) continue;
      t.by_path.add(e.method, e.path);
      t.served.push_back(&e);
    }
    return t;
  }();
  return made;
}

}  // namespace

struct api_service::impl {
  explicit impl(dependencies d) : in(std::move(d)) {}

  // The endpoint and the caller, or the refusal that the head alone deserves.
  struct found {
    const endpoint* at = nullptr;
    std::vector<std::string> path;
    http::principal who;
  };
  std::optional<http::response> look(const http::request& head, const config::settings& settings, found& out) const;
  result<void> take_query(call& of) const;
  result<void> take_body(call& of) const;

  inside in;
};

std::optional<http::response> api_service::impl::look(const http::request& head, const config::settings& settings,
                                                      found& out) const {
  http::problem_context context;
  context.trace_id = head.trace_id;
  auto routed = routes().by_path.match(head.method, head.path);
  if (routed.route) out.at = routes().served[*routed.route];
  // Without a token nobody learns which paths there are below /v1.
  const bool open = out.at != nullptr ? out.at->who.open : !under(head.path, "/v1/");
  if (!open) {
    auto who = http::authenticate(head.headers, settings.tokens, now());
    if (!who) return http::problem(who.error(), context);
    out.who = std::move(*who);
  }
  if (out.at == nullptr) {
    if (routed.allow.empty()) return http::problem(404, "not_found", "There is no such path.", context);
    auto refused = http::problem(405, "method_not_allowed", "This path has other methods.", context);
    refused.headers.emplace_back("Allow", routed.allow);
    return refused;
  }
  if (!open) {
    const bool as_client = out.at->who.client && out.who.role == config::role::client;
    if (auto allowed = http::require_role(out.who, out.at->who.least); !allowed && !as_client)
      return http::problem(allowed.error(), context);
    if (out.at->who.payload) {
      if (auto allowed = http::require_payload(out.who); !allowed) return http::problem(allowed.error(), context);
    }
  }
  if (http::find_header(head.headers, "Content-Encoding").value_or("identity") != "identity") {
    return http::problem(415, "unsupported_media_type", "A body is sent as it is, without a content coding.", context);
  }
  if (out.at->body && !is_json_type(head.headers)) {
    return http::problem(415, "unsupported_media_type", "The body is application/json.", context);
  }
  out.path = std::move(routed.parameters);
  return std::nullopt;
}

result<void> api_service::impl::take_query(call& of) const {
  auto pairs = http::parse_form(of.request.query);
  if (!pairs) return error(permanent::malformed_field, "query: a percent escape is malformed");
  for (auto& [name, value] : *pairs) {
    if (!is_utf8(name) || !is_utf8(value)) return error(permanent::malformed_field, "query: is not valid UTF-8");
    if (of.at.metadata_filter && under(name, metadata_prefix)) {
      const auto key = name.substr(metadata_prefix.size());
      if (auto checked = validate_text(text(255), value, metadata_prefix); !checked) return checked;
      if (auto checked = validate_text(text(255), key, metadata_prefix); !checked) return checked;
      of.metadata.emplace_back(key, std::move(value));
      continue;
    }
    const auto known =
        std::find_if(of.at.query.begin(), of.at.query.end(), [&, &key = name](const member& m) { return m.name == key; });
    if (known == of.at.query.end()) return error(permanent::unknown_field, name.substr(0, 100) + ": no such parameter");
    if (of.query.contains(name)) return error(permanent::malformed_field, name + ": stands twice");
    if (auto checked = validate_text(known->value, value, name); !checked) return checked;
    of.query.emplace(std::move(name), std::move(value));
  }
  for (const auto& m : of.at.query) {
    if (m.required && !of.query.contains(m.name)) return error(permanent::missing_field, m.name + ": is required");
  }
  return {};
}

result<void> api_service::impl::take_body(call& of) const {
  if (!of.at.body) return {};
  auto body = parse_json(of.request.body);
  if (!body) return body.error();
  if (auto checked = validate(*of.at.body, *body); !checked) return checked;
  of.body = std::move(*body);
  return {};
}

api_service::api_service(dependencies with) : impl_(std::make_unique<impl>(std::move(with))) {}
api_service::~api_service() = default;

std::optional<http::response> api_service::refuse_early(const http::request& head) {
  impl::found found;
  const auto settings = impl_->in.with.settings.get();
  return impl_->look(head, *settings, found);
}

boost::asio::awaitable<http::response> api_service::handle(http::request& whole) {
  impl::found found;
  auto settings = impl_->in.with.settings.get();
  if (auto refused = impl_->look(whole, *settings, found)) co_return std::move(*refused);
  call of{.request = whole,
          .at = *found.at,
          .settings = std::move(settings),
          .who = std::move(found.who),
          .path = std::move(found.path),
          .query = {},
          .metadata = {},
          .body = {},
          .until = whole.arrived + answer_within};
  if (auto taken = impl_->take_query(of); !taken) co_return refuse(of, taken.error());
  if (auto taken = impl_->take_body(of); !taken) co_return refuse(of, taken.error());
  co_return co_await of.at.run(impl_->in, of);
}

}  // namespace recibo::api
