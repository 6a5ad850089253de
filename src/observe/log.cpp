#include "recibo/observe/log.hpp"

#include "recibo/core/clock.hpp"
#include "recibo/core/json.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <memory>

namespace recibo::observe::log {
namespace {

std::string_view word(level at) noexcept {
  switch (at) {
    case level::trace: return "trace";
    case level::debug: return "debug";
    case level::info: return "info";
    case level::warn: return "warn";
    case level::error: return "error";
    case level::off: return "off";
  }
  return "info";
}

// Both streams live as long as the process, so that a log call in a static destructor still has one.
spdlog::sinks::sink& sink_of(stream where) {
  static auto* const sinks = [] {
    auto* made = new std::array<std::unique_ptr<spdlog::sinks::sink>, 2>{std::make_unique<spdlog::sinks::stdout_sink_mt>(),
                                                                         std::make_unique<spdlog::sinks::stderr_sink_mt>()};
    // The line is ours from the first character to the last; spdlog only writes it, whole, under its lock.
    for (auto& sink : *made) sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    return made;
  }();
  return *(*sinks)[where == stream::standard_output ? 0 : 1];
}

std::atomic<level> least_level{level::info};
std::atomic<format> line_format{format::json};
std::atomic<stream> target{stream::standard_error};

// C1 controls (U+0080 to U+009F, terminals obey some of them) and the Unicode line ends U+0085, U+2028 and U+2029 are
// valid in a JSON string; in a log they are written as escapes. `from` is where the valid UTF-8 to look at begins.
void escape_unicode_controls(std::string& out, std::size_t from) {
  for (std::size_t i = from; i < out.size(); ++i) {
    const auto at = [&](std::size_t k) { return static_cast<unsigned char>(k < out.size() ? out[k] : 0); };
    if (at(i) == 0xc2 && at(i + 1) >= 0x80 && at(i + 1) <= 0x9f) {
      static constexpr std::string_view digits = "0123456789abcdef";
      const unsigned char c = at(i + 1);
      out.replace(i, 2, {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]});
    } else if (at(i) == 0xe2 && at(i + 1) == 0x80 && (at(i + 2) == 0xa8 || at(i + 2) == 0xa9)) {
      out.replace(i, 3, at(i + 2) == 0xa8 ? "\\u2028" : "\\u2029");
    }
  }
}

void append_text(std::string& out, std::string_view text) {
  const std::size_t from = out.size();
  if (text.size() <= value_limit) {
    append_json_string(out, text);
  } else {
    std::size_t end = value_limit;
    // Back to the start of the character that the limit falls into; broken text has no such start nearby.
    while (end > value_limit - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    append_json_string(out, text.substr(0, end));
    out.insert(out.size() - 1, "…");
  }
  escape_unicode_controls(out, from);
}

struct value_writer {
  std::string& out;

  void operator()(std::string_view v) const { append_text(out, v); }
  void operator()(bool v) const { out += v ? "true" : "false"; }
  void operator()(double v) const {
    // JSON knows neither infinity nor NaN.
    if (std::isfinite(v)) {
      number(v);
    } else {
      out += std::isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"";
    }
  }
  void operator()(std::int64_t v) const { number(v); }
  void operator()(std::uint64_t v) const { number(v); }

  template <class T>
  void number(T v) const {
    std::array<char, 32> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), v).ptr;
    out.append(text.data(), end);
  }
};

spdlog::level::level_enum level_of(level at) noexcept {
  switch (at) {
    case level::trace: return spdlog::level::trace;
    case level::debug: return spdlog::level::debug;
    case level::info: return spdlog::level::info;
    case level::warn: return spdlog::level::warn;
    case level::error: return spdlog::level::err;
    case level::off: return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

void init(level least, format how, stream where) noexcept {
  least_level = least;
  line_format = how;
  target = where;
}

void init(std::string_view least, std::string_view how, stream where) noexcept {
  for (const level one : {level::trace, level::debug, level::info, level::warn, level::error, level::off}) {
    if (word(one) == least) least_level = one;
  }
  if (how == "json") line_format = format::json;
  if (how == "text") line_format = format::text;
  target = where;
}

bool enabled(level at) noexcept { return at != level::off && at >= least_level.load(std::memory_order_relaxed); }

std::string render(format how, level at, std::string_view time, std::string_view message, fields with) {
  std::string out;
  out.reserve(128 + message.size() + 48 * with.size());
  switch (how) {
    case format::json: {
      out += R"({"time":")";
      out += time;
      out += R"(","level":")";
      out += word(at);
      out += R"(","msg":)";
      append_text(out, message);
      for (const field& one : with) {
        out += ',';
        append_text(out, one.name);
        out += ':';
        std::visit(value_writer{out}, one.value);
      }
      out += '}';
      break;
    }
    case format::text: {
      out += time;
      out += ' ';
      out += word(at);
      out.append(6 - word(at).size(), ' ');
      // Escaped like a value, but without its quotes: a message is a sentence of ours.
      const std::size_t open = out.size();
      append_text(out, message);
      out.erase(out.size() - 1);
      out.erase(open, 1);
      for (const field& one : with) {
        out += ' ';
        out += one.name;
        out += '=';
        std::visit(value_writer{out}, one.value);
      }
      break;
    }
  }
  return out;
}

void write(level at, std::string_view message, fields with) noexcept {
  if (!enabled(at)) return;
  try {
    const std::string line = render(line_format.load(std::memory_order_relaxed), at, to_rfc3339(now()), message, with);
    const spdlog::details::log_msg record(spdlog::string_view_t{}, level_of(at), line);
    sink_of(target.load(std::memory_order_relaxed)).log(record);
  } catch (...) {
    // Out of memory, or the stream is gone: see the header.
  }
}

}  // namespace recibo::observe::log
