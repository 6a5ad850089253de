// A private nats-server with JetStream on loopback, and as much of its protocol as a test needs to make streams and read them.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atExit, endSync, until } from './cleanup.mjs';

const program = ['/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'].find(existsSync);
export const hasNats = program !== undefined;

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

export class Nats {
  #forget = [];

  // `more`: lines of its configuration (authorization, tls). `as`: how the test itself connects; or what makes that of the server's
  // greeting.
  static async start({ more = '', as = {}, tls = false, port } = {}) {
    const nats = new Nats();
    nats.folder = mkdtempSync(join(tmpdir(), 'rcb-nats-'));
    nats.#forget.push(atExit(() => rmSync(nats.folder, { recursive: true, force: true })));
    nats.port = port ?? (await freePort());
    nats.as = as;
    nats.tls = tls;
    nats.configure(more);
    await nats.run();
    return nats;
  }

  get url() {
    return `${this.tls ? 'tls' : 'nats'}://127.0.0.1:${this.port}`;
  }

  configure(more) {
    this.file = join(this.folder, 'nats.conf');
    writeFileSync(this.file, `listen: "127.0.0.1:${this.port}"\njetstream { store_dir: "${join(this.folder, 'store')}" }\n${more}\n`);
  }

  async run() {
    this.child = spawn('setpriv', ['--pdeathsig=KILL', program, '-c', this.file], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.said = '';
    this.child.stderr.on('data', (chunk) => { this.said += chunk; });
    const { pid } = this.child;
    this.#forget.push(atExit(() => endSync(pid, 'SIGKILL', 1_000)));
    this.ended = new Promise((resolve) => this.child.on('close', resolve));
    await until('nats-server is ready', () => this.said.includes('Server is ready'), { timeout: 15_000 });
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  async restart() {
    await this.kill();
    await this.run();
  }

  // One request of the JetStream API: its JSON answer. Without TLS only.
  request(subject, body = '') {
    return new Promise((resolve, reject) => {
      const socket = connect(this.port, '127.0.0.1');
      let kept = Buffer.alloc(0);
      const timer = setTimeout(() => socket.destroy(new Error(`no answer of NATS to ${subject}`)), 10_000);
      socket.on('error', reject);
      socket.on('close', () => clearTimeout(timer));
      const send = (text) => socket.write(text);
      socket.on('data', (chunk) => {
        kept = Buffer.concat([kept, chunk]);
        for (;;) {
          const end = kept.indexOf('\r\n');
          if (end < 0) return;
          const line = kept.subarray(0, end).toString();
          if (line.startsWith('INFO ')) {
            send(`CONNECT ${JSON.stringify({ verbose: false, pedantic: false, headers: true, no_responders: true, ...(typeof this.as === 'function' ? this.as(JSON.parse(line.slice(5))) : this.as) })}\r\nSUB answer 1\r\n`);
            send(`PUB ${subject} answer ${Buffer.byteLength(body)}\r\n${body}\r\n`);
          } else if (line.startsWith('MSG ') || line.startsWith('HMSG ')) {
            const words = line.split(' ');
            const size = Number(words.at(-1));
            const head = line.startsWith('HMSG ') ? Number(words.at(-2)) : 0;
            if (kept.length < end + 4 + size) return;
            const payload = kept.subarray(end + 2 + head, end + 2 + size).toString();
            socket.end();
            resolve(payload === '' ? { none: true } : JSON.parse(payload));
            return;
          } else if (line.startsWith('-ERR')) {
            socket.destroy(new Error(line));
            return;
          } else if (line === 'PING') {
            send('PONG\r\n');
          }
          kept = kept.subarray(end + 2);
        }
      });
    });
  }

  // Listens to a subject and answers that, whoever asks there; or never, so that he waits. `answered` counts; `end()`.
  async answering(subject, says) {
    const socket = connect(this.port, '127.0.0.1');
    socket.on('error', () => {});
    this.#forget.push(atExit(() => socket.destroy()));
    const somebody = { answered: 0, end: () => socket.destroy() };
    let said = '';
    socket.on('data', (chunk) => {
      said += chunk;
      if (/^PING\r$/m.test(chunk.toString())) socket.write('PONG\r\n');
      if (says === undefined) return;
      for (const [, reply] of chunk.toString('latin1').matchAll(/^H?MSG \S+ \d+ (\S+) \d+(?: \d+)?\r$/gm)) {
        socket.write(`PUB ${reply} ${Buffer.byteLength(says)}\r\n${says}\r\n`);
        somebody.answered += 1;
      }
    });
    await until('its greeting', () => said.startsWith('INFO '));
    socket.write(`CONNECT ${JSON.stringify({ verbose: false, pedantic: false, headers: true, ...this.as })}\r\nSUB ${subject} 1\r\nPING\r\n`);
    await until('it listens', () => said.includes('PONG'));
    return somebody;
  }

  async stream(name, subjects, more = {}) {
    const made = await this.request(`$JS.API.STREAM.CREATE.${name}`, JSON.stringify({ name, subjects, retention: 'limits', storage: 'file', max_msgs: -1, max_bytes: -1, num_replicas: 1, ...more }));
    if (made.error) throw new Error(JSON.stringify(made.error));
    return made;
  }

  // What a stream holds, in its order: {subject, headers, text, body}.
  async messages(name) {
    const { state } = await this.request(`$JS.API.STREAM.INFO.${name}`);
    const out = [];
    for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; ++seq) {
      const { message } = await this.request(`$JS.API.STREAM.MSG.GET.${name}`, JSON.stringify({ seq }));
      if (!message) continue;
      const lines = Buffer.from(message.hdrs ?? '', 'base64').toString().split('\r\n').slice(1).filter((line) => line !== '');
      const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]));
      const text = Buffer.from(message.data ?? '', 'base64').toString();
      out.push({ subject: message.subject, headers, text, body: JSON.parse(text) });
    }
    return out;
  }

  async stop() {
    if (this.child.exitCode === null) await this.kill();
    for (const forget of this.#forget) forget();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
