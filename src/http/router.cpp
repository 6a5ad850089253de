#include "recibo/http/router.hpp"

#include "recibo/http/message.hpp"

#include <algorithm>
#include <set>

namespace recibo::http {
namespace {

// nullopt: not absolute.
std::optional<std::vector<std::string_view>> segments_of(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string_view> segments;
  if (path.empty()) return segments;
  for (;;) {
    const auto end = path.find('/');
    segments.push_back(path.substr(0, end));
    if (end == std::string_view::npos) break;
    path.remove_prefix(end + 1);
  }
  return segments;
}

bool is_parameter(std::string_view segment) noexcept { return segment.starts_with('{'); }

}  // namespace

void router::add(std::string method, std::string_view pattern) {
  entry made;
  made.method = std::move(method);
  const auto segments = segments_of(pattern);
  made.segments.assign(segments->begin(), segments->end());
  entries_.push_back(std::move(made));
}

routed router::match(std::string_view method, std::string_view path) const {
  routed found;
  const auto raw = segments_of(path);
  if (!raw) return found;
  std::vector<std::string> given;
  for (const auto segment : *raw) {
    auto decoded = percent_decode(segment);
    if (!decoded || decoded->empty()) return found;
    given.push_back(std::move(*decoded));
  }
  std::set<std::string_view> allowed;
  std::size_t fewest = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const entry& one = entries_[i];
    const bool fits =
        std::equal(one.segments.begin(), one.segments.end(), given.begin(), given.end(),
                   [](const std::string& pattern, const std::string& text) { return is_parameter(pattern) || pattern == text; });
    if (!fits) continue;
    allowed.insert(one.method);
    if (one.method == "GET") allowed.insert("HEAD");
    if (one.method != method && !(method == "HEAD" && one.method == "GET")) continue;
    const auto parameters = static_cast<std::size_t>(std::count_if(one.segments.begin(), one.segments.end(), is_parameter));
    if (found.route && parameters >= fewest) continue;
    found.route = i;
    fewest = parameters;
  }
  if (!found.route) {
    for (const auto one : allowed) found.allow.append(found.allow.empty() ? "" : ", ").append(one);
    return found;
  }
  const entry& chosen = entries_[*found.route];
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (is_parameter(chosen.segments[i])) found.parameters.push_back(std::move(given[i]));
  }
  return found;
}

}  // namespace recibo::http
