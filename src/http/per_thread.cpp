#include "per_thread.hpp"

#include "answer.hpp"

#include <chrono>

namespace recibo::http {

boost::asio::execution_context::id per_thread::id;

const std::string& per_thread::date() {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (now != date_of_) {
    date_ = http_date(now);
    date_of_ = now;
  }
  return date_;
}

}  // namespace recibo::http
