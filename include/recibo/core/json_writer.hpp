// Writes JSON text in order, with the commas: for answers, so that no tree is built for what is only printed.
// Names are literals of ours; values are data and escaped (K30). Not thread-safe; owns its text.
#pragma once

#include "recibo/core/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo {

class json_writer {
 public:
  // Containers; inside an object give the name first with key().
  json_writer& begin_object();
  json_writer& end_object();
  json_writer& begin_array();
  json_writer& end_array();
  json_writer& key(std::string_view name);

  // Values, as elements of an array or after key().
  json_writer& text(std::string_view value);
  json_writer& number(std::int64_t value);
  json_writer& flag(bool value);
  json_writer& null();
  // RFC 3339, microseconds.
  json_writer& time(sys_micros at);
  // `json` is valid JSON text and is written as it stands.
  json_writer& raw(std::string_view json);

  // Members.
  json_writer& text(std::string_view name, std::string_view value) { return key(name).text(value); }
  json_writer& text(std::string_view name, const std::optional<std::string>& value) {
    return value ? text(name, std::string_view(*value)) : null(name);
  }
  json_writer& text(std::string_view name, const std::string& value) { return text(name, std::string_view(value)); }
  json_writer& text(std::string_view name, const char* value) { return text(name, std::string_view(value)); }
  // null where it is empty.
  json_writer& text_or_null(std::string_view name, std::string_view value) {
    return value.empty() ? null(name) : text(name, value);
  }
  json_writer& number(std::string_view name, std::int64_t value) { return key(name).number(value); }
  json_writer& number(std::string_view name, const std::optional<std::int64_t>& value) {
    return value ? number(name, *value) : null(name);
  }
  json_writer& flag(std::string_view name, bool value) { return key(name).flag(value); }
  json_writer& null(std::string_view name) { return key(name).null(); }
  json_writer& time(std::string_view name, sys_micros at) { return key(name).time(at); }
  json_writer& time(std::string_view name, const std::optional<sys_micros>& at) { return at ? time(name, *at) : null(name); }
  json_writer& raw(std::string_view name, std::string_view json) { return key(name).raw(json); }

  const std::string& str() const noexcept { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void separate();

  std::string out_;
  bool comma_ = false;  // a value stands before the next one
};

}  // namespace recibo
