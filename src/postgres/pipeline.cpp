#include "recibo/postgres/pipeline.hpp"

#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace recibo::postgres {
namespace {

// Types that only results have; ours are in arrays.hpp.
constexpr Oid int2_oid = 21, oid_oid = 26, numeric_oid = oid::numeric, xid8_oid = 5069, float4_oid = 700, float8_oid = 701;

const PGresult* raw(const void* r) noexcept { return static_cast<const PGresult*>(r); }

// A column of another type than the code believes is our bug, and reading on would make up data: stop here.
[[noreturn]] void wrong_type(const PGresult* r, int row, int column, const char* wanted) noexcept {
  const char* name = PQfname(r, column);
  std::fprintf(stderr, "recibo: broken invariant: row %d, column %d (%s) is not a %s (type %u)\n", row, column,
               name ? name : "none", wanted, name ? PQftype(r, column) : 0U);
  std::abort();
}

void check_there(const PGresult* r, int row, int column, const char* wanted) noexcept {
  if (row < 0 || row >= PQntuples(r) || column < 0 || column >= PQnfields(r)) wrong_type(r, row, column, wanted);
}

template <class Int>
Int load(const PGresult* r, int row, int column) noexcept {
  Int v;
  std::memcpy(&v, PQgetvalue(r, row, column), sizeof v);
  return v;
}

// Narrower integers widen; anything else is none. `wide` tells whether eight bytes are welcome.
bool integer(const PGresult* r, int row, int column, bool wide, std::int64_t& out) noexcept {
  if (PQgetisnull(r, row, column)) return false;
  switch (PQftype(r, column)) {
    case oid::int8:
    case xid8_oid:
      if (!wide) return false;
      out = static_cast<std::int64_t>(be64toh(load<std::uint64_t>(r, row, column)));
      return true;
    case oid_oid:
      if (!wide) return false;
      out = ntohl(load<std::uint32_t>(r, row, column));
      return true;
    case oid::int4: out = static_cast<std::int32_t>(ntohl(load<std::uint32_t>(r, row, column))); return true;
    case int2_oid: out = static_cast<std::int16_t>(ntohs(load<std::uint16_t>(r, row, column))); return true;
    default: return false;
  }
}

}  // namespace

parameters& parameters::text(std::string_view v) {
  values_.emplace_back(v);
  return *this;
}

parameters& parameters::int8(std::int64_t v) {
  const std::uint64_t wire = htobe64(static_cast<std::uint64_t>(v));
  values_.emplace_back(std::in_place, reinterpret_cast<const char*>(&wire), sizeof wire);
  return *this;
}

parameters& parameters::int4(std::int32_t v) {
  const std::uint32_t wire = htonl(static_cast<std::uint32_t>(v));
  values_.emplace_back(std::in_place, reinterpret_cast<const char*>(&wire), sizeof wire);
  return *this;
}

parameters& parameters::boolean(bool v) {
  values_.emplace_back(std::in_place, 1, v ? '\1' : '\0');
  return *this;
}

parameters& parameters::time(sys_micros at) { return int8(to_wire(at)); }

parameters& parameters::jsonb(std::string_view json) {
  std::string wire;
  wire.reserve(json.size() + 1);
  wire += '\1';  // version of the jsonb wire form
  wire += json;
  values_.emplace_back(std::move(wire));
  return *this;
}

parameters& parameters::null() {
  values_.emplace_back(std::nullopt);
  return *this;
}

parameters& parameters::array(binary_array&& a) {
  values_.emplace_back(std::move(a).finish());
  return *this;
}

void rows::deleter::operator()(void* r) const noexcept { PQclear(static_cast<PGresult*>(r)); }

rows::rows() = default;
rows::rows(void* pg_result) : result_(pg_result) {}
rows::~rows() = default;
rows::rows(rows&&) noexcept = default;
rows& rows::operator=(rows&&) noexcept = default;

int rows::size() const noexcept { return PQntuples(raw(result_.get())); }

bool rows::is_null(int row, int column) const noexcept {
  const auto* r = raw(result_.get());
  check_there(r, row, column, "column");
  return PQgetisnull(r, row, column) != 0;
}

std::string_view rows::text(int row, int column) const noexcept {
  const auto* r = raw(result_.get());
  check_there(r, row, column, "text");
  const char* value = PQgetvalue(r, row, column);
  const auto size = static_cast<std::size_t>(PQgetlength(r, row, column));
  switch (PQftype(r, column)) {
    case oid::jsonb: return size == 0 ? std::string_view() : std::string_view(value + 1, size - 1);
    // In binary these are numbers, which nobody wants to read as bytes.
    case oid::int8:
    case oid::int4:
    case int2_oid:
    case oid_oid:
    case xid8_oid:
    case oid::boolean:
    case oid::timestamptz:
    case numeric_oid:
    case float4_oid:
    case float8_oid: wrong_type(r, row, column, "text");
    default: return {value, size};
  }
}

std::optional<std::string> rows::text_or_null(int row, int column) const {
  if (is_null(row, column)) return std::nullopt;
  return string(row, column);
}

std::int64_t rows::int8(int row, int column) const noexcept {
  const auto* r = raw(result_.get());
  check_there(r, row, column, "int8");
  std::int64_t out = 0;
  if (!integer(r, row, column, true, out)) wrong_type(r, row, column, "int8");
  return out;
}

std::int32_t rows::int4(int row, int column) const noexcept {
  const auto* r = raw(result_.get());
  check_there(r, row, column, "int4");
  std::int64_t out = 0;
  if (!integer(r, row, column, false, out)) wrong_type(r, row, column, "int4");
  return static_cast<std::int32_t>(out);
}

bool rows::boolean(int row, int column) const noexcept {
  const auto* r = raw(result_.get());
  check_there(r, row, column, "boolean");
  if (PQftype(r, column) != oid::boolean || PQgetisnull(r, row, column)) wrong_type(r, row, column, "boolean");
  return *PQgetvalue(r, row, column) != 0;
}

sys_micros rows::time(int row, int column) const noexcept {
  const auto* r = raw(result_.get());
  check_there(r, row, column, "timestamptz");
  if (PQftype(r, column) != oid::timestamptz || PQgetisnull(r, row, column)) wrong_type(r, row, column, "timestamptz");
  return from_wire(static_cast<std::int64_t>(be64toh(load<std::uint64_t>(r, row, column))));
}

std::optional<sys_micros> rows::time_or_null(int row, int column) const noexcept {
  if (is_null(row, column)) return std::nullopt;
  return time(row, column);
}

std::optional<std::int64_t> rows::int8_or_null(int row, int column) const noexcept {
  if (is_null(row, column)) return std::nullopt;
  return int8(row, column);
}

std::string_view rows::tag() const noexcept {
  if (!result_) return {};
  // libpq takes the result writable here, and only reads it.
  return PQcmdStatus(static_cast<PGresult*>(result_.get()));
}

std::int64_t rows::affected() const noexcept {
  if (!result_) return 0;
  const std::string_view digits = PQcmdTuples(static_cast<PGresult*>(result_.get()));
  std::int64_t out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

pipeline& pipeline::add(const statement& what, parameters with) {
  // A mismatch is a bug that the server would report as a refused batch; here it names its statement.
  if (what.types.size() != with.values().size()) {
    std::fprintf(stderr, "recibo: broken invariant: statement %s takes %zu parameters and was given %zu\n", what.name.c_str(),
                 what.types.size(), with.values().size());
    std::abort();
  }
  steps_.push_back(step{&what, std::move(with)});
  return *this;
}

}  // namespace recibo::postgres
