// What a sender sends: registrations and the callbacks about them, in proportions that are exact over each thousand
// operations. The competitors' scripts (bench/competitors) compute the same from the same numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace recibo::bench {

enum class step_kind {
  registration,  // POST of an operation
  callback,      // the news that completes it
  duplicate,     // the same bytes again, signed afresh
  late,          // news that was overtaken: out of order
  badly_signed,  // a body whose signature does not fit
};

enum class phase {
  mix,        // registrations and callbacks, one to 1.3
  registers,  // registrations alone
  callbacks,  // callbacks alone, of operations that were registered before
};

struct step {
  step_kind what;
  std::uint64_t user, operation;
};

// The steps of one sender, in order. A callback follows some operations behind its registration, a duplicate some more, so
// that they seldom meet in one transaction by construction.
class stream {
 public:
  // `operations`: how many, 0 for as many as are asked for.
  stream(phase what, std::uint64_t user, std::uint64_t operations) : what_(what), user_(user), operations_(operations) {}

  std::optional<step> next();
  // How many operations it has come to.
  std::uint64_t operations() const { return at_; }

 private:
  void fill();

  phase what_;
  std::uint64_t user_, operations_, at_ = 0;
  std::deque<step> ready_;
};

// Texts of a run: names of operations, bodies of 600 bytes, signatures. Not thread-safe.
class wording {
 public:
  wording(std::string run, std::string secret);

  std::string request_id(const step& s) const;
  std::string key(const step& s) const;
  std::string registration_body(const step& s) const;
  // Always `body_bytes` long.
  std::string callback_body(const step& s) const;
  // Hex of HMAC-SHA-256 over "<timestamp>.<body>", computed for each request.
  std::string signature(const std::string& timestamp, const std::string& body) const;

  static constexpr std::size_t body_bytes = 600;

 private:
  std::string run_, secret_, happened_, earlier_;
};

}  // namespace recibo::bench
