// A validated request to accept an operation → the registration that the recorder makes durable (R1-R4).
// Pure: the configuration and the clock are arguments. Safe from any thread.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/record/work.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace recibo::accept {

// What a client asks for. Texts are already of the right form (the API's table has checked them one by one); what needs
// the configuration, or two fields at once, is checked here.
struct request {
  std::string client;                     // name of the API token: the tenant (R35), also when an operator registers
  std::optional<std::string> request_id;  // kept as given; none: a UUIDv7 is made
  std::string provider;
  std::optional<std::string> workflow;  // none: the provider's
  std::string action;
  std::vector<std::string> references;  // the provider's own, in the order given; repeated ones count once
  std::optional<std::string> amount, currency, account;
  std::optional<sys_micros> deadline;
  std::vector<std::string> items;  // item IDs
  std::string metadata = "{}";     // canonical_json() of an object
  std::optional<std::string> idempotency_key;
  std::string trace_id;
};

// The registration, with its own ID, its request ID, and the digest of its intent. Two requests have the same intent when
// provider, workflow, action, references, amount as a number, currency, account, deadline, item IDs and metadata are the same;
// client and request ID are compared by the recorder.
// permanent::unknown_provider   not in the configuration
// permanent::unknown_workflow   not in the configuration
// permanent::missing_field      an amount without a currency, or the other way round
// permanent::malformed_field    an item ID stands twice; amount or currency are not ones
// The detail begins with the JSON pointer of the field.
result<record::registration> make_registration(std::shared_ptr<const config::settings> settings, request what, sys_micros at);

}  // namespace recibo::accept
