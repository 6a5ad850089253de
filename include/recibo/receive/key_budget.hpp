// Whose request may make us ask a provider for a key that was never seen. The ID of a key is not authenticated, so whoever
// invents IDs must neither drive traffic to the provider nor use up what a really new key needs. So there are three budgets:
//   anybody     every new ID, until it is used up
//   known       what comes from a network from which callbacks of this provider have verified
//   repeated    IDs that were turned away before: a provider uses a new key again and again, inventions are new each time
// Who sends from the provider's own network, or repeats each invention, still gets no more than these. Pure but for its own
// tables, which are bounded; one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::receive {

class key_budget {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  struct rule {
    double at_once = 0, per_minute = 0;
  };
  struct rules {
    rule anybody{10, 30}, known{5, 15}, repeated{5, 15};
    // An ID counts as repeated from so long after it was turned away first, and until so long after.
    std::chrono::seconds repeated_after{1}, forgotten_after{600};
    std::size_t networks_most = 64;   // of one provider, the latest
    std::size_t ids_most = 1u << 15;  // of one provider that were turned away; 8 bytes each
  };

  explicit key_budget(rules how);

  // Takes one question for `id` out of a budget; false: there is none left for it now. `provider` is a configured name: each
  // has tables of its own. `peer`: the sender's address.
  bool take(std::string_view provider, std::string_view id, std::string_view peer, time_point now);
  // A callback from `peer` has verified.
  void vouch(std::string_view provider, std::string_view peer, time_point now);

 private:
  struct bucket {
    double left = 0;
    time_point at{};
    bool fresh = true;
    bool take(const rule& how, time_point now);
  };
  struct turned_away {
    std::uint32_t mark = 0;     // of the ID, by a hash that nobody can foresee
    std::uint32_t first_s = 0;  // seconds since `born`
  };
  struct table {
    bucket anybody, known, repeated;
    std::map<std::string, time_point, std::less<>> networks;
    std::vector<turned_away> ids;  // by place; empty until somebody is turned away
  };
  table& of(std::string_view provider);
  // Whether it was turned away before; notes it else.
  bool was_here(table& in, std::string_view id, time_point now);

  rules how_;
  std::string salt_;
  time_point born_;
  std::map<std::string, table, std::less<>> tables_;
};

// The network that a sender is taken to be of: /24 of IPv4, /48 of IPv6; other text as it stands.
std::string network_of(std::string_view peer);

}  // namespace recibo::receive
