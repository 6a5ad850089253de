#include "group.hpp"

#include "recibo/config/answers.hpp"

#include <algorithm>

namespace recibo::record {

using transition::disposition;

outcome combine(const callback_group& g, std::vector<outcome> parts) {
  std::vector<disposition> words;
  words.reserve(parts.size());
  bool any_replayed = false, any_new = false;
  for (const auto& p : parts) {
    words.push_back(p.disposition);
    any_replayed = any_replayed || p.replayed;
    any_new = any_new || (transition::claims_key(p.disposition) && !p.replayed);
  }
  outcome out;
  out.disposition = transition::combined(words);
  out.replayed = any_replayed && !any_new;
  const auto same = [&](disposition d) { return d == words.front(); };
  if (std::all_of(words.begin(), words.end(), same)) {
    // One word, one answer: as it was stored with the first.
    out.status = parts.front().status;
    out.body = parts.front().body;
    out.detail = parts.front().detail;
  } else {
    // What is not kept is no success: others of the request do not change that.
    const bool all_kept =
        std::none_of(words.begin(), words.end(), [](auto word) { return word == disposition::unknown_operation; });
    const auto shape =
        config::shape_of(g.parts.front().provider->answers, all_kept ? out.disposition : disposition::unknown_operation);
    out.status = shape.status;
    out.body = shape.body;
  }
  out.parts = std::move(parts);
  return out;
}

outcome ignored_part(const callback& c) {
  const auto shape = config::shape_of(c.provider->answers, disposition::ignored);
  outcome out;
  out.disposition = disposition::ignored;
  out.request_id = c.request_id;
  out.status = shape.status;
  out.body = shape.body;
  return out;
}

}  // namespace recibo::record
