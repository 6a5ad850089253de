#include "reader.hpp"

#include "recibo/core/json.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

// Optimal string alignment: swaps count once.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  if (text.size() <= longest) return json_string(text);
  std::size_t cut = longest;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0u) == 0x80u) --cut;
  return json_string(text.substr(0, cut)) + "…";
}

std::string found(const node& n) {
  switch (n.what) {
    case node::kind::null: return "nothing";
    case node::kind::scalar: return n.expanded ? "something else (not shown: it is from the environment)" : in_quotes(n.text);
    case node::kind::list: return "a list";
    case node::kind::map: return "a map";
    case node::kind::broken: return "something unreadable";
  }
  return {};
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > 100) return {};
  std::string_view best;
  std::size_t nearest = std::min<std::size_t>(3, word.size() / 3 + 1) + 1;
  for (const auto candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d < nearest) {
      nearest = d;
      best = candidate;
    }
  }
  return best.empty() ? std::string{} : "; did you mean " + in_quotes(best) + "?";
}

std::string either(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

section::section(reading& r, const field& where) : r_(r), where_(where), good_(false) {
  if (!where || where.value->what == node::kind::broken) return;
  good_ = where.value->what == node::kind::map;
  if (!good_) mismatch(r_, where_, "a map");
}

section::~section() {
  if (!good_ || !report_unknown_) return;
  for (const auto& e : where_.value->entries) {
    if (std::find(asked_.begin(), asked_.end(), e.key) != asked_.end()) continue;
    std::string message = std::string(where_.name) + ": unknown key";
    if (hint_.empty()) {
      message += " " + in_quotes(e.key) + did_you_mean(e.key, asked_);
    } else {
      message += "; " + std::string(hint_);
    }
    r_.error(e.at, std::move(message));
  }
}

bool section::has(std::string_view key) const noexcept { return good_ && where_.value->find(key) != nullptr; }

position section::key_at(std::string_view key) const noexcept {
  if (good_)
    for (const auto& e : where_.value->entries)
      if (e.key == key) return e.at;
  return at();
}

field section::get(std::string_view key) {
  asked_.push_back(key);
  field out{key, nullptr, at(), {}};
  if (!good_) return out;
  const node* n = where_.value->find(key);
  if (n == nullptr) return out;
  out.at = n->at;
  out.key = key_at(key);
  if (n->what == node::kind::null) {
    r_.error(out.key, std::string(key) + ": there is nothing behind this key");
    return out;
  }
  out.value = n;
  return out;
}

field section::require(std::string_view key, std::string_view why) {
  field out = get(key);
  if (good_ && !has(key))
    r_.error(at(), std::string(where_.name) + ": " + std::string(key) + " is required: " + std::string(why));
  return out;
}

void section::not_served(std::string_view key) {
  asked_.push_back(key);
  if (has(key)) r_.error(key_at(key), std::string(key) + ": " + std::string(not_served_text));
}
void mismatch(reading& r, const field& f, const std::string& expected) {
  r.error(f.at, std::string(f.name) + ": expected " + expected + ", found " + found(*f.value));
}

std::vector<field> elements(reading& r, const field& f, bool one_is_enough) {
  std::vector<field> out;
  if (!f || f.value->what == node::kind::broken) return out;
  if (f.value->what != node::kind::list) {
    if (one_is_enough) {
      out.push_back(f);
    } else {
      mismatch(r, f, "a list");
    }
    return out;
  }
  if (one_is_enough && f.value->items.empty()) r.error(f.at, std::string(f.name) + ": the list is empty");
  for (const auto& item : f.value->items) {
    if (item.what == node::kind::null) {
      r.error(item.at, std::string(f.name) + ": an element is empty");
    } else {
      out.push_back({f.name, &item, item.at, {}});
    }
  }
  return out;
}

std::vector<named> members(reading& r, const field& f) {
  std::vector<named> out;
  if (!f || f.value->what == node::kind::broken) return out;
  if (f.value->what != node::kind::map) {
    mismatch(r, f, "a map");
    return out;
  }
  for (const auto& e : f.value->entries) {
    if (e.value.what == node::kind::null) {
      r.error(e.at, std::string(f.name) + ": there is nothing behind " + in_quotes(e.key));
    } else {
      out.push_back({e.key, e.at, {e.key, &e.value, e.value.at, e.at}});
    }
  }
  return out;
}

}  // namespace recibo::config
