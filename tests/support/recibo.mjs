// One installation of Recibo for tests: a database of its own in a private cluster, a configuration, the service, and the
// words tests speak in: register, callback, get, timeline, counts. `finish` ends it and holds it to what must always be true.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { stringify } from 'yaml';
import { atExit, until } from './cleanup.mjs';
import { Cluster } from './cluster.mjs';
import { Contract, Exchanges } from './exchanges.mjs';
import { Service, isSanitized, run } from './process.mjs';
import { exchange, requestBytes } from './raw.mjs';
import { sha256Hex, sign } from './sign.mjs';
import './random.mjs';

const hmacScheme = (unit = 'seconds') => ({
  scheme: 'hmac',
  algorithm: 'sha256',
  signature: { header: 'X-Signature', prefix: 'sha256=', encoding: 'hex' },
  signed: '{timestamp}.{body}',
  timestamp: { header: 'X-Timestamp', unit },
  tolerance: '5m',
});

const extraction = () => ({
  request_id: '/request_id',
  idempotency_key: '/event_id',
  event: '/status',
  occurred_at: '/occurred_at',
  amount: '/amount',
  currency: '/currency',
});

const wordsOfFixture = { processing: 'progress', succeeded: 'complete', failed: 'fail' };

function provider(verify, secrets, more = {}) {
  return { verify: { ...verify, secrets }, extract: extraction(), events: wordsOfFixture, workflow: 'fixture', unmatched: 'park', ...more };
}

const workflows = {
  // Moved by the provider alone.
  fixture: {
    states: {
      accepted: { label: 'Accepted', limit: 'none' },
      processing: { label: 'Processing', limit: 'none' },
      completed: { label: 'Completed', terminal: true, done: true },
      failed: { label: 'Failed', terminal: true },
    },
    initial: 'accepted',
    transitions: [
      { from: 'accepted', event: 'progress', to: 'processing', by: 'provider' },
      { from: ['accepted', 'processing'], event: 'complete', to: 'completed', by: 'provider' },
      { from: ['accepted', 'processing'], event: 'fail', to: 'failed', by: 'provider' },
    ],
  },
  // Moved by clients, operators and the provider.
  desk: {
    states: {
      accepted: { label: 'Accepted, waiting to be sent', limit: 'none', owner: 'checkout' },
      processing: { label: 'In progress at the provider', limit: 'none', owner: 'payments-ops' },
      held: { label: 'Being reviewed', limit: 'none', owner: 'payments-ops' },
      completed: { label: 'Completed', terminal: true, done: true },
      failed: { label: 'Rejected by the provider', terminal: true },
      cancelled: { label: 'Cancelled', terminal: true },
    },
    initial: 'accepted',
    transitions: [
      { from: 'accepted', event: 'submitted', to: 'processing', by: 'client' },
      { from: 'accepted', event: 'cancel', to: 'cancelled', by: ['client', 'operator'] },
      { from: ['accepted', 'processing'], event: 'hold', to: 'held', by: 'operator' },
      { from: 'held', event: 'resolve_completed', to: 'completed', by: 'operator', evidence: 'statement' },
      { from: 'held', event: 'resolve_failed', to: 'failed', by: 'operator', evidence: 'statement' },
      { from: ['accepted', 'processing', 'held'], event: 'complete', to: 'completed', by: 'provider' },
      { from: ['accepted', 'processing', 'held'], event: 'fail', to: 'failed', by: 'provider' },
    ],
  },
};

export const secrets = {
  p1: 'test-secret-A',
  p2: 'test-secret-B',
  p3: 'test-secret-A', // the same as p1's, on purpose
  p5: 'test-secret-A',
  milliseconds: 'test-secret-milliseconds',
  strict: 'test-secret-strict',
  desk: 'test-secret-desk',
  stripe: 'whsec_test_secret_of_the_stripe_provider',
  standard: `whsec_${Buffer.from('a secret of 32 bytes for testing').toString('base64')}`,
  svix: `whsec_${Buffer.from('another secret of thirty-2 bytes').toString('base64')}`,
  github: 'test-secret-github',
  slack: 'test-secret-slack',
  shopify: 'test-secret-shopify',
};

const providers = () => ({
  p1: provider(hmacScheme(), [secrets.p1]),
  p2: provider(hmacScheme(), [secrets.p2]),
  p3: provider(hmacScheme(), [secrets.p3]),
  p5: provider(hmacScheme(), [secrets.p5], { extract: { ...extraction(), idempotency_key: { header: 'Idempotency-Key', unsigned: 'accept' } } }),
  milliseconds: provider(hmacScheme('milliseconds'), [secrets.milliseconds]),
  strict: provider(hmacScheme(), [secrets.strict], { unmatched: 'reject' }),
  desk: provider(hmacScheme(), [secrets.desk], { workflow: 'desk', events: { succeeded: 'complete', failed: 'fail' }, extract: { ...extraction(), reference: '/reference' } }),
  stripe: provider({ scheme: 'stripe', tolerance: '5m' }, [secrets.stripe]),
  standard: provider({ scheme: 'standard-webhooks', tolerance: '5m' }, [secrets.standard], { extract: { ...extraction(), idempotency_key: { header: 'webhook-id' } } }),
  svix: provider({ scheme: 'svix', tolerance: '5m' }, [secrets.svix]),
  github: provider({ scheme: 'github' }, [secrets.github]),
  slack: provider({ scheme: 'slack', tolerance: '5m' }, [secrets.slack]),
  shopify: provider({ scheme: 'shopify' }, [secrets.shopify]),
});

// Name of a token → role and permissions.
const people = {
  checkout: { role: 'client' },
  storefront: { role: 'client' },
  ops: { role: 'operator', permissions: ['payload'] },
  shift: { role: 'operator' },
  viewer: { role: 'reader' },
  helpdesk: { role: 'support' },
  root: { role: 'admin', permissions: ['payload'] },
};

// The body of a callback on the pattern of the field cases: compact JSON in this order of the fields.
export function callbackBody(requestId, eventId, status = 'succeeded', more = {}) {
  const fields = { request_id: requestId, event_id: eventId, status, amount: '19.99', currency: 'EUR', occurred_at: '2026-10-01T10:00:00Z', ...more };
  return JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
}

// The answers that ask the sender to come again.
export function isSendAgain(response) {
  return (response.status === 503 || response.status === 429) && /^[0-9]+$/.test(response.header('Retry-After') ?? '');
}

export class Recibo {
  #folder;
  #forget;

  // `configure(config)` may change the configuration before it is written. `databaseUrl(name)` may put a proxy in between.
  constructor(cluster, { configure = (config) => config, databaseUrl, exchanges = new Exchanges() } = {}) {
    this.cluster = cluster;
    this.exchanges = exchanges;
    this.tokens = Object.fromEntries(Object.keys(people).map((name) => [name, `rct_${randomBytes(24).toString('base64url')}`]));
    this.ledgerSecret = `whsec_${randomBytes(32).toString('base64')}`;
    this.services = [];
    this.configure = configure;
    this.databaseUrl = databaseUrl;
  }

  static async create(cluster, options) {
    const recibo = new Recibo(cluster, options);
    recibo.#folder = mkdtempSync(join(tmpdir(), 'rcb-cf-'));
    recibo.#forget = atExit(() => rmSync(recibo.#folder, { recursive: true, force: true }));
    recibo.configFile = join(recibo.#folder, 'recibo.yaml');
    recibo.database = await cluster.createDatabase();
    recibo.config = recibo.configure(recibo.defaults()) ?? recibo.config;
    recibo.write();
    const migrated = await recibo.run(['migrate']);
    assert.equal(migrated.code, 0, `recibo migrate: ${migrated.stderr}${migrated.stdout}`);
    await recibo.serve();
    return recibo;
  }

  get folder() {
    return this.#folder;
  }

  defaults() {
    return {
      listen: { callbacks: { address: '127.0.0.1', port: 0 }, api: { address: '127.0.0.1', port: 0 } },
      database: { url: '${RECIBO_DATABASE_URL}', owner_url: '${RECIBO_OWNER_URL:-}', pool: 4 },
      api: { tokens: Object.entries(people).map(([name, what]) => ({ name, ...what, sha256: sha256Hex(this.tokens[name]) })) },
      providers: providers(),
      workflows: structuredClone(workflows),
      destinations: { ledger: { url: 'https://ledger.example/hooks', secret: this.ledgerSecret, events: ['operation.*'] } },
      drain: { delay: '0s', timeout: '10s' },
      log: { level: 'info', format: 'json' },
    };
  }

  // Writes the configuration, or a changed one; returns the file's path.
  write(config = this.config, file = this.configFile) {
    writeFileSync(file, typeof config === 'string' ? config : stringify(config, { lineWidth: 0 }));
    return file;
  }

  env(extra = {}) {
    return {
      RECIBO_CONFIG: this.configFile,
      RECIBO_DATABASE_URL: this.databaseUrl?.(this.database) ?? this.cluster.url(this.database, { user: 'recibo_service' }),
      RECIBO_OWNER_URL: this.cluster.url(this.database, { user: 'recibo' }),
      ...extra,
    };
  }

  // Runs a command of the binary with this installation's configuration.
  run(args, options = {}) {
    return run(args, { ...options, env: this.env(options.env) });
  }

  // Starts a replica; the first one is what the helpers below talk to.
  async serve({ env = {} } = {}) {
    const service = new Service(['serve'], { env: this.env(env) });
    this.services.push(service);
    await service.listening();
    this.service = service;
    return service;
  }

  // The service ends by `how` ('stop' gracefully, 'kill' by SIGKILL) and a new one starts.
  async restart(how = 'stop') {
    const ended = await this.service[how]();
    if (how === 'stop') assert.deepEqual([ended.code, ended.signal], [0, null], `the service ends with 0:\n${this.service.tail()}`);
    await this.serve();
  }

  async #exchange(listener, port, request, options) {
    const response = await exchange(port, request, options);
    this.exchanges.add(listener, request.method ?? 'POST', request.target, response);
    return response;
  }

  // A request to the API. `token`: a name from the list above, null for none. A `body` that is no text becomes JSON.
  api(method, target, { token = 'ops', body, headers = [], timeout } = {}) {
    const all = [...headers];
    if (token !== null) all.push(['Authorization', `Bearer ${this.tokens[token] ?? token}`]);
    const text = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    if (body !== undefined && !all.some(([n]) => n.toLowerCase() === 'content-type')) all.push(['Content-Type', 'application/json']);
    return this.#exchange('api', this.service.api, { method, target, headers: all, body: text ?? '' }, { timeout });
  }

  // A request to the callback listener, as it is.
  raw(request, options) {
    return this.#exchange('callbacks', this.service.callbacks, request, options);
  }

  // The headers that `name` adds to a body; `secret` and `stamp` may be other than the right ones.
  signature(name, body, { secret = secrets[name], stamp, id, headers } = {}) {
    return sign(this.config.providers[name].verify, { secret, body, stamp, id, headers });
  }

  // A signed callback as a request, for raw sockets: the fields of requestBytes. `more` goes to the signer.
  request(name, body, { contentType = 'application/json', headers = [], ...more } = {}) {
    const signed = this.signature(name, body, { ...more, headers: Object.fromEntries(headers.map(([n, v]) => [n.toLowerCase(), v])) });
    return { method: 'POST', target: `/callbacks/${name}`, headers: [['Content-Type', contentType], ...signed, ...headers], body };
  }

  bytes(name, body, options) {
    return requestBytes(this.request(name, body, options));
  }

  // Sends a rightly signed callback.
  callback(name, body, { timeout, ...options } = {}) {
    return this.raw(this.request(name, body, options), { timeout });
  }

  // Sends it until it is answered by something other than "send again".
  async deliver(name, body, { patience = 20_000, ...options } = {}) {
    return until(`an answer to a callback of ${name}`, async () => {
      const response = await this.callback(name, body, options);
      return isSendAgain(response) ? null : response;
    }, { timeout: patience, interval: 100 });
  }

  register(requestId, { provider: at = 'p1', token = 'checkout', headers, ...fields } = {}) {
    const body = { request_id: requestId, provider: at, amount: '19.99', currency: 'EUR', ...fields };
    return this.api('POST', '/v1/operations', { token, body, headers });
  }

  // Registers and insists.
  async accepted(requestId, options) {
    const response = await this.register(requestId, options);
    assert.equal(response.status, 201, response.text);
    return response.json;
  }

  event(requestId, body, { token = 'checkout', headers } = {}) {
    return this.api('POST', `/v1/operations/${encodeURIComponent(requestId)}/events`, { token, body, headers });
  }

  async #read(target, token) {
    const response = await this.api('GET', target, { token });
    assert.equal(response.status, 200, response.text);
    return response.json;
  }

  get(requestId, { token = 'ops' } = {}) {
    return this.#read(`/v1/operations/${encodeURIComponent(requestId)}`, token);
  }

  // The entries of a timeline, oldest first, all pages.
  async timeline(requestId, { token = 'ops' } = {}) {
    return this.list(`/v1/operations/${encodeURIComponent(requestId)}/timeline`, { token });
  }

  // Every page of a list.
  async list(target, { token = 'ops', limit } = {}) {
    const out = [];
    for (let cursor = null, pages = 0; ; ++pages) {
      const query = new URLSearchParams();
      if (limit) query.set('limit', String(limit));
      if (cursor) query.set('cursor', cursor);
      const joined = query.size > 0 ? `${target}${target.includes('?') ? '&' : '?'}${query}` : target;
      const page = await this.#read(joined, token);
      assert.ok(Array.isArray(page.data), `a list has data: ${JSON.stringify(page).slice(0, 200)}`);
      out.push(...page.data);
      cursor = page.next_cursor ?? null;
      if (cursor === null) return out;
      assert.ok(pages < 100_000, 'pages come to an end'); // one that was searched for long may be empty
    }
  }

  // Rows by the owner's own session.
  sql(text, values) {
    return this.cluster.query(this.database, text, values);
  }

  // What the field cases count, read from the database: A transitions applied by callbacks, N notifications that those
  // caused, V open reviews, K parked callbacks.
  async counts(requestId) {
    const [row] = await this.sql(
      `SELECT (SELECT count(*) FROM recibo.transitions t WHERE t.operation = o.id AND t.actor_kind = 'provider')::int AS "A",
              (SELECT count(*) FROM recibo.notifications n JOIN recibo.transitions t ON t.operation = n.operation AND t.sequence = n.sequence
               WHERE n.operation = o.id AND t.actor_kind = 'provider' AND n.destination = 'ledger')::int AS "N",
              (SELECT count(*) FROM recibo.reviews r WHERE r.operation = o.id AND r.status = 'open')::int AS "V",
              (SELECT count(*) FROM recibo.parked p WHERE p.provider = o.provider AND p.request_id = o.request_id)::int AS "K"
       FROM recibo.operations o WHERE o.request_id = $1`,
      [requestId],
    );
    assert.ok(row, `${requestId} is registered`);
    return row;
  }

  async expectCounts(requestId, A, N, V, K = 0) {
    assert.deepEqual(await this.counts(requestId), { A, N, V, K }, `counts of ${requestId}`);
  }

  // The recorded deliveries of an operation, oldest first.
  deliveries(requestId) {
    return this.sql(
      `SELECT d.id::text, d.disposition, d.answer_status, encode(d.body_digest, 'hex') AS body_sha256, d.secret, d.peer, d.payload::text
       FROM recibo.deliveries d JOIN recibo.operations o ON o.id = d.operation WHERE o.request_id = $1 ORDER BY d.id`,
      [requestId],
    );
  }

  // The stored bytes of a delivery.
  async storedBody(deliveryId) {
    const [row] = await this.sql('SELECT p.body FROM recibo.deliveries d JOIN recibo.payloads p ON p.id = d.payload WHERE d.id = $1', [deliveryId]);
    assert.ok(row, `the delivery ${deliveryId} has its payload`);
    return row.body;
  }

  // The whole database in a few numbers, to show that a refused request changed nothing.
  async everything() {
    const [row] = await this.sql(
      `SELECT (SELECT count(*) FROM recibo.operations)::int AS operations, (SELECT coalesce(sum(revision), 0) FROM recibo.operations)::int AS revisions,
              (SELECT count(*) FROM recibo.deliveries)::int AS deliveries, (SELECT count(*) FROM recibo.payloads)::int AS payloads,
              (SELECT count(*) FROM recibo.transitions)::int AS transitions, (SELECT count(*) FROM recibo.audit)::int AS audit,
              (SELECT count(*) FROM recibo.notifications)::int AS notifications, (SELECT count(*) FROM recibo.reviews)::int AS reviews,
              (SELECT count(*) FROM recibo.failed_callbacks)::int AS failed, (SELECT count(*) FROM recibo.idempotency_keys)::int AS keys`,
    );
    return row;
  }

  // Name{labels} → value. Labels come sorted, so that a series has one spelling.
  async metrics() {
    const response = await exchange(this.service.api, { method: 'GET', target: '/metrics' });
    assert.equal(response.status, 200);
    return parseMetrics(response.text);
  }

  // The sum of a metric over the series whose labels agree with `labels` (a text, or a pattern).
  async metric(name, labels = {}) {
    const agrees = (series) => Object.entries(labels).every(([key, want]) => (want instanceof RegExp ? want.test(series.labels[key] ?? '') : series.labels[key] === want));
    return (await this.metrics()).filter((s) => s.name === name && agrees(s)).reduce((sum, s) => sum + s.value, 0);
  }

  ready(listener = 'api') {
    return this.#exchange(listener, this.service[listener], { method: 'GET', target: '/readyz' });
  }

  live(listener = 'callbacks') {
    return this.#exchange(listener, this.service[listener], { method: 'GET', target: '/livez' });
  }

  async audit(requestId) {
    return this.run(['audit', 'verify', ...(requestId ? [requestId] : [])]);
  }

  async openapi() {
    const response = await this.api('GET', '/openapi.json', { token: null });
    assert.equal(response.status, 200);
    return response.json;
  }

  // What no log line may hold: secrets, tokens, and whole signatures (hex or base64 of 32 bytes).
  logComplaints(extra = []) {
    const forbidden = [...Object.values(secrets), ...Object.values(this.tokens), this.ledgerSecret, ...extra];
    const complaints = [];
    for (const service of this.services) {
      for (const { text, record } of service.lines) {
        if (record === null) complaints.push(`not a JSON record: ${JSON.stringify(text.slice(0, 200))}`);
        if (/[\x00-\x1f\x7f]/.test(text)) complaints.push(`control characters: ${JSON.stringify(text.slice(0, 200))}`);
        const secret = forbidden.find((s) => text.includes(s));
        if (secret !== undefined) complaints.push(`a secret (${secret.slice(0, 6)}…) in ${JSON.stringify(text.slice(0, 200))}`);
        if (/sha256=[0-9a-f]{64}|v1,[A-Za-z0-9+/]{43}=/.test(text)) complaints.push(`a signature in ${JSON.stringify(text.slice(0, 200))}`);
      }
    }
    return complaints;
  }

  // Ends this installation: evidence verifies, answers keep to the OpenAPI document, logs are clean, the service ends with 0.
  async finish() {
    if (!this.service.running) await this.serve();
    const contract = new Contract(await this.openapi());
    const audit = await this.audit();
    assert.equal(audit.code, 0, `recibo audit verify: ${audit.stdout}${audit.stderr}`);
    const ended = await this.service.stop();
    assert.deepEqual([ended.code, ended.signal], [0, null], `the service ends with 0:\n${this.service.tail()}`);
    const complaints = this.exchanges.all().flatMap((one) => contract.complaints(one));
    assert.deepEqual([...new Set(complaints)].slice(0, 20), [], 'every answer is as /openapi.json says');
    assert.deepEqual([...new Set(this.logComplaints())].slice(0, 20), [], 'log lines are JSON without secrets');
    await this.close();
  }

  // Ends it without asking anything, for installations that a test has broken on purpose.
  async close() {
    for (const service of this.services) if (service.running) await service.kill();
    this.#forget?.();
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
  }
}

export function parseMetrics(text) {
  const out = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) throw new Error(`not a metric: ${JSON.stringify(line)}`);
    const labels = Object.fromEntries([...(match[2] ?? '').matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]).sort());
    out.push({ name: match[1], labels, value: Number(match[3].replace('+Inf', 'Infinity')) });
  }
  return out;
}

// Kibibytes that the service may hold; a sanitizer's shadow is not ours to judge.
export const memoryLimit = (mebibytes) => mebibytes * 1024 * (isSanitized() ? 16 : 1);

// What a test file begins with: a cluster, and an installation in it. The last test of the file, registered by `ends`, holds
// every installation to what must always be true; whatever happens before, nothing is left running.
export class Stage {
  #more = [];

  static async begin({ cluster = {}, ...options } = {}) {
    const stage = new Stage();
    stage.cluster = await Cluster.start(cluster);
    after(async () => {
      for (const one of stage.installations) await one.close();
      await stage.cluster.destroy();
    });
    stage.recibo = await Recibo.create(stage.cluster, options);
    return stage;
  }

  get installations() {
    return [...(this.recibo ? [this.recibo] : []), ...this.#more];
  }

  // A fresh database and service beside the first, for cases with fixed bytes. The test finishes it.
  async fresh(options = {}) {
    const recibo = await Recibo.create(this.cluster, options);
    this.#more.push(recibo);
    return recibo;
  }

  ends() {
    test('at the end: the evidence verifies, answers keep to /openapi.json, logs hold no secret, the service ends with 0', async () => {
      await this.recibo.finish();
    });
  }
}
