// What one round meant to happen and what its senders saw: operations, callbacks, and every answer.
import { sha256Hex } from '../support/sign.mjs';

// An operation that clients register, or never do.
export class Operation {
  constructor({ id, provider, reference, when, knownAs }) {
    this.id = id;
    this.provider = provider;
    this.reference = reference; // the provider's own name for it, or undefined
    this.when = when; // early, racing, late, never
    this.knownAs = knownAs; // request_id, reference (registered with it), learned (from a callback that carries both)
    this.callbacks = [];
    this.created = 0;
    this.repeated = 0;
    this.lost = 0;
  }

  get registers() {
    return this.when !== 'never';
  }
}

// A callback as bytes. Callbacks of one operation with one key and one content are copies of each other, whatever their bytes.
export class Callback {
  // `kind`: good, unmapped, unprocessable, forged; mended: its word is not in the map at first, then it is, and it is replayed.
  constructor({ operation, kind = 'good', key, content, event, agrees = true, body, copies = 1 }) {
    Object.assign(this, { operation, kind, key, content, event, agrees, body, copies });
    this.digest = sha256Hex(body);
    const { request_id: request, reference } = JSON.parse(body);
    this.names = request === undefined ? 'reference' : reference === undefined ? 'request_id' : 'both';
    this.answers = []; // {status, disposition, delivery, state, replayed, text}
    this.lost = 0; // attempts that were refused or not answered: recorded or not
    operation.callbacks.push(this);
  }

  // Whether it has an effect in the end.
  get counts() {
    return this.kind === 'good' || this.kind === 'mended';
  }
}

export class Book {
  operations = new Map(); // request ID →
  callbacks = new Map(); // digest of the body →
  complaints = []; // of the senders: an answer that may not be
  attempts = 0;
  refused = 0; // 503 and 429
  unanswered = 0;
  slowestMs = 0;
  since = Date.now();

  add(operation) {
    this.operations.set(operation.id, operation);
    for (const callback of operation.callbacks) {
      if (this.callbacks.has(callback.digest)) throw new Error(`two callbacks with one body: ${callback.body}`);
      this.callbacks.set(callback.digest, callback);
    }
    return operation;
  }

  complain(what) {
    this.complaints.push(what);
  }

  get answered() {
    let count = 0;
    for (const callback of this.callbacks.values()) count += callback.answers.length;
    return count;
  }

  // Answers by what the senders were told: replays are duplicates, whatever their body says.
  byDisposition() {
    const out = {};
    for (const callback of this.callbacks.values()) {
      for (const answer of callback.answers) {
        const word = answer.replayed ? 'duplicate' : answer.disposition;
        out[word] = (out[word] ?? 0) + 1;
      }
    }
    return out;
  }
}
