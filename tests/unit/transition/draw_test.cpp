#include "recibo/transition/draw.hpp"

#include "unit/transition/tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

namespace recibo::transition {
namespace {

using namespace std::chrono_literals;
using namespace tables;
using testing::HasSubstr;
using testing::Not;

// A hyphen, a word of Mermaid's own, letters of two bytes, and text that is markup elsewhere.
workflow order() {
  std::vector<move> moves;
  add(moves, {"placed"}, "ship", "in-transit", {provider, client});
  add(moves, {"in-transit"}, "late", "note", {clock});
  add(moves, {"note"}, "wait", "note", {operator_});
  add(moves, {"in-transit", "note"}, "deliver", "end", {provider});
  add(moves, {"end"}, "undo", "note", {operator_}, "statement");
  state note = open("note", "Nachfrage läuft");
  note.done = true;
  note.owner = "büro";
  return made("order", "placed",
              {open("placed"), limited("in-transit", "On its way; <b>\"soon\"</b> & #1", 90min, "late", "ops"), note,
               closed("end", "Zugestellt", true)},
              moves);
}

TEST(Draw, TheTableIsAligned) {
  EXPECT_EQ(draw_table(order()), R"(workflow order, starts in placed

STATE       LABEL                           KIND            LIMIT             OWNER
placed
in-transit  On its way; <b>"soon"</b> & #1                  1h30m, then late  ops
note        Nachfrage läuft                 done                              büro
end         Zugestellt                      terminal, done

FROM        EVENT    TO          BY                EVIDENCE
placed      ship     in-transit  provider, client
in-transit  late     note        clock
note        wait     note        operator
in-transit  deliver  end         provider
note        deliver  end         provider
end         undo     note        operator          statement
)");
}

TEST(Draw, MermaidGetsNamesAndTextItCanRead) {
  EXPECT_EQ(draw_mermaid(order()), R"(stateDiagram-v2
  state "placed" as placed
  state "in-transit: On its way#59; #lt;b#gt;#quot;soon#quot;#lt;/b#gt; & #35;1" as s_in_transit
  state "note: Nachfrage läuft" as s_note
  state "end: Zugestellt" as s_end
  [*] --> placed
  placed --> s_in_transit : ship (provider, client)
  s_in_transit --> s_note : late (clock)
  s_note --> s_note : wait (operator)
  s_in_transit --> s_end : deliver (provider)
  s_note --> s_end : deliver (provider)
  s_end --> s_note : undo (operator)
  s_end --> [*]
)");
}

TEST(Draw, InventedNamesDoNotMeetOthers) {
  std::vector<move> moves;
  add(moves, {"a-b"}, "go", "a_b", {provider});
  add(moves, {"a_b"}, "go", "s_a_b", {provider});
  add(moves, {"s_a_b"}, "go", "end", {provider});
  const std::string text = draw_mermaid(made("w", "a-b", {open("a-b"), open("a_b"), open("s_a_b"), closed("end")}, moves));
  EXPECT_THAT(text, HasSubstr("state \"a-b\" as s_a_b_\n"));
  EXPECT_THAT(text, HasSubstr("s_a_b_ --> a_b : go (provider)\n"));
  EXPECT_THAT(text, HasSubstr("a_b --> s_a_b : go (provider)\n"));
}

// Every tag that opens closes, in order: enough of XML for a document without comments and entities of its own.
bool balanced(const std::string& xml) {
  static const std::regex tag("<(/?)([a-zA-Z]+)([^<>]*?)(/?)>");
  std::vector<std::string> open_tags;
  for (std::sregex_iterator at(xml.begin(), xml.end(), tag), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if ((*at)[1].length()) {
      if (open_tags.empty() || open_tags.back() != name) return false;
      open_tags.pop_back();
    } else if (!(*at)[4].length()) {
      open_tags.push_back(name);
    }
  }
  return open_tags.empty() &&
         std::count(xml.begin(), xml.end(), '<') == std::distance(std::sregex_iterator(xml.begin(), xml.end(), tag), {});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Draw, SvgHasABoxForEachStateAndAnArrowForEachMove) {
  for (const workflow& w : {order(), payment()}) {
    const std::string svg = draw_svg(w);
    EXPECT_TRUE(balanced(svg));
    EXPECT_EQ(count(svg, "class=\"box"), w.states().size());
    EXPECT_EQ(count(svg, "marker-end="), w.moves().size());
    EXPECT_EQ(count(svg, "class=\"start\""), 1u);
    for (const state& s : w.states()) EXPECT_THAT(svg, HasSubstr(">" + s.name + "</text>"));
  }
}

TEST(Draw, SvgShowsLabelsAsData) {
  const std::string svg = draw_svg(order());
  EXPECT_THAT(svg, HasSubstr("On its way; &lt;b&gt;&quot;soon&quot;&lt;/b&gt; &amp; #1"));
  EXPECT_THAT(svg, HasSubstr("Nachfrage läuft"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(Draw, OneStateAloneIsAPictureToo) {
  const workflow w = made("w", "a", {closed("a")}, {});
  EXPECT_EQ(draw_mermaid(w), "stateDiagram-v2\n  state \"a\" as a\n  [*] --> a\n  a --> [*]\n");
  EXPECT_TRUE(balanced(draw_svg(w)));
  EXPECT_THAT(draw_table(w), HasSubstr("\na             terminal\n"));
}

TEST(Draw, DurationsAreShort) {
  for (const auto& [duration, text] : {std::pair{std::chrono::seconds(15min), "15m"},
                                       {24h, "1d"},
                                       {90min, "1h30m"},
                                       {3661s, "1h1m1s"},
                                       {25h, "1d1h"},
                                       {9600h, "400d"},
                                       {1s, "1s"},
                                       {0s, "0s"}}) {
    EXPECT_EQ(duration_text(duration), text);
  }
}

}  // namespace
}  // namespace recibo::transition
