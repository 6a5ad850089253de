// Callbacks and requests that are understood in part, and then otherwise, because the configuration changes between a callback,
// its resend, the registration of its operation and the replay (R7, R17, R37, R41): everything that was answered 2xx is decided once
// in the end, and what waits is listed until then.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage } from '../support/recibo.mjs';
import { hmac, nowSeconds } from '../support/sign.mjs';

const stage = await Stage.begin({
  configure(config) {
    // Can be moved again and again, so that a second effect would show.
    config.workflows.toggle = {
      initial: 'off',
      states: { off: { label: 'Off', limit: 'none' }, on: { label: 'On', limit: 'none' } },
      transitions: [{ from: 'off', event: 'toggle', to: 'on', by: 'provider' }, { from: 'on', event: 'toggle', to: 'off', by: 'provider' }],
    };
    const { verify } = config.providers.p1;
    const items = { each: '/results', item_id: '/id', event: '/word' };
    const common = { verify, events: { t: 'toggle' }, workflow: 'toggle', unmatched: 'park' };
    const extract = { request_id: '/request_id', event: '/word', idempotency_key: '/event_id' };
    config.providers = {
      many: { ...common, extract: { ...extract, each: '/events', items } },
      list: { ...common, extract: { ...extract, event: undefined, items }, idempotency: { keep: '1h' } },
      headed: { ...common, extract: { ...extract, event: undefined, idempotency_key: { header: 'X-Delivery', unsigned: 'accept' }, items } },
    };
    return config;
  },
});
const { recibo } = stage;
const clean = structuredClone(recibo.config.providers);

const send = (name, body, headers = []) => recibo.callback(name, JSON.stringify(body), { secret: 'test-secret-A', headers });
const told = (answer) => answer.json.events.map((e) => e.disposition);
async function configure(name, change) {
  recibo.config.providers[name] = structuredClone(clean[name]);
  change(recibo.config.providers[name]);
  recibo.write();
  const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
  assert.equal(answer.status, 200, answer.text);
}
const map = (name, words) => configure(name, (provider) => (provider.events = words));
const failedOf = (name) => recibo.list(`/v1/failed-callbacks?provider=${name}`);
const replay = (one, more = {}) => recibo.api('POST', `/v1/failed-callbacks/${one.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended', ...more } });
const discard = (one) => recibo.api('POST', `/v1/failed-callbacks/${one.failed_callback_id}/discard`, { token: 'ops', body: { reason: 'theirs' } });
const accepted = (id, provider) => recibo.accepted(id, { provider, amount: undefined, currency: undefined, items: [{ item_id: 'a' }, { item_id: 'b' }, { item_id: 'c' }] });
const items = async (id) => Object.fromEntries((await recibo.get(id)).items.map((i) => [i.item_id, i.version]));
const event = (request_id, event_id, word, ...results) => ({ request_id, event_id, word, results: results.map(([id, said]) => ({ id, word: said })) });

async function replayAll(name) {
  for (const one of await failedOf(name)) {
    const done = await replay(one);
    assert.deepEqual([done.status, done.json.closed], [200, true], done.text);
  }
  assert.deepEqual(await failedOf(name), []);
}

test('where the only known words are ignored, nothing is understood: it waits, whole, and the service stays', async () => {
  for (const results of [[['a', 'idle'], ['b', 'odd']], [['a', 't'], ['a', 'odd']], [['a', 'idle'], ['b', undefined]]]) {
    for (const first of ['callback', 'registration']) {
      await map('list', { t: 'toggle', idle: 'ignore' });
      const id = freshId();
      if (first === 'registration') await accepted(id, 'list');
      const { word, ...body } = event(id, '1', undefined, ...results);
      const answer = await send('list', body);
      assert.ok([202, 422].includes(answer.status), answer.text);
      if (first === 'callback') await accepted(id, 'list');
      assert.deepEqual(await items(id), { a: 0, b: 0, c: 0 });
      const [failed] = (await failedOf('list')).filter((f) => f.request_id === id);
      assert.equal((await replay(failed, { dry_run: true })).status, 200);
      if (answer.status === 422) {
        assert.equal((await discard(failed)).status, 200);
        continue;
      }
      await map('list', { t: 'toggle', idle: 'ignore', odd: 'toggle' });
      await replayAll('list');
      assert.deepEqual(await items(id), results[0][1] === 'idle' ? { a: 0, b: 1, c: 0 } : { a: 1, b: 0, c: 0 });
      assert.equal((await send('list', body)).replayed, true);
    }
  }
  assert.equal((await recibo.raw({ method: 'GET', target: '/readyz', body: '' })).status, 200);
});

for (const order of [['known', 'unknown'], ['unknown', 'known']]) {
  test(`a request that is parked in part and, ${order[0]} first, wholly unknown loses no item`, async () => {
    const id = freshId();
    const body = { events: [event(id, '1', 't', ['a', 't'], ['b', 'odd']), event(id, '2', 't')] };
    for (const way of order) {
      await map('many', way === 'known' ? { t: 'toggle' } : { other: 'toggle' });
      assert.equal((await send('many', body)).status, 202);
    }
    await accepted(id, 'many');
    assert.deepEqual(await items(id), { a: 1, b: 0, c: 0 });
    await map('many', { t: 'toggle', odd: 'toggle' });
    await replayAll('many');
    assert.deepEqual([await items(id), (await recibo.get(id)).version], [{ a: 1, b: 1, c: 0 }, 2]);
    assert.equal((await send('many', body)).replayed, true);
    assert.equal((await recibo.get(id)).version, 2);
  });
}

test('an event that was ignored, or kept nowhere, is listed once it cannot be understood', async () => {
  for (const before of ['ignore', undefined]) {
    const ids = [freshId(), freshId()];
    await accepted(ids[0], 'many');
    const configured = (events, unmatched) => configure('many', (provider) => Object.assign(provider, { events, unmatched }));
    await configured(before ? { late: 'ignore' } : { late: 'toggle' }, 'reject');
    const body = { events: [event(ids[0], '1', 'word'), event(ids[1], '1', 'late')] };
    const first = await send('many', body);
    assert.deepEqual(told(first), ['unmapped', before ? 'ignored' : 'unknown_operation'], first.text);
    assert.equal(first.status, before ? 202 : 404, 'what is kept nowhere is no success');
    await configured({ other: 'toggle' }, 'park');
    assert.deepEqual(told(await send('many', body)), ['unmapped', 'unmapped']);
    await configured({ word: 'toggle' }, 'park');
    for (let i = 0; i < 2; ++i) assert.deepEqual([...told(await send('many', body))], ['applied', 'unmapped'], 'and it is answered, each time');
    await configured({ word: 'toggle', late: 'toggle' }, 'park');
    await replayAll('many');
    await accepted(ids[1], 'many');
    for (const id of ids) assert.equal((await recibo.get(id)).version, 1);
  }
});

test('what came again and waits in part is on record, whatever it was before', async () => {
  for (const list of [(id) => [event(id, '1', 'odd', ['b', 'odd2']), event(id, '2', 't')], (id) => [event(id, '2', 't'), event(id, '1', 'odd', ['b', 'odd2'])]]) {
    const id = freshId();
    await map('many', { t: 'toggle' });
    const body = { events: list(id) };
    assert.equal((await send('many', body)).json.disposition, 'partial');
    await map('many', { t: 'toggle', odd: 'toggle' });
    assert.equal((await send('many', body)).status, 202);
    assert.equal((await recibo.audit()).code, 0);
    await accepted(id, 'many');
    assert.equal((await recibo.audit()).code, 0);
    await map('many', { t: 'toggle', odd: 'toggle', odd2: 'toggle' });
    await replayAll('many');
    assert.deepEqual([await items(id), (await recibo.get(id)).version], [{ a: 0, b: 1, c: 0 }, 2]);
    assert.equal((await recibo.audit()).code, 0);
  }
});

test('places in a list that stands elsewhere by now are not replayed', async () => {
  const id = freshId(), other = freshId();
  for (const one of [id, other]) await accepted(one, 'many');
  await map('many', { t: 'toggle' });
  const body = { events: [event(id, '1', 't'), event(other, '1', 'odd')], others: [event(other, '9', 't'), event(id, '9', 't')] };
  assert.deepEqual(told(await send('many', body)), ['applied', 'unmapped']);
  await configure('many', (provider) => Object.assign(provider, { events: { t: 'toggle', odd: 'toggle' }, extract: { ...provider.extract, each: '/others' } }));
  const [failed] = await failedOf('many');
  const refused = await replay(failed);
  assert.deepEqual([refused.status, refused.json.code], [409, 'not_replayable'], refused.text);
  assert.deepEqual([(await recibo.get(id)).version, (await recibo.get(other)).version], [1, 0]);
  await map('many', { t: 'toggle', odd: 'toggle' });
  await replayAll('many');
  assert.deepEqual([(await recibo.get(id)).version, (await recibo.get(other)).version], [1, 1]);
});

test('after its key was swept, what a resend left out is replayed all the same', async () => {
  const id = freshId();
  await accepted(id, 'list');
  await map('list', { t: 'toggle' });
  const { word, ...body } = event(id, '1', undefined, ['a', 't'], ['b', 'one'], ['c', 'two']);
  assert.equal((await send('list', body)).json.disposition, 'partial');
  await recibo.sql("UPDATE recibo.idempotency_keys SET expires_at = now() - interval '1 second' WHERE operation = (SELECT id FROM recibo.operations WHERE request_id = $1)", [id]);
  await until('the key is swept', async () => (await recibo.sql('SELECT 1 FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1', [id])).length === 0, { timeout: 30_000, interval: 200 });
  await map('list', { t: 'toggle', one: 'toggle' });
  assert.equal((await send('list', body)).json.disposition, 'partial');
  assert.deepEqual(await items(id), { a: 2, b: 1, c: 0 }, 'a swept key means nothing any more');
  await map('list', { t: 'toggle', one: 'toggle', two: 'toggle' });
  await replayAll('list');
  assert.deepEqual(await items(id), { a: 2, b: 1, c: 1 });
});

test('what a replay parked, and was understood in part when it was met, keeps its headers', async () => {
  const id = freshId();
  await map('headed', { other: 'toggle' });
  const { word, event_id, ...body } = event(id, '1', undefined, ['a', 't'], ['b', 'odd']);
  assert.equal((await send('headed', body, [['X-Delivery', 'd-1']])).json.disposition, 'unmapped');
  await map('headed', { t: 'toggle' });
  const [first] = await failedOf('headed');
  assert.equal((await replay(first)).json.disposition, 'parked');
  await accepted(id, 'headed');
  await map('headed', { t: 'toggle', odd: 'toggle' });
  await replayAll('headed');
  assert.deepEqual(await items(id), { a: 1, b: 1, c: 0 });
  assert.equal((await send('headed', body, [['X-Delivery', 'd-1']])).replayed, true);
});

test('copies of one request that fail at once are one failed callback, whole', async () => {
  for (let round = 0; round < 5; ++round) {
    const ids = [freshId(), freshId()];
    for (const id of ids) await accepted(id, 'many');
    await map('many', { other: 'toggle' });
    const body = { events: [event(ids[0], '1', 't'), event(ids[1], '1', 't', ['a', 't'])] };
    for (const answer of await Promise.all([1, 2, 3, 4, 5, 6].map(() => send('many', body)))) assert.deepEqual(told(answer), ['unmapped', 'unmapped']);
    const [failed, ...others] = await failedOf('many');
    assert.deepEqual([others.length, failed.count], [0, 6]);
    await map('many', { t: 'toggle' });
    await replayAll('many');
    assert.deepEqual([(await recibo.get(ids[0])).version, (await items(ids[1])).a], [1, 1]);
    assert.equal((await recibo.audit()).code, 0);
  }
});

test('what was left out may turn out to be nothing: ignored, and the failed callback is done', async () => {
  const id = freshId();
  await accepted(id, 'list');
  await map('list', { t: 'toggle' });
  const { word, ...body } = event(id, '1', undefined, ['a', 't'], ['b', 'idle']);
  assert.equal((await send('list', body)).json.disposition, 'partial');
  await map('list', { t: 'toggle', idle: 'ignore' });
  const [failed] = await failedOf('list');
  assert.equal((await replay(failed, { dry_run: true })).json.disposition, 'ignored');
  const done = await replay(failed);
  assert.deepEqual([done.json.disposition, done.json.closed], ['ignored', true], done.text);
  assert.deepEqual(await items(id), { a: 1, b: 0, c: 0 });
});

test('a configuration that was wrong for a while leaves what was left out where it was', async () => {
  const id = freshId();
  await accepted(id, 'many');
  await map('many', { t: 'toggle' });
  const body = { events: [event(id, '1', 't', ['a', 't'], ['b', 'odd'])] };
  assert.equal((await send('many', body)).json.disposition, 'partial');
  for (const each of ['/nothing', '/events/0/results']) {
    await configure('many', (provider) => Object.assign(provider, { events: { t: 'toggle' }, extract: { ...provider.extract, each } }));
    assert.equal((await send('many', body)).status, 422);
  }
  await map('many', { t: 'toggle', odd: 'toggle' });
  const [failed] = await failedOf('many');
  assert.equal((await replay(failed)).json.disposition, 'applied');
  assert.deepEqual([await items(id), (await recibo.get(id)).version], [{ a: 1, b: 1, c: 0 }, 1]);
  for (const one of await failedOf('many')) assert.equal((await discard(one)).status, 200);
});

test('with an unsigned key, what was signed anew of a callback that is understood step by step is that callback', async () => {
  const id = freshId();
  await accepted(id, 'headed');
  await map('headed', { other: 'toggle' });
  const { word, event_id, ...body } = event(id, '1', undefined, ['a', 't'], ['b', 'odd']);
  const text = JSON.stringify(body);
  const verify = recibo.config.providers.headed.verify;
  const [first, second] = [30, 20].map((ago) => {
    const stamp = String(nowSeconds() - ago);
    const headers = [['Content-Type', 'application/json'], ['X-Timestamp', stamp], ['X-Signature', `sha256=${hmac('sha256', verify.secrets[0], [`${stamp}.`, text], 'hex')}`]];
    return (key) => recibo.raw({ target: '/callbacks/headed', headers: [['X-Delivery', key], ...headers], body: text });
  });
  for (const one of [first, second]) assert.equal((await one('d-1')).json.disposition, 'unmapped');
  await map('headed', { t: 'toggle' });
  assert.equal((await first('d-9')).json.disposition, 'partial');
  assert.equal((await second('d-8')).replayed, true);
  assert.deepEqual(await items(id), { a: 1, b: 0, c: 0 });
  await map('headed', { t: 'toggle', odd: 'toggle' });
  await replayAll('headed');
  for (const [one, key] of [[first, 'd-7'], [second, 'd-6'], [second, 'd-1']]) assert.equal((await one(key)).replayed, true, key);
  assert.deepEqual(await items(id), { a: 1, b: 1, c: 0 });
});

stage.ends();
