// Makes up operations and their callbacks: registered before, while and after their callbacks come, or never; found by request
// ID, by reference, or by a reference that a callback teaches; repeated, respelled, contradicted, in any order.
import { freshId } from '../support/random.mjs';
import { Callback, Operation } from './book.mjs';
import { eventOf } from './model.mjs';

const pickWeighted = (random, weights) => {
  let at = random.next() * weights.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [what, weight] of weights) {
    at -= weight;
    if (at < 0) return what;
  }
  return weights.at(-1)[0];
};

// What is compared under one key: everything that is extracted, without the key.
const contentOf = (fields) => JSON.stringify({ ...fields, event_id: undefined });

const times = ['2026-10-01T10:00:00Z', '2026-10-01T10:00:05Z', '2026-10-01T10:00:10Z'];

export class Stories {
  // `newWord`: a word that the providers' maps do not have yet; it will mean "complete".
  constructor(random, newWord) {
    Object.assign(this, { random, newWord });
  }

  // An operation with its callbacks. `hot`: one of them comes that often. `twins`: two of them say the same under different keys,
  // and each is contradicted by the same other amount.
  make({ when, knownAs, hot = 0, provider, twins = false } = {}) {
    const { random } = this;
    const operation = new Operation({
      id: freshId('op'),
      provider: provider ?? random.pick(['p1', 'p2']),
      reference: freshId('ref'),
      when: when ?? pickWeighted(random, [['early', 70], ['racing', 15], ['late', 10], ['never', 5]]),
      knownAs: knownAs ?? pickWeighted(random, [['request_id', 70], ['reference', 15], ['learned', 15]]),
    });
    // The first callback of an operation whose reference is learned carries both names.
    const named = () => {
      if (operation.knownAs === 'request_id') return { request_id: operation.id };
      if (operation.callbacks.length === 0 && operation.knownAs === 'learned') return { request_id: operation.id, reference: operation.reference };
      return random.int(3) === 0 ? { request_id: operation.id, reference: operation.reference } : { reference: operation.reference };
    };
    const words = pickWeighted(random, [
      [['succeeded'], 25],
      [['processing', 'succeeded'], 40],
      [['processing', 'failed'], 10],
      [['processing', 'processing', 'succeeded', 'succeeded'], 10],
      [['succeeded', 'failed'], 10],
      [['processing', 'succeeded', 'processing', 'failed'], 5],
    ]);
    words.forEach((word, i) => this.#tell(operation, named(), `k${i}`, word));
    if (twins) {
      for (const key of ['twin1', 'twin2']) this.#contradict(operation, this.#tell(operation, { request_id: operation.id }, key, 'succeeded', '19.99', times[0]));
    }
    if (hot > 0) operation.callbacks[0].copies = hot;
    if (random.int(8) === 0) this.#tell(operation, named(), 'wrong', 'succeeded', '1999.00');
    if (random.int(8) === 0) {
      for (const against of random.shuffle(operation.callbacks).slice(0, 1 + random.int(2))) this.#contradict(operation, against);
    }
    if (random.int(12) === 0) this.#respell(operation);
    if (random.int(25) === 0) this.#spoil(operation);
    if (this.newWord && random.int(6) === 0) this.#sayTooEarly(operation);
    return operation;
  }

  #body(names, key, word, amount, occurredAt) {
    return { ...names, event_id: key, status: word, amount, currency: 'EUR', occurred_at: occurredAt };
  }

  #tell(operation, names, key, word, amount = '19.99', occurredAt = this.random.pick(times)) {
    const fields = this.#body(names, key, word, amount, occurredAt);
    const body = JSON.stringify(fields);
    const copies = pickWeighted(this.random, [[1, 70], [2, 20], [3, 10]]);
    return new Callback({ operation, key, content: contentOf(fields), event: eventOf[word], agrees: amount === '19.99', body, copies });
  }

  // Another amount under a key that one of them has.
  #contradict(operation, against) {
    const fields = { ...JSON.parse(against.body), amount: '20.00' };
    const body = JSON.stringify(fields);
    if (operation.callbacks.some((c) => c.body === body)) return;
    new Callback({ operation, key: against.key, content: contentOf(fields), event: against.event, agrees: false, body, copies: 1 + this.random.int(2) });
  }

  // The same fields in other bytes: the same content.
  #respell(operation) {
    const like = this.random.pick(operation.callbacks);
    const body = JSON.stringify(JSON.parse(like.body), null, 1);
    new Callback({ ...like, operation, body, copies: 1 });
  }

  // What is understood once the configuration was mended: by a replay, or when it comes again.
  #sayTooEarly(operation) {
    const fields = this.#body({ request_id: operation.id }, 'early word', this.newWord, '19.99', this.random.pick(times));
    const body = JSON.stringify(fields);
    new Callback({ operation, kind: 'mended', key: 'early word', content: contentOf(fields), event: 'complete', body, copies: 1 + this.random.int(5) });
  }

  // What is not understood, or not authentic: it must change nothing.
  #spoil(operation) {
    const fields = this.#body({ request_id: operation.id }, 'spoilt', 'succeeded', '19.99', times[0]);
    const kind = this.random.pick(['unmapped', 'unprocessable', 'forged']);
    if (kind === 'unmapped') fields.status = 'exploded';
    if (kind === 'unprocessable') delete fields.event_id;
    new Callback({ operation, kind, body: JSON.stringify(fields), copies: 1 + this.random.int(2) });
  }
}

// What the senders do for these operations, in three acts: registrations that come first; everything else in any order; what
// comes last, and resends of what was answered before. Each act is over before the next begins.
export function acts(operations, load) {
  const { random } = load;
  const before = [];
  const middle = [];
  const after = [];
  for (const operation of operations) {
    const register = () => load.register(operation);
    if (operation.when === 'early') before.push(register);
    // Two clients' threads register it at once, at two replicas.
    if (operation.when === 'early' && (operation.knownAs === 'reference' || random.int(10) === 0)) {
      before[before.length - 1] = () => Promise.all(load.fleet.replicas.map((replica) => load.register(operation, replica)));
    }
    if (operation.when === 'racing') middle.push(register);
    if (operation.when === 'late') after.push(register);
    // The same registration again, from any replica at any time after it was first sent.
    if (operation.registers && operation.when !== 'late' && random.int(6) === 0) middle.push(register);
    for (const callback of operation.callbacks) {
      for (let i = 0; i < callback.copies; ++i) middle.push(() => load.deliver(callback));
      if (random.int(8) === 0) after.push(() => load.deliver(callback));
    }
  }
  return { before, middle: random.shuffle(middle), after: random.shuffle(after) };
}
