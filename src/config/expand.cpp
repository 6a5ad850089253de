#include "expand.hpp"

namespace recibo::config {
namespace {

bool is_name(std::string_view text) noexcept {
  if (text.empty() || (text.front() >= '0' && text.front() <= '9')) return false;
  for (const char c : text)
    if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

}  // namespace

expansion expand(std::string_view text, const std::function<std::optional<std::string>(const std::string&)>& env) {
  expansion out;
  std::size_t nth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "$${") == 0) {
      out.text += "${";
      i += 2;
      ++nth;
      continue;
    }
    if (text.compare(i, 2, "${") != 0) {
      out.text += text[i];
      continue;
    }
    const std::size_t this_one = nth++;
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) {
      out.problems.push_back({this_one, {}, "\"${\" is never closed; a literal one is written \"$${\""});
      return out;
    }
    const std::string_view inside = text.substr(i + 2, end - i - 2);
    const std::size_t dash = inside.find(":-");
    const std::string name(inside.substr(0, dash));
    i = end;
    if (!is_name(name)) {
      out.problems.push_back({this_one, {}, "expected ${NAME} or ${NAME:-default}; a literal \"${\" is written \"$${\""});
      continue;
    }
    out.replaced = true;
    auto value = env(name);
    if (value && (!value->empty() || dash == std::string_view::npos)) {
      out.text += *value;
      out.used.emplace_back(name, std::move(*value));
    } else if (dash != std::string_view::npos) {
      out.text += inside.substr(dash + 2);
    } else {
      out.problems.push_back({this_one, name, "the environment variable " + name + " is not set"});
    }
  }
  return out;
}

}  // namespace recibo::config
