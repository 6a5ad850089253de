// The settings as JSON, for people who ask what is in force. Nothing secret gets in: keyrings as names, and database
// URLs, which may hold passwords anywhere, as set or not.
#include "recibo/config/load.hpp"

#include "recibo/verify/words.hpp"

#include "units.hpp"

#include <nlohmann/json.hpp>

namespace recibo::config {
namespace {

using json = nlohmann::ordered_json;

template <class Duration>
std::string text(Duration d) {
  return duration_text(std::chrono::duration_cast<std::chrono::milliseconds>(d));
}

std::string_view word(source::place p) noexcept {
  switch (p) {
    case source::place::json: return "json";
    case source::place::header: return "header";
    case source::place::query: return "query";
    case source::place::form: return "form";
  }
  return "";
}

json masked(const secret& s) { return s.empty() ? json() : json("(set)"); }

json names(const verify::keyring& keys) {
  json out = json::array();
  for (const auto& s : keys.secrets) {
    json one = {{"name", s.name}};
    if (s.from) one["from"] = to_rfc3339(*s.from);
    if (s.until) one["until"] = to_rfc3339(*s.until);
    out.push_back(std::move(one));
  }
  return out;
}

json one_source(const source& s) {
  if (s.from == source::place::json && !s.then && !s.format && !s.minor_unit && !s.unsigned_accept) return s.name;
  json out = {{std::string(word(s.from)), s.name}};
  if (s.then) out["then"] = *s.then;
  if (s.format) out["format"] = verify::word_of(verify::timestamp_format_words, *s.format);
  if (s.minor_unit) out["unit"] = "minor";
  if (s.unsigned_accept) out["unsigned"] = "accept";
  return out;
}

void put_sources(json& out, const char* key, const sources& all) {
  if (all.empty()) return;
  if (all.size() == 1) {
    out[key] = one_source(all.front());
    return;
  }
  json list = json::array();
  for (const auto& s : all) list.push_back(one_source(s));
  out[key] = std::move(list);
}

void put_event(json& out, const sources& all) {
  if (all.size() < 2) return put_sources(out, "event", all);
  json list = json::array();
  for (const auto& s : all) list.push_back(one_source(s));
  out["event"] = {{"join", std::move(list)}};
}

json of(const item_rule& i) {
  json out = json::object();
  if (i.each) out["each"] = *i.each;
  put_sources(out, "item_id", i.item_id);
  put_event(out, i.event);
  put_sources(out, "occurred_at", i.occurred_at);
  put_sources(out, "sequence", i.sequence);
  for (const auto& [name, from] : i.result) out["result"][name] = one_source(from);
  return out;
}

json of(const extract& e) {
  json out = json::object();
  const auto put = [&](const char* key, const sources& all) { put_sources(out, key, all); };
  put("request_id", e.request_id);
  put("reference", e.reference);
  put("idempotency_key", e.idempotency_key);
  put_event(out, e.event);
  put("sequence", e.sequence);
  put("occurred_at", e.occurred_at);
  put("amount", e.amount);
  put("currency", e.currency);
  put("account", e.account);
  for (const auto& [name, from] : e.result) out["result"][name] = one_source(from);
  if (e.items) out["items"] = of(*e.items);
  if (e.each) out["each"] = *e.each;
  return out;
}

json of(const std::optional<transition::limit>& l) {
  if (!l) return "none";
  return {{"after", text(l->after)}, {"event", l->event}};
}

json of(const key_source& k) {
  json headers = json::array(), allow = json::array();
  for (const auto& [name, value] : k.headers) headers.push_back(name);
  for (const auto& n : k.allow) allow.push_back(to_string(n));
  json out = {{"headers", std::move(headers)}, {"allow", std::move(allow)}};
  if (!k.url.empty()) out["url"] = k.url;
  return out;
}

json of(const verify::http_signature_rule& rule) {
  json out = json::object();
  // Absent where the rule of docs/signature-schemes.md holds, which is no list.
  if (rule.required) out["required_components"] = *rule.required;
  for (const auto& key : rule.keys)
    out["keys"][key.id] = {{"secret", key.secret},
                           {"algorithm", to_string(key.algorithm)},
                           {"encoding", verify::word_of(verify::key_encoding_words, key.encoding)}};
  return out;
}

json of(const asking_rule& s) {
  json headers = json::array(), allow = json::array();
  for (const auto& [name, value] : s.headers) headers.push_back(name);
  for (const auto& n : s.allow) allow.push_back(to_string(n));
  json out = {{"url", s.url_text}, {"headers", std::move(headers)}, {"allow", std::move(allow)}};
  out["timeout"] = text(s.timeout);
  out["body"] = s.body_limit;
  out["retry"] = {{"attempts", s.retry.attempts}, {"first", text(s.retry.first)}, {"max", text(s.retry.max)}};
  out["rate"] = {{"per_second", s.rate.per_second}, {"burst", s.rate.burst}};
  out["extract"] = of(s.reads->extract);
  out["events"] = s.reads->events;
  return out;
}

json of(const status_rule& s) {
  json out = of(static_cast<const asking_rule&>(s));
  out["concurrency"] = s.concurrency;
  out["states"] = s.states;
  out["before_retry"] = s.before_retry;
  out["safe_to_retry"] = s.safe_to_retry;
  return out;
}

json of(const list_rule& s) {
  json out = of(static_cast<const asking_rule&>(s));
  out["since"] = s.since == verify::timestamp_format::rfc3339  ? "rfc3339"
                 : s.since == verify::timestamp_format::unix_s ? "unix_s"
                                                               : "unix_ms";
  if (!s.parameter.empty()) {
    out["next"] = {{"parameter", s.parameter}};
    if (s.next) {
      out["next"]["from"] = *s.next;
    } else {
      out["next"]["first"] = s.first;
    }
  }
  out["pages"] = s.pages;
  out["after_outage"] = s.instead ? "instead" : "beside";
  return out;
}

json of(const provider& p) {
  json out = {{"verify", {{"scheme", p.verify.name}, {"secrets", names(p.keys)}}}, {"extract", of(p.extract)}};
  if (p.verify.timestamp)
    out["verify"]["tolerance"] = p.verify.timestamp->tolerance ? text(*p.verify.timestamp->tolerance) : std::string("off");
  if (p.verify.needs_foreign_key()) out["verify"]["fetch"] = of(p.key_source);
  if (p.verify.kind == verify::scheme_kind::http_signatures) out["verify"].update(of(p.verify.http));
  out["events"] = p.events;
  out["workflow"] = p.workflow;
  out["unmatched"] = to_string(p.unmatched);
  if (p.unmatched == unmatched::park)
    out["parking"] = {{"per_identity", p.parking.per_identity},
                      {"expire", p.parking.expire ? text(*p.parking.expire) : std::string("off")}};
  json answers = json::object();
  for (const auto& [disposition, status] : p.answers.status) answers[disposition] = status;
  if (p.answers.body) {
    answers["body"] = p.answers.body->empty() ? "none" : *p.answers.body;
    answers["content_type"] = p.answers.content_type;
  }
  out["answers"] = std::move(answers);
  if (p.rate) out["rate"] = {{"per_second", p.rate->per_second}, {"burst", p.rate->burst}};
  out["idempotency"] = {{"scope", {p.scope == key_scope::provider ? "provider" : "operation", "key"}},
                        {"content", p.content == content_rule::bytes ? "bytes" : "fields"}};
  if (p.keep_keys) out["idempotency"]["keep"] = text(*p.keep_keys);
  out["order"] = p.order == transition::order_rule::sequence ? "sequence" : "table";
  out["mode"] = p.hints ? "hint" : "full";
  if (p.status) out["status"] = of(*p.status);
  if (p.list) out["catch_up"] = of(*p.list);
  out["answer_within"] = text(p.answer_within);
  if (p.silence_alert) out["silence_alert"] = text(*p.silence_alert);
  if (p.expected_rate)
    out["expected_rate"] = {{"at_least", p.expected_rate->at_least}, {"within", text(p.expected_rate->within)}};
  if (p.callback_url) {
    json methods = json::array();
    if (p.callback_url->get) methods.push_back("GET");
    if (p.callback_url->post) methods.push_back("POST");
    out["callback_url"] = {{"methods", std::move(methods)},
                           {"expires", p.callback_url->expires ? text(*p.callback_url->expires) : std::string("off")}};
  }
  if (!p.public_url.empty()) out["public_url"] = p.public_url;
  if (p.public_url_forwarded) out["public_url"] = "forwarded";
  if (p.handshake) {
    out["handshake"] = {{"type", to_string(p.handshake->kind)}};
    if (!p.handshake->token.text.empty()) out["handshake"]["token"] = masked(p.handshake->token.text);
  }
  if (p.resend_gap) out["resends"]["after"] = text(*p.resend_gap);
  if (p.resend_span) out["resends"]["for"] = text(*p.resend_span);
  for (const auto& [state, limit] : p.limits) out["limits"][state] = of(limit);
  return out;
}

json of(const transition::workflow& w) {
  json states = json::object();
  for (const auto& s : w.states()) {
    json one = {{"label", s.label}};
    if (s.terminal) one["terminal"] = true;
    if (s.done) one["done"] = true;
    if (!s.terminal) one["limit"] = of(s.limit);
    if (!s.owner.empty()) one["owner"] = s.owner;
    states[s.name] = std::move(one);
  }
  json moves = json::array();
  for (const auto& m : w.moves()) {
    json by = json::array();
    for (const auto who : m.by) by.push_back(transition::to_string(who));
    json one = {{"from", m.from}, {"event", m.event}, {"to", m.to}, {"by", std::move(by)}};
    if (!m.evidence.empty()) one["evidence"] = m.evidence;
    moves.push_back(std::move(one));
  }
  json out = {{"initial", w.initial()}, {"states", std::move(states)}, {"transitions", std::move(moves)}};
  for (const auto& rule : w.items())
    out["items"].push_back({{std::string(to_string(rule.which)), rule.states}, {"event", rule.event}});
  return out;
}

json of(const destination& d) {
  json out = {{"url", d.url}, {"secrets", names(d.keys)}, {"events", d.events}, {"allow", d.allow}};
  if (!d.owner.empty()) out["owner"] = d.owner;
  if (d.nats) {
    out["subject"] = d.nats->subject;
    if (!d.nats->user.empty()) out["user"] = d.nats->user;
    if (!d.nats->password.empty()) out["password"] = "(set)";
    if (!d.nats->token.empty()) out["token"] = "(set)";
    if (!d.nats->jwt.empty()) out["credentials"] = "(set)";
  }
  out["retry"] = {{"attempts", d.retry.attempts}, {"first", text(d.retry.first)}, {"max", text(d.retry.max)}};
  out["on_dead"] = d.on_dead == on_dead::skip ? "skip" : "hold";
  out["timeout"] = text(d.timeout);
  out["pause_after"] = text(d.pause_after);
  out["concurrency"] = d.concurrency;
  return out;
}

json of(const token& t) {
  json out = {{"name", t.name}, {"role", to_string(t.role)}, {"permissions", json::array()}};
  if (t.payload) out["permissions"].push_back("payload");
  if (t.expires) out["expires"] = to_rfc3339(*t.expires);
  return out;
}

json of(const listener& l) {
  json out = {{"address", l.address}, {"port", l.port}};
  if (l.proxy_protocol) out["proxy_protocol"] = true;
  if (l.tls) {
    out["tls"] = {{"certificate", l.tls->certificate}, {"key", "(set)"}, {"expires", to_rfc3339(l.tls->context->not_after())}};
    if (!l.tls->client_ca.empty()) out["tls"]["client_ca"] = l.tls->client_ca;
  }
  return out;
}

std::string_view word(forwarded_headers f) noexcept {
  switch (f) {
    case forwarded_headers::any: return "any";
    case forwarded_headers::x_forwarded: return "x-forwarded";
    case forwarded_headers::forwarded: return "forwarded";
  }
  return "";
}

json of(const limits& l) {
  return {{"body", size_text(l.body)},
          {"header", size_text(l.header)},
          {"connections", l.connections},
          {"in_flight", size_text(l.in_flight)},
          {"header_timeout", text(l.header_timeout)},
          {"body_timeout", text(l.body_timeout)},
          {"idle_timeout", text(l.idle_timeout)}};
}

}  // namespace

std::string effective_json(const settings& s) {
  json out;
  out["digest"] = s.digest;
  out["listen"] = {{"callbacks", of(s.callbacks)}, {"api", of(s.api)}, {"trusted_proxies", json::array()}};
  for (const auto& n : s.trusted_proxies) out["listen"]["trusted_proxies"].push_back(to_string(n));
  out["listen"]["forwarded"] = word(s.forwarded);
  out["database"] = {{"url", masked(s.database.url)}, {"owner_url", masked(s.database.owner_url)}, {"pool", s.database.pool}};
  out["limits"] = of(s.limits);
  out["record"] = {{"writers", s.record.writers}, {"batch", s.record.batch}, {"queue", s.record.queue}};
  out["outbox"] = {{"lease", text(s.outbox.lease)}};
  out["reviews"] = {{"due", text(s.reviews.due)}, {"owner", s.reviews.owner}, {"parked_after", text(s.reviews.parked_after)}};
  out["outbound"] = {{"ca", s.outbound.ca.empty() ? json() : json("(set)")}};
  for (const auto& [host, at] : s.outbound.connect_to) out["outbound"]["connect_to"][host] = to_string(at);
  if (!s.callback_urls.base.empty())
    out["callback_urls"] = {{"base", s.callback_urls.base}, {"secrets", names(s.callback_urls.keys)}};
  out["api"] = {{"tokens", json::array()}};
  for (const auto& t : s.tokens) out["api"]["tokens"].push_back(of(t));
  out["providers"] = json::object();
  for (const auto& [name, p] : s.providers) out["providers"][name] = of(p);
  out["workflows"] = json::object();
  for (const auto& [name, w] : s.workflows) out["workflows"][name] = of(*w);
  out["destinations"] = json::object();
  for (const auto& [name, d] : s.destinations) out["destinations"][name] = of(d);
  out["retention"] = {{"payloads", text(s.retain_payloads)},
                      {"deliveries", text(s.retain_deliveries)},
                      {"operations", text(s.retain_operations)},
                      {"attempts", text(s.retain_attempts)}};
  out["drain"] = {{"delay", text(s.drain_delay)}, {"timeout", text(s.drain_timeout)}};
  out["log"] = {{"level", s.log_level}, {"format", s.log_format}};
  if (!s.otlp.empty()) out["tracing"] = {{"otlp", s.otlp}};
  return out.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace recibo::config
