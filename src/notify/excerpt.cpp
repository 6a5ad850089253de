// What of an answer is shown to people.
#include "recibo/core/ascii.hpp"
#include "recibo/core/json_value.hpp"
#include "recibo/notify/message.hpp"

#include <algorithm>
#include <array>

namespace recibo::notify {
namespace {

constexpr std::size_t excerpt_most = 200;
// Judged beyond what is shown, so that no cut makes a secret look harmless.
constexpr std::size_t judged_most = 1'024;
// Words of that length with digits and letters are hardly written by people; nor are so many digits in a row, whatever groups
// them, or among letters (an IBAN).
constexpr std::size_t secret_least = 24, card_least = 12, account_least = 8;

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

// "2026-12-01", and what of "2026-12-01T10:00:00Z" is one word.
bool is_day(std::string_view word) noexcept {
  constexpr std::string_view shape = "dddd-dd-ddTdd";
  if (word.size() != 10 && word.size() != shape.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (shape[i] == 'd' ? !is_digit(word[i]) : word[i] != shape[i]) return false;
  return true;
}

bool looks_secret(std::string_view word) noexcept {
  if (is_uuid_text(word) || is_day(word)) return false;
  const auto digits = static_cast<std::size_t>(std::count_if(word.begin(), word.end(), is_digit));
  if (digits == word.size()) return digits >= card_least;
  const bool letters = std::any_of(word.begin(), word.end(), [](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; });
  return (word.size() >= secret_least && digits > 0) || (letters && digits >= account_least) ||
         (word.starts_with("eyJ") && word.size() >= 12);
}

// How much of the beginning of `text` is digits, with a few blanks, dashes and dots among them; 0: too few for a card or an
// account.
std::size_t grouped_digits(std::string_view text) noexcept {
  // A telephone's number is shorter.
  const bool telephone = text.starts_with('+');
  const std::size_t least = telephone ? account_least : card_least;
  std::size_t end = telephone ? 1 : 0, digits = 0;
  for (std::size_t at = end; at < text.size(); ++at) {
    const bool joins = text[at] == ' ' || text[at] == '-' || text[at] == '.';
    if (!is_digit(text[at]) && !(joins && at < end + 3)) break;
    if (joins) continue;
    ++digits;
    end = at + 1;
  }
  // "4111 1111 1111 1111x": its end belongs to another word, which is judged with it.
  while (end < text.size() && in_word(text[end]) && digits >= least) ++end;
  return digits >= least ? end : 0;
}

// How much of the beginning of `text` is an address of somebody's mail; 0: it is none.
std::size_t mail_address(std::string_view text) noexcept {
  const auto part = [&](std::size_t at) {
    while (at < text.size() && (in_word(text[at]) || text[at] == '.' || text[at] == '%')) ++at;
    return at;
  };
  const std::size_t local = part(0);
  if (local == 0 || local == text.size() || text[local] != '@') return 0;
  const std::size_t end = part(local + 1);
  return end > local + 1 ? end : 0;
}

// A word for a secret, and behind it what sets its value apart; "password is wrong" gives nothing away.
bool announces(std::string_view word, std::string_view rest) noexcept {
  const auto same = [&](std::string_view one) { return same_text(word, one); };
  if (std::none_of(hiding_words.begin(), hiding_words.end(), same)) return false;
  const std::string_view trimmed = trim(rest);
  if (same_text(word, "bearer") || same_text(word, "basic")) return trimmed.size() < rest.size();
  return !trimmed.empty() && (trimmed.front() == ':' || trimmed.front() == '=' || trimmed.front() == '"');
}

// In words of people, as far as they may be shown.
std::string shown_words(std::string_view answer) {
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
    const std::string_view rest = std::string_view(text).substr(at);
    std::size_t length = mail_address(rest);
    if (length == 0 && !is_uuid_text(rest.substr(0, 36))) length = grouped_digits(rest);
    if (length > 0) {
      out += "(hidden)";
      at += length;
      hide_next = false;
      continue;
    }
    while (length < rest.size() && in_word(rest[length])) ++length;
    std::string_view word = rest.substr(0, length);
    // "password=hunter2": its value is the next word.
    if (const auto equals = word.find('=');
        equals != std::string_view::npos && equals > 0 && announces(word.substr(0, equals), rest.substr(equals)))
      word = word.substr(0, equals);
    at += word.size();
    const bool hidden = hide_next || looks_secret(word);
    hide_next = announces(word, std::string_view(text).substr(at));
    out += hidden ? std::string_view("(hidden)") : word;
  }
  return out;
}

// What problems say of themselves (RFC 9457 and those like it). Whatever else is there may be what was sent, or somebody's.
constexpr std::array told_members{"type", "title", "status", "code", "error", "message"};

void tell_members(const json_value& of, std::string& out, bool inner = false) {
  for (const auto& [name, value] : of.members) {
    const auto same = [&name = name](std::string_view one) { return name == one; };
    if (std::none_of(told_members.begin(), told_members.end(), same)) continue;
    if (value.is(json_value::kind::object) && !inner) tell_members(value, out, true);
    if (!value.is(json_value::kind::string) && !value.is(json_value::kind::number)) continue;
    if (!out.empty()) out += ", ";
    out += name + ": " + shown_words(value.text);
  }
}

// The title of a page; its text is written for others.
std::string_view title_of(std::string_view page) noexcept {
  constexpr std::string_view open = "<title>";
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  const auto at = std::search(page.begin(), page.end(), open.begin(), open.end(), same);
  if (at == page.end()) return {};
  const auto rest = page.substr(static_cast<std::size_t>(at - page.begin()) + open.size());
  return rest.substr(0, rest.find('<'));
}

}  // namespace

std::string excerpt_of(std::string_view answer) {
  answer = trim(answer);
  std::string out;
  if (answer.starts_with('{') || answer.starts_with('[')) {
    if (const auto document = parse_json(answer)) tell_members(*document, out);
    if (out.empty()) out = "(hidden)";
  } else if (answer.starts_with('<')) {
    out = shown_words(trim(title_of(answer)));
    if (out.empty()) out = "(hidden)";
  } else {
    // A document behind words is no words.
    const auto document = answer.find_first_of("{<");
    out = shown_words(answer.substr(0, document));
    if (document != std::string_view::npos) out += "(hidden)";
  }
  out.resize(std::min(out.size(), excerpt_most));
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string excerpt_of_ours(std::string_view detail) {
  std::string out(detail.substr(0, excerpt_most));
  for (char& c : out)
    if (c < 0x20 || c > 0x7e) c = ' ';
  return out;
}

}  // namespace recibo::notify
