// The transaction that parks callbacks whose operation is not known yet (R11, write path rule 3): all names locked in one
// statement, looked up again in the next, and only then parked. Registration takes the same locks. No I/O.
#pragma once

#include "plan.hpp"
#include "recibo/storage/deliveries.hpp"
#include "recibo/storage/operations.hpp"
#include "recibo/storage/parked.hpp"
#include "recibo/storage/registrations.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace recibo::record {

class park final : public plan {
 public:
  // Callbacks, alone or several of one request, in order of arrival; they must outlive the plan. Of several, those whose
  // operation is known are left to the batches.
  explicit park(std::vector<const work*> works);

  void append_first_look(storage::checked_pipeline& to) override;
  void take_first_look(std::vector<postgres::rows>& answers, std::size_t at) override;
  bool append_next_look(storage::checked_pipeline&) override { return false; }
  result<void> take_next_look(std::vector<postgres::rows>&, std::size_t) override { return {}; }
  void decide(sys_micros at) override;
  void append_writes(storage::checked_pipeline& to) override;
  void committed(observe::metrics*) override {}
  const std::set<std::string, std::less<>>& told() const noexcept override { return nobody_; }
  const std::vector<verdict>& verdicts() const noexcept override { return verdicts_; }

 private:
  struct waiting {
    storage::parked_row row;
    std::int32_t times = 0;
  };
  // Whether the two may speak of one operation: they share a name.
  static bool share_a_name(const callback& c, const storage::parked_row& p);
  // Whether this was signed of it, or of a repetition of it.
  static bool was_signed(const storage::parked_row& p, const sha256_digest& digest);
  // What waits already and is this callback again: the same signed bytes, where the key is not signed, or key and content.
  waiting* known_as(const callback& c);
  void take_parked(std::vector<storage::parked_row> found);
  // Whether as many wait already as its provider's `parking` lets, under one of its names.
  bool is_full(const callback& c) const;
  // What is looked up for a callback, and what that found.
  struct wanted {
    const callback* what = nullptr;
    std::vector<std::int64_t> locks;
  };
  enum class meaning {
    locked,  // somebody else holds one of its names
    known,   // its operation has come
    absent,
  };
  void want(const callback& c);
  meaning meaning_of(const wanted& w) const;
  void decide_group(const callback_group& g, std::size_t& at_wanted, verdict& v, sys_micros at);
  // A replay: nothing is parked whose failed callback is done. Closes it, unless it stays.
  void decide_replay(const callback& c, verdict& v, sys_micros at);
  // The bytes of these callbacks may have failed before: they are understood now.
  void close_resent(const callback& c, const outcome& decided, sys_micros at);
  // The same bytes came before and could not be understood: all that was signed of them means what waits now.
  void remember_failed(const callback& c, storage::parked_row& p, sys_micros at);
  outcome decide_one(const callback& c, sys_micros at);
  // `payload`: of an earlier delivery with the same bytes; nullopt: it is kept.
  void record_delivery(const callback& c, std::string_view disposition, int status, std::optional<delivery_id> payload);
  delivery_id keep_payload(const callback& c);
  // Its delivery is on record already.
  storage::replay_id record_replay(const callback& c, std::string_view disposition, sys_micros at);
  // Of the replay in hand: nothing will be left of its failed callback.
  bool replay_closes_ = true;

  // What is parked is no news.
  const std::set<std::string, std::less<>> nobody_;
  std::vector<const work*> works_;
  std::vector<verdict> verdicts_;
  std::vector<wanted> wanted_;  // in the order of the works, and of their parts
  // The request whose events are being parked; nullptr: it is one callback.
  const callback_group* group_ = nullptr;
  std::optional<delivery_id> group_payload_;
  std::vector<storage::parked_name> names_;
  std::vector<storage::signed_parked_name> signed_;
  // How many wait under each name, with those that this plan adds.
  std::map<storage::identity_name, std::int64_t> counts_;
  std::vector<std::int64_t> locks_, refused_;
  std::vector<std::string_view> request_ids_;
  std::vector<storage::alias_name> aliases_;
  std::vector<storage::existing_row> existing_;
  std::vector<storage::alias_row> known_aliases_;
  // By provider and key: what is parked under one of the names asked for, or will be.
  std::map<std::pair<std::string, std::string>, std::deque<waiting>> parked_;

  // Of replays, and of what is known by what was signed: what failed of these bytes, and which of it is still there, locked.
  std::vector<storage::failed_name> failed_names_;
  std::vector<storage::failed_row> still_failed_;
  // Which of them were replayed in this plan, with something left.
  std::vector<failed_callback_id> tried_;
  bool any_failed_ = false;

  storage::new_parked new_parked_;
  storage::new_signed_contents new_signed_contents_;
  storage::closed_failed closed_failed_;
  storage::tried_failed tried_failed_;
  storage::resent_failed resent_failed_;
  storage::new_replays new_replays_;
  storage::new_deliveries new_deliveries_;
  storage::new_payloads new_payloads_;
};

}  // namespace recibo::record
