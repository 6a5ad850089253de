// What a provider is asked about an operation, and what it means that it answered so (R23, R40, K29). Pure.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/error.hpp"
#include "recibo/http/client.hpp"
#include "recibo/record/work.hpp"

#include <string>
#include <string_view>

namespace recibo::reconcile {

// A GET within the rule's bounds. Each value is one path segment or one query value; the host is always the rule's (S39).
// permanent::missing_field     there is no reference, and the URL has a place for one
// permanent::malformed_field   a value would change what is asked
result<http::outbound_request> status_request(const config::status_rule& rule, std::string_view request_id,
                                              std::string_view reference);
http::outbound_rules status_rules(const config::asking_rule& rule);
// What is sent with each question beside its URL.
http::header_list status_headers(const config::asking_rule& rule);

// What to do about an attempt.
enum class next_step {
  read,     // the answer counts
  again,    // may pass later
  give_up,  // somebody has to look: asking again brings the same
};
struct judged_attempt {
  next_step what = next_step::again;
  std::string_view reason;       // the stable word; a literal
  std::string_view retry_after;  // as the provider said it, of several the longest; borrows
  bool theirs = true;            // the provider is out of order; else what we send or are configured with
  bool unauthorized = false;     // nothing will pass until a person has acted
};
// `reason_before`: of the attempt before, or empty. An operation that the provider does not know is asked for again, once: it
// may not know it yet. Not found is not failed.
judged_attempt judge_attempt(const result<http::outbound_answer>& answer, std::string_view reason_before, sys_micros now);

// Makes `c`, which extraction has read from the answer, what is recorded: what was asked for and what the answer is about are
// held against each other, and what was fetched is the key (R40). What cannot be understood has a key of its own each time,
// because it counts once it can be. `reference`: by which it was asked; empty: by another name.
void make_answer(record::callback& c, look_up_id id, std::string_view reference);
// What is recorded where a look-up is given up: opens a review, with the body as evidence.
void make_trouble(record::callback& c, look_up_id id, std::string_view reason, std::string body);

// A look-up whose attempts are used up without any of them having ended: whatever it meets, it takes those who ask with it.
inline constexpr std::string_view lost_attempts = "lost_attempts";
// What an attempt brought could not be recorded.
inline constexpr std::string_view not_recorded = "not_recorded";
// For the review: what went wrong, in a sentence.
std::string detail_of(std::string_view reason, int attempts);

}  // namespace recibo::reconcile
