#include "recibo/verify/strict_json.hpp"

#include "recibo/core/json.hpp"
#include "recibo/core/json_events.hpp"

#include <cstdint>

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

struct level {
  bool array = false;
  std::uint64_t next_index = 0;
  std::vector<trail> here;  // pointers that lead to this container, or through it
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

class reader final : public json_events {
 public:
  reader(std::span<const std::string_view> pointers, json_reading& out)
      : pointers_(pointers), out_(out), poisoned_(pointers.size()) {
    out_.values.resize(pointers.size());
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      if (is_json_pointer(pointers[i])) next_.push_back({i, 0});
    }
  }

  void key(std::string_view name, bool again) override {
    level& now = levels_[depth_ - 1];
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
  }

  void scalar(json_value::kind kind, std::string_view text) override {
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
  }

  void begin(json_value::kind kind) override {
    const bool array = kind == json_value::kind::array;
    step();
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
    inner.here.clear();
    for (const trail& t : next_) {
      if (t.at != pointers_[t.pointer].size()) {
        inner.here.push_back(t);
        continue;
      }
      out_.values[t.pointer] = pointed_value{kind, {}};
      captures_.push_back(capture{t.pointer, depth_, std::string(1, array ? '[' : '{')});
      captures_.back().after_key = false;
    }
    next_.clear();
  }

  void end() override {
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
  }

  void finish(bool whole) {
    for (std::size_t i = 0; i < out_.values.size(); ++i) {
      if (!whole || poisoned_[i]) out_.values[i].reset();
    }
  }

 private:
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
  auto fault = read_json_events(document, json_numbers::within_double, handler);
  handler.finish(!fault || fault->is_json);
  if (fault) out.broken = error(permanent::malformed_json, std::move(fault->why));
  return out;
}

}  // namespace recibo::verify
