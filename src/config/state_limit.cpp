#include "recibo/config/state_limit.hpp"

namespace recibo::config {

const transition::limit* limit_of(const transition::workflow& table, std::string_view state, std::string_view provider,
                                  const settings& by) {
  const auto* const known = table.find_state(state);
  if (known == nullptr || known->terminal) return nullptr;
  if (const auto p = by.providers.find(provider); p != by.providers.end()) {
    if (const auto own = p->second.limits.find(state); own != p->second.limits.end())
      return own->second ? &*own->second : nullptr;
  }
  return known->limit ? &*known->limit : nullptr;
}

std::chrono::seconds resend_gap_of(std::string_view provider, const settings& by) {
  const auto p = by.providers.find(provider);
  return p == by.providers.end() ? resend_gap_default : p->second.resend_gap.value_or(resend_gap_default);
}

}  // namespace recibo::config
