#include "recibo/transition/draw.hpp"

#include <algorithm>

namespace recibo::transition {
namespace {

constexpr int character = 7;  // width of a letter at 12 px, on the wide side
constexpr int margin = 24;
constexpr int box_height = 44;
constexpr int row_height = 34;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

class canvas {
 public:
  void tag(std::string_view name, std::string_view attributes) { (((out_ += '<') += name) += attributes) += "/>\n"; }
  void text(int x, int y, std::string_view css, std::string_view words) {
    out_ += "<text" + at("x", x) + at("y", y) + " class=\"" + std::string(css) + "\">" + escaped(words) + "</text>\n";
  }
  void raw(std::string_view words) { out_ += words; }
  static std::string at(const char* name, int value) { return std::string(" ") + name + "=\"" + std::to_string(value) + '"'; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Colours follow the reader's own scheme, so the page is painted too.
constexpr std::string_view style =
    "<style>\n"
    "text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1f2933;text-anchor:middle}\n"
    ".page{fill:#fff}.name{font-weight:600}.label{font-size:11px;fill:#52606d}\n"
    ".box{fill:#f5f7fa;stroke:#52606d}.inner{fill:none;stroke:#52606d}.done{fill:#e3f9e5}\n"
    ".life{stroke:#cbd2d9;stroke-dasharray:2 4}.start{fill:#52606d}\n"
    ".move{stroke:#3e4c59;fill:none;stroke-width:1.5}.head{fill:#3e4c59}\n"
    "@media(prefers-color-scheme:dark){.page{fill:#1f2933}text{fill:#e4e7eb}.label{fill:#9aa5b1}.box{fill:#323f4b;stroke:#9aa5b1}"
    ".inner{stroke:#9aa5b1}"
    ".done{fill:#1f4d2b}.life{stroke:#52606d}.start{fill:#9aa5b1}.move{stroke:#cbd2d9}.head{fill:#cbd2d9}}\n"
    "</style>\n";

struct layout {
  int column = 0;  // distance of two states
  int box = 0;     // width of a state's box
  int top = margin + 16;
  int lines = 0;  // y where the rows begin
  int width = 0, height = 0;

  explicit layout(const workflow& table) {
    std::size_t words = 8;
    for (const state& s : table.states()) words = std::max({words, s.name.size(), s.label.size()});
    box = static_cast<int>(words) * character + 16;
    // A label may be as long as its arrow is short: neighbours stand far enough apart for the longest.
    std::size_t longest = 0;
    for (const move& m : table.moves()) longest = std::max(longest, label(m).size());
    column = std::max(box + 16, static_cast<int>(longest) * character + 16);
    lines = top + box_height + row_height;
    width = 2 * margin + box + column * (static_cast<int>(table.states().size()) - 1);
    // An arrow from the last state to itself hangs over to the right.
    if (std::any_of(table.moves().begin(), table.moves().end(), [](const move& m) { return m.from == m.to; }))
      width += column / 2;
    height = lines + row_height * static_cast<int>(table.moves().size()) + margin;
  }
  int x(std::size_t state) const { return margin + box / 2 + column * static_cast<int>(state); }
  static std::string label(const move& m) {
    std::string out = m.event + " (" + actors_text(m) + ")";
    if (!m.evidence.empty()) out += ", " + m.evidence;
    return out;
  }
};

void draw_state(canvas& to, const layout& where, const state& s, std::size_t i, bool initial) {
  const int x = where.x(i), left = x - where.box / 2;
  to.tag("line", canvas::at("x1", x) + canvas::at("y1", where.top + box_height) + canvas::at("x2", x) +
                     canvas::at("y2", where.height - margin) + " class=\"life\"");
  if (initial) to.tag("circle", canvas::at("cx", x) + canvas::at("cy", where.top - 12) + " r=\"6\" class=\"start\"");
  const std::string css = s.done ? " class=\"box done\"" : " class=\"box\"";
  to.tag("rect", canvas::at("x", left) + canvas::at("y", where.top) + canvas::at("width", where.box) +
                     canvas::at("height", box_height) + " rx=\"6\"" + css);
  if (s.terminal) {
    to.tag("rect", canvas::at("x", left + 3) + canvas::at("y", where.top + 3) + canvas::at("width", where.box - 6) +
                       canvas::at("height", box_height - 6) + " rx=\"4\" class=\"inner\"");
  }
  to.text(x, where.top + (s.label.empty() ? 26 : 19), "name", s.name);
  if (!s.label.empty()) to.text(x, where.top + 34, "label", s.label);
}

void draw_move(canvas& to, const layout& where, const workflow& table, const move& m, int row) {
  const int y = where.lines + row_height * row;
  const int from = where.x(table.index_of(m.from)), end = where.x(table.index_of(m.to));
  const std::string arrow = " class=\"move\" marker-end=\"url(#head)\"";
  if (from == end) {
    const int out = from + where.column / 4;
    to.tag("path", " d=\"M" + std::to_string(from) + ' ' + std::to_string(y - 8) + 'H' + std::to_string(out) + 'V' +
                       std::to_string(y) + 'H' + std::to_string(from + 4) + '"' + arrow);
    to.text(from + where.column / 2, y - 12, "label", layout::label(m));
    return;
  }
  to.tag("line", canvas::at("x1", from) + canvas::at("y1", y) + canvas::at("x2", end + (end > from ? -4 : 4)) +
                     canvas::at("y2", y) + arrow);
  to.text((from + end) / 2, y - 6, "label", layout::label(m));
}

}  // namespace

std::string draw_svg(const workflow& table) {
  const layout where(table);
  canvas to;
  to.raw("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 " + std::to_string(where.width) + ' ' +
         std::to_string(where.height) + '"' + canvas::at("width", where.width) + canvas::at("height", where.height) + ">\n");
  to.raw("<title>Workflow " + table.name() + "</title>\n");
  to.raw(style);
  to.raw(
      "<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
      "<path d=\"M0 0L8 4L0 8z\" class=\"head\"/></marker></defs>\n");
  to.tag("rect", " width=\"100%\" height=\"100%\" class=\"page\"");
  for (std::size_t i = 0; i < table.states().size(); ++i) {
    const state& s = table.states()[i];
    draw_state(to, where, s, i, s.name == table.initial());
  }
  int row = 0;
  for (const move& m : table.moves()) draw_move(to, where, table, m, row++);
  to.raw("</svg>\n");
  return to.take();
}

}  // namespace recibo::transition
