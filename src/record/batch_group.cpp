// What a batch decides about several events of one request (R41): all of them, or none yet.
#include "batch.hpp"
#include "group.hpp"
#include "recibo/record/left_out.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace recibo::record {

using transition::disposition;

batch::readiness batch::readiness_of(const callback& c) {
  if (!c.understood() || c.event == "ignore") return readiness::ready;
  const auto* o = found_.find_for(c);
  if (!o) {
    switch (found_.meaning_of(c)) {
      case found::stranger::busy: return readiness::busy;
      case found::stranger::elsewhere:
      case found::stranger::unknown: break;
    }
    switch (c.named_instead ? config::unmatched::reject : c.provider->unmatched) {
      case config::unmatched::ignore:
      case config::unmatched::reject: return readiness::ready;
      case config::unmatched::park: return readiness::absent;
      case config::unmatched::register_: break;
    }
    if (found_.meaning_of(c) == found::stranger::elsewhere) return readiness::absent;
    const auto names = names_of(c);
    return found_.may_meet(names) && found_.may_apply(c.provider->name, c.request_id, names) ? readiness::ready : readiness::busy;
  }
  if (o->blocked) return readiness::busy;
  const auto learned = found_.unknown_references(o->row.provider, c.references);
  const bool locked =
      found_.may_meet(learned) && (learned.empty() || found_.may_apply(o->row.provider, o->row.request_id, learned));
  return locked ? readiness::ready : readiness::busy;
}

void batch::decide_group(const callback_group& g, verdict& v) {
  bool busy = false, absent = false;
  for (std::size_t i = 0; i < g.parts.size(); ++i) {
    if (is_settled(g, i)) continue;
    const auto ready = readiness_of(g.parts[i]);
    busy = busy || ready == readiness::busy;
    absent = absent || ready == readiness::absent;
  }
  if (busy) {
    // What comes later for these operations waits behind it.
    for (std::size_t i = 0; i < g.parts.size(); ++i) {
      auto* o = is_settled(g, i) || !g.parts[i].understood() ? nullptr : found_.find_for(g.parts[i]);
      if (o) o->blocked = true;
    }
    v.is = verdict::kind::busy;
    return;
  }
  if (absent) {
    v.is = verdict::kind::absent;
    return;
  }

  group_ = &g;
  group_payload_ = g.payload;
  group_failed_ = false;
  group_made_ = nullptr;
  begin_left(g);
  std::vector<outcome> outcomes(g.parts.size());
  for (std::size_t i = 0; i < g.parts.size(); ++i)
    if (is_settled(g, i)) outcomes[i] = *g.settled[i];
  for (const auto& step : order_of_group(g)) {
    const auto& c = g.parts[step.part];
    if (c.event == "ignore" && c.understood()) {
      outcomes[step.part] = ignored_part(c);
      continue;
    }
    contradicts_ = step.contradicts;
    verdict one;
    decide_callback(c, one);
    contradicts_ = false;
    // Nothing that a part does takes from another what it needs; half a group must never be committed.
    if (one.is != verdict::kind::decided) throw std::logic_error("an event of a request was not decided with the others");
    // What leaves only a count has no delivery to name, and a resend is answered with the same bytes.
    if (one.outcome.disposition == disposition::unknown_operation || one.outcome.disposition == disposition::ignored)
      one.outcome.delivery = {};
    outcomes[step.part] = std::move(one.outcome);
  }
  group_ = nullptr;
  // Nothing of it was understood: all is left, also what another configuration reads from it.
  const bool none = std::none_of(g.parts.begin(), g.parts.end(), [](const auto& c) { return c.understood(); });
  if (group_made_ && none) group_made_->left.clear();
  settle_left(g, outcomes);
  v.is = verdict::kind::decided;
  v.outcome = combine(g, std::move(outcomes));
}

void batch::begin_left(const callback_group& g) {
  const auto at = found_.failed.find(failed_key_of(g.parts.front()));
  if (at == found_.failed.end()) return;
  auto& f = at->second;
  if (f.row.id.is_nil() || f.closed || f.created || (!f.row.left_out.empty() && !leaves_others(f.row.left_out))) return;
  auto left = left_of(f.row.left_out, g.parts.size());
  // Nothing of it was understood when it came: what it came as is its first event.
  if (!left.front().delivery) left.front().delivery = f.row.delivery;
  f.row.left_out = write_left_out(left);
}

void batch::settle_left(const callback_group& g, const std::vector<outcome>& outcomes) {
  const auto at = found_.failed.find(failed_key_of(g.parts.front()));
  if (at == found_.failed.end()) return;
  auto& f = at->second;
  if (f.row.id.is_nil() || f.closed || f.created) return;
  auto left = read_left_out(f.row.left_out);
  std::vector<std::pair<delivery_id, delivery_id>> resent;
  const auto done = std::erase_if(left, [&](const left_part& one) {
    if (!one.part || *one.part >= g.parts.size()) return false;
    const auto& c = g.parts[*one.part];
    if (!one.place.empty() && one.place != place_of(*c.provider)) return false;
    const auto& came = outcomes[*one.part];
    if (!c.understood() || came.disposition == disposition::unknown_operation) return false;
    // Items that were left out stay out as long as the key of their event is used.
    if (!one.items.empty() && (came.replayed || has_failed_items(c.items))) return false;
    if (one.delivery) resent.emplace_back(*one.delivery, came.delivery.is_nil() ? c.id : came.delivery);
    return true;
  });
  if (done == 0) return;
  if (left.empty()) {
    const auto kept = std::find_if(outcomes.begin(), outcomes.end(), [](const auto& one) { return !one.delivery.is_nil(); });
    close_resent(g.parts.front(), kept == outcomes.end() ? g.parts.front().id : kept->delivery, false);
  } else {
    f.row.left_out = write_left_out(left);
    f.relisted = true;
  }
  for (const auto& [delivery, as] : resent)
    if (!f.closed || delivery != f.row.delivery) note_resent(f, delivery, as);
}

void batch::list_left(failed_in_hand& f, left_part one) {
  auto left = f.created ? f.left : read_left_out(f.row.left_out);
  // As long as all of it is left, the others are, whatever is left of this one.
  const bool and_others = one.part && !f.created && (f.row.left_out.empty() || leaves_others(f.row.left_out));
  // Places in another list are others.
  const auto known = std::find_if(left.begin(), left.end(), [&](const left_part& l) {
    return l.part == one.part && (l.place.empty() || l.place == one.place);
  });
  const bool is_first = one.part == std::size_t{0};
  if (known == left.end()) {
    if (and_others && is_first && one.delivery) note_resent(f, f.row.delivery, *one.delivery);
    left.push_back(std::move(one));
  } else {
    if (known->delivery && one.delivery && known->delivery != one.delivery) note_resent(f, *known->delivery, *one.delivery);
    if (!one.delivery) one.delivery = known->delivery;
    *known = std::move(one);
  }
  if (f.created) {
    f.left = std::move(left);
  } else {
    f.row.left_out = write_left_out(left, and_others);
    f.relisted = true;
  }
}

void batch::note_resent(const failed_in_hand& f, delivery_id delivery, delivery_id resent_as, bool closes) {
  storage::replay_row r;
  r.id = make_id<storage::replay_id>(at_);
  r.failed = f.row.id;
  r.provider = f.row.provider;
  r.delivery = delivery;
  r.action = "resent";
  r.at = at_;
  r.actor = f.row.provider;
  r.resent_as = resent_as;
  r.closes = closes;
  writes_.new_replays.add(r);
}

// All events about one operation are looked at before any is decided: in which order the table allows them, and whether
// they contradict each other.
std::vector<batch::group_step> batch::order_of_group(const callback_group& g) {
  std::vector<std::vector<std::size_t>> together;
  std::unordered_map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < g.parts.size(); ++i) {
    if (is_settled(g, i)) continue;
    const auto subject = subject_text(g.parts[i]);
    const auto [known, fresh] = subject.empty() ? std::pair(place.end(), true) : place.try_emplace(subject, together.size());
    if (fresh) {
      together.push_back({i});
    } else {
      together[known->second].push_back(i);
    }
  }
  std::vector<group_step> out;
  for (const auto& group : together) {
    if (group.size() == 1) {
      out.push_back({group.front(), false});
      continue;
    }
    const auto& first = g.parts[group.front()];
    auto* o = found_.find_for(first);
    const auto* table = o ? &table_of(*o, *first.settings) : first.settings->workflows.at(first.provider->workflow).get();
    transition::subject now;
    if (o) {
      now = subject_of(*o);
    } else {
      now.state = table->initial();
    }
    std::vector<transition::news> said;
    for (const auto i : group) said.push_back(news_of(g.parts[i]));
    const auto decided = transition::decide_together(*table, now, said, first.provider->order);
    if (decided.contradicts) {
      for (const auto i : group) out.push_back({i, true});
    } else {
      for (const auto i : decided.order) out.push_back({group[i], false});
    }
  }
  return out;
}

// Which operation it says something of that nobody has said under its key yet; empty: nothing is to be looked at together.
std::string batch::subject_text(const callback& c) {
  // Hints say nothing that could contradict.
  if (!c.understood() || c.is_hint() || c.event.empty() || c.event == "ignore") return {};
  if (auto* o = found_.find_for(c))
    return claim_of(c, *o) == nullptr && conflict_of(c, *o) == nullptr ? "o" + std::string(o->row.id.binary()) : std::string();
  if (!c.request_id.empty()) return "r" + c.request_id;
  return c.references.empty() ? std::string() : "a" + c.references.front();
}

}  // namespace recibo::record
