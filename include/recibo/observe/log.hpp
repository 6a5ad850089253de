// Structured logs: one line for each record, JSON or text (contract section 6 `log`, R29, K30).
//   log::info("listening", {{"port", 8080}, {"name", "callbacks"}});
//   {"time":"2026-10-01T10:00:00.000000Z","level":"info","msg":"listening","port":8080,"name":"callbacks"}
// The message is a constant of ours; what came from outside is a field. Foreign text stays data there: it is escaped,
// so that it forges no line and moves no terminal, and cut at `value_limit`. Secrets and payloads are never fields.
// Safe from any thread. Nothing here throws: a record that cannot be written is lost, the request is not.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace recibo::observe::log {

enum class level {
  trace,
  debug,
  info,
  warn,   // somebody should know, nobody must come
  error,  // somebody must look
  off,
};

enum class format { json, text };

enum class stream { standard_output, standard_error };

// Longest text of one field, in bytes; what is longer is cut at a character and ends in "…".
inline constexpr std::size_t value_limit = 1024;

// A name of ours and a value, which is borrowed until the call returns.
struct field {
  using value_type = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  std::string_view name;
  value_type value;

  field(std::string_view n, std::string_view v) : name(n), value(v) {}
  field(std::string_view n, const std::string& v) : name(n), value(std::string_view(v)) {}
  field(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
  field(std::string_view n, bool v) : name(n), value(v) {}
  field(std::string_view n, double v) : name(n), value(v) {}
  template <std::signed_integral T>
  field(std::string_view n, T v) : name(n), value(std::int64_t{v}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) field(std::string_view n, T v) : name(n), value(std::uint64_t{v}) {}
};

using fields = std::initializer_list<field>;

// Sets what is written from now on, and where. Before the first call: info, json, standard error. Commands print their
// results to standard output, so only `serve` logs there.
void init(level least, format how, stream where = stream::standard_error) noexcept;
// "info" and "json" as in the configuration; an unknown word leaves that setting as it is.
void init(std::string_view least, std::string_view how, stream where = stream::standard_error) noexcept;

// Whether a record of this level would be written; for fields that cost something to make.
bool enabled(level at) noexcept;

void write(level at, std::string_view message, fields with = {}) noexcept;

inline void trace(std::string_view message, fields with = {}) noexcept { write(level::trace, message, with); }
inline void debug(std::string_view message, fields with = {}) noexcept { write(level::debug, message, with); }
inline void info(std::string_view message, fields with = {}) noexcept { write(level::info, message, with); }
inline void warn(std::string_view message, fields with = {}) noexcept { write(level::warn, message, with); }
inline void error(std::string_view message, fields with = {}) noexcept { write(level::error, message, with); }

// The line as it would be written, without its end: for tests.
std::string render(format how, level at, std::string_view time, std::string_view message, fields with);

}  // namespace recibo::observe::log

namespace recibo {
// So that every folder writes log::info(…).
namespace log = observe::log;
}  // namespace recibo
