#include "recibo/receive/key_budget.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/core/network.hpp"

#include <algorithm>

namespace recibo::receive {

key_budget::key_budget(rules how) : how_(how), salt_(random_bytes(16)), born_(std::chrono::steady_clock::now()) {}

bool key_budget::bucket::take(const rule& how, time_point now) {
  const double passed = fresh ? 0 : std::chrono::duration<double>(now - at).count();
  left = fresh ? how.at_once : std::min(how.at_once, left + passed * how.per_minute / 60);
  fresh = false;
  at = now;
  if (left < 1) return false;
  left -= 1;
  return true;
}

key_budget::table& key_budget::of(std::string_view provider) {
  const auto at = tables_.find(provider);
  return at != tables_.end() ? at->second : tables_.emplace(std::string(provider), table()).first->second;
}

bool key_budget::take(std::string_view provider, std::string_view id, std::string_view peer, time_point now) {
  table& in = of(provider);
  if (in.networks.contains(network_of(peer)) && in.known.take(how_.known, now)) return true;
  if (in.anybody.take(how_.anybody, now)) return true;
  return was_here(in, id, now) && in.repeated.take(how_.repeated, now);
}

void key_budget::vouch(std::string_view provider, std::string_view peer, time_point now) {
  table& in = of(provider);
  in.networks[network_of(peer)] = now;
  if (in.networks.size() <= how_.networks_most) return;
  in.networks.erase(
      std::min_element(in.networks.begin(), in.networks.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
}

bool key_budget::was_here(table& in, std::string_view id, time_point now) {
  if (in.ids.empty()) in.ids.resize(how_.ids_most);
  const auto hash = sha256(salt_ + std::string(id));
  const auto word = [&](std::size_t from) {
    std::uint32_t out = 0;
    for (std::size_t i = from; i < from + 4; ++i) out = out << 8 | hash[i];
    return out;
  };
  // Zero is an empty place. Whoever has the same place drives the other one out, and has to come once more.
  turned_away& place = in.ids[word(4) % in.ids.size()];
  const std::uint32_t mark = std::max<std::uint32_t>(word(0), 1);
  const auto second = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now - born_).count());
  const std::uint32_t since = second - place.first_s;
  if (place.mark != mark || since > how_.forgotten_after.count()) {
    place = {mark, second};
    return false;
  }
  return since >= how_.repeated_after.count();
}

std::string network_of(std::string_view peer) {
  auto address = parse_ip(peer);
  if (!address) return std::string(peer);
  std::fill(address->begin() + (is_v4(*address) ? 15 : 6), address->end(), 0);
  return to_string(*address);
}

}  // namespace recibo::receive
