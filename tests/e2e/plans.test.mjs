// The service's statements read what they need by the beginning of an index, also when their plans were made first while the tables
// were nearly empty, and no statistics say otherwise (decision 33). Tried is every kind of work and every read of the API, with all
// filters.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { complaintsAbout, planSettings, plansOf } from '../support/plans.mjs';
import { freshId } from '../support/random.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage, callbackBody, secrets } from '../support/recibo.mjs';
import { StatusServer } from '../support/status_server.mjs';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const ledger = await Receiver.start([secret]);
const asked = await StatusServer.start();
ledger.answer = (n) => (n.body.data.request_id?.startsWith('bad') ? 422 : n.body.data.request_id?.startsWith('late') ? 500 : 204);

const stage = await Stage.begin({
  cluster: { durable: false, settings: planSettings },
  configure(config) {
    const { p1 } = config.providers;
    const status = { url: `${asked.url}/operations/{request_id}`, allow: ['127.0.0.0/8'], rate: { per_second: 50, burst: 50 }, extract: { request_id: '/id', event: '/status' } };
    Object.assign(config.providers, {
      asked: { ...p1, status },
      crowd: { ...p1, parking: { per_identity: 3, expire: '1h' }, silence_alert: '1h', expected_rate: { at_least: 1, within: '1m' } },
    });
    config.workflows.fixture.states.accepted = { label: 'Accepted', limit: { after: '2s', event: 'overdue' }, owner: 'ops' };
    config.workflows.fixture.states.overdue = { label: 'Overdue', limit: 'none', owner: 'ops' };
    config.workflows.fixture.transitions.push({ from: 'accepted', event: 'overdue', to: 'overdue', by: 'clock' }, { from: 'overdue', event: 'complete', to: 'completed', by: 'provider' });
    config.destinations = { ledger: { url: ledger.url, secret, events: ['operation.*', 'provider.*'], allow: ['127.0.0.0/8'], retry: { attempts: 5 } } };
    return config;
  },
});
const { recibo } = stage;

// One of each kind of what comes in.
async function traffic() {
  const [good, bad, late, early, desk, look] = ['good', 'bad', 'late', 'early', 'desk', 'look'].map((word) => `${word}-${freshId()}`);
  for (const id of [good, bad, late]) await recibo.accepted(id, { metadata: { order: id } });
  await recibo.accepted(desk, { provider: 'desk', reference: `ref-${desk}` });
  await recibo.accepted(look, { provider: 'asked' });
  await recibo.callback('crowd', callbackBody(early, `e-${early}`), { secret: secrets.p1 });
  for (const id of [good, bad, late]) {
    await recibo.callback('p1', callbackBody(id, `e1-${id}`, 'processing'));
    await recibo.callback('p1', callbackBody(id, `e1-${id}`, 'processing')); // a duplicate
    await recibo.callback('p1', callbackBody(id, `e2-${id}`));
    await recibo.callback('p1', callbackBody(id, `e3-${id}`, 'failed')); // a review
    await recibo.callback('p1', callbackBody(id, `e2-${id}`, 'failed')); // a conflict
  }
  await recibo.callback('p1', callbackBody(good, `e4-${good}`, 'what is this')); // unmapped
  await recibo.callback('p1', '{"request_id": 1}'); // unprocessable
  await recibo.callback('desk', callbackBody(undefined, `e1-${desk}`, 'succeeded', { reference: `ref-${desk}` }));
  await recibo.register(early, { provider: 'crowd' }); // what was parked is met
  await recibo.event(desk, { event: 'submitted', reason: 'x' });
  await recibo.api('POST', `/v1/operations/${look}/status-check`, { body: {} });
  await recibo.api('POST', '/v1/providers/asked/catch-ups', { body: { accepted_after: new Date(Date.now() - 3_600_000).toISOString() } });
  await recibo.callback('crowd', callbackBody(`nobody-${good}`, `e-${good}`), { secret: secrets.p1 }); // parked
  return { good, bad, late, desk };
}

const first = async (target) => (await recibo.api('GET', target)).json.data?.[0];
const sample = (name, schema) => {
  if (schema.enum) return schema.enum[0];
  if (schema.type === 'boolean') return 'true';
  if (schema.format === 'date-time') return new Date().toISOString();
  return { provider: 'p1', destination: 'ledger', status: 'open' }[name] ?? (schema.type === 'integer' ? '1' : 'word');
};

// Every GET of the API: alone, and with each value of each filter.
async function reads({ good }) {
  const ids = {
    deliveries: (await first('/v1/deliveries')).delivery_id,
    'failed-callbacks': (await first('/v1/failed-callbacks')).failed_callback_id,
    notifications: (await first('/v1/notifications')).notification_id,
    reviews: (await first('/v1/reviews')).review_id,
    operations: good,
  };
  const { paths } = await recibo.openapi();
  for (const [path, { get }] of Object.entries(paths)) {
    if (!get || !path.startsWith('/v1/') || path === '/v1/events') continue;
    const kind = path.split('/')[2];
    const at = path.replace(/\{\w+\}/, ids[kind] ?? 'p1');
    await recibo.api('GET', at);
    for (const { name, in: where, schema } of get.parameters ?? []) {
      if (where !== 'query' || ['cursor', 'limit'].includes(name)) continue;
      const values = name === 'request_id' ? [good, 'nobody'] : (schema.enum ?? [sample(name, schema)]);
      for (const value of values) await recibo.api('GET', `${at}?${name}=${encodeURIComponent(value)}`);
    }
  }
  await recibo.api('GET', '/v1/operations?metadata.order=x');
  await recibo.api('GET', '/metrics', { token: null });
}

// What people do; each of it is done.
async function deeds() {
  const body = { reason: 'tried' };
  const done = async (path, more, headers = []) => {
    const { status, text } = await recibo.api('POST', path, { body: { ...body, ...more }, headers });
    assert.ok(status === 200 || status === 202, `${path}: ${status} ${text}`);
  };
  const at = (status, { id }) => until(`one is ${status}`, () => first(`/v1/notifications?status=${status}&destination=ledger&request_id=${id}`), { timeout: 30_000 });
  const filter = { destination: 'ledger' };
  await done('/v1/notifications/replay', { filter, dry_run: true });
  const [bad, worse, late] = await Promise.all(['bad', 'bad', 'late'].map(async (word) => {
    const id = `${word}-${freshId()}`;
    await recibo.accepted(id);
    await recibo.callback('p1', callbackBody(id, `e1-${id}`));
    return { id };
  }));
  await done(`/v1/notifications/${(await at('held', bad)).notification_id}/discard`);
  await done(`/v1/notifications/${(await at('dead', bad)).notification_id}/replay`, {}, [['Idempotency-Key', `one-${bad.id}`]]);
  await at('held', worse);
  await done(`/v1/notifications/${(await at('dead', worse)).notification_id}/discard`);
  await done(`/v1/notifications/${(await until('one waits', async () => (await recibo.list(`/v1/notifications?request_id=${late.id}&status=pending`)).find((n) => n.next_attempt_at), { timeout: 20_000 })).notification_id}/discard`);
  await done('/v1/notifications/replay', { filter }, [['Idempotency-Key', `many-${bad.id}`]]);
  const review = await first('/v1/reviews?status=open&provider=p1');
  await done(`/v1/reviews/${review.review_id}/assign`, { assignee: 'shift' });
  await done(`/v1/reviews/${review.review_id}/resolve`, { resolution: 'stands' });
  const failed = await first('/v1/failed-callbacks');
  await done(`/v1/failed-callbacks/${failed.failed_callback_id}/replay`);
  await done('/v1/failed-callbacks/replay', { filter: { disposition: 'unmapped' } });
  await done('/v1/destinations/ledger/pause');
  await done('/v1/destinations/ledger/resume');
}

// Twenty thousand of each kind, made within a minute; what is open among them belongs to nobody who is configured.
const rows = 20_000;
const grown = `
CREATE FUNCTION pg_temp.id(n bigint, kind int) RETURNS uuid LANGUAGE sql STABLE AS $$
  SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 60000 + n), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8' || lpad(to_hex(n), 15, '0'))::uuid $$;
CREATE TEMP TABLE k AS SELECT n, pg_temp.id(n, 0) AS id, pg_temp.id(n, 1) AS delivery, now() - interval '1 minute' + n * interval '1 millisecond' AS at,
  sha256(n::text::bytea) AS digest, ('key' || n)::bytea AS key FROM generate_series(1, ${rows}) n;
INSERT INTO recibo.operations (id, request_id, provider, workflow, state, version, revision, sequence, chain_hash, state_at, updated_at)
  SELECT id, 'big-' || n, 'p1', (SELECT min(version_key) FROM recibo.workflow_versions), 'completed', 1, 2, 3, digest, at, at FROM k;
INSERT INTO recibo.registrations (operation, client, action, intent, accepted_at, metadata) SELECT id, 'checkout', 'pay', digest, at, jsonb_build_object('order', n) FROM k;
INSERT INTO recibo.aliases SELECT 'p1', 'al-' || n, id, at FROM k;
INSERT INTO recibo.client_keys SELECT 'checkout', 'k' || n, id, digest, at FROM k;
INSERT INTO recibo.items (operation, item_id, ordinal, state, updated_at) SELECT id, 'i' || s, s, 'completed', at FROM k, generate_series(1, 2) s;
INSERT INTO recibo.corrections (operation, sequence, kind, at, actor, client, action, intent, metadata) SELECT id, 2, 'registered', at, 'ops', 'checkout', 'pay', digest, '{}' FROM k;
INSERT INTO recibo.idempotency_keys (operation, key, delivery, content_digest, body_digest, disposition, state, answer_status, signed_digest, provider, expires_at)
  SELECT id, key, delivery, digest, digest, 'applied', 'completed', 200, digest, 'p1', now() + interval '1 day' FROM k;
INSERT INTO recibo.signed_contents SELECT id, digest, key, at FROM k;
INSERT INTO recibo.deliveries (id, operation, provider, disposition, received_at, key, event, body_digest, payload, secret, peer, answer_status)
  SELECT delivery, id, 'p1', 'applied', at, key, 'e', digest, delivery, 's', '127.0.0.1', 200 FROM k;
INSERT INTO recibo.payloads SELECT delivery, digest, 'application/json' FROM k;
INSERT INTO recibo.transitions (operation, sequence, version, event, from_state, to_state, at, actor_kind, actor, delivery)
  SELECT id, s, s, 'complete', 'accepted', 'completed', at, 'provider', 'p1', delivery FROM k, generate_series(2, 3) s;
INSERT INTO recibo.audit (operation, sequence, kind, at, actor, delivery, digest, hash)
  SELECT id, s, CASE s WHEN 1 THEN 'registration' ELSE 'delivery' END, at, 'p1', CASE s WHEN 1 THEN NULL ELSE delivery END, digest, digest FROM k, generate_series(1, 3) s;
INSERT INTO recibo.notifications (id, operation, sequence, destination, type, status, attempts, created_at, delivered_at, dead_at, next_attempt_at)
  SELECT pg_temp.id(n, 10 + s), id, s, CASE s WHEN 1 THEN 'ledger' WHEN 4 THEN 'ledger' ELSE 'gone' END, 'operation.completed', (ARRAY['delivered', 'dead', 'held', 'pending', 'pending'])[s], 1, at,
         CASE s WHEN 1 THEN at END, CASE s WHEN 2 THEN at END, CASE s WHEN 4 THEN now() + interval '1 day' END FROM k, generate_series(1, 5) s;
INSERT INTO recibo.notification_attempts (notification, attempt, destination, at, duration_ms, answer_status, outcome) SELECT pg_temp.id(n, 11), 1, 'ledger', at, 3, 200, 'delivered' FROM k;
INSERT INTO recibo.notification_actions (action, notification, kind, actor, reason, at) SELECT gen_random_uuid(), pg_temp.id(n, 12), 'replay', 'ops', 'x', at FROM k;
INSERT INTO recibo.timers SELECT id, 'limit', now() + interval '1 day', at, 'overdue', 1, NULL FROM k;
INSERT INTO recibo.look_ups (id, operation, provider, cause, asked_by, asked_at, status, attempts, settled_at, delivery, disposition)
  SELECT pg_temp.id(n, 20), id, 'p1', 'hint', 'p1', at, 'answered', 1, at, delivery, 'redundant' FROM k;
INSERT INTO recibo.look_ups (id, operation, provider, cause, asked_by, asked_at, status) SELECT pg_temp.id(n, 21), id, 'gone', 'hint', 'p1', at, 'queued' FROM k;
INSERT INTO recibo.look_ups (id, operation, provider, cause, asked_by, asked_at, status, attempts) SELECT pg_temp.id(n, 22), id, 'gone', 'hint', 'p1', at, 'asking', 1 FROM k;
INSERT INTO recibo.look_up_attempts SELECT pg_temp.id(n, 20), 1, at, 'h', 3, 200, 'answered' FROM k;
INSERT INTO recibo.reviews (id, operation, kind, digest, detail, state, owner, status, opened_at, last_seen_at, resolved_at, resolved_by, resolution, delivery)
  SELECT pg_temp.id(n, 30 + s), id, 'contradiction', digest, 'd', 'completed', 'o', CASE s WHEN 0 THEN 'open' ELSE 'resolved' END, at, at,
         CASE s WHEN 1 THEN at END, CASE s WHEN 1 THEN 'ops' END, CASE s WHEN 1 THEN 'stands' END, delivery FROM k, generate_series(0, 1) s;
INSERT INTO recibo.review_actions (id, review, action, at, actor, assignee) SELECT pg_temp.id(n, 32), pg_temp.id(n, 31), 'assigned', at, 'ops', 'x' FROM k;
INSERT INTO recibo.failed_callbacks (id, provider, body_digest, disposition, reason, detail, delivery, answer_status, first_seen_at, last_seen_at)
  SELECT pg_temp.id(n, 40), 'p1', digest, 'unprocessable', 'r', 'd', delivery, 422, at, at FROM k;
INSERT INTO recibo.parked (id, provider, identity, key, content_digest, body_digest, disposition, request_id, event, event_raw, result, secret, answer_status, parked_at)
  SELECT pg_temp.id(n, 50), 'p1', 'id' || n, key, digest, digest, 'parked', 'nr-' || n, 'complete', 'e', '', 's', 200, at FROM k;
INSERT INTO recibo.parked_identities SELECT 'request_id', 'p1', 'nr-' || n, key, pg_temp.id(n, 50) FROM k;
INSERT INTO recibo.unclaimed SELECT delivery, 'p1', 'x', at, at FROM k;
`;

const renewed = 11_000; // plans are made anew every ten seconds

// These read more, and are meant to: within bounds of their own, rarely, or what a person asks to be counted or moved.
const meant = [
  /^SELECT provider, state, count\(\*\) FROM recibo\.operations/, // stats and gauges: up to a size, or rarely
  /^WITH oldest AS MATERIALIZED \(SELECT o\.state, min\(o\.state_at\)/, // ages by state: rarely, up to a number of timers
  /^SELECT pg_relation_size\('recibo\.operations'\)/, // how many there are that wait for somebody
  /^WITH p AS MATERIALIZED \(SELECT n\.destination, count/, // how many wait for each destination
  /^WITH RECURSIVE waiting AS \(\(SELECT min\(n\.destination\)/, // the same for those that are not configured: a row of an index for each name
  /^WITH c AS MATERIALIZED \(SELECT DISTINCT v\.operation AS id FROM recibo\.reviews v WHERE v\.status = 'open'/, // a list of what is open
  /^WITH c AS MATERIALIZED \(SELECT t\.operation AS id FROM recibo\.timers t WHERE t\.fired_at IS NULL/, // a list of what is overdue
  /^(SELECT count\(\*\)|SELECT n\.destination, coalesce).* FROM recibo\.notifications n WHERE n\.status = 'dead'/, // before a replay of many
  /^WITH chosen AS MATERIALIZED \(SELECT n\.operation, n\.sequence, n\.destination FROM recibo\.notifications n WHERE n\.status = 'dead'/, // that replay
  /^SELECT count\(\*\) FROM recibo\.failed_callbacks f WHERE/, // before a replay of many
  /^SELECT f\.id FROM recibo\.failed_callbacks f WHERE/, // that replay
  /^SELECT EXISTS \(SELECT FROM recibo\.failed_callbacks\)/, // one row
];

// What runs by itself, the slowest every fifteen seconds: nothing is shown before all of it has.
const passes = [
  /recibo\.idempotency_keys k WHERE k\.expires_at <= now\(\)/,
  /x\.parked_at/,
  /recibo\.timer_repairs/,
  /^SELECT recibo\.sweep_look_ups/,
  /^WITH RECURSIVE names AS \(\(SELECT l\.provider/,
  /^WITH seen AS MATERIALIZED \(SELECT x\.operation, x\.sequence FROM recibo\.notifications/,
  /^SELECT d\.name, extract/,
  /^WITH RECURSIVE waiting/,
  /^SELECT 'timers'/,
];

async function everything() {
  await reads(await traffic());
  await deeds();
}

test('each statement reads by the beginning of an index, also by plans that were made while the tables were nearly empty', async () => {
  await reads(await traffic());
  await recibo.sql('ANALYZE');
  await reads(await traffic());
  await recibo.sql(grown);
  await sleep(renewed);
  const from = statSync(recibo.cluster.logFile).size;
  await everything();
  // The worst that statistics can say: nothing was in any index when they were taken, as in one of what is dead.
  await recibo.sql("UPDATE pg_class SET reltuples = 0 WHERE relkind = 'i' AND relnamespace = 'recibo'::regnamespace");
  await sleep(renewed);
  await everything();
  // None have been taken yet, as on the first day.
  await recibo.sql(`DELETE FROM pg_statistic s USING pg_class c WHERE c.oid = s.starelid AND c.relnamespace = 'recibo'::regnamespace`);
  await recibo.sql(`UPDATE pg_class SET reltuples = CASE relkind WHEN 'i' THEN 0 ELSE -1 END, relpages = CASE relkind WHEN 'i' THEN 1 ELSE 0 END, relallvisible = 0
                    WHERE relkind IN ('r', 'i') AND relnamespace = 'recibo'::regnamespace`);
  await sleep(renewed);
  await everything();
  const old = "- interval '1 hour' WHERE ctid IN (SELECT ctid FROM recibo";
  await recibo.sql(`UPDATE recibo.idempotency_keys SET expires_at = now() ${old}.idempotency_keys LIMIT 50)`);
  await recibo.sql(`UPDATE recibo.parked SET parked_at = now() - 30 * interval '1 day' ${old}.parked LIMIT 50)`);
  await recibo.sql("UPDATE recibo.timer_repairs SET ended_at = now() - interval '1 day'");
  await traffic();
  const asOf = statSync(recibo.cluster.logFile).size;
  for (const one of passes)
    await until(`${one} has run`, () => plansOf(recibo.cluster.logFile, recibo.database, asOf).some(({ sql }) => one.test(sql)), { timeout: 45_000, every: 1_000 });
  const client = await recibo.cluster.client(recibo.database);
  try {
    const plans = plansOf(recibo.cluster.logFile, recibo.database, from);
    assert.ok(plans.length > 1_000, `${plans.length} plans`);
    const complaints = await complaintsAbout(plans.filter(({ sql }) => !meant.some((one) => one.test(sql))), client);
    assert.deepEqual(complaints, []);
  } finally {
    await client.end();
  }
});
