// Keys that the signature does not cover, accepted by `unsigned: accept`: whoever has seen a request can send its signed bytes
// again under another key, and that must not be another effect.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { Stage, secrets } from '../support/recibo.mjs';
import { hmac, nowSeconds } from '../support/sign.mjs';

// A switch can be thrown again and again, so that a second effect would show.
const workflow = {
  initial: 'off',
  states: { off: { label: 'Off', limit: 'none' }, on: { label: 'On', limit: 'none' }, gone: { label: 'Gone', terminal: true, done: true } },
  transitions: [
    { from: 'off', event: 'switch_on', to: 'on', by: 'provider' },
    { from: 'on', event: 'switch_off', to: 'off', by: 'provider' },
    { from: ['on', 'off'], event: 'scrap', to: 'gone', by: 'provider' },
  ],
};

const braintree = { public: 'public-key', private: 'private-key' };

const stage = await Stage.begin({
  configure(config) {
    config.workflows.switch = workflow;
    const common = { events: { on: 'switch_on', off: 'switch_off', scrapped: 'scrap' }, workflow: 'switch', unmatched: 'park' };
    const extract = { request_id: '/request_id', event: '/status', idempotency_key: { header: 'X-Delivery', unsigned: 'accept' } };
    config.providers.lamp = { ...config.providers.p1, ...common, extract };
    // No time stamp: the signed bytes are good for ever.
    config.providers.timeless = { ...config.providers.github, ...common, extract };
    // Half of the key is signed, half is not.
    config.providers.halves = { ...config.providers.github, ...common, extract: { ...extract, idempotency_key: ['/event_id', { header: 'X-Delivery', unsigned: 'accept' }] } };
    // The signature covers one field of a form, whatever surrounds it.
    config.providers.field = {
      ...common,
      verify: { scheme: 'hmac', algorithm: 'sha256', signature: { from: 'form', name: 'sig', encoding: 'hex' }, content: [{ form: 'payload' }], secrets: ['test-secret-field'] },
      extract: { request_id: { form: 'payload', then: '/request_id' }, event: { form: 'payload', then: '/status' }, idempotency_key: { header: 'X-Delivery', unsigned: 'accept' } },
    };
    config.providers.newline = {
      ...common,
      verify: { scheme: 'braintree', secrets: [`${braintree.public}|${braintree.private}`] },
      extract: { request_id: { form: 'bt_payload', then: '/request_id' }, event: { form: 'bt_payload', then: '/status' }, idempotency_key: { header: 'X-Delivery', unsigned: 'accept' } },
    };
    return config;
  },
});
const { recibo } = stage;

const say = (id, status, more = {}) => JSON.stringify({ request_id: id, event_id: `evt-${status}`, status, ...more });

// One signed request that can be sent under any key.
function signed(name, body, stamp = String(nowSeconds())) {
  const headers =
    name === 'lamp'
      ? [['X-Timestamp', stamp], ['X-Signature', `sha256=${hmac('sha256', secrets.p1, [`${stamp}.`, body], 'hex')}`]]
      : [['X-Hub-Signature-256', `sha256=${hmac('sha256', secrets.github, [body], 'hex')}`]];
  return (key) => recibo.raw({ target: `/callbacks/${name}`, headers: [['Content-Type', 'application/json'], ['X-Delivery', key], ...headers], body });
}

const state = async (id) => (await recibo.get(id)).state;
const look = (answer) => [answer.status, answer.json?.disposition, answer.replayed];

for (const name of ['lamp', 'timeless']) {
  test(`signed bytes of ${name} sent again under another key have no second effect`, async () => {
    const id = freshId();
    await recibo.accepted(id, { provider: name, amount: undefined, currency: undefined });
    const on = signed(name, say(id, 'on'));
    const first = await on('d-1');
    assert.deepEqual(look(first), [200, 'applied', false], first.text);
    assert.deepEqual(look(await signed(name, say(id, 'off'))('d-2')), [200, 'applied', false]);
    assert.equal(await state(id), 'off');
    // d-2 is the key of another callback, which anybody may write as well.
    for (const key of ['d-1', 'd-3', 'd-4', 'd-3', 'd-2']) {
      const again = await on(key);
      assert.deepEqual(look(again), [200, 'applied', true], key);
      assert.equal(again.text, first.text, 'the first answer again, byte for byte');
    }
    assert.equal(await state(id), 'off', 'the light stays off');
    await recibo.expectCounts(id, 2, 2, 0);
    const recorded = await recibo.deliveries(id);
    assert.deepEqual(recorded.map((d) => d.disposition), ['applied', 'applied', ...Array(5).fill('duplicate')], 'each is on record');
    const claimed = await recibo.sql('SELECT count(*)::int AS n FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1', [id]);
    assert.equal(claimed[0].n, 2, 'a replay claims nothing, however many keys it invents');
  });
}

test('new signed bytes are a new callback, and a known key with them is a conflict', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'timeless', amount: undefined, currency: undefined });
  assert.deepEqual(look(await signed('timeless', say(id, 'on', { n: 1 }))('d-1')), [200, 'applied', false]);
  assert.deepEqual(look(await signed('timeless', say(id, 'off', { n: 2 }))('d-2')), [200, 'applied', false]);
  assert.deepEqual(look(await signed('timeless', say(id, 'on', { n: 3 }))('d-3')), [200, 'applied', false], 'the same words in other bytes');
  assert.equal((await signed('timeless', say(id, 'off', { n: 4 }))('d-3')).status, 409);
  assert.equal(await state(id), 'on');
});

test('bytes that were a conflict stay one under a key that nobody has used', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'timeless', amount: undefined, currency: undefined });
  assert.deepEqual(look(await signed('timeless', say(id, 'on', { n: 1 }))('d-1')), [200, 'applied', false]);
  const off = signed('timeless', say(id, 'off', { n: 2 }));
  const first = await off('d-1');
  assert.deepEqual([first.status, first.json.code], [409, 'conflict']);
  for (const key of ['d-2', 'd-3', 'd-1']) {
    const again = await off(key);
    assert.deepEqual([again.status, again.json.code, again.json.delivery_id], [409, 'conflict', first.json.delivery_id], key);
  }
  assert.equal(await state(id), 'on', 'nothing was applied');
  const reviews = await recibo.sql("SELECT r.kind, r.count FROM recibo.reviews r JOIN recibo.operations o ON o.id = r.operation WHERE o.request_id = $1", [id]);
  assert.deepEqual(reviews.map((r) => [r.kind, Number(r.count)]), [['conflict', 4]], 'one review, seen four times');
  // Other bytes that say the same were never refused.
  assert.deepEqual(look(await signed('timeless', say(id, 'off', { n: 3 }))('d-4')), [200, 'applied', false]);
  assert.equal(await state(id), 'off');
});

test('a sender that signs its retry anew is known by its key', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'lamp', amount: undefined, currency: undefined });
  const body = say(id, 'on');
  assert.deepEqual(look(await signed('lamp', body, String(nowSeconds() - 30))('d-1')), [200, 'applied', false]);
  assert.deepEqual(look(await signed('lamp', body, String(nowSeconds()))('d-1')), [200, 'applied', true]);
  await recibo.expectCounts(id, 1, 1, 0);
});

// The switch is on by d-1 and off by d-2; what d-1 said must not put it on again.
const onThenOff = async (id, on) => {
  assert.deepEqual(look(await on('d-1')), [200, 'applied', false]);
  assert.deepEqual(look(await signed('lamp', say(id, 'off'))('d-2')), [200, 'applied', false]);
};

test('a retry that was signed anew is as spent as what it repeats', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'lamp', amount: undefined, currency: undefined });
  const body = say(id, 'on');
  await onThenOff(id, signed('lamp', body, String(nowSeconds() - 30)));
  const retries = [20, 10, 5, 1].map((ago) => signed('lamp', body, String(nowSeconds() - ago)));
  // All at once, so that some are decided by one transaction.
  for (const again of await Promise.all(retries.map((retry) => retry('d-1')))) assert.deepEqual(look(again), [200, 'applied', true]);
  for (const [i, retry] of retries.entries()) {
    for (const key of [`d-${i + 10}`, 'd-2', `d-${i + 10}`]) assert.deepEqual(look(await retry(key)), [200, 'applied', true], key);
  }
  assert.equal(await state(id), 'off');
  await recibo.expectCounts(id, 2, 2, 0);
});

test('so is one that comes under its two keys at once', async () => {
  for (let round = 0; round < 10; ++round) {
    const id = freshId();
    await recibo.accepted(id, { provider: 'lamp', amount: undefined, currency: undefined });
    const body = say(id, 'on');
    await onThenOff(id, signed('lamp', body, String(nowSeconds() - 30)));
    const retry = signed('lamp', body, String(nowSeconds() - 20));
    assert.deepEqual(look(await retry('d-1')), [200, 'applied', true]);
    for (const again of await Promise.all(['d-7', 'd-8', 'd-7', 'd-9'].map((key) => retry(key)))) assert.deepEqual(look(again), [200, 'applied', true]);
    assert.equal(await state(id), 'off');
  }
});

test('so is one that came while its operation was waited for', async () => {
  const id = freshId();
  const body = say(id, 'on');
  const retry = signed('lamp', body, String(nowSeconds() - 20));
  assert.deepEqual(look(await signed('lamp', body, String(nowSeconds() - 30))('d-1')), [202, 'parked', false]);
  assert.deepEqual(look(await retry('d-1')), [202, 'parked', true]);
  assert.deepEqual(look(await signed('lamp', say(id, 'off'))('d-2')), [202, 'parked', false]);
  assert.deepEqual(look(await retry('d-3')), [202, 'parked', true], 'nor does it wait twice');
  await recibo.accepted(id, { provider: 'lamp', amount: undefined, currency: undefined });
  assert.equal(await state(id), 'off');
  assert.deepEqual(look(await retry('d-4')), [200, 'applied', true]);
  assert.equal(await state(id), 'off');
  await recibo.expectCounts(id, 2, 2, 0);
  const waiting = await recibo.sql('SELECT count(*)::int AS n FROM recibo.signed_contents s JOIN recibo.deliveries d ON d.id = s.owner WHERE d.request_id = $1', [id]);
  assert.equal(waiting[0].n, 0, 'what waited no longer does');
});

for (const registered of [true, false]) {
  test(`of two conflicts that say the same in other bytes each stays one${registered ? '' : ', also when they waited'}`, async () => {
    const id = freshId();
    const register = () => recibo.accepted(id, { provider: 'timeless', amount: undefined, currency: undefined });
    if (registered) await register();
    assert.equal((await signed('timeless', say(id, 'on', { n: 1 }))('d-1')).status, registered ? 200 : 202);
    const refused = [2, 3].map((n) => signed('timeless', say(id, 'off', { n })));
    for (const send of refused) assert.equal((await send('d-1')).status, 409);
    for (const [i, send] of refused.entries()) assert.equal((await send(`d-${i + 5}`)).status, 409, 'before');
    if (!registered) await register();
    for (const [i, send] of refused.entries()) assert.equal((await send(`d-${i + 7}`)).status, 409, 'after');
    assert.equal(await state(id), 'on', 'nothing of them was applied');
    await recibo.expectCounts(id, 1, 1, 1);
  });
}

// The map learns a word, or forgets it.
async function map(name, words) {
  recibo.config.providers[name].events = words;
  recibo.write();
  const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
  assert.equal(answer.status, 200, answer.text);
}
const known = { on: 'switch_on', off: 'switch_off', scrapped: 'scrap' };

for (const way of ['a replay', 'a resend', 'a replay that waits', 'a resend that waits']) {
  test(`what failed twice, signed anew, is one callback after ${way}`, async () => {
    const id = freshId();
    const register = () => recibo.accepted(id, { provider: 'lamp', amount: undefined, currency: undefined });
    if (!way.endsWith('waits')) await register();
    const word = `glow-${id}`;
    const body = say(id, word);
    const [first, second, third] = [30, 20, 10].map((ago) => signed('lamp', body, String(nowSeconds() - ago)));
    // The second and third at once: they meet in one transaction, or wait for each other.
    assert.equal((await first('d-1')).json.disposition, 'unmapped');
    for (const answer of await Promise.all([second('d-1'), third('d-1'), second('d-1')])) assert.equal(answer.json.disposition, 'unmapped');
    const [failed] = (await recibo.list('/v1/failed-callbacks?provider=lamp')).filter((f) => f.request_id === id);
    assert.equal(failed.count, 4, 'kept once');
    await map('lamp', { ...known, [word]: 'switch_on' });
    if (way.startsWith('a replay')) {
      const done = await recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended' } });
      assert.deepEqual([done.status, done.json.closed], [200, true], done.text);
    } else {
      assert.ok((await second('d-1')).status < 300);
    }
    if (way.endsWith('waits')) {
      assert.deepEqual(look(await third('d-7')), [202, 'parked', true], 'nor does it wait twice');
      await register();
    }
    assert.equal(await state(id), 'on');
    assert.deepEqual(look(await signed('lamp', say(id, 'off'))('d-2')), [200, 'applied', false]);
    for (const [i, again] of [first, second, third].entries()) {
      for (const key of [`d-${i + 10}`, 'd-2', `d-${i + 10}`]) assert.deepEqual(look(await again(key)), [200, 'applied', true], `${i} ${key}`);
    }
    assert.equal(await state(id), 'off', 'the light stays off');
    await recibo.expectCounts(id, 2, 2, 0);
    const [{ n }] = await recibo.sql('SELECT count(*)::int AS n FROM recibo.signed_contents WHERE owner = $1', [failed.failed_callback_id]);
    assert.equal(n, 0, 'what is done keeps nothing');
    await map('lamp', known);
  });
}

test('what failed and was given up leaves nothing behind', async () => {
  const id = freshId();
  const body = say(id, `lost-${id}`);
  for (const ago of [30, 20]) assert.equal((await signed('lamp', body, String(nowSeconds() - ago))('d-1')).json.disposition, 'unmapped');
  const [failed] = (await recibo.list('/v1/failed-callbacks?provider=lamp')).filter((f) => f.request_id === id);
  const kept = () => recibo.sql('SELECT count(*)::int AS n FROM recibo.signed_contents WHERE owner = $1', [failed.failed_callback_id]);
  assert.equal((await kept())[0].n, 1);
  const given = await recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/discard`, { token: 'ops', body: { reason: 'theirs' } });
  assert.equal(given.status, 200, given.text);
  assert.equal((await kept())[0].n, 0);
});

test('the signed half of a key still tells callbacks apart', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'halves', amount: undefined, currency: undefined });
  const on = signed('halves', say(id, 'on'));
  assert.deepEqual(look(await on('d-1')), [200, 'applied', false]);
  assert.deepEqual(look(await on('d-2')), [200, 'applied', true]);
  assert.deepEqual(look(await signed('halves', say(id, 'off'))('d-1')), [200, 'applied', false]);
});

test('one signature, two spellings: a line feed that may be lost makes no other callback', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'newline', amount: undefined, currency: undefined });
  const key = createHash('sha1').update(braintree.private).digest();
  const signature = (payload) => `${braintree.public}|${hmac('sha1', key, [payload], 'hex')}`;
  const send = (payload, mark, delivery) =>
    recibo.raw({
      target: '/callbacks/newline',
      headers: [['Content-Type', 'application/x-www-form-urlencoded'], ['X-Delivery', delivery]],
      body: new URLSearchParams({ bt_signature: mark, bt_payload: payload }).toString(),
    });
  const on = `${say(id, 'on')}\n`;
  assert.deepEqual(look(await send(on, signature(on), 'd-1')), [200, 'applied', false]);
  const off = `${say(id, 'off')}\n`;
  assert.deepEqual(look(await send(off, signature(off), 'd-2')), [200, 'applied', false]);
  assert.deepEqual(look(await send(on.trimEnd(), signature(on), 'd-3')), [200, 'applied', true]);
  assert.equal(await state(id), 'off');
});

test('bytes around what is signed may change as they like', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'field', amount: undefined, currency: undefined });
  const form = (status, wrap) => {
    const payload = say(id, status);
    return wrap(encodeURIComponent(payload), hmac('sha256', 'test-secret-field', [payload], 'hex'));
  };
  const post = (body, key) => recibo.raw({ target: '/callbacks/field', headers: [['Content-Type', 'application/x-www-form-urlencoded'], ['X-Delivery', key]], body });
  assert.deepEqual(look(await post(form('on', (p, s) => `payload=${p}&sig=${s}`), 'd-1')), [200, 'applied', false]);
  assert.deepEqual(look(await post(form('off', (p, s) => `payload=${p}&sig=${s}`), 'd-2')), [200, 'applied', false]);
  for (const [i, wrap] of [(p, s) => `sig=${s}&payload=${p}`, (p, s) => `x=1&payload=${p.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase()).replace(/%22/g, '"')}&sig=${s}`].entries()) {
    assert.deepEqual(look(await post(form('on', wrap), `d-${i + 3}`)), [200, 'applied', true], String(i));
  }
  assert.equal(await state(id), 'off');
});

test('the same holds for what waits for its operation', async () => {
  const id = freshId();
  const on = signed('timeless', say(id, 'on'));
  assert.equal((await on('d-1')).json.disposition, 'parked');
  assert.equal((await signed('timeless', say(id, 'off'))('d-2')).json.disposition, 'parked');
  assert.equal((await on('d-3')).status, 202);
  await recibo.accepted(id, { provider: 'timeless', amount: undefined, currency: undefined });
  assert.equal(await state(id), 'off');
  await recibo.expectCounts(id, 2, 2, 0);
  assert.deepEqual(look(await on('d-4')), [200, 'applied', true]);
  assert.equal(await state(id), 'off');
});

test('what waits is not driven out by a replay under its key, and a conflict that waits stays one', async () => {
  const id = freshId();
  const on = signed('timeless', say(id, 'on'));
  const off = signed('timeless', say(id, 'off'));
  const first = await on('d-1');
  assert.deepEqual(look(first), [202, 'parked', false]);
  // Somebody who has seen it sends it under the key that the next one will have.
  const replay = await on('d-2');
  assert.deepEqual([...look(replay), replay.json.delivery_id], [202, 'parked', true, first.json.delivery_id]);
  assert.deepEqual(look(await off('d-2')), [202, 'parked', false], 'the next one is no conflict');
  const scrap = signed('timeless', say(id, 'scrapped'));
  const refused = await scrap('d-1');
  assert.equal(refused.status, 409);
  const again = await scrap('d-9');
  assert.deepEqual([again.status, again.json.delivery_id], [409, refused.json.delivery_id]);
  await recibo.accepted(id, { provider: 'timeless', amount: undefined, currency: undefined });
  assert.equal(await state(id), 'off');
  await recibo.expectCounts(id, 2, 2, 1);
  assert.equal((await scrap('d-10')).status, 409, 'nor is it applied later');
  assert.equal(await state(id), 'off');
});

stage.ends();
