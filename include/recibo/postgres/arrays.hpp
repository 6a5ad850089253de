// Parameters and results in PostgreSQL's binary format. Binary arrays for unnest: a fifth of the time of text arrays.
#pragma once

#include "recibo/core/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::postgres {

// Object IDs of the built-in types we use; fixed in pg_type.dat.
namespace oid {
inline constexpr std::uint32_t boolean = 16, bytea = 17, int8 = 20, int4 = 23, text = 25, timestamptz = 1184, uuid = 2950,
                               jsonb = 3802, numeric = 1700;
inline constexpr std::uint32_t boolean_array = 1000, bytea_array = 1001, int8_array = 1016, int4_array = 1007, text_array = 1009,
                               timestamptz_array = 1185, uuid_array = 2951, jsonb_array = 3807;
}  // namespace oid

// timestamptz on the wire: microseconds since 2000-01-01.
std::int64_t to_wire(sys_micros at) noexcept;
sys_micros from_wire(std::int64_t micros) noexcept;

// A one-dimensional array with lower bound 1, built element by element, all of one type.
class binary_array {
 public:
  explicit binary_array(std::uint32_t element_oid);
  binary_array& add(std::string_view bytes);  // text, bytea, uuid as 16 bytes
  binary_array& add_null();
  binary_array& add_int8(std::int64_t v);
  binary_array& add_int4(std::int32_t v);
  binary_array& add_bool(bool v);
  binary_array& add_time(sys_micros at);
  binary_array& add_jsonb(std::string_view json);
  binary_array& add(const std::string& bytes) { return add(std::string_view(bytes)); }
  binary_array& add(const char* text) { return add(std::string_view(text)); }
  binary_array& add(const std::optional<std::string>& text) { return text ? add(std::string_view(*text)) : add_null(); }
  binary_array& add_time(const std::optional<sys_micros>& at) { return at ? add_time(*at) : add_null(); }
  binary_array& add_int8(const std::optional<std::int64_t>& v) { return v ? add_int8(*v) : add_null(); }
  std::size_t size() const noexcept { return count_; }
  // Element type of the array, and the finished wire form; the array takes no more elements after it.
  std::uint32_t element() const noexcept { return element_; }
  std::string finish() &&;

 private:
  void put(std::uint32_t v);
  std::string out_;
  std::uint32_t element_, count_ = 0;
  bool nulls_ = false;
};

}  // namespace recibo::postgres
