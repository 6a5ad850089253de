// What a batch applies of the callbacks that waited for an operation (R11).
#include "batch.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace recibo::record {

void batch::apply_parked(operation_in_hand& o, const std::shared_ptr<const config::settings>& settings,
                         std::vector<storage::identity_name> names) {
  const bool all = names.empty();
  for (bool again = true; again;) {
    again = false;
    for (auto& [order, p] : found_.parked) {
      if (p.applied || !found_.waits_for(p.row, o.row.provider, o.row.request_id)) continue;
      const auto meant = [&](const auto& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
      if (!o.created && !p.keys_read) continue;  // the re-match brings it
      if (!all && std::none_of(p.matched.begin(), p.matched.end(), meant)) continue;
      const auto provider = settings->providers.find(p.row.provider);
      if (provider == settings->providers.end()) continue;
      p.applied = true;
      writes_.applied_parked.add(p.row.id);
      writes_.outgrown_reviews.add(p.row.id, at_);

      auto& c = parked_callbacks_.emplace_back();
      c.settings = settings;
      c.provider = &provider->second;
      c.id = p.row.id;
      c.received_at = p.row.parked_at;
      c.secret_name = p.row.secret;
      c.body_digest = p.row.body_digest;
      c.key_beside = p.row.key_beside;
      if (p.row.part) c.part = static_cast<std::size_t>(*p.row.part);
      c.head = p.row.head;
      c.request_id = p.row.request_id.value_or("");
      c.references = p.row.references;
      c.key = p.row.key;
      c.event = p.row.event;
      c.event_raw = p.row.event_raw;
      c.occurred_at = p.row.occurred_at;
      c.sequence = p.row.provider_sequence;
      c.items = p.items;
      if (p.row.amount) c.amount = decimal{*p.row.amount};
      c.currency = p.row.currency;
      c.account = p.row.account;
      c.result = p.row.result;
      c.content_digest = p.row.content_digest;
      c.signed_digest = p.row.signed_digest;
      c.listed = p.row.listed;
      if (const auto& by = p.row.replay) {
        replay met;
        met.failed = by->failed;
        met.actor = by->actor;
        met.reason = by->reason;
        met.met = true;
        c.replay = std::make_shared<const replay>(std::move(met));
      }
      if (auto learned = found_.unknown_references(o.row.provider, c.references);
          !learned.empty() && found_.may_meet(learned) && p.row.disposition != to_string(transition::disposition::conflict) &&
          teaches(c, o)) {
        learn(c.references, o);
        names.insert(names.end(), std::make_move_iterator(learned.begin()), std::make_move_iterator(learned.end()));
        again = true;
      }
      verdict ignored;
      decide_known(c, o, ignored, &p.row);
      for (const auto& digest : p.row.signed_again) remember_signed(digest, o, c.key);
      // From the start again: what came under the learned reference may stand before what is next here.
      if (again) break;
    }
  }
}

}  // namespace recibo::record
