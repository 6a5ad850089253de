#include "recibo/evidence/audit_chain.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace recibo::evidence {
namespace {

using namespace std::string_literals;

const operation_id operation = parse_id<operation_id>("0199ef5a-b87b-7cde-8f01-23456789abcd").value();
const sys_micros at = parse_rfc3339("2026-10-01T10:00:00.000001Z").value();

audit_fact some_fact() {
  audit_fact fact;
  fact.sequence = 2;
  fact.kind = "delivery";
  fact.at = at;
  fact.actor = "acme";
  fact.fields = {{"disposition", "applied"}, {"key", "evt-1"}, {"item", std::nullopt}};
  return fact;
}

TEST(AuditChain, TheCanonicalFactIsAsWritten) {
  // Written out by hand, so that a change of form cannot pass unnoticed: it would break every chain that is stored.
  std::string bytes;
  const auto field = [&](std::string_view text) {
    bytes += "\0\0\0"s;
    bytes += static_cast<char>(text.size());
    bytes += text;
  };
  field("\x01");
  field(from_hex("0199ef5ab87b7cde8f0123456789abcd").value());
  field("\0\0\0\0\0\0\0\x02"s);
  field("delivery");
  field(from_hex("00065cc47a920801").value());  // microseconds since 1970
  field("acme");
  field("disposition");
  field("applied");
  field("key");
  field("evt-1");
  field("item");
  bytes += "\xff\xff\xff\xff";
  EXPECT_EQ(to_hex(binary(fact_digest(operation, some_fact()))), to_hex(binary(sha256(bytes))));
}

TEST(AuditChain, LinksAreAsWritten) {
  const auto genesis = chain_genesis(operation);
  EXPECT_EQ(genesis, sha256("\0\0\0\x12recibo audit chain\0\0\0\x10"s + from_hex("0199ef5ab87b7cde8f0123456789abcd").value()));
  const auto fact = fact_digest(operation, some_fact());
  EXPECT_EQ(chain_next(genesis, fact),
            sha256("\0\0\0\x20"s + std::string(binary(genesis)) + "\0\0\0\x20"s + std::string(binary(fact))));
}

TEST(AuditChain, AnyPartOfAFactChangesItsDigest) {
  const std::vector<std::function<void(operation_id&, audit_fact&)>> changes{
      [](auto&, auto&) {},
      [](auto& op, auto&) { op.bytes[15] ^= 1; },
      [](auto&, auto& f) { f.sequence = 3; },
      [](auto&, auto& f) { f.kind = "deliver"; },
      [](auto&, auto& f) { f.at += std::chrono::microseconds(1); },
      [](auto&, auto& f) { f.actor = "acm"; },
      [](auto&, auto& f) { f.actor = ""; },
      [](auto&, auto& f) { f.fields[0].second = "stale"; },
      [](auto&, auto& f) { f.fields[0].second = std::nullopt; },
      [](auto&, auto& f) { f.fields[0].second = ""; },
      [](auto&, auto& f) { f.fields[2].second = ""; },
      [](auto&, auto& f) { f.fields[0].first = "disposition "; },
      [](auto&, auto& f) { std::swap(f.fields[0], f.fields[1]); },
      [](auto&, auto& f) { f.fields.pop_back(); },
      [](auto&, auto& f) {
        f.fields.push_back({"more", std::nullopt});
      },
      // The same joined text, cut elsewhere.
      [](auto&, auto& f) { f.kind = "deliver", f.actor = "yacme"; },
      [](auto&, auto& f) {
        f.fields[0] = {"dispositiona", "pplied"};
      },
      [](auto&, auto& f) { f.fields[0].second = "applied\0\0\0\3key"s; },
  };
  std::set<sha256_digest> digests;
  for (const auto& change : changes) {
    operation_id op = operation;
    audit_fact fact = some_fact();
    change(op, fact);
    digests.insert(fact_digest(op, fact));
  }
  EXPECT_EQ(digests.size(), changes.size());
}

TEST(AuditChain, ALongFactLeavesNothingBehindForTheNext) {
  const auto expected = fact_digest(operation, some_fact());
  audit_fact long_one = some_fact();
  long_one.fields.assign(200, {"name", std::string(1000, 'x')});
  EXPECT_NE(fact_digest(operation, long_one), expected);
  EXPECT_EQ(fact_digest(operation, some_fact()), expected);
}

// ---- the checker ----

struct stored_row {
  audit_fact fact;
  sha256_digest digest, hash;
};

struct chain {
  operation_id op = operation;
  std::vector<stored_row> rows;
  std::int64_t count = 0;
  sha256_digest head{};
};

chain some_chain(std::size_t length, operation_id op = operation) {
  chain c;
  c.op = op;
  c.head = chain_genesis(op);
  for (std::size_t i = 0; i < length; ++i) {
    audit_fact fact = some_fact();
    fact.sequence = static_cast<std::int64_t>(i) + first_sequence;
    fact.at += std::chrono::seconds(i);
    fact.fields[1].second = "evt-" + std::to_string(i);
    const auto digest = fact_digest(op, fact);
    c.head = chain_next(c.head, digest);
    c.rows.push_back({fact, digest, c.head});
  }
  c.count = static_cast<std::int64_t>(length);
  return c;
}

// The first thing the checker finds; empty: the chain holds.
std::string check(const chain& c) {
  chain_checker checker(c.op);
  for (const stored_row& r : c.rows) {
    if (const auto why = checker.next(r.fact.sequence, fact_digest(c.op, r.fact), r.digest, r.hash)) {
      // Nothing after the first broken row hides it.
      EXPECT_EQ(checker.finish(c.count, c.head), why);
      return *why;
    }
  }
  return checker.finish(c.count, c.head).value_or("");
}

TEST(ChainChecker, AGoodChainHolds) {
  for (const std::size_t length : {0u, 1u, 2u, 50u}) EXPECT_EQ(check(some_chain(length)), "") << length;
}

TEST(ChainChecker, KnowsItsHead) {
  const chain c = some_chain(3);
  chain_checker checker(c.op);
  EXPECT_EQ(checker.head(), chain_genesis(c.op));
  EXPECT_EQ(checker.sequence(), 0);
  for (const stored_row& r : c.rows) {
    ASSERT_EQ(checker.next(r.fact.sequence, r.digest, r.digest, r.hash), std::nullopt);
    EXPECT_EQ(checker.head(), r.hash);
    EXPECT_EQ(checker.sequence(), r.fact.sequence);
  }
}

TEST(ChainChecker, AnyChangedBitIsFound) {
  for (std::size_t at_row = 0; at_row < 4; ++at_row) {
    const std::string name = "row " + std::to_string(at_row + 1) + " ";
    for (std::size_t byte = 0; byte < 32; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        chain digest = some_chain(4), hash = some_chain(4), head = some_chain(4);
        digest.rows[at_row].digest[byte] ^= static_cast<std::uint8_t>(1 << bit);
        hash.rows[at_row].hash[byte] ^= static_cast<std::uint8_t>(1 << bit);
        head.head[byte] ^= static_cast<std::uint8_t>(1 << bit);
        EXPECT_EQ(check(digest).find(name + "was changed"), 0u);
        EXPECT_EQ(check(hash).find(name + "does not continue"), 0u);
        EXPECT_EQ(check(head).find("row 4 is not the end"), 0u);
      }
    }
    chain content = some_chain(4);
    content.rows[at_row].fact.fields[0].second = "stale";
    EXPECT_EQ(check(content).find(name + "was changed"), 0u);
  }
}

TEST(ChainChecker, AChangeWithADigestToSuitIsFoundByTheHash) {
  chain c = some_chain(4);
  c.rows[1].fact.fields[0].second = "stale";
  c.rows[1].digest = fact_digest(c.op, c.rows[1].fact);
  EXPECT_EQ(check(c).find("row 2 does not continue"), 0u);
}

TEST(ChainChecker, AChangeWithAHashToSuitIsFoundByTheNextRow) {
  chain c = some_chain(4);
  c.rows[1].fact.fields[0].second = "stale";
  c.rows[1].digest = fact_digest(c.op, c.rows[1].fact);
  c.rows[1].hash = chain_next(c.rows[0].hash, c.rows[1].digest);
  EXPECT_EQ(check(c).find("row 3 does not continue"), 0u);
}

TEST(ChainChecker, AChainForgedToItsEndIsFoundByTheHead) {
  chain c = some_chain(4);
  const auto head = c.head;
  c.rows[1].fact.fields[0].second = "stale";
  sha256_digest hash = c.rows[0].hash;
  for (std::size_t i = 1; i < 4; ++i) {
    c.rows[i].digest = fact_digest(c.op, c.rows[i].fact);
    c.rows[i].hash = hash = chain_next(hash, c.rows[i].digest);
  }
  c.head = head;
  EXPECT_EQ(check(c).find("row 4 is not the end"), 0u);
}

TEST(ChainChecker, ADroppedRowIsFound) {
  for (std::size_t i = 0; i < 4; ++i) {
    chain c = some_chain(4);
    c.rows.erase(c.rows.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(check(c).find("row " + std::to_string(i + 1) + " is missing"), 0u) << check(c);
  }
}

TEST(ChainChecker, ADroppedRowIsFoundWhereTheOthersWereRenumbered) {
  for (std::size_t i = 0; i < 3; ++i) {
    chain c = some_chain(4);
    c.rows.erase(c.rows.begin() + static_cast<std::ptrdiff_t>(i));
    for (std::size_t k = i; k < c.rows.size(); ++k) {
      c.rows[k].fact.sequence = static_cast<std::int64_t>(k + 1);
      c.rows[k].digest = fact_digest(c.op, c.rows[k].fact);
    }
    c.count = 3;
    EXPECT_EQ(check(c).find("row " + std::to_string(i + 1) + " does not continue"), 0u) << check(c);
  }
}

TEST(ChainChecker, RowsCutOffAtTheEndAreFound) {
  chain c = some_chain(4);
  c.rows.resize(2);
  EXPECT_EQ(check(c).find("row 3 is missing"), 0u);
  c.rows.clear();
  EXPECT_EQ(check(c).find("row 1 is missing"), 0u);
}

TEST(ChainChecker, ARowTooManyIsFound) {
  chain c = some_chain(4);
  c.count = 3;
  EXPECT_EQ(check(c).find("row 4 is one too many"), 0u);
}

TEST(ChainChecker, SwappedRowsAreFound) {
  for (std::size_t i = 0; i + 1 < 4; ++i) {
    chain c = some_chain(4);
    std::swap(c.rows[i], c.rows[i + 1]);
    EXPECT_EQ(check(c).find("row " + std::to_string(i + 1) + " is missing"), 0u) << check(c);
    // Swapped, and their numbers too.
    std::swap(c.rows[i].fact.sequence, c.rows[i + 1].fact.sequence);
    EXPECT_EQ(check(c).find("row " + std::to_string(i + 1) + " was changed"), 0u) << check(c);
  }
}

TEST(ChainChecker, ARowThatComesTwiceIsFound) {
  chain c = some_chain(4);
  c.rows.insert(c.rows.begin() + 2, c.rows[1]);
  EXPECT_EQ(check(c).find("row 2 is out of order"), 0u);
}

TEST(ChainChecker, AnotherOperationsChainIsNotThisOnes) {
  chain c = some_chain(3);
  c.op.bytes[0] ^= 1;
  EXPECT_EQ(check(c).find("row 1 was changed"), 0u);
  // Also where the checker is given digests that agree.
  chain_checker checker(c.op);
  const auto why = checker.next(1, c.rows[0].digest, c.rows[0].digest, c.rows[0].hash);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->find("row 1 does not continue"), 0u);
}

}  // namespace
}  // namespace recibo::evidence
