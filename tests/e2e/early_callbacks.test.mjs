// Callbacks ahead of their operation, and callbacks of another provider: kept, applied once when the operation appears, and
// never for anybody else's.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { Random, freshId, seed } from '../support/random.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';

const stage = await Stage.begin();
const { recibo } = stage;

const parkedOf = (provider, requestId) => recibo.sql('SELECT disposition, duplicates FROM recibo.parked WHERE provider = $1 AND request_id = $2 ORDER BY id', [provider, requestId]);

test('S02 a callback before its registration is kept, and applied when the operation appears', async () => {
  const id = freshId();
  const body = JSON.stringify({ request_id: id, event_id: 'evt-2001', status: 'succeeded', occurred_at: '2026-10-01T10:00:00Z' });
  const early = await recibo.callback('p1', body);
  assert.deepEqual([early.status, early.json.disposition, early.json.request_id, early.replayed], [202, 'parked', id, false]);
  assert.equal((await parkedOf('p1', id)).length, 1);
  assert.equal((await recibo.api('GET', `/v1/operations/${id}`)).status, 404, 'a parked callback is no operation');
  await sleep(2_000);
  const accepted = await recibo.register(id);
  assert.equal(accepted.status, 201);
  assert.ok(['accepted', 'completed'].includes(accepted.json.state), 'the true present state');
  await until('applied without help', async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
  await recibo.expectCounts(id, 1, 1, 0, 0);
  const again = await recibo.callback('p1', body);
  assert.deepEqual([again.status, again.replayed, again.json.disposition, again.json.delivery_id, again.json.state], [200, true, 'applied', early.json.delivery_id, 'completed']);
  await recibo.expectCounts(id, 1, 1, 0, 0);
  const entries = await recibo.timeline(id);
  assert.ok(entries.some((entry) => entry.kind === 'delivery' && entry.delivery_id === early.json.delivery_id));
});

test('while it is parked, the same again is a replay, and another content a conflict', async () => {
  const id = freshId();
  const early = await recibo.callback('p1', callbackBody(id, '1'));
  assert.deepEqual([early.status, early.json.disposition], [202, 'parked']);
  const again = await recibo.callback('p1', callbackBody(id, '1'));
  assert.deepEqual([again.replayed, again.json.delivery_id], [true, early.json.delivery_id]);
  assert.ok(again.status === 202 || again.status === 200);
  const other = await recibo.callback('p1', callbackBody(id, '1', 'failed'));
  assert.deepEqual([other.status, other.json.code], [409, 'conflict']);
  await recibo.accepted(id);
  await until('the first one is applied', async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
  await recibo.expectCounts(id, 1, 1, 1, 0);
});

test('several parked callbacks of one operation are applied in the order that they came', async () => {
  const id = freshId();
  for (const [key, status] of [['1', 'processing'], ['2', 'succeeded'], ['3', 'failed']]) {
    assert.equal((await recibo.callback('p1', callbackBody(id, key, status))).status, 202);
  }
  await recibo.accepted(id);
  await until('completed', async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
  await recibo.expectCounts(id, 2, 2, 1, 0);
  const moves = (await recibo.timeline(id)).filter((entry) => entry.kind === 'transition').map(({ from, to }) => [from, to]);
  assert.deepEqual(moves, [['accepted', 'processing'], ['processing', 'completed']]);
});

test('fifty copies of an early callback at once are one', async () => {
  const id = freshId();
  const answers = await Promise.all(Array.from({ length: 50 }, () => recibo.callback('p1', callbackBody(id, '1'))));
  assert.ok(answers.every((a) => a.status === 202 || isSendAgain(a)), JSON.stringify(answers.map((a) => a.status)));
  const kept = answers.filter((a) => a.status === 202);
  assert.equal(new Set(kept.map((a) => a.json.delivery_id)).size, 1);
  assert.equal(kept.filter((a) => !a.replayed).length, 1);
  assert.equal((await parkedOf('p1', id)).length, 1);
  await recibo.accepted(id);
  await until('applied', async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
  await recibo.expectCounts(id, 1, 1, 0, 0);
});

test('registration and callback at the same moment never miss each other, on two replicas', async () => {
  const random = new Random(seed, 'moments');
  const first = recibo.service;
  const second = await recibo.serve();
  const ids = Array.from({ length: 60 }, () => freshId());
  await Promise.all(
    ids.map(async (id) => {
      const register = async () => {
        await sleep(random.int(20));
        recibo.service = random.pick([first, second]);
        await until('accepted', async () => (await recibo.register(id)).status < 300);
      };
      const call = async () => {
        await sleep(random.int(20));
        recibo.service = random.pick([first, second]);
        const answer = await recibo.deliver('p1', callbackBody(id, '1'));
        assert.ok(answer.status === 200 || answer.status === 202, answer.text);
      };
      await Promise.all([register(), call(), call()]);
    }),
  );
  for (const id of ids) {
    await until(`${id} is completed`, async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
    await recibo.expectCounts(id, 1, 1, 0, 0);
  }
  recibo.service = second;
  assert.equal((await first.stop()).code, 0);
});

test('S05 the key "1" three times, and a recorded request at another provider', async () => {
  const ids = [freshId(), freshId(), freshId()];
  const names = ['p1', 'p2', 'p3'];
  for (const [i, name] of names.entries()) await recibo.accepted(ids[i], { provider: name });
  const recorded = recibo.request('p1', callbackBody(ids[0], '1'));
  const answers = [await recibo.raw(recorded), await recibo.callback('p2', callbackBody(ids[1], '1')), await recibo.callback('p3', callbackBody(ids[2], '1'))];
  for (const [i, answer] of answers.entries()) {
    assert.deepEqual([answer.status, answer.replayed, answer.json.disposition, answer.json.request_id], [200, false, 'applied', ids[i]]);
  }
  const before = await recibo.get(ids[0]);
  const foreign = await recibo.raw({ ...recorded, target: '/callbacks/p3' });
  assert.deepEqual([foreign.status, foreign.json.disposition, foreign.replayed], [202, 'parked', false], foreign.text);
  assert.equal(foreign.text.includes('completed'), false, "none of the other's data");
  assert.equal((await parkedOf('p3', ids[0])).length, 1);
  assert.deepEqual(await recibo.get(ids[0]), before, "the last touches nothing of p1's");
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0, 0);
});

test('a callback parked at another provider is not applied when the ID is registered at this one', async () => {
  const id = freshId();
  assert.equal((await recibo.callback('p3', callbackBody(id, '1'))).status, 202);
  await recibo.accepted(id);
  await sleep(1_500);
  assert.equal((await recibo.get(id)).state, 'accepted');
  await recibo.expectCounts(id, 0, 0, 0, 0);
  assert.equal((await parkedOf('p3', id)).length, 1, 'it stays, visibly');
  const own = await recibo.callback('p1', callbackBody(id, '1'));
  assert.deepEqual([own.status, own.json.disposition, own.replayed], [200, 'applied', false]);
});

test('a parked callback with only a reference is applied when the reference is learned', async () => {
  for (const how of ['at registration', 'by an event']) {
    const [id, reference] = [freshId(), freshId('ref')];
    const early = await recibo.callback('desk', JSON.stringify({ reference, event_id: '1', status: 'succeeded' }));
    assert.deepEqual([early.status, early.json.disposition], [202, 'parked'], early.text);
    if (how === 'at registration') await recibo.accepted(id, { provider: 'desk', reference });
    else {
      await recibo.accepted(id, { provider: 'desk' });
      const learned = await recibo.event(id, { event: 'submitted', references: [reference] });
      assert.equal(learned.status, 200, learned.text);
    }
    await until(`applied (${how})`, async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
    await recibo.expectCounts(id, 1, 1, 0, 0);
    const again = await recibo.callback('desk', JSON.stringify({ reference, event_id: '1', status: 'succeeded' }));
    assert.deepEqual([again.status, again.replayed, again.json.request_id, again.json.disposition], [200, true, id, 'applied']);
  }
});

test('a mismatch with the intent is found when the operation appears, too', async () => {
  const id = freshId();
  assert.equal((await recibo.callback('p1', callbackBody(id, '1', 'succeeded', { amount: '1.00' }))).status, 202);
  await recibo.accepted(id);
  await until('a review', async () => (await recibo.get(id)).review_open === true, { timeout: 30_000 });
  await recibo.expectCounts(id, 0, 0, 1, 0);
  assert.equal((await recibo.get(id)).state, 'accepted');
});

test('what nobody registers stays visible with its age, through a restart', async () => {
  const id = freshId();
  const early = await recibo.callback('p1', callbackBody(id, '1'));
  await recibo.restart('kill');
  const listed = await recibo.list(`/v1/deliveries?disposition=parked&request_id=${id}`);
  assert.deepEqual(listed.map((one) => one.delivery_id), [early.json.delivery_id]);
  const age = await until('its age is a metric', async () => (await recibo.metric('recibo_oldest_age_seconds', { queue: 'parked' })) || null, { timeout: 30_000 });
  assert.ok(age > 0 && age < 600);
  await recibo.accepted(id);
  await until('applied', async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
  await recibo.expectCounts(id, 1, 1, 0, 0);
});

stage.ends();
