#include "recibo/storage/bulk.hpp"

#include <cassert>
#include <cstdlib>

namespace recibo::storage {
namespace {

std::uint32_t element_of(std::uint32_t array_oid) {
  namespace oid = postgres::oid;
  switch (array_oid) {
    case oid::boolean_array: return oid::boolean;
    case oid::bytea_array: return oid::bytea;
    case oid::int8_array: return oid::int8;
    case oid::int4_array: return oid::int4;
    case oid::text_array: return oid::text;
    case oid::timestamptz_array: return oid::timestamptz;
    case oid::uuid_array: return oid::uuid;
    case oid::jsonb_array: return oid::jsonb;
    default: std::abort();  // a statement of ours that is no bulk statement
  }
}

}  // namespace

bulk::bulk(const postgres::statement& what) : what_(&what) {
  columns_.reserve(what.types.size());
  for (const auto type : what.types) columns_.emplace_back(element_of(type));
}

postgres::binary_array& bulk::next() {
  if (at_ == columns_.size()) at_ = 0;
  if (at_ == 0) ++rows_;
  return columns_[at_++];
}

void bulk::append_to(checked_pipeline& to) && {
  if (rows_ == 0) return;
  assert(at_ == columns_.size());
  postgres::parameters values;
  for (auto& column : columns_) values.array(std::move(column));
  to.add(*what_, std::move(values), what_->sql.starts_with("INSERT") ? static_cast<std::int64_t>(rows_) : -1);
}

}  // namespace recibo::storage
