// Statements between two syncs: all or nothing, one round trip (libpq pipeline mode). Knows none of our tables.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/arrays.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::postgres {

// A named statement; prepared on a connection the first time it runs there. Types are given, so that nothing is guessed.
// Statements are constants with static lifetime: `inline const statement lock{"lock_operations", "SELECT …", {oid::text_array}};`
// An empty name is sent unprepared (one-off text, for example in migrations and tests).
struct statement {
  std::string name;
  std::string sql;
  std::vector<std::uint32_t> types;
};

// Values for one execution, in order; all in binary format.
class parameters {
 public:
  parameters& text(std::string_view v);
  parameters& text(const std::string& v) { return text(std::string_view(v)); }
  parameters& text(const char* v) { return text(std::string_view(v)); }
  parameters& text(const std::optional<std::string>& v) { return v ? text(std::string_view(*v)) : null(); }
  parameters& bytes(std::string_view v) { return text(v); }
  parameters& int8(std::int64_t v);
  parameters& int4(std::int32_t v);
  parameters& boolean(bool v);
  parameters& time(sys_micros at);
  parameters& time(const std::optional<sys_micros>& at) { return at ? time(*at) : null(); }
  parameters& jsonb(std::string_view json);
  parameters& null();
  parameters& array(binary_array&& a);
  template <class Tag>
  parameters& uuid(const uuid_of<Tag>& id) {
    return text(id.binary());
  }
  std::span<const std::optional<std::string>> values() const noexcept { return values_; }

 private:
  std::vector<std::optional<std::string>> values_;
};

// Rows of one statement, in binary format. Owns the result; string_views borrow from it.
class rows {
 public:
  rows();
  explicit rows(void* pg_result);  // takes ownership of a PGresult*
  ~rows();
  rows(rows&&) noexcept;
  rows& operator=(rows&&) noexcept;

  int size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  // Column by position, from 0. Asking for the wrong type is a broken invariant and aborts.
  bool is_null(int row, int column) const noexcept;
  std::string_view text(int row, int column) const noexcept;  // text, bytea, jsonb (without its version byte: use text casts)
  std::string string(int row, int column) const { return std::string(text(row, column)); }
  std::optional<std::string> text_or_null(int row, int column) const;
  std::int64_t int8(int row, int column) const noexcept;
  std::int32_t int4(int row, int column) const noexcept;
  bool boolean(int row, int column) const noexcept;
  sys_micros time(int row, int column) const noexcept;
  std::optional<sys_micros> time_or_null(int row, int column) const noexcept;
  std::optional<std::int64_t> int8_or_null(int row, int column) const noexcept;
  template <class Id>
  Id id(int row, int column) const noexcept {
    Id out;
    const auto bytes = text(row, column);
    if (bytes.size() == out.bytes.size()) std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(out.bytes.data()));
    return out;
  }
  // The command tag, for example "COMMIT" or "INSERT 0 3", and the count in it (0 when there is none).
  std::string_view tag() const noexcept;
  std::int64_t affected() const noexcept;

 private:
  struct deleter {
    void operator()(void* r) const noexcept;
  };
  std::unique_ptr<void, deleter> result_;
};

// What the server said when it refused.
struct server_error {
  std::string sqlstate;
  std::string constraint;  // name of the constraint, where there is one
  std::string message;     // the server's text: never for a caller; in class 22 it quotes values, so not for the log either
};

// What came of one run. Exactly one of three: `ok()`, refused by the server, or the connection lost.
struct outcome {
  std::vector<rows> answers;            // one per statement, in order, as far as they came
  std::optional<server_error> refused;  // the statement at answers.size() failed; the rest was skipped
  bool lost = false;                    // no connection any more; it must be closed and reopened
  bool sync_sent = false;               // with `lost`: the server may have done it all: uncertain
  bool timed_out = false;               // with `lost`: our deadline passed
  bool noticed = false;                 // a NOTICE or WARNING came within the pipeline (write path, rule 8)
  std::string lost_why;                 // for the log
  bool ok() const noexcept { return !refused && !lost; }
};

class pipeline {
 public:
  // `what` must outlive the run.
  pipeline& add(const statement& what, parameters with = {});
  struct step {
    const statement* what;
    parameters with;
  };
  std::span<const step> steps() const noexcept { return steps_; }
  bool empty() const noexcept { return steps_.empty(); }

 private:
  std::vector<step> steps_;
};

}  // namespace recibo::postgres
