// One batch of work between lock and commit. No I/O here: it fills pipelines and reads their answers, so that the writer is
// all that waits (write path, "Shape").
//
//   first look     lock the operations, read keys, aliases, failed callbacks         one round trip      found
//   next looks     only what the first left open: busy or absent, older workflows    none, mostly        found
//   decide         in order of arrival, against what the previous one left (rule 4)                      batch
//   writes         every row, one statement a table; the caller adds COMMIT                              writes
#pragma once

#include "found.hpp"
#include "items_text.hpp"
#include "plan.hpp"
#include "recibo/evidence/facts.hpp"
#include "recibo/record/work.hpp"
#include "workflow_cache.hpp"
#include "writes.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::record {

transition::news news_of(const callback& c);

// A move as the fact says it, borrowed from all three.
evidence::moved moved_by(const callback& c, const operation_in_hand& o, const transition::move& taken);

class batch final : public plan {
 public:
  // `works` in order of arrival; they must outlive the batch. `careful`: a retry after a lost race, which also looks
  // whether request IDs that it wants to insert are there already.
  batch(std::vector<const work*> works, workflow_cache& workflows, bool careful);

  void append_first_look(storage::checked_pipeline& to) override { found_.append_first_look(to); }
  void take_first_look(std::vector<postgres::rows>& answers, std::size_t at) override { found_.take_first_look(answers, at); }
  bool append_next_look(storage::checked_pipeline& to) override { return found_.append_next_look(to); }
  result<void> take_next_look(std::vector<postgres::rows>& answers, std::size_t at) override {
    return found_.take_next_look(answers, at);
  }
  void decide(sys_micros at) override;
  void append_writes(storage::checked_pipeline& to) override;
  void committed(observe::metrics* counts) override;
  const std::set<std::string, std::less<>>& told() const noexcept override { return told_; }
  const std::vector<verdict>& verdicts() const noexcept override { return verdicts_; }

 private:
  const transition::workflow& table_of(operation_in_hand& o, const config::settings& settings);

  void decide_callback(const callback& c, verdict& v);
  // Whether it can be decided now, without trying: nothing is changed.
  enum class readiness {
    ready,
    busy,    // somebody else holds what it needs
    absent,  // it has to be parked
  };
  readiness readiness_of(const callback& c);
  void decide_group(const callback_group& g, verdict& v);
  struct group_step {
    std::size_t part = 0;
    bool contradicts = false;  // others of the request
  };
  std::vector<group_step> order_of_group(const callback_group& g);
  std::string subject_text(const callback& c);
  // Where the body of a delivery is kept: with it, or with the first of its request.
  delivery_id keep_payload(const callback& c);
  // One that names its event: by its operation, if that is known.
  void decide_understood(const callback& c, verdict& v);
  void decide_replay(const callback& c, verdict& v);
  // The elements of its list of items that were left out when it came: the rest stands.
  void decide_left_items(const callback& c, verdict& v);
  void decide_discard(const discard& d, verdict& v);
  // What the table and the key say of it as things stand; changes nothing.
  transition::decision judge(const callback& c, operation_in_hand& o);
  // Who holds its key, or, where the signature does not cover the key, what the signature covers; nullptr: nobody.
  storage::key_row* claim_of(const callback& c, operation_in_hand& o);
  // The conflict that the same signed bytes are already, where the signature does not cover the key; nullptr: none.
  review_in_hand* conflict_of(const callback& c, operation_in_hand& o);
  // The other key under which what was signed came first; nullptr: it is new, or came under this one.
  static const std::string* earlier_key(const callback& c, const operation_in_hand& o, const storage::key_row* claim);
  // Keeps under which key this was signed, unless that is on record.
  void remember_signed(const sha256_digest& digest, operation_in_hand& o, const std::string& key);
  // Keeps what was signed of a callback that cannot be understood, where its key is not signed.
  void note_signed(failed_in_hand& f, const callback& c);
  // The same bytes came before and could not be understood: all that was signed of them means this callback.
  void remember_failed(const callback& c, operation_in_hand& o);
  // Whether its references may be learned: not from what merges nothing, a conflict or a repetition (K04). What a person
  // has to look at is authentic all the same: whose reference it is may be believed before what it says.
  bool teaches(const callback& c, operation_in_hand& o);
  // `waited`: it was parked, and its delivery is on record already, as that of a replay is.
  void decide_known(const callback& c, operation_in_hand& o, verdict& v, const storage::parked_row* waited);
  void decide_failed(const callback& c, verdict& v);
  void list_failed(failed_in_hand& f, const callback& c);
  // The same bytes are understood now: what failed of them is done, but for items that a used key keeps out (`repeats`).
  void close_resent(const callback& c, delivery_id resent_as, bool repeats);
  // What is left of a failed callback whose request with many events was sent again.
  void begin_left(const callback_group& g);
  void settle_left(const callback_group& g, const std::vector<outcome>& outcomes);
  // This is left of it now, of the event that it names.
  void list_left(failed_in_hand& f, left_part one);
  // A delivery that could not be understood came again, as `resent_as`, and some of it was: something is left all the same.
  void note_resent(const failed_in_hand& f, delivery_id delivery, delivery_id resent_as, bool closes = false);
  void decide_failed_part(const callback& c, verdict& v);
  void decide_unmatched(const callback& c, verdict& v);
  // `unmatched: register`.
  void decide_unregistered(const callback& c, verdict& v, bool of_another_provider);
  void decide_duplicate(const callback& c, operation_in_hand& o, storage::key_row& claim, verdict& v,
                        const storage::parked_row* waited);
  void decide_conflict(const callback& c, operation_in_hand& o, const storage::key_row* claim, verdict& v,
                       const storage::parked_row* waited);
  void decide_registration(const registration& r, verdict& v);
  void decide_event(const event& e, verdict& v);
  // Whether the provider has to be asked before this event is raised (R23).
  static bool asks_first(const config::settings& settings, const operation_in_hand& o, std::string_view event, bool has_evidence);
  // Whether it may be raised now; else `v` says why not, or that the provider is asked.
  bool may_retry(const event& e, operation_in_hand& o, verdict& v);
  // The word of record::retry_…, and since which fact: asks for a look-up where there is none that counts. `asked_at`: of the one
  // that is waited for. Empty: nothing stands against it.
  std::pair<std::string_view, std::int32_t> ask_before_retry(const config::settings& settings, operation_in_hand& o,
                                                             const std::string& item_id, const std::string& actor,
                                                             const std::optional<std::int32_t>& asked_at, bool by_clock = false);
  // What may be repeated by this answer: storage::answered_look_ups::row::repeatable.
  std::string repeatable_by(const callback& c, operation_in_hand& o);
  void decide_payload_access(const payload_access& p, verdict& v);
  void decide_rematch(const rematch& r, verdict& v);
  void decide_workflow_change(const workflow_change& w, verdict& v);
  // Its items are in states of other names from now on; returns these as the fact says them.
  std::string rename_items(operation_in_hand& o, const std::map<std::string, std::string>& renamed);
  void decide_review_action(const review_action& a, verdict& v);
  // Whether the action was taken before, or cannot be taken: then `v` says so.
  bool is_done(const review_action& a, operation_in_hand* o, const storage::acted_review& r, verdict& v);
  // What happened to a review, with its audit row where it has an operation.
  void record_action(const review_action& a, operation_in_hand* o, storage::acted_review& r,
                     std::optional<std::int32_t> transition);
  void decide_parked_review(const parked_review& p, verdict& v);
  void decide_timer(const timer_due& t, verdict& v);
  void decide_review_due(const review_due& r, verdict& v);
  // Nothing in the table answers to what ran out: a person has to (R22).
  void open_overdue(operation_in_hand& o, const config::settings& settings, std::string_view event, std::string_view reason);
  // What was done about a review by the clock, with its audit row where it has an operation, and how many are told.
  void record_by_clock(const config::settings& settings, operation_in_hand* o, review_id review, std::string_view action,
                       std::string_view reason, std::string_view told);
  // Sets the timers of what has moved, and ends those of what is over: in the transaction of the move, whatever made it.
  void plan_timers();
  // Somebody asks for a look-up; a hint asks for one; a state that was entered asks for one (R23, R40).
  void decide_look_up(const look_up& l, verdict& v);
  void decide_hint(const callback& c, operation_in_hand& o, verdict& v, const storage::parked_row* waited);
  void look_up_in_state(const config::settings& settings, const operation_in_hand& o);
  void want_look_up(const config::provider& of, const operation_in_hand& o, std::string_view cause, std::string asked_by,
                    const std::string& reference, std::optional<std::int32_t> sequence = std::nullopt);
  // What a look-up came to: by its operation, which is known.
  void decide_looked_up(const callback& c, verdict& v);
  // Its row, once it is decided.
  void settle_look_up(const callback& c, operation_in_hand& o, const outcome& decided);
  // The move that `who` may make by this event; what a client may raise, an operator may too, on record as the operator's.
  // `item`: what it is about; nullptr: the operation.
  result<const transition::move*> permitted_move(operation_in_hand& o, const config::settings& settings, const item_in_hand* item,
                                                 std::string_view event, transition::actor_kind who, bool has_evidence);
  // Makes the move. `said`: who, actor, reason and evidence are filled in.
  void raise(operation_in_hand& o, const config::settings& settings, item_in_hand* item, const transition::move& taken,
             evidence::raised said);
  void remember_key(const std::string& client, const std::optional<std::string>& key, const operation_in_hand& o,
                    const sha256_digest& fingerprint);
  operation_in_hand& create(const registration& r);
  // A client registers what a callback registered: the intent is filled in, and held against what the callback said (R11).
  void decide_adoption(const registration& r, operation_in_hand& o, verdict& v);
  // What the event `edit` makes of what was registered; an error changes nothing.
  result<storage::intent_row> edited(const operation_in_hand& o, const intent_changes& by) const;
  // From now on this is what was registered (`kind`: registered, edited), on record beside the registration.
  void correct(operation_in_hand& o, storage::intent_row now, std::string_view kind, const std::string& actor);
  void open_review_of_intent(const registration& r, operation_in_hand& o, transition::review_kind why);
  static transition::subject subject_of(const operation_in_hand& o);
  // `unmatched: register`: the callback's own operation (R11).
  operation_in_hand& create_for(const callback& c, const std::string& request_id);
  // Applies what waits for the operation under these names (all of it, when empty), oldest first.
  void apply_parked(operation_in_hand& o, const std::shared_ptr<const config::settings>& settings,
                    std::vector<storage::identity_name> names);
  // Learns references; returns the one that belongs to another operation, if any.
  std::optional<std::string> taken_reference(const std::vector<std::string>& references, const operation_in_hand& o) const;
  void learn(const std::vector<std::string>& references, operation_in_hand& o);

  // Moves of one item, decided and not yet recorded.
  struct item_step {
    item_in_hand* item = nullptr;
    const transition::move* taken = nullptr;
    const item_news* said = nullptr;
  };
  struct items_decision {
    std::vector<item_result> results;  // one for each item, in the order in which they are spoken of first
    std::vector<item_step> steps;
    std::vector<std::size_t> left_out;  // places of the elements that could not be understood
  };
  // A callback that speaks of items, whose key nobody holds and which may be believed as a whole.
  void decide_items(const callback& c, operation_in_hand& o, verdict& v, const storage::parked_row* waited);
  // Of a replay, the elements alone that it is about.
  items_decision decide_each_item(const callback& c, operation_in_hand& o);
  // Reviews belong to the fact of the delivery or the replay; each move that follows is a fact of its own.
  void review_items(const callback& c, operation_in_hand& o, const items_decision& items);
  void record_items(const callback& c, operation_in_hand& o, const items_decision& items);
  // `said`: all that the callback says of the item.
  item_result decide_item(const callback& c, operation_in_hand& o, const std::vector<const item_news*>& said,
                          std::vector<item_step>& steps);
  item_in_hand& add_item(operation_in_hand& o, const std::string& item_id);
  void move_item(operation_in_hand& o, item_in_hand& item, const transition::move& taken);
  void record_item_step(const callback& c, operation_in_hand& o, const item_step& step);
  // The fact and the transition of one move that a callback about items made; `item_id` is empty for the operation.
  void record_step(const callback& c, operation_in_hand& o, const transition::move& taken, std::int32_t version,
                   const std::string& item_id, const std::string& result);
  // Which items somebody has to look at.
  void mark_items(const callback& c, operation_in_hand& o, const std::vector<item_result>& results);
  // What could not be understood waits for a replay. `waited`: it was parked, and is counted already.
  void keep_failed_items(const callback& c, const items_decision& items, int status, bool waited);
  // Moves the operation when a rule of its workflow says so; `by` is who moved the item.
  struct mover {
    transition::actor_kind who;
    std::string_view actor;
    std::optional<delivery_id> delivery;
  };
  void move_by_items(operation_in_hand& o, const config::settings& settings, const mover& by);
  void take_own_move(const callback& c, operation_in_hand& o, const transition::move& taken);
  void note(const callback& c, const transition::decision& d);

  // Writers of single facts. Each moves the operation's chain, sequence and revision on.
  // `payload`: of an earlier delivery with the same bytes; nullopt: it is kept.
  void record_delivery(const callback& c, operation_in_hand& o, std::string_view disposition, int status,
                       std::optional<delivery_id> payload, const transition::move* taken, const storage::parked_row* waited,
                       std::string_view items = {});
  void record_move(const callback& c, operation_in_hand& o, const transition::move& taken);
  void record_replay(const callback& c, operation_in_hand& o, std::string_view disposition, const transition::move* taken,
                     std::string_view items);
  // `item`: what it is about, and its state; nullptr: the operation.
  void open_review(const callback& c, operation_in_hand& o, std::string_view kind, const storage::key_row* first,
                   std::string detail, const item_result* item = nullptr);
  std::int32_t notify(const config::settings& settings, operation_in_hand& o, std::string_view type);
  void append_audit(operation_in_hand& o, const evidence::audit_fact& fact, const std::optional<delivery_id>& delivery);
  void claim_key(const callback& c, operation_in_hand& o, transition::disposition d, int status,
                 const std::optional<std::string>& body, const storage::parked_row* waited, std::string items = {});
  outcome outcome_of(const operation_in_hand& o) const;

  std::vector<const work*> works_;
  std::vector<verdict> verdicts_;
  workflow_cache& workflows_;
  sys_micros at_{};
  found found_;
  std::deque<callback> parked_callbacks_;
  // The request whose events are being decided; nullptr: it is one callback.
  const callback_group* group_ = nullptr;
  std::optional<delivery_id> group_payload_;
  // The failed callback that they made.
  failed_in_hand* group_made_ = nullptr;
  // Of the replay in hand: nothing will be left of its failed callback; elements of its items that are left all the same.
  bool replay_closes_ = true;
  std::vector<std::size_t> still_left_;
  // A failed callback was counted for this request; the part in hand contradicts others.
  bool group_failed_ = false, contradicts_ = false;
  // The last fact that a review was notified with: one fact has one notification for each destination.
  std::optional<std::pair<operation_id, std::int32_t>> review_notified_;
  // Providers whose sequence overruled the table, or was not believed; counted once it is committed.
  std::vector<std::pair<std::string, std::string_view>> sequence_decisions_;
  std::set<std::string, std::less<>> told_;
  writes writes_;
};

}  // namespace recibo::record
