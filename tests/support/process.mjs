// Runs the binary: commands to their end, the service until it is stopped or killed. Log lines are collected as they come;
// ports are read from the line {"msg":"listening","listener":"callbacks"|"api","port":N}, since the configuration asks for
// port 0. The process dies with this one (setpriv --pdeathsig), and only by the PID that was started here.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atExit, endSync, isRunning } from './cleanup.mjs';

export const sourceFolder = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

// RECIBO_BINARY, or the first build that is there.
export function binary() {
  if (process.env.RECIBO_BINARY) return process.env.RECIBO_BINARY;
  const found = ['release', 'lead', 'debug', 'asan'].map((name) => join(sourceFolder, '.dev', 'build', name, 'recibo')).find(existsSync);
  if (!found) throw new Error('no binary: build it, or set RECIBO_BINARY');
  return found;
}

let sanitized;
// Memory limits do not hold for a binary that carries a sanitizer's shadow.
export function isSanitized() {
  sanitized ??= readFileSync(binary()).includes('__asan_init');
  return sanitized;
}

const supervised = (command, args) => ['setpriv', ['--pdeathsig=KILL', command, ...args]];

// Only what the test says is in the environment, so that a developer's own RECIBO_* variables change nothing.
function environment(extra) {
  const kept = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('RECIBO_') && !name.startsWith('PG')));
  return { ...kept, ...extra };
}

// Runs a command of the binary to its end.
export function run(args, { env = {}, cwd = sourceFolder, input = '', timeout = 30_000, command = binary() } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(...supervised(command, args), { cwd, env: environment(env), stdio: ['pipe', 'pipe', 'pipe'] });
    const out = [];
    const err = [];
    const forget = atExit(() => endSync(child.pid, 'SIGKILL', 1_000));
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`${args.join(' ')} did not end within ${timeout} ms`));
    }, timeout);
    child.stdout.on('data', (chunk) => out.push(chunk));
    child.stderr.on('data', (chunk) => err.push(chunk));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      forget();
      resolve({ code, signal, stdout: Buffer.concat(out).toString('utf8'), stderr: Buffer.concat(err).toString('utf8') });
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

export class Service {
  #child;
  #forget;
  #waiting = new Set();

  constructor(args, { env = {}, cwd = sourceFolder } = {}) {
    this.lines = []; // {stream, text, record}; record is null where a line is not a JSON object
    this.startedAt = Date.now();
    this.#child = spawn(...supervised(binary(), args), { cwd, env: environment(env), stdio: ['ignore', 'pipe', 'pipe'] });
    this.#forget = atExit(() => endSync(this.pid, 'SIGKILL', 1_000));
    for (const stream of ['stdout', 'stderr']) this.#collect(stream);
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.exit = { code, signal, at: Date.now() };
        this.#forget();
        for (const wake of this.#waiting) wake();
        resolve(this.exit);
      });
    });
  }

  #collect(stream) {
    let rest = '';
    const take = (text) => {
      let record = null;
      try {
        const parsed = JSON.parse(text);
        if (parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed)) record = parsed;
      } catch {
        // kept as text
      }
      this.lines.push({ stream, text, record });
      for (const wake of this.#waiting) wake();
    };
    this.#child[stream].setEncoding('utf8');
    this.#child[stream].on('data', (chunk) => {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop();
      parts.filter((part) => part !== '').forEach(take);
    });
    this.#child[stream].on('end', () => {
      if (rest !== '') take(rest);
    });
  }

  get pid() {
    return this.#child.pid;
  }

  get running() {
    return this.exit === undefined && isRunning(this.pid);
  }

  // The first log record that `matches`, among those after position `from`. Fails when the process ends first.
  async log(matches, { timeout = 15_000, from = 0, what = 'a log record' } = {}) {
    const end = Date.now() + timeout;
    for (;;) {
      const found = this.lines.slice(from).find(({ record }) => record !== null && matches(record));
      if (found) return found.record;
      if (this.exit) throw new Error(`${what}: the service ended with ${this.exit.code ?? this.exit.signal}\n${this.tail()}`);
      const left = end - Date.now();
      if (left <= 0) throw new Error(`${what}: not within ${timeout} ms\n${this.tail()}`);
      await new Promise((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, left);
        this.#waiting.add(wake);
      });
    }
  }

  // Waits for both listeners; sets `callbacks` and `api` to their ports.
  async listening(options = {}) {
    for (const listener of ['callbacks', 'api']) {
      const record = await this.log((r) => r.msg === 'listening' && r.listener === listener, { what: `the ${listener} listener`, ...options });
      if (!Number.isInteger(record.port) || record.port < 1) throw new Error(`no port in ${JSON.stringify(record)}`);
      this[listener] = record.port;
    }
    return this;
  }

  tail(lines = 25) {
    return this.lines.slice(-lines).map(({ text }) => text).join('\n');
  }

  signal(name) {
    this.#child.kill(name);
  }

  // Sends a signal and waits for the end: {code, signal, ms}.
  async stop({ signal = 'SIGTERM', timeout = 40_000 } = {}) {
    const since = Date.now();
    if (!this.exit) this.signal(signal);
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`the service did not end within ${timeout} ms of ${signal}\n${this.tail()}`)), timeout);
    });
    const { code, signal: by, at } = await Promise.race([this.exited, late]);
    clearTimeout(timer);
    return { code, signal: by, ms: at - since };
  }

  kill() {
    return this.stop({ signal: 'SIGKILL' });
  }

  // Resident memory in KiB, now and at its highest.
  memory() {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    const field = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)[1]);
    return { now: field('VmRSS'), peak: field('VmHWM') };
  }
}
