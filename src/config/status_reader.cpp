// status, mode: hint and catch_up: how a provider is asked what it knows of an operation, or what it has told, and how its
// answers are read (R23, R40, R44).
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
void check_status_reach(reading& r, const field& f, const asking_rule& rule) {
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

void read_status_headers(reading& r, const field& f, asking_rule& out) {
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

void read_status_credentials(reading& r, section& s, std::string_view name, asking_rule& out) {
  const field bearer = s.get("bearer"), basic = s.get("basic");
  read_status_headers(r, s.get("headers"), out);
  const bool own = std::any_of(out.headers.begin(), out.headers.end(), [](const auto& h) { return h.first == "authorization"; });
  if (int{s.has("bearer")} + int{s.has("basic")} + int{own} > 1)
    r.error(s.at(), std::string(name) + ": one of bearer, basic and headers.Authorization says who asks");
  if (bearer) {
    const read_secret token = read_one_secret(r, bearer, "bearer");
    if (token.good && is_sendable(r, token, "bearer"))
      out.headers.emplace_back("authorization", secret("Bearer " + std::string(token.secret.text.reveal())));
  }
  if (!basic) return;
  section b(r, basic);
  std::string user;
  const field login = b.require("user", "basic is a user and a password"),
              password = b.require("password", "basic is a user and a password");
  if (!login || !password) return;
  const bool named = read_text(r, login, user, 255);
  if (named && user.find(':') != std::string::npos) r.error(login.at, "user: a colon would end the name");
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

void read_safe_words(reading& r, const field& f, const provider& reads, status_rule& out) {
  if (!f) return;
  for (const field& one : elements(r, f)) {
    std::string word;
    if (!read_text(r, one, word, 255)) continue;
    if (reads.events.find(word) == reads.events.end()) {
      std::vector<std::string_view> words;
      for (const auto& entry : reads.events) words.push_back(entry.first);
      r.error(one.at, "safe_to_retry: events has no word " + in_quotes(word) + did_you_mean(word, words));
    } else {
      out.safe_to_retry.push_back(std::move(word));
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

// Everything about a request but its URL.
void read_way_of_asking(reading& r, section& s, std::string_view name, const field& url, asking_rule& out) {
  read_networks(r, s.get("allow"), [&](const field&, const network& n) { out.allow.push_back(n); });
  check_status_reach(r, url, out);
  read_status_credentials(r, s, name, out);
  if (const field timeout = s.get("timeout")) read_duration(r, timeout, out.timeout, "100ms", "60s");
  if (const field body = s.get("body")) read_size(r, body, out.body_limit, "1KiB", "4MiB");
  read_status_retry(r, s.get("retry"), out.retry);
  read_status_rate(r, s.get("rate"), out.rate);
}

provider as_read(const provider& of) {
  provider reads = of;
  // TLS and the URL vouch for the whole answer, and nobody waits for one of ours.
  reads.verify = {};
  reads.keys = {};
  reads.callback_url.reset();
  reads.answers = {};
  reads.content = content_rule::fields;
  reads.hints = false;
  reads.list.reset();
  return reads;
}

bool is_parameter(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), good);
}

void read_next_page(reading& r, const field& f, list_rule& out) {
  if (!f) return;
  section s(r, f);
  if (!s.good()) return;
  const field parameter = s.require("parameter", "the query parameter that names a page");
  if (parameter && read_text(r, parameter, out.parameter, 63) && !is_parameter(out.parameter))
    r.error(parameter.at, "parameter: letters, digits, and _ - . only");
  std::string pointer;
  if (const field from = s.get("from"); from && read_text(r, from, pointer, 255)) {
    if (pointer.starts_with('/')) {
      out.next = std::move(pointer);
    } else {
      r.error(from.at, "from: a JSON Pointer begins with /");
    }
  }
  if (const field first = s.get("first")) {
    read_int(r, first, out.first, 0, 1);
    if (s.has("from")) r.error(first.at, "first: pages are numbered or named, not both");
  }
}

}  // namespace

void read_status(reading& r, const field& f, const transition::workflow* table, const words_of_provider& words, provider& out) {
  if (!f) return;
  section s(r, f);
  if (!s.good()) return;
  status_rule rule;
  const field url = s.require("url", "where the provider tells what it knows of one operation");
  read_status_url(r, url, rule);
  read_way_of_asking(r, s, "status", url, rule);
  if (const field concurrency = s.get("concurrency")) read_int(r, concurrency, rule.concurrency, 1, 64);
  if (const field before = s.get("before_retry")) read_bool(r, before, rule.before_retry);
  read_status_states(r, s.get("states"), table, rule);

  provider reads = as_read(out);
  reads.scope = key_scope::operation;
  read_answer(r, s, words, out, reads);
  read_safe_words(r, s.get("safe_to_retry"), reads, rule);
  rule.reads = std::make_shared<const provider>(std::move(reads));
  out.status = std::move(rule);
}

void read_list(reading& r, const field& f, const words_of_provider& words, provider& out) {
  if (!f) return;
  section s(r, f);
  if (!s.good()) return;
  list_rule rule;
  rule.body_limit = 1 << 20;
  rule.rate = {1, 1};
  const field url = s.require("url", "where the provider lists its events");
  if (url && read_text(r, url, rule.url_text, 2048)) {
    auto how = url_template::parse(rule.url_text, {"since"});
    if (how) {
      rule.url = std::move(*how);
    } else {
      r.error(url.at, "url: not a URL that can be asked: " + how.error().detail);
    }
  }
  read_way_of_asking(r, s, "catch_up", url, rule);
  constexpr choice<verify::timestamp_format> formats[] = {{"rfc3339", verify::timestamp_format::rfc3339},
                                                          {"unix_s", verify::timestamp_format::unix_s},
                                                          {"unix_ms", verify::timestamp_format::unix_ms}};
  if (const field since = s.get("since")) read_word(r, since, rule.since, formats);
  read_next_page(r, s.get("next"), rule);
  if (const field pages = s.get("pages")) read_int(r, pages, rule.pages, 1, 1'000'000);
  constexpr choice<bool> outages[] = {{"beside", false}, {"instead", true}};
  if (const field outage = s.get("after_outage")) read_word(r, outage, rule.instead, outages);

  provider reads = as_read(out);
  const field own = s.get("extract");
  if (own) {
    reads.extract = {};
    read_extract(r, own, nullptr, {}, reads.extract);
  } else if (out.hints) {
    r.error(s.at(), "catch_up: extract is required: hints bring no news, so it has to be said where the list has them");
  }
  const auto& at = own ? own.at : s.at();
  if (!reads.extract.each)
    r.error(at, "extract: each is required: where the list of events stands in an answer");
  else if (!stand_in_answer(reads.extract) || !stands_in_answer(reads.extract.idempotency_key))
    r.error(at, "extract: an answer has no query and no form" + std::string(own ? "" : "; give catch_up its own extract"));
  const auto& key = reads.extract.idempotency_key;
  if (own && key.empty())
    r.error(at, "extract: idempotency_key is required: by the same key as in its callback an event counts once");
  else if (std::any_of(key.begin(), key.end(), [](const source& one) { return one.from != source::place::json; }))
    r.error(at, "extract: idempotency_key: each event of a list has its own, in its own JSON");
  if (const field events = s.get("events")) {
    reads.events.clear();
    words(events, reads.events);
  } else if (out.hints) {
    r.error(s.at(), "catch_up: events is required: which of the list's words raise which event of the workflow");
  }
  rule.reads = std::make_shared<const provider>(std::move(reads));
  out.list = std::move(rule);
}

}  // namespace recibo::config
