#include "operation_checker.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/evidence/facts.hpp"
#include "recibo/transition/disposition.hpp"

#include <algorithm>
#include <utility>

namespace recibo::evidence {
namespace {

using storage::verify_fact;

// IDs may be ahead of the clock by this much (core/ids.hpp).
constexpr std::chrono::seconds id_tolerance{10};

// References that a callback taught in the very batch that registered the operation bear the same time as the registered
// ones: among so few, every subset is tried.
constexpr std::size_t doubtful_references_max = 8;

std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

}  // namespace

operation_checker::operation_checker(const storage::verify_operation& o, table_finder tables, const storage::horizon& oldest,
                                     teller tell)
    : operation_(o),
      tables_(std::move(tables)),
      workflow_(o.first_workflow),
      table_(tables_(o.first_workflow)),
      oldest_(oldest),
      tell_(std::move(tell)),
      chain_(o.id) {
  if (table_ == nullptr) {
    tell_("workflows", "its workflow version is not on record");
  } else {
    initial_ = now_.state = table_->initial();
    initials_.insert(initial_);
  }
}

void operation_checker::tell_at(const verify_fact& f, std::string_view rule, std::string_view what) {
  tell_(rule, "fact " + std::to_string(f.sequence) + ": " + std::string(what));
}

void operation_checker::next(const verify_fact& f) {
  if (f.kind == kind_accept) {
    check_accept(f);
  } else if (f.kind == kind_delivery) {
    check_delivery(f);
  } else if (f.kind == kind_item) {
    check_item(f);
  } else if (f.kind == kind_items) {
    check_items(f);
  } else if (f.kind == kind_event) {
    check_event(f);
  } else if (f.kind == kind_correction) {
    check_correction(f);
  } else if (f.kind == kind_workflow) {
    check_workflow_change(f);
  } else if (f.kind == kind_payload_access) {
    if (!f.access_recorded) tell_at(f, "references", "no row of payload_accesses says the same");
    if (f.has_transition) tell_at(f, "transitions", "a payload access moved something");
  } else if (f.kind == kind_review) {
    check_review(f);
  } else if (f.kind == kind_replay) {
    check_replay(f);
  } else {
    tell_at(f, "chain", "its kind is not known");
  }
  if (f.has_transition) check_move(f);
  check_outbox(f);
  follow_chain(f, recompute(f));
}

void operation_checker::check_accept(const verify_fact& f) {
  if (f.sequence != first_sequence) tell_at(f, "chain", "an operation is accepted once, with its first fact");
  accepted_at_ = f.at;
  if (operation_.registered && f.actor != operation_.client)
    tell_at(f, "registration", "the actor is not the client of the registration");
  if (f.has_transition) tell_at(f, "transitions", "an acceptance moved something");
}

bool operation_checker::check_received(const verify_fact& f) {
  if (!f.delivery) {
    tell_at(f, "deliveries", "it names no delivery");
    return false;
  }
  if (!f.has_delivery) {
    if (*f.delivery < oldest_.deliveries) {
      ++retired_;
    } else {
      tell_at(f, "deliveries", "delivery " + to_string(*f.delivery) + " does not exist");
    }
    return false;
  }
  const auto id = to_string(*f.delivery);
  if (f.delivery_operation && *f.delivery_operation != operation_.id)
    tell_at(f, "deliveries", "delivery " + id + " is of another operation");
  if (f.provider != operation_.provider) tell_at(f, "deliveries", "delivery " + id + " is of another provider");
  const auto apart = uuid_v7_time(f.delivery->bytes) - f.received_at;
  if (apart > id_tolerance || apart < -id_tolerance)
    tell_at(f, "deliveries", "delivery " + id + " was received at another time than its ID says");
  if (!f.has_payload) {
    if (!(f.payload < oldest_.payloads)) tell_at(f, "payloads", "the payload of delivery " + id + " does not exist");
  } else if (f.payload_digest != f.body_digest) {
    tell_at(f, "payloads", "the payload of delivery " + id + " has other bytes than it says");
  }
  return true;
}

void operation_checker::check_delivery(const verify_fact& f) {
  if (!check_received(f)) return;
  if (f.actor != f.provider) tell_at(f, "deliveries", "the actor is not the provider of the delivery");
  check_claim(f);
}

// A failed callback that was replayed: on record as it came, and once more as what became of it.
void operation_checker::check_replay(const verify_fact& f) {
  if (!f.failed) return tell_at(f, "failed", "no row of replays has its sequence");
  if (!f.replay_agrees) tell_at(f, "failed", "the replay has another time, actor or delivery");
  if (!check_received(f)) return;
  const auto word = transition::parse_disposition(f.replay_disposition);
  const auto came = transition::parse_disposition(f.disposition);
  if (!word) return tell_at(f, "failed", "the replay has a disposition that is not known");
  // What was partly understood may be replayed for the rest.
  const bool whole = f.delivery_items.empty() && came != transition::disposition::parked;
  if (came != transition::disposition::unmapped && came != transition::disposition::unprocessable && whole)
    tell_at(f, "failed", "delivery " + to_string(*f.delivery) + " was replayed and had not failed");
  const bool expired = f.keys_swept_through && !(*f.keys_swept_through < *f.delivery);
  if (transition::claims_key(*word) && f.replay_key_holder != f.delivery && !expired)
    tell_at(f, "claims", "the replay of delivery " + to_string(*f.delivery) + " does not hold its key");
}

// Invariant 2: the claimant holds its key; a repetition or a conflict has one to repeat or contradict.
void operation_checker::check_claim(const verify_fact& f) {
  if (f.key.empty()) return;
  const auto id = to_string(*f.delivery);
  const auto word = transition::parse_disposition(f.disposition);
  if (!word) return tell_at(f, "deliveries", "delivery " + id + " has a disposition that is not known");
  if (transition::claims_key(*word)) {
    const bool expired = f.keys_swept_through && !(*f.keys_swept_through < *f.delivery);
    if (f.key_holder != f.delivery && !expired)
      tell_at(f, "claims", "delivery " + id + " is " + quoted(f.disposition) + " and does not hold its key");
  } else if (*word == transition::disposition::duplicate || *word == transition::disposition::conflict) {
    // The first may be another operation's, where a key means one thing for a whole provider, or have expired; or wait still, for
    // an operation of another name, beside which this one was refused.
    const bool waited = !f.delivery_operation && *word == transition::disposition::conflict;
    const bool explained = f.keys_swept_through || waited || (f.first_reviewed && *word == transition::disposition::conflict);
    if (!f.key_holder && !explained)
      tell_at(f, "claims", "delivery " + id + " is " + quoted(f.disposition) + " and nobody holds its key");
    if (f.key_holder == f.delivery)
      tell_at(f, "claims", "delivery " + id + " is " + quoted(f.disposition) + " and holds the key");
  }
}

void operation_checker::begin(const std::vector<storage::verify_item>& items) {
  if (table_ != nullptr && !items.empty()) items_by_state_[initial_] = static_cast<std::int64_t>(items.size());
}

// What a callback about items moved, an item or the operation itself.
void operation_checker::check_item(const verify_fact& f) {
  if (!f.has_transition) return tell_at(f, "transitions", "an item's fact moved nothing");
  if (!f.delivery) tell_at(f, "deliveries", "an item's fact names no delivery");
}

// The rule that moved the operation held for what its items were then.
void operation_checker::check_items(const verify_fact& f) {
  if (!f.has_transition) return tell_at(f, "transitions", "a rule of the items moved nothing");
  if (!f.item_id.empty()) tell_at(f, "transitions", "a rule of the items moved an item");
  if (table_ == nullptr) return;
  // Where a callback registered the operation its items came one by one, and nothing tells how many there were.
  if (operation_.client.empty()) return;
  const auto* taken = transition::decide_by_items(*table_, now_.state, items_by_state_);
  if (taken == nullptr || taken->event != f.event || taken->to != f.to)
    tell_at(f, "transitions", "no rule of the items gives " + quoted(f.event) + " in state " + quoted(now_.state));
}

void operation_checker::check_event(const verify_fact& f) {
  if (!f.has_transition) return tell_at(f, "transitions", "an event moved nothing");
  if (f.transition_actor != f.actor) tell_at(f, "transitions", "the transition has another actor");
  if (f.actor_kind == transition::to_string(transition::actor_kind::provider))
    tell_at(f, "transitions", "a provider's event came without a delivery");
  if (f.actor_kind == transition::to_string(transition::actor_kind::clock) && f.actor != clock_actor)
    tell_at(f, "transitions", "what the clock raised bears another name");
}

void operation_checker::check_workflow_change(const verify_fact& f) {
  if (f.has_transition) tell_at(f, "transitions", "a change of the workflow made a move of its table");
  if (!f.workflow_changed) return tell_at(f, "workflows", "no row of workflow_changes says what");
  const auto& w = *f.workflow_changed;
  if (w.at != f.at || w.actor != f.actor) tell_at(f, "workflows", "the change of the workflow has another actor or time");
  if (w.from_workflow != workflow_) tell_at(f, "workflows", "it leaves a version under which the operation did not live");
  if (w.from != now_.state) tell_at(f, "workflows", "it leaves " + quoted(w.from) + " while the state was " + quoted(now_.state));
  workflow_ = w.to_workflow;
  const auto* const before = table_;
  table_ = tables_(w.to_workflow);
  if (table_ == nullptr) return tell_at(f, "workflows", "the version that it gets is not on record");
  if (before != nullptr && before->name() != table_->name()) tell_at(f, "workflows", "it gets a version of another workflow");
  if (!table_->find_state(w.to)) tell_at(f, "workflows", "the version that it gets has no state " + quoted(w.to));
  now_.state = w.to;
  rename_items(f);
  initials_.insert(table_->initial());
}

void operation_checker::rename_items(const verify_fact& f) {
  const auto& text = f.workflow_changed->item_states;
  if (text.empty()) return;
  const auto names = parse_json(text);
  if (!names) return tell_at(f, "workflows", "the names of its items' states cannot be read");
  const auto name_of = [&](const std::string& state) {
    const auto* name = names->find(state);
    return name == nullptr ? state : name->text;
  };
  for (const auto& [from, name] : names->members)
    if (!table_->find_state(name.text)) tell_at(f, "workflows", "the version that it gets has no state " + quoted(name.text));
  initial_ = name_of(initial_);
  std::set<std::string> initials;
  for (const auto& state : initials_) initials.insert(name_of(state));
  initials_ = std::move(initials);
  for (auto& [id, at] : items_) at.state = name_of(at.state);
  transition::item_counts counts;
  for (const auto& [state, count] : items_by_state_) counts[name_of(state)] += count;
  items_by_state_ = std::move(counts);
}

void operation_checker::check_correction(const verify_fact& f) {
  if (f.has_transition) tell_at(f, "transitions", "a correction moved something");
  if (!f.corrected) return tell_at(f, "registration", "no row of corrections says what");
  if (f.corrected->at != f.at || f.corrected->actor != f.actor)
    tell_at(f, "registration", "the correction has another actor or time");
  if (f.corrected->kind == registered_intent && f.corrected->client != f.actor)
    tell_at(f, "registration", "the actor is not the client who registered");
  corrected_ = f.sequence;
}

// What was done about a review is on record beside the review, and the move that was made with it came just before.
void operation_checker::check_review(const verify_fact& f) {
  if (f.has_transition) tell_at(f, "transitions", "an action about a review moved something itself");
  if (!f.review) return tell_at(f, "reviews", "no row of review_actions has its sequence");
  if (f.review_at != f.at || f.review_actor != f.actor) tell_at(f, "reviews", "the action has another time or actor");
  if (!f.review_agrees) tell_at(f, "reviews", "review " + to_string(*f.review) + " says otherwise");
  if (f.caused && (*f.caused != f.sequence - 1 || f.caused_actor != f.actor))
    tell_at(f, "reviews", "the transition that it names is not the one made with it");
}

// Invariant 3: the table allows the move, from where the operation or item stood.
void operation_checker::check_move(const verify_fact& f) {
  if (f.transition_at != f.at) tell_at(f, "transitions", "the transition has another time");
  const bool by_delivery = f.kind == kind_delivery || f.kind == kind_item || f.kind == kind_replay;
  const bool by_rule = f.kind == kind_items;
  if (by_delivery &&
      (f.actor_kind != transition::to_string(transition::actor_kind::provider) || f.transition_actor != operation_.provider)) {
    tell_at(f, "transitions", "the transition of a delivery has another actor");
  }
  if (by_delivery || by_rule ? f.transition_delivery != f.delivery : f.transition_delivery.has_value()) {
    tell_at(f, "transitions", "the transition names another delivery");
  }
  if (table_ == nullptr) return;
  auto& at = f.item_id.empty()
                 ? now_
                 : items_.try_emplace(f.item_id, position{initials_.contains(f.from) ? f.from : initial_, 0}).first->second;
  if (!f.item_id.empty()) {
    --items_by_state_[at.state];
    ++items_by_state_[f.to];
  }
  if (f.from != at.state)
    tell_at(f, "transitions", "it moves from " + quoted(f.from) + " while the state was " + quoted(at.state));
  if (f.version != at.version + 1)
    tell_at(f, "transitions", "version " + std::to_string(f.version) + " follows " + std::to_string(at.version));
  const auto* move = table_->find_move(f.from, f.event);
  const auto who = transition::parse_actor_kind(f.actor_kind);
  if (move == nullptr || move->to != f.to) {
    tell_at(f, "transitions", "the table has no move from " + quoted(f.from) + " by " + quoted(f.event) + " to " + quoted(f.to));
  } else if (by_rule) {
    // The rule is its permission.
  } else if (!who || (!move->permits(*who) &&
                      !(*who == transition::actor_kind::operator_ && move->permits(transition::actor_kind::client)))) {
    tell_at(f, "transitions", "the table does not allow " + quoted(f.event) + " to a " + f.actor_kind);
  } else if (!move->evidence.empty() && f.kind == kind_event && *who != transition::actor_kind::clock && f.evidence.empty()) {
    tell_at(f, "transitions", "the table asks for evidence and there is none");
  }
  at.state = f.to;
  at.version = f.version;
}

// Invariant 4.
void operation_checker::check_outbox(const verify_fact& f) {
  if (f.has_transition && f.outbox_rows != f.notifications) {
    tell_at(f, "outbox",
            std::to_string(f.notifications) + " notifications were written with the transition, and there are " +
                std::to_string(f.outbox_rows));
  }
  if (f.review && f.outbox_rows != f.review_notifications) {
    tell_at(f, "outbox",
            std::to_string(f.review_notifications) + " notifications were written with the review, and there are " +
                std::to_string(f.outbox_rows));
  }
  if (f.outbox_strangers > 0) tell_at(f, "outbox", "a notification of another type than the fact's");
}

void operation_checker::check_registration(const std::vector<storage::verify_item>& items) {
  const auto& o = operation_;
  if (!o.registered) return tell_("registration", "it has no registration");
  if (o.client.empty()) {
    if (callback_intent_digest(o.provider, o.request_id) != o.intent)
      tell_("registration", "what a callback registered is not what its intent says");
    return;
  }
  const auto metadata = canonical_json(o.metadata);
  if (table_ == nullptr || !metadata) return;

  // Those that were learned with the acceptance are certain only where they are all there are.
  std::vector<std::string> doubtful, certain;
  for (const auto& a : o.aliases) {
    if (accepted_at_ && a.learned_at != *accepted_at_) continue;
    if (o.reference == a.name) {
      certain.push_back(a.name);
    } else {
      doubtful.push_back(a.name);
    }
  }
  if (doubtful.size() > doubtful_references_max) return;
  intent base;
  base.provider = o.provider;
  base.workflow = table_->name();
  base.action = o.action;
  if (o.amount) base.amount = *o.amount;
  if (o.currency) base.currency = *o.currency;
  if (o.account) base.account = *o.account;
  base.deadline = o.deadline;
  for (const auto& i : items) base.items.push_back(i.item_id);
  base.metadata = *metadata;
  // All of them first: that is the usual case.
  for (std::size_t left_out = 0; left_out < (std::size_t{1} << doubtful.size()); ++left_out) {
    auto tried = base;
    tried.references = certain;
    for (std::size_t i = 0; i < doubtful.size(); ++i) {
      if ((left_out >> i & 1) == 0) tried.references.push_back(doubtful[i]);
    }
    if (intent_digest(std::move(tried)) == o.intent) return;
  }
  tell_("registration", "what was registered is not what its intent says");
}

void operation_checker::finish(const std::vector<storage::verify_item>& items) {
  const auto& o = operation_;
  check_registration(items);
  if (o.workflow != workflow_) tell_("workflows", "it lives under another version than its history leads to");
  if (o.corrected != corrected_) tell_("registration", "its latest correction is not the one that it names");
  if (!chain_broken_) {
    if (const auto why = chain_.finish(o.sequence, o.chain_hash)) tell_("chain", *why);
  }
  if (o.review_open != o.has_open_review) {
    tell_("references",
          o.review_open ? "review_open is set and no review is open" : "a review is open and review_open is not set");
  }
  if (table_ == nullptr) return;
  if (o.state != now_.state)
    tell_("transitions", "the state is " + quoted(o.state) + ", its transitions lead to " + quoted(now_.state));
  if (o.version != now_.version) {
    tell_("transitions",
          "the version is " + std::to_string(o.version) + ", it has " + std::to_string(now_.version) + " transitions");
  }
  for (const auto& i : items) {
    const auto moved = items_.find(i.item_id);
    const position at = moved == items_.end() ? position{initials_.contains(i.state) ? i.state : initial_, 0} : moved->second;
    if (i.state != at.state || i.version != at.version) {
      tell_("transitions",
            "item " + quoted(i.item_id) + " is " + quoted(i.state) + ", its transitions lead to " + quoted(at.state));
    }
    if (moved != items_.end()) items_.erase(moved);
  }
  for (const auto& [id, at] : items_) tell_("transitions", "item " + quoted(id) + " moved and does not exist");
}

}  // namespace recibo::evidence
