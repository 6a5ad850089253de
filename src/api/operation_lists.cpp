// GET /v1/operations and /v1/statuses: finding cases.
#include "handlers.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

// metadata.<key>=value as objects that the metadata must contain: with every value as text, and with those that are JSON
// numbers, booleans or null taken as such.
void take_metadata(const call& of, storage::operation_query& to) {
  if (of.metadata.empty()) return;
  json_writer texts, values;
  texts.begin_object();
  values.begin_object();
  for (const auto& [key, value] : of.metadata) {
    texts.text(key, value);
    const auto parsed = parse_json(value);
    const bool scalar = parsed && (parsed->is(json_value::kind::number) || parsed->is(json_value::kind::boolean) ||
                                   parsed->is(json_value::kind::null));
    const auto plain = scalar ? canonical_json(*parsed) : result<std::string>(std::string());
    if (scalar && plain) {
      values.raw(key, *plain);
    } else {
      values.text(key, value);
    }
  }
  texts.end_object();
  values.end_object();
  to.metadata_as_text = texts.take();
  to.metadata_as_value = values.take();
}

result<storage::operation_query> read_query(const call& of) {
  storage::operation_query what;
  what.state = of.query_of("state");
  what.provider = of.query_of("provider");
  what.workflow = of.query_of("workflow");
  what.reference = of.query_of("reference");
  if (const auto v = of.query_of("review")) what.review = *v == "true";
  if (const auto v = of.query_of("overdue")) what.overdue = *v == "true";
  if (const auto v = of.query_of("accepted_after")) what.accepted_after = *parse_rfc3339(*v);
  if (const auto v = of.query_of("accepted_before")) what.accepted_before = *parse_rfc3339(*v);
  take_metadata(of, what);
  if (of.who.role == config::role::client) what.client = of.who.name;
  what.newest_first = of.query_of("sort").value_or("-accepted_at") == "-accepted_at";
  what.limit = limit_of(of);
  auto cursor = read_cursor(of, what.newest_first ? 'n' : 'o', 16);
  if (!cursor) return cursor.error();
  if (*cursor) what.after = id_at<operation_id>(**cursor);
  if (what.reference) {
    if (what.provider) {
      what.providers.push_back(*what.provider);
    } else {
      for (const auto& [name, provider] : of.settings->providers) what.providers.push_back(name);
    }
  }
  return what;
}

// A page of operations with the tables they are judged by, or the refusal.
struct found_page {
  storage::operation_page page;
  std::vector<evidence::workflow_ptr> tables;  // one for each operation
  bool newest_first = true;

  std::string next() const { return page.next ? make_cursor(newest_first ? 'n' : 'o', page.next->binary()) : std::string(); }
};

awaitable<result<found_page>> find_page(inside& in, call& of) {
  auto what = read_query(of);
  if (!what) co_return what.error();
  found_page out;
  out.newest_first = what->newest_first;
  auto page = co_await storage::list_operations(in.with.pool, std::move(*what), of.until);
  if (!page) co_return page.error();
  out.page = std::move(*page);
  for (const auto& o : out.page.operations) {
    auto table = co_await in.workflows.get(in.with.pool, of.settings, o.workflow, of.until);
    if (!table) co_return table.error();
    out.tables.push_back(std::move(*table));
  }
  co_return out;
}

awaitable<http::response> list_operations(inside& in, call& of) {
  auto found = co_await find_page(in, of);
  if (!found) co_return refuse(of, found.error());
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (std::size_t i = 0; i < found->tables.size(); ++i) {
    const evidence::judged_by by{*found->tables[i], *of.settings};
    evidence::write_operation(out, found->page.operations[i], by, of.audience(), false);
  }
  out.end_array().text_or_null("next_cursor", found->next()).end_object();
  co_return answer_json(200, std::move(out));
}

awaitable<http::response> list_statuses(inside& in, call& of) {
  auto found = co_await find_page(in, of);
  if (!found) co_return refuse(of, found.error());
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (std::size_t i = 0; i < found->tables.size(); ++i)
    evidence::write_status(out, found->page.operations[i], *found->tables[i]);
  out.end_array().text_or_null("next_cursor", found->next()).end_object();
  co_return answer_json(200, std::move(out));
}

std::vector<member> list_filters() {
  return paged({
      optional("state", text(63)),
      optional("provider", text(63)),
      optional("workflow", text(63)),
      optional("reference", about(text(255), "One of the provider's references.")),
      optional("overdue", boolean()),
      optional("review", about(boolean(), "Whether a review is open.")),
      optional("accepted_after", about(instant(), "Inclusive.")),
      optional("accepted_before", about(instant(), "Exclusive.")),
      optional("sort", about(one_of({"-accepted_at", "accepted_at"}), "Newest first unless said.")),
  });
}

}  // namespace

void add_operation_lists(endpoint_table& to) {
  auto all =
      reading_operations("/v1/operations", "listOperations", "Operations, newest first. A client sees its own.", list_operations);
  all.query = list_filters();
  all.metadata_filter = true;
  all.answers = {{200, "A page of operations, without their items.", page_of("OperationSummary"), "application/json", {}}};
  to.endpoints.push_back(std::move(all));

  auto statuses = reading_operations("/v1/statuses", "listStatuses",
                                     "Finds cases by what a customer knows, in words for a customer.", list_statuses);
  statuses.who.least = config::role::support;
  statuses.query = list_filters();
  statuses.metadata_filter = true;
  statuses.answers = {{200, "A page of statuses.", page_of("Status"), "application/json", {}}};
  to.endpoints.push_back(std::move(statuses));
}

}  // namespace recibo::api
