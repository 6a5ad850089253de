#include "recibo/accept/accept.hpp"

#include "recibo/evidence/facts.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace recibo::accept {
namespace {

result<void> take_money(request& what, record::registration& out) {
  if (what.amount.has_value() != what.currency.has_value()) {
    return error(permanent::missing_field,
                 what.amount ? "/currency: an amount needs its currency" : "/amount: a currency needs its amount");
  }
  if (!what.amount) return {};
  auto amount = parse_decimal(*what.amount);
  if (!amount) return error(permanent::malformed_field, "/amount: " + amount.error().detail);
  auto currency = parse_currency(*what.currency);
  if (!currency) return error(permanent::malformed_field, "/currency: " + currency.error().detail);
  out.amount = std::move(*amount);
  out.currency = std::move(*currency);
  return {};
}

result<void> take_items(std::vector<std::string> items, record::registration& out) {
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!seen.insert(items[i]).second) {
      return error(permanent::malformed_field, "/items/" + std::to_string(i) + "/item_id: stands twice in this operation");
    }
  }
  out.items.reserve(items.size());
  for (auto& id : items) out.items.push_back({std::move(id)});
  return {};
}

}  // namespace

result<record::registration> make_registration(std::shared_ptr<const config::settings> settings, request what, sys_micros at) {
  const auto provider = settings->providers.find(what.provider);
  if (provider == settings->providers.end()) {
    return error(permanent::unknown_provider, "/provider: no provider of this name is configured");
  }
  const auto table = settings->workflows.find(what.workflow.value_or(provider->second.workflow));
  if (table == settings->workflows.end())
    return error(permanent::unknown_workflow, "/workflow: no workflow of this name is configured");

  record::registration out;
  if (auto money = take_money(what, out); !money) return money.error();
  std::vector<std::string> references;
  for (auto& r : what.references) {
    if (std::find(references.begin(), references.end(), r) == references.end()) references.push_back(std::move(r));
  }

  evidence::intent intent;
  intent.provider = what.provider;
  intent.workflow = table->first;
  intent.action = what.action;
  intent.references = references;
  if (out.amount) intent.amount = out.amount->text;
  if (out.currency) intent.currency = *out.currency;
  if (what.account) intent.account = *what.account;
  intent.deadline = what.deadline;
  intent.items = what.items;
  intent.metadata = what.metadata;
  out.intent = evidence::intent_digest(std::move(intent));

  if (auto items = take_items(std::move(what.items), out); !items) return items.error();
  out.id = make_id<operation_id>(at);
  out.accepted_at = at;
  out.request_id_given = what.request_id.has_value();
  // Not the row's own ID: what is inside stays inside, and an outside identity may outlive it (R6).
  out.request_id = what.request_id ? std::move(*what.request_id) : uuid_text(uuid_v7_bytes(at));
  out.client = std::move(what.client);
  out.provider = std::move(what.provider);
  out.workflow = table->second;
  out.action = std::move(what.action);
  out.references = std::move(references);
  out.account = std::move(what.account);
  out.deadline = what.deadline;
  out.metadata = std::move(what.metadata);
  out.idempotency_key = std::move(what.idempotency_key);
  out.trace_id = std::move(what.trace_id);
  out.settings = std::move(settings);
  return out;
}

}  // namespace recibo::accept
