// Names to look up, each once and in order.
#pragma once

#include "recibo/storage/deliveries.hpp"
#include "recibo/storage/keys.hpp"
#include "recibo/storage/operations.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace recibo::record {

template <class T, class Less>
void sort_unique(std::vector<T>& values, Less less) {
  std::sort(values.begin(), values.end(), less);
  const auto same = [&](const T& a, const T& b) { return !less(a, b) && !less(b, a); };
  values.erase(std::unique(values.begin(), values.end(), same), values.end());
}

inline void sort_unique(std::vector<storage::alias_name>& names) {
  sort_unique(names, [](const auto& a, const auto& b) { return std::tie(a.provider, a.alias) < std::tie(b.provider, b.alias); });
}

inline void sort_unique(std::vector<storage::provider_key_name>& names) {
  sort_unique(names, [](const auto& a, const auto& b) { return std::tie(a.provider, a.key) < std::tie(b.provider, b.key); });
}

inline void sort_unique(std::vector<storage::failed_name>& names) {
  sort_unique(names, [](const auto& a, const auto& b) {
    return std::tie(a.provider, a.body_digest, a.key_beside) < std::tie(b.provider, b.body_digest, b.key_beside);
  });
}

}  // namespace recibo::record
