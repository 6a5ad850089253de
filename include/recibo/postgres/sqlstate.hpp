// SQLSTATE → the sender's data, transient, uncertain, or our bug (write path rule 6, style "Errors"). Pure.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/postgres/pipeline.hpp"

namespace recibo::postgres {

enum class fault {
  senders_data,  // class 22, or a CHECK named `…_from_sender`
  transient,     // 40001, 40P01, 55P03, 57014, 57P0x, 25006, class 53, class 08 before the sync was sent
  uncertain,     // the connection lost after the sync was sent, 08007
  race,          // 23505: somebody else was first; named by its constraint
  ours,          // everything else
};

fault classify(const server_error& e) noexcept;
fault classify(const outcome& o) noexcept;  // o must not be ok()

// The error to hand on: transient::database_away or database_busy, uncertain::commit_unknown, transient::our_fault.
// senders_data and race, which only the recorder can judge, become transient::our_fault here. No server text in it.
error to_error(const outcome& o);

}  // namespace recibo::postgres
