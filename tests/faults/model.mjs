// What must come of a callback, written from the rules and not from the product: the workflow table of the fixture, and what
// happens to news that the table does not allow. Pure.
const moves = {
  accepted: { progress: 'processing', complete: 'completed', fail: 'failed' },
  processing: { complete: 'completed', fail: 'failed' },
};
const leadsTo = { progress: 'processing', complete: 'completed', fail: 'failed' };
const terminal = new Set(['completed', 'failed']);

// The provider's word → the event of the workflow.
export const eventOf = { processing: 'progress', succeeded: 'complete', failed: 'fail' };

// {disposition, state, why?, transition?}: for a callback whose key nobody holds. `agrees`: its amount is the registered one.
export function decide(state, event, agrees) {
  const to = moves[state]?.[event];
  const target = leadsTo[event];
  if (to !== undefined) {
    if (!agrees) return { disposition: 'review', why: 'amount_mismatch', state };
    return { disposition: 'applied', state: to, transition: { event, from: state, to } };
  }
  if (target === state) return agrees ? { disposition: 'redundant', state } : { disposition: 'review', why: 'amount_mismatch', state };
  if (terminal.has(state) && terminal.has(target)) return { disposition: 'review', why: 'contradiction', state };
  return { disposition: 'stale', state };
}

// One operation's history, fed in the order in which the database says that things happened.
export class History {
  state = 'accepted';
  version = 0;
  claims = new Map(); // key → {content, disposition, state}: what was decided first, and what every replay must say
  reviews = new Map(); // kind and content → how often it was seen: the same again opens no second one

  // {disposition, transition?, opens?} of the next callback.
  next({ key, content, event, agrees }) {
    const claim = this.claims.get(key);
    if (claim !== undefined) {
      if (claim.content === content) return { disposition: 'duplicate' };
      return { disposition: 'conflict', opens: this.#see('conflict', `${key} ${content}`) };
    }
    const decided = decide(this.state, event, agrees);
    if (decided.transition) {
      this.state = decided.state;
      this.version += 1;
    }
    this.claims.set(key, { content, disposition: decided.disposition, state: decided.state });
    return { ...decided, opens: decided.why !== undefined && this.#see(decided.why, content) };
  }

  // Whether it is seen for the first time.
  #see(kind, content) {
    const name = `${kind} ${content}`;
    const before = this.reviews.get(name) ?? 0;
    this.reviews.set(name, before + 1);
    return before === 0;
  }
}
