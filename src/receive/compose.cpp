#include "recibo/receive/compose.hpp"

#include "recibo/config/each.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/core/money.hpp"
#include "recibo/core/url.hpp"
#include "recibo/verify/verifier.hpp"

#include "values.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace recibo::receive {
namespace {

using json = nlohmann::ordered_json;
using place = config::source::place;

error wrong(std::string why) { return {permanent::wrong_usage, std::move(why)}; }

// Digits as a number where they fit, so that 10 is not "10"; anything else as a text.
json as_number(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const bool plain = read.ec == std::errc() && read.ptr == end && std::to_string(number) == text;
  return plain ? json(number) : json(text);
}

json time_value(const std::string& text, verify::timestamp_format format, sys_micros at) {
  using namespace std::chrono;
  if (!text.empty()) {
    const auto given = parse_rfc3339(text);
    if (!given) return as_number(text);
    at = *given;
  }
  switch (format) {
    case verify::timestamp_format::unix_s:
    case verify::timestamp_format::unix_any: return json(floor<seconds>(at).time_since_epoch().count());
    case verify::timestamp_format::unix_ms: return json(floor<milliseconds>(at).time_since_epoch().count());
    case verify::timestamp_format::rfc3339: break;
  }
  return text.empty() ? json(to_rfc3339(at)) : json(text);
}

std::string as_text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// "19.99" EUR is "1999"; nullopt: it has more digits than the currency.
std::optional<std::string> in_smallest_unit(const decimal& amount, std::string_view currency) {
  const auto places = static_cast<std::size_t>(minor_unit_digits(currency));
  std::string_view text = amount.text;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto point = std::min(text.find('.'), text.size());
  std::string fraction(text.substr(std::min(point + 1, text.size())));
  while (fraction.ends_with('0')) fraction.pop_back();
  if (fraction.size() > places) return std::nullopt;
  fraction.append(places - fraction.size(), '0');
  std::string digits = std::string(text.substr(0, point)) + fraction;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return (negative ? "-" : "") + digits;
}

std::string made_up_id(sys_micros at) { return uuid_text(uuid_v7_bytes(at)); }

// Puts values at sources, then writes query, headers and body.
class composer {
 public:
  composer(const config::provider& how, const composition& what, sys_micros at) : how_(how), what_(what), at_(at) {}

  result<http::request> run() {
    fill();
    for (const content_part& part : how_.verify.content) make_up(part);
    if (problem_) return std::move(*problem_);
    out_.method = is_get() ? "GET" : "POST";
    if (auto fine = write_body(); !fine) return fine.error();
    if (!is_get())
      out_.headers.insert(out_.headers.begin(),
                          {"Content-Type", form_.empty() ? "application/json" : "application/x-www-form-urlencoded"});
    if (auto fine = sign(); !fine) return fine.error();
    return std::move(out_);
  }

 private:
  using content_part = verify::content_part;

  void fill() {
    const config::extract& at = how_.extract;
    // The URL says it, where each operation has its own.
    if (!how_.callback_url || !at.request_id.empty()) put_given("request_id", at.request_id, what_.request_id);
    put_event(word_of(what_.event));
    put_given("reference", at.reference, what_.reference);
    put_amount();
    put_given("currency", at.currency, what_.currency);
    if (!what_.account.empty()) put_first("account", at.account, json(what_.account));
    if (!what_.sequence.empty()) put_first("sequence", at.sequence, as_number(what_.sequence));
    if (!at.occurred_at.empty() || !what_.occurred_at.empty()) {
      const auto format = at.occurred_at.empty() ? std::nullopt : at.occurred_at.front().format;
      put_first("occurred_at", at.occurred_at,
                time_value(what_.occurred_at, format.value_or(verify::timestamp_format::rfc3339), at_));
    }
    // A time that the scheme reads from the body.
    if (const auto& time = how_.verify.timestamp; time && time->from == verify::place::json) {
      config::source stands;
      stands.name = time->names.front();
      if (!has(stands)) put(stands, time_value({}, time->format, at_));
    }
    // Last, because a part of the key may be one of the fields above, and then it is what that field says.
    auto given = what_.key.begin();
    for (const config::source& part : at.idempotency_key) {
      const auto one = within_first(part);
      if (has(one)) continue;
      put(one, json(given != what_.key.end() ? *given++ : made_up_id(at_)));
    }
    if (given != what_.key.end()) problem_ = wrong("more parts of a key than the provider's key has sources");
  }

  std::string word_of(const std::string& event) const {
    if (event.empty() || how_.events.contains(event)) return event;
    const auto meant = std::find_if(how_.events.begin(), how_.events.end(), [&](const auto& e) { return e.second == event; });
    return meant == how_.events.end() ? event : meant->first;
  }

  bool is_get() const noexcept { return how_.callback_url && !how_.callback_url->post; }

  void put_given(const char* field, const config::sources& to, const std::string& text) {
    if (!text.empty()) put_first(field, to, json(text));
  }
  void put_first(const char* field, const config::sources& to, const json& value) {
    if (!to.empty()) return put(within_first(to.front()), value);
    if (!what_.body) problem_ = wrong(std::string(field) + ": this provider's callbacks have no place for it");
  }

  void put_event(const std::string& word) {
    const config::sources& to = how_.extract.event;
    if (word.empty() || to.size() < 2) return put_given("event", to, word);
    const auto parts = split_word(word, to.size());
    if (!parts) {
      problem_ = wrong("event: a word of this provider has " + std::to_string(to.size()) + " parts with \"/\" between them");
      return;
    }
    for (std::size_t i = 0; i < to.size(); ++i) put(within_first(to[i]), json((*parts)[i]));
  }

  // In the unit that the provider counts in.
  void put_amount() {
    const config::sources& to = how_.extract.amount;
    if (what_.amount.empty() || to.empty() || !to.front().minor_unit) return put_given("amount", to, what_.amount);
    const auto amount = parse_decimal(what_.amount);
    const auto currency = parse_currency(what_.currency);
    if (!amount) {
      problem_ = wrong("amount: " + amount.error().detail);
    } else if (!currency) {
      problem_ = wrong("amount: this provider counts the smallest unit of the currency, so the currency is needed (--currency)");
    } else if (const auto minor = in_smallest_unit(*amount, *currency)) {
      put(within_first(to.front()), as_number(*minor));
    } else {
      problem_ = wrong("amount: " + what_.amount + " is no whole number of the smallest unit of " + *currency);
    }
  }

  using source_key = std::pair<place, std::string>;

  bool has(const config::source& s) const {
    const auto at = put_.find({s.from, s.name});
    if (at == put_.end()) return false;
    return !s.then || at->second.contains(*s.then);
  }

  // Where each request carries many events, the one that is written is the first of its list.
  config::source within_first(config::source s) const {
    if (how_.extract.each && s.from == place::json) s.name = config::first_event(*how_.extract.each) + s.name;
    return s;
  }

  void put(const config::source& to, const json& value) {
    put_[{to.from, to.name}].insert(to.then.value_or(""));
    if (to.then) {
      set(inner_[{to.from, to.name}], *to.then, value);
    } else {
      set_outer({to.from, to.name}, value);
    }
  }

  void set_outer(const source_key& to, const json& value) {
    switch (to.first) {
      case place::json: set(document_, to.second, value); break;
      case place::header:
        out_.headers.emplace_back(to.second, as_text(value));
        if (out_.headers.back().second.find_first_of("\r\n") != std::string::npos)
          problem_ = wrong(to.second + ": a header is one line");
        break;
      case place::query: add_field(out_.query, to.second, as_text(value)); break;
      case place::form: add_field(form_, to.second, as_text(value)); break;
    }
  }

  void set(json& document, const std::string& pointer, const json& value) {
    try {
      json& there = document[json::json_pointer(pointer)];
      if (there.is_null() || there == value) {
        there = value;
        return;
      }
    } catch (const json::exception&) {
      // A text stands where this pointer wants to go on.
    }
    problem_ = wrong("two sources of this provider cannot both be written: they stand in one place, or one inside the other");
  }

  static void add_field(std::string& to, const std::string& name, const std::string& value) {
    if (!to.empty()) to += '&';
    to += percent_encode(name) + '=' + percent_encode(value);
  }

  // A header or query field that the scheme signs and nobody gave, for example a webhook-id.
  void make_up(const content_part& part) {
    if (part.optional || part.fallback) return;
    config::source stands;
    stands.name = part.names.empty() ? std::string() : part.names.front();
    if (part.what == content_part::source::header) {
      stands.from = place::header;
    } else if (part.what == content_part::source::query) {
      stands.from = place::query;
    } else {
      return;
    }
    if (!has(stands)) put(stands, json(made_up_id(at_)));
  }

  result<void> write_body() {
    for (const auto& [at, document] : inner_) set_outer(at, json(document.dump()));
    if (problem_) return std::move(*problem_);
    if (what_.body) {
      out_.body = *what_.body;
    } else if (is_get()) {
      if (!document_.is_null()) return wrong("this provider has sources in JSON, and a GET has no body");
      if (!form_.empty()) out_.query += (out_.query.empty() ? "" : "&") + form_;
    } else if (!form_.empty() && !document_.is_null()) {
      return wrong("this provider has sources in JSON and in a form: give the body");
    } else {
      out_.body = !form_.empty() ? form_ : document_.is_null() ? "{}" : document_.dump();
    }
    return {};
  }

  result<void> sign() {
    if (how_.public_url_forwarded && what_.public_url.empty())
      return wrong("the URL that this provider signs is what a proxy says: give it (--public-url)");
    const std::string url = verify::called_url(what_.public_url.empty() ? how_.public_url : what_.public_url, out_.query);
    const verify::signed_message message{out_.method, url, out_.query, out_.headers, out_.body};
    if (how_.verify.kind == verify::scheme_kind::none) return {};
    const auto& secrets = how_.keys.secrets;
    const auto key = std::find_if(secrets.begin(), secrets.end(), [&](const verify::named_secret& s) { return s.valid_at(at_); });
    if (key == secrets.end()) return wrong("no secret of this provider is valid now");
    auto made = verify::sign_request(how_.verify, message, *key, at_);
    if (!made) return made.error();
    out_.headers.insert(out_.headers.end(), made->headers.begin(), made->headers.end());
    if (made->body) out_.body = std::move(*made->body);
    return {};
  }

  const config::provider& how_;
  const composition& what_;
  const sys_micros at_;
  http::request out_;
  std::string form_;
  json document_;
  std::map<source_key, json> inner_;                 // texts that hold JSON
  std::map<source_key, std::set<std::string>> put_;  // what has been written, and below which `then`
  std::optional<error> problem_;
};

}  // namespace

result<http::request> compose(const config::provider& how, const composition& what, sys_micros at) {
  return composer(how, what, at).run();
}

}  // namespace recibo::receive
