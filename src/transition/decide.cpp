#include "recibo/transition/decide.hpp"

#include <algorithm>

namespace recibo::transition {
namespace {

// Sequences further apart than both of these are not of one count.
constexpr std::uint64_t counts_apart_max = 1'000'000;
constexpr std::int64_t counts_factor_max = 1'000;
// Beyond any clock in nanoseconds until the year 2116.
constexpr std::int64_t sequence_believed_max = std::int64_t{1} << 62;
constexpr std::chrono::hours clock_ahead_max{24}, clock_behind_max{366 * 24};

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
    case review_kind::unknown_item: return "unknown_item";
  }
  return "";
}

review_kind against_intent(const subject& now, const news& said) noexcept {
  if (now.amount && said.amount && !same_value(*now.amount, *said.amount)) return review_kind::amount_mismatch;
  if (now.currency && said.currency && *now.currency != *said.currency) return review_kind::currency_mismatch;
  if (now.account && said.account && *now.account != *said.account) return review_kind::account_mismatch;
  return review_kind::none;
}

bool of_one_count(std::int64_t a, std::int64_t b) noexcept {
  const auto low = std::min(a, b), high = std::max(a, b);
  if (static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) <= counts_apart_max) return true;
  return low > 0 && high / counts_factor_max <= low;
}

std::optional<std::int64_t> watermark_after(const std::optional<std::int64_t>& before, const std::optional<std::int64_t>& said) {
  if (!said) return before;
  if (!before) return *said < sequence_believed_max ? said : before;
  if (!of_one_count(*before, *said)) return std::min(*before, *said);
  return std::max(*before, *said);
}

std::optional<sys_micros> believable(const std::optional<sys_micros>& occurred_at, sys_micros received_at) {
  if (!occurred_at || *occurred_at > received_at + clock_ahead_max || *occurred_at < received_at - clock_behind_max)
    return std::nullopt;
  return occurred_at;
}

decision decide(const workflow& table, const subject& now, const std::optional<claim>& earlier, const news& said,
                order_rule order) {
  if (earlier) {
    if (earlier->content_digest == said.content_digest) return settle(disposition::duplicate);
    return decision{.outcome = disposition::conflict, .why_review = review_kind::conflict};
  }

  const move* row = table.find_move(now.state, said.event);
  const bool allowed = row && row->permits(actor_kind::provider);

  bool doubted = false;
  if (order == order_rule::sequence && said.sequence) {
    doubted =
        now.watermark_sequence ? !of_one_count(*said.sequence, *now.watermark_sequence) : *said.sequence >= sequence_believed_max;
    if (!doubted && now.watermark_sequence && *said.sequence < *now.watermark_sequence)
      return decision{.outcome = disposition::stale, .table_would_allow = allowed};
  }
  auto out = decision{.outcome = disposition::applied, .taken = row};
  if (!allowed) {
    out = without_a_move(table, now, said, row != nullptr);
  } else if (const review_kind doubt = against_intent(now, said); doubt != review_kind::none) {
    out = ask_a_person(doubt);
  }
  out.sequence_doubted = doubted;
  return out;
}

const move* decide_by_items(const workflow& table, std::string_view state, const item_counts& items) {
  const auto* present = table.find_state(state);
  if (present == nullptr || present->terminal) return nullptr;
  std::int64_t total = 0;
  for (const auto& [name, count] : items) total += count;
  if (total == 0) return nullptr;
  for (const items_rule& rule : table.items()) {
    std::int64_t met = 0;
    for (const std::string& name : rule.states) {
      const auto found = items.find(name);
      if (found != items.end()) met += found->second;
    }
    const bool holds = rule.which == items_rule::quantifier::all ? met == total : met > 0;
    if (!holds) continue;
    const move* row = table.find_move(state, rule.event);
    if (row != nullptr && row->to != state) return row;
  }
  return nullptr;
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
