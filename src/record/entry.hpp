// A piece of work on its way through the recorder, and the coroutine that waits for it.
#pragma once

#include "recibo/record/work.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace recibo::record {

using steady_time = std::chrono::steady_clock::time_point;

struct entry {
  entry(const boost::asio::any_io_executor& executor, record::work w, steady_time deadline);

  record::work what;
  steady_time arrived, until;
  // What it is about, so that work for one operation keeps its order: "r" and the request ID, or "a", provider and
  // reference, or "f", provider and digest, or "v" and a review without operation. Empty: nothing that an order matters to.
  std::string identity;
  // Whose share of the queue it takes; empty for registrations and events.
  std::string_view provider;
  // Of the body; what the bound on bytes counts.
  std::size_t bytes = 0;
  // How much it is of a batch: one, and one for each further event or item of a request.
  std::size_t rows = 1;
  // How often its operation was found busy, and how often it went back because the database failed.
  int misses = 0, failures = 0;
  // In a batch now: from here on nobody can say that nothing of it is recorded.
  bool begun = false;
  // A dry run: nothing else may be in its transaction, which is taken back.
  bool alone = false;
  // The sender has been answered: dropped before it enters a batch (write path, rule 9).
  bool abandoned = false;

  std::optional<result<outcome>> answer;
  // Waits until `until`; finish() ends the wait.
  boost::asio::steady_timer wake;

  void finish(result<outcome> a);
};

using entry_ptr = std::shared_ptr<entry>;

// A digest by which a callback is known again when its sender repeats it; nullptr for other work.
const sha256_digest* digest_of(const work& w) noexcept;

}  // namespace recibo::record
