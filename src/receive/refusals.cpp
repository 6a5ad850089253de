#include "recibo/receive/refusals.hpp"

#include <algorithm>

namespace recibo::receive {
namespace {

// How often a refusal is looked into: for one provider, so that a flood at one does not hide the trouble of another, and for
// all of them. A look is bounded to one or two milliseconds (verify::small_effort), so that strangers cost a percent of a core at
// most.
constexpr config::rate looks_of_one{0.5, 4}, looks_of_all{4, 8};
// Larger bodies are not looked into: each try reads the body anew.
constexpr std::size_t looked_into_max = 16 << 10;
// Other providers whose secrets are tried.
constexpr std::size_t others_max = 60;
constexpr std::string_view everybody = "";  // no provider is called so

std::vector<verify::other_sender> others_of(const config::settings& settings, const config::provider& from) {
  std::vector<verify::other_sender> out;
  for (const auto& [name, one] : settings.providers) {
    if (name != from.name && out.size() < others_max) out.push_back({name, &one.verify, &one.keys});
  }
  return out;
}

}  // namespace

void refusals::add(const config::settings& settings, const config::provider& from, const verify::signed_message& message,
                   const error& why, const http::request& whole, sys_micros at, std::chrono::steady_clock::time_point now) {
  refusal_entry made;
  made.reason = code_word(why.code);
  if (message.body.size() > looked_into_max) {
    made.cause = verify::to_string(verify::cause::not_examined);
    made.explanation = "The body is too long to be looked into; `recibo verify` looks into it.";
  } else if (looks_.take(from.name, looks_of_one, now) && looks_.take(std::string(everybody), looks_of_all, now)) {
    const auto others = others_of(settings, from);
    const verify::question asked{from.verify, message, from.keys, at, others, verify::small_effort};
    auto found = verify::diagnose(asked);
    made.cause = verify::to_string(found.why);
    made.explanation = std::move(found.explanation);
    made.secret = std::move(found.secret);
  } else {
    made.cause = verify::to_string(verify::cause::not_examined);
    made.explanation = "There were too many to look into each.";
  }
  note(from, std::move(made), whole, at);
}

void refusals::add_told(const config::provider& from, verify::cause cause, const error& why, const http::request& whole,
                        sys_micros at) {
  refusal_entry made;
  made.reason = code_word(why.code);
  made.cause = verify::to_string(cause);
  made.explanation = why.detail + '.';
  if (cause == verify::cause::key_unknown) made.explanation = "There is no key to verify it with: " + made.explanation;
  note(from, std::move(made), whole, at);
}

void refusals::note(const config::provider& from, refusal_entry made, const http::request& whole, sys_micros at) {
  made.first_at = at;
  refusal_entry& entry = entry_for(from.name, std::move(made));
  entry.last_at = at;
  ++entry.count;
  entry.last_peer = whole.peer;
  entry.last_trace_id = whole.trace_id;
}

refusal_entry& refusals::entry_for(std::string_view provider, refusal_entry made) {
  auto found = entries_.find(provider);
  if (found == entries_.end()) found = entries_.emplace(std::string(provider), std::deque<refusal_entry>()).first;
  auto& list = found->second;
  const auto alike = std::find_if(list.begin(), list.end(), [&](const refusal_entry& e) {
    return e.reason == made.reason && e.cause == made.cause && e.secret == made.secret;
  });
  if (alike != list.end()) {
    refusal_entry same = std::move(*alike);
    same.explanation = std::move(made.explanation);
    list.erase(alike);
    list.push_back(std::move(same));
  } else {
    if (list.size() >= kept_max) list.pop_front();
    list.push_back(std::move(made));
  }
  return list.back();
}

std::vector<refusal_entry> refusals::latest(std::string_view provider) const {
  const auto found = entries_.find(provider);
  if (found == entries_.end()) return {};
  return {found->second.rbegin(), found->second.rend()};
}

}  // namespace recibo::receive
