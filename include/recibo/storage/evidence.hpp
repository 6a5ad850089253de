// Bulk writers of what is appended with each recorded fact: transitions, audit rows, outbox rows, payload accesses.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// One row of `transitions`; borrows. Empty texts of the optional columns are stored as NULL.
struct transition_row {
  operation_id operation;
  std::int32_t sequence = 0, version = 0;
  std::optional<std::string> item_id;
  std::string_view event, from, to;
  sys_micros at{};
  std::string_view actor_kind, actor;
  std::optional<delivery_id> delivery;
  std::string_view reason, evidence, result;
  std::int32_t notifications = 0;
};
struct new_transitions {
  bulk rows;
  new_transitions();
  void add(const transition_row& t);
};

struct new_audit {
  bulk rows;
  new_audit();
  void add(operation_id operation, std::int32_t sequence, std::string_view kind, sys_micros at, std::string_view actor,
           const std::optional<delivery_id>& delivery, const sha256_digest& digest, const sha256_digest& hash);
};

struct new_notifications {
  bulk rows;
  new_notifications();
  void add(notification_id id, operation_id operation, std::int32_t sequence, std::string_view destination, std::string_view type,
           sys_micros at);
};

struct new_payload_accesses {
  bulk rows;
  new_payload_accesses();
  void add(const std::array<std::uint8_t, 16>& id, delivery_id delivery, sys_micros at, std::string_view actor,
           const std::optional<operation_id>& operation, const std::optional<std::int32_t>& sequence);
};

}  // namespace recibo::storage
