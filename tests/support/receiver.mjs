// A consumer of notifications: keeps what it got, checks each signature, and answers as it is told.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { atExit } from './cleanup.mjs';
import { hmac } from './sign.mjs';

export class Receiver {
  #server;
  #sockets = new Set();

  // `secrets`: whsec_…, any of which may have signed. `answer(notification)` → {status, headers, body, after} or a number.
  constructor(secrets) {
    this.secrets = secrets;
    this.got = []; // in the order of arrival
    this.problems = [];
    this.answer = () => 204;
    this.skew = 0; // seconds by which the sender's clock is put wrong; undefined: by any
    this.open = 0;
    this.mostOpen = 0;
  }

  static async start(secrets) {
    const receiver = new Receiver(secrets);
    receiver.#server = createServer((request, response) => receiver.#take(request, response));
    receiver.#server.on('connection', (socket) => {
      receiver.#sockets.add(socket);
      socket.on('close', () => receiver.#sockets.delete(socket));
    });
    await new Promise((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    receiver.#server.unref();
    receiver.port = receiver.#server.address().port;
    receiver.forget = atExit(() => receiver.stop());
    return receiver;
  }

  get url() {
    return `http://127.0.0.1:${this.port}/hooks`;
  }

  // What came of one operation, in the order of arrival.
  of(requestId) {
    return this.got.filter((n) => n.body.data.request_id === requestId);
  }

  async #take(request, response) {
    this.open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    response.on('close', () => { this.open -= 1; });
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const text = Buffer.concat(pieces).toString('utf8');
    const one = { at: Date.now(), method: request.method, path: request.url, headers: request.headers, text, body: null };
    try {
      one.body = JSON.parse(text);
      this.#check(one);
    } catch (error) {
      this.problems.push(error);
    }
    this.got.push(one);
    const said = this.answer(one);
    const { status = 204, headers = {}, body = '', after = 0 } = typeof said === 'number' ? { status: said } : said;
    if (after === Infinity) return; // never
    setTimeout(() => {
      if (response.destroyed) return;
      response.writeHead(status, headers);
      response.end(body);
    }, after);
  }

  // Standard Webhooks, as a consumer checks it.
  #check({ method, headers, text, body }) {
    assert.equal(method, 'POST');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['webhook-id'], body.id, 'the ID of the header is the body\'s');
    if (this.skew !== undefined) assert.ok(Math.abs(Number(headers['webhook-timestamp']) - this.skew - Date.now() / 1_000) < 60, 'the time of this attempt');
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
    const expected = this.secrets.map((s) => `v1,${hmac('sha256', Buffer.from(s.slice('whsec_'.length), 'base64'), [signed], 'base64')}`);
    const offered = headers['webhook-signature'].split(' ');
    assert.ok(offered.some((one) => expected.includes(one)), `none of ${offered} is right`);
    assert.match(headers['recibo-sequence'], /^[1-9][0-9]*$/);
  }

  stop() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
