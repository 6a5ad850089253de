// destinations: where notifications go, how they are signed, and what they may reach (K29).
#include "nats_credentials.hpp"
#include "secrets.hpp"
#include "sections.hpp"

#include "recibo/core/network.hpp"
#include "recibo/core/url.hpp"
#include "recibo/verify/verifier.hpp"

#include <algorithm>
#include <set>

namespace recibo::config {
namespace {

// What a standard-webhooks key should have at least. Source: the Standard Webhooks specification, "signature scheme".
constexpr std::size_t key_bytes_least = 24;

std::set<std::string> notification_types(const settings& s) {
  std::set<std::string> out = {"operation.accepted",        "operation.review_opened", "operation.review_overdue",
                               "operation.review_resolved", "provider.silent",         "provider.resumed"};
  for (const auto& [name, table] : s.workflows)
    for (const auto& state : table->states()) {
      out.insert("operation." + state.name);
      out.insert("item." + state.name);
    }
  return out;
}

// Standard Webhooks: base64 behind "whsec_". Other text is taken as it stands, with a word about it.
void fill_key(reading& r, read_secret& one) {
  const std::string_view text = one.secret.text.reveal();
  if (text.starts_with("whsec_")) {
    const auto bytes = from_base64(text.substr(6));
    if (!bytes || bytes->empty()) {
      r.error(one.at, "secret: behind whsec_ stands no base64");
      one.good = false;
      return;
    }
    if (bytes->size() < key_bytes_least) r.warn(one.at, "secret: Standard Webhooks asks for 24 to 64 bytes; this one is shorter");
    one.secret.key = secret(*bytes);
    return;
  }
  const auto bytes = from_base64(text);
  if (bytes && bytes->size() >= key_bytes_least) {
    one.secret.key = secret(*bytes);
    r.warn(one.at, "secret: without whsec_ in front; it is taken as base64");
  } else {
    one.secret.key = secret(std::string(text));
    r.warn(one.at, "secret: without whsec_ in front and no base64 of 24 bytes or more; its text is taken as the key");
  }
}

// `needed`: a broker knows its senders, so that a signature is a consumer's choice there.
void read_secrets(reading& r, section& s, bool needed, destination& out) {
  const field one = s.get("secret"), list = s.get("secrets");
  if (s.has("secret") == s.has("secrets")) {
    const bool both = s.has("secret");
    if (s.good() && both) r.error(s.at(), std::string(s.name()) + ": give one of secret and secrets");
    if (s.good() && !both && needed) r.error(s.at(), std::string(s.name()) + ": secret is required: notifications are signed");
    return;
  }
  std::vector<read_secret> all;
  if (one) all.push_back(read_one_secret(r, one, "secret-1"));
  if (list) all = read_secret_list(r, list);
  bool any_valid = false, good = !all.empty();
  for (read_secret& secret : all) {
    good = good && secret.good;
    if (!secret.good) continue;
    fill_key(r, secret);
    any_valid = any_valid || secret.secret.valid_at(r.now());
    out.keys.secrets.push_back(std::move(secret.secret));
  }
  // No error: another replica may be up already when one becomes valid.
  if (good && !any_valid)
    r.warn(list ? list.at : one.at, std::string(list ? list.name : one.name) +
                                        ": none of them is valid now; nothing can be signed, and " + std::string(s.name()) +
                                        " is paused with the first notification");
}

void read_events(reading& r, const field& f, const std::set<std::string>& types, destination& out) {
  if (!f) {
    out.events = {"operation.*"};
    return;
  }
  if (f.value->what == node::kind::list && f.value->items.empty()) r.error(f.at, "events: the list is empty");
  for (const field& one : elements(r, f)) {
    std::string pattern;
    if (!read_text(r, one, pattern, 127)) continue;
    destination probe;
    probe.events = {pattern};
    const bool any = std::any_of(types.begin(), types.end(), [&](const std::string& type) { return probe.subscribes(type); });
    if (any) {
      out.events.push_back(std::move(pattern));
      continue;
    }
    std::vector<std::string_view> words = {"*", "operation.*", "provider.*"};
    words.insert(words.end(), types.begin(), types.end());
    r.error(one.at,
            "events: no notification is called " + found(*one.value) + (one.value->expanded ? "" : did_you_mean(pattern, words)));
  }
}

void read_retry(reading& r, const field& f, retry_rule& out) {
  section s(r, f);
  const field max = s.get("max");
  if (const field attempts = s.get("attempts")) read_int(r, attempts, out.attempts, 1, 100);
  if (const field first = s.get("first")) read_duration(r, first, out.first, "1s", "1h");
  if (max) read_duration(r, max, out.max, "1s", "7d");
  if (out.max < out.first) r.error(max ? max.at : s.at(), "retry: max is less than first");
}

std::vector<network> read_allow(reading& r, const field& f, destination& out) {
  std::vector<network> networks;
  read_networks(r, f, [&](const field& one, const network& n) {
    networks.push_back(n);
    out.allow.push_back(one.value->text);
  });
  return networks;
}

// Names are resolved, and looked at again, when a notification is sent; an address can be judged now. `plain`: http.
void check_reach(reading& r, const field& f, const http_url& url, const std::vector<network>& allow, bool plain) {
  const auto address = parse_ip(url.host == "localhost" ? "127.0.0.1" : url.host);
  const bool allowed = address ? contains(allow, *address) : !allow.empty();
  const auto how_far = address ? classify(*address) : reach::open;
  if (how_far == reach::never)
    r.error(f.at, "url: link-local, multicast and reserved addresses are never a destination");
  else if (how_far == reach::guarded && !allowed)
    r.error(f.at, "url: a private address; name its network under allow if it is meant");
  else if (plain && !allowed)
    r.error(f.at, "url: https only: whoever listens on the way would know what was paid; http is for an address within allow");
}

// Why a subject's template is none; empty when it is one. Source: NATS documentation, "Subject-Based Messaging".
std::string fault_of_subject(std::string_view text) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '{') {
      filled += text[at++];
      continue;
    }
    const std::size_t end = text.find('}', at);
    const std::string_view gap = text.substr(at, end == std::string_view::npos ? end : end + 1 - at);
    if (gap != "{type}" && gap != "{provider}" && gap != "{request_id}")
      return "a gap is {type}, {provider} or {request_id}, not " + in_quotes(gap);
    filled += 'x';
    at = end + 1;
  }
  const auto fits = [](char c) { return c > 0x20 && c < 0x7f && c != '*' && c != '>' && c != '}'; };
  if (!std::all_of(filled.begin(), filled.end(), fits)) return "blanks, *, > and characters beyond ASCII have no place in it";
  if (filled.starts_with('$')) return "what begins with $ is the broker's own";
  if (filled.starts_with('.') || filled.ends_with('.') || filled.find("..") != std::string::npos) return "a part of it is empty";
  return {};
}

// nats://host:port or tls://host:port, by the rules of all URLs that we call.
bool read_nats_url(reading& r, const field& f, destination& out) {
  std::string text;
  if (!read_text(r, f, text, 2048)) return false;
  const bool tls = text.starts_with("tls://");
  const auto rest = std::string_view(text).substr(tls ? 6 : 7);
  auto parsed = parse_http_url((tls ? "https://" : "http://") + std::string(rest));
  if (parsed.url && rest.find_first_of("/?") != std::string_view::npos) parsed = {std::nullopt, "a broker has no path"};
  if (!parsed.url) {
    r.error(f.at, "url: not a URL that can be used: " + parsed.why);
    return false;
  }
  const bool named = rest.ends_with(':' + std::to_string(parsed.url->port));
  out.url = std::move(text);
  out.parsed_url = std::move(*parsed.url);
  if (!named) out.parsed_url.port = 4222;
  return true;
}

void read_nats(reading& r, section& s, destination& out) {
  nats_target& to = out.nats.emplace();
  if (const field subject = s.require("subject", "which subject it is published to");
      subject && read_text(r, subject, to.subject, 255)) {
    if (const auto fault = fault_of_subject(to.subject); !fault.empty()) r.error(subject.at, "subject: " + fault);
  }
  const field user = s.get("user"), password = s.get("password"), token = s.get("token");
  if (user) read_text(r, user, to.user, 255);
  if (password) read_secret_text(r, password, to.password);
  if (token) read_secret_text(r, token, to.token);
  if (const field credentials = s.get("credentials")) read_nats_credentials(r, credentials, to);
  if (s.has("user") != s.has("password")) r.error(s.at(), std::string(s.name()) + ": user and password go together");
  if (s.has("token") && s.has("user")) r.error(s.key_at("token"), "token: beside user and password it has no place");
  if (s.has("credentials") && (s.has("token") || s.has("user")))
    r.error(s.key_at("credentials"), "credentials: beside a token, or user and password, they have no place");
}

bool is_nats(const field& url) {
  if (!url || url.value->what != node::kind::scalar) return false;
  return url.value->text.starts_with("nats://") || url.value->text.starts_with("tls://");
}

destination read_destination(reading& r, const named& where, const std::set<std::string>& types) {
  destination out;
  out.name = std::string(where.name);
  check_name(r, where.at, "destination", where.name);
  section s(r, where.value);
  const field url = s.require("url", "where notifications go");
  const bool to_broker = is_nats(url);
  const bool good = url && (to_broker ? read_nats_url(r, url, out) : read_http_url(r, url, out.url, &out.parsed_url));
  if (to_broker) read_nats(r, s, out);
  if (const field owner = s.get("owner")) read_text(r, owner, out.owner, 127);
  read_secrets(r, s, !to_broker, out);
  read_events(r, s.get("events"), types, out);
  if (const field retry = s.get("retry")) read_retry(r, retry, out.retry);
  out.allow_networks = read_allow(r, s.get("allow"), out);
  if (good) check_reach(r, url, out.parsed_url, out.allow_networks, !to_broker && !out.parsed_url.tls);
  if (const field timeout = s.get("timeout")) read_duration(r, timeout, out.timeout, "100ms", "60s");
  if (const field concurrency = s.get("concurrency")) read_int(r, concurrency, out.concurrency, 1, 256);
  if (const field after = s.get("pause_after")) read_duration(r, after, out.pause_after, "1s", "365d");
  constexpr choice<on_dead> words[] = {{"hold", on_dead::hold}, {"skip", on_dead::skip}};
  if (const field dead = s.get("on_dead")) read_word(r, dead, out.on_dead, words);
  return out;
}

}  // namespace

void read_destinations(reading& r, const field& f, settings& out) {
  const auto types = notification_types(out);
  for (const named& one : members(r, f)) {
    destination d = read_destination(r, one, types);
    out.destinations.emplace(d.name, std::move(d));
  }
}

}  // namespace recibo::config
