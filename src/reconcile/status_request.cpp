#include "recibo/reconcile/status_request.hpp"

#include "recibo/notify/retry.hpp"

#include <algorithm>

namespace recibo::reconcile {
namespace {

constexpr std::string_view not_found = "not_found", gone = "gone", unauthorized = "unauthorized";

bool names(const http::header_list& headers, std::string_view name) { return http::find_header(headers, name).has_value(); }

}  // namespace

result<http::outbound_request> status_request(const config::status_rule& rule, std::string_view request_id,
                                              std::string_view reference) {
  auto url = rule.url.fill({{"request_id", request_id}, {"reference", reference}});
  if (!url) return url.error();
  http::outbound_request out;
  out.url = std::move(*url);
  out.headers = status_headers(rule);
  return out;
}

http::header_list status_headers(const config::asking_rule& rule) {
  http::header_list out;
  for (const auto& [name, value] : rule.headers) out.emplace_back(name, std::string(value.reveal()));
  if (!names(out, "accept")) out.emplace_back("accept", "application/json");
  if (!names(out, "accept-encoding")) out.emplace_back("accept-encoding", "identity");
  if (!names(out, "user-agent")) out.emplace_back("user-agent", "recibo");
  return out;
}

http::outbound_rules status_rules(const config::asking_rule& rule) {
  http::outbound_rules out;
  out.timeout = rule.timeout;
  out.connect_timeout = std::min<std::chrono::milliseconds>(out.connect_timeout, rule.timeout);
  out.body_limit = rule.body_limit;
  out.plain_http = !rule.url.base().tls;
  out.allow = rule.allow;
  return out;
}

judged_attempt judge_attempt(const result<http::outbound_answer>& answer, std::string_view reason_before, sys_micros now) {
  judged_attempt out;
  if (!answer) {
    const auto& why = answer.error();
    const bool never =
        why.code == permanent::answer_too_large || why.code == permanent::url_refused || why.code == permanent::malformed_field;
    out.reason = code_word(why.code);
    out.what = never ? next_step::give_up : next_step::again;
    out.theirs = why.code != permanent::url_refused && why.code != permanent::malformed_field;
    return out;
  }
  out.retry_after = notify::longest_wish(answer->headers, now);
  // Gone is what it was: the provider knew it, and does not say how it ended.
  if (answer->status == 404 || answer->status == 410) {
    out.reason = answer->status == 410 ? gone : not_found;
    out.what = reason_before == out.reason ? next_step::give_up : next_step::again;
    out.theirs = false;
    return out;
  }
  const auto judged = notify::judge(answer->status, out.retry_after, now);
  out.reason = judged.reason;
  out.theirs = judged.theirs;
  switch (judged.what) {
    case notify::verdict::delivered:
      out.what = next_step::read;
      out.reason = "answered";
      break;
    case notify::verdict::again: out.what = next_step::again; break;
    case notify::verdict::unauthorized:
      out.what = next_step::again;
      out.unauthorized = true;
      break;
    case notify::verdict::gone:
    case notify::verdict::unsigned_now:
    case notify::verdict::never: out.what = next_step::give_up; break;
  }
  return out;
}

void make_answer(record::callback& c, look_up_id id, std::string_view reference) {
  const auto& said = c.references;
  if (!c.named_instead && !reference.empty() && !said.empty() && std::find(said.begin(), said.end(), reference) == said.end())
    c.named_instead = said.front();
  // What it names is another's: it is not to be learned here.
  if (c.named_instead) c.references.clear();
  canonical key;
  key.add("look-up").add(to_hex(binary(c.content_digest)));
  c.key_text = "look-up / " + to_hex(binary(c.content_digest));
  if (!c.understood()) {
    key.add(to_string(id));
    c.key_text += " / " + to_string(id);
  }
  c.key = key.bytes();
}

void make_trouble(record::callback& c, look_up_id id, std::string_view reason, std::string body) {
  c.body = std::move(body);
  c.body_digest = sha256(c.body);
  // The same trouble again is the same review, as long as that is open.
  canonical content;
  content.add("recibo.look_up.trouble.1").add(reason);
  c.content_digest = sha256(content.bytes());
  canonical key;
  key.add("look-up").add(to_hex(binary(c.content_digest))).add(to_string(id));
  c.key = key.bytes();
  c.key_text = "look-up / " + std::string(reason) + " / " + to_string(id);
}

std::string detail_of(std::string_view reason, int attempts) {
  if (reason == not_found)
    return "look-up: the provider does not know the operation, twice; that is not a failure of the operation";
  if (reason == gone)
    return "look-up: the provider does not know the operation any more, twice; that says nothing of how it ended";
  if (reason == lost_attempts) return "look-up: given up, because whoever asked was lost each time";
  if (reason == not_recorded) return "look-up: what the provider answered could not be recorded; asked again each time, in vain";
  if (reason == unauthorized) return "look-up: the provider refuses the credentials that it is asked with";
  if (reason == "redirect") return "look-up: the provider answered with a redirect, which is never followed";
  if (reason == code_word(permanent::answer_too_large)) return "look-up: the provider's answer is larger than status.body allows";
  return "look-up: given up after " + std::to_string(attempts) + (attempts == 1 ? " attempt, " : " attempts, ") +
         std::string(reason);
}

}  // namespace recibo::reconcile
