// Stands between the service and PostgreSQL, and goes wrong on request: slow, silent, refusing, or cut at the one moment that
// matters, around COMMIT.
//
// How COMMIT is seen. The proxy splits the client's bytes into messages of the frontend protocol (a type byte and a length;
// the start-up packet has no type byte). It remembers the text of each prepared statement (Parse: name, text) and calls a
// message a COMMIT when it is a Query with that text, or a Bind to a statement that was prepared with it or is called
// "commit". `match` narrows it to transactions that ran a statement whose text it matches: between a BEGIN and the COMMIT.
//  - cutBeforeCommit: what stands before that message is forwarded, it and the rest are not, both sides are closed.
//    The server never saw COMMIT, so the transaction is gone.
//  - cutAfterCommit: everything is forwarded, the server's answers are held back from then on, and both sides are closed when
//    the server has said "COMMIT" (CommandComplete). The transaction is durable and the client does not know it.
import { connect, createServer } from 'node:net';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atExit } from './cleanup.mjs';
import { socketFile } from './cluster.mjs';

const sslRequest = 80877103;
const gssRequest = 80877104;
const cancelRequest = 80877102;
const commitText = /^\s*(commit|end)\b/i;

// Cuts a byte stream into messages. `untyped`: the next message has no type byte (start-up).
export class MessageSplitter {
  #rest = Buffer.alloc(0);
  constructor(untyped) {
    this.untyped = untyped;
  }

  push(chunk) {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const out = [];
    for (;;) {
      const head = this.untyped ? 0 : 1;
      if (this.#rest.length < head + 4) return out;
      const length = this.#rest.readUInt32BE(head) + head;
      if (this.#rest.length < length) return out;
      const bytes = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      const message = { type: this.untyped ? '' : String.fromCharCode(bytes[0]), bytes, payload: bytes.subarray(head + 4) };
      if (this.untyped) {
        message.code = message.payload.readUInt32BE(0);
        if (![sslRequest, gssRequest, cancelRequest].includes(message.code)) this.untyped = false;
      }
      out.push(message);
    }
  }
}

const text = (payload, from) => {
  const end = payload.indexOf(0, from);
  return [payload.toString('utf8', from, end), end + 1];
};

// What a client's session has prepared, and what its transaction has run.
export class FrontendWatcher {
  #statements = new Map();
  #ran = [];

  // Returns {commit: true, ran: [texts]} when this message is a COMMIT.
  see({ type, payload }) {
    let name;
    let sql;
    if (type === 'P') {
      [name, sql] = text(payload, 0);
      this.#statements.set(name, text(payload, Buffer.byteLength(name) + 1)[0]);
      return null;
    }
    if (type === 'Q') [sql] = text(payload, 0);
    else if (type === 'B') {
      [name] = text(payload, text(payload, 0)[1]);
      sql = this.#statements.get(name) ?? '';
    } else return null;
    if (/^\s*begin\b/i.test(sql)) this.#ran = [];
    this.#ran.push(sql);
    if (!commitText.test(sql) && name !== 'commit') return null;
    const ran = this.#ran;
    this.#ran = [];
    return { commit: true, ran };
  }
}

export class FaultProxy {
  #upstream;
  #server = null;
  #sessions = new Set();
  #folder = null;
  #forget;
  #plan = null;
  #tcpPort = 0;

  // `upstream`: {path} or {port, host}. `over`: 'unix' (a socket folder of its own, `folder`) or 'tcp' (`port`).
  constructor({ upstream, over = 'unix' }) {
    this.#upstream = upstream;
    this.over = over;
    this.delayMs = 0;
    this.cuts = []; // what was cut: {kind, ran}
    this.accepted = 0;
    this.blackHoled = false;
  }

  static async start(options) {
    const proxy = new FaultProxy(options);
    if (proxy.over === 'unix') {
      proxy.#folder = mkdtempSync(join(tmpdir(), 'rcb-px-'));
      chmodSync(proxy.#folder, 0o755);
    }
    proxy.#forget = atExit(() => proxy.#remove());
    await proxy.accept();
    return proxy;
  }

  get folder() {
    return this.#folder;
  }

  get port() {
    return this.#tcpPort;
  }

  get sessions() {
    return this.#sessions.size;
  }

  // Begins to listen (again).
  async accept() {
    if (this.#server) return;
    const server = createServer({ pauseOnConnect: false }, (client) => this.#open(client));
    await new Promise((resolve, reject) => {
      server.once('error', reject);
      if (this.over === 'unix') server.listen(socketFile(this.#folder), resolve);
      else server.listen(this.#tcpPort, '127.0.0.1', resolve);
    });
    if (this.over === 'tcp') this.#tcpPort = server.address().port;
    server.unref();
    this.#server = server;
  }

  // New connections are refused; with `cut`, those that exist are closed too.
  async refuse({ cut = true } = {}) {
    const server = this.#server;
    this.#server = null;
    if (cut) this.cutAll();
    if (server) {
      server.close(); // existing sessions may go on, so its end is not awaited
      if (this.over === 'unix') rmSync(socketFile(this.#folder), { force: true });
    }
  }

  cutAll() {
    for (const session of [...this.#sessions]) session.cut();
  }

  // Nothing passes any more, and nothing is closed: the silence of a dropped route.
  blackHole() {
    this.blackHoled = true;
  }

  // The next COMMIT whose transaction matches is never forwarded.
  cutBeforeCommit({ match = /./, times = 1 } = {}) {
    this.#plan = { kind: 'before', match, times };
  }

  // The next COMMIT whose transaction matches is done, and its answer never arrives.
  cutAfterCommit({ match = /./, times = 1 } = {}) {
    this.#plan = { kind: 'after', match, times };
  }

  // All faults end. Sessions that lost bytes in the black hole cannot go on, so they are closed.
  async heal() {
    this.delayMs = 0;
    this.#plan = null;
    if (this.blackHoled) {
      this.blackHoled = false;
      for (const session of [...this.#sessions]) if (session.starved) session.cut();
    }
    await this.accept();
  }

  async stop() {
    await this.refuse({ cut: true });
    this.#remove();
    this.#forget?.();
    this.#forget = null;
  }

  #remove() {
    if (this.#folder && existsSync(this.#folder)) rmSync(this.#folder, { recursive: true, force: true });
  }

  #take(kind, found) {
    const plan = this.#plan;
    if (!plan || plan.kind !== kind || plan.times < 1 || !found.ran.some((sql) => plan.match.test(sql))) return false;
    plan.times -= 1;
    this.cuts.push({ kind, ran: found.ran });
    return true;
  }

  #open(client) {
    this.accepted += 1;
    const server = connect(this.#upstream);
    const session = { starved: false, holding: false, done: false };
    const cut = () => {
      session.done = true;
      client.destroy();
      server.destroy();
      this.#sessions.delete(session);
    };
    session.cut = cut;
    this.#sessions.add(session);
    for (const socket of [client, server]) {
      socket.unref(); // a proxy that nobody stopped does not keep the process
      socket.on('error', cut);
      socket.on('close', cut);
    }
    const fromClient = new MessageSplitter(true);
    const fromServer = new MessageSplitter(false);
    const watcher = new FrontendWatcher();
    let singleByte = 0; // answers to an encryption request are one byte without a length

    // Delays keep the order: each direction is a chain of promises.
    const chain = { up: Promise.resolve(), down: Promise.resolve() };
    const forward = (direction, to, bytes) => {
      const ms = this.delayMs;
      chain[direction] = chain[direction].then(async () => {
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
        if (!session.done) to.write(bytes);
      });
      return chain[direction];
    };

    client.on('data', (chunk) => {
      if (this.blackHoled) {
        session.starved = true;
        return;
      }
      const pass = [];
      for (const message of fromClient.push(chunk)) {
        if (message.type === '' && (message.code === sslRequest || message.code === gssRequest)) singleByte += 1;
        const found = message.type === '' ? null : watcher.see(message);
        if (found && this.#take('before', found)) {
          session.done = false;
          forward('up', server, Buffer.concat(pass)).then(() => server.end(() => cut()));
          client.pause();
          return;
        }
        if (found && this.#take('after', found)) session.holding = true;
        pass.push(message.bytes);
      }
      if (pass.length > 0) forward('up', server, Buffer.concat(pass));
    });
    server.on('data', (chunk) => {
      if (this.blackHoled) {
        session.starved = true;
        return;
      }
      let bytes = chunk;
      if (singleByte > 0) {
        singleByte -= 1;
        forward('down', client, bytes.subarray(0, 1));
        bytes = bytes.subarray(1);
      }
      const messages = fromServer.push(bytes);
      if (session.holding) {
        if (messages.some(({ type, payload }) => type === 'C' && text(payload, 0)[0] === 'COMMIT')) cut();
        return;
      }
      if (messages.length > 0) forward('down', client, Buffer.concat(messages.map((m) => m.bytes)));
    });
  }
}
