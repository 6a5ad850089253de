#include "recibo/config/document.hpp"

#include "expand.hpp"
#include "place.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace recibo::config {
namespace {

// Enough for any configuration; a chain of aliases could otherwise grow without bound.
constexpr std::size_t nodes_max = 100'000;

// Ends the reading: what follows cannot be understood.
struct stop {
  fault why;
};

class builder final : public YAML::EventHandler {
 public:
  builder(std::string_view text, const line_index& lines, document& out,
          const std::function<std::optional<std::string>(const std::string&)>& env)
      : text_(text), lines_(lines), out_(out), env_(env) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw stop{{place(mark), "a second document begins here: the file holds one configuration"}};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_tag(mark, {});
    node n;
    n.at = place(mark);
    // The mark of an absent value is the token that follows: the key tells better where it is missing.
    if (!frames_.empty() && frames_.back().key) n.at = frames_.back().key_at;
    add(std::move(n), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw stop{{place(mark), "this alias stands inside what it names"}};
    node copy = found->second.first;
    copy.at = place(mark);
    count(found->second.second, copy.at);
    add(std::move(copy), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    refuse_tag(mark, tag);
    const std::size_t start = behind_anchor(text_, offset(mark));
    const char first = start < text_.size() ? text_[start] : '\0';
    if ((first == '"' || first == '\'') && !quote_is_closed(text_, start))
      throw stop{{lines_.of(start), "this quote is never closed"}};
    node n;
    n.what = node::kind::scalar;
    n.at = lines_.of(start);
    n.plain = first != '"' && first != '\'' && first != '|' && first != '>';
    n.text = value;
    if (is_key()) {
      take_key(n, value);
      if (anchor != 0) throw stop{{n.at, "an anchor on a key"}};
      return;
    }
    replace_variables(n, start);
    add(std::move(n), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(node::kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(node::kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct frame {
    node n;
    YAML::anchor_t anchor = 0;
    std::size_t nodes_before = 0;
    std::optional<std::string> key;  // of a map: the key whose value comes next
    position key_at;
    bool dropped = false;  // that value belongs to a key that was refused
    std::set<std::string, std::less<>> seen;
  };

  std::size_t offset(const YAML::Mark& mark) const noexcept { return mark.pos < 0 ? 0 : static_cast<std::size_t>(mark.pos); }
  position place(const YAML::Mark& mark) const noexcept { return lines_.of(offset(mark)); }
  bool is_key() const noexcept { return !frames_.empty() && frames_.back().n.what == node::kind::map && !frames_.back().key; }

  void count(std::size_t more, position at) {
    nodes_ += more;
    if (nodes_ > nodes_max) throw stop{{at, "too many values; are aliases multiplying each other?"}};
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    const std::size_t start = behind_anchor(text_, offset(mark));
    if ((!tag.empty() && tag != "?" && tag != "!") || (start < text_.size() && text_[start] == '!'))
      throw stop{{lines_.of(start), "YAML tags are not used here"}};
  }

  void take_key(const node& n, const std::string& name) {
    frame& top = frames_.back();
    top.key = name;
    top.key_at = n.at;
    top.dropped = true;
    if (name == "<<" && n.plain) {
      out_.faults.push_back({n.at, "merge keys (<<) are not used here: write the keys out"});
    } else if (name.find("${") != std::string::npos) {
      out_.faults.push_back({n.at, "${…} is replaced in values only, not in keys"});
    } else if (!top.seen.insert(name).second) {
      out_.faults.push_back({n.at, "the key \"" + name + "\" stands here a second time"});
    } else {
      top.dropped = false;
    }
  }

  void replace_variables(node& n, std::size_t start) {
    auto e = expand(n.text, env_);
    for (const auto& p : e.problems) out_.faults.push_back({variable_place(n, start, p.nth, p.name), nearest_key() + p.message});
    for (auto& used : e.used) {
      const bool known =
          std::any_of(out_.variables.begin(), out_.variables.end(), [&](const auto& v) { return v.first == used.first; });
      if (!known) out_.variables.push_back(std::move(used));
    }
    n.expanded = e.replaced;
    n.text = std::move(e.text);
    if (!e.problems.empty()) n.what = node::kind::broken;
  }

  // "secrets: ", as the other messages begin; empty at the very top.
  std::string nearest_key() const {
    for (auto f = frames_.rbegin(); f != frames_.rend(); ++f)
      if (f->key) return *f->key + ": ";
    return {};
  }

  // The nth `${` behind the scalar's start, if it reads as expected there; else the scalar.
  position variable_place(const node& n, std::size_t start, std::size_t nth, const std::string& name) const {
    std::size_t at = text_.find("${", start);
    while (nth-- > 0 && at != std::string_view::npos) at = text_.find("${", at + 2);
    if (at == std::string_view::npos || text_.compare(at + 2, name.size(), name) != 0) return n.at;
    return lines_.of(at);
  }

  void open(node::kind what, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(mark, tag);
    if (is_key()) throw stop{{place(mark), "a key must be text, not a list or a map"}};
    frame f;
    f.n.what = what;
    f.n.at = lines_.of(behind_anchor(text_, offset(mark)));
    f.anchor = anchor;
    f.nodes_before = nodes_;
    frames_.push_back(std::move(f));
  }

  void close() {
    frame done = std::move(frames_.back());
    frames_.pop_back();
    const std::size_t inside = nodes_ - done.nodes_before;
    if (done.anchor != 0) anchors_[done.anchor] = {done.n, inside + 1};
    add(std::move(done.n), 0);
  }

  void add(node&& n, YAML::anchor_t anchor) {
    if (is_key()) throw stop{{n.at, "a key must be text"}};
    count(1, n.at);
    if (anchor != 0) anchors_[anchor] = {n, 1};
    if (frames_.empty()) {
      out_.root = std::move(n);
      return;
    }
    frame& top = frames_.back();
    if (top.n.what == node::kind::list) {
      top.n.items.push_back(std::move(n));
      return;
    }
    if (!top.dropped) top.n.entries.push_back({std::move(*top.key), top.key_at, std::move(n)});
    top.key.reset();
  }

  std::string_view text_;
  const line_index& lines_;
  document& out_;
  const std::function<std::optional<std::string>(const std::string&)>& env_;
  std::vector<frame> frames_;
  std::map<YAML::anchor_t, std::pair<node, std::size_t>> anchors_;  // finished ones, with their number of nodes
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

// The fault that people make most often has a message that does not name it.
std::string hint(std::string_view text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view line = text.substr(start, text.find('\n', start) - start);
  return line.find("${") == std::string_view::npos ? std::string{} : "; a value with ${…} inside { } or [ ] has to be in quotes";
}

void parse(std::string_view text, const line_index& lines, document& out,
           const std::function<std::optional<std::string>(const std::string&)>& env) {
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    builder events(text, lines, out, env);
    bool any = false;
    while (parser.HandleNextDocument(events)) any = true;
    if (!any) throw stop{{{1, 1}, "the file holds no configuration"}};
  } catch (const stop& s) {
    out.faults.push_back(s.why);
  } catch (const YAML::Exception& e) {
    const std::size_t at = e.mark.pos < 0 ? text.size() : std::min(text.size(), static_cast<std::size_t>(e.mark.pos));
    out.faults.push_back({lines.of(at), "this is not YAML: " + e.msg + hint(text, at)});
  } catch (const std::exception&) {
    out.faults.push_back({{1, 1}, "this is not YAML that can be read"});
  }
}

}  // namespace

const node* node::find(std::string_view key) const noexcept {
  for (const auto& e : entries)
    if (e.key == key) return &e.value;
  return nullptr;
}

document parse_document(std::string_view text, const std::function<std::optional<std::string>(const std::string&)>& env) {
  document out;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const line_index lines(text);
  if (auto bad = check_bytes(text, lines)) {
    out.faults.push_back(std::move(*bad));
    return out;
  }
  parse(text, lines, out, env);
  return out;
}

}  // namespace recibo::config
