// Private clusters, all with the same settings, and what stands in them: Recibo, or a competitor on the reference schema.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atExit } from '../../tests/support/cleanup.mjs';
import { Cluster, clusterPort } from '../../tests/support/cluster.mjs';
import { Service, run } from '../../tests/support/process.mjs';
import { sha256Hex } from '../../tests/support/sign.mjs';
import { firstLine, folder, load, output, start } from './programs.mjs';

// Every commit is on disk before it is answered, and no checkpoint falls into a measurement; everything else is PostgreSQL's own.
export const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '256MB',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  max_connections: '120',
};

export const startCluster = () => Cluster.start({ durable: true, settings });

const secret = randomBytes(24).toString('hex');
const token = `bench_${randomBytes(24).toString('hex')}`;

class Place {
  constructor(name) {
    this.name = name;
    this.folder = mkdtempSync(join(tmpdir(), 'rcb-bench-'));
    this.forget = atExit(() => rmSync(this.folder, { recursive: true, force: true }));
    this.runs = 0;
  }

  // In a cluster of its own, or where others are too, which measures less well and starts faster.
  async open(shared) {
    this.shared = shared;
    this.cluster = shared ?? (await startCluster());
    this.database = await this.cluster.createDatabase(this.name);
    await this.prepare();
    await this.cluster.query(this.database, 'CHECKPOINT');
    return this;
  }

  nextRun() {
    return `${this.name.replaceAll('_', '')}${++this.runs}`;
  }

  bookFile(runName) {
    return join(this.folder, `${runName}.book`);
  }

  // What was accepted, as the sender wrote it down.
  readBook(file) {
    const rows = readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').map((line) => line.split('\t'));
    return { ids: rows.map(([id]) => id), keys: rows.map(([, key]) => key) };
  }

  // Holds the database against the sender's book: {lost, doubled}.
  async judge(file) {
    const { ids, keys } = this.readBook(file);
    const client = await this.cluster.client(this.database);
    try {
      await client.query('CREATE TEMP TABLE book (request_id text, key text)');
      for (let at = 0; at < ids.length; at += 50_000)
        await client.query('INSERT INTO book SELECT * FROM unnest($1::text[], $2::text[])', [ids.slice(at, at + 50_000), keys.slice(at, at + 50_000)]);
      const { rows } = await client.query(readFileSync(join(folder, 'lib', this.judgement), 'utf8'));
      return { lost: Number(rows[0].lost), doubled: Number(rows[0].doubled), accepted: ids.length };
    } finally {
      await client.end();
    }
  }

  async close() {
    await this.leave?.();
    if (!this.shared) await this.cluster?.destroy();
    rmSync(this.folder, { recursive: true, force: true });
    this.forget();
  }
}

// A place that is spoken to over HTTP, by the load generator.
class Served extends Place {
  loadOptions(runName, what) {
    return { callbacks: this.callbacks, api: this.api, path: '/callbacks/bench', secret, token, run: runName, ...what };
  }

  async send(what) {
    const runName = what.run ?? this.nextRun();
    const book = this.bookFile(`${runName}-${what.phase}`);
    const result = await load(this.loadOptions(runName, { ...what, book }));
    return { ...result, run: runName, book };
  }

  mix({ milliseconds, users, operations }) {
    return this.send({ phase: 'mix', time: operations ? 0 : milliseconds, users, operations });
  }
}

export class Recibo extends Served {
  usersTried = [64, 128, 256];
  usersUsual = 128;
  judgement = 'judge_recibo.sql';

  configuration() {
    const states = {
      accepted: { label: 'Accepted', limit: 'none' },
      processing: { label: 'In progress', limit: 'none' },
      completed: { label: 'Completed', terminal: true, done: true },
      failed: { label: 'Failed', terminal: true },
    };
    const transitions = [
      { from: 'accepted', event: 'progress', to: 'processing', by: 'provider' },
      { from: ['accepted', 'processing'], event: 'complete', to: 'completed', by: 'provider' },
      { from: ['accepted', 'processing'], event: 'fail', to: 'failed', by: 'provider' },
    ];
    const bench = {
      verify: {
        scheme: 'hmac',
        algorithm: 'sha256',
        signature: { header: 'X-Signature', prefix: 'sha256=', encoding: 'hex' },
        signed: '{timestamp}.{body}',
        timestamp: { header: 'X-Timestamp', unit: 'seconds' },
        secrets: [secret],
      },
      extract: { request_id: '/request_id', idempotency_key: '/event_id', event: '/status', occurred_at: '/occurred_at', amount: '/amount', currency: '/currency' },
      events: { processing: 'progress', succeeded: 'complete', failed: 'fail' },
      workflow: 'bench',
    };
    return {
      listen: { callbacks: { address: '127.0.0.1', port: 0 }, api: { address: '127.0.0.1', port: 0 } },
      database: { url: '${RECIBO_DATABASE_URL}', owner_url: '${RECIBO_OWNER_URL}' },
      api: { tokens: [{ name: 'checkout', role: 'client', sha256: sha256Hex(token) }] },
      providers: { bench },
      workflows: { bench: { initial: 'accepted', states, transitions } },
      destinations: { ledger: { url: 'https://ledger.example/hooks', secret: `whsec_${randomBytes(32).toString('base64')}`, events: ['operation.*'] } },
      drain: { delay: '0s', timeout: '10s' },
      log: { level: 'warn', format: 'json' },
    };
  }

  async prepare() {
    const file = join(this.folder, 'recibo.yaml'); // JSON is YAML
    // Ports are told by a log line of level info.
    writeFileSync(file, JSON.stringify({ ...this.configuration(), log: { level: 'info', format: 'json' } }));
    const env = { RECIBO_CONFIG: file, RECIBO_DATABASE_URL: this.cluster.url(this.database, { user: 'recibo_service' }), RECIBO_OWNER_URL: this.cluster.url(this.database) };
    const migrated = await run(['migrate'], { env });
    if (migrated.code !== 0) throw new Error(`recibo migrate: ${migrated.stderr}`);
    this.service = await new Service(['serve'], { env }).listening();
    this.pid = this.service.pid;
    this.callbacks = this.service.callbacks;
    this.api = this.service.api;
    const end = Date.now() + 20_000;
    while ((await fetch(`http://127.0.0.1:${this.api}/readyz`)).status !== 200)
      if (Date.now() > end) throw new Error(`Recibo does not become ready\n${this.service.tail()}`);
  }

  leave() {
    return this.service?.stop();
  }
}

class Reference extends Served {
  judgement = 'judge_reference.sql';

  async makeSchema() {
    for (const file of ['schema.sql', 'functions.sql']) await this.cluster.query(this.database, readFileSync(join(folder, 'competitors', file), 'utf8'));
  }
}

export class Fastify extends Reference {
  usersTried = [16, 32, 64];
  usersUsual = 32;

  constructor(name, mode) {
    super(name);
    this.mode = mode;
  }

  async prepare() {
    await this.makeSchema();
    const own = { MODE: this.mode, SECRET: secret, TOKEN: token, NODE_ENV: 'production' };
    const database = { PGHOST: this.cluster.socketFolder, PGPORT: String(clusterPort), PGUSER: 'recibo', PGDATABASE: this.database };
    this.server = start(process.execPath, [join(folder, 'competitors', 'server.mjs')], { env: { ...process.env, ...own, ...database } });
    const { port } = await firstLine(this.server);
    this.callbacks = this.api = port;
    this.pid = this.server.pid;
  }

  leave() {
    this.server?.kill('SIGTERM');
    return this.server?.ended;
  }
}

// No service at all: PostgreSQL's own load generator calls the functions, which make bodies themselves.
export class Pgbench extends Reference {
  usersTried = [8, 16, 32, 64];
  usersUsual = 16;

  constructor(name, script, usersTried) {
    super(name);
    this.script = script;
    if (usersTried) [this.usersTried, this.usersUsual] = [usersTried, usersTried.at(-1)];
  }

  prepare() {
    return this.makeSchema();
  }

  async bench(script, { users, milliseconds, runName, first = -1, more = [] }) {
    const args = ['-n', '-M', 'prepared', '-f', join(folder, 'competitors', script), '-c', users, '-j', Math.min(2, users), '-D', `run=${runName}`, '-D', `i=${first}`];
    const where = ['-h', this.cluster.socketFolder, '-p', clusterPort, '-U', 'recibo', ...more, this.database];
    const whole = Math.max(1, Math.round(milliseconds / 1000));
    return output('pgbench', [...args, ...(more.includes('-t') ? [] : ['-T', whole]), ...where].map(String));
  }

  async count() {
    const [row] = await this.cluster.query(this.database, 'SELECT (SELECT count(*) FROM deliveries) AS callbacks, (SELECT count(*) FROM operations) AS registrations');
    return { callbacks: Number(row.callbacks), registrations: Number(row.registrations) };
  }

  async mix({ milliseconds, users, operations }) {
    const runName = this.nextRun();
    const before = await this.count();
    const first = this.script === 'set.pgbench' ? 0 : -1;
    const more = operations ? ['-t', Math.max(1, Math.round(this.script === 'set.pgbench' ? operations / 49 : operations))] : [];
    const said = await this.bench(this.script, { users, milliseconds, runName, first, more });
    const after = await this.count();
    const transactions = Number(/actually processed: (\d+)/.exec(said)[1]);
    const rate = Number(/tps = ([\d.]+)/.exec(said)[1]);
    const seconds = transactions / rate;
    return { run: runName, seconds, callbacks: after.callbacks - before.callbacks, registrations: after.registrations - before.registrations, answers: {} };
  }

  async judge() {
    return { lost: 0, doubled: 0, accepted: 0 }; // it counts what the database has
  }
}
