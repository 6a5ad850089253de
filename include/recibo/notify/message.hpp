// A notification as it is sent: body and headers (R19; Standard Webhooks). Pure; safe from any thread.
#pragma once

#include "recibo/evidence/case_view.hpp"
#include "recibo/http/message.hpp"
#include "recibo/storage/operations_then.hpp"
#include "recibo/storage/outbox.hpp"
#include "recibo/verify/keyring.hpp"

#include <string>
#include <string_view>

namespace recibo::notify {

// An operation as it stood when the fact was recorded: `found` of that fact, and what the claim says of its state, version and
// result. `table`: the version of its workflow that it had then.
storage::operation_view put_back(storage::operation_then found, const storage::claimed_notification& to,
                                 const transition::workflow& table);

// {"id", "type", "timestamp", "data": {the operation as GET shows it to a client, without its items, "event", "from", "to"}}.
// `timestamp` is when the fact was recorded; the same for all attempts. `o` as put_back() made it.
std::string body_of(const storage::claimed_notification& n, const storage::operation_view& o, const evidence::judged_by& by);

// The same of a provider that has gone silent or speaks again: "data" is {"provider", "reason", "silent_since",
// "last_callback_at"}.
std::string body_of_provider(const storage::claimed_notification& n);

// webhook-id, webhook-timestamp, webhook-signature, and recibo-sequence: the operation's own count of facts, by which a
// consumer drops what is older than what it has. Signed with every secret that is valid at `now`, in their order, so that
// a rotation has an overlap; not signed where there is no secret. Source: Standard Webhooks, "signature scheme".
// permanent::invalid_configuration   there are secrets, and none is valid now
result<http::header_list> headers_of(const storage::claimed_notification& n, std::string_view body, const verify::keyring& keys,
                                     sys_micros now);

// The subject that a message of NATS goes to: the template with its gaps filled, each with one token of the subject, but for the
// type, whose dots are meant as such. What has a meaning in subjects is percent-encoded; what is not there (a provider's silence
// has no request) is "-".
std::string subject_of(std::string_view pattern, std::string_view type, std::string_view provider, std::string_view request_id);

// At most 200 characters of an answer, for people: what is not printable ASCII becomes a blank, and what may be a secret, a card
// number, an account or an e-mail address, or follows a word for a secret, becomes "(hidden)". Of a JSON document only what
// problems say of themselves is told: type, title, status, code, error, message; of a page its title. An answer may repeat what
// it was sent, or say more than it should (R29).
std::string excerpt_of(std::string_view answer);
// Where there was no answer: what we say of it ourselves, as short. It names hosts and addresses, which are no accounts.
std::string excerpt_of_ours(std::string_view detail);

}  // namespace recibo::notify
