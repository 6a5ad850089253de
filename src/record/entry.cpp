#include "entry.hpp"

namespace recibo::record {
namespace {

std::string identity_of(const work& w) {
  if (const auto* c = std::get_if<callback>(&w)) {
    if (!c->understood() && !c->looked_up) return "f" + c->provider->name + "/" + std::string(binary(c->body_digest));
    if (!c->request_id.empty()) return "r" + c->request_id;
    return "a" + c->provider->name + "/" + (c->references.empty() ? std::string() : c->references.front());
  }
  // Each for itself: its operations are locked together, and the sender waits for the answer before it sends the next.
  if (const auto* g = std::get_if<callback_group>(&w)) return "g" + std::string(g->parts.front().id.binary());
  if (const auto* d = std::get_if<discard>(&w)) return "f" + d->provider + "/" + std::string(binary(d->body_digest));
  if (const auto* r = std::get_if<registration>(&w)) return "r" + r->request_id;
  if (const auto* e = std::get_if<event>(&w)) return "r" + e->request_id;
  if (const auto* m = std::get_if<rematch>(&w)) return "r" + m->request_id;
  if (const auto* m = std::get_if<workflow_change>(&w)) return "r" + m->request_id;
  if (const auto* t = std::get_if<timer_due>(&w)) return "r" + t->request_id;
  if (const auto* v = std::get_if<review_due>(&w))
    return v->request_id.empty() ? "v" + std::string(v->review.binary()) : "r" + v->request_id;
  if (const auto* l = std::get_if<look_up>(&w)) return "r" + l->request_id;
  if (const auto* p = std::get_if<payload_access>(&w)) return p->request_id.empty() ? std::string() : "r" + p->request_id;
  if (const auto* a = std::get_if<review_action>(&w))
    return a->request_id.empty() ? "v" + std::string(a->review.binary()) : "r" + a->request_id;
  return {};
}

}  // namespace

entry::entry(const boost::asio::any_io_executor& executor, record::work w, steady_time deadline)
    : what(std::move(w)),
      arrived(std::chrono::steady_clock::now()),
      until(deadline),
      identity(identity_of(what)),
      wake(executor, deadline) {
  if (const auto* c = std::get_if<callback>(&what)) {
    provider = c->provider->name;
    bytes = c->body.size();
    rows += c->items.size();
    alone = c->replay && c->replay->dry_run;
  } else if (const auto* g = std::get_if<callback_group>(&what)) {
    provider = g->parts.front().provider->name;
    bytes = g->body.size();
    rows = 0;
    for (const auto& part : g->parts) rows += 1 + part.items.size();
  }
}

void entry::finish(result<outcome> a) {
  if (answer) return;
  answer = std::move(a);
  wake.cancel();
}

const sha256_digest* digest_of(const work& w) noexcept {
  if (const auto* g = std::get_if<callback_group>(&w)) return &g->parts.front().body_digest;
  const auto* c = std::get_if<callback>(&w);
  return c ? &c->body_digest : nullptr;
}

}  // namespace recibo::record
