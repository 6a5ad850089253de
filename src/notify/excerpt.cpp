// What of an answer is shown to people.
#include "recibo/core/ascii.hpp"
#include "recibo/notify/message.hpp"

#include <algorithm>
#include <array>

namespace recibo::notify {
namespace {

constexpr std::size_t excerpt_most = 200;
// Judged beyond what is shown, so that no cut makes a secret look harmless.
constexpr std::size_t judged_most = 1'024;
// Words of that length with digits and letters are hardly written by people; nor are so many digits.
constexpr std::size_t secret_least = 24, card_least = 12;

constexpr std::array hiding_words{"authorization", "bearer", "basic",   "password", "passwd", "secret",
                                  "token",         "apikey", "api_key", "api-key",  "cookie", "signature"};

bool in_word(char c) noexcept {
  const char l = lower(c);
  return is_digit(c) || (l >= 'a' && l <= 'z') || c == '+' || c == '/' || c == '=' || c == '_' || c == '-';
}

bool is_uuid_text(std::string_view word) noexcept {
  if (word.size() != 36) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? word[i] != '-' : hex_value(word[i]) < 0) return false;
  }
  return true;
}

bool looks_secret(std::string_view word) noexcept {
  if (is_uuid_text(word)) return false;
  const auto digits = std::count_if(word.begin(), word.end(), is_digit);
  if (static_cast<std::size_t>(digits) == word.size()) return word.size() >= card_least;
  return (word.size() >= secret_least && digits > 0) || (word.starts_with("eyJ") && word.size() >= 12);
}

// A word for a secret, and behind it what sets its value apart; "password is wrong" gives nothing away.
bool announces(std::string_view word, std::string_view rest) noexcept {
  const auto same = [&](std::string_view one) { return same_text(word, one); };
  if (std::none_of(hiding_words.begin(), hiding_words.end(), same)) return false;
  const std::string_view trimmed = trim(rest);
  if (same_text(word, "bearer") || same_text(word, "basic")) return trimmed.size() < rest.size();
  return !trimmed.empty() && (trimmed.front() == ':' || trimmed.front() == '=' || trimmed.front() == '"');
}

}  // namespace

std::string excerpt_of(std::string_view answer) {
  std::string text(answer.substr(0, judged_most));
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = ' ';
  std::string out;
  bool hide_next = false;
  for (std::size_t at = 0; at < text.size() && out.size() < excerpt_most;) {
    if (!in_word(text[at]) || text[at] == '=') {
      out += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    std::string_view word = std::string_view(text).substr(at, end - at);
    // "password=hunter2": its value is the next word.
    if (const auto equals = word.find('='); equals != std::string_view::npos && equals > 0 &&
                                            announces(word.substr(0, equals), std::string_view(text).substr(at + equals)))
      word = word.substr(0, equals);
    at += word.size();
    const bool hidden = hide_next || looks_secret(word);
    hide_next = announces(word, std::string_view(text).substr(at));
    out += hidden ? std::string_view("(hidden)") : word;
  }
  out.resize(std::min(out.size(), excerpt_most));
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace recibo::notify
