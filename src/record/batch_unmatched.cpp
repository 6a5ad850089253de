// What a batch decides about callbacks that cannot be understood, or that find no operation (R11, R17, R37).
#include "batch.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/record/left_out.hpp"

#include <algorithm>

namespace recibo::record {

using transition::disposition;

void batch::decide_failed(const callback& c, verdict& v) {
  v.is = verdict::kind::decided;
  auto& f = found_.failed[failed_key_of(c)];
  if (f.row.id.is_nil() || f.closed) {
    f = {};
    const auto word = c.unprocessable ? disposition::unprocessable : disposition::unmapped;
    const auto shape = config::shape_of(c.provider->answers, word);
    f.created = true;
    f.row.id = make_id<failed_callback_id>(at_);
    f.row.provider = c.provider->name;
    f.row.body_digest = c.body_digest;
    f.row.key_beside = c.key_beside;
    f.row.disposition = to_string(word);
    f.row.reason = c.unprocessable ? std::string(code_word(c.unprocessable->code)) : "unmapped";
    f.row.detail = c.unprocessable ? c.unprocessable->detail : "the event is not in the provider's map";
    f.row.delivery = c.id;
    if (!c.request_id.empty()) f.row.request_id = c.request_id;
    if (!c.event_raw.empty()) f.row.event = c.event_raw;
    f.row.answer_status = shape.status;
    f.row.head = c.head;
    f.row.signed_digest = c.signed_digest;

    auto d = delivery_of(c);
    d.disposition = f.row.disposition;
    if (!c.request_id.empty()) d.request_id = c.request_id;
    d.payload = keep_payload(c);
    d.answer_status = shape.status;
    writes_.new_deliveries.add(d);
    if (group_) {
      group_made_ = &f;
      f.left.push_back({c.part, c.id, {}, place_of(*c.provider)});
    }
  } else if (&f == group_made_) {
    if (!f.row.signed_digest) f.row.signed_digest = c.signed_digest;
    f.left.push_back({c.part, std::nullopt, {}, place_of(*c.provider)});
  } else {
    if (!group_failed_) ++f.times;
    if (group_) list_failed(f, c);
  }
  note_signed(f, c);
  if (group_) return decide_failed_part(c, v);
  v.outcome.disposition = transition::parse_disposition(f.row.disposition).value_or(disposition::unprocessable);
  v.outcome.delivery = f.row.delivery;
  v.outcome.request_id = f.row.request_id.value_or("");
  v.outcome.status = f.row.answer_status;
  v.outcome.body = config::shape_of(c.provider->answers, v.outcome.disposition).body;
  // The bytes are kept once; what is wrong with them may lie in this request's own headers.
  v.outcome.detail = c.unprocessable ? std::string(code_word(c.unprocessable->code)) + ": " + c.unprocessable->detail
                                     : f.row.reason + ": " + f.row.detail;
}

// An event that was kept out of the failed callback of its request before, by a rule or because nothing was kept of it.
void batch::list_failed(failed_in_hand& f, const callback& c) {
  // All of it is left anyway; and of a request in which no list of events stands nothing can be listed.
  if (f.created && f.left.empty()) return;
  if (c.unprocessable && c.event_raw.empty() && c.key.empty()) return;
  const auto left = f.created ? f.left : read_left_out(f.row.left_out);
  const auto place = place_of(*c.provider);
  const auto same = [&](const auto& one) { return one.part == c.part && (one.place.empty() || one.place == place); };
  if (std::any_of(left.begin(), left.end(), same)) return;
  list_left(f, {c.part, std::nullopt, {}, place_of(*c.provider)});
}

void batch::close_resent(const callback& c, delivery_id resent_as, bool repeats) {
  auto& failed = found_.failed[failed_key_of(c)];
  if (failed.closed) return;
  const auto& row = failed.row;
  if (repeats && !row.id.is_nil() && (row.reason.starts_with("item_") || speaks_of_items(row.left_out))) return;
  failed.closed = true;
  // One that this batch would have made is on record by what it was.
  if (failed.created) return note_resent(failed, failed.row.delivery, resent_as, true);
  writes_.resent_failed.add(failed_name_of(c), resent_as, at_, repeats);
}

// The bytes of a request are kept and counted once, whatever many of its events cannot be understood: each says itself why.
void batch::decide_failed_part(const callback& c, verdict& v) {
  group_failed_ = true;
  v.outcome.disposition = c.unprocessable ? disposition::unprocessable : disposition::unmapped;
  v.outcome.request_id = c.request_id;
  const auto shape = config::shape_of(c.provider->answers, v.outcome.disposition);
  v.outcome.status = shape.status;
  v.outcome.body = shape.body;
  v.outcome.detail = c.unprocessable ? std::string(code_word(c.unprocessable->code)) + ": " + c.unprocessable->detail
                                     : std::string("unmapped: the event is not in the provider's map");
}

delivery_id batch::keep_payload(const callback& c) {
  if (!group_) {
    writes_.new_payloads.add(c.id, c.body, c.content_type);
    return c.id;
  }
  if (!group_payload_) {
    group_payload_ = c.id;
    writes_.new_payloads.add(c.id, group_->body, group_->content_type);
  }
  return *group_payload_;
}

void batch::decide_unmatched(const callback& c, verdict& v) {
  const auto meaning = found_.meaning_of(c);
  if (meaning == found::stranger::busy) {
    v.is = verdict::kind::busy;
    return;
  }
  v.outcome.request_id = c.request_id;
  // It speaks of an operation that is not here and names another: there is nobody whom it could wait for.
  const auto policy = c.named_instead ? config::unmatched::reject : c.provider->unmatched;
  switch (policy) {
    case config::unmatched::ignore:
      v.is = verdict::kind::decided;
      v.outcome.disposition = disposition::ignored;
      break;
    case config::unmatched::reject:
      v.is = verdict::kind::decided;
      v.outcome.disposition = disposition::unknown_operation;
      v.outcome.detail = "no operation with this identity is registered";
      break;
    case config::unmatched::park: v.is = verdict::kind::absent; return;
    case config::unmatched::register_: return decide_unregistered(c, v, meaning == found::stranger::elsewhere);
  }
  const auto shape = config::shape_of(c.provider->answers, v.outcome.disposition);
  v.outcome.status = shape.status;
  v.outcome.body = shape.body;
  v.outcome.delivery = c.id;
}

void batch::decide_unregistered(const callback& c, verdict& v, bool of_another_provider) {
  // A request ID is unique in the installation (R35): what is another provider's is parked.
  if (of_another_provider) {
    v.is = verdict::kind::absent;
    return;
  }
  const auto names = names_of(c);
  const auto request_id = c.request_id.empty() ? uuid_text(uuid_v7_bytes(at_)) : c.request_id;
  if (!found_.may_meet(names) || !found_.may_apply(c.provider->name, request_id, names)) {
    v.is = verdict::kind::busy;
    return;
  }
  auto& o = create_for(c, request_id);
  apply_parked(o, c.settings, names);
  decide_known(c, o, v, nullptr);
  remember_failed(c, o);
}

}  // namespace recibo::record
