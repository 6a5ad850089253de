// The service's clock is put forward and back while it serves, and the machine's zone changes its summer time: what is due is due by
// the database's clock (decision 11), so that nothing happens early, twice or never; and what the service's own clock judges is
// not held against the sender.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { FakeClock, hasFaketime } from '../support/faketime.mjs';
import { freshId } from '../support/random.mjs';
import { exchange } from '../support/raw.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { stampOf } from '../support/sign.mjs';

assert.ok(hasFaketime, 'libfaketime is installed (./dev setup)');
const hour = 3_600;
const secret = `whsec_${randomBytes(32).toString('base64')}`;
const ledger = await Receiver.start([secret]);
const limit = 6; // seconds

const stage = await Stage.begin({
  configure: (config) => {
    config.outbox = { lease: '2s' };
    config.workflows.timed = {
      initial: 'accepted',
      states: {
        accepted: { label: 'Accepted', limit: { after: `${limit}s`, event: 'overdue' }, owner: 'checkout' },
        unknown: { label: 'Being checked', limit: 'none', owner: 'checkout' },
        completed: { label: 'Completed', terminal: true, done: true },
      },
      transitions: [
        { from: 'accepted', event: 'overdue', to: 'unknown', by: 'clock' },
        { from: ['accepted', 'unknown'], event: 'complete', to: 'completed', by: 'provider' },
      ],
    };
    config.providers.p2 = { ...config.providers.p2, events: { succeeded: 'complete' }, workflow: 'timed' };
    config.destinations = { ledger: { url: ledger.url, secret, allow: ['127.0.0.0/8'], events: ['operation.*'], timeout: '5s', retry: { attempts: 10, first: '2s', max: '4s' } } };
    return config;
  },
});
const { recibo } = stage;
await recibo.service.stop();
const clock = new FakeClock();
// A zone whose summer time begins within the test: one that starts at 00:00 UTC, by a rule for today in seconds.
const zoneThatChanges = (inSeconds) => {
  const at = new Date(Date.now() + inSeconds * 1_000);
  const day = Math.floor((Date.UTC(2027, at.getUTCMonth(), at.getUTCDate()) - Date.UTC(2027, 0, 1)) / 86_400_000) + 1;
  const time = at.toISOString().slice(11, 19);
  return `STD0DST-1,J${day}/${time},J${day === 365 ? 1 : 365}/23:59:59`;
};
await recibo.sql(`ALTER DATABASE ${recibo.database} SET timezone = 'Europe/Berlin'`);

const ready = async (service) => exchange(service.api, { method: 'GET', target: '/readyz' });
const agrees = (service) => until('its clock agrees', async () => (await ready(service)).status === 200, { timeout: 10_000 });
const doubts = (service) => until('its clock is in doubt', async () => {
  const answer = await ready(service);
  return answer.status === 503 && answer.text.includes('clock_skewed') ? answer : null;
}, { timeout: 10_000 });
const rowOf = async (id, type = 'operation.accepted') => (await recibo.list(`/v1/notifications?request_id=${id}`)).find((n) => n.type === type);
const settled = (id, timeout = 15_000) => until(`${id} is told`, async () => (await recibo.list(`/v1/notifications?request_id=${id}`)).every((n) => n.status === 'delivered'), { timeout });
const bySql = async (id) => (await recibo.sql('SELECT o.state, o.version::int, extract(epoch FROM now())::float8 AS now FROM recibo.operations o WHERE o.request_id = $1', [id]))[0];
const fired = async (id) => (await recibo.sql("SELECT extract(epoch FROM a.committed)::float8 AS at FROM (SELECT t.at AS committed FROM recibo.transitions t JOIN recibo.operations o ON o.id = t.operation WHERE o.request_id = $1 AND t.actor_kind = 'clock') a", [id]));

await recibo.serve({ env: clock.env });
const stepped = recibo.service;
await agrees(stepped);

for (const [name, seconds] of [['an hour forward', hour], ['an hour back', -hour]]) {
  test(`${name}: callbacks, first attempts, retries and leases`, { timeout: 90_000 }, async () => {
    // One that waits for its second attempt, one whose first is under way, and one that comes after the step.
    const [again, open, late] = [freshId(), freshId(), freshId()];
    let refused = null;
    ledger.skew = 0;
    ledger.answer = (n) => {
      const { request_id: id } = n.body.data;
      if (id === again && refused === null) {
        refused = n;
        return 503;
      }
      return id === open ? { status: 204, after: 4_000 } : 204;
    };
    await recibo.accepted(again);
    await until('it was refused', () => refused !== null, { timeout: 10_000 });
    await recibo.accepted(open);
    await until('it is under way', () => ledger.of(open).length === 1, { timeout: 10_000 });
    const [due] = await until('it is put off', async () => {
      const found = await recibo.sql('SELECT extract(epoch FROM n.next_attempt_at)::float8 * 1000 AS at FROM recibo.notifications n JOIN recibo.operations o ON o.id = n.operation WHERE o.request_id = $1 AND n.next_attempt_at IS NOT NULL', [again]);
      return found.length === 1 ? found : null;
    }, { timeout: 10_000, interval: 20 });

    clock.step(seconds);
    ledger.skew = seconds;
    await doubts(stepped);
    await recibo.accepted(late);
    // What it cannot judge is not the sender's fault; what its clock agrees with is taken.
    const body = callbackBody(late, `evt-${late}`);
    const honest = await recibo.callback('p1', body);
    assert.deepEqual([honest.status, honest.header('Retry-After') !== undefined], [503, true], honest.text);
    const [kept] = await recibo.sql("SELECT count(*)::int AS n FROM recibo.deliveries d JOIN recibo.operations o ON o.id = d.operation WHERE o.request_id = $1", [late]);
    assert.equal(kept.n, 0, 'and nothing is kept of it');
    const alike = await recibo.callback('p1', body, { stamp: stampOf('seconds', Date.now() + seconds * 1_000) });
    assert.equal(alike.json.disposition, 'applied', alike.text);

    for (const id of [again, open, late]) await settled(id);
    assert.deepEqual(ledger.of(late).map((n) => n.body.type), ['operation.accepted', 'operation.completed'], 'told in order, an hour neither early nor late');
    assert.equal(ledger.of(open).length, 1, 'its lease has not run out');
    const attempts = ledger.of(again);
    assert.equal(attempts.length, 2);
    assert.ok(attempts[1].at >= due.at - 50, `not ${due.at - attempts[1].at} ms before its time`);
    assert.deepEqual([(await rowOf(again)).attempts, (await rowOf(open)).attempts, (await rowOf(late)).attempts], [2, 1, 1]);
    const [times] = await recibo.sql("SELECT bool_and(n.delivered_at BETWEEN now() - interval '2 minutes' AND now() AND n.created_at <= now()) AS fine FROM recibo.notifications n JOIN recibo.operations o ON o.id = n.operation WHERE o.request_id = ANY($1)", [[again, open, late]]);
    assert.equal(times.fine, true, 'what became of them has the times of the database');

    clock.step(0);
    ledger.skew = 0;
    await agrees(stepped);
    assert.equal((await recibo.callback('p1', body)).json.disposition, 'applied', 'the resend of the honest one has the recorded answer');
  });
}

test('limits fire at their time, once, on the replica whose clock is right', { timeout: 90_000 }, async () => {
  await recibo.serve();
  const sound = recibo.service;
  await agrees(sound);
  for (const seconds of [hour, -hour]) {
    const id = freshId();
    await recibo.accepted(id, { provider: 'p2' });
    const since = (await bySql(id)).now;
    clock.step(seconds);
    ledger.skew = undefined; // of either replica
    await doubts(stepped);
    await until('it has run out', async () => (await bySql(id)).state === 'unknown', { timeout: 30_000 });
    const took = (await bySql(id)).now - since;
    assert.ok(took >= limit - 1, `after ${took} s`);
    await sleep(1_500);
    assert.equal((await fired(id)).length, 1);
    assert.equal((await bySql(id)).version, 1);
    await settled(id);
    assert.deepEqual(ledger.of(id).map((n) => n.body.type), ['operation.accepted', 'operation.unknown']);
    clock.step(0);
    await agrees(stepped);
    await sleep(1_500);
    assert.equal((await fired(id)).length, 1, 'nor again when the clock is right again');
  }
  assert.equal((await sound.stop()).code, 0);
  recibo.service = stepped;
});

test('summer time begins: nothing is an hour early, late or twice', { timeout: 90_000 }, async () => {
  assert.equal((await stepped.stop()).code, 0);
  const begins = Date.now() + 5_000;
  await recibo.serve({ env: { TZ: zoneThatChanges(5) } });
  await agrees(recibo.service);
  ledger.skew = 0;
  const [limited, retried] = [freshId(), freshId()];
  let refusals = 2;
  ledger.answer = (n) => (n.body.data.request_id === retried && refusals-- > 0 ? 503 : 204);
  await recibo.accepted(limited, { provider: 'p2' });
  const since = (await bySql(limited)).now;
  const shown = await recibo.accepted(retried);
  assert.ok(Math.abs(Date.parse(shown.accepted_at) - Date.now()) < 30_000 && shown.accepted_at.endsWith('Z'), shown.accepted_at);
  await until('it has run out', async () => (await bySql(limited)).state === 'unknown', { timeout: 30_000 });
  assert.ok(Date.now() > begins, 'the zone has changed meanwhile');
  const took = (await bySql(limited)).now - since;
  assert.ok(took >= limit - 1 && took < 60, `after ${took} s`);
  await settled(retried);
  await settled(limited);
  assert.equal(ledger.of(retried).length, 3);
  assert.equal((await fired(limited)).length, 1);
  const late = freshId();
  await recibo.accepted(late);
  assert.equal((await recibo.callback('p1', callbackBody(late, `evt-${late}`))).json.disposition, 'applied', 'a signature of now is one of now');
  const after = await recibo.get(late);
  assert.ok(Math.abs(Date.parse(after.updated_at) - Date.now()) < 30_000, after.updated_at);
});

test('what was told was signed, by the clock of whoever sent it', () => {
  assert.deepEqual(ledger.problems, []);
});

stage.ends();
