#include "recibo/verify/strict_json.hpp"

#include "recibo/core/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>

namespace recibo::verify {
namespace {

// Whether the token of `pointer` that starts at `at` (on its '/') is `name`; `at` then stands behind it.
bool takes_token(std::string_view pointer, std::size_t& at, std::string_view name) noexcept {
  if (at >= pointer.size() || pointer[at] != '/') return false;
  std::size_t j = at + 1;
  for (const char c : name) {
    if (j >= pointer.size() || pointer[j] == '/') return false;
    char expected = pointer[j++];
    if (expected == '~') {
      if (j >= pointer.size()) return false;
      expected = pointer[j++] == '1' ? '/' : '~';
    }
    if (expected != c) return false;
  }
  if (j < pointer.size() && pointer[j] != '/') return false;
  at = j;
  return true;
}

// A pointer that leads through the present place, and how much of it has been walked.
struct trail {
  std::size_t pointer;
  std::size_t at;
};

// Names seen in one object. A few are compared one by one; many go into a tree, so that a large object of a hostile
// sender costs n log n, whatever its names are.
class name_set {
 public:
  bool insert(const std::string& name) {
    if (!many_.empty()) return many_.insert(name).second;
    if (std::find(few_.begin(), few_.begin() + static_cast<std::ptrdiff_t>(count_), name) !=
        few_.begin() + static_cast<std::ptrdiff_t>(count_)) {
      return false;
    }
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

struct level {
  bool array = false;
  std::uint64_t next_index = 0;
  std::vector<trail> here;  // pointers that lead to this container, or through it
  name_set names;
};

// An object or array that some pointer wants: written again, compactly, while it is read.
struct capture {
  std::size_t pointer;
  std::size_t depth;  // of the container itself
  std::string text;
  bool after_key = true;
  bool too_long = false;

  void separate() {
    if (!after_key && !text.empty() && text.back() != '{' && text.back() != '[') text += ',';
    after_key = false;
  }
  void check() {
    if (text.size() > json_container_max) {
      too_long = true;
      text.clear();
    }
  }
};

// Handler of nlohmann's SAX interface. Faults that leave the text JSON are noted and reading goes on.
class reader {
 public:
  reader(std::span<const std::string_view> pointers, json_reading& out)
      : pointers_(pointers), out_(out), poisoned_(pointers.size()) {
    out_.values.resize(pointers.size());
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      if (is_json_pointer(pointers[i])) next_.push_back({i, 0});
    }
  }

  bool null() { return scalar(json_value::kind::null, "null"); }
  bool boolean(bool v) { return scalar(json_value::kind::boolean, v ? "true" : "false"); }
  // Only a minus sign makes a number signed here, so zero was "-0".
  bool number_integer(std::int64_t v) { return v == 0 ? scalar(json_value::kind::number, "-0") : integer(v); }
  bool number_unsigned(std::uint64_t v) { return integer(v); }
  bool number_float(double, const std::string& text) { return scalar(json_value::kind::number, text); }
  bool binary(nlohmann::json::binary_t&) { return false; }

  bool string(const std::string& text) {
    if (text.find('\0') != std::string::npos) note("a string holds U+0000");
    return scalar(json_value::kind::string, text);
  }

  bool start_object(std::size_t) { return open(false); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(true); }
  bool end_array() { return close(); }

  bool key(const std::string& name) {
    if (name.find('\0') != std::string::npos) note("a name holds U+0000");
    level& now = levels_[depth_ - 1];
    const bool again = !now.names.insert(name);
    if (again) note("an object has two members of the same name");
    next_.clear();
    for (const trail& t : now.here) {
      trail further = t;
      if (!takes_token(pointers_[t.pointer], further.at, name)) continue;
      if (again) {
        poisoned_[t.pointer] = true;
      } else {
        next_.push_back(further);
      }
    }
    for (capture& c : captures_) {
      if (c.too_long) continue;
      c.separate();
      append_json_string(c.text, name);
      c.text += ':';
      c.after_key = true;
      c.check();
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) {
    if (e.id == 406) {
      fail("a number is too large");
    } else {
      fail("not JSON at byte " + std::to_string(position));
    }
    return false;
  }

  void finish(bool whole) {
    for (std::size_t i = 0; i < out_.values.size(); ++i) {
      if (!whole || poisoned_[i]) out_.values[i].reset();
    }
  }

 private:
  void note(const char* why) {
    if (!out_.broken) out_.broken = error(permanent::malformed_json, why);
  }
  void fail(std::string why) { out_.broken = error(permanent::malformed_json, std::move(why)); }

  template <class Integer>
  bool integer(Integer v) {
    char text[24];
    const auto end = std::to_chars(text, text + sizeof text, v).ptr;
    return scalar(json_value::kind::number, std::string_view(text, static_cast<std::size_t>(end - text)));
  }

  // In an array the place of the coming value is known only now.
  void step() {
    if (depth_ == 0 || !levels_[depth_ - 1].array) return;
    level& now = levels_[depth_ - 1];
    next_.clear();
    if (!now.here.empty()) {
      const std::string index = std::to_string(now.next_index);
      for (const trail& t : now.here) {
        trail further = t;
        if (takes_token(pointers_[t.pointer], further.at, index)) next_.push_back(further);
      }
    }
    ++now.next_index;
  }

  bool scalar(json_value::kind kind, std::string_view text) {
    step();
    for (const trail& t : next_) {
      if (t.at == pointers_[t.pointer].size()) out_.values[t.pointer] = pointed_value{kind, std::string(text)};
    }
    next_.clear();
    for (capture& c : captures_) {
      if (c.too_long) continue;
      c.separate();
      if (kind == json_value::kind::string) {
        append_json_string(c.text, text);
      } else {
        c.text += text;
      }
      c.check();
    }
    return true;
  }

  bool open(bool array) {
    step();
    if (depth_ == static_cast<std::size_t>(json_depth_max)) {
      fail("nested deeper than " + std::to_string(json_depth_max) + " levels");
      return false;
    }
    for (capture& c : captures_) {
      if (c.too_long) continue;
      c.separate();
      c.text += array ? '[' : '{';
      c.check();
    }
    if (levels_.size() == depth_) levels_.emplace_back();
    level& inner = levels_[depth_++];
    inner.array = array;
    inner.next_index = 0;
    inner.names.clear();
    inner.here.clear();
    for (const trail& t : next_) {
      if (t.at != pointers_[t.pointer].size()) {
        inner.here.push_back(t);
        continue;
      }
      out_.values[t.pointer] = pointed_value{array ? json_value::kind::array : json_value::kind::object, {}};
      captures_.push_back(capture{t.pointer, depth_, std::string(1, array ? '[' : '{')});
      captures_.back().after_key = false;
    }
    next_.clear();
    return true;
  }

  bool close() {
    const char bracket = levels_[depth_ - 1].array ? ']' : '}';
    for (capture& c : captures_) {
      if (c.too_long) continue;
      c.text += bracket;
      c.check();
    }
    while (!captures_.empty() && captures_.back().depth == depth_) {
      if (auto& value = out_.values[captures_.back().pointer]) value->text = std::move(captures_.back().text);
      captures_.pop_back();
    }
    --depth_;
    return true;
  }

  std::span<const std::string_view> pointers_;
  json_reading& out_;
  std::vector<bool> poisoned_;
  std::vector<level> levels_;
  std::size_t depth_ = 0;
  std::vector<trail> next_;  // pointers that lead to the coming value
  std::vector<capture> captures_;
};

}  // namespace

bool is_json_pointer(std::string_view pointer) noexcept {
  if (!pointer.empty() && pointer.front() != '/') return false;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '~' && (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1'))) return false;
  }
  return true;
}

json_reading read_json(std::string_view document, std::span<const std::string_view> pointers) {
  json_reading out;
  reader handler(pointers, out);
  if (document.empty()) {
    out.broken = error(permanent::malformed_json, "the text is empty");
  } else if (document.starts_with("\xef\xbb\xbf")) {
    // RFC 8259, section 8.1, forbids it; the parser would skip it in silence.
    out.broken = error(permanent::malformed_json, "the text starts with a byte order mark");
  } else {
    const bool whole = nlohmann::json::sax_parse(document.data(), document.data() + document.size(), &handler);
    handler.finish(whole);
  }
  return out;
}

}  // namespace recibo::verify
