#include "recibo/postgres/sqlstate.hpp"

#include <string_view>

namespace recibo::postgres {
namespace {

bool one_of(std::string_view code, std::initializer_list<std::string_view> list) noexcept {
  for (const auto c : list) {
    if (code == c) return true;
  }
  return false;
}

// The server is going, gone or not the one that writes: another connection may find a better one.
bool server_away(std::string_view code) noexcept {
  return code.starts_with("57P0") || code.starts_with("08") || one_of(code, {"25006", "25P03"});
}

}  // namespace

fault classify(const server_error& e) noexcept {
  const std::string_view code = e.sqlstate;
  // 08007 transaction_resolution_unknown, 40003 statement_completion_unknown.
  if (one_of(code, {"08007", "40003"})) return fault::uncertain;
  // 22P03 is a binary value that the server cannot read. Only this program makes those, never a sender.
  if (code == "22P03") return fault::ours;
  if (code.starts_with("22")) return fault::senders_data;
  if (code == "23514" && std::string_view(e.constraint).ends_with("_from_sender")) return fault::senders_data;
  if (code == "23505") return fault::race;
  if (server_away(code) || code.starts_with("53") || one_of(code, {"40001", "40P01", "55P03", "57014"})) return fault::transient;
  return fault::ours;
}

fault classify(const outcome& o) noexcept {
  if (o.lost) return o.sync_sent ? fault::uncertain : fault::transient;
  return o.refused ? classify(*o.refused) : fault::ours;
}

error to_error(const outcome& o) {
  switch (classify(o)) {
    case fault::uncertain: return {uncertain::commit_unknown, "the connection to the database was lost before it answered"};
    case fault::transient:
      if (o.timed_out) return {transient::database_busy, "the database did not answer in time"};
      if (o.lost || server_away(o.refused->sqlstate)) return {transient::database_away, "the database cannot be reached"};
      return {transient::database_busy, "the database could not serve this now"};
    case fault::senders_data:
    case fault::race:
    case fault::ours: break;
  }
  return {transient::our_fault, "the database refused what this service sent"};
}

}  // namespace recibo::postgres
