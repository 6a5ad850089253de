#include "server_text.hpp"

#include "recibo/observe/log.hpp"

#include <chrono>
#include <string>

namespace recibo::postgres {
namespace {

constexpr std::chrono::seconds quiet_time{30};

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == '\n' || c == '\t' || c == '\r';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

void log_server_text(std::string_view event, std::string_view text) {
  // A pool that reconnects every second says the same each time. A thread is a replica of its own (decision 10).
  thread_local std::string last;
  thread_local std::chrono::steady_clock::time_point told;
  const auto at = std::chrono::steady_clock::now();
  const bool again = last == text && at - told < quiet_time;
  log::write(again ? log::level::debug : log::level::warn, event, {{"reason", text}});
  if (again) return;
  last = text;
  told = at;
}

void log_notice(const PGresult* notice) {
  if (!log::enabled(log::level::debug)) return;
  const char* state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
  log::debug("notice of the database", {{"sqlstate", state ? state : ""}, {"text", text ? text : ""}});
}

}  // namespace recibo::postgres
