// Strict JSON as a row of events, in one pass and without a tree. The rules of K17 stand here, once: parse_json() and
// verify::read_json() only listen. What is ambiguous or cannot be kept is a fault; numbers are never converted.
// Pure; safe from any thread.
#pragma once

#include "recibo/core/json_value.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace recibo {

// Listens to a text from its beginning to its end, or to its first fault that ends it. What is passed lives for the call.
class json_events {
 public:
  // "null", "true" or "false"; a number as written ("1.50", "-0"); a string, decoded.
  virtual void scalar(json_value::kind kind, std::string_view text) = 0;
  // An array or an object begins; end() closes the innermost one.
  virtual void begin(json_value::kind kind) = 0;
  virtual void end() = 0;
  // The next value is the member `name`; `again`: the object already had one of that name, which is a fault.
  virtual void key(std::string_view name, bool again) = 0;
  // Asked after each value and at each beginning: false ends the reading there, and what was read so far is no fault.
  virtual bool wants_more() const { return true; }

 protected:
  ~json_events() = default;
};

struct json_fault {
  std::string why;       // never a part of the text
  std::size_t byte = 0;  // how many bytes were read when it was found; 0: the fault has no place, or `why` names it
  // The text is JSON all the same and was read to its end (U+0000, a member named twice).
  bool is_json = false;
};

// A double's range is for those who must be understood by readers that convert.
enum class json_numbers { any, within_double };

// RFC 8259, and stricter: one value and nothing behind it, no byte order mark, valid UTF-8, no U+0000 and no lone
// surrogates (PostgreSQL can hold neither), no name twice in one object, at most json_depth_max levels.
// nullopt: all is well; a fault that ends the text is told before one that does not.
std::optional<json_fault> read_json_events(std::string_view text, json_numbers numbers, json_events& to);

}  // namespace recibo
