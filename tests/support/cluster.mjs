// A private PostgreSQL for one test process: its own data folder, unix socket only, no port that could be taken. The server
// stops when this process does, even by kill -9 (setpriv --pdeathsig), and only PIDs that were started here are ended.
// Owner of everything is the superuser `recibo`; the migrations make the role `recibo_service`.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, openSync, closeSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { atExit, endSync, isRunning, sleep, until } from './cleanup.mjs';

const root = '/usr/lib/postgresql';
const port = 5432; // part of the socket's name only
const signals = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' };

function programs() {
  if (process.env.RECIBO_PG_BIN) return process.env.RECIBO_PG_BIN;
  const versions = existsSync(root) ? readdirSync(root).filter((v) => existsSync(join(root, v, 'bin', 'postgres'))) : [];
  if (versions.length === 0) throw new Error('PostgreSQL is not installed (no /usr/lib/postgresql/*/bin/postgres)');
  return join(root, versions.sort((a, b) => Number(a) - Number(b)).at(-1), 'bin');
}

// PostgreSQL refuses to run as root, so root hands it to the user postgres.
function asPostgres() {
  if (process.getuid() !== 0) return { prefix: ['setpriv'], uid: null, gid: null };
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return {
    prefix: ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups', '--inh-caps=+dac_override', '--ambient-caps=+dac_override'],
    uid: id('-u'),
    gid: id('-g'),
  };
}

export class Cluster {
  #bin = programs();
  #as = asPostgres();
  #child = null;
  #forget = null;
  #databases = 0;
  #settings;

  // `durable: false` turns fsync off, for tests that kill no server. `settings` are further server parameters.
  constructor({ durable = true, settings = {} } = {}) {
    this.#settings = { fsync: durable ? 'on' : 'off', synchronous_commit: 'on', max_connections: '100', shared_buffers: '64MB', recovery_init_sync_method: 'syncfs', ...settings };
    this.base = mkdtempSync(join(tmpdir(), 'rcb-pg-'));
    this.data = join(this.base, 'data');
    this.socketFolder = join(this.base, 's');
    this.logFile = join(this.base, 'postgres.log');
    if (Buffer.byteLength(this.socketFolder) > 90) throw new Error('the socket folder has too long a path: set TMPDIR to a shorter one');
  }

  static async start(options) {
    const cluster = new Cluster(options);
    cluster.#forget = atExit(() => cluster.#destroySync());
    cluster.#initialise();
    await cluster.start();
    return cluster;
  }

  #initialise() {
    for (const folder of [this.data, this.socketFolder]) {
      mkdirSync(folder, { mode: 0o700 });
      if (this.#as.uid !== null) chownSync(folder, this.#as.uid, this.#as.gid);
    }
    chmodSync(this.base, 0o755);
    const args = ['-D', this.data, '-U', 'recibo', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
    const [command, ...prefix] = this.#as.prefix;
    const made = spawnSync(command, [...prefix, join(this.#bin, 'initdb'), ...args], { encoding: 'utf8', cwd: '/' });
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  }

  get pid() {
    return this.#child?.pid ?? null;
  }

  get running() {
    return this.#child !== null && isRunning(this.#child.pid);
  }

  // Starts the server and waits until it answers. After a kill the old server's children may need a moment to let go of its
  // shared memory, so a start that fails at once is tried again.
  async start({ timeout = 30_000 } = {}) {
    const end = Date.now() + timeout;
    for (;;) {
      const log = openSync(this.logFile, 'a');
      const [command, ...prefix] = this.#as.prefix;
      const options = Object.entries({ ...this.#settings, listen_addresses: '' }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
      const args = [...prefix, '--pdeathsig=INT', join(this.#bin, 'postgres'), '-D', this.data, '-k', this.socketFolder, '-p', String(port), ...options];
      const child = spawn(command, args, { stdio: ['ignore', log, log], cwd: '/' });
      closeSync(log);
      child.exited = new Promise((resolve) => child.once('exit', resolve));
      this.#child = child;
      while (isRunning(child.pid)) {
        if (await this.#answers()) return;
        if (Date.now() > end) throw new Error(`PostgreSQL does not answer: ${this.logTail()}`);
        await sleep(30);
      }
      if (Date.now() > end) throw new Error(`PostgreSQL does not start: ${this.logTail()}`);
      await sleep(100);
    }
  }

  async #answers() {
    const client = new pg.Client({ host: this.socketFolder, port, user: 'recibo', database: 'postgres', connectionTimeoutMillis: 2_000 });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  }

  logTail(lines = 15) {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n') : '';
  }

  // `smart` waits for sessions, `fast` ends them, `immediate` leaves recovery to the next start.
  async stop(mode = 'fast') {
    if (!this.running) return;
    this.#child.kill(signals[mode]);
    await this.#child.exited;
  }

  // kill -9 of the server's parent process. Its children notice and leave; until then they still serve their sessions, so
  // that is waited for.
  async kill() {
    if (!this.running) return;
    const pid = this.#child.pid;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).map(Number);
    this.#child.kill('SIGKILL');
    await this.#child.exited;
    await until('the children of a killed server leave', () => !children.some(isRunning), { timeout: 20_000 });
  }

  async restart(mode = 'fast') {
    await this.stop(mode);
    await this.start();
  }

  async createDatabase(name = `t${process.pid}_${++this.#databases}`) {
    await this.query('postgres', `CREATE DATABASE ${pg.escapeIdentifier(name)}`);
    return name;
  }

  // A libpq URL. `folder` is another socket folder, for example a proxy's.
  url(database, { user = 'recibo', folder = this.socketFolder } = {}) {
    return `postgresql://${user}@/${database}?host=${encodeURIComponent(folder)}&port=${port}`;
  }

  // A connected client of the owner; the caller ends it.
  async client(database, { user = 'recibo', folder = this.socketFolder } = {}) {
    const client = new pg.Client({ host: folder, port, user, database });
    client.on('error', () => {}); // a server that is killed is no surprise here: the next query tells
    await client.connect();
    return client;
  }

  // One statement on a session of its own; returns the rows.
  async query(database, text, values = []) {
    const client = await this.client(database);
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  async destroy() {
    await this.stop('fast');
    this.#destroySync();
  }

  #destroySync() {
    if (this.#child !== null) endSync(this.#child.pid, 'SIGQUIT', 3_000);
    rmSync(this.base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    this.#forget?.();
    this.#forget = null;
  }
}

export const clusterPort = port;
export const socketFile = (folder) => join(folder, `.s.PGSQL.${port}`);
export const isSocket = (file) => existsSync(file) && statSync(file).isSocket();
