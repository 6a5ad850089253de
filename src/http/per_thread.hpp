// What the listeners of one thread share (decision 10): the bytes in flight, a buffer to read into, the date.
// A service of the io_context, so that every listener on it finds the same one.
#pragma once

#include <boost/asio/execution_context.hpp>

#include <array>
#include <cstddef>
#include <string>

namespace recibo::http {

class per_thread : public boost::asio::execution_context::service {
 public:
  using key_type = per_thread;
  static boost::asio::execution_context::id id;

  explicit per_thread(boost::asio::execution_context& owner) : service(owner) {}

  // Bytes of bodies being read or not yet answered.
  std::size_t in_flight = 0;
  // Filled by a read that does not wait and emptied before anybody else can run, so one is enough for all connections:
  // an idle one holds no buffer.
  std::array<char, 64 << 10> scratch{};

  // Now, as the Date header wants it.
  const std::string& date();

 private:
  void shutdown() override {}

  std::int64_t date_of_ = -1;
  std::string date_;
};

// A share of the bytes in flight, given back at its end.
class reservation {
 public:
  reservation(per_thread& from, std::size_t limit) : from_(from), limit_(limit) {}
  ~reservation() { from_.in_flight -= held_; }
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;

  // Holds `bytes` from now on, if it held less. False, and unchanged, when that would pass the limit.
  bool cover(std::size_t bytes) noexcept {
    if (bytes <= held_) return true;
    if (!fits(bytes)) return false;
    from_.in_flight += bytes - held_;
    held_ = bytes;
    return true;
  }
  // Whether cover(bytes) would succeed now.
  bool fits(std::size_t bytes) const noexcept { return bytes <= held_ || from_.in_flight - held_ + bytes <= limit_; }
  std::size_t held() const noexcept { return held_; }

 private:
  per_thread& from_;
  std::size_t limit_;
  std::size_t held_ = 0;
};

}  // namespace recibo::http
