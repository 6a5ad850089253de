#include "recibo/postgres/arrays.hpp"

#include <arpa/inet.h>
#include <endian.h>

#include <cstring>

namespace recibo::postgres {
namespace {

// 2000-01-01T00:00:00Z, where timestamptz counts from.
constexpr std::chrono::microseconds epoch{946'684'800'000'000};
// ndim, has-nulls flag, element OID, length, lower bound: five words before the first element.
constexpr std::size_t ndim_at = 0, nulls_at = 4, length_at = 12, empty_size = 12;
constexpr std::uint32_t null_length = 0xffffffff;

void set(std::string& out, std::size_t at, std::uint32_t v) {
  v = htonl(v);
  std::memcpy(out.data() + at, &v, sizeof v);
}

template <class Int>
std::string_view view(const Int& v) noexcept {
  return {reinterpret_cast<const char*>(&v), sizeof v};
}

}  // namespace

std::int64_t to_wire(sys_micros at) noexcept { return (at.time_since_epoch() - epoch).count(); }

sys_micros from_wire(std::int64_t micros) noexcept { return sys_micros(std::chrono::microseconds(micros) + epoch); }

binary_array::binary_array(std::uint32_t element_oid) : element_(element_oid) {
  put(1);
  put(0);
  put(element_oid);
  put(0);
  put(1);
}

binary_array& binary_array::add(std::string_view bytes) {
  put(static_cast<std::uint32_t>(bytes.size()));
  out_ += bytes;
  ++count_;
  return *this;
}

binary_array& binary_array::add_null() {
  put(null_length);
  nulls_ = true;
  ++count_;
  return *this;
}

binary_array& binary_array::add_int8(std::int64_t v) {
  const std::uint64_t wire = htobe64(static_cast<std::uint64_t>(v));
  return add(view(wire));
}

binary_array& binary_array::add_int4(std::int32_t v) {
  const std::uint32_t wire = htonl(static_cast<std::uint32_t>(v));
  return add(view(wire));
}

binary_array& binary_array::add_bool(bool v) { return add(std::string_view(v ? "\1" : "\0", 1)); }

binary_array& binary_array::add_time(sys_micros at) { return add_int8(to_wire(at)); }

binary_array& binary_array::add_jsonb(std::string_view json) {
  put(static_cast<std::uint32_t>(json.size() + 1));
  out_ += '\1';  // version of the jsonb wire form
  out_ += json;
  ++count_;
  return *this;
}

std::string binary_array::finish() && {
  if (count_ == 0) {  // an empty array has no dimension
    out_.resize(empty_size);
    set(out_, ndim_at, 0);
  } else {
    set(out_, nulls_at, nulls_ ? 1 : 0);
    set(out_, length_at, count_);
  }
  return std::move(out_);
}

void binary_array::put(std::uint32_t v) {
  v = htonl(v);
  out_ += view(v);
}

}  // namespace recibo::postgres
