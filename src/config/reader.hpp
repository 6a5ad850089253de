// What the section readers share: where problems go, how a map is taken apart, and how scalars become values.
// Every reader reports what is wrong and leaves its target alone then, so that one run finds all problems.
#pragma once

#include "recibo/config/document.hpp"
#include "recibo/config/load.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/network.hpp"
#include "recibo/core/url.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::config {

// One run of the loader.
class reading {
 public:
  reading(std::string file, std::filesystem::path folder, const environment& env, sys_micros now)
      : file_(std::move(file)), folder_(std::move(folder)), env_(env), now_(now) {}

  void error(position at, std::string message) {
    problems.push_back({file_, at.line, at.column, std::move(message), severity::error});
  }
  void warn(position at, std::string message) {
    warnings.push_back({file_, at.line, at.column, std::move(message), severity::warning});
  }

  const std::filesystem::path& folder() const noexcept { return folder_; }
  const environment& env() const noexcept { return env_; }
  sys_micros now() const noexcept { return now_; }

  std::vector<diagnostic> problems, warnings;
  // Grows with everything that was read beside the file's own text: names, and SHA-256 of contents.
  canonical also_read;
  // Files and folders of secrets, as they are opened.
  std::vector<std::filesystem::path> watched;

 private:
  std::string file_;
  std::filesystem::path folder_;
  const environment& env_;
  sys_micros now_;
};

// A value together with what it is called in messages. Borrows the document; false: there is none, or it was reported.
struct field {
  std::string_view name;
  const node* value = nullptr;
  position at;        // of the value, else of where it is missing
  position key = {};  // of the key in front of it; 0:0 for elements of lists
  explicit operator bool() const noexcept { return value != nullptr; }
};

// A map while it is taken apart. Keys that nobody asked for are reported when it goes out of scope, so ask for every
// key, whatever was wrong before.
class section {
 public:
  // `where` must be a map; anything else is reported, and then every key is absent without further complaint.
  section(reading& r, const field& where);
  ~section();
  section(const section&) = delete;
  section& operator=(const section&) = delete;

  bool good() const noexcept { return good_; }
  // Where something that is missing here is reported: the key in front of the map, else the map.
  position at() const noexcept { return where_.key.line > 0 ? where_.key : where_.at; }
  std::string_view name() const noexcept { return where_.name; }

  // A key with nothing behind it is reported.
  field get(std::string_view key);
  // Its absence is reported: "<name>: <key> is required: <why>".
  field require(std::string_view key, std::string_view why);
  // A key of the contract that this version does not serve: reported where it stands.
  void not_served(std::string_view key);
  bool has(std::string_view key) const noexcept;
  // The place of a key that is there; of the map otherwise.
  position key_at(std::string_view key) const noexcept;
  // Known, and read by a later get(): not unknown even if that is never reached.
  void get_later(std::string_view key) { asked_.push_back(key); }
  // What is said of keys that are unknown instead of showing them (a secret may have slipped there).
  void hide_unknown(std::string_view hint) { hint_ = hint; }
  // No complaint about what is left over: it was reported otherwise.
  void ignore_rest() { report_unknown_ = false; }

 private:
  reading& r_;
  field where_;
  bool good_;
  bool report_unknown_ = true;
  std::vector<std::string_view> asked_;
  std::string_view hint_;
};

inline constexpr std::string_view not_served_text = "not served by this version";

// "\"abc\"", "a list", "a map", "nothing"; text from the environment is not shown.
std::string found(const node& n);
// Reports "<name>: expected …, found …".
void mismatch(reading& r, const field& f, const std::string& expected);
// Foreign text for a message: in quotes, escaped, cut to a sensible length.
std::string in_quotes(std::string_view text);
// "; did you mean \"…\"?" when one of the candidates is near, else empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);
// "a, b or c".
std::string either(std::span<const std::string_view> words);

// A plain number or boolean, which other readers of YAML would not take as text.
bool is_no_text(const node& n) noexcept;
// Text that is meant as text: a plain number, boolean or nothing is refused, because other readers of YAML would not
// take it as text. 1 to `longest` bytes, no control characters.
bool read_text(reading& r, const field& f, std::string& out, std::size_t longest = 1024);
bool read_bool(reading& r, const field& f, bool& out);
bool read_integer(reading& r, const field& f, std::int64_t& out, std::int64_t least, std::int64_t most);
bool read_number(reading& r, const field& f, double& out, double least, double most);
bool read_time(reading& r, const field& f, sys_micros& out);
// A number and its unit: ms, s, m, h or d. Bounds are shown as texts of the same form.
bool read_duration(reading& r, const field& f, std::chrono::milliseconds& out, std::string_view least, std::string_view most);
// The same in whole seconds.
bool read_duration(reading& r, const field& f, std::chrono::seconds& out, std::string_view least, std::string_view most);
// A number and its unit: B, KiB, MiB or GiB.
bool read_size(reading& r, const field& f, std::size_t& out, std::string_view least, std::string_view most);
// 1 to 63 characters of a-z, 0-9, "_" and "-", beginning with a letter or digit: names that appear in URLs, metrics and tables.
bool check_name(reading& r, position at, std::string_view what, std::string_view name);
// http or https with a host and without user, password, fragment or blanks; see core/url.hpp. `parts` may be nullptr.
bool read_http_url(reading& r, const field& f, std::string& out, http_url* parts = nullptr);

template <class Integer>
bool read_int(reading& r, const field& f, Integer& out, std::int64_t least, std::int64_t most) {
  std::int64_t wide = 0;
  if (!read_integer(r, f, wide, least, most)) return false;
  out = static_cast<Integer>(wide);
  return true;
}

// One of a few words.
template <class Enum>
struct choice {
  std::string_view word;
  Enum value;
};
bool read_choice(reading& r, const field& f, std::span<const std::string_view> words, std::size_t& index);
template <class Enum, std::size_t N>
bool read_word(reading& r, const field& f, Enum& out, const choice<Enum> (&choices)[N]) {
  std::string_view words[N];
  for (std::size_t i = 0; i < N; ++i) words[i] = choices[i].word;
  std::size_t index = 0;
  if (!read_choice(r, f, words, index)) return false;
  out = choices[index].value;
  return true;
}

// The same by a table of words that stands elsewhere.
template <class Enum, std::size_t N>
bool read_word(reading& r, const field& f, Enum& out, const std::array<std::pair<std::string_view, Enum>, N>& choices) {
  std::array<std::string_view, N> words;
  for (std::size_t i = 0; i < N; ++i) words[i] = choices[i].first;
  std::size_t index = 0;
  if (!read_choice(r, f, words, index)) return false;
  out = choices[index].second;
  return true;
}

// A list of networks; each that can be read goes to `take`, with where it stands.
void read_networks(reading& r, const field& f, const std::function<void(const field& one, const network& n)>& take);

// The elements of a list; with `one_is_enough` also a value that is no list, and then no empty list. Absent and broken elements
// are reported.
std::vector<field> elements(reading& r, const field& f, bool one_is_enough = false);
// The entries of a map whose keys are names chosen by the user.
struct named {
  std::string_view name;
  position at;
  field value;
};
std::vector<named> members(reading& r, const field& f);

}  // namespace recibo::config
