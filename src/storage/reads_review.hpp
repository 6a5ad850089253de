// Columns of a review and their mapping, for lists of reviews and for the case view.
#pragma once

#include "recibo/storage/reads_evidence.hpp"

#include <string>

namespace recibo::storage {

// In the order of read_review_view(), of reviews `v` and their operations `o`.
inline const std::string review_columns =
    "v.id, coalesce(o.request_id, v.request_id), coalesce(o.provider, v.provider), v.kind, v.detail, v.state, v.owner, "
    "v.status, o.state, v.count, v.opened_at, "
    "v.last_seen_at, "
    "v.due_at, v.resolved_at, v.assigned_to, v.resolved_by, v.resolution, v.reason, v.delivery, v.first_delivery, v.digest, "
    "v.first_digest, "
    "(SELECT d.body_digest FROM recibo.deliveries d WHERE d.id = v.delivery LIMIT 1), "
    "(SELECT d.body_digest FROM recibo.deliveries d WHERE d.id = v.first_delivery LIMIT 1), v.item_id, "
    "o.workflow, o.revision::int8";
inline constexpr int review_column_count = 27;
// A WHERE follows.
inline const std::string review_select =
    "SELECT " + review_columns + " FROM recibo.reviews v LEFT JOIN recibo.operations o ON o.id = v.operation ";

review_view read_review_view(const postgres::rows& from, int row);

}  // namespace recibo::storage
