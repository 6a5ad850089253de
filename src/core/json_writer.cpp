#include "recibo/core/json_writer.hpp"

#include "recibo/core/json.hpp"

namespace recibo {

void json_writer::separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}

json_writer& json_writer::begin_object() {
  separate();
  out_ += '{';
  comma_ = false;
  return *this;
}

json_writer& json_writer::end_object() {
  out_ += '}';
  comma_ = true;
  return *this;
}

json_writer& json_writer::begin_array() {
  separate();
  out_ += '[';
  comma_ = false;
  return *this;
}

json_writer& json_writer::end_array() {
  out_ += ']';
  comma_ = true;
  return *this;
}

json_writer& json_writer::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  comma_ = false;
  return *this;
}

json_writer& json_writer::text(std::string_view value) {
  separate();
  append_json_string(out_, value);
  return *this;
}

json_writer& json_writer::number(std::int64_t value) {
  separate();
  out_ += std::to_string(value);
  return *this;
}

json_writer& json_writer::flag(bool value) {
  separate();
  out_ += value ? "true" : "false";
  return *this;
}

json_writer& json_writer::null() {
  separate();
  out_ += "null";
  return *this;
}

json_writer& json_writer::time(sys_micros at) { return text(to_rfc3339(at)); }

json_writer& json_writer::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

}  // namespace recibo
