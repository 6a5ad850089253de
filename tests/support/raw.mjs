// An HTTP/1.1 client on a bare socket: sends exactly the bytes it is given, whole or in pieces, and reads answers strictly.
// A malformed answer is an error here, never something to be lenient about.
import { connect } from 'node:net';
import { sleep } from './cleanup.mjs';

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export class Response {
  constructor(status, reason, headers, body) {
    this.status = status;
    this.reason = reason;
    this.headers = headers; // list of [name, value], as sent
    this.body = body;
  }

  // Every value of a header.
  all(name) {
    const lower = name.toLowerCase();
    return this.headers.filter(([n]) => n.toLowerCase() === lower).map(([, v]) => v);
  }

  // The value of a header that stands once, or undefined. Twice is an error.
  header(name) {
    const values = this.all(name);
    if (values.length > 1) throw new Error(`${name} stands ${values.length} times in the answer`);
    return values[0];
  }

  get text() {
    return this.body.toString('utf8');
  }

  get json() {
    return JSON.parse(this.text);
  }

  get replayed() {
    return this.header('Idempotent-Replayed') === 'true';
  }
}

// The bytes of a request. Host is added unless `headers` has one, Content-Length unless a framing header is there.
export function requestBytes({ method = 'POST', target, headers = [], body = '', host = '127.0.0.1' }) {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body, 'utf8');
  const has = (name) => headers.some(([n]) => n.toLowerCase() === name);
  const lines = [`${method} ${target} HTTP/1.1`];
  if (!has('host')) lines.push(`Host: ${host}`);
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  const framed = has('content-length') || has('transfer-encoding');
  if (!framed && (bytes.length > 0 || method === 'POST' || method === 'PUT')) lines.push(`Content-Length: ${bytes.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes]);
}

export function chunked(pieces) {
  const out = pieces.map((piece) => Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), Buffer.from(piece), Buffer.from('\r\n')]));
  return Buffer.concat([...out, Buffer.from('0\r\n\r\n')]);
}

export class RawConnection {
  #socket;
  #buffer = Buffer.alloc(0);
  #wake = () => {};
  #ended = false;
  #failure = null;

  constructor(socket) {
    this.#socket = socket;
    socket.unref(); // a connection that a failed test forgot does not keep the process; waiting does, by its timer
    this.closed = new Promise((resolve) => socket.once('close', () => resolve(Date.now())));
    socket.on('data', (chunk) => {
      this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
      this.#wake();
    });
    socket.on('end', () => {
      this.#ended = true;
      this.#wake();
    });
    socket.on('error', (error) => {
      this.#failure = error;
      this.#wake();
    });
    socket.on('close', () => {
      this.#ended = true;
      this.#wake();
    });
  }

  // `from`: the address of ours that it comes from; any of 127.0.0.0/8 will do.
  static open(port, { host = '127.0.0.1', from, timeout = 5_000 } = {}) {
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true, ...(from ? { localAddress: from } : {}) });
      const timer = setTimeout(() => socket.destroy(new Error(`no connection to port ${port} within ${timeout} ms`)), timeout);
      socket.once('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
      socket.once('connect', () => {
        clearTimeout(timer);
        socket.removeAllListeners('error');
        resolve(new RawConnection(socket));
      });
    });
  }

  write(bytes) {
    if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  async writePieces(pieces, gapMs) {
    for (const [i, piece] of pieces.entries()) {
      if (i > 0) await sleep(gapMs);
      this.write(piece);
    }
  }

  // Closes our half, as a sender that has said all does.
  end() {
    this.#socket.end();
  }

  destroy() {
    this.#socket.destroy();
  }

  get isClosed() {
    return this.#ended;
  }

  // What has arrived and was not read yet.
  get pending() {
    return this.#buffer;
  }

  // Resolves when the other side has closed; fails after `timeout`.
  async untilClosed(timeout = 5_000) {
    const end = Date.now() + timeout;
    while (!this.#ended) await this.#more(end, 'the connection was not closed');
    return true;
  }

  async #more(end, complaint) {
    const left = end - Date.now();
    if (left <= 0) throw new Error(complaint);
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, left);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #bytes(count, end, complaint) {
    while (this.#buffer.length < count) {
      if (this.#ended) throw new Error(`the connection ended early${this.#failure ? ` (${this.#failure.code})` : ''}: ${complaint}`);
      await this.#more(end, complaint);
    }
    const out = this.#buffer.subarray(0, count);
    this.#buffer = this.#buffer.subarray(count);
    return out;
  }

  async #line(end, complaint) {
    for (;;) {
      const at = this.#buffer.indexOf('\r\n');
      if (at >= 0) {
        const line = (await this.#bytes(at + 2, end, complaint)).subarray(0, at).toString('latin1');
        if (line.includes('\n') || line.includes('\r')) throw new Error(`a bare line break in the answer: ${JSON.stringify(line)}`);
        return line;
      }
      if (this.#ended) throw new Error(`the connection ended early${this.#failure ? ` (${this.#failure.code})` : ''}: ${complaint}`);
      await this.#more(end, complaint);
    }
  }

  // The next answer, interim ones (100) included.
  async next({ method = 'POST', timeout = 15_000 } = {}) {
    const end = Date.now() + timeout;
    const complaint = `no answer within ${timeout} ms`;
    const first = await this.#line(end, complaint);
    const match = /^HTTP\/1\.1 ([1-5][0-9][0-9]) ([\t\x20-\x7e]*)$/.exec(first);
    if (!match) throw new Error(`not a status line: ${JSON.stringify(first)}`);
    const status = Number(match[1]);
    const headers = [];
    for (;;) {
      const line = await this.#line(end, 'the head of an answer stopped');
      if (line === '') break;
      const colon = line.indexOf(':');
      if (colon < 1 || !token.test(line.slice(0, colon))) throw new Error(`not a header: ${JSON.stringify(line)}`);
      const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '');
      if (/[\x00-\x08\x0a-\x1f\x7f]/.test(value)) throw new Error(`control characters in the header ${JSON.stringify(line)}`);
      headers.push([line.slice(0, colon), value]);
    }
    const response = new Response(status, match[2], headers, Buffer.alloc(0));
    if (status < 200 || status === 204 || status === 304 || method === 'HEAD') return response;
    const coding = response.header('transfer-encoding');
    const length = response.header('content-length');
    if (coding !== undefined && length !== undefined) throw new Error('an answer with two framings');
    if (coding !== undefined) {
      if (coding.toLowerCase() !== 'chunked') throw new Error(`unknown transfer coding ${coding}`);
      response.body = await this.#chunks(end);
    } else {
      if (length === undefined || !/^[0-9]+$/.test(length)) throw new Error(`an answer without a proper length: ${length}`);
      response.body = Buffer.from(await this.#bytes(Number(length), end, 'the body of an answer stopped'));
    }
    return response;
  }

  async #chunks(end) {
    const out = [];
    for (;;) {
      const line = await this.#line(end, 'a chunk stopped');
      if (!/^[0-9A-Fa-f]+$/.test(line)) throw new Error(`not a chunk size: ${JSON.stringify(line)}`);
      const size = parseInt(line, 16);
      if (size === 0) break;
      out.push(Buffer.from(await this.#bytes(size, end, 'a chunk stopped')));
      if ((await this.#bytes(2, end, 'a chunk stopped')).toString('latin1') !== '\r\n') throw new Error('a chunk without its end');
    }
    if ((await this.#line(end, 'the last chunk stopped')) !== '') throw new Error('trailers in an answer');
    return Buffer.concat(out);
  }

  // The next answer that is not interim.
  async response(options = {}) {
    for (;;) {
      const answer = await this.next(options);
      if (answer.status >= 200) return answer;
    }
  }
}

// One request on a connection of its own.
export async function exchange(port, request, { from, timeout = 15_000 } = {}) {
  const connection = await RawConnection.open(port, { from });
  try {
    connection.write(requestBytes(request));
    return await connection.response({ method: request.method ?? 'POST', timeout });
  } finally {
    connection.destroy();
  }
}
