#include "recibo/core/json_events.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace recibo {
namespace {

// nlohmann refuses a number that its type of floats cannot hold, though its text could be kept. Of this type it fills in
// the double and then sees a zero: which numbers are too large is decided here.
struct unjudged_double {
  double value;
  unjudged_double() = default;
  unjudged_double(double v) : value(v) {}
  operator double&() noexcept { return value; }
  operator double() const noexcept { return 0; }
};
using parser = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, unjudged_double>;

// The text as the parser takes it, byte by byte. It does not tell its place to handlers, so this does.
struct counted {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** read;

  reference operator*() const noexcept { return *at; }
  counted& operator++() noexcept {
    *read = ++at;
    return *this;
  }
  bool operator==(const counted& other) const noexcept { return at == other.at; }
  bool operator!=(const counted& other) const noexcept { return at != other.at; }
};

// Names seen in one object. A few are compared one by one; many go into a tree, so that a large object of a hostile
// sender costs n log n, whatever its names are.
class name_set {
 public:
  bool insert(const std::string& name) {
    if (!many_.empty()) return many_.insert(name).second;
    const auto end = few_.begin() + static_cast<std::ptrdiff_t>(count_);
    if (std::find(few_.begin(), end, name) != end) return false;
    if (count_ == 16) {
      many_.insert(few_.begin(), few_.end());
      return many_.insert(name).second;
    }
    // Strings of an earlier object at this level are written over: their memory is used again.
    if (count_ < few_.size()) {
      few_[count_] = name;
    } else {
      few_.push_back(name);
    }
    ++count_;
    return true;
  }
  void clear() {
    count_ = 0;
    many_.clear();
  }

 private:
  std::vector<std::string> few_;
  std::size_t count_ = 0;
  std::set<std::string> many_;
};

// The part of the parser's message that says what is wrong, without what it read.
std::string cause(std::string_view message) {
  const auto dash = message.find(" - ");
  if (dash == std::string_view::npos) return {};
  message.remove_prefix(dash + 3);
  return ": " + std::string(message.substr(0, message.find("; last read")));
}

// Handler of nlohmann's SAX interface: false stops it.
class strict_reader {
 public:
  strict_reader(std::string_view text, json_numbers numbers, json_events& to) : text_(text), numbers_(numbers), to_(to) {}

  std::optional<json_fault> read() {
    parser::sax_parse(counted{text_.data(), &read_}, counted{text_.data() + text_.size(), &read_}, this);
    return std::move(fault_);
  }

  bool null() { return scalar(json_value::kind::null, "null"); }
  bool boolean(bool v) { return scalar(json_value::kind::boolean, v ? "true" : "false"); }
  // Only a minus sign makes a number signed here, so zero was "-0".
  bool number_integer(std::int64_t v) { return v == 0 ? scalar(json_value::kind::number, "-0") : integer(v); }
  bool number_unsigned(std::uint64_t v) { return integer(v); }
  // Integers beyond 64 bits come here too.
  bool number_float(unjudged_double v, const std::string& text) {
    if (numbers_ == json_numbers::within_double && !std::isfinite(v.value)) return fail("a number is too large");
    return scalar(json_value::kind::number, text);
  }
  bool binary(parser::binary_t&) { return false; }

  bool string(const std::string& text) {
    if (text.find('\0') != std::string::npos) note("a string holds U+0000");
    return scalar(json_value::kind::string, text);
  }

  bool start_object(std::size_t) { return begin(json_value::kind::object); }
  bool end_object() { return end(); }
  bool start_array(std::size_t) { return begin(json_value::kind::array); }
  bool end_array() { return end(); }

  bool key(const std::string& name) {
    if (name.find('\0') != std::string::npos) note("a name holds U+0000");
    const bool again = !names_[depth_ - 1].insert(name);
    if (again) note("an object has two members of the same name");
    to_.key(name, again);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    fault_ = json_fault{"not JSON at byte " + std::to_string(position) + cause(e.what())};
    return false;
  }

 private:
  std::size_t place() const noexcept { return static_cast<std::size_t>(read_ - text_.data()); }
  void note(const char* why) {
    if (!fault_) fault_ = json_fault{why, place(), true};
  }
  bool fail(std::string why) {
    fault_ = json_fault{std::move(why), place()};
    return false;
  }

  bool scalar(json_value::kind kind, std::string_view text) {
    to_.scalar(kind, text);
    return to_.wants_more();
  }

  template <class Integer>
  bool integer(Integer v) {
    char text[24];
    const auto end = std::to_chars(text, text + sizeof text, v).ptr;
    return scalar(json_value::kind::number, std::string_view(text, static_cast<std::size_t>(end - text)));
  }

  bool begin(json_value::kind kind) {
    if (depth_ == static_cast<std::size_t>(json_depth_max)) {
      return fail("nested deeper than " + std::to_string(json_depth_max) + " levels");
    }
    if (names_.size() == depth_) names_.emplace_back();
    names_[depth_++].clear();
    to_.begin(kind);
    return to_.wants_more();
  }

  bool end() {
    --depth_;
    to_.end();
    return true;
  }

  std::string_view text_;
  const char* read_ = text_.data();
  json_numbers numbers_;
  json_events& to_;
  std::vector<name_set> names_;  // per level; those of levels left are kept for the next
  std::size_t depth_ = 0;
  std::optional<json_fault> fault_;
};

}  // namespace

std::optional<json_fault> read_json_events(std::string_view text, json_numbers numbers, json_events& to) {
  if (text.empty()) return json_fault{"the text is empty"};
  // RFC 8259, section 8.1, forbids it; the parser would skip it in silence.
  if (text.starts_with("\xef\xbb\xbf")) return json_fault{"the text starts with a byte order mark"};
  // The parser takes it for the end, and would let anything stand behind it.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    return json_fault{"not JSON at byte " + std::to_string(nul + 1) + ": a byte of zero"};
  }
  return strict_reader(text, numbers, to).read();
}

}  // namespace recibo
