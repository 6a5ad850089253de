// Decides what a callback or an event does to an operation (R9, R10, R15, R36). Pure and exhaustive:
// no I/O, no clock; SQL stores what was decided here and guards it (write path, rule 10).
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/error.hpp"
#include "recibo/core/money.hpp"
#include "recibo/transition/disposition.hpp"
#include "recibo/transition/workflow.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  unknown_item,       // an item that was not registered
};

std::string_view to_string(review_kind k) noexcept;

struct decision {
  disposition outcome = disposition::stale;
  // For `applied`: the row of the table that was taken, borrowed from the workflow.
  const move* taken = nullptr;
  review_kind why_review = review_kind::none;
  // `stale` although the table would have allowed the move: possible under order_rule::sequence only, counted.
  bool table_would_allow = false;
  // The sequence cannot be of one count with the watermark, so the table alone has decided: counted, too.
  bool sequence_doubted = false;
};

// Order of the checks: the key's claim (duplicate, conflict); the sequence, where the provider promises one and it is
// below the watermark and of one count with it (stale; an equal one says nothing about order); the
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

// Whether two sequences can come from one count: they are at most a million apart, or within a factor of a thousand. A
// sequence that is not (9e18 among single digits, a time stamp among version numbers) orders nothing, so that it can
// swallow nothing.
bool of_one_count(std::int64_t a, std::int64_t b) noexcept;
// The watermark after an applied move. A sequence beyond every count does not raise it; where the watermark itself turns
// out to be the one that fits nothing, what was said replaces it.
std::optional<std::int64_t> watermark_after(const std::optional<std::int64_t>& before, const std::optional<std::int64_t>& said);
// An event time that a clock can have shown: from a year before it was received to a day after. Others are kept as
// evidence, and break no tie.
std::optional<sys_micros> believable(const std::optional<sys_micros>& occurred_at, sys_micros received_at);

// Several news of one request about one operation or item, looked at together before any is decided (R7, R41).
struct together {
  // No order of them is without a contradiction, or orders that the table allows end in different states: a person has
  // to look at all of them.
  bool contradicts = false;
  // Else the order in which to decide them, as indices: by the promised sequence; else the one that the table allows and
  // that makes the most moves, so that nothing is lost; event times break ties.
  std::vector<std::size_t> order;
};
together decide_together(const workflow& table, const subject& now, std::span<const news> said, order_rule order);

// How many items are in which state.
using item_counts = std::map<std::string, std::int64_t, std::less<>>;
// The row that the first rule which holds takes from the present state; nullptr: none does, or there are no items, or the
// operation has ended.
const move* decide_by_items(const workflow& table, std::string_view state, const item_counts& items);

// An event raised through the API or by the clock: the move, or why not.
// Evidence is asked of people (client, operator); the clock has none to give, and a callback is its own.
// permanent::illegal_transition   no such move in this state, or not by `who`, or its evidence is missing; the
//                                 detail says which, in words of the table alone
result<const move*> decide_event(const workflow& table, std::string_view state, std::string_view event, actor_kind who,
                                 bool has_evidence);

}  // namespace recibo::transition
