// Concurrent copies, order of arrival, keys and what they claim: one key, one effect, and only legal moves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { likeB0, likeB1 } from '../support/bodies.mjs';
import { Random, freshId, seed } from '../support/random.mjs';
import { RawConnection } from '../support/raw.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';
import { sha256Hex } from '../support/sign.mjs';

const stage = await Stage.begin();
const { recibo } = stage;

// Sends the same bytes on `count` connections, released together by their last byte.
async function together(count, bytes) {
  const connections = await Promise.all(Array.from({ length: count }, () => RawConnection.open(recibo.service.callbacks)));
  for (const connection of connections) connection.write(bytes.subarray(0, -1));
  for (const connection of connections) connection.write(bytes.subarray(-1));
  const answers = await Promise.all(connections.map((connection) => connection.response()));
  for (const connection of connections) connection.destroy();
  for (const answer of answers) recibo.exchanges.add('callbacks', 'POST', '/callbacks/p1', answer);
  return answers;
}

test('S01 fifty copies at once: one is applied, the others replay it', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const body = likeB0(id, freshId('evt'));
  const answers = await together(50, recibo.bytes('p1', body));
  assert.ok(answers.every((a) => a.status === 200 || isSendAgain(a)), JSON.stringify(answers.map((a) => a.status)));
  const done = answers.filter((a) => a.status === 200);
  for (let refused = 50 - done.length; refused > 0; --refused) done.push(await recibo.deliver('p1', body));
  const first = done.filter((a) => !a.replayed);
  assert.ok(first.length <= 1, 'one at most is not a replay');
  if (answers.every((a) => a.status === 200)) assert.equal(first.length, 1);
  const [text] = done.map((a) => a.text);
  assert.ok(done.every((a) => a.text === text), 'every answer is the first one, byte for byte');
  const { delivery_id: delivery, request_id: request, disposition, state } = JSON.parse(text);
  assert.deepEqual([request, disposition, state], [id, 'applied', 'completed']);
  const recorded = await recibo.deliveries(id);
  assert.ok(recorded.length >= 50, `each authentic delivery is on record, not ${recorded.length}`);
  assert.deepEqual(recorded.filter((d) => d.disposition === 'applied').map((d) => d.id), [delivery]);
  assert.ok(recorded.every((d) => d.disposition === 'applied' || d.disposition === 'duplicate'));
  await recibo.expectCounts(id, 1, 1, 0);
});

test('fifty copies for ten operations at once do not mix', async () => {
  const ids = Array.from({ length: 10 }, () => freshId());
  for (const id of ids) await recibo.accepted(id);
  const bodies = ids.map((id) => likeB0(id, 'evt-same'));
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => recibo.callback('p1', bodies[i % 10])));
  for (const [i, answer] of answers.entries()) {
    assert.ok(answer.status === 200 || isSendAgain(answer), answer.text);
    if (answer.status === 200) assert.equal(answer.json.request_id, ids[i % 10]);
  }
  for (const [i, id] of ids.entries()) {
    const last = await recibo.deliver('p1', bodies[i]);
    assert.deepEqual([last.status, last.replayed], [200, true]);
    await recibo.expectCounts(id, 1, 1, 0);
  }
});

test('S03 older news after newer is stale and changes nothing', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const started = await recibo.callback('p1', callbackBody(id, 'evt-29', 'processing', { occurred_at: '2026-10-01T09:59:00Z' }));
  assert.deepEqual([started.status, started.json.disposition, started.json.state], [200, 'applied', 'processing']);
  const before = await recibo.counts(id);
  const newer = await recibo.callback('p1', callbackBody(id, 'evt-31', 'succeeded', { occurred_at: '2026-10-01T10:00:05Z' }));
  assert.deepEqual([newer.status, newer.json.disposition, newer.json.state], [200, 'applied', 'completed']);
  const older = await recibo.callback('p1', callbackBody(id, 'evt-30', 'processing', { occurred_at: '2026-10-01T10:00:01Z' }));
  assert.deepEqual([older.status, older.json.disposition, older.json.state], [200, 'stale', 'completed']);
  assert.equal(older.replayed, false);
  const after = await recibo.counts(id);
  assert.deepEqual([after.A - before.A, after.N - before.N, after.V], [1, 1, 0]);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.terminal, operation.done, operation.version, operation.review_open], ['completed', true, true, 2, false]);
});

test("the table decides, not the sender's clock: a move that it allows is applied although its event time is older", async () => {
  const id = freshId();
  await recibo.accepted(id);
  assert.equal((await recibo.callback('p1', callbackBody(id, 'a', 'processing', { occurred_at: '2026-10-01T10:00:05Z' }))).json.disposition, 'applied');
  const earlier = await recibo.callback('p1', callbackBody(id, 'b', 'succeeded', { occurred_at: '2026-10-01T10:00:01Z' }));
  assert.deepEqual([earlier.status, earlier.json.disposition, earlier.json.state], [200, 'applied', 'completed']);
  await recibo.expectCounts(id, 2, 2, 0);
});

test('the same news under another key is redundant, and a contradiction opens one review beside the state', async () => {
  const id = freshId();
  await recibo.accepted(id);
  assert.equal((await recibo.callback('p1', callbackBody(id, 'a'))).json.disposition, 'applied');
  const again = await recibo.callback('p1', callbackBody(id, 'b'));
  assert.deepEqual([again.status, again.json.disposition, again.json.state], [200, 'redundant', 'completed']);
  const against = await recibo.callback('p1', callbackBody(id, 'c', 'failed', { occurred_at: '2026-10-01T10:01:00Z' }));
  assert.deepEqual([against.status, against.json.disposition, against.json.state], [200, 'review', 'completed']);
  const replay = await recibo.callback('p1', callbackBody(id, 'c', 'failed', { occurred_at: '2026-10-01T10:01:00Z' }));
  assert.deepEqual([replay.status, replay.replayed, replay.text], [200, true, against.text]);
  await recibo.expectCounts(id, 1, 1, 1);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.review_open, operation.version], ['completed', true, 1]);
});

test('S04 same key, other amount: the first stands, the other is a visible conflict', async () => {
  const id = freshId();
  const event = freshId('evt');
  const [first, other] = [likeB0(id, event), likeB1(id, event)];
  await recibo.accepted(id);
  const applied = await recibo.callback('p1', first);
  assert.deepEqual([applied.status, applied.json.disposition], [200, 'applied']);
  const conflict = await recibo.callback('p1', other);
  assert.deepEqual([conflict.status, conflict.json.code, conflict.json.retryable], [409, 'conflict', false]);
  const replay = await recibo.callback('p1', first);
  assert.deepEqual([replay.status, replay.replayed, replay.text], [200, true, applied.text], 'a conflict does not poison the key');
  const again = await recibo.callback('p1', other);
  assert.deepEqual([again.status, again.json.code], [409, 'conflict']);
  await recibo.expectCounts(id, 1, 1, 1);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.amount, operation.currency, operation.state, operation.review_open], ['19.99', 'EUR', 'completed', true]);

  // One item, and both bodies and digests can be reached from it.
  const open = (await recibo.list('/v1/reviews')).filter((one) => one.request_id === id);
  assert.equal(open.length, 1);
  const shown = await recibo.api('GET', `/v1/reviews/${open[0].review_id ?? open[0].id}`);
  assert.equal(shown.status, 200, shown.text);
  assert.equal(shown.json.kind, 'conflict');
  assert.equal(shown.json.count, 2, 'the second copy raises the count');
  for (const [delivery, body] of [[applied.json.delivery_id, first], [conflict.json.delivery_id, other]]) {
    assert.ok(shown.text.includes(delivery), `the review names the delivery ${delivery}`);
    const payload = await recibo.api('GET', `/v1/deliveries/${delivery}/payload`);
    assert.equal(payload.status, 200, payload.text);
    assert.equal(payload.body.toString('utf8'), body);
    const detail = await recibo.api('GET', `/v1/deliveries/${delivery}`);
    assert.ok(detail.text.includes(sha256Hex(body)), `the delivery shows the digest of its body: ${detail.text}`);
  }
});

test('the key "1" at two operations of one provider is two keys', async () => {
  const ids = [freshId(), freshId()];
  for (const id of ids) await recibo.accepted(id);
  for (const id of ids) {
    const answer = await recibo.callback('p1', callbackBody(id, '1'));
    assert.deepEqual([answer.status, answer.replayed, answer.json.disposition, answer.json.request_id], [200, false, 'applied', id]);
  }
});

test('another amount or currency than registered goes to review and is not applied', async () => {
  for (const [more, kind] of [[{ amount: '19.98' }, 'amount_mismatch'], [{ currency: 'USD' }, 'currency_mismatch']]) {
    const id = freshId();
    await recibo.accepted(id);
    const answer = await recibo.callback('p1', callbackBody(id, '1', 'succeeded', more));
    assert.deepEqual([answer.status, answer.json.disposition, answer.json.state], [200, 'review', 'accepted'], kind);
    await recibo.expectCounts(id, 0, 0, 1);
    const [review] = (await recibo.list('/v1/reviews')).filter((one) => one.request_id === id);
    assert.equal(review.kind, kind);
  }
});

test('the same amount written otherwise is the same amount', async () => {
  for (const amount of ['19.990', 19.99, '19.99']) {
    const id = freshId();
    await recibo.accepted(id);
    const answer = await recibo.callback('p1', callbackBody(id, '1', 'succeeded', { amount }));
    assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied'], String(amount));
  }
});

test('an event that is not in the map is unmapped: kept, counted, no key claimed', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const body = callbackBody(id, '1', 'exploded');
  const first = await recibo.callback('p1', body);
  assert.deepEqual([first.status, first.json.disposition], [202, 'unmapped']);
  const again = await recibo.callback('p1', body);
  assert.equal(again.status, 202);
  await recibo.expectCounts(id, 0, 0, 0);
  const kept = await recibo.sql('SELECT count, disposition FROM recibo.failed_callbacks WHERE body_digest = $1', [Buffer.from(sha256Hex(body), 'hex')]);
  assert.deepEqual(kept, [{ count: 2, disposition: 'unmapped' }]);
  const good = await recibo.callback('p1', callbackBody(id, '1'));
  assert.deepEqual([good.status, good.json.disposition, good.replayed], [200, 'applied', false], 'the key was free');
});

test('an unknown operation is 404 where the provider is told to reject', async () => {
  const id = freshId();
  const before = await recibo.everything();
  const answer = await recibo.callback('strict', callbackBody(id, '1'));
  assert.deepEqual([answer.status, answer.json.code, answer.json.retryable], [404, 'unknown_operation', false]);
  assert.deepEqual(await recibo.everything(), before, 'a count only');
  await recibo.accepted(id, { provider: 'strict' });
  const later = await recibo.callback('strict', callbackBody(id, '1'));
  assert.deepEqual([later.status, later.json.disposition, later.replayed], [200, 'applied', false]);
});

test("a callback that carries only the provider's reference finds its operation", async () => {
  const id = freshId();
  const reference = freshId('ref');
  await recibo.accepted(id, { provider: 'desk', reference });
  const body = JSON.stringify({ reference, event_id: '1', status: 'succeeded' });
  const answer = await recibo.callback('desk', body);
  assert.deepEqual([answer.status, answer.json?.disposition, answer.json?.request_id], [200, 'applied', id], answer.text);
});

test('S06 resent after a restart: replays of the first answer', async () => {
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id);
  const first = await recibo.callback('p1', body);
  assert.deepEqual([first.status, first.json.disposition, first.replayed], [200, 'applied', false]);
  await recibo.restart();
  for (let i = 0; i < 3; ++i) {
    const again = await recibo.callback('p1', body);
    assert.deepEqual([again.status, again.replayed, again.text], [200, true, first.text]);
    assert.equal(again.json.delivery_id, first.json.delivery_id);
  }
  const deliveries = (await recibo.timeline(id)).filter((entry) => entry.kind === 'delivery');
  assert.deepEqual(deliveries.map((entry) => entry.disposition), ['applied', 'duplicate', 'duplicate', 'duplicate']);
  assert.equal(deliveries[0].delivery_id, first.json.delivery_id);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('in any order and repetition, each operation ends where the table leads', async () => {
  const random = new Random(seed, 'orders');
  await Promise.all(
    Array.from({ length: 24 }, async () => {
      const id = freshId();
      await recibo.accepted(id);
      const events = [
        callbackBody(id, 'p', 'processing', { occurred_at: '2026-10-01T10:00:00Z' }),
        callbackBody(id, 's', 'succeeded', { occurred_at: '2026-10-01T10:00:05Z' }),
        callbackBody(id, 't', 'succeeded', { occurred_at: '2026-10-01T10:00:06Z' }),
      ];
      const sent = random.shuffle([...events, ...events, random.pick(events)]);
      const answers = [];
      for (const body of sent) answers.push(await recibo.deliver('p1', body));
      const keys = new Map();
      for (const [i, answer] of answers.entries()) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.replayed, keys.has(sent[i]), `only a repetition is a replay (${sent.map((b) => JSON.parse(b).event_id).join('')})`);
        if (!keys.has(sent[i])) keys.set(sent[i], answer.text);
        assert.equal(answer.text, keys.get(sent[i]));
      }
      const moves = sent.map((b) => JSON.parse(b).status).indexOf('processing') < sent.map((b) => JSON.parse(b).status).indexOf('succeeded') ? 2 : 1;
      await recibo.expectCounts(id, moves, moves, 0);
      const operation = await recibo.get(id);
      assert.deepEqual([operation.state, operation.version], ['completed', moves]);
      assert.equal((await recibo.deliveries(id)).length, sent.length);
    }),
  );
});

test('two replicas share nothing but the database: copies at both are one effect', async () => {
  const first = recibo.service;
  const second = await recibo.serve();
  const ids = Array.from({ length: 10 }, () => freshId());
  for (const id of ids) await recibo.accepted(id);
  const sends = [];
  for (const id of ids) {
    for (const service of [first, second, first, second]) {
      recibo.service = service;
      sends.push(recibo.callback('p1', likeB0(id, 'evt-1')));
    }
  }
  const answers = await Promise.all(sends);
  for (const answer of answers) assert.ok(answer.status === 200 || isSendAgain(answer), answer.text);
  for (const [i, id] of ids.entries()) {
    const done = answers.slice(i * 4, i * 4 + 4).filter((a) => a.status === 200);
    assert.ok(done.filter((a) => !a.replayed).length <= 1);
    assert.equal(new Set(done.map((a) => a.text)).size <= 1, true);
    await recibo.deliver('p1', likeB0(id, 'evt-1'));
    await recibo.expectCounts(id, 1, 1, 0);
  }
  const ended = await first.stop();
  assert.equal(ended.code, 0);
});

stage.ends();
