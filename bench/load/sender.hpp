// Sends the steps of streams over keep-alive connections and keeps the book of what was answered.
// Closed loop: each sender waits for its answer before it sends the next step, so the load follows the service.
// Open loop: steps fall due at a constant rate and their latency counts from then, whether or not a connection was free, so
// that a stall is seen by everything that it delayed.
#pragma once

#include "connection.hpp"
#include "stream.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace recibo::bench {

struct plan {
  boost::asio::ip::tcp::endpoint callbacks, api;
  std::string callbacks_path, token, secret, run;
  phase what = phase::mix;
  std::uint64_t users = 64;
  std::uint64_t operations = 0;            // of each sender; 0: until the time is over
  std::chrono::milliseconds time{10'000};  // 0: until all operations are through
  double rate = 0;                         // steps a second, of all senders together; 0: closed loop
  std::string book;                        // a file for every accepted ID; empty: none
};

struct report {
  double seconds = 0;
  // "registered", dispositions, "duplicate" for what was replayed, "HTTP <status>", "unanswered".
  std::map<std::string, std::uint64_t> answers;
  std::uint64_t registrations = 0, callbacks = 0;  // accepted: answered 2xx
  std::vector<std::uint32_t> latencies_us;         // of accepted callbacks, unsorted
};

class load {
 public:
  explicit load(plan how);
  ~load();
  load(const load&) = delete;
  load& operator=(const load&) = delete;

  // Blocks until everything that was sent is answered. False when no connection could be opened.
  bool run();
  const report& result() const { return report_; }

 private:
  using instant = std::chrono::steady_clock::time_point;
  struct sender {
    std::uint64_t number;
    connection callbacks, api;
    stream steps;
  };

  void go_on(sender& who);
  void send(sender& who, const step& what, instant due);
  std::string request(const step& what);
  void take(const step& what, const answer& got, instant due);
  void fall_due();
  void hand_out();

  plan how_;
  boost::asio::io_context context_{1};
  boost::asio::steady_timer clock_;
  wording words_;
  std::vector<std::unique_ptr<sender>> senders_;
  std::FILE* book_ = nullptr;
  report report_;
  instant began_, last_;
  // Open loop.
  stream scheduled_;
  std::uint64_t fallen_due_ = 0;
  std::deque<std::pair<step, instant>> due_;
  std::vector<sender*> idle_;
  bool over_ = false;
};

}  // namespace recibo::bench
