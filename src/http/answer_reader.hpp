// Bytes of a connection → one answer, strictly: one reading of where it ends, and in doubt an error. The counterpart of
// reader.hpp. Pure: no I/O and no clock.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/http/client.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace recibo::http {

class answer_reader {
 public:
  struct limits {
    std::size_t head = 16 << 10, body = 64 << 10;  // bytes
    bool cut_body = false;                         // see outbound_rules
  };

  enum class state {
    head,     // the status line and headers are not complete
    body,     // they are, the body is not
    done,     // the answer is complete, or cut
    refused,  // see why()
  };

  // `to_head`: the request was HEAD, and whatever the headers say, no body follows.
  answer_reader(limits bounds, bool to_head);
  ~answer_reader();
  answer_reader(const answer_reader&) = delete;
  answer_reader& operator=(const answer_reader&) = delete;

  // Takes what it can from the front of `buffer` and erases it there. Interim answers (1xx) are read over.
  // permanent::answer_too_large, answer_malformed in why() once it is `refused`.
  void read(std::string& buffer);
  // The connection has ended. `clean`: by its end, not by a failure, so that a body without a length is complete.
  // uncertain::answer_unknown in why() when the answer is not.
  void end(bool clean);

  state at() const noexcept;
  const error& why() const noexcept;
  // From `done` on.
  outbound_answer& answer() noexcept;
  // Whether another answer may follow on this connection.
  bool keep_alive() const noexcept;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::http
