// provider_profiles.json → profiles. The file also holds what only docs/providers/ is made of; that is not read here.
#include "recibo/config/profile.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/config/settings.hpp"
#include "recibo/core/embedded.hpp"

#include "sections.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

namespace recibo {
// Made at build time from src/config/provider_profiles.json.
std::span<const embedded_file> embedded_profiles();
}  // namespace recibo

namespace recibo::config {
namespace {

using transition::disposition;

// Every disposition that is answered with success unless something else is said.
constexpr disposition successes[] = {disposition::applied, disposition::redundant, disposition::partial, disposition::duplicate,
                                     disposition::stale,   disposition::parked,    disposition::review,  disposition::unmapped,
                                     disposition::ignored, disposition::hint};
// The refusals of what is on record all the same.
constexpr disposition refusals[] = {disposition::conflict, disposition::unprocessable};

// "accepts": the statuses that this provider takes for success, absent for any 2xx; the first one stands in for others.
void accept_only(profile& p, const std::vector<int>& accepts) {
  if (accepts.empty()) return;
  const auto fits = [&](int status) { return std::find(accepts.begin(), accepts.end(), status) != accepts.end(); };
  for (const disposition d : successes) {
    if (!fits(default_status(d))) p.statuses[std::string(transition::to_string(d))] = accepts.front();
  }
  for (auto& [word, status] : p.statuses) {
    if (!fits(status)) status = accepts.front();
  }
}

std::optional<std::chrono::seconds> seconds_at(const nlohmann::json& from, const char* key) {
  if (!from.contains(key)) return std::nullopt;
  return std::chrono::seconds(from.at(key).get<std::int64_t>());
}

profile read_profile(const nlohmann::json& from) {
  profile out;
  if (from.contains("handshake")) {
    out.handshake = find_handshake(from.at("handshake").get<std::string>());
    if (!out.handshake) throw std::runtime_error("a handshake that nobody knows");
  }
  if (from.contains("answer_within_ms")) out.answer_within = std::chrono::milliseconds(from.at("answer_within_ms").get<int>());
  if (from.value("refusals_hurt", false)) {
    for (const disposition d : refusals)
      out.statuses[std::string(transition::to_string(d))] = d == disposition::conflict ? 200 : 202;
  }
  accept_only(out, from.value("accepts", std::vector<int>()));
  if (from.contains("body")) {
    out.body = from.at("body").get<std::string>();
    if (!out.body->empty()) out.content_type = "text/plain; charset=utf-8";
  }
  out.resend_gap = seconds_at(from, "resend_gap_s");
  out.resend_span = seconds_at(from, "resend_span_s");
  return out;
}

std::map<std::string, profile, std::less<>> read_profiles() {
  std::map<std::string, profile, std::less<>> out;
  for (const embedded_file& file : embedded_profiles()) {
    const auto all = nlohmann::json::parse(file.content);
    for (const auto& [preset, one] : all.items()) out.emplace(preset, read_profile(one));
  }
  return out;
}

}  // namespace

const std::map<std::string, profile, std::less<>>& profiles() {
  static const auto all = read_profiles();
  return all;
}

const profile* find_profile(std::string_view preset) {
  const auto it = profiles().find(preset);
  return it == profiles().end() ? nullptr : &it->second;
}

void apply_profile(std::string_view preset, provider& out) {
  const profile* known = find_profile(preset);
  if (known == nullptr) return;
  if (known->handshake) out.handshake.emplace(handshake{*known->handshake, {}});
  if (known->answer_within) out.answer_within = *known->answer_within;
  for (const auto& [word, status] : known->statuses) out.answers.status[word] = status;
  if (known->body) {
    out.answers.body = known->body;
    out.answers.content_type = known->content_type;
  }
  out.resend_gap = known->resend_gap;
  out.resend_span = known->resend_span;
}

}  // namespace recibo::config
