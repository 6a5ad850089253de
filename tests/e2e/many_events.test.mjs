// Many events in one request (R41): each has its own operation, key and disposition, all are recorded before the one answer, and
// a resend of the request repeats it byte for byte.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { Random, freshId, seed } from '../support/random.mjs';
import { Stage, isSendAgain } from '../support/recibo.mjs';

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    config.providers.many = { ...p1, extract: { ...p1.extract, each: '/events', reference: '/reference' } };
    config.providers.elsewhere = { ...config.providers.many, extract: { ...config.providers.many.extract, each: '/events' } };
    // The body itself is the list; each element wraps its event.
    config.providers.list = {
      ...p1,
      extract: Object.fromEntries([...Object.entries(p1.extract).map(([k, v]) => [k, `/data${v}`]), ['each', '']]),
    };
    config.providers.nested = { ...p1, extract: { ...p1.extract, each: '/entry/*/changes/*/value' } };
    config.providers.strictly = { ...config.providers.many, unmatched: 'reject' };
    config.providers.registering = { ...config.providers.many, unmatched: 'register' };
    // The delivery's ID stands in a header: it names all events of the request.
    config.providers.headed = { ...config.providers.many, extract: { ...config.providers.many.extract, idempotency_key: { header: 'X-Delivery', unsigned: 'accept' } } };
    config.providers.mixed = { ...config.providers.many, events: { ...p1.events, opened: 'ignore' } };
    config.providers.batches = { ...config.providers.many, extract: { ...config.providers.many.extract, items: { each: '/results', item_id: '/id', event: '/status' } } };
    config.providers.ordered = { ...config.providers.many, order: 'sequence', extract: { ...config.providers.many.extract, sequence: '/seq' } };
    return config;
  },
});
const { recibo } = stage;
const event = (request_id, event_id, status = 'succeeded', more = {}) => ({ request_id, event_id, status, amount: '19.99', currency: 'EUR', occurred_at: '2026-10-01T10:00:00Z', ...more });
const body = (...events) => JSON.stringify({ events });
const send = (name, text, more = {}) => recibo.callback(name, text, { secret: 'test-secret-A', ...more });
const told = (answer) => answer.json.events.map((e) => [e.request_id, e.disposition, e.state]);
const accepted = async (name, ...ids) => { for (const id of ids) await recibo.accepted(id, { provider: name }); };

test('events in lists within lists are read all', async () => {
  const ids = [freshId(), freshId(), freshId()];
  await accepted('nested', ...ids);
  const [a, b, c] = ids.map((id, i) => event(id, '1', ['succeeded', 'processing', 'failed'][i]));
  const answer = await send('nested', JSON.stringify({ entry: [{ changes: [{ value: [a, b] }, { other: [] }] }, { changes: [{ value: c }] }] }));
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied'], answer.text);
  assert.deepEqual(told(answer), [[ids[0], 'applied', 'completed'], [ids[1], 'applied', 'processing'], [ids[2], 'applied', 'failed']]);
  for (const nothing of [{ entry: [] }, { entry: [{ changes: [] }] }, { entry: [{ changes: [{ value: [] }] }] }]) {
    const empty = await send('nested', JSON.stringify(nothing));
    assert.deepEqual([empty.status, empty.json.disposition], [200, 'ignored'], empty.text);
  }
  assert.equal((await send('nested', JSON.stringify({ entries: [] }))).status, 422);
});

test('each event moves its own operation, and the request sent again is a replay', async () => {
  const ids = [freshId(), freshId(), freshId()];
  await accepted('many', ...ids);
  const text = body(event(ids[0], '1'), event(ids[1], '1', 'processing'), event(ids[2], '1', 'failed'));
  const first = await send('many', text);
  assert.deepEqual([first.status, first.replayed, first.json.disposition], [200, false, 'applied'], first.text);
  assert.deepEqual(told(first), [[ids[0], 'applied', 'completed'], [ids[1], 'applied', 'processing'], [ids[2], 'applied', 'failed']]);
  assert.equal(new Set(first.json.events.map((e) => e.delivery_id)).size, 3, 'each is a delivery of its own');
  for (let copy = 0; copy < 3; ++copy) {
    const again = await send('many', text);
    assert.deepEqual([again.status, again.replayed, again.text], [200, true, first.text]);
  }
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0);
  // The body is kept once, and found from each of them.
  for (const { delivery_id: delivery } of first.json.events) {
    const payload = await recibo.api('GET', `/v1/deliveries/${delivery}/payload`);
    assert.deepEqual([payload.status, payload.body.toString()], [200, text]);
  }
  const [{ count }] = await recibo.sql('SELECT count(*)::int AS count FROM recibo.payloads WHERE body = $1', [Buffer.from(text)]);
  assert.equal(count, 1);
  const recorded = await recibo.deliveries(ids[0]);
  assert.deepEqual(recorded.map((d) => d.disposition), ['applied', 'duplicate', 'duplicate', 'duplicate']);
  assert.equal(new Set(recorded.map((d) => d.payload)).size, 1);
});

test('some of them bad: the others are applied, the answer tells each, and a resend is the same to the byte', async () => {
  const ids = [freshId(), freshId(), freshId()];
  await accepted('many', ...ids);
  const unknown = freshId();
  const text = body(event(ids[0], '1'), event(ids[1], '1', 'odd'), { event_id: '1', status: 'succeeded' }, event(unknown, '1'), event(ids[2], '1'), 'text');
  const first = await send('many', text);
  assert.deepEqual([first.status, first.json.disposition, first.replayed], [200, 'partial', false], first.text);
  assert.deepEqual(first.json.events.map((e) => e.disposition), ['applied', 'unmapped', 'unprocessable', 'parked', 'applied', 'unprocessable']);
  const [{ count }] = await recibo.sql("SELECT count(*)::int AS count FROM recibo.failed_callbacks WHERE provider = 'many'");
  assert.equal(count, 1, 'the request is kept once');
  const again = await send('many', text);
  assert.deepEqual([again.status, again.replayed, again.text], [200, true, first.text]);
  const [failed] = await recibo.list('/v1/failed-callbacks?provider=many');
  assert.equal(failed.count, 2);
  // What waited is applied when its operation is registered, and the answer says so from then on.
  await accepted('many', unknown);
  await until('it is applied', async () => (await recibo.get(unknown)).state === 'completed', { timeout: 30_000 });
  const later = await send('many', text);
  assert.deepEqual(later.json.events.map((e) => e.disposition), ['applied', 'unmapped', 'unprocessable', 'applied', 'applied', 'unprocessable']);
  // The cause is mended: only what was left is applied.
  const before = await recibo.everything();
  recibo.config.providers.many.events = { ...recibo.config.providers.many.events, odd: 'fail' };
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  const replay = (more = {}) => recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended', ...more } });
  const asked = await replay({ dry_run: true });
  assert.deepEqual([asked.status, asked.json.events.map((e) => e.disposition)], [200, ['applied', 'unprocessable', 'unprocessable']], asked.text);
  assert.equal((await recibo.everything()).transitions, before.transitions);
  const replayed = await replay();
  assert.deepEqual([replayed.status, replayed.json.disposition, replayed.json.closed], [200, 'partial', false], replayed.text);
  assert.deepEqual(replayed.json.events.map((e) => [e.request_id, e.disposition]), [[ids[1], 'applied'], [null, 'unprocessable'], [null, 'unprocessable']]);
  const mended = await send('many', text);
  assert.deepEqual(mended.json.events.map((e) => e.disposition), ['applied', 'applied', 'unprocessable', 'applied', 'applied', 'unprocessable']);
  assert.deepEqual([(await recibo.get(ids[1])).state, (await recibo.everything()).transitions - before.transitions], ['failed', 1]);
  // Two that nobody can mend: a second replay tries them alone, and a person gives them up.
  assert.deepEqual((await replay()).json.events.map((e) => e.disposition), ['unprocessable', 'unprocessable']);
  const given = await recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/discard`, { token: 'ops', body: { reason: 'no event' } });
  assert.equal(given.status, 200, given.text);
  recibo.config.providers.many.events = { processing: 'progress', succeeded: 'complete', failed: 'fail' };
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
});

test('a request of which nothing was understood is replayed event by event, known and unknown operations alike', async () => {
  const ids = [freshId(), freshId(), freshId()];
  await accepted('elsewhere', ids[0], ids[1]);
  const text = JSON.stringify({ data: { list: [event(ids[0], '1'), event(ids[1], '1', 'failed'), event(ids[2], '1'), event(ids[0], '1')] } });
  const first = await send('elsewhere', text);
  assert.deepEqual([first.status, first.json.disposition], [422, undefined], first.text);
  const [failed] = await recibo.list('/v1/failed-callbacks?provider=elsewhere');
  recibo.config.providers.elsewhere.extract.each = '/data/list';
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  // Three at once: what one has decided the others find decided.
  const answers = await Promise.all([1, 2, 3].map(() => recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended' } })));
  for (const answer of answers) assert.equal(answer.status, 200, answer.text);
  assert.equal((await recibo.list('/v1/failed-callbacks?provider=elsewhere')).length, 0, 'it is done');
  assert.deepEqual([(await recibo.get(ids[0])).state, (await recibo.get(ids[1])).state], ['completed', 'failed']);
  await accepted('elsewhere', ids[2]);
  assert.equal((await recibo.get(ids[2])).state, 'completed', 'what was parked by the replay met its operation');
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0);
  const again = await send('elsewhere', text);
  assert.deepEqual([again.status, again.replayed, again.json.events.map((e) => e.disposition)], [200, true, ['applied', 'applied', 'applied', 'applied']], again.text);
});

test('S04 in a list: another content under a key is a conflict of that event alone', async () => {
  const ids = [freshId(), freshId()];
  await accepted('many', ...ids);
  await send('many', body(event(ids[0], 'same')));
  const answer = await send('many', body(event(ids[0], 'same', 'failed'), event(ids[1], 'other')));
  assert.deepEqual([answer.status, answer.json.disposition, told(answer).map((t) => t[1])], [200, 'partial', ['conflict', 'applied']]);
  await recibo.expectCounts(ids[0], 1, 1, 1);
  const alone = await send('many', body(event(ids[0], 'same', 'failed')));
  assert.deepEqual([alone.status, alone.json.code], [409, 'conflict'], 'where all are one, the answer is that of one');
});

test('S01 in a list: one key twice in one request has one effect', async () => {
  const id = freshId();
  await accepted('many', id);
  const answer = await send('many', body(event(id, '1'), event(id, '1')));
  assert.deepEqual([answer.status, told(answer)], [200, [[id, 'applied', 'completed'], [id, 'applied', 'completed']]]);
  assert.equal(answer.json.events[0].delivery_id, answer.json.events[1].delivery_id);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('S03 in a list: events of one operation are looked at together', async () => {
  // In any order that tells a story.
  for (const order of [['processing', 'succeeded'], ['succeeded', 'processing']]) {
    const id = freshId();
    await accepted('many', id);
    const answer = await send('many', body(...order.map((status) => event(id, status, status))));
    assert.deepEqual([answer.json.disposition, answer.json.events.map((e) => e.disposition)], ['applied', ['applied', 'applied']], answer.text);
    await recibo.expectCounts(id, 2, 2, 0);
    assert.equal((await recibo.get(id)).state, 'completed');
  }
  // A list that contradicts itself: a person decides, and nothing of it is applied.
  const id = freshId(), other = freshId();
  await accepted('many', id, other);
  const text = body(event(id, 'a'), event(other, '1'), event(id, 'b', 'failed'));
  const answer = await send('many', text);
  assert.deepEqual(told(answer), [[id, 'review', 'accepted'], [other, 'applied', 'completed'], [id, 'review', 'accepted']]);
  const again = await send('many', text);
  assert.deepEqual([again.replayed, again.text], [true, answer.text]);
  await recibo.expectCounts(id, 0, 0, 2);
});

test('order: sequence in a list, and a sequence of another world', async () => {
  const id = freshId();
  await accepted('ordered', id);
  const first = await send('ordered', body(event(id, 'b', 'succeeded', { seq: 2 }), event(id, 'a', 'processing', { seq: 1 })));
  assert.deepEqual(first.json.events.map((e) => [e.disposition, e.state]), [['applied', 'completed'], ['applied', 'processing']]);
  const far = freshId();
  await accepted('ordered', far);
  await send('ordered', body(event(far, 'a', 'processing', { seq: '9000000000000000000' })));
  const last = await send('ordered', body(event(far, 'b', 'succeeded', { seq: 7 })));
  assert.deepEqual([last.json.disposition, (await recibo.get(far)).state], ['applied', 'completed']);
});

test('the whole body as the list, one event without a list, none at all, and no list', async () => {
  const ids = [freshId(), freshId()];
  await accepted('list', ...ids);
  const whole = await send('list', JSON.stringify(ids.map((id) => ({ data: event(id, '1') }))));
  assert.deepEqual([whole.status, told(whole).map((t) => t[1])], [200, ['applied', 'applied']], whole.text);
  const id = freshId();
  await accepted('many', id);
  const one = await send('many', JSON.stringify({ events: event(id, '1') }));
  assert.deepEqual([one.status, told(one)], [200, [[id, 'applied', 'completed']]]);
  const none = await send('many', body());
  assert.deepEqual([none.status, none.json.disposition], [200, 'ignored']);
  for (const text of ['{}', '{"events":7}', '[]', '{"events":[}', body(...Array.from({ length: 1001 }, (_, i) => event(id, String(i))))]) {
    const answer = await send('many', text);
    assert.deepEqual([answer.status, answer.json.code], [422, 'unprocessable'], text.slice(0, 40));
  }
});

test('all alike: rejected, registered and ignored by rule', async () => {
  const ids = [freshId(), freshId()];
  const rejected = await send('strictly', body(...ids.map((id) => event(id, '1'))));
  assert.deepEqual([rejected.status, rejected.json.code], [404, 'unknown_operation']);
  const registered = await send('registering', body(...ids.map((id) => event(id, '1', 'succeeded', { amount: undefined, currency: undefined }))));
  assert.deepEqual([registered.status, told(registered).map((t) => t.slice(1))], [200, [['applied', 'completed'], ['applied', 'completed']]], registered.text);
  const known = freshId();
  await accepted('mixed', known);
  const ignored = await send('mixed', body(event(ids[0], '1', 'opened'), event(known, '1'), event(ids[1], '2', 'opened')));
  assert.deepEqual([ignored.json.disposition, ignored.json.events.map((e) => e.disposition)], ['applied', ['ignored', 'applied', 'ignored']]);
  const nothing = await send('mixed', body(event(ids[0], '1', 'opened')));
  assert.deepEqual([nothing.status, nothing.json.disposition, nothing.json.events], [200, 'ignored', undefined]);
});

test('a key outside the list names each event by its place', async () => {
  const id = freshId(), other = freshId();
  await accepted('headed', id, other);
  const text = body(event(id, 'x', 'processing'), event(id, 'x', 'succeeded'), event(other, 'x'));
  const headers = [['X-Delivery', 'delivery-1']];
  const first = await send('headed', text, { headers });
  assert.deepEqual([first.json.disposition, first.json.events.map((e) => e.disposition)], ['applied', ['applied', 'applied', 'applied']], first.text);
  assert.deepEqual([(await send('headed', text, { headers })).text], [first.text]);
  await recibo.expectCounts(id, 2, 2, 0);
});

async function map(name, words) {
  recibo.config.providers[name].events = { processing: 'progress', succeeded: 'complete', failed: 'fail', ...words };
  recibo.write();
  const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
  assert.equal(answer.status, 200, answer.text);
}
const replay = (failed, more = {}) => recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended', ...more } });
const failedOf = async (name) => recibo.list(`/v1/failed-callbacks?provider=${name}`);
const itemsOf = async (id) => Object.fromEntries((await recibo.get(id)).items.map((i) => [i.item_id, i.state]));

test('an event of the list speaks of items', async () => {
  const ids = [freshId(), freshId()];
  for (const id of ids) await recibo.accepted(id, { provider: 'batches', items: [{ item_id: 'a' }, { item_id: 'b' }] });
  const text = body(event(ids[0], '1', 'processing', { results: [{ id: 'a', status: 'succeeded' }, { id: 'b', status: 'odd' }] }), event(ids[1], '1', 'processing', { results: [{ id: 'a', status: 'failed' }] }));
  const answer = await send('batches', text);
  assert.deepEqual(answer.json.events.map((e) => [e.disposition, e.items.map((i) => i.disposition)]), [['partial', ['applied', 'unmapped']], ['applied', ['applied']]], answer.text);
  assert.equal(answer.json.disposition, 'partial');
  const again = await send('batches', text);
  assert.deepEqual([again.replayed, again.text], [true, answer.text]);
  const [failed] = await failedOf('batches');
  assert.equal((await recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/discard`, { token: 'ops', body: { reason: 'no such word' } })).status, 200);
});

test('items that events of one request left out are replayed, event by event', async () => {
  const ids = [freshId(), freshId(), freshId()];
  const withItems = (id) => recibo.accepted(id, { provider: 'batches', items: [{ item_id: 'a' }, { item_id: 'b' }] });
  await withItems(ids[0]);
  await withItems(ids[1]);
  const results = (...words) => ({ results: words.map((status, i) => ({ id: 'ab'[i], status })) });
  // The first is known and understood in part, the second not at all, the third waits for its operation.
  const text = body(
    event(ids[0], '1', 'processing', results('succeeded', 'odd')),
    event(ids[1], '1', 'strange', results('succeeded', 'odd')),
    event(ids[2], '1', 'processing', results('odd', 'failed')),
  );
  const first = await send('batches', text);
  assert.deepEqual(first.json.events.map((e) => e.disposition), ['partial', 'unmapped', 'parked'], first.text);
  await withItems(ids[2]);
  await until('what waited is applied', async () => (await itemsOf(ids[2])).b === 'failed', { timeout: 30_000 });
  const [failed, ...others] = await failedOf('batches');
  assert.deepEqual([others.length, failed.count], [0, 1], 'the request is kept and counted once');
  // First the word of the items, then that of the event.
  await map('batches', { odd: 'complete' });
  const asked = await replay(failed, { dry_run: true });
  assert.deepEqual([asked.status, asked.json.events.map((e) => e.disposition)], [200, ['applied', 'unmapped', 'applied']], asked.text);
  const half = await replay(failed);
  assert.deepEqual([half.json.closed, half.json.events.map((e) => [e.request_id, e.disposition])], [false, [[ids[0], 'applied'], [ids[1], 'unmapped'], [ids[2], 'applied']]], half.text);
  assert.deepEqual([await itemsOf(ids[0]), await itemsOf(ids[2])], [{ a: 'completed', b: 'completed' }, { a: 'completed', b: 'failed' }]);
  await map('batches', { odd: 'complete', strange: 'progress' });
  const done = await Promise.all([1, 2, 3].map(() => replay(failed)));
  for (const answer of done) assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(await itemsOf(ids[1]), { a: 'completed', b: 'completed' });
  assert.deepEqual(await failedOf('batches'), []);
  await map('batches', {});
});

test('two events of one request that waited leave their items to one failed callback', async () => {
  const ids = [freshId(), freshId()];
  const odd = { results: [{ id: 'a', status: 'odd' }, { id: 'b', status: 'succeeded' }] };
  assert.equal((await send('batches', body(...ids.map((id) => event(id, '1', 'processing', odd))))).json.disposition, 'parked');
  for (const id of ids) await recibo.accepted(id, { provider: 'batches', items: [{ item_id: 'a' }, { item_id: 'b' }] });
  for (const id of ids) await until('it is applied', async () => (await itemsOf(id)).b === 'completed', { timeout: 30_000 });
  const [failed, ...others] = await failedOf('batches');
  assert.equal(others.length, 0);
  await map('batches', { odd: 'fail' });
  const done = await replay(failed);
  assert.deepEqual([done.json.closed, done.json.events.map((e) => [e.request_id, e.disposition])], [true, ids.map((id) => [id, 'applied'])], done.text);
  for (const id of ids) assert.deepEqual(await itemsOf(id), { a: 'failed', b: 'completed' });
  await map('batches', {});
});

test('a request that is understood in part when it comes again leaves the rest, items too, to the replay', async () => {
  const ids = [freshId(), freshId(), freshId()];
  for (const id of ids) await recibo.accepted(id, { provider: 'batches', items: [{ item_id: 'a' }, { item_id: 'b' }] });
  const text = body(
    event(ids[0], '1', 'later', { results: [{ id: 'a', status: 'succeeded' }, { id: 'b', status: 'odd' }] }),
    event(ids[1], '1', 'later', { results: [{ id: 'a', status: 'succeeded' }] }),
    event(ids[2], '1', 'last'),
  );
  assert.equal((await send('batches', text)).json.disposition, 'unmapped');
  await map('batches', { later: 'progress' });
  const again = await send('batches', text);
  assert.deepEqual(again.json.events.map((e) => e.disposition), ['partial', 'applied', 'unmapped'], again.text);
  const [failed, ...others] = await failedOf('batches');
  assert.equal(others.length, 0);
  await map('batches', { later: 'progress', odd: 'fail', last: 'complete' });
  const done = await replay(failed);
  assert.deepEqual([done.json.closed, done.json.events.map((e) => [e.request_id, e.disposition])], [true, [[ids[0], 'applied'], [ids[2], 'applied']]], done.text);
  assert.deepEqual([await itemsOf(ids[0]), await itemsOf(ids[1])], [{ a: 'completed', b: 'failed' }, { a: 'completed', b: 'accepted' }]);
  await map('batches', {});
});

test('a resend of which one event finds no operation leaves that event to the replay', async () => {
  const ids = [freshId(), freshId()];
  await accepted('strictly', ids[0]);
  const text = body(event(ids[0], '1', 'dawned'), event(ids[1], '1', 'dawned'));
  assert.equal((await send('strictly', text)).json.disposition, 'unmapped');
  await map('strictly', { dawned: 'complete' });
  const again = await send('strictly', text);
  assert.deepEqual([again.status, again.json.code], [404, 'unknown_operation'], 'what is not kept is no success');
  assert.deepEqual(again.json.events.map((e) => e.disposition), ['applied', 'unknown_operation'], again.text);
  const [failed] = await failedOf('strictly');
  assert.ok(failed, 'one of its events is still to be decided');
  assert.deepEqual((await replay(failed)).json.disposition, 'unknown_operation');
  await accepted('strictly', ids[1]);
  const done = await replay(failed);
  assert.deepEqual([done.json.disposition, done.json.closed, (await recibo.get(ids[1])).state], ['applied', true, 'completed'], done.text);
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0);
  await map('strictly', {});
});

test('S07 in a list: one busy operation holds up its request and no other, and nothing of it is half done', async () => {
  const [locked, beside, free] = [freshId(), freshId(), freshId()];
  await accepted('many', locked, beside, free);
  const session = await stage.cluster.client(recibo.database);
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM recibo.operations WHERE request_id = $1 FOR UPDATE', [locked]);
  const text = body(event(beside, '1'), event(locked, '1'));
  const waiting = send('many', text, { timeout: 30_000 });
  await sleep(1_000);
  assert.equal((await recibo.get(beside)).state, 'accepted', 'the request waits whole');
  const since = Date.now();
  const quick = await send('many', body(event(free, '1')));
  assert.equal(quick.json.disposition, 'applied');
  assert.ok(Date.now() - since < 5_000, 'another request is not held up');
  const refused = await waiting;
  assert.ok(isSendAgain(refused), `503 within answer_within, not ${refused.status} ${refused.text}`);
  await session.query('ROLLBACK');
  await session.end();
  const last = await recibo.deliver('many', text, { secret: 'test-secret-A' });
  assert.deepEqual([last.status, last.json.disposition], [200, 'applied'], last.text);
  for (const id of [locked, beside, free]) await recibo.expectCounts(id, 1, 1, 0);
});

test('S08 in a list: killed right after the answer, all of it is on record', async () => {
  for (let round = 0; round < 5; ++round) {
    const ids = Array.from({ length: 5 }, () => freshId());
    await accepted('many', ...ids.slice(1));
    const answer = await send('many', body(...ids.map((id) => event(id, '1'))));
    assert.equal(answer.status, 200);
    await recibo.restart('kill');
    await accepted('many', ids[0]);
    for (const id of ids.slice(1)) await recibo.expectCounts(id, 1, 1, 0);
    await until('the parked one is applied', async () => (await recibo.get(ids[0])).state === 'completed', { timeout: 30_000 });
  }
});

test('two replicas, overlapping requests in any order: one effect for each key', async () => {
  const random = new Random(seed, 'many_events');
  const one = recibo.service;
  const other = await recibo.serve();
  const ids = Array.from({ length: 12 }, () => freshId());
  await accepted('many', ...ids.slice(0, 8));
  const requests = Array.from({ length: 40 }, () => {
    const chosen = Array.from({ length: 1 + random.int(6) }, () => ids[random.int(ids.length)]);
    return body(...chosen.map((id) => event(id, 'k')));
  });
  const answers = await Promise.all(requests.map((text, i) => {
    recibo.service = i % 2 ? one : other;
    return recibo.deliver('many', text, { secret: 'test-secret-A', patience: 60_000 });
  }));
  assert.deepEqual(answers.filter((a) => a.status !== 200 && a.status !== 202).map((a) => a.text), []);
  recibo.service = other;
  await accepted('many', ...ids.slice(8));
  const said = new Set(requests.flatMap((text) => JSON.parse(text).events.map((e) => e.request_id)));
  for (const id of said) {
    await until(`${id} is applied`, async () => (await recibo.get(id)).state === 'completed', { timeout: 30_000 });
    await recibo.expectCounts(id, 1, 1, 0);
  }
  recibo.service = other;
  assert.equal((await one.stop()).code, 0);
});

stage.ends();
