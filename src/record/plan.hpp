// What one transaction of the recorder looks up, decides and writes, without I/O: the writer carries it out.
#pragma once

#include "recibo/postgres/pipeline.hpp"
#include "recibo/record/work.hpp"
#include "recibo/storage/bulk.hpp"
#include "recibo/storage/deliveries.hpp"
#include "recibo/storage/replays.hpp"

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace recibo::observe {
class metrics;
}

namespace recibo::record {

// What became of one piece of work.
struct verdict {
  enum class kind {
    undecided,  // decide() has not been called
    decided,    // `outcome`, once the transaction is committed
    refused,    // `why`; nothing of it is written
    busy,       // somebody else holds what it needs: put it back
    absent,     // its operation is not known and the provider's policy is to park: to the park lane
    known,      // it was to be parked, and its operation has come meanwhile: back to the queue
  };
  kind is = kind::undecided;
  record::outcome outcome;
  error why;
  // For several events of one request that go back to the queue: what has been parked of them, and where the body is kept.
  std::vector<std::optional<record::outcome>> settled;
  std::optional<delivery_id> payload;
};

// Delivery rows that repeat one key; beyond it only the key's counter grows (R27).
inline constexpr std::int32_t duplicates_recorded_max = 100;

// What every row of `deliveries` says of a callback, whatever is decided about it; borrows from `c`.
storage::delivery_row delivery_of(const callback& c);

// The delivery of an event of a request that failed: as what it was when it came. Borrows from both.
storage::delivery_row failed_delivery_of(const callback& c, const storage::failed_row& failed);

// What every row of `replays` says of a callback that is replayed; borrows from `c`.
storage::replay_row replay_of(const callback& c, sys_micros at);

class plan {
 public:
  virtual ~plan() = default;

  virtual void append_first_look(storage::checked_pipeline& to) = 0;
  // `at`: index of the first look's first answer.
  virtual void take_first_look(std::vector<postgres::rows>& answers, std::size_t at) = 0;
  // Called until it says false: nothing more has to be looked at.
  virtual bool append_next_look(storage::checked_pipeline& to) = 0;
  // transient::our_fault   what was found makes no sense
  virtual result<void> take_next_look(std::vector<postgres::rows>& answers, std::size_t at) = 0;
  virtual void decide(sys_micros at) = 0;
  virtual void append_writes(storage::checked_pipeline& to) = 0;
  // After the commit. `counts` may be null.
  virtual void committed(observe::metrics* counts) = 0;
  // The destinations that its notifications are for.
  virtual const std::set<std::string, std::less<>>& told() const noexcept = 0;
  // One for each piece of work, in the order given.
  virtual const std::vector<verdict>& verdicts() const noexcept = 0;
};

}  // namespace recibo::record
