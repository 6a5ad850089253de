#include "items.hpp"

#include "recibo/core/json_events.hpp"

#include <string>
#include <vector>

namespace recibo::verify {
namespace {

std::vector<std::string> tokens_of(std::string_view pointer) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      out.emplace_back();
    } else if (pointer[i] == '~' && i + 1 < pointer.size()) {
      out.back() += pointer[++i] == '1' ? '/' : '~';
    } else {
      out.back() += pointer[i];
    }
  }
  return out;
}

class counter final : public json_events {
 public:
  counter(std::string_view pointer, std::size_t most) : tokens_(tokens_of(pointer)), most_(most) {}

  void key(std::string_view name, bool) override {
    leads_on_ = depth_ == on_path_ && on_path_ >= 1 && on_path_ - 1 < tokens_.size() && tokens_[on_path_ - 1] == name;
  }
  void scalar(json_value::kind, std::string_view) override {
    count_child();
    leads_on_ = false;
  }
  void begin(json_value::kind kind) override {
    count_child();
    if (depth_ == 0) leads_on_ = true;
    ++depth_;
    if (leads_on_) {
      on_path_ = depth_;
      if (on_path_ - 1 == tokens_.size() && kind == json_value::kind::array) {
        array_depth_ = depth_;
        found_ = 0;
      }
    }
    leads_on_ = false;
  }
  void end() override {
    if (depth_ == on_path_) --on_path_;
    if (depth_ == array_depth_) array_depth_ = 0;
    --depth_;
  }

  bool wants_more() const override { return found_.value_or(0) <= most_; }

  std::optional<std::size_t> found() const noexcept { return found_; }

 private:
  void count_child() {
    if (array_depth_ != 0 && depth_ == array_depth_) ++*found_;
  }

  std::vector<std::string> tokens_;
  std::size_t most_;
  std::size_t depth_ = 0;        // open containers
  std::size_t on_path_ = 0;      // depth of the innermost one that the pointer leads to or through
  std::size_t array_depth_ = 0;  // of the array itself while it is open
  bool leads_on_ = false;        // the coming value lies on the path
  std::optional<std::size_t> found_;
};

}  // namespace

std::optional<std::pair<std::string_view, std::string_view>> split_at_star(std::string_view pointer) noexcept {
  const std::size_t at = pointer.find("/*");
  if (at == std::string_view::npos || (at + 2 < pointer.size() && pointer[at + 2] != '/')) return std::nullopt;
  const std::string_view rest = pointer.substr(at + 2);
  if (rest.find("/*/") != std::string_view::npos || rest.ends_with("/*")) return std::nullopt;
  return std::pair(pointer.substr(0, at), rest);
}

std::optional<std::size_t> count_elements(std::string_view document, std::string_view pointer, std::size_t most) {
  counter listener(pointer, most);
  if (read_json_events(document, json_numbers::within_double, listener)) return std::nullopt;
  return listener.found();
}

}  // namespace recibo::verify
