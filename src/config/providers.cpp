// providers: everything about one sender of callbacks.
#include "answers_reader.hpp"
#include "handshake_reader.hpp"
#include "scheme_reader.hpp"
#include "sections.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

class provider_reader {
 public:
  provider_reader(reading& r, const named& where, const std::vector<std::string_view>& workflows_in_file, const settings& so_far)
      : r_(r), where_(where), workflows_in_file_(workflows_in_file), settings_(so_far) {}

  provider read() {
    out_.name = std::string(where_.name);
    check_name(r_, where_.at, "provider", where_.name);
    section s(r_, where_.value);
    const field verify = s.require("verify", "how its callbacks are authenticated");
    const bool verified = verify && read_verify(r_, verify, where_.name, out_.verify, out_.keys, out_.key_source);
    const verify::scheme* scheme = verified ? &out_.verify : nullptr;
    if (scheme) apply_profile(scheme->name, out_);
    read_mode(s);
    field minted = s.get("callback_url");
    if (!minted) minted.at = where_.at;
    read_minted_url(r_, minted, settings_, out_);
    read_public_url(s, scheme);
    if (const field extract = s.require("extract", "where the values of a callback stand"))
      read_extract(r_, extract, scheme, {out_.callback_url.has_value(), out_.hints, false}, out_.extract);
    check_methods(minted);
    read_workflow(s);
    read_events(s);
    read_limits_by_state(s);
    read_policies(s);
    read_idempotency(s);
    read_order(s);
    read_times(s);
    read_handshake(r_, s.get("handshake"), scheme, out_);
    if (out_.callback_url && out_.callback_url->get && out_.handshake)
      r_.error(minted.at, "methods: GET brings callbacks or a handshake, not both; `handshake: none` leaves that unanswered");
    const field status = s.get("status");
    read_status(
        r_, status, table_, [this](const field& f, auto& to) { read_words(f, to); }, out_);
    const field list = s.get("catch_up");
    read_list(
        r_, list, [this](const field& f, auto& to) { read_words(f, to); }, out_);
    if (out_.hints && !s.has("status"))
      r_.error(where_.at, std::string(where_.name) + ": status is required: with mode: hint all news is looked up there");
    return std::move(out_);
  }

 private:
  void read_public_url(section& s, const verify::scheme* scheme) {
    const field url = s.get("public_url");
    if (url && url.value->what == node::kind::scalar && url.value->text == "forwarded") {
      out_.public_url_forwarded = true;
      if (settings_.trusted_proxies.empty())
        r_.error(url.at, "public_url: forwarded without listen.trusted_proxies: nobody could say what the URL was");
    } else if (url) {
      read_http_url(r_, url, out_.public_url);
    }
    const bool needed = scheme != nullptr && scheme->needs_url();
    // A minted URL is the one that the provider knows.
    if (needed && !s.has("public_url") && !out_.callback_url)
      r_.error(where_.at,
               std::string(where_.name) + ": public_url is required: this scheme signs the URL as the provider knows it");
  }

  // A GET has no body: everything that it says stands in its query.
  void check_methods(const field& minted) {
    if (!out_.callback_url || !out_.callback_url->get) return;
    const auto& event = out_.extract.event;
    const bool in_json = std::any_of(event.begin(), event.end(), [](const source& s) { return s.from == source::place::json; });
    if (in_json && !out_.callback_url->post)
      r_.error(minted.at, "methods: a GET has no JSON, and extract.event stands there; take {query: ...}");
  }

  void read_workflow(section& s) {
    out_.workflow = "default";
    const field workflow = s.get("workflow");
    if (workflow && !read_text(r_, workflow, out_.workflow, 63)) out_.workflow.clear();
    const auto it = settings_.workflows.find(out_.workflow);
    if (it != settings_.workflows.end()) table_ = it->second.get();
    if (table_ != nullptr || !workflow || out_.workflow.empty()) return;
    // One that is in the file and could not be read was reported there.
    std::vector<std::string_view> names;
    for (const auto& [name, unused] : settings_.workflows) names.push_back(name);
    if (std::find(workflows_in_file_.begin(), workflows_in_file_.end(), out_.workflow) == workflows_in_file_.end())
      r_.error(workflow.at, "workflow: there is none named " + found(*workflow.value) +
                                (workflow.value->expanded ? "" : did_you_mean(out_.workflow, names)));
  }

  void read_events(section& s) {
    if (!out_.hints) {
      read_words(s.require("events", "which of its words raise which event of the workflow"), out_.events);
    } else if (const field events = s.get("events")) {
      read_words(events, out_.events);
    }
    check_parts(r_, s.key_at("events"), out_.extract, out_.events);
  }

  void read_words(const field& events, std::map<std::string, std::string, std::less<>>& out) {
    if (events && events.value->what == node::kind::map && events.value->entries.empty())
      r_.error(events.at, "events: the map is empty, so that no callback could change anything");
    std::vector<std::string_view> possible = {"ignore"};
    if (table_ != nullptr)
      for (const auto& m : table_->moves())
        if (by_provider(m) && std::find(possible.begin(), possible.end(), m.event) == possible.end()) possible.push_back(m.event);
    for (const named& one : members(r_, events)) {
      std::string event;
      if (one.name.empty() || one.name.size() > 255) r_.error(one.at, "events: a provider's word has 1 to 255 bytes");
      if (!read_text(r_, one.value, event, 63)) continue;
      if (table_ != nullptr && std::find(possible.begin(), possible.end(), event) == possible.end()) {
        const bool known = table_->knows_event(event);
        r_.error(one.value.at, std::string("events: the workflow ") + in_quotes(out_.workflow) + " has no " +
                                   (known ? "transition by the provider for the event " : "event named ") +
                                   found(*one.value.value) + (one.value.value->expanded ? "" : did_you_mean(event, possible)));
        continue;
      }
      out.emplace(std::string(one.name), std::move(event));
    }
  }

  void read_limits_by_state(section& s) {
    const field limits = s.get("limits");
    for (const named& one : members(r_, limits)) {
      std::optional<transition::limit> limit;
      const bool good = read_limit(r_, one.value, limit);
      if (table_ == nullptr) continue;
      const transition::state* state = table_->find_state(one.name);
      if (state == nullptr) {
        std::vector<std::string_view> names;
        for (const auto& x : table_->states()) names.push_back(x.name);
        r_.error(one.at, "limits: the workflow " + in_quotes(out_.workflow) + " has no state " + in_quotes(one.name) +
                             did_you_mean(one.name, names));
      } else if (state->terminal) {
        r_.error(one.at, "limits: " + state->name + " is terminal and lasts for ever");
      } else if (good) {
        const transition::move* m = limit ? table_->find_move(one.name, limit->event) : nullptr;
        if (limit && (m == nullptr || std::find(m->by.begin(), m->by.end(), transition::actor_kind::clock) == m->by.end()))
          r_.error(one.value.at, "limits: the clock has no transition for this event in " + state->name);
        else
          out_.limits.emplace(std::string(one.name), std::move(limit));
      }
    }
  }

  void read_policies(section& s) {
    if (const field unmatched = s.get("unmatched")) read_word(r_, unmatched, out_.unmatched, unmatched_words);
    if (const field parking = s.get("parking")) read_parking(parking);
    if (const field answers = s.get("answers")) read_answers(r_, answers, out_.answers);
    if (const field rate = s.get("rate")) read_rate(rate);
    if (out_.hints && out_.unmatched == config::unmatched::register_)
      r_.error(s.key_at("unmatched"), "unmatched: register: a hint says too little to register an operation by");
  }

  void read_mode(section& s) {
    constexpr choice<bool> modes[] = {{"full", false}, {"hint", true}};
    if (const field mode = s.get("mode")) read_word(r_, mode, out_.hints, modes);
  }

  void read_parking(const field& f) {
    section s(r_, f);
    if (const field most = s.get("per_identity")) read_int(r_, most, out_.parking.per_identity, 1, 100'000);
    const field expire = s.get("expire");
    std::chrono::seconds value{};
    if (expire && expire.value->what == node::kind::scalar && expire.value->text == "off") {
      out_.parking.expire.reset();
    } else if (expire && read_duration(r_, expire, value, "1h", "36500d")) {
      out_.parking.expire = value;
      if (out_.resend_span && value < *out_.resend_span)
        r_.warn(expire.at, "expire: this provider may send again for longer, and what it repeats would wait anew");
    }
  }

  void read_rate(const field& f) {
    section s(r_, f);
    config::rate rate;
    const field per_second = s.require("per_second", "how many callbacks a second are taken in the long run");
    const bool good = per_second && read_number(r_, per_second, rate.per_second, 0.01, 1'000'000);
    rate.burst = std::max(1.0, rate.per_second);
    const field burst = s.get("burst");
    if (burst && !read_number(r_, burst, rate.burst, 1, 10'000'000)) return;
    if (good) out_.rate = rate;
  }

  void read_idempotency(section& s) {
    const field f = s.get("idempotency");
    if (!f) return;
    section i(r_, f);
    if (const field scope = i.get("scope")) read_scope(scope);
    constexpr choice<content_rule> contents[] = {{"fields", content_rule::fields}, {"bytes", content_rule::bytes}};
    if (const field content = i.get("content")) read_word(r_, content, out_.content, contents);
    std::chrono::seconds keep{};
    if (const field f_keep = i.get("keep"); f_keep && read_duration(r_, f_keep, keep, "1h", "36500d")) {
      if (keep > settings_.retain_deliveries)
        r_.error(f_keep.at, "keep: longer than retention.deliveries; a key cannot outlive the delivery that claimed it");
      out_.keep_keys = keep;
      if (out_.resend_span && keep < *out_.resend_span)
        r_.warn(f_keep.at, "keep: this provider may send again for longer, and then what it repeats would count as new");
    }
  }

  void read_scope(const field& f) {
    std::vector<std::string> words;
    for (const field& one : elements(r_, f)) {
      constexpr choice<int> known[] = {{"operation", 0}, {"provider", 1}, {"key", 2}};
      int unused = 0;
      if (!read_word(r_, one, unused, known)) return;
      words.push_back(one.value->text);
    }
    if (f.value->what != node::kind::list) return;
    const bool whole_provider = words == std::vector<std::string>{"provider", "key"};
    if (!whole_provider && words != std::vector<std::string>{"operation", "key"})
      return r_.error(f.at, "scope: expected [operation, key] or [provider, key]");
    out_.scope = whole_provider ? key_scope::provider : key_scope::operation;
  }

  void read_order(section& s) {
    constexpr choice<transition::order_rule> orders[] = {{"table", transition::order_rule::table},
                                                         {"sequence", transition::order_rule::sequence}};
    const field order = s.get("order");
    if (!order || !read_word(r_, order, out_.order, orders)) return;
    const bool of_items = out_.extract.items && !out_.extract.items->sequence.empty();
    if (out_.order == transition::order_rule::sequence && out_.extract.sequence.empty() && !of_items)
      r_.error(order.at, "order: sequence needs extract.sequence");
  }

  void read_times(section& s) {
    if (const field within = s.get("answer_within")) read_duration(r_, within, out_.answer_within, "100ms", "60s");
    std::chrono::seconds silence{};
    if (const field alert = s.get("silence_alert"); alert && read_duration(r_, alert, silence, "1s", "365d"))
      out_.silence_alert = silence;
    if (const field expected = s.get("expected_rate")) {
      section e(r_, expected);
      provider::expected rate;
      const field least = e.require("at_least", "how many callbacks are expected");
      const field within = e.require("within", "in how long");
      const bool counted = least && read_int(r_, least, rate.at_least, 1, 1'000'000'000);
      if (within && read_duration(r_, within, rate.within, "1s", "31d") && counted) out_.expected_rate = rate;
    }
  }

  static bool by_provider(const transition::move& m) {
    return std::find(m.by.begin(), m.by.end(), transition::actor_kind::provider) != m.by.end();
  }

  reading& r_;
  const named& where_;
  const std::vector<std::string_view>& workflows_in_file_;
  const settings& settings_;
  const transition::workflow* table_ = nullptr;
  provider out_;
};

}  // namespace

void read_providers(reading& r, const field& f, const std::vector<std::string_view>& workflows_in_file, settings& out) {
  for (const named& one : members(r, f)) {
    provider p = provider_reader(r, one, workflows_in_file, out).read();
    out.providers.emplace(p.name, std::move(p));
  }
}

}  // namespace recibo::config
