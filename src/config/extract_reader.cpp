// extract: where the values of a callback stand, and whether the signature covers those places (K15, R42).
#include "scheme_reader.hpp"
#include "sections.hpp"

#include "recibo/config/each.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

// What a value is used for decides what it costs when somebody else can write it.
enum class use {
  identity,  // finds the operation
  key,       // the idempotency key
  other,     // everything else: event, amount, …
};

struct rules {
  use meaning = use::other;
  bool several = false;  // a list: a composite key, or several references
  bool time = false;     // takes `format`
  bool amount = false;   // takes `unit`
};

// Of one word.
constexpr std::size_t parts_max = 8;

class extract_reader {
 public:
  extract_reader(reading& r, const verify::scheme* scheme, const extract_rules& how) : r_(r), scheme_(scheme), how_(how) {}

  // `within`: what sources in JSON are relative to, below what all are relative to.
  sources read(const field& f, const rules& how, const std::string& within = {}) {
    sources out;
    within_ = each_ + within;
    if (!f || f.value->what == node::kind::broken) return out;
    if (f.value->what == node::kind::list && !how.several) {
      r_.error(f.at,
               std::string(f.name) + (f.name == "event" ? ": one source; several that make one word are {join: [...]}"
                                                        : ": one source; only idempotency_key and reference may list several"));
      return out;
    }
    for (const field& one : elements(r_, f, true)) {
      if (auto s = read_one(one, how)) out.push_back(std::move(*s));
    }
    return out;
  }

  // The word for what happened, which several places may make together: {join: [source, ...]}.
  sources read_event(const field& f, const std::string& within = {}) {
    if (!f || f.value->what != node::kind::map || f.value->find("join") == nullptr) return read(f, {}, within);
    sources out;
    within_ = each_ + within;
    section s(r_, f);
    const field join = s.get("join");
    if (!join || join.value->what == node::kind::broken) return out;
    // Problems are those of the event, which is what the sources make.
    const field parts{f.name, join.value, join.at, join.key};
    const auto all = elements(r_, parts);
    if (join.value->what == node::kind::list && (all.size() < 2 || all.size() > parts_max))
      r_.error(join.at, "join: two to " + std::to_string(parts_max) + " sources make one word");
    for (const field& one : all) {
      if (auto source = read_one(one, {})) out.push_back(std::move(*source));
    }
    return out;
  }

  std::optional<std::string> pointer(const field& f) {
    std::string text;
    if (!read_text(r_, f, text)) return std::nullopt;
    if (is_pointer(text)) return text;
    r_.error(f.at,
             std::string(f.name) + ": a JSON Pointer begins with \"/\" and escapes \"~\" as \"~0\", found " + found(*f.value));
    return std::nullopt;
  }

  // Everything that follows is relative to the elements of this list.
  void read_within(const std::string& each) { each_ = first_event(each); }

  // The same for a list, which the whole body may be: "".
  std::optional<std::string> list_pointer(const field& f) {
    if (f.value->what == node::kind::scalar && f.value->text.empty()) return std::string();
    return pointer(f);
  }

 private:
  std::optional<source> read_one(const field& f, const rules& how) {
    source out;
    if (f.value->what == node::kind::map) {
      section s(r_, f);
      if (!read_place(s, out)) return std::nullopt;
      if (const field then = s.get("then")) out.then = pointer(then);
      if (const field format = s.get("format")) read_format(format, how, out);
      if (const field unit = s.get("unit")) read_unit(unit, how, out);
      if (const field mark = s.get("unsigned")) {
        constexpr choice<bool> words[] = {{"accept", true}};
        read_word(r_, mark, out.unsigned_accept, words);
      }
    } else {
      const auto text = pointer(f);
      if (!text) return std::nullopt;
      out.name = *text;
    }
    check_cover(f, how, out);
    return out;
  }

  bool read_place(section& s, source& out) {
    const field json = s.get("json"), header = s.get("header"), query = s.get("query"), form = s.get("form");
    for (const auto key : {"then", "format", "unit", "unsigned"}) s.get_later(key);
    if (int{s.has("json")} + int{s.has("header")} + int{s.has("query")} + int{s.has("form")} != 1) {
      r_.error(s.at(), std::string(s.name()) + ": a source has exactly one of json, header, query and form");
      return false;
    }
    if (json) {
      const auto text = pointer(json);
      if (!text) return false;
      out.name = *text;
      return true;
    }
    const field& f = header ? header : query ? query : form;
    if (!f || !read_text(r_, f, out.name, 255)) return false;
    out.from = header ? source::place::header : query ? source::place::query : source::place::form;
    if (!header) return true;
    out.name = header_name(out.name);
    if (out.name.empty()) r_.error(f.at, "header: this is no name of an HTTP header");
    return !out.name.empty();
  }

  void read_format(const field& f, const rules& how, source& out) {
    constexpr choice<verify::timestamp_format> formats[] = {{"unix_s", verify::timestamp_format::unix_s},
                                                            {"unix_ms", verify::timestamp_format::unix_ms},
                                                            {"rfc3339", verify::timestamp_format::rfc3339}};
    if (!how.time) {
      r_.error(f.at, "format: belongs to a time, which only occurred_at is");
      return;
    }
    verify::timestamp_format format{};
    if (read_word(r_, f, format, formats)) out.format = format;
  }

  void read_unit(const field& f, const rules& how, source& out) {
    constexpr choice<bool> units[] = {{"major", false}, {"minor", true}};
    if (!how.amount) {
      r_.error(f.at, "unit: belongs to an amount");
      return;
    }
    read_word(r_, f, out.minor_unit, units);
  }

  bool covered(const source& s) const {
    switch (s.from) {
      case source::place::json: return scheme_->covers_json(within_ + s.name);
      case source::place::form: return scheme_->covers_form(s.name);
      case source::place::header: return scheme_->covers_header(s.name);
      case source::place::query: return scheme_->covers_query(s.name);
    }
    return false;
  }

  // Signed parts can be recombined into requests that nobody sent: equal signed content is no key there.
  bool signs_in_parts() const {
    const bool items = !scheme_->for_each.empty() && scheme_->kind != verify::scheme_kind::token;
    return items || scheme_->kind == verify::scheme_kind::aws_sns;
  }

  void check_cover(const field& f, const rules& how, const source& s) {
    // With scheme: none nothing is covered, which is said once and loudly where it is spelled; with callback-url the URL alone
    // is what counts, as that name says.
    if (scheme_ == nullptr || scheme_->kind == verify::scheme_kind::none || covered(s)) return;
    const std::string_view what = s.from == source::place::header  ? "this header"
                                  : s.from == source::place::query ? "this query field"
                                                                   : "the body";
    const std::string why =
        std::string(f.name) + ": the signature does not cover " + std::string(what) + ", so anybody could change it; ";
    if (how.meaning == use::identity && !how_.minted && !how_.hint) {
      r_.error(f.at, why +
                         "an identity outside the signature needs a URL of each operation's own (callback_url: required), or "
                         "mode: hint");
    } else if (!s.unsigned_accept) {
      r_.error(f.at, why + "write `unsigned: accept` beside it if that is meant");
    } else if (how.meaning == use::key && signs_in_parts()) {
      r_.error(f.at, why + "and this scheme signs parts of a request, which can be put together anew: take a key that is signed");
    }
  }

  reading& r_;
  const verify::scheme* scheme_;
  extract_rules how_;
  std::string each_, within_;
};

// The provider's own delivery ID, where its scheme names one that is signed.
void default_key(reading& r, const section& s, const verify::scheme* scheme, extract& out) {
  if (scheme == nullptr) return;
  if (scheme->replay_header && scheme->covers_header(*scheme->replay_header)) {
    source from;
    from.from = source::place::header;
    from.name = *scheme->replay_header;
    out.idempotency_key.push_back(std::move(from));
  } else if (scheme->replay_json && scheme->covers_json(*scheme->replay_json)) {
    source from;
    from.name = *scheme->replay_json;
    out.idempotency_key.push_back(std::move(from));
  } else {
    std::string hint;
    if (scheme->replay_header)
      hint = "; this scheme's own is in the header " + *scheme->replay_header +
             ", which it does not sign: {header: " + *scheme->replay_header + ", unsigned: accept}";
    r.error(s.at(), "extract: idempotency_key is required: what tells a callback sent again from a new one" + hint);
  }
}

// A source of an item stands in JSON, relative to its element; whether it is signed is asked of the whole place.
sources in_element(reading& r, const field& f, sources read) {
  for (const source& one : read)
    if (one.from != source::place::json)
      r.error(f.at, std::string(f.name) + ": what is said of an item stands in the JSON of its element");
  return read;
}
sources read_item_source(reading& r, extract_reader& read, const field& f, const std::string& each, const rules& how) {
  return in_element(r, f, read.read(f, how, each));
}

void read_items(reading& r, const field& f, extract_reader& read, extract& out) {
  if (!f) return;
  section s(r, f);
  if (!s.good()) return;
  item_rule rule;
  std::string each;
  if (const field where = s.get("each")) {
    rule.each = read.list_pointer(where);
    // Any element will do where it is asked what is signed.
    if (rule.each) each = *rule.each + "/0";
  }
  const field id = s.require("item_id", "which item an element is about");
  rule.item_id = read_item_source(r, read, id, each, {use::identity, false, false});
  const field event = s.require("event", "what happened to the item, in the provider's words");
  rule.event = in_element(r, event, read.read_event(event, each));
  rule.occurred_at = read_item_source(r, read, s.get("occurred_at"), each, {use::other, false, true});
  rule.sequence = read_item_source(r, read, s.get("sequence"), each, {});
  for (const named& one : members(r, s.get("result"))) {
    if (!check_name(r, one.at, "result", one.name)) continue;
    const sources from = read_item_source(r, read, one.value, each, {});
    if (!from.empty()) rule.result.emplace(std::string(one.name), from.front());
  }
  out.items = std::move(rule);
}

}  // namespace

void read_extract(reading& r, const field& f, const verify::scheme* scheme, const extract_rules& how, extract& out) {
  section s(r, f);
  if (!s.good()) return;
  extract_reader read(r, scheme, how);
  if (const field each = s.get("each")) {
    out.each = read.list_pointer(each);
    if (out.each) read.read_within(*out.each);
  }
  out.request_id = read.read(s.get("request_id"), {use::identity, false, false});
  out.reference = read.read(s.get("reference"), {use::identity, true, false});
  out.idempotency_key = read.read(s.get("idempotency_key"), {use::key, true, false});
  const field items = s.get("items");
  // Where a body is about items, it need not say anything of the operation itself.
  const field event = items || how.hint ? s.get("event") : s.require("event", "what happened, in the provider's words");
  out.event = read.read_event(event);
  out.sequence = read.read(s.get("sequence"), {});
  out.occurred_at = read.read(s.get("occurred_at"), {use::other, false, true});
  const field amount = s.get("amount");
  out.amount = read.read(amount, {use::other, false, false, true});
  out.currency = read.read(s.get("currency"), {});
  out.account = read.read(s.get("account"), {});
  if (!out.amount.empty() && out.amount.front().minor_unit && out.currency.empty())
    r.error(amount.at, "unit: minor needs extract.currency: how many digits its smallest unit has depends on it");
  for (const named& one : members(r, s.get("result"))) {
    if (!check_name(r, one.at, "result", one.name)) continue;
    const sources from = read.read(one.value, {});
    if (!from.empty()) out.result.emplace(std::string(one.name), from.front());
  }
  if (!s.has("request_id") && !s.has("reference") && !how.minted && !how.identity_known)
    r.error(s.at(), "extract: request_id or reference is required: which operation a callback speaks of");
  // Who signs nothing often numbers nothing: then the same bytes at the same URL are the same callback.
  const bool by_bytes = how.hint || (how.minted && scheme != nullptr && scheme->name == "callback-url");
  if (!s.has("idempotency_key") && !by_bytes) default_key(r, s, scheme, out);
  read_items(r, items, read, out);
}

void check_parts(reading& r, position at, const extract& from, const std::map<std::string, std::string, std::less<>>& words) {
  const std::size_t own = from.event.size(), of_items = from.items ? from.items->event.size() : 0;
  if (own == 1 || of_items == 1) return;
  for (const auto& [word, unused] : words) {
    const auto parts = static_cast<std::size_t>(std::count(word.begin(), word.end(), '/')) + 1;
    if (parts == own || parts == of_items || own + of_items == 0) continue;
    r.error(at, "events: " + in_quotes(word) + " is no word of " + std::to_string(own > 0 ? own : of_items) +
                    " parts with \"/\" between them, as extract.event joins them");
  }
}

}  // namespace recibo::config
