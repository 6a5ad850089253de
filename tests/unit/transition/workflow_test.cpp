#include "recibo/transition/workflow.hpp"

#include "unit/transition/tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace recibo::transition {
namespace {

using namespace std::chrono_literals;
using namespace tables;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Workflow, FindsItsStatesAndMoves) {
  const workflow w = payment();
  EXPECT_EQ(w.name(), "payment");
  EXPECT_EQ(w.initial(), "accepted");
  ASSERT_NE(w.find_state("completed"), nullptr);
  EXPECT_TRUE(w.find_state("completed")->done);
  EXPECT_EQ(w.find_state("complete"), nullptr);
  EXPECT_EQ(w.find_state(""), nullptr);
  ASSERT_NE(w.find_move("unknown", "complete"), nullptr);
  EXPECT_EQ(w.find_move("unknown", "complete")->to, "completed");
  EXPECT_EQ(w.find_move("completed", "complete"), nullptr);
  EXPECT_EQ(w.find_move("nowhere", "complete"), nullptr);
  EXPECT_EQ(w.find_move("unknown", "nothing"), nullptr);
}

TEST(Workflow, KnowsEventsAndTheirTargets) {
  const workflow w = payment();
  EXPECT_TRUE(w.knows_event("complete"));
  EXPECT_FALSE(w.knows_event("completed"));
  EXPECT_FALSE(w.knows_event(""));
  EXPECT_THAT(w.targets("complete"), ElementsAre("completed"));
  EXPECT_THAT(w.targets("nothing"), IsEmpty());
  EXPECT_THAT(w.allowed_events("accepted", client), ElementsAre("submitted", "cancel"));
  EXPECT_THAT(w.allowed_events("unknown", operator_), ElementsAre("expire", "resolve_completed"));
  EXPECT_THAT(w.allowed_events("completed", provider), IsEmpty());
  EXPECT_THAT(w.allowed_events("nowhere", provider), IsEmpty());
}

TEST(Workflow, TargetsComeWithoutRepeatsInTheOrderOfTheStates) {
  std::vector<move> moves;
  add(moves, {"a"}, "go", "c", {provider});
  add(moves, {"b"}, "go", "c", {provider});
  add(moves, {"c"}, "go", "b", {provider});
  add(moves, {"a"}, "end", "d", {provider});
  const workflow w = made("w", "a", {open("a"), open("b"), open("c"), closed("d")}, moves);
  EXPECT_THAT(w.targets("go"), ElementsAre("b", "c"));
}

TEST(Workflow, ReachesByAnyNumberOfMovesOfAnybody) {
  const workflow w = payment();
  EXPECT_TRUE(w.reaches("accepted", "completed"));
  EXPECT_TRUE(w.reaches("processing", "requires_review"));
  EXPECT_TRUE(w.reaches("processing", "expired"));
  EXPECT_FALSE(w.reaches("processing", "accepted"));
  EXPECT_FALSE(w.reaches("processing", "cancelled"));
  EXPECT_FALSE(w.reaches("processing", "processing"));
  EXPECT_FALSE(w.reaches("accepted", "nowhere"));
  EXPECT_FALSE(w.reaches("nowhere", "accepted"));
}

TEST(Workflow, NothingIsReachedOutOfATerminalState) {
  const workflow w = payment();
  ASSERT_NE(w.find_move("failed", "reopen"), nullptr);
  EXPECT_FALSE(w.reaches("failed", "requires_review"));
  EXPECT_FALSE(w.reaches("failed", "completed"));
}

TEST(Workflow, ACopyStandsOnItsOwn) {
  auto first = std::make_unique<workflow>(payment());
  const workflow copy = *first;
  const workflow moved = std::move(*first);
  first.reset();
  for (const workflow* w : {&copy, &moved}) {
    EXPECT_EQ(w->find_move("accepted", "cancel")->to, "cancelled");
    EXPECT_THAT(w->targets("overdue"), ElementsAre("unknown"));
    EXPECT_EQ(w->digest(), payment().digest());
  }
}

TEST(Workflow, TheDefinitionIsCanonicalJson) {
  const workflow w = made("w", "a", {limited("a", "L\xc3\xa4uft \"noch\"", 90s, "late", "ops"), closed("b", "End", true)},
                          {move{"a", "late", "b", {operator_, clock, provider}, "statement"}});
  EXPECT_EQ(
      w.definition(),
      R"({"form":1,"initial":"a","name":"w","states":[)"
      R"({"done":false,"label":"Läuft \"noch\"","limit":{"after_s":90,"event":"late"},"name":"a","owner":"ops","terminal":false},)"
      R"({"done":true,"label":"End","limit":null,"name":"b","owner":"","terminal":true}],)"
      R"("transitions":[{"by":["provider","operator","clock"],"event":"late","evidence":"statement","from":"a","to":"b"}]})");
  EXPECT_EQ(w.digest(), sha256(w.definition()));
  // The key is the digest's first eight bytes, read as a big-endian number.
  EXPECT_EQ(to_hex(canonical().add_number(w.version_key()).bytes()).substr(8), to_hex(binary(w.digest())).substr(0, 16));
}

TEST(Workflow, ParseIsTheInverseOfDefinition) {
  const workflow w = payment();
  const auto read = workflow::parse(w.definition());
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->definition(), w.definition());
  EXPECT_EQ(read->digest(), w.digest());
  EXPECT_EQ(read->version_key(), w.version_key());
  EXPECT_EQ(read->find_state("accepted")->limit->after, 15min);
  EXPECT_EQ(read->find_move("unknown", "resolve_completed")->evidence, "statement");
}

TEST(Workflow, AnyMeaningfulChangeGivesAnotherDigest) {
  const auto make = [](const std::function<void(std::vector<state>&, std::vector<move>&)>& change) {
    std::vector<state> states{limited("a", "A", 90s, "late", "ops"), open("b", "B"), closed("c", "C", true)};
    std::vector<move> moves;
    add(moves, {"a"}, "late", "b", {clock});
    add(moves, {"a", "b"}, "end", "c", {provider});
    change(states, moves);
    return made("w", "a", std::move(states), std::move(moves)).digest();
  };
  std::vector<sha256_digest> digests{
      make([](auto&, auto&) {}),
      make([](auto& s, auto&) { s[0].label = "a"; }),
      make([](auto& s, auto&) { s[0].owner = "others"; }),
      make([](auto& s, auto&) { s[0].limit->after = 91s; }),
      make([](auto& s, auto&) { s[0].limit.reset(); }),
      make([](auto& s, auto&) { s[1].done = true; }),
      make([](auto& s, auto&) { std::swap(s[1], s[2]); }),
      make([](auto&, auto& m) { m[0].by.push_back(operator_); }),
      make([](auto&, auto& m) { m[1].evidence = "statement"; }),
      make([](auto&, auto& m) {
        m[2].to = "a";
        m.push_back(move{"b", "stop", "c", {client}, ""});
      }),
  };
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
}

TEST(Workflow, TheOrderOfByMeansNothing) {
  const auto with = [](std::vector<actor_kind> by) {
    return made("w", "a", {open("a"), closed("b")}, {move{"a", "go", "b", std::move(by), ""}}).digest();
  };
  EXPECT_EQ(with({client, provider}), with({provider, client}));
  EXPECT_NE(with({client, provider}), with({provider}));
}

struct broken_definition {
  const char* name;
  const char* text;
};

class BrokenDefinitions : public testing::TestWithParam<broken_definition> {};

TEST_P(BrokenDefinitions, AreRefused) {
  const auto read = workflow::parse(GetParam().text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, permanent::invalid_configuration);
}

#define A_STATE R"({"done":false,"label":"","limit":null,"name":"a","owner":"","terminal":true})"

constexpr auto broken_definitions = std::to_array<broken_definition>({
    {"empty", ""},
    {"no_json", "{"},
    {"list", "[]"},
    {"empty_object", "{}"},
    {"other_form", R"({"form":2,"initial":"a","name":"w","states":[)" A_STATE R"(],"transitions":[]})"},
    {"form_as_text", R"({"form":"1","initial":"a","name":"w","states":[)" A_STATE R"(],"transitions":[]})"},
    {"key_too_many", R"({"form":1,"initial":"a","name":"w","more":1,"states":[)" A_STATE R"(],"transitions":[]})"},
    {"states_no_list", R"({"form":1,"initial":"a","name":"w","states":{},"transitions":[]})"},
    {"state_no_object", R"({"form":1,"initial":"a","name":"w","states":["a"],"transitions":[]})"},
    {"terminal_as_text",
     R"({"form":1,"initial":"a","name":"w","states":[{"done":false,"label":"","limit":null,"name":"a","owner":"","terminal":"yes"}],"transitions":[]})"},
    {"limit_in_fractions",
     R"({"form":1,"initial":"a","name":"w","states":[{"done":false,"label":"","limit":{"after_s":1.5,"event":"e"},"name":"a","owner":"","terminal":true}],"transitions":[]})"},
    {"by_nobody_known", R"({"form":1,"initial":"a","name":"w","states":[)" A_STATE
                        R"(],"transitions":[{"by":["ghost"],"event":"e","evidence":"","from":"a","to":"a"}]})"},
    {"a_table_that_make_refuses", R"({"form":1,"initial":"b","name":"w","states":[)" A_STATE R"(],"transitions":[]})"},
});

INSTANTIATE_TEST_SUITE_P(Workflow, BrokenDefinitions, testing::ValuesIn(broken_definitions),
                         [](const auto& row) { return row.param.name; });

TEST(Workflow, OneTerminalStateIsEnough) {
  const auto read = workflow::parse(R"({"form":1,"initial":"a","name":"w","states":[)" A_STATE R"(],"transitions":[]})");
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_FALSE(read->knows_event("e"));
}

// A sound table, spoiled by each row in one way; `where` is what make() must name.
struct spoiled {
  const char* name;
  std::function<void(std::string& name, std::string& initial, std::vector<state>&, std::vector<move>&)> how;
  std::vector<std::string> where;
};

class SpoiledTables : public testing::TestWithParam<spoiled> {};

TEST_P(SpoiledTables, AreRefusedWithThePlace) {
  std::string name = "w", initial = "a";
  std::vector<state> states{limited("a", "A", 90s, "late", "ops"), open("b"), closed("c")};
  std::vector<move> moves;
  add(moves, {"a"}, "late", "b", {clock});
  add(moves, {"a", "b"}, "end", "c", {provider});
  GetParam().how(name, initial, states, moves);
  std::optional<workflow> out = payment();
  const auto problems = workflow::make(name, initial, states, moves, out);
  EXPECT_FALSE(out);
  std::vector<std::string> where;
  for (const auto& p : problems) {
    where.push_back(p.where);
    EXPECT_FALSE(p.message.empty());
  }
  EXPECT_EQ(where, GetParam().where);
}

const auto spoiled_tables = std::to_array<spoiled>({
    {"no_states", [](auto&, auto&, auto& s, auto& m) { s.clear(); m.clear(); }, {"initial", "states"}},
    {"name_empty", [](auto& n, auto&, auto&, auto&) { n = ""; }, {"name"}},
    {"name_of_64", [](auto& n, auto&, auto&, auto&) { n = std::string(64, 'n'); }, {"name"}},
    {"initial_unknown", [](auto&, auto& i, auto&, auto&) { i = "z"; }, {"initial"}},
    {"state_in_capitals", [](auto&, auto&, auto& s, auto&) { s[2].name = "C"; }, {"states/C", "transitions/1/to", "transitions/2/to"}},
    {"state_twice", [](auto&, auto&, auto& s, auto&) { s.push_back(s[1]); }, {"states/b"}},
    {"label_not_utf8", [](auto&, auto&, auto& s, auto&) { s[1].label = "\xff"; }, {"states/b/label"}},
    {"label_of_two_lines", [](auto&, auto&, auto& s, auto&) { s[1].label = "a\nb"; }, {"states/b/label"}},
    {"owner_with_c1_escape", [](auto&, auto&, auto& s, auto&) { s[1].owner = "\xc2\x9b[31m"; }, {"states/b/owner"}},
    {"owner_with_escape", [](auto&, auto&, auto& s, auto&) { s[1].owner = "\x1b[31m"; }, {"states/b/owner"}},
    {"limit_of_nothing", [](auto&, auto&, auto& s, auto&) { s[0].limit->after = 0s; }, {"states/a/limit/after"}},
    {"limit_without_event", [](auto&, auto&, auto& s, auto&) { s[0].limit->event = "later"; }, {"states/a/limit/event"}},
    {"limit_by_others", [](auto&, auto&, auto& s, auto&) { s[0].limit->event = "end"; }, {"states/a/limit/event"}},
    {"limit_from_elsewhere", [](auto&, auto&, auto& s, auto&) { s[1].limit = s[0].limit; }, {"states/b/limit/event"}},
    {"limit_of_an_end", [](auto&, auto&, auto& s, auto& m) { s[2].limit = s[0].limit; m.push_back(move{"c", "late", "b", {clock}, ""}); },
     {"transitions/3/by"}},
    {"from_unknown", [](auto&, auto&, auto&, auto& m) { m[1].from = "z"; }, {"transitions/1/from"}},
    {"to_unknown", [](auto&, auto&, auto&, auto& m) { m[2].to = "z"; }, {"transitions/2/to"}},
    {"event_with_blank", [](auto&, auto&, auto&, auto& m) { m[2].event = "the end"; }, {"transitions/2/event"}},
    {"evidence_with_blank", [](auto&, auto&, auto&, auto& m) { m[2].evidence = "a paper"; }, {"transitions/2/evidence"}},
    {"two_targets", [](auto&, auto&, auto&, auto& m) { m.push_back(move{"a", "end", "b", {provider}, ""}); }, {"transitions/3/event"}},
    {"one_target_twice", [](auto&, auto&, auto&, auto& m) { m.push_back(move{"a", "end", "c", {operator_}, ""}); }, {"transitions/3/event"}},
    {"by_nobody", [](auto&, auto&, auto&, auto& m) { m[1].by.clear(); }, {"transitions/1/by"}},
    {"by_somebody_twice", [](auto&, auto&, auto&, auto& m) { m[1].by = {provider, client, provider}; }, {"transitions/1/by"}},
    {"provider_leaves_an_end", [](auto&, auto&, auto&, auto& m) { m.push_back(move{"c", "undo", "a", {operator_, provider}, ""}); },
     {"transitions/3/by"}},
    {"unreachable", [](auto&, auto&, auto& s, auto&) { s.push_back(closed("d")); }, {"states/d"}},
    {"unreachable_ring",
     [](auto&, auto&, auto& s, auto& m) {
       s.push_back(open("d"));
       s.push_back(open("e"));
       m.push_back(move{"d", "go", "e", {provider}, ""});
       m.push_back(move{"e", "go", "d", {provider}, ""});
     },
     {"states/d", "states/e"}},
    {"dead_end", [](auto&, auto&, auto& s, auto&) { s[2].terminal = false; }, {"states/c"}},
    {"way_out_to_itself_only", [](auto&, auto&, auto& s, auto& m) { s[2].terminal = false; m.push_back(move{"c", "again", "c", {provider}, ""}); },
     {"states/c"}},
    {"several_at_once", [](auto& n, auto& i, auto& s, auto& m) { n = "W"; i = "z"; s[0].limit->after = -1s; m[1].by.clear(); },
     {"name", "initial", "states/a/limit/after", "transitions/1/by"}},
});

INSTANTIATE_TEST_SUITE_P(Workflow, SpoiledTables, testing::ValuesIn(spoiled_tables),
                         [](const auto& row) { return row.param.name; });

TEST(Workflow, AnOperatorMayLeadOutOfAnEndAndMakeAStateReachable) {
  std::vector<move> moves;
  add(moves, {"a"}, "end", "b", {provider});
  add(moves, {"b"}, "undo", "c", {operator_});
  const workflow w = made("w", "a", {open("a"), closed("b"), closed("c")}, moves);
  EXPECT_THAT(w.allowed_events("b", operator_), ElementsAre("undo"));
}

TEST(Workflow, ActorsHaveTheirWords) {
  for (const auto& [who, word] :
       {std::pair{provider, "provider"}, {client, "client"}, {operator_, "operator"}, {clock, "clock"}}) {
    EXPECT_EQ(to_string(who), word);
    EXPECT_EQ(parse_actor_kind(word), who);
  }
  EXPECT_EQ(parse_actor_kind("operator_"), std::nullopt);
  EXPECT_EQ(parse_actor_kind(""), std::nullopt);
}

}  // namespace
}  // namespace recibo::transition
