#include "server_text.hpp"
#include "session.hpp"

#include <string>

namespace recibo::postgres {

namespace asio = boost::asio;

namespace {

void count_notice(void* of, const PGresult* notice) {
  auto& s = *static_cast<session*>(of);
  ++s.notices;
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
  if (severity && (std::string_view(severity) == "FATAL" || std::string_view(severity) == "PANIC"))
    s.farewell = text ? text : severity;
  log_notice(notice);
}

PGconn* start(const std::vector<std::pair<std::string, std::string>>& options) {
  std::vector<const char*> keywords, values;
  for (const auto& [keyword, value] : options) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  return PQconnectStartParams(keywords.data(), values.data(), 0);
}

}  // namespace

asio::awaitable<attempt> connect(asio::any_io_executor executor, const conninfo& where, target at, std::string session_attrs,
                                 deadline until) {
  attempt out;
  auto s = std::make_unique<session>(executor);
  s->pg = start(where.options_for(at, session_attrs));
  if (!s->pg || PQstatus(s->pg) == CONNECTION_BAD) {
    log_server_text("no database connection", s->pg ? one_line(PQerrorMessage(s->pg)) : "out of memory");
    co_return out;
  }
  PQsetNoticeReceiver(s->pg, count_notice, s.get());

  s->io.arm(until);
  auto next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK) {
    s->io.watch(PQsocket(s->pg));
    auto woken = wake::ready;
    if (next == PGRES_POLLING_READING) {
      woken = co_await s->io.readable();
    } else {
      woken = co_await s->io.writable();
    }
    if (woken != wake::ready) {
      if (woken == wake::expired) log_server_text("no database connection", "no answer in time");
      co_return out;
    }
    next = PQconnectPoll(s->pg);
    if (next == PGRES_POLLING_FAILED) {
      const auto text = one_line(PQerrorMessage(s->pg));
      out.answered = text.find("FATAL") != std::string::npos || text.find("session is") != std::string::npos;
      log_server_text("no database connection", text);
      co_return out;
    }
  }
  s->io.disarm();
  s->io.watch(PQsocket(s->pg));
  if (PQsetnonblocking(s->pg, 1) != 0 || PQenterPipelineMode(s->pg) != 1) {
    log_server_text("no database connection", one_line(PQerrorMessage(s->pg)));
    co_return out;
  }
  out.reached = std::move(s);
  co_return out;
}

}  // namespace recibo::postgres
