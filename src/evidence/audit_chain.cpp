#include "recibo/evidence/audit_chain.hpp"

#include <string_view>

namespace recibo::evidence {
namespace {

// The first field of a fact. A change of the canonical form takes the next number, and the checker learns both.
constexpr std::string_view fact_version = "\x01";
// Longer than the version and shorter than a hash, so that facts, first links and links never share their bytes.
constexpr std::string_view genesis_label = "recibo audit chain";

std::string row(std::int64_t sequence) { return "row " + std::to_string(sequence); }

}  // namespace

sha256_digest fact_digest(operation_id operation, const audit_fact& fact) {
  // Kept by the thread: a digest is made for every callback, and its bytes are gone once it is made.
  thread_local canonical bytes;
  bytes.clear();
  bytes.add(fact_version).add(operation.binary()).add_number(fact.sequence).add(fact.kind);
  bytes.add_number(fact.at.time_since_epoch().count()).add(fact.actor);
  for (const auto& [name, value] : fact.fields) bytes.add(name).add(value);
  return sha256(bytes.bytes());
}

sha256_digest chain_genesis(operation_id operation) {
  return sha256(canonical().add(genesis_label).add(operation.binary()).bytes());
}

sha256_digest chain_next(const sha256_digest& previous_hash, const sha256_digest& fact) {
  thread_local canonical bytes;
  bytes.clear();
  return sha256(bytes.add(binary(previous_hash)).add(binary(fact)).bytes());
}

std::optional<std::string> chain_checker::broken(std::string why) {
  why_ = std::move(why);
  return why_;
}

std::optional<std::string> chain_checker::next(std::int64_t sequence, const sha256_digest& recomputed_digest,
                                               const sha256_digest& stored_digest, const sha256_digest& stored_hash) {
  if (why_) return why_;
  const std::int64_t expected = sequence_ + 1;
  if (sequence > expected) return broken(row(expected) + " is missing: " + row(sequence) + " stands in its place");
  if (sequence < expected) return broken(row(sequence) + " is out of order: " + row(expected) + " should stand here");
  if (recomputed_digest != stored_digest)
    return broken(row(sequence) + " was changed: what it is about no longer gives its digest");
  const sha256_digest hash = chain_next(hash_, stored_digest);
  if (hash != stored_hash)
    return broken(row(sequence) + " does not continue the chain: its hash does not follow from the row before and its digest");
  hash_ = hash;
  sequence_ = sequence;
  return std::nullopt;
}

std::optional<std::string> chain_checker::finish(std::int64_t stored_sequence, const sha256_digest& stored_head) {
  if (why_) return why_;
  if (stored_sequence > sequence_) {
    return broken(row(sequence_ + 1) + " is missing: the operation counts " + std::to_string(stored_sequence) +
                  " rows and the chain ends before it");
  }
  if (stored_sequence < sequence_) {
    return broken(row(stored_sequence + 1) + " is one too many: the operation counts " + std::to_string(stored_sequence) +
                  " rows");
  }
  if (stored_head != hash_)
    return broken(row(sequence_) + " is not the end that the operation's head names: their hashes differ");
  return std::nullopt;
}

}  // namespace recibo::evidence
