// A provider that goes quiet is noticed, told once over all replicas, and told again when it speaks (R30).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const [desk, ledger] = [await Receiver.start([secret]), await Receiver.start([secret])];
const to = (receiver, events) => ({ url: receiver.url, secret, allow: ['127.0.0.0/8'], events });

const stage = await Stage.begin({
  configure(config) {
    for (const name of ['p1', 'p2']) config.providers[name].silence_alert = '3s';
    config.providers.p5.expected_rate = { at_least: 5, within: '4s' };
    config.destinations = { desk: to(desk, ['provider.*']), ledger: to(ledger, ['operation.*']) };
    return config;
  },
});
const { recibo } = stage;
const replicas = [recibo.service, await recibo.serve()];

const of = async (name) => (await recibo.list('/v1/providers')).find((p) => p.name === name);
const told = (msg, provider) => recibo.services.flatMap((s) => s.lines).filter(({ record }) => record?.msg === msg && record.provider === provider).length;
const heard = (provider) => desk.got.filter((n) => n.body.data.provider === provider);
const silenced = 'a provider has gone silent';
const speaking = 'a provider speaks again';

test('one that never called is silent too, once it was waited for', async () => {
  const before = await of('p1');
  assert.deepEqual([before.last_callback_at, before.silence_alert_s], [null, 3]);
  await until('silence', async () => (await of('p1')).silent);
  const now = await of('p1');
  assert.ok(now.silent_for_s >= 3 && Date.parse(now.silent_since) <= Date.now(), JSON.stringify(now));
  assert.equal((await of('p3')).silent, false, 'who has no silence_alert is never silent');
  await sleep(2_500);
  assert.deepEqual([told(silenced, 'p1'), told(speaking, 'p1')], [1, 0], 'told once, by one replica');
  assert.equal(told(silenced, 'p3'), 0);
});

test('destinations that ask for it are told, once, and the outbox shows it', async () => {
  await until('the desk is told', () => heard('p1').length > 0);
  await sleep(1_500);
  const [first, ...more] = heard('p1');
  assert.deepEqual([more.length, first.body.type, first.headers['recibo-sequence']], [0, 'provider.silent', '1']);
  const now = await of('p1');
  assert.deepEqual(first.body.data, { provider: 'p1', reason: 'quiet', silent_since: now.silent_since, last_callback_at: null });
  assert.equal(now.silent_reason, 'quiet');
  assert.equal(first.body.timestamp, now.silent_since, 'written with the change itself');
  const [row] = (await recibo.list('/v1/notifications?type=provider.silent')).filter((n) => n.provider === 'p1');
  assert.deepEqual([row.notification_id, row.request_id, row.destination, row.status, row.attempts], [first.body.id, null, 'desk', 'delivered', 1]);
  assert.equal(row._links.operation, undefined);
  assert.equal((await recibo.api('GET', `/v1/notifications/${row.notification_id}`)).json.attempt_list.length, 1);
  assert.deepEqual(ledger.got.filter((n) => n.body.type.startsWith('provider.')), [], 'operation.* is something else');
});

test('less than is expected of a provider is silence too', async () => {
  await until('below its rate', async () => (await of('p5')).silent);
  const low = await of('p5');
  assert.deepEqual([low.silent_reason, low.silence_alert_s, low.expected_rate], ['below_rate', null, { at_least: 5, within_s: 4 }]);
  await until('the desk is told', () => heard('p5').length === 1);
  const id = freshId();
  await recibo.accepted(id, { provider: 'p5' });
  // Whatever becomes of them: they verify. The window may end between two of them on a slow machine.
  await until('as much as is expected', async () => {
    await Promise.all(Array.from({ length: 10 }, (_, i) => recibo.callback('p5', callbackBody(id, `e${i}`), { headers: [['Idempotency-Key', `e${i}`]] })));
    return !(await of('p5')).silent;
  }, { timeout: 20_000 });
  await until('the desk is told', () => heard('p5').length >= 2);
  assert.deepEqual(heard('p5').slice(0, 2).map((n) => [n.body.type, n.body.data.reason, n.headers['recibo-sequence']]), [['provider.silent', 'below_rate', '1'], ['provider.resumed', 'below_rate', '2']]);
});

test('what nobody signed, or a stranger did, ends no silence', async () => {
  assert.equal((await recibo.callback('p1', callbackBody(freshId(), 'e1'), { secret: 'another secret' })).status, 401);
  await sleep(2_500);
  assert.equal((await of('p1')).silent, true);
});

test('it speaks again, at whichever replica, and is told once', async () => {
  [recibo.service] = replicas;
  const id = freshId();
  await recibo.accepted(id);
  assert.equal((await recibo.deliver('p1', callbackBody(id, 'e1'))).json.disposition, 'applied');
  await until('its voice', async () => !(await of('p1')).silent);
  const now = await of('p1');
  assert.ok(Date.parse(now.last_callback_at) > Date.now() - 10_000 && now.silent_since === null, JSON.stringify(now));
  await sleep(1_500);
  assert.equal(told(speaking, 'p1'), 1);
  assert.equal((await of('p2')).silent, true, 'the others are as silent as before');
  await until('silence again', async () => told(silenced, 'p1') === 2);
  await until('the desk knows', () => heard('p1').length === 3);
  assert.deepEqual(heard('p1').map((n) => [n.body.type, n.headers['recibo-sequence']]), [['provider.silent', '1'], ['provider.resumed', '2'], ['provider.silent', '3']]);
  assert.equal(heard('p1')[1].body.data.silent_since, heard('p1')[0].body.data.silent_since);
});

test('a restart is no voice: who was silent stays so, and is not told again', async () => {
  await Promise.all(replicas.map((one) => one.stop()));
  const before = told(silenced, 'p1');
  await recibo.serve();
  await sleep(4_500);
  assert.equal((await of('p1')).silent, true);
  assert.deepEqual([told(silenced, 'p1'), told(speaking, 'p1')], [before, 1]);
  assert.equal(heard('p1').length, 3);
});

test('after nobody could hear it, a provider is given time to send again', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p2' });
  assert.equal((await recibo.deliver('p2', callbackBody(id, 'e1'))).json.disposition, 'applied');
  await until('its voice', async () => !(await of('p2')).silent);
  await recibo.service.stop();
  await recibo.sql(`UPDATE recibo.provider_activity SET heard_at = now() - interval '1 hour', watched_at = now() - interval '1 hour', resumed_at = now() - interval '2 hours' WHERE provider = 'p2'`);
  const before = told(silenced, 'p2');
  const start = Date.now();
  await recibo.serve();
  await until('silence', async () => (await of('p2')).silent);
  assert.ok(Date.now() - start > 2_500, 'not before it could have sent again');
  await until('the line', () => told(silenced, 'p2') === before + 1);
});

test('silence is a gauge', async () => {
  await until('the gauges', async () => (await recibo.metric('recibo_provider_silent', { provider: 'p2' })) === 1, { timeout: 25_000 });
  assert.ok((await recibo.metric('recibo_provider_silence_seconds', { provider: 'p2' })) > 3_500);
  assert.equal(await recibo.metric('recibo_provider_silent', { provider: 'p3' }), 0);
});

test('whatever was told was signed, and told once', () => {
  assert.deepEqual([...desk.problems, ...ledger.problems], []);
  assert.equal(new Set(desk.got.map((n) => n.body.id)).size, desk.got.length);
});

stage.ends();
