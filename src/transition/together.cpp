// Several news of one request about one subject, looked at before any of them is decided (R7, R41).
#include "recibo/transition/decide.hpp"

#include <algorithm>
#include <numeric>

namespace recibo::transition {
namespace {

// Different events of which every order is tried; of more, only the one in which they stand.
constexpr std::size_t events_permuted_max = 6;

using sequence_of = std::vector<std::size_t>;

// What comes of deciding them in one order.
struct course {
  sequence_of order;
  std::string_view end;
  std::size_t moves = 0;
  bool contradicts = false;
};

course follow(const workflow& table, subject now, std::span<const news> said, sequence_of order, order_rule rule) {
  course out;
  for (const std::size_t i : order) {
    const decision d = decide(table, now, std::nullopt, said[i], rule);
    if (d.why_review == review_kind::contradiction) out.contradicts = true;
    if (d.taken == nullptr) continue;
    ++out.moves;
    now.state = d.taken->to;
    now.watermark_sequence = watermark_after(now.watermark_sequence, said[i].sequence);
    if (said[i].occurred_at && (!now.watermark_at || *now.watermark_at < *said[i].occurred_at))
      now.watermark_at = said[i].occurred_at;
  }
  out.end = now.state;
  out.order = std::move(order);
  return out;
}

// The news with one event stay together, in the order in which they stand: it is the events that are permuted.
std::vector<sequence_of> by_event(std::span<const news> said) {
  std::vector<sequence_of> out;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const auto same = [&](const sequence_of& group) { return said[group.front()].event == said[i].event; };
    const auto group = std::find_if(out.begin(), out.end(), same);
    if (group == out.end()) {
      out.push_back({i});
    } else {
      group->push_back(i);
    }
  }
  return out;
}

bool in_order_of_time(const course& c, std::span<const news> said) {
  const auto later = [&](std::size_t a, std::size_t b) {
    return !said[a].occurred_at || !said[b].occurred_at || *said[a].occurred_at >= *said[b].occurred_at;
  };
  // Equal and absent times tell nothing, so they are in no order.
  return std::adjacent_find(c.order.begin(), c.order.end(), later) == c.order.end();
}

std::vector<course> courses(const workflow& table, const subject& now, std::span<const news> said, order_rule rule) {
  sequence_of as_it_stands(said.size());
  std::iota(as_it_stands.begin(), as_it_stands.end(), std::size_t{0});
  const bool promised =
      rule == order_rule::sequence && std::all_of(said.begin(), said.end(), [](const news& n) { return n.sequence.has_value(); });
  if (promised) {
    std::stable_sort(as_it_stands.begin(), as_it_stands.end(),
                     [&](std::size_t a, std::size_t b) { return *said[a].sequence < *said[b].sequence; });
    return {follow(table, now, said, std::move(as_it_stands), rule)};
  }
  const auto groups = by_event(said);
  if (groups.size() > events_permuted_max) return {follow(table, now, said, std::move(as_it_stands), rule)};
  std::vector<course> out;
  sequence_of permuted(groups.size());
  std::iota(permuted.begin(), permuted.end(), std::size_t{0});
  do {
    sequence_of order;
    for (const std::size_t g : permuted) order.insert(order.end(), groups[g].begin(), groups[g].end());
    out.push_back(follow(table, now, said, std::move(order), rule));
  } while (std::next_permutation(permuted.begin(), permuted.end()));
  return out;
}

}  // namespace

together decide_together(const workflow& table, const subject& now, std::span<const news> said, order_rule order) {
  together out;
  if (said.size() < 2) {
    out.order.assign(said.size(), 0);
    return out;
  }
  auto possible = courses(table, now, said, order);
  std::erase_if(possible, [](const course& c) { return c.contradicts; });
  const auto ends_differ = [&] {
    return std::any_of(possible.begin(), possible.end(), [&](const course& c) { return c.end != possible.front().end; });
  };
  if (ends_differ()) std::erase_if(possible, [&](const course& c) { return !in_order_of_time(c, said); });
  if (possible.empty() || ends_differ()) {
    out.contradicts = true;
    return out;
  }
  const auto best =
      std::max_element(possible.begin(), possible.end(), [](const course& a, const course& b) { return a.moves < b.moves; });
  out.order = std::move(best->order);
  return out;
}

}  // namespace recibo::transition
