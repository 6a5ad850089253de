// What is known of how providers treat our answers. Time limits are the provider's, less a fifth for the way there and
// back. Statuses: where the provider answers a 4xx by switching the endpoint off, by dropping the event or by holding
// back everything behind it, "conflict" and "unprocessable" are said with a 2xx; what is recorded is the same.
// Source: the providers' public documentation, as listed in docs/signature-schemes.md.
#include "sections.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

struct manners {
  std::string_view preset;
  std::chrono::milliseconds answer_within;
  bool refusals_hurt;  // 4xx has consequences beyond this one callback
  bool no_body;        // an empty body is asked for
};

constexpr std::chrono::milliseconds usual{10'000};

constexpr manners known[] = {
    {"sentry", std::chrono::milliseconds{800}, false, false},
    {"slack", std::chrono::milliseconds{2'400}, false, false},
    {"zoom", std::chrono::milliseconds{2'400}, false, false},
    {"shopify", std::chrono::milliseconds{4'000}, true, false},  // eight failures in a row delete the subscription
    {"hubspot-v1", std::chrono::milliseconds{4'000}, false, false},
    {"hubspot-v2", std::chrono::milliseconds{4'000}, false, false},
    {"hubspot-v3", std::chrono::milliseconds{4'000}, false, false},
    {"linear", std::chrono::milliseconds{4'000}, false, false},
    {"paddle", std::chrono::milliseconds{4'000}, false, false},
    {"pagerduty", std::chrono::milliseconds{4'000}, true, false},  // three dropped events disable the endpoint for a day
    {"razorpay", std::chrono::milliseconds{4'000}, true, false},   // disabled after a day of failures
    {"xero", std::chrono::milliseconds{4'000}, true, true},        // disabled after a day; wants an empty body
    {"github", std::chrono::milliseconds{8'000}, false, false},
    {"github-sha1", std::chrono::milliseconds{8'000}, false, false},
    {"gitlab-token", std::chrono::milliseconds{8'000}, true, false},  // four failures: back-off, forty: disabled
    {"calendly", usual, true, false},                                 // disabled after a day of failures
    {"twitch", std::chrono::milliseconds{2'400}, true, false},        // failures revoke the subscription
    {"woocommerce", usual, true, false},                              // more than five failures in a row disable
};

}  // namespace

void apply_manners(std::string_view preset, provider& out) {
  const auto it = std::find_if(std::begin(known), std::end(known), [&](const manners& m) { return m.preset == preset; });
  if (it == std::end(known)) return;
  out.answer_within = it->answer_within;
  if (it->refusals_hurt) {
    out.answers.status["conflict"] = 200;
    out.answers.status["unprocessable"] = 202;
  }
  if (it->no_body) out.answers.body = "";
}

}  // namespace recibo::config
