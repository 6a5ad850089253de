#include "recibo/transition/decide.hpp"

#include <algorithm>

namespace recibo::transition {
namespace {

decision settle(disposition outcome) { return decision{.outcome = outcome}; }

decision ask_a_person(review_kind why) { return decision{.outcome = disposition::review, .why_review = why}; }

// For news that the table does not allow in the present state. `of_others` says that it has a move here all the same, one
// that a provider may not make: such news lies ahead and has not been passed.
decision without_a_move(const workflow& table, const subject& now, const news& said, bool of_others) {
  const std::size_t present = table.index_of(now.state);
  const auto targets = table.target_indices(said.event);
  if (present == workflow::none || targets.empty()) return ask_a_person(review_kind::contradiction);

  if (std::find(targets.begin(), targets.end(), present) != targets.end()) {
    const review_kind doubt = against_intent(now, said);
    return doubt == review_kind::none ? settle(disposition::redundant) : ask_a_person(doubt);
  }
  // Two ends of one story: no clock of a sender's decides between them (R10).
  const auto terminal = [&](std::size_t i) { return table.states()[i].terminal; };
  if (terminal(present) && std::all_of(targets.begin(), targets.end(), terminal)) return ask_a_person(review_kind::contradiction);

  const auto passed = [&](std::size_t target) { return table.reaches_index(target, present); };
  if (!of_others && std::any_of(targets.begin(), targets.end(), passed)) return settle(disposition::stale);
  if (said.occurred_at && now.watermark_at && *said.occurred_at < *now.watermark_at) return settle(disposition::stale);
  return ask_a_person(review_kind::contradiction);
}

error illegal(std::string detail) { return error(permanent::illegal_transition, std::move(detail)); }

}  // namespace

std::string_view to_string(review_kind k) noexcept {
  switch (k) {
    case review_kind::none: return "none";
    case review_kind::contradiction: return "contradiction";
    case review_kind::conflict: return "conflict";
    case review_kind::amount_mismatch: return "amount_mismatch";
    case review_kind::currency_mismatch: return "currency_mismatch";
    case review_kind::account_mismatch: return "account_mismatch";
  }
  return "";
}

review_kind against_intent(const subject& now, const news& said) noexcept {
  if (now.amount && said.amount && !same_value(*now.amount, *said.amount)) return review_kind::amount_mismatch;
  if (now.currency && said.currency && *now.currency != *said.currency) return review_kind::currency_mismatch;
  if (now.account && said.account && *now.account != *said.account) return review_kind::account_mismatch;
  return review_kind::none;
}

decision decide(const workflow& table, const subject& now, const std::optional<claim>& earlier, const news& said,
                order_rule order) {
  if (earlier) {
    if (earlier->content_digest == said.content_digest) return settle(disposition::duplicate);
    return decision{.outcome = disposition::conflict, .why_review = review_kind::conflict};
  }

  const move* row = table.find_move(now.state, said.event);
  const bool allowed = row && row->permits(actor_kind::provider);

  if (order == order_rule::sequence && said.sequence && now.watermark_sequence && *said.sequence <= *now.watermark_sequence) {
    return decision{.outcome = disposition::stale, .table_would_allow = allowed};
  }
  if (!allowed) return without_a_move(table, now, said, row != nullptr);
  if (const review_kind doubt = against_intent(now, said); doubt != review_kind::none) return ask_a_person(doubt);
  return decision{.outcome = disposition::applied, .taken = row};
}

result<const move*> decide_event(const workflow& table, std::string_view state, std::string_view event, actor_kind who,
                                 bool has_evidence) {
  // The event comes from outside; the detail names it only when it is a word of the table.
  if (!table.knows_event(event)) return illegal("the workflow " + table.name() + " has no such event");
  const move* row = table.find_move(state, event);
  if (!row) return illegal(std::string(event) + " is not possible in state " + std::string(state));
  if (!row->permits(who)) {
    return illegal(std::string(event) + " in state " + std::string(state) + " cannot be raised by " +
                   std::string(to_string(who)));
  }
  const bool person = who == actor_kind::client || who == actor_kind::operator_;
  if (person && !row->evidence.empty() && !has_evidence) {
    return illegal(std::string(event) + " in state " + std::string(state) + " needs evidence: " + row->evidence);
  }
  return row;
}

}  // namespace recibo::transition
