#include "json_spellings.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <array>

namespace recibo::verify {
namespace {

struct style {
  std::string_view how;
  std::string_view comma, colon;
  int indent = 0;  // blanks for each level; 0: one line
  bool ascii = false;
  bool slashes = false;  // "\/"
  bool sorted = false;
};

constexpr style compact{"written anew without blanks", ",", ":"};
constexpr std::array styles{
    compact,
    style{"written anew with a blank behind each comma and colon (Python's json.dumps)", ", ", ": ", 0, true},
    style{"written anew with a blank behind each comma and colon", ", ", ": "},
    style{"written anew without blanks, characters beyond ASCII as \\u escapes", ",", ":", 0, true},
    style{"written anew without blanks, slashes escaped", ",", ":", 0, false, true},
    style{"written anew without blanks, slashes escaped and characters beyond ASCII as \\u escapes (PHP's json_encode)", ",", ":",
          0, true, true},
    style{"written anew in lines, indented by two blanks", ",", ": ", 2},
    style{"written anew in lines, indented by four blanks", ",", ": ", 4},
    style{"written anew in lines, indented by four blanks, characters beyond ASCII as \\u escapes", ",", ": ", 4, true},
    style{"written anew without blanks, members sorted by name", ",", ":", 0, false, false, true},
    style{"written anew with blanks, members sorted by name", ", ", ": ", 0, true, false, true},
};

void add_unit(std::string& out, unsigned unit) {
  constexpr char digits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[(unit >> shift) & 15u];
}

void add_text(std::string& out, std::string_view text, const style& how) {
  out += '"';
  while (!text.empty()) {
    char32_t code = 0;
    const std::size_t length = std::max<std::size_t>(utf8_character(text, code), 1);
    const char c = text.front();
    if (length > 1 && how.ascii) {
      if (code >= 0x10000) {
        add_unit(out, 0xd800u + ((code - 0x10000u) >> 10));
        add_unit(out, 0xdc00u + ((code - 0x10000u) & 0x3ffu));
      } else {
        add_unit(out, code);
      }
    } else if (length > 1) {
      out += text.substr(0, length);
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '/' && how.slashes) {
      out += "\\/";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view plain = "\b\t\n\f\r", letters = "btnfr";
      const std::size_t at = plain.find(c);
      if (at == std::string_view::npos) {
        add_unit(out, static_cast<unsigned char>(c));
      } else {
        out += '\\';
        out += letters[at];
      }
    } else {
      out += c;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

void add_break(std::string& out, const style& how, int depth) {
  if (how.indent == 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(how.indent * depth), ' ');
}

// Stops at the first member or element behind `most` bytes.
void add_value(std::string& out, const json_value& value, const style& how, int depth, std::size_t most) {
  bool first = true;
  const auto begin = [&] {
    if (!first) out += how.comma;
    first = false;
    add_break(out, how, depth + 1);
  };
  switch (value.type) {
    case json_value::kind::null: out += "null"; return;
    case json_value::kind::boolean: out += value.boolean ? "true" : "false"; return;
    case json_value::kind::number: out += value.text; return;
    case json_value::kind::string: add_text(out, value.text, how); return;
    case json_value::kind::array:
      out += '[';
      for (const auto& one : value.elements) {
        if (out.size() > most) return;
        begin();
        add_value(out, one, how, depth + 1, most);
      }
      if (!first) add_break(out, how, depth);
      out += ']';
      return;
    case json_value::kind::object: {
      out += '{';
      std::vector<const json_member*> members;
      for (const auto& one : value.members) members.push_back(&one);
      if (how.sorted) std::stable_sort(members.begin(), members.end(), [](auto* a, auto* b) { return a->name < b->name; });
      for (const auto* one : members) {
        if (out.size() > most) return;
        begin();
        add_text(out, one->name, how);
        out += how.colon;
        add_value(out, one->value, how, depth + 1, most);
      }
      if (!first) add_break(out, how, depth);
      out += '}';
      return;
    }
  }
}

}  // namespace

std::vector<spelling> json_spellings(std::string_view document) {
  std::vector<spelling> out;
  const auto tree = parse_json(document);
  if (!tree) return out;
  // Indented, a short value that stands deep becomes a long line: what strangers nest must not cost a hundredfold.
  const std::size_t most = 64 + 8 * document.size();
  for (const style& how : styles) {
    std::string text;
    add_value(text, *tree, how, 0, most);
    if (text.size() > most) continue;
    const bool known = text == document || std::any_of(out.begin(), out.end(), [&](const auto& o) { return o.text == text; });
    if (!known) out.push_back({how.how, std::move(text)});
  }
  return out;
}

}  // namespace recibo::verify
