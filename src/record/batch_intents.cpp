// What a batch makes of what was registered, after it was registered: a client fills in what a callback began (R11), and edits
// where the table allows it (R5). The registration stays as it was made; a correction stands beside it, whole.
#include "batch.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/evidence/facts.hpp"

namespace recibo::record {

void batch::decide_adoption(const registration& r, operation_in_hand& o, verdict& v) {
  const auto turn_down = [&](error why) {
    v.is = verdict::kind::refused;
    v.why = std::move(why);
  };
  const auto names = names_of(r);
  if (o.blocked || !o.intent || !found_.may_meet(names) || !found_.may_apply(r.provider, r.request_id, names)) {
    v.is = verdict::kind::busy;
    return;
  }
  if (table_of(o, *r.settings).name() != r.workflow->name())
    return turn_down(error(permanent::intent_conflict, "a callback registered this request_id under another workflow"));
  if (taken_reference(r.references, o))
    return turn_down(error(permanent::alias_taken, "this reference belongs to another operation of the provider"));

  // What the callbacks said stood for what was asked so far; now there is something to hold it against.
  transition::subject asked;
  asked.amount = r.amount;
  asked.currency = r.currency;
  asked.account = r.account;
  transition::news said;
  if (o.row.amount) said.amount = decimal{*o.row.amount};
  said.currency = o.row.currency;
  said.account = o.row.account;
  const auto doubt = transition::against_intent(asked, said);

  auto now = *o.intent;
  now.client = r.client;
  now.action = r.action;
  if (!r.references.empty()) now.reference = r.references.front();
  now.amount = r.amount ? std::optional(r.amount->text) : std::nullopt;
  now.currency = r.currency;
  now.account = r.account;
  now.deadline = r.deadline;
  now.metadata = r.metadata;
  now.intent = r.intent;
  correct(o, std::move(now), evidence::registered_intent, r.client);
  if (doubt != transition::review_kind::none) open_review_of_intent(r, o, doubt);
  learn(r.references, o);
  table_of(o, *r.settings);
  // Callbacks may have brought some of them.
  for (const auto& item : r.items)
    if (!found_.find_item(o, item.item_id)) add_item(o, item.item_id);
  if (r.idempotency_key) {
    writes_.new_client_keys.add(r.client, *r.idempotency_key, o.row.id, r.intent, at_);
    found_.add_client_key({r.client, *r.idempotency_key, o.row.request_id, o.row.id, r.intent});
  }
  apply_parked(o, r.settings, names);
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(o);
}

void batch::open_review_of_intent(const registration& r, operation_in_hand& o, transition::review_kind why) {
  const std::string kind(to_string(why));
  storage::review_row row;
  row.id = make_id<review_id>(at_);
  row.operation = o.row.id;
  row.kind = kind;
  row.digest = r.intent;
  row.delivery = *o.row.made_by;
  row.detail = "the callback that came before the registration said otherwise";
  row.state = o.row.state;
  const auto* state = table_of(o, *r.settings).find_state(o.row.state);
  row.owner = state && !state->owner.empty() ? state->owner : r.settings->reviews.owner;
  row.at = at_;
  row.due_at = at_ + r.settings->reviews.due;
  writes_.new_reviews.add(row);
  o.row.review_open = true;
  ++o.reviews_open;
  notify(*r.settings, o, "operation.review_opened");
}

result<storage::intent_row> batch::edited(const operation_in_hand& o, const intent_changes& by) const {
  auto out = *o.intent;
  if (by.action) out.action = *by.action;
  if (by.amount) out.amount = *by.amount ? std::optional((*by.amount)->text) : std::nullopt;
  if (by.currency) out.currency = *by.currency;
  if (by.account) out.account = *by.account;
  if (by.deadline) out.deadline = *by.deadline;
  if (by.metadata) out.metadata = *by.metadata;
  if (out.amount.has_value() != out.currency.has_value())
    return error(permanent::missing_field, "/changes: an amount needs its currency, and a currency its amount");
  return out;
}

void batch::correct(operation_in_hand& o, storage::intent_row now, std::string_view kind, const std::string& actor) {
  evidence::corrected fact;
  fact.sequence = o.row.sequence + 1;
  fact.at = at_;
  fact.actor = actor;
  fact.kind = kind;
  fact.client = now.client;
  fact.action = now.action;
  // Facts borrow: value_or() would give a text that is gone at once.
  const auto or_none = [](const std::optional<std::string>& text) { return text ? std::string_view(*text) : std::string_view(); };
  fact.reference = or_none(now.reference);
  fact.amount = or_none(now.amount);
  fact.currency = or_none(now.currency);
  fact.account = or_none(now.account);
  fact.deadline = now.deadline;
  // jsonb puts blanks in what it gives back.
  const auto metadata = canonical_json(now.metadata);
  fact.metadata = metadata ? std::string_view(*metadata) : std::string_view(now.metadata);
  fact.intent = now.intent;
  append_audit(o, evidence::correction_fact(fact), std::nullopt);

  writes_.new_corrections.add(now, o.row.sequence, kind, at_, actor);
  o.row.corrected = o.row.sequence;
  if (!o.intent || o.intent->deadline != now.deadline) o.deadline.emplace(now.deadline);
  o.row.client = now.client;
  o.row.amount = now.amount;
  o.row.currency = now.currency;
  o.row.account = now.account;
  o.row.intent = now.intent;
  o.intent = std::move(now);
}

}  // namespace recibo::record
