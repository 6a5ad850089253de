// What must hold for every table and every order of arrival (R9, R10, R15): seeded, so that a failure can be repeated.
#include "recibo/transition/decide.hpp"

#include "unit/transition/tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace recibo::transition {
namespace {

using namespace tables;
using random = std::mt19937;

std::size_t below(random& r, std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(r); }

// Some table that make() takes, with ends, rings, clients' moves and an operator's way out of an end.
workflow random_table(random& r) {
  for (;;) {
    const std::size_t count = 3 + below(r, 5);
    std::vector<state> states;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = "s" + std::to_string(i);
      states.push_back(i > 0 && below(r, 3) == 0 ? closed(name) : open(name));
    }
    std::vector<move> moves;
    const std::size_t events = 2 + below(r, 4);
    for (const state& from : states) {
      for (std::size_t e = 0; e < events; ++e) {
        if (below(r, 5) < 2) continue;
        const auto who = from.terminal ? operator_ : below(r, 5) == 0 ? client : provider;
        if (from.terminal && below(r, 3) != 0) continue;
        moves.push_back(move{from.name, "e" + std::to_string(e), states[below(r, count)].name, {who}, ""});
      }
    }
    std::optional<workflow> out;
    if (workflow::make("random", "s0", states, moves, out).empty()) return std::move(*out);
  }
}

// A table without rings, whose events each say one state, as a provider's words do: from how many others it may be entered, and
// what lies between, is random.
workflow random_story(random& r) {
  for (;;) {
    const std::size_t count = 3 + below(r, 5);
    std::vector<state> states;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = "s" + std::to_string(i);
      states.push_back(i + 1 == count || (i > 0 && below(r, 4) == 0) ? closed(name) : open(name));
    }
    std::vector<move> moves;
    for (std::size_t e = 0; e < 5; ++e) {
      const std::size_t target = 1 + below(r, count - 1);
      for (std::size_t i = 0; i < target; ++i) {
        if (states[i].terminal || below(r, 5) < 2) continue;
        moves.push_back(move{states[i].name, "e" + std::to_string(e), states[target].name, {provider}, ""});
      }
    }
    std::optional<workflow> out;
    if (workflow::make("story", "s0", states, moves, out).empty()) return std::move(*out);
  }
}

struct sent {
  std::string key, event;
  std::optional<sys_micros> at;
  std::optional<std::int64_t> sequence;
  sha256_digest content;
};

struct taken {
  std::string key, event;
};

// An operation as the recorder keeps it.
struct operation {
  explicit operation(const workflow& w) : table(w), state(w.initial()) {}

  void receive(const sent& c, order_rule order) {
    const auto found = claims.find(c.key);
    const std::optional<claim> earlier = found == claims.end() ? std::nullopt : std::optional(claim{found->second});
    const subject now{.state = state, .watermark_at = watermark, .watermark_sequence = sequence};
    const news said{.event = c.event, .occurred_at = c.at, .sequence = c.sequence, .content_digest = c.content};
    const decision d = decide(table, now, earlier, said, order);

    ASSERT_EQ(d.outcome == disposition::applied, d.taken != nullptr);
    ASSERT_EQ(d.outcome == disposition::review || d.outcome == disposition::conflict, d.why_review != review_kind::none);
    ASSERT_EQ(d.outcome == disposition::duplicate || d.outcome == disposition::conflict, earlier.has_value());
    ASSERT_TRUE(!d.table_would_allow || (order == order_rule::sequence && d.outcome == disposition::stale));
    if (d.taken) {
      ASSERT_FALSE(table.find_state(state)->terminal) << "a callback left " << state;
      ASSERT_EQ(d.taken->from, state);
      ASSERT_TRUE(d.taken->permits(provider));
      state = d.taken->to;
      history.push_back({c.key, c.event});
    } else if (d.why_review != review_kind::none) {
      reviewed = true;
    }
    if (!d.taken && order == order_rule::table && !earlier) {
      // Nothing that the table allows is ever held back.
      const move* row = table.find_move(state, c.event);
      ASSERT_FALSE(row && row->permits(provider)) << c.event << " in " << state;
    }
    if (claims_key(d.outcome)) {
      claims.emplace(c.key, c.content);
      if (c.at) watermark = watermark ? std::max(*watermark, *c.at) : *c.at;
      if (c.sequence) sequence = sequence ? std::max(*sequence, *c.sequence) : *c.sequence;
    }
  }

  const workflow& table;
  std::string state;
  std::optional<sys_micros> watermark;
  std::optional<std::int64_t> sequence;
  std::map<std::string, sha256_digest> claims;
  std::vector<taken> history;
  bool reviewed = false;
};

void check_history(const operation& op) {
  std::string state = op.table.initial();
  std::vector<std::string> keys;
  for (const taken& t : op.history) {
    const move* row = op.table.find_move(state, t.event);
    ASSERT_NE(row, nullptr) << t.event << " in " << state;
    ASSERT_FALSE(op.table.find_state(state)->terminal);
    state = row->to;
    keys.push_back(t.key);
  }
  EXPECT_EQ(state, op.state);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end()) << "a key was applied twice";
}

TEST(DecideProperties, EveryOrderOfArrivalIsReproducedByItsHistory) {
  std::size_t runs = 0, moves = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random r(seed);
    const workflow table = random_table(r);
    std::vector<sent> events;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string key = "k" + std::to_string(i);
      sent one{key, "e" + std::to_string(below(r, 6)), {}, {}, sha256(key)};
      if (below(r, 4) != 0) one.at = sys_micros(std::chrono::seconds(below(r, 10)));
      if (below(r, 4) != 0) one.sequence = static_cast<std::int64_t>(below(r, 6));
      events.push_back(one);
    }
    // Copies of two of them, and one key used again for other content.
    events.push_back(events[below(r, events.size())]);
    events.push_back(events[0]);
    events.back().content = sha256("changed");

    std::vector<std::size_t> order(events.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      for (const order_rule rule : {order_rule::table, order_rule::sequence}) {
        operation op(table);
        for (const std::size_t i : order) {
          op.receive(events[i], rule);
          if (HasFatalFailure()) return;
        }
        check_history(op);
        if (HasFailure()) return;
        ++runs;
        moves += op.history.size();
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  // The tables are not so odd that nothing happens in them.
  EXPECT_GT(moves, runs);
}

TEST(DecideProperties, DuplicatesNeverChangeTheEnd) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random r(seed);
    const workflow table = random_table(r);
    std::vector<sent> events;
    for (std::size_t i = 0; i < 12; ++i) {
      const std::string key = "k" + std::to_string(i);
      events.push_back({key, "e" + std::to_string(below(r, 6)), sys_micros(std::chrono::seconds(below(r, 10))), {}, sha256(key)});
    }
    operation once(table), often(table);
    for (std::size_t i = 0; i < events.size(); ++i) {
      once.receive(events[i], order_rule::table);
      often.receive(events[i], order_rule::table);
      for (std::size_t k = below(r, 4); k > 0; --k) often.receive(events[below(r, i + 1)], order_rule::table);
      if (HasFatalFailure()) return;
      ASSERT_EQ(once.state, often.state);
      ASSERT_EQ(once.history.size(), often.history.size());
    }
  }
}

// Whatever the order: the same end, or a person looks. Two kinds of tables cannot promise it, whoever decides: rings (what a
// switch is in the end depends on the order, and nothing but a sequence of the provider's tells it), and words that mean another
// state depending on where they are heard (the second "next" leads further than the first). Nor can times: they break ties, as
// they say.
TEST(DecideProperties, EveryOrderEndsInTheSameStateOrInReview) {
  std::size_t settled = 0, doubtful = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random r(seed);
    const workflow table = random_story(r);
    std::vector<sent> events;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::string key = "k" + std::to_string(i);
      events.push_back({key, "e" + std::to_string(below(r, 5)), {}, {}, sha256(key)});
    }
    events.push_back(events[below(r, events.size())]);
    std::vector<std::size_t> order(events.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::optional<std::string> end;
    do {
      operation op(table);
      for (const std::size_t i : order) {
        op.receive(events[i], order_rule::table);
        if (HasFatalFailure()) return;
      }
      check_history(op);
      if (op.reviewed) {
        ++doubtful;
        continue;
      }
      ++settled;
      if (!end) end = op.state;
      ASSERT_EQ(op.state, *end) << "two orders end differently, and nobody was asked";
    } while (std::next_permutation(order.begin(), order.end()));
  }
  EXPECT_GT(settled, 1000u);
  EXPECT_GT(doubtful, 1000u);
}

// In a ring the provider's sequence tells: what it said last is the end, in whatever order it came and however often.
TEST(DecideProperties, InARingTheLastOfTheSequenceIsTheEnd) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random r(seed);
    const std::size_t count = 2 + below(r, 4);
    std::vector<state> states;
    std::vector<move> moves;
    for (std::size_t i = 0; i < count; ++i) states.push_back(open("s" + std::to_string(i)));
    for (std::size_t from = 0; from < count; ++from) {
      for (std::size_t to = 0; to < count; ++to)
        if (from != to) moves.push_back(move{states[from].name, "e" + std::to_string(to), states[to].name, {provider}, ""});
    }
    std::optional<workflow> table;
    ASSERT_TRUE(workflow::make("ring", "s0", states, moves, table).empty());
    std::vector<sent> events;
    for (std::size_t i = 0; i < 5; ++i) {
      const std::string key = "k" + std::to_string(i);
      // The clock of its machines says nothing.
      const auto at = sys_micros(std::chrono::seconds(below(r, 100)));
      events.push_back({key, "e" + std::to_string(below(r, count)), at, static_cast<std::int64_t>(10 + i), sha256(key)});
    }
    const std::string end = "s" + events.back().event.substr(1);
    events.push_back(events[below(r, events.size())]);
    std::vector<std::size_t> order(events.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      operation op(*table);
      for (const std::size_t i : order) {
        op.receive(events[i], order_rule::sequence);
        if (HasFatalFailure()) return;
      }
      check_history(op);
      ASSERT_EQ(op.state, end);
      ASSERT_FALSE(op.reviewed);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

}  // namespace
}  // namespace recibo::transition
