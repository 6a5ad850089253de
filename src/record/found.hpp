// What a batch looked up under its locks, and keeps true while it decides: the operations in hand with their keys, and the
// aliases, failed callbacks, reviews and parked callbacks that belong to them. No I/O: it fills pipelines and reads answers.
#pragma once

#include "plan.hpp"
#include "recibo/record/left_out.hpp"
#include "recibo/record/work.hpp"
#include "recibo/storage/deliveries.hpp"
#include "recibo/storage/evidence.hpp"
#include "recibo/storage/items.hpp"
#include "recibo/storage/keys.hpp"
#include "recibo/storage/look_ups.hpp"
#include "recibo/storage/operations.hpp"
#include "recibo/storage/parked.hpp"
#include "recibo/storage/registrations.hpp"
#include "recibo/storage/reviews.hpp"
#include "recibo/storage/timers.hpp"
#include "recibo/storage/workflow_versions.hpp"
#include "workflow_cache.hpp"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace recibo::record {

// An item of an operation in hand: one that some work speaks of, or any of an operation that was made by this batch.
struct item_in_hand {
  storage::item_row row;
  std::int32_t read_version = 0;
  bool created = false, changed = false;
};

// An operation that is locked by this transaction, or made by it.
struct operation_in_hand {
  storage::operation_row row;
  std::int32_t locked_revision = 0;
  bool created = false, changed = false;
  // Work for it was found busy in this batch: what comes later for it waits too, so that its order is kept.
  bool blocked = false;
  const transition::workflow* table = nullptr;
  // By which its table was last judged here, set with it; what its timers are set by.
  const config::settings* settings = nullptr;
  // As the lock returned it: whether it has moved tells whether its timers are set anew.
  std::string locked_state;
  std::int32_t locked_version = 0;
  std::int64_t locked_workflow = 0;
  // Registered, or changed in this batch: outer nullopt: it stays as it is.
  std::optional<std::optional<sys_micros>> deadline;
  // Timers that an outage puts off, unless they are set anew all the same.
  struct put_off {
    sys_micros to{};
    std::string event;
    std::optional<sys_micros> since, was_due_at;  // of outages: when it was set, and due at first
  };
  std::map<transition::timer_kind, put_off> put_off_timers;
  std::unordered_map<std::string, storage::key_row> keys;
  // Under which key what was signed came first, beside what is in `keys`.
  std::map<sha256_digest, std::string> signed_as;
  // What was registered, as corrections have left it: read where there are some, and for those who change it.
  std::optional<storage::intent_row> intent;
  // States of its items, for who changes its workflow; nullopt: not read.
  std::optional<std::vector<std::string>> item_states;
  std::map<std::string, item_in_hand, std::less<>> items;
  // Of all its items, where some work speaks of one; moved on with them.
  transition::item_counts items_by_state;
  // How many of its reviews are open, where somebody acts on one.
  std::int64_t reviews_open = 0;
};

// A callback that could not be understood, as it is in the table or will be.
struct failed_in_hand {
  storage::failed_row row;
  bool created = false;
  std::int32_t times = 0;
  // What is left of it, once that is looked at; of one that this batch makes, empty: all.
  std::vector<left_part> left;
  // Something else is left of it than the row says.
  bool relisted = false;
  // Replayed in this batch, with something left.
  bool tried = false;
  // Done in this batch: replayed, discarded, or sent again and understood.
  bool closed = false;
};

// The key under which these signed contents came first, while they could not be understood; nullopt: under this one, or nothing
// is known of them. Anybody may write another key beside them.
std::optional<std::string> first_key_of(const callback& c, const storage::failed_row& failed);

// Under which a failed callback is kept and found: provider, SHA-256 of the body, callback::key_beside.
using failed_key = std::tuple<std::string, sha256_digest, std::string>;
failed_key failed_key_of(const callback& c);
storage::failed_name failed_name_of(const callback& c);

// What `signed_of_it` is with the parts of the key that `c` has: as callback::signed_digest.
sha256_digest signed_with_key(const callback& c, const sha256_digest& signed_of_it);

// A review that is there already or will be, and how often it was seen again.
struct review_in_hand {
  storage::known_review row;
  std::int32_t times = 0;
};

struct parked_in_hand {
  storage::parked_row row;
  std::vector<storage::identity_name> matched;
  std::vector<item_news> items;
  bool applied = false;
  // Keys and reviews of the operations that it may be meant for have been read.
  bool keys_read = false;
};

// Whether some of its items could not be understood: what was left of it waits with the failed callbacks.
bool has_failed_items(const std::vector<item_news>& items);

// The content of the review that a state which lasts too long is: one for each time that it is entered.
sha256_digest overdue_digest(const storage::operation_row& o);

std::vector<storage::identity_name> names_of(const registration& r);
std::vector<storage::identity_name> names_of(const callback& c);

class found {
 public:
  // `works` and `workflows` outlive it. `careful`: a retry after a lost race, which also looks whether request IDs that it
  // wants to insert are there already.
  found(const std::vector<const work*>& works, workflow_cache& workflows, bool careful);

  // As plan's.
  void append_first_look(storage::checked_pipeline& to);
  void take_first_look(std::vector<postgres::rows>& answers, std::size_t at);
  bool append_next_look(storage::checked_pipeline& to);
  result<void> take_next_look(std::vector<postgres::rows>& answers, std::size_t at);

  // nullptr: not in hand, so busy or absent.
  operation_in_hand* find(std::string_view request_id);
  operation_in_hand* find_for(const callback& c);
  // Whether it is there, whoever holds it.
  bool exists(std::string_view request_id) const;
  bool exists_at(std::string_view request_id, std::string_view provider) const;
  // What a callback means that finds no operation in hand.
  enum class stranger {
    unknown,    // nobody registered it
    busy,       // somebody else holds its operation
    elsewhere,  // its request ID is another provider's (R35)
  };
  stranger meaning_of(const callback& c) const;
  // Whether these names are locked by this transaction: what they mean cannot change under it.
  bool may_meet(const std::vector<storage::identity_name>& names) const;
  // Whether every reference that what waits under these names would bring is locked by this transaction.
  bool may_apply(std::string_view provider, std::string_view request_id, const std::vector<storage::identity_name>& names) const;
  static bool waits_for(const storage::parked_row& p, std::string_view provider, std::string_view request_id);
  std::vector<storage::identity_name> unknown_references(std::string_view provider,
                                                         const std::vector<std::string>& references) const;
  const storage::alias_row* find_alias(std::string_view provider, std::string_view alias) const;
  // The claim that another operation of its provider has on its key, where a key means one thing for all of them.
  const storage::key_row* foreign_claim(const callback& c, const operation_id& o) const;
  const storage::client_key_row* find_client_key(std::string_view client, std::string_view key) const;
  // A review that this batch acts on; nullptr: there is none.
  storage::acted_review* find_review(review_id id);

  // nullptr: it has no such item.
  static item_in_hand* find_item(operation_in_hand& o, std::string_view item_id);

  // What this batch makes is found by the rest of it.
  operation_in_hand& add_operation(storage::operation_row row);
  void add_alias(storage::alias_row row);
  void add_client_key(storage::client_key_row row);

  // Looked up, and moved on by the decisions.
  std::deque<operation_in_hand> operations;
  std::map<failed_key, failed_in_hand> failed;
  // By operation, kind, content and, for conflicts, key.
  std::map<std::tuple<operation_id, std::string, sha256_digest, std::string>, review_in_hand> reviews;
  // In the order in which they are applied: what was taken before what conflicted with it, each by arrival. IDs alone are
  // no order between replicas.
  std::map<std::pair<bool, delivery_id>, parked_in_hand> parked;
  // Keys of the scope [provider, key] by provider and key, whatever operation holds them.
  std::map<std::pair<std::string, std::string>, storage::key_row> provider_claims;
  // Parked callbacks whose age is to be reviewed, as far as they are still there.
  std::map<delivery_id, storage::old_parked> old_parked;
  // There are failed callbacks at all.
  bool any_failed = false;
  // Of operations that somebody wants to retry: the latest look-up ahead of that.
  std::map<operation_id, storage::retry_look_up> retries;
  // Timers of operations in hand that something has run out for, and the downtimes since the oldest of them was set.
  std::map<std::pair<operation_id, transition::timer_kind>, storage::timer_row> timers;
  std::vector<storage::downtime_row> downtimes;

 private:
  const std::vector<const work*>& works_;
  workflow_cache& workflows_;
  bool careful_;

  // What has to be looked up, unique.
  std::vector<std::string_view> request_ids_;
  std::vector<storage::alias_name> aliases_, lock_aliases_;
  std::vector<storage::key_name> keys_;
  std::vector<storage::provider_key_name> provider_keys_;
  std::vector<storage::client_key_name> client_keys_;
  std::vector<storage::failed_name> failed_names_;
  std::vector<std::string_view> missing_;
  std::vector<std::int64_t> unknown_workflows_;
  std::vector<std::pair<operation_id, std::int32_t>> intents_;
  std::vector<operation_id> item_states_;
  std::vector<storage::operation_key_name> alias_keys_;
  std::vector<storage::signed_name> signed_names_;
  std::vector<storage::review_name> conflicts_;
  std::vector<storage::item_name> item_names_;
  std::vector<operation_id> counted_;
  // What the names above borrow.
  std::deque<std::string> first_keys_;
  std::vector<storage::failed_name> failed_later_;
  std::vector<storage::identity_name> meeting_, learning_;
  std::vector<std::string_view> rematched_;
  std::vector<review_id> acted_on_;
  std::vector<operation_id> acting_for_;
  std::vector<delivery_id> growing_old_;
  std::vector<operation_id> running_out_, retried_;
  // What a statement of a look asked for, in the order in which its answers come.
  enum class look {
    meet,           // names that somebody else holds
    lock,           // operations by request ID
    lock_alias,     // operations by reference
    aliases,        // what references mean
    keys,           // idempotency keys, by request ID
    provider_keys,  // idempotency keys of a whole provider
    client_keys,    // idempotency keys of the API
    failed,         // failed callbacks of these bytes
    failed_signed,  // what was signed of them
    any_failed,     // whether there are failed callbacks at all
    parked,         // what waits under these names
    parked_of,      // what waits for an operation that exists
    existing,       // request IDs that are there, whoever holds them
    workflows,      // tables that this replica has not read yet
    intents,        // what was registered, as corrections have left it
    item_states,    // in which states items of an operation are
    alias_keys,     // idempotency keys, by operation
    signed_keys,    // idempotency keys, by what was signed
    signed_contents,
    reviews,        // reviews of the same content, or the same signed bytes
    items,          // items that some work speaks of
    item_counts,    // how many items are in which state
    acted_reviews,  // reviews that somebody acts on
    open_reviews,   // how many reviews of an operation are open
    old_parked,     // what has waited too long
    retries,        // what providers said ahead of retries
    timers,         // what has run out, as it stands under the lock
    downtimes,      // when intake was down meanwhile
  };
  void take(look what, const postgres::rows& from);
  void take_keys();
  void want(const callback& c);
  void plan_next_look();
  void plan_parked_look();
  void plan_parked_references();
  void plan_items(const operation_in_hand& o, const std::vector<item_news>& items, const sha256_digest& content);
  int looks_ = 1;
  std::vector<look> first_look_, next_look_;

  std::unordered_map<std::string_view, operation_in_hand*> by_request_id_;
  std::map<operation_id, operation_in_hand*> by_id_;
  std::map<review_id, storage::acted_review> acted_reviews_;
  std::vector<storage::existing_row> existing_;
  std::vector<storage::key_row> key_rows_;
  // Lock keys that were tried and not obtained, and all that were tried; sorted.
  std::vector<std::int64_t> refused_locks_, tried_locks_;
  std::map<std::pair<std::string, std::string>, storage::alias_row, std::less<>> alias_rows_;
  std::map<std::pair<std::string, std::string>, storage::client_key_row, std::less<>> client_key_rows_;
};

}  // namespace recibo::record
