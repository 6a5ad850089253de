// status, and mode: hint: how a provider is asked what it knows of an operation, and how its answers are read (R23, R40).
#include "scheme_reader.hpp"
#include "secrets.hpp"
#include "sections.hpp"

#include "recibo/core/network.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

constexpr std::string_view usual_state = "unknown";

void read_status_url(reading& r, const field& f, status_rule& out) {
  if (!f || !read_text(r, f, out.url_text, 2048)) return;
  auto how = url_template::parse(out.url_text, {"reference", "request_id"});
  if (!how) {
    r.error(f.at, "url: not a URL that can be asked: " + how.error().detail);
    return;
  }
  for (const auto& gap : how->gaps()) (gap == "reference" ? out.by_reference : out.by_request_id) = true;
  if (!out.by_reference && !out.by_request_id)
    r.error(f.at, "url: {reference} or {request_id} is missing: the answer has to be about one operation");
  out.url = std::move(*how);
}

// Names are looked at when they are asked; an address can be judged now.
void check_status_reach(reading& r, const field& f, const status_rule& rule) {
  const auto& url = rule.url.base();
  if (!f || url.host.empty()) return;
  const auto address = parse_ip(url.host == "localhost" ? "127.0.0.1" : url.host);
  const bool allowed =
      address && std::any_of(rule.allow.begin(), rule.allow.end(), [&](const network& n) { return n.contains(*address); });
  if (address) {
    const auto far = classify(*address);
    if (far == reach::never) r.error(f.at, "url: link-local, multicast and reserved addresses are never asked");
    if (far == reach::guarded && !allowed) r.error(f.at, "url: a private address; name its network under allow if it is meant");
  }
  if (!url.tls && !allowed)
    r.error(
        f.at,
        "url: https only: whoever changes an answer on the way would move the operation; http is for an address within allow");
}

bool is_sendable(reading& r, const read_secret& one, std::string_view name) {
  const auto text = one.secret.text.reveal();
  const auto bad = [](char c) { return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f; };
  if (std::none_of(text.begin(), text.end(), bad)) return true;
  r.error(one.at, std::string(name) + ": only printable ASCII can be sent in a header");
  return false;
}

void read_status_headers(reading& r, const field& f, status_rule& out) {
  for (const named& one : members(r, f)) {
    const std::string name = header_name(one.name);
    if (name.empty()) {
      r.error(one.at, "headers: this is no name of an HTTP header");
      continue;
    }
    for (const auto own : {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"})
      if (name == own) r.error(one.at, "headers: " + name + " is set by the client itself");
    read_secret value = read_one_secret(r, one.value, name);
    if (value.good && is_sendable(r, value, "headers")) out.headers.emplace_back(name, std::move(value.secret.text));
  }
}

void read_status_credentials(reading& r, section& s, status_rule& out) {
  const field bearer = s.get("bearer"), basic = s.get("basic");
  read_status_headers(r, s.get("headers"), out);
  const bool own = std::any_of(out.headers.begin(), out.headers.end(), [](const auto& h) { return h.first == "authorization"; });
  if (int{s.has("bearer")} + int{s.has("basic")} + int{own} > 1)
    r.error(s.at(), "status: one of bearer, basic and headers.Authorization says who asks");
  if (bearer) {
    const read_secret token = read_one_secret(r, bearer, "bearer");
    if (token.good && is_sendable(r, token, "bearer"))
      out.headers.emplace_back("authorization", secret("Bearer " + std::string(token.secret.text.reveal())));
  }
  if (!basic) return;
  section b(r, basic);
  std::string user;
  const field name = b.require("user", "basic is a user and a password"),
              password = b.require("password", "basic is a user and a password");
  if (!name || !password) return;
  const bool named = read_text(r, name, user, 255);
  if (named && user.find(':') != std::string::npos) r.error(name.at, "user: a colon would end the name");
  const read_secret word = read_one_secret(r, password, "password");
  if (named && word.good)
    out.headers.emplace_back("authorization", secret("Basic " + to_base64(user + ":" + std::string(word.secret.text.reveal()))));
}

void read_status_retry(reading& r, const field& f, retry_rule& out) {
  if (!f) return;
  section s(r, f);
  const field max = s.get("max");
  if (const field attempts = s.get("attempts")) read_int(r, attempts, out.attempts, 2, 100);
  if (const field first = s.get("first")) read_duration(r, first, out.first, "1s", "1h");
  if (max) read_duration(r, max, out.max, "1s", "7d");
  if (out.max < out.first) r.error(max ? max.at : s.at(), "retry: max is less than first");
}

void read_status_rate(reading& r, const field& f, rate& out) {
  if (!f) return;
  section s(r, f);
  const field per_second = s.require("per_second", "how many look-ups a second are made in the long run");
  if (!per_second || !read_number(r, per_second, out.per_second, 0.01, 10'000)) return;
  out.burst = std::max(1.0, out.per_second);
  if (const field burst = s.get("burst")) read_number(r, burst, out.burst, 1, 10'000);
}

void read_status_states(reading& r, const field& f, const transition::workflow* table, status_rule& out) {
  if (!f) {
    if (table != nullptr && table->find_state(usual_state) != nullptr) out.states.emplace_back(usual_state);
    return;
  }
  for (const field& one : elements(r, f)) {
    std::string name;
    if (!read_text(r, one, name, 63) || table == nullptr) continue;
    if (table->find_state(name) == nullptr) {
      std::vector<std::string_view> names;
      for (const auto& x : table->states()) names.push_back(x.name);
      r.error(one.at, "states: the workflow has no state " + in_quotes(name) + did_you_mean(name, names));
    } else {
      out.states.push_back(std::move(name));
    }
  }
}

// The answer to a GET has a body and headers, and no query or form.
bool stands_in_answer(const sources& all) {
  return std::all_of(all.begin(), all.end(),
                     [](const source& s) { return s.from == source::place::json || s.from == source::place::header; });
}

bool stand_in_answer(const extract& e) {
  const auto& result = e.result;
  return stands_in_answer(e.request_id) && stands_in_answer(e.reference) && stands_in_answer(e.event) &&
         stands_in_answer(e.sequence) && stands_in_answer(e.occurred_at) && stands_in_answer(e.amount) &&
         stands_in_answer(e.currency) && stands_in_answer(e.account) &&
         std::all_of(result.begin(), result.end(), [](const auto& one) { return stands_in_answer({one.second}); });
}

void read_answer(reading& r, section& s, const words_of_provider& words, const provider& of, provider& out) {
  const field own = s.get("extract");
  if (own) {
    out.extract = {};
    read_extract(r, own, nullptr, {.identity_known = true}, out.extract);
    if (!out.extract.idempotency_key.empty()) r.error(own.at, "idempotency_key: what is fetched is its own key");
  } else if (of.hints) {
    r.error(s.at(), "status: extract is required: hints bring no news, so it has to be said where the answer has them");
  }
  // Nobody promises that callbacks and answers number the same.
  out.extract.idempotency_key.clear();
  if (out.extract.each)
    r.error(own ? own.at : s.at(),
            "extract: each: an answer is about one operation" + std::string(own ? "" : "; give status its own extract"));
  else if (!stand_in_answer(out.extract))
    r.error(own ? own.at : s.at(),
            "extract: an answer has no query and no form" + std::string(own ? "" : "; give status its own extract"));
  if (const field events = s.get("events")) {
    out.events.clear();
    words(events, out.events);
  }
  check_parts(r, s.has("events") ? s.key_at("events") : s.at(), out.extract, out.events);
}

}  // namespace

void read_status(reading& r, const field& f, const transition::workflow* table, const words_of_provider& words, provider& out) {
  if (!f) return;
  section s(r, f);
  if (!s.good()) return;
  status_rule rule;
  const field url = s.require("url", "where the provider tells what it knows of one operation");
  read_status_url(r, url, rule);
  read_networks(r, s.get("allow"), [&](const field&, const network& n) { rule.allow.push_back(n); });
  check_status_reach(r, url, rule);
  read_status_credentials(r, s, rule);
  if (const field timeout = s.get("timeout")) read_duration(r, timeout, rule.timeout, "100ms", "60s");
  if (const field body = s.get("body")) read_size(r, body, rule.body_limit, "1KiB", "4MiB");
  read_status_retry(r, s.get("retry"), rule.retry);
  read_status_rate(r, s.get("rate"), rule.rate);
  if (const field concurrency = s.get("concurrency")) read_int(r, concurrency, rule.concurrency, 1, 64);
  read_status_states(r, s.get("states"), table, rule);

  provider reads = out;
  // TLS and the URL vouch for the whole answer, and nobody waits for one of ours.
  reads.verify = {};
  reads.keys = {};
  reads.callback_url.reset();
  reads.answers = {};
  reads.scope = key_scope::operation;
  reads.content = content_rule::fields;
  reads.hints = false;
  read_answer(r, s, words, out, reads);
  rule.reads = std::make_shared<const provider>(std::move(reads));
  out.status = std::move(rule);
}

}  // namespace recibo::config
