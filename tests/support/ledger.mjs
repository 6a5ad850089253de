// A destination for notifications: an HTTP server that counts what arrives by event ID, and answers as a test tells it to.
import { createServer } from 'node:http';
import { timingSafeEqual } from 'node:crypto';
import { atExit } from './cleanup.mjs';
import { sign } from './sign.mjs';

export class Ledger {
  #server;
  #script = [];
  #forget;

  // `secret` is the Standard Webhooks secret of the destination: each arrival is verified with it.
  constructor({ secret } = {}) {
    this.secret = secret;
    this.arrivals = []; // in order: {id, at, headers, body, verified, status}
    this.always = { status: 204 };
  }

  static async start(options) {
    const ledger = new Ledger(options);
    ledger.#server = createServer((request, response) => ledger.#take(request, response));
    await new Promise((resolve) => ledger.#server.listen(0, '127.0.0.1', resolve));
    ledger.#server.unref();
    ledger.#forget = atExit(() => ledger.#server.closeAllConnections());
    return ledger;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/hooks`;
  }

  // The next arrivals get these answers, in order: {status, headers, delayMs, hang}; afterwards `always` holds again.
  answer(...script) {
    this.#script.push(...script);
  }

  #take(request, response) {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const how = this.#script.shift() ?? this.always;
      this.arrivals.push({ id: request.headers['webhook-id'], at: Date.now(), headers: request.headers, body, verified: this.#verify(request.headers, body), status: how.status });
      if (how.hang) return;
      setTimeout(() => response.writeHead(how.status ?? 204, how.headers ?? {}).end(how.body ?? ''), how.delayMs ?? 0);
    });
  }

  #verify(headers, body) {
    if (!this.secret) return null;
    const wanted = sign('standard-webhooks', { secret: this.secret, body, id: headers['webhook-id'], stamp: headers['webhook-timestamp'] });
    const right = Buffer.from(wanted.find(([name]) => name === 'webhook-signature')[1]);
    return String(headers['webhook-signature'] ?? '').split(' ').some((given) => {
      const bytes = Buffer.from(given);
      return bytes.length === right.length && timingSafeEqual(bytes, right);
    });
  }

  // Event ID → how often it arrived.
  counts() {
    const out = new Map();
    for (const { id } of this.arrivals) out.set(id, (out.get(id) ?? 0) + 1);
    return out;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    this.#forget();
  }
}
