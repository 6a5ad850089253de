// The transaction that parks callbacks whose operation is not known yet (R11, write path rule 3): all names locked in one
// statement, looked up again in the next, and only then parked. Registration takes the same locks. No I/O.
#pragma once

#include "plan.hpp"
#include "recibo/storage/deliveries.hpp"
#include "recibo/storage/operations.hpp"
#include "recibo/storage/parked.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace recibo::record {

class park final : public plan {
 public:
  // Callbacks only, in order of arrival; they must outlive the plan.
  explicit park(std::vector<const work*> works);

  void append_first_look(storage::checked_pipeline& to) override;
  void take_first_look(std::vector<postgres::rows>& answers, std::size_t at) override;
  bool append_next_look(storage::checked_pipeline&) override { return false; }
  result<void> take_next_look(std::vector<postgres::rows>&, std::size_t) override { return {}; }
  void decide(sys_micros at) override;
  void append_writes(storage::checked_pipeline& to) override;
  void committed() override {}
  const std::vector<verdict>& verdicts() const noexcept override { return verdicts_; }

 private:
  struct waiting {
    storage::parked_row row;
    std::int32_t times = 0;
  };
  void decide_one(const callback& c, verdict& v, sys_micros at);
  void record_delivery(const callback& c, std::string_view disposition, int status, delivery_id payload);

  std::vector<const callback*> callbacks_;
  std::vector<verdict> verdicts_;
  std::vector<std::vector<std::int64_t>> locks_of_;
  std::vector<std::int64_t> locks_, refused_;
  std::vector<std::string> identities_;
  std::vector<std::string_view> request_ids_;
  std::vector<storage::alias_name> aliases_;
  std::vector<storage::existing_row> existing_;
  std::vector<storage::alias_row> known_aliases_;
  // By provider, identity and key: what is parked, or will be; several when one of them is a conflict.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<waiting>> parked_;

  storage::new_parked new_parked_;
  storage::new_deliveries new_deliveries_;
  storage::new_payloads new_payloads_;
};

}  // namespace recibo::record
