// One YAML document as a tree in which every key and every value knows its place in the file. YAML stays behind this
// header: nobody else includes yaml-cpp. Pure apart from the environment that it is given.
//
// Stricter than YAML where YAML is a trap: one document, UTF-8, no tabs in the indentation, no tags, no merge keys,
// no key twice, every quote closed. yaml-cpp 0.7 lets most of that through in silence.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::config {

// From 1, column in characters. 0:0 is the file as a whole.
struct position {
  int line = 0;
  int column = 0;
  friend auto operator<=>(const position&, const position&) = default;
};

struct entry;

struct node {
  enum class kind {
    null,    // nothing, `~` or `null`
    scalar,  // `text` holds it, with ${…} already replaced
    list,    // `items`
    map,     // `entries`, in the order of the file
    broken,  // a problem was reported here; readers pass over it in silence
  };
  kind what = kind::null;
  // Of a value that is absent (`key:` and nothing), the place of its key; of an alias, the place of the alias.
  position at;
  std::string text;
  // Written plainly, so that it may be a number or a boolean; not in quotes and no block.
  bool plain = false;
  // Holds text from the environment: never to be shown in a message.
  bool expanded = false;
  std::vector<node> items;
  std::vector<entry> entries;

  // nullptr: no such key, or not a map.
  const node* find(std::string_view key) const noexcept;
};

struct entry {
  std::string key;
  position at;
  node value;
};

// Something that is wrong with the text itself.
struct fault {
  position at;
  std::string message;
};

struct document {
  // `null` when nothing could be read.
  node root;
  // In the order of the file. A fault of syntax ends the reading and stands alone for what follows it.
  std::vector<fault> faults;
  // Every variable that was looked up and found, with its value, in order of first use: for the digest.
  std::vector<std::pair<std::string, std::string>> variables;
};

// Parses `text` and replaces `${NAME}` and `${NAME:-default}` in values (`$${` is a literal `${`; an empty variable
// counts as unset where there is a default, as in a shell). Never throws for bad input.
document parse_document(std::string_view text, const std::function<std::optional<std::string>(const std::string&)>& env);

}  // namespace recibo::config
