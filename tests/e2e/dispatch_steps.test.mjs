// The dispatcher killed at each of its steps, failures that come together, rows that are committed out of order, and what replicas
// tell each other (S36, S37, S38; R19, R21).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const secret = () => `whsec_${randomBytes(32).toString('base64')}`;
const names = ['ledger', 'herd', 'other', 'weak'];
const keys = Object.fromEntries(names.map((name) => [name, secret()]));
const at = {};
for (const name of names) at[name] = await Receiver.start([keys[name]]);
const { ledger, herd, other, weak } = at;
const to = (name, more) => ({ url: at[name].url, secret: keys[name], allow: ['127.0.0.0/8'], timeout: '2s', ...more });
const lease = 3_000; // an attempt may take 2 s; so a lease lasts 7 s

const stage = await Stage.begin({
  configure: (config) => {
    config.outbox = { lease: `${lease}ms` };
    config.destinations = {
      ledger: to('ledger', { events: ['operation.*'], retry: { attempts: 6, first: '1s', max: '4s' } }),
      herd: to('herd', { events: ['operation.accepted'], retry: { attempts: 6, first: '20s', max: '10m' }, concurrency: 32 }),
      other: to('other', { events: ['operation.accepted'] }),
      weak: to('weak', { events: ['operation.failed'], retry: { attempts: 100, first: '1s', max: '1s' }, pause_after: '3s' }),
    };
    return config;
  },
});
const { recibo } = stage;

const rows = (id, name) => recibo.list(`/v1/notifications?request_id=${id}&destination=${name}`);
const destination = async (name) => (await recibo.list('/v1/destinations')).find((d) => d.name === name);
const types = (receiver, id) => receiver.of(id).map((n) => n.body.type);
const told = (receiver, id, count) => until(`${count} notifications of ${id}`, async () => receiver.of(id).length >= count, { timeout: 30_000 });
const settled = (id, name) => until(`${id} is settled at ${name}`, async () => (await rows(id, name)).every((n) => n.status === 'delivered'), { timeout: 30_000 });
const leased = async () => (await recibo.sql("SELECT count(*)::int AS n FROM recibo.notifications WHERE leased_by IS NOT NULL OR (status = 'pending' AND destination = 'ledger')"))[0].n;
const oneEvent = (id, type) => {
  const got = ledger.of(id).filter((n) => n.body.type === type);
  assert.equal(new Set(got.map((n) => n.text)).size, 1, 'every attempt has the same ID and body');
  return got.length;
};

test('S36: killed while a notification is open; the callback comes again meanwhile', { timeout: 60_000 }, async () => {
  const id = freshId();
  await recibo.accepted(id);
  await settled(id, 'ledger');
  let holding = true;
  ledger.answer = (n) => (holding && n.body.data.request_id === id ? { after: Infinity } : 204);
  const body = callbackBody(id, 'evt-1');
  const first = await recibo.callback('p1', body);
  assert.equal(first.json.disposition, 'applied', first.text);
  await told(ledger, id, 2);
  await recibo.service.kill();
  const killed = Date.now();
  holding = false;
  await recibo.serve();
  const again = await recibo.deliver('p1', body);
  assert.deepEqual([again.status, again.header('Idempotent-Replayed'), again.text], [200, 'true', first.text]);
  await settled(id, 'ledger');
  assert.ok(Date.now() - killed < 20_000, 'claimed again when the lease has ended, without help');
  const times = oneEvent(id, 'operation.completed');
  assert.ok(times >= 1 && times <= 2, `${times} requests`);
  await recibo.expectCounts(id, 1, 1, 0);
  assert.equal(await leased(), 0, 'nothing is left in hand');
});

test('killed at each step: claimed, sent, answered, recorded', { timeout: 120_000 }, async () => {
  const client = await stage.cluster.client(recibo.database);
  try {
    // Claimed and not sent: what a notification is made of cannot be read.
    const claimed = freshId();
    ledger.answer = () => 204;
    await recibo.api('POST', '/v1/destinations/ledger/pause', { body: { reason: 'for a moment' } });
    await sleep(1_500);
    await recibo.accepted(claimed);
    await client.query('BEGIN');
    await client.query('LOCK TABLE recibo.registrations IN ACCESS EXCLUSIVE MODE');
    await recibo.sql("UPDATE recibo.destinations SET paused_at = NULL, paused_by = NULL, paused_reason = NULL WHERE name = 'ledger'");
    await until('it is claimed', async () => (await recibo.sql("SELECT 1 FROM recibo.notifications n JOIN recibo.operations o ON o.id = n.operation WHERE o.request_id = $1 AND n.destination = 'ledger' AND n.leased_by IS NOT NULL", [claimed])).length === 1, { timeout: 20_000 });
    await recibo.service.kill();
    await client.query('ROLLBACK');
    assert.deepEqual(types(ledger, claimed), [], 'nothing was sent');
    await recibo.serve();
    await settled(claimed, 'ledger');
    assert.equal(oneEvent(claimed, 'operation.accepted'), 1);

    // Sent and not answered.
    const sent = freshId();
    let holding = true;
    ledger.answer = (n) => (holding && n.body.data.request_id === sent ? { after: Infinity } : 204);
    await recibo.accepted(sent);
    await told(ledger, sent, 1);
    await recibo.service.kill();
    holding = false;
    await recibo.serve();
    await settled(sent, 'ledger');
    assert.equal(oneEvent(sent, 'operation.accepted'), 2);

    // Answered and not recorded: its row is held by somebody.
    const answered = freshId();
    let kill;
    ledger.answer = (n) => {
      if (n.body.data.request_id !== answered || kill) return 204;
      kill = client.query('BEGIN').then(() => client.query('SELECT 1 FROM recibo.notifications WHERE id = $1 FOR UPDATE', [n.body.id]));
      return { status: 204, after: 300 };
    };
    await recibo.accepted(answered);
    await told(ledger, answered, 1);
    await kill;
    await sleep(600);
    await recibo.service.kill();
    // Its session waits in the server still, and would record what it was sent.
    await recibo.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'recibo_service' AND datname = current_database()");
    await client.query('ROLLBACK');
    await recibo.serve();
    await settled(answered, 'ledger');
    assert.equal(oneEvent(answered, 'operation.accepted'), 2, 'at least once: what was not recorded is sent again');

    // Recorded.
    const recorded = freshId();
    await recibo.accepted(recorded);
    await settled(recorded, 'ledger');
    await recibo.service.kill();
    await recibo.serve();
    await sleep(lease + 6_000);
    assert.equal(oneEvent(recorded, 'operation.accepted'), 1);
    await until('nothing is left in hand', async () => (await leased()) === 0, { timeout: 20_000 });
  } finally {
    await client.end();
  }
});

test('a claim whose answer was lost runs out, however busy its destination is', { timeout: 60_000 }, async () => {
  // Each takes a while, so that there is always something in hand.
  ledger.answer = () => ({ status: 204, after: 1_000 });
  let busy = true;
  const load = (async () => {
    while (busy) {
      await recibo.accepted(freshId());
      await sleep(200);
    }
  })();
  try {
    const dispatcher = await until('something is in hand', async () => (await recibo.sql("SELECT leased_by FROM recibo.notifications WHERE destination = 'ledger' AND leased_by IS NOT NULL LIMIT 1"))[0]?.leased_by);
    const id = freshId();
    await recibo.accepted(id);
    await settled(id, 'ledger');
    // As it would stand if the session had been cut between the commit of the claim and its answer.
    await recibo.sql(`UPDATE recibo.notifications SET status = 'pending', delivered_at = NULL, attempts = attempts + 1, leased_by = $2, lease_until = now() + interval '4 seconds'
      WHERE destination = 'ledger' AND operation = (SELECT o.id FROM recibo.operations o WHERE o.request_id = $1)`, [id, dispatcher]);
    await told(ledger, id, 2);
    assert.equal(oneEvent(id, 'operation.accepted'), 2);
    await settled(id, 'ledger');
  } finally {
    busy = false;
    await load;
    ledger.answer = () => 204;
  }
});

test('S38: a row with a lower ID is committed later: none is skipped, and each operation keeps its order', { timeout: 60_000 }, async () => {
  ledger.answer = () => 204;
  await recibo.api('POST', '/v1/destinations/ledger/pause', { body: { reason: 'for a moment' } });
  await sleep(1_500);
  const [a, b] = [freshId(), freshId()];
  await recibo.accepted(a);
  await recibo.accepted(b);
  // As if A's transaction were still under way: its row is there for nobody else.
  const client = await stage.cluster.client(recibo.database);
  try {
    const columns = 'id, operation, sequence, destination, type, created_at';
    const [row] = await recibo.sql(`SELECT ${columns} FROM recibo.notifications WHERE destination = 'ledger' AND operation = (SELECT id FROM recibo.operations WHERE request_id = $1)`, [a]);
    await recibo.sql('DELETE FROM recibo.notifications WHERE id = $1', [row.id]);
    await client.query('BEGIN');
    await client.query(`INSERT INTO recibo.notifications (${columns}) VALUES ($1, $2, $3, $4, $5, $6)`, Object.values(row));
    const began = Date.now();
    await recibo.api('POST', '/v1/destinations/ledger/resume');
    // A backlog beside it moves the bound from which on is looked.
    const many = [];
    for (let i = 0; i < 60; ++i) many.push(freshId());
    await Promise.all(many.map((id) => recibo.accepted(id)));
    await settled(b, 'ledger');
    for (const id of many) await settled(id, 'ledger');
    await sleep(Math.max(0, 10_000 - (Date.now() - began)));
    assert.deepEqual(types(ledger, a), []);
    await client.query('COMMIT');
  } finally {
    await client.end();
  }
  await recibo.deliver('p1', callbackBody(a, 'evt-1'));
  await recibo.deliver('p1', callbackBody(b, 'evt-1'));
  for (const id of [a, b]) {
    await told(ledger, id, 2);
    await settled(id, 'ledger');
    assert.deepEqual(types(ledger, id), ['operation.accepted', 'operation.completed'], id);
  }
});

test('S37: whoever says Retry-After: 120 is left alone by all of them; others are served at once', { timeout: 60_000 }, async () => {
  const ids = Array.from({ length: 500 }, () => freshId());
  herd.answer = () => ({ status: 503, headers: { 'Retry-After': '120' } });
  const before = { herd: herd.got.length, other: other.got.length };
  for (let i = 0; i < ids.length; i += 50) await Promise.all(ids.slice(i, i + 50).map((id) => recibo.accepted(id)));
  await until('others are told', () => other.got.length - before.other >= ids.length, { timeout: 30_000 });
  await until('it is left alone', async () => (await destination('herd')).breaker === 'open', { timeout: 10_000 });
  await sleep(500);
  const asked = herd.got.length;
  const firsts = herd.got.slice(before.herd);
  assert.equal(new Set(firsts.map((n) => n.body.id)).size, firsts.length, 'no second attempt at any');
  const until120 = Math.min(...firsts.map((n) => n.at)) + 120_000;
  assert.ok(Date.parse((await destination('herd')).retry_at) >= until120 - 1_000, 'not before it asked for');
  const [early] = await recibo.sql("SELECT count(*)::int AS n FROM recibo.notifications WHERE destination = 'herd' AND reason = 'server_error' AND next_attempt_at < to_timestamp($1)", [(until120 - 1_000) / 1_000]);
  assert.equal(early.n, 0);
  await sleep(12_000);
  assert.equal(herd.got.length, asked, 'nothing comes after a usual wait');
  herd.answer = () => 204;
  await recibo.sql("UPDATE recibo.notifications SET next_attempt_at = NULL WHERE destination = 'herd'");
  await recibo.api('POST', '/v1/destinations/herd/resume');
  await until('all are told', async () => new Set(herd.got.map((n) => n.body.id)).size >= ids.length && (await destination('herd')).pending === 0, { timeout: 30_000 });
});

test('S37: five hundred that failed together come back spread, not as a herd', { timeout: 120_000 }, async () => {
  // Three in five are taken, so that the breaker has no say in it.
  const ids = Array.from({ length: 1_250 }, (_, i) => `${i % 5 > 2 ? 'fails' : 'passes'}-${freshId()}`);
  const failed = new Set();
  const seconds = [];
  herd.answer = (n) => {
    const id = n.body.data.request_id;
    if (!id.startsWith('fails-')) return 204;
    if (!failed.has(id)) {
      failed.add(id);
      return 503;
    }
    seconds.push(n.at);
    return 204;
  };
  const others = other.got.length;
  await recibo.api('POST', '/v1/destinations/herd/pause', { body: { reason: 'until all are there' } });
  await sleep(1_500);
  for (let i = 0; i < ids.length; i += 60) await Promise.all(ids.slice(i, i + 60).map((id) => recibo.accepted(id)));
  await until('others are told at once', () => other.got.length - others >= ids.length, { timeout: 30_000 });
  await until('and the ledger', async () => (await destination('ledger')).pending === 0, { timeout: 30_000 });
  await recibo.api('POST', '/v1/destinations/herd/resume');
  await until('all have come back', () => seconds.length >= 500, { timeout: 60_000 });
  assert.equal(seconds.length, 500);
  const [first, last] = [Math.min(...seconds), Math.max(...seconds)];
  assert.ok(last - first >= 10_000, `spread over ${last - first} ms of an interval of 20 s`);
  const perSecond = new Map();
  for (const time of seconds) perSecond.set(Math.floor((time - first) / 1_000), (perSecond.get(Math.floor((time - first) / 1_000)) ?? 0) + 1);
  assert.ok(Math.max(...perSecond.values()) <= 50, `at most a tenth in one second: ${[...perSecond.values()]}`);
});

test('a tarpit holds up nobody else', { timeout: 60_000 }, async () => {
  herd.answer = () => ({ after: Infinity });
  const ids = Array.from({ length: 100 }, () => freshId());
  await Promise.all(ids.map((id) => recibo.accepted(id)));
  await until('the tarpit has some', () => herd.open > 0);
  assert.ok(herd.mostOpen <= 32, `${herd.mostOpen} at once`);
  await until('others are told', () => ids.every((id) => other.of(id).length === 1 && ledger.of(id).length === 1), { timeout: 20_000 });
  herd.answer = () => 204;
  await recibo.api('POST', '/v1/destinations/herd/resume');
});

test('nothing taken for longer than pause_after: paused, with an alert, and free after a resumption', { timeout: 60_000 }, async () => {
  weak.answer = () => 500;
  const id = freshId();
  await recibo.accepted(id);
  await recibo.deliver('p1', callbackBody(id, 'evt-1', 'failed'));
  const paused = await until('it is paused', async () => {
    const seen = await destination('weak');
    return seen.paused ? seen : null;
  }, { timeout: 30_000 });
  assert.deepEqual([paused.paused_by, paused.paused_reason], ['recibo', 'failing']);
  assert.ok(weak.of(id).length >= 2, 'not after the first failure');
  assert.ok(weak.got.at(-1).at - weak.got[0].at >= 2_000, 'not before its time');
  await until('the gauge says so', async () => (await recibo.metric('recibo_destination_paused', { destination: 'weak' })) === 1);
  assert.ok(recibo.service.lines.some(({ record }) => record?.level === 'error' && record.msg.startsWith('a destination is paused') && record.reason === 'failing'), 'an alert');
  weak.answer = () => 204;
  await recibo.api('POST', '/v1/destinations/weak/resume');
  await settled(id, 'weak');
  const [row] = await recibo.sql("SELECT failing_since FROM recibo.destinations WHERE name = 'weak'");
  assert.equal(row.failing_since, null);
});

test('replicas tell each other, once for many commits, and hear again after a lost session', { timeout: 60_000 }, async () => {
  const client = await stage.cluster.client(recibo.database);
  const heard = [];
  client.on('notification', (n) => heard.push(n.payload));
  await client.query('LISTEN recibo_outbox');
  try {
    const ids = Array.from({ length: 200 }, () => freshId());
    await Promise.all(ids.map((id) => recibo.accepted(id)));
    await until('a word', () => heard.length > 0);
    assert.match(heard[0], /^[0-9a-f-]{36}:herd,ledger,other$/);
    await sleep(300);
    assert.ok(heard.length < 20, `${heard.length} words for 200 commits`);
    heard.length = 0;
    const [dead] = (await recibo.api('GET', '/v1/notifications?limit=1')).json.data;
    await recibo.sql("UPDATE recibo.notifications SET status = 'dead', delivered_at = NULL, dead_at = now() WHERE id = $1", [dead.notification_id]);
    await recibo.api('POST', `/v1/notifications/${dead.notification_id}/replay`, { body: { reason: 'again' } });
    await until('a word about what was replayed', () => heard.includes('-:*'));
    // The session that listens is lost, and made again.
    const listening = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query = 'LISTEN recibo_outbox' AND usename = 'recibo_service'";
    const [{ pid }] = await recibo.sql(listening);
    await recibo.sql('SELECT pg_terminate_backend($1)', [pid]);
    await until('it listens again', async () => (await recibo.sql(listening)).some((row) => row.pid !== pid));
  } finally {
    await client.end();
  }
});

test('attempts are kept for a while, and go then; what became of a notification stays', { timeout: 90_000 }, async () => {
  const count = async () => (await recibo.sql("SELECT count(*)::int AS n FROM recibo.notification_attempts WHERE at < now() - interval '90 days'"))[0].n;
  const [row] = await recibo.sql('SELECT notification, n.status FROM recibo.notification_attempts a JOIN recibo.notifications n ON n.id = a.notification ORDER BY a.at LIMIT 1');
  await recibo.sql("UPDATE recibo.notification_attempts SET at = now() - interval '91 days' WHERE notification = $1", [row.notification]);
  const before = await count();
  const [{ gone }] = await recibo.sql("SELECT recibo.sweep_notification_attempts(interval '90 days', 1000) AS gone");
  assert.ok(before >= 1 && gone === before, `${gone} of ${before}`);
  assert.equal(await count(), 0);
  assert.equal((await recibo.api('GET', `/v1/notifications/${row.notification}`)).json.status, row.status);
  // Whoever asks for less than a day gets a day.
  const [none] = await recibo.sql("SELECT recibo.sweep_notification_attempts(interval '0', 1000) AS gone");
  assert.equal(none.gone, 0);
  const [may] = await recibo.sql("SELECT has_function_privilege('recibo_service', 'recibo.sweep_notification_attempts(interval, integer)', 'EXECUTE') AS sweep, has_table_privilege('recibo_service', 'recibo.notification_attempts', 'DELETE') AS delete");
  assert.deepEqual(may, { sweep: true, delete: false });
});

test('at the end nothing was told wrongly', () => {
  for (const name of names) {
    assert.deepEqual(at[name].problems, [], name);
    at[name].stop();
  }
});

stage.ends();
