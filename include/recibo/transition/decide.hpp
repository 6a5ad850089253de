// Decides what a callback or an event does to an operation (R9, R10, R15, R36). Pure and exhaustive:
// no I/O, no clock; SQL stores what was decided here and guards it (write path, rule 10).
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/error.hpp"
#include "recibo/core/money.hpp"
#include "recibo/transition/disposition.hpp"
#include "recibo/transition/workflow.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::transition {

// Whether the table alone decides, or the provider's own sequence may overrule it (R10, `order`).
enum class order_rule {
  table,     // the default
  sequence,  // the provider promises a sequence per operation or item
};

// What an operation (or one of its items) is, as the lock returned it.
struct subject {
  std::string_view state{};
  // Set by provider events alone; nullopt before the first.
  std::optional<sys_micros> watermark_at{};
  std::optional<std::int64_t> watermark_sequence{};
  // What was registered; nullopt where the client said nothing, and then nothing is compared.
  std::optional<decimal> amount{};
  std::optional<std::string> currency{};
  std::optional<std::string> account{};
};

// What the key's earlier claim left, if it was claimed.
struct claim {
  sha256_digest content_digest{};
};

// What a callback says, after extraction and event mapping.
struct news {
  // The workflow's event, not the provider's word.
  std::string_view event{};
  std::optional<sys_micros> occurred_at{};
  std::optional<std::int64_t> sequence{};
  std::optional<decimal> amount{};
  std::optional<std::string> currency{};
  std::optional<std::string> account{};
  sha256_digest content_digest{};
};

// Why a person has to look; also the `kind` of the review item.
enum class review_kind {
  none,               // nobody has to
  contradiction,      // the news cannot be true together with the state
  conflict,           // same key, other content
  amount_mismatch,    // another amount than registered
  currency_mismatch,  // another currency than registered
  account_mismatch,   // another account than registered
};

std::string_view to_string(review_kind k) noexcept;

struct decision {
  disposition outcome = disposition::stale;
  // For `applied`: the row of the table that was taken, borrowed from the workflow.
  const move* taken = nullptr;
  review_kind why_review = review_kind::none;
  // `stale` although the table would have allowed the move: possible under order_rule::sequence only, counted.
  bool table_would_allow = false;
};

// Order of the checks: the key's claim (duplicate, conflict); the sequence, where the provider promises one (stale); the
// table, then the intent (applied, review). What the table does not allow is, in this order:
//   redundant  a target of the event is the present state; with another amount or currency than registered, review:
//              that is no repetition
//   review     present state and all targets are terminal: two ends of one story, and no clock decides between them
//   stale      passed: a target leads to the present state (and the event has no move of somebody else from here,
//              which would make it news that lies ahead); or older than the watermark
//   review     everything else, also an event or a state that this version of the table does not know
// Does not allocate.
decision decide(const workflow& table, const subject& now, const std::optional<claim>& earlier, const news& said,
                order_rule order);

// Whether what is said fits what was registered, where both said something (R36): amounts as numbers, accounts byte for byte.
review_kind against_intent(const subject& now, const news& said) noexcept;

// An event raised through the API or by the clock: the move, or why not.
// Evidence is asked of people (client, operator); the clock has none to give, and a callback is its own.
// permanent::illegal_transition   no such move in this state, or not by `who`, or its evidence is missing; the
//                                 detail says which, in words of the table alone
result<const move*> decide_event(const workflow& table, std::string_view state, std::string_view event, actor_kind who,
                                 bool has_evidence);

}  // namespace recibo::transition
