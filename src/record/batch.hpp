// One batch of work between lock and commit: what to look up, what to decide, what to write. No I/O here: it fills
// pipelines and reads their answers, so that the writer is all that waits (write path, "Shape").
//
//   first look     lock the operations, read keys, aliases, failed callbacks         one round trip
//   next looks     only what the first left open: busy or absent, older workflows    none, mostly
//   decide         in order of arrival, against what the previous one left (rule 4)
//   writes         every row, one statement a table; the caller adds COMMIT
#pragma once

#include "plan.hpp"
#include "recibo/evidence/audit_chain.hpp"
#include "recibo/record/work.hpp"
#include "recibo/storage/deliveries.hpp"
#include "recibo/storage/evidence.hpp"
#include "recibo/storage/operations.hpp"
#include "recibo/storage/parked.hpp"
#include "workflow_cache.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace recibo::record {

class batch final : public plan {
 public:
  // `works` in order of arrival; they must outlive the batch. `careful`: a retry after a lost race, which also looks
  // whether request IDs that it wants to insert are there already.
  batch(std::vector<const work*> works, workflow_cache& workflows, bool careful);

  void append_first_look(storage::checked_pipeline& to) override;
  void take_first_look(std::vector<postgres::rows>& answers, std::size_t at) override;
  bool append_next_look(storage::checked_pipeline& to) override;
  result<void> take_next_look(std::vector<postgres::rows>& answers, std::size_t at) override;
  void decide(sys_micros at) override;
  void append_writes(storage::checked_pipeline& to) override;
  void committed() override;
  const std::vector<verdict>& verdicts() const noexcept override { return verdicts_; }

 private:
  // An operation that is locked by this transaction, or made by it.
  struct in_hand {
    storage::operation_row row;
    std::int32_t locked_revision = 0;
    bool created = false, changed = false;
    // Work for it was found busy in this batch: what comes later for it waits too, so that its order is kept.
    bool blocked = false;
    const transition::workflow* table = nullptr;
    std::unordered_map<std::string, storage::key_row> keys;
  };
  // A callback that could not be understood, as it is in the table or will be.
  struct failed_in_hand {
    storage::failed_row row;
    bool created = false;
    std::int32_t times = 0;
  };

  in_hand* find(std::string_view request_id);
  in_hand* find_for(const callback& c);
  const transition::workflow& table_of(in_hand& o, const config::settings& settings);
  bool exists(std::string_view request_id) const;
  bool exists_at(std::string_view request_id, std::string_view provider) const;
  // Whether the names of a registration, or the references that would be learned, are locked by this transaction.
  bool may_meet(const std::vector<storage::identity_name>& names) const;
  std::vector<storage::identity_name> names_of(const registration& r) const;
  std::vector<storage::identity_name> names_of(const callback& c) const;
  std::vector<storage::identity_name> unknown_references(std::string_view provider,
                                                         const std::vector<std::string>& references) const;
  const storage::alias_row* find_alias(std::string_view provider, std::string_view alias) const;
  const storage::client_key_row* find_client_key(std::string_view client, std::string_view key) const;

  void decide_callback(const callback& c, verdict& v);
  // What the table and the key say of it as things stand; changes nothing.
  transition::decision judge(const callback& c, in_hand& o);
  // Whether its references may be learned: not from what merges nothing, a conflict or a repetition (K04). What a person
  // has to look at is authentic all the same: whose reference it is may be believed before what it says.
  bool teaches(const callback& c, in_hand& o);
  // `waited`: it was parked, and its delivery is on record already.
  void decide_known(const callback& c, in_hand& o, verdict& v, const storage::parked_row* waited);
  void decide_failed(const callback& c, verdict& v);
  void decide_unmatched(const callback& c, verdict& v);
  // `unmatched: register`.
  void decide_unregistered(const callback& c, verdict& v, bool of_another_provider);
  void decide_duplicate(const callback& c, in_hand& o, storage::key_row& claim, verdict& v, const storage::parked_row* waited);
  void decide_conflict(const callback& c, in_hand& o, const storage::key_row& claim, verdict& v,
                       const storage::parked_row* waited);
  void decide_registration(const registration& r, verdict& v);
  void decide_event(const event& e, verdict& v);
  void decide_payload_access(const payload_access& p, verdict& v);
  void decide_rematch(const rematch& r, verdict& v);
  in_hand& create(const registration& r);
  // `unmatched: register`: the callback's own operation (R11).
  in_hand& create_for(const callback& c, const std::string& request_id);
  // Whether every reference that what waits under these names would bring is locked by this transaction.
  bool may_apply(std::string_view provider, std::string_view request_id, const std::vector<storage::identity_name>& names) const;
  bool waits_for(const storage::parked_row& p, std::string_view provider, std::string_view request_id) const;
  // Applies what waits for the operation under these names (all of it, when empty), oldest first.
  void apply_parked(in_hand& o, const std::shared_ptr<const config::settings>& settings,
                    std::vector<storage::identity_name> names);
  // Learns references; returns the one that belongs to another operation, if any.
  std::optional<std::string> taken_reference(const std::vector<std::string>& references, const in_hand& o) const;
  void learn(const std::vector<std::string>& references, in_hand& o);

  // Writers of single facts. Each moves the operation's chain, sequence and revision on.
  void record_delivery(const callback& c, in_hand& o, std::string_view disposition, int status, delivery_id payload,
                       const transition::move* taken, const storage::parked_row* waited);
  void open_review(const callback& c, in_hand& o, std::string_view kind, const storage::key_row* first, std::string detail);
  std::int32_t notify(const config::settings& settings, in_hand& o, std::string_view type);
  void append_audit(in_hand& o, const evidence::audit_fact& fact, const std::optional<delivery_id>& delivery);
  void claim_key(const callback& c, in_hand& o, transition::disposition d, int status, const std::optional<std::string>& body);
  outcome outcome_of(const in_hand& o) const;

  std::vector<const work*> works_;
  std::vector<verdict> verdicts_;
  workflow_cache& workflows_;
  bool careful_;
  sys_micros at_{};

  // What has to be looked up, unique.
  std::vector<std::string_view> request_ids_;
  std::vector<storage::alias_name> aliases_, lock_aliases_;
  std::vector<storage::key_name> keys_;
  std::vector<storage::client_key_name> client_keys_;
  std::vector<storage::failed_name> failed_names_;
  std::vector<std::string_view> missing_;
  std::vector<std::int64_t> unknown_workflows_;
  std::vector<storage::operation_key_name> alias_keys_;
  std::vector<storage::review_name> conflicts_;
  std::vector<storage::identity_name> meeting_, learning_;
  std::vector<std::string_view> rematched_;
  enum class look {
    meet,
    lock,
    lock_alias,
    aliases,
    keys,
    client_keys,
    failed,
    any_failed,
    parked,
    parked_of,
    existing,
    workflows,
    alias_keys,
    reviews
  };
  void take(look what, const postgres::rows& from);
  void take_keys();
  void plan_next_look();
  void plan_parked_look();
  void plan_parked_references();
  int looks_ = 1;
  std::vector<look> first_look_, next_look_;

  // What was found.
  std::deque<in_hand> operations_;
  std::unordered_map<std::string_view, in_hand*> by_request_id_;
  std::map<operation_id, in_hand*> by_id_;
  std::vector<storage::existing_row> existing_;
  std::vector<storage::key_row> key_rows_;
  // Lock keys that were tried and not obtained, and all that were tried; sorted.
  std::vector<std::int64_t> refused_locks_, tried_locks_;
  struct parked_in_hand {
    storage::parked_row row;
    std::vector<storage::identity_name> matched;
    bool applied = false;
    // Keys and reviews of the operations that it may be meant for have been read.
    bool keys_read = false;
  };
  // In the order in which they are applied: what was taken before what conflicted with it, each by arrival. IDs alone are
  // no order between replicas.
  std::map<std::pair<bool, delivery_id>, parked_in_hand> parked_;
  std::deque<callback> parked_callbacks_;
  std::map<std::pair<std::string, std::string>, storage::alias_row, std::less<>> alias_rows_;
  std::map<std::pair<std::string, std::string>, storage::client_key_row, std::less<>> client_key_rows_;
  std::map<std::pair<std::string, sha256_digest>, failed_in_hand> failed_;
  // By operation, kind, content and, for conflicts, key; with how often each was seen again.
  std::map<std::tuple<operation_id, std::string, sha256_digest, std::string>, std::pair<storage::known_review, std::int32_t>>
      reviews_;
  bool any_failed_ = false;

  // What is written.
  storage::new_operations new_operations_;
  storage::changed_operations changed_operations_;
  storage::new_registrations new_registrations_;
  storage::new_aliases new_aliases_;
  storage::new_items new_items_;
  storage::new_keys new_keys_;
  std::map<std::pair<operation_id, std::string>, std::int32_t> repeated_keys_;
  storage::new_client_keys new_client_keys_;
  storage::new_deliveries new_deliveries_;
  storage::new_payloads new_payloads_;
  storage::new_transitions new_transitions_;
  storage::new_audit new_audit_;
  storage::new_notifications new_notifications_;
  storage::new_reviews new_reviews_;
  storage::new_payload_accesses new_payload_accesses_;
  storage::applied_parked applied_parked_;
  std::vector<storage::failed_name> understood_;
  std::map<std::int64_t, const transition::workflow*> new_workflows_;
};

}  // namespace recibo::record
