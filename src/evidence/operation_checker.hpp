// One operation against its own history, row by row (invariants 2 to 5). Pure: rows in, sentences out.
#pragma once

#include "recibo/evidence/audit_chain.hpp"
#include "recibo/storage/reads_verify.hpp"
#include "recibo/transition/decide.hpp"
#include "recibo/transition/workflow.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::evidence {

class operation_checker {
 public:
  using teller = std::function<void(std::string_view rule, std::string what)>;

  // nullptr where the version is not on record.
  using table_finder = std::function<const transition::workflow*(std::int64_t version_key)>;

  // All that is given outlives it.
  operation_checker(const storage::verify_operation& o, table_finder tables, const storage::horizon& oldest, teller tell);

  // Before the facts: the items of the operation, which its rules are about.
  void begin(const std::vector<storage::verify_item>& items);
  // The audit rows in the order of their sequence; then, once, the end. `items` are those of the operation.
  void next(const storage::verify_fact& f);
  void finish(const std::vector<storage::verify_item>& items);

  std::int64_t retired() const noexcept { return retired_; }

 private:
  struct position {
    std::string state;
    std::int64_t version = 0;
  };

  void check_registration(const std::vector<storage::verify_item>& items);
  void check_accept(const storage::verify_fact& f);
  void check_delivery(const storage::verify_fact& f);
  void check_claim(const storage::verify_fact& f);
  void check_event(const storage::verify_fact& f);
  // Items are in states of other names since this change of the workflow.
  void rename_items(const storage::verify_fact& f);
  void check_workflow_change(const storage::verify_fact& f);
  void check_correction(const storage::verify_fact& f);
  void check_item(const storage::verify_fact& f);
  void check_items(const storage::verify_fact& f);
  void check_review(const storage::verify_fact& f);
  void check_replay(const storage::verify_fact& f);
  // Whether there is a delivery, and it is this provider's with its own payload.
  bool check_received(const storage::verify_fact& f);
  void check_move(const storage::verify_fact& f);
  void check_outbox(const storage::verify_fact& f);
  void follow_chain(const storage::verify_fact& f, const std::optional<sha256_digest>& recomputed);
  std::optional<sha256_digest> recompute(const storage::verify_fact& f);
  void tell_at(const storage::verify_fact& f, std::string_view rule, std::string_view what);

  const storage::verify_operation& operation_;
  table_finder tables_;
  // The version that it lives under at the present fact, and where items begin: under the version of the acceptance.
  std::int64_t workflow_ = 0;
  const transition::workflow* table_;
  std::string initial_;
  // Those of the versions that it got since, by their names now: items may have come under each.
  std::set<std::string> initials_;
  const storage::horizon& oldest_;
  teller tell_;
  chain_checker chain_;
  bool chain_broken_ = false;
  position now_;
  std::map<std::string, position> items_;
  transition::item_counts items_by_state_;
  std::optional<sys_micros> accepted_at_;
  std::int64_t retired_ = 0, corrected_ = 0;
};

}  // namespace recibo::evidence
