// GET of one operation, its items and its status.
#include "handlers.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

awaitable<http::response> read_operation(inside& in, call& of) {
  auto found = co_await find_case(in, of);
  if (!found) co_return refuse(of, found.error(), of.path[0]);
  co_return answer_operation(of, 200, found->operation, *found->table);
}

awaitable<http::response> read_status(inside& in, call& of) {
  auto found = co_await find_case(in, of);
  if (!found) co_return refuse(of, found.error(), of.path[0]);
  json_writer out;
  evidence::write_status(out, found->operation, *found->table);
  co_return answer_json(200, std::move(out));
}

awaitable<http::response> list_items(inside& in, call& of) {
  auto cursor = read_cursor(of, 'i', 8);
  if (!cursor) co_return refuse(of, cursor.error(), of.path[0]);
  auto found = co_await find_case(in, of);
  if (!found) co_return refuse(of, found.error(), of.path[0]);
  const auto limit = limit_of(of);
  storage::item_query what;
  what.operation = found->operation.id;
  what.state = of.query_of("state");
  what.item_id = of.query_of("item_id");
  if (const auto v = of.query_of("attention")) what.attention = *v == "true";
  if (*cursor) what.after = number_at(**cursor);
  what.limit = limit + 1;
  auto items = co_await storage::list_items(in.with.pool, std::move(what), of.until);
  if (!items) co_return refuse(of, items.error(), of.path[0]);
  const bool more = items->size() > static_cast<std::size_t>(limit);
  if (more) items->pop_back();
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& i : *items) evidence::write_item(out, i, *found->table, of.audience());
  out.end_array();
  out.text_or_null("next_cursor", more ? make_cursor('i', number_place(items->back().ordinal)) : std::string());
  out.end_object();
  co_return answer_json(200, std::move(out));
}

schema retry_schema() {
  return object({required("safe", boolean()), required("why", about(string(), "In words that a customer may hear."))});
}

schema attention_schema() {
  auto out = object({required("why", about(string(), "A disposition (unmapped, unprocessable) or the kind of a review.")),
                     required("detail", string()), or_null("delivery_id", text(text_rule::uuid)), required("since", instant())});
  return about(std::move(out), "Somebody has to look at it; null: nobody has to.");
}

// The members of an operation; `items` are in single ones only.
schema operation_schema(bool with_items) {
  std::vector<member> members{
      required("request_id", text(text_rule::request_id)),
      required("provider", string()),
      required("workflow", string()),
      required("action", string()),
      required("state", string()),
      required("label", about(string(), "The state in customer-safe words.")),
      required("terminal", boolean()),
      required("done", about(boolean(), "Customer-facing completion.")),
      required("version", about(integer(), "Number of applied transitions.")),
      required("accepted_at", instant()),
      required("updated_at", instant()),
      or_null("deadline", instant()),
      required("overdue", about(boolean(), "Not terminal, and the deadline or the limit of the state has passed.")),
      or_null("reference", about(string(), "The first reference by which the provider knows it.")),
      required("references", list(string())),
      or_null("amount", about(text(text_rule::decimal), "As it was registered, digit for digit.")),
      or_null("currency", text(text_rule::currency)),
      or_null("account", about(string(), "Whose money it is, as it was registered.")),
      or_null("result", about(map(), "What the provider said, by the allow-list; of the latest transition that has one.")),
      required("last_stage", about(one_of({"accepted", "received", "transitioned", "notified", "reconciled"}),
                                   "The last stage that is complete.")),
      required("items_summary",
               object({required("total", integer()), required("by_state", about(map(), "Count of items by state.")),
                       required("needs_attention", about(integer(), "How many items somebody has to look at."))})),
  };
  if (with_items)
    members.push_back(
        optional("callback_url", about(string(),
                                       "The URL of this operation's own, to be given to the provider; where the provider is "
                                       "configured with callback_url, until it expires. For clients and operators alone: whoever "
                                       "has it may speak of this operation.")));
  if (with_items)
    members.push_back(required("items", about(list(component("Item"), storage::items_shown_max),
                                              "The first 1000; all of them are behind _links.items.")));
  for (auto& m : std::vector<member>{
           or_null("reconciled", object({required("run", string()), required("at", instant()), required("version", integer()),
                                         required("result", string())})),
           required("review_open", boolean()),
           required("allowed_events", about(list(string()), "What may be raised now.")),
           required("retry_safe", retry_schema()),
           required("metadata", map()),
           required("_links", object({required("self", string()), required("status", string()), required("timeline", string()),
                                      required("items", string()), required("events", string())})),
       }) {
    members.push_back(std::move(m));
  }
  return object(std::move(members));
}

}  // namespace

endpoint reading_operations(std::string path, std::string id, std::string summary, handler run) {
  endpoint e;
  e.method = "GET";
  e.path = std::move(path);
  e.id = std::move(id);
  e.tag = "operations";
  e.summary = std::move(summary);
  e.who.client = true;
  e.run = run;
  return e;
}

void add_operation_reads(endpoint_table& to) {
  to.schemas.emplace_back("Operation", operation_schema(true));
  to.schemas.emplace_back("OperationSummary", operation_schema(false));
  to.schemas.emplace_back("Item", object({required("item_id", string()), required("state", string()), required("label", string()),
                                          required("terminal", boolean()), required("done", boolean()),
                                          required("version", integer()), required("updated_at", instant()),
                                          or_null("result", about(map(), "What the provider said last, by the allow-list.")),
                                          or_null("needs_attention", attention_schema()),
                                          required("allowed_events", about(list(string()), "What may be raised for it now."))}));
  to.schemas.emplace_back(
      "Status", object({required("request_id", text(text_rule::request_id)), required("label", string()),
                        required("terminal", boolean()), required("done", boolean()), required("accepted_at", instant()),
                        required("updated_at", instant()), required("retry_safe", retry_schema())}));

  auto one =
      reading_operations("/v1/operations/{request_id}", "readOperation", "One operation as it stands now.", read_operation);
  one.answers = {{200,
                  "The operation.",
                  component("Operation"),
                  "application/json",
                  {required("ETag", about(string(), "Its revision, for If-Match."))}}};
  to.endpoints.push_back(std::move(one));

  auto items = reading_operations("/v1/operations/{request_id}/items", "listItems",
                                  "The items of a batch, in the order of their registration.", list_items);
  items.query = paged({optional("state", text(63)), optional("item_id", text(text_rule::alias)),
                       optional("attention", about(boolean(), "Only those that somebody has to look at, or only the others."))});
  items.answers = {{200, "A page of items.", page_of("Item"), "application/json", {}}};
  to.endpoints.push_back(std::move(items));

  auto status = reading_operations("/v1/operations/{request_id}/status", "readStatus",
                                   "The case in words for a customer, and nothing else.", read_status);
  status.who.least = config::role::support;
  status.answers = {{200, "The status.", component("Status"), "application/json", {}}};
  to.endpoints.push_back(std::move(status));
}

}  // namespace recibo::api
