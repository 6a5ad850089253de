// The tamper-evident chain of an operation's recorded facts (R28, decision 5): what a fact's digest is over, and how each
// hash follows from the one before. Writer and checker share it. Pure: no I/O and no clock; safe to call from any thread.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace recibo::evidence {

// The sequence of an operation's first fact; the others follow without gaps.
inline constexpr std::int64_t first_sequence = 1;

// One recorded fact, as its row in `audit` and the rows it is about hold it.
struct audit_fact {
  std::int64_t sequence = first_sequence;
  // accept, delivery, event, payload_access, …
  std::string kind{};
  sys_micros at{};
  std::string actor{};
  // What the kind says more, in the fixed order of that kind (facts.hpp). nullopt is not the same as empty.
  std::vector<std::pair<std::string, std::optional<std::string>>> fields{};
};

// SHA-256 over the canonical fact: a version, the operation, sequence, kind, instant in microseconds, actor, then the
// name and value of each field, every one with its length before it (core/digest.hpp, canonical). Version 1.
sha256_digest fact_digest(operation_id operation, const audit_fact& fact);

// What stands before the first hash: a fixed label and the operation, so that no chain passes for another's.
sha256_digest chain_genesis(operation_id operation);

// The hash of a row: over the hash of the row before (chain_genesis for the first) and the digest of its own fact.
sha256_digest chain_next(const sha256_digest& previous_hash, const sha256_digest& fact);

// Follows one operation's chain, row by row in the order of `sequence`, in constant memory.
class chain_checker {
 public:
  explicit chain_checker(operation_id operation) : hash_(chain_genesis(operation)) {}

  // One row: its digest as recomputed from the rows it is about, and digest and hash as stored. nullopt: it holds.
  // Otherwise which row is the first broken one, and why, in a sentence without stored text. After that the rest cannot
  // be judged any more, and every call answers the same.
  std::optional<std::string> next(std::int64_t sequence, const sha256_digest& recomputed_digest,
                                  const sha256_digest& stored_digest, const sha256_digest& stored_hash);

  // After the last row: whether the chain ends where the operation's own row says. Finds what was cut off at the end.
  std::optional<std::string> finish(std::int64_t stored_sequence, const sha256_digest& stored_head);

  // Hash and sequence of the last row that held; chain_genesis and 0 before the first.
  const sha256_digest& head() const noexcept { return hash_; }
  std::int64_t sequence() const noexcept { return sequence_; }

 private:
  std::optional<std::string> broken(std::string why);

  sha256_digest hash_;
  std::int64_t sequence_ = first_sequence - 1;
  std::optional<std::string> why_;
};

}  // namespace recibo::evidence
