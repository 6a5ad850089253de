// One operation, several items (R7): each has its own state and history, a callback speaks of one or of many, some of them in
// vain, and what the items come to moves the operation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';

// The operation follows its items.
const batch = {
  initial: 'accepted',
  states: {
    accepted: { label: 'Accepted', limit: 'none', owner: 'desk' },
    processing: { label: 'Being worked on', limit: 'none', owner: 'desk' },
    completed: { label: 'Completed', terminal: true, done: true },
    partly: { label: 'Completed in part', terminal: true },
    failed: { label: 'Failed', terminal: true },
    skipped: { label: 'Left out', terminal: true },
  },
  transitions: [
    { from: 'accepted', event: 'progress', to: 'processing', by: 'provider' },
    { from: ['accepted', 'processing'], event: 'complete', to: 'completed', by: 'provider' },
    { from: ['accepted', 'processing'], event: 'fail', to: 'failed', by: 'provider' },
    { from: ['accepted', 'processing'], event: 'end_in_part', to: 'partly', by: 'operator' },
    { from: ['accepted', 'processing'], event: 'skip', to: 'skipped', by: 'client' },
    { from: 'failed', event: 'correct', to: 'completed', by: 'operator', evidence: 'statement' },
  ],
  items: [
    { all: 'completed', event: 'complete' },
    { all: ['failed', 'skipped'], event: 'fail' },
    { all: ['completed', 'failed', 'skipped'], event: 'end_in_part' },
    { any: ['processing', 'completed', 'failed'], event: 'progress' },
  ],
};

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    const items = { each: '/results', item_id: '/id', event: '/status' };
    config.workflows.batch = batch;
    config.providers.p6 = { ...p1, extract: { ...p1.extract, items } };
    const own = { request_id: '/request_id', idempotency_key: '/event_id' };
    config.providers.batch = {
      ...p1,
      workflow: 'batch',
      extract: { ...own, items: { ...items, occurred_at: '/at', sequence: '/seq', result: { score: '/score' } } },
    };
    config.providers.ordered = { ...config.providers.batch, order: 'sequence' };
    config.providers.brief = { ...config.providers.batch, idempotency: { keep: '1h' } };
    // A body about one item.
    config.providers.single = { ...p1, extract: { ...p1.extract, items: { item_id: '/item_id', event: '/status' } } };
    // Items that can be moved again and again, so that a second effect would show.
    config.workflows.switch = {
      initial: 'off',
      states: { off: { label: 'Off', limit: 'none' }, on: { label: 'On', limit: 'none' } },
      transitions: [{ from: 'off', event: 'toggle', to: 'on', by: 'provider' }, { from: 'on', event: 'toggle', to: 'off', by: 'provider' }],
    };
    config.providers.switches = { ...config.providers.batch, workflow: 'switch', events: { toggle: 'toggle' }, unmatched: 'park' };
    config.providers.registering = { ...config.providers.batch, unmatched: 'register' };
    config.destinations.ledger.events = ['operation.*'];
    config.destinations.warehouse = { url: 'https://warehouse.example/hooks', secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}`, events: ['item.*'] };
    return config;
  },
});
const { recibo } = stage;
const send = (name, body) => recibo.callback(name, body, { secret: 'test-secret-A' });
const withItems = (id, provider, names) => recibo.accepted(id, { provider, items: names.map((item_id) => ({ item_id })) });
const say = (id, key, results, more = {}) => JSON.stringify({ request_id: id, event_id: key, ...more, results });
const items = async (id, query = '') => recibo.list(`/v1/operations/${encodeURIComponent(id)}/items${query}`);
const states = async (id) => Object.fromEntries((await items(id)).map((i) => [i.item_id, i.state]));
const told = (answer) => answer.json.items.map((i) => [i.item_id, i.disposition, i.state]);

const failedOf = async (id) => (await recibo.list('/v1/failed-callbacks')).find((f) => f.request_id === id);
const replay = (failed, dry_run = false) =>
  recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended', dry_run } });
// More words in the provider's map.
async function map(more, name = 'batch') {
  recibo.config.providers[name].events = { ...recibo.config.providers[name].events, ...more };
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
}

test('S27 one bad element: the others are applied, the answer tells each, a resend is a replay', async () => {
  await withItems('req-270', 'p6', ['i1', 'i2', 'i3']);
  const body = '{"request_id":"req-270","event_id":"evt-270","status":"processing","results":[{"id":"i1","status":"succeeded"},{"id":"i2","status":"no-such-status"},{"id":"i3","status":"succeeded"}]}';
  const first = await send('p6', body);
  assert.deepEqual([first.status, first.json.disposition, first.json.state], [200, 'partial', 'processing'], first.text);
  assert.deepEqual(told(first), [['i1', 'applied', 'completed'], ['i2', 'unmapped', 'accepted'], ['i3', 'applied', 'completed']]);
  const before = await recibo.everything();
  const second = await send('p6', body);
  assert.deepEqual([second.status, second.replayed, second.text], [200, true, first.text]);
  const after = await recibo.everything();
  assert.deepEqual([after.transitions, after.notifications, after.failed, after.deliveries], [before.transitions, before.notifications, before.failed, before.deliveries + 1]);

  assert.deepEqual(await states('req-270'), { i1: 'completed', i2: 'accepted', i3: 'completed' });
  const operation = await recibo.get('req-270');
  assert.deepEqual(operation.items_summary, { total: 3, by_state: { accepted: 1, completed: 2 }, needs_attention: 1 });
  const [waiting] = await items('req-270', '?attention=true');
  assert.deepEqual([waiting.item_id, waiting.needs_attention.why, waiting.needs_attention.delivery_id], ['i2', 'unmapped', first.json.delivery_id]);
  assert.match(waiting.needs_attention.detail, /not in the provider's map/);
  // An operator finds it where callbacks wait to be replayed.
  const [failed] = (await recibo.list('/v1/failed-callbacks')).filter((f) => f.request_id === 'req-270');
  assert.deepEqual([failed.disposition, failed.delivery_id], ['unmapped', first.json.delivery_id]);
  assert.match(failed.detail, /item i2/);
  const replayed = await replay(failed);
  assert.deepEqual([replayed.status, replayed.json.disposition, replayed.json.closed], [200, 'unmapped', false], 'nothing was mended');
  const shown = await recibo.run(['case', 'req-270']);
  assert.match(shown.stdout, /needs somebody +item i2 \(accepted\): unmapped/);
  const delivery = await recibo.api('GET', `/v1/deliveries/${first.json.delivery_id}`);
  assert.deepEqual(delivery.json.items, first.json.items, 'what was decided about each is on record');
  // The timeline tells which item moved.
  const moves = (await recibo.timeline('req-270')).filter((e) => e.kind === 'transition');
  assert.deepEqual(moves.map((e) => [e.item_id, e.from, e.to]), [[undefined, 'accepted', 'processing'], ['i1', 'accepted', 'completed'], ['i3', 'accepted', 'completed']]);
});

test('what is left is all that a later callback does: finished items are not redone', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b', 'c']);
  const first = await send('batch', say(id, 'k1', [{ id: 'a', status: 'succeeded', score: 0.9 }, { id: 'b', status: 'odd' }, { id: 'c', status: 'succeeded' }]));
  assert.deepEqual(told(first), [['a', 'applied', 'completed'], ['b', 'unmapped', 'accepted'], ['c', 'applied', 'completed']]);
  assert.equal(first.json.state, 'processing', 'the rule of the workflow: some have moved');
  const again = await send('batch', say(id, 'k2', [{ id: 'a', status: 'succeeded', score: 0.9 }, { id: 'b', status: 'failed' }, { id: 'c', status: 'succeeded' }]));
  assert.deepEqual(told(again), [['a', 'redundant', 'completed'], ['b', 'applied', 'failed'], ['c', 'redundant', 'completed']]);
  assert.deepEqual([again.json.disposition, again.json.state], ['applied', 'partly']);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.items_summary.needs_attention, operation.version], ['partly', 0, 2]);
  const [a] = await items(id, '?item_id=a');
  assert.deepEqual([a.version, a.result], [1, { score: 0.9 }]);
  // Each move of an item is notified to who asked for it, and each move of the operation.
  const notes = await recibo.sql('SELECT n.destination, n.type FROM recibo.notifications n JOIN recibo.operations o ON o.id = n.operation WHERE o.request_id = $1 ORDER BY n.sequence', [id]);
  assert.deepEqual(notes.filter((n) => n.destination === 'warehouse').map((n) => n.type), ['item.completed', 'item.completed', 'item.failed']);
  assert.deepEqual(notes.filter((n) => n.destination === 'ledger').map((n) => n.type), ['operation.accepted', 'operation.processing', 'operation.partly']);
});

test('all done completes the operation, all failed fails it', async () => {
  for (const [status, state] of [['succeeded', 'completed'], ['failed', 'failed']]) {
    const id = freshId();
    await withItems(id, 'batch', ['a', 'b']);
    assert.equal((await send('batch', say(id, '1', [{ id: 'a', status }]))).json.state, 'processing');
    const last = await send('batch', say(id, '2', [{ id: 'b', status }]));
    assert.deepEqual([last.json.disposition, last.json.state], ['applied', state]);
    const audit = await recibo.audit(id);
    assert.equal(audit.code, 0, audit.stdout);
  }
});

test('a list that contradicts itself is for a person; one that tells a story is applied in its order', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b', 'c']);
  const answer = await send('batch', say(id, '1', [
    { id: 'a', status: 'succeeded' }, { id: 'a', status: 'failed' },
    { id: 'b', status: 'succeeded' }, { id: 'b', status: 'processing' },
    { id: 'c', status: 'succeeded' }, { id: 'c', status: 'succeeded' },
  ]));
  assert.deepEqual(told(answer), [['a', 'review', 'accepted'], ['b', 'applied', 'completed'], ['c', 'applied', 'completed']]);
  assert.equal(answer.json.disposition, 'partial');
  const versions = Object.fromEntries((await items(id)).map((i) => [i.item_id, i.version]));
  assert.deepEqual(versions, { a: 0, b: 2, c: 1 }, 'b went through processing');
  const [review] = (await recibo.list('/v1/reviews?status=open')).filter((r) => r.request_id === id);
  assert.deepEqual([review.item_id, review.kind], ['a', 'contradiction']);
  // The same list under another key is the same exception.
  await send('batch', say(id, '2', [{ id: 'a', status: 'succeeded' }, { id: 'a', status: 'failed' }]));
  const twice = await send('batch', say(id, '3', [{ id: 'a', status: 'succeeded' }, { id: 'a', status: 'failed' }]));
  assert.deepEqual([twice.json.disposition, twice.json.state], ['review', 'processing']);
  const open = (await recibo.list('/v1/reviews?status=open')).filter((r) => r.request_id === id);
  assert.deepEqual(open.map((r) => [r.item_id, r.count]).sort(), [['a', 1], ['a', 2]], 'the same content raises the count of its review');
});

test('an item that nobody registered is for a person, and the others are applied', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a']);
  const answer = await send('batch', say(id, '1', [{ id: 'a', status: 'processing' }, { id: 'zz', status: 'succeeded' }]));
  assert.deepEqual([answer.json.disposition, told(answer)], ['partial', [['a', 'applied', 'processing'], ['zz', 'review', undefined]]]);
  const [review] = (await recibo.list('/v1/reviews?status=open')).filter((r) => r.request_id === id);
  assert.deepEqual([review.kind, review.item_id], ['unknown_item', 'zz']);
  // An event would move the operation, which the review is not about.
  const resolve = (body) => recibo.api('POST', `/v1/reviews/${review.review_id}/resolve`, { token: 'ops', body: { resolution: 'theirs', reason: 'not ours', ...body } });
  const wrong = await resolve({ event: 'correct', evidence: 'statement of October' });
  assert.deepEqual([wrong.status, wrong.json.code], [409, 'illegal_transition'], wrong.text);
  assert.match(wrong.json.detail, /about an item/);
  assert.deepEqual(review.allowed_events, []);
  const right = await resolve({});
  assert.deepEqual([right.status, right.json.status], [200, 'resolved'], right.text);
});

test('a resend of what was applied in part moves nothing, and its failed callback stays open', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b']);
  const body = say(id, '1', [{ id: 'a', status: 'succeeded' }, { id: 'b', status: 'paid-out' }]);
  const first = await send('batch', body);
  assert.equal(first.json.disposition, 'partial', first.text);
  recibo.config.providers.batch.events = { ...recibo.config.providers.batch.events, 'paid-out': 'complete' };
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  const again = await send('batch', body);
  assert.deepEqual([again.status, again.replayed], [200, true], again.text);
  assert.deepEqual(await states(id), { a: 'completed', b: 'accepted' });
  assert.equal((await recibo.list('/v1/failed-callbacks')).filter((f) => f.request_id === id).length, 1, 'what was not applied is not forgotten');
});

test('elements that cannot be read say so by their place, and are no harm to the others', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b']);
  const answer = await send('batch', say(id, '1', ['text', { status: 'succeeded' }, { id: 'a', status: 'succeeded' }, { id: 'b', status: 'succeeded', at: 'yesterday' }, { id: ' ', status: 'succeeded' }]));
  assert.equal(answer.json.disposition, 'partial', answer.text);
  assert.deepEqual(answer.json.items.map((i) => [i.item_id ?? i.index, i.disposition]), [[0, 'unprocessable'], [1, 'unprocessable'], ['a', 'applied'], ['b', 'unprocessable'], [4, 'unprocessable']]);
  assert.deepEqual(await states(id), { a: 'completed', b: 'accepted' });
});

test('a replay decides what was left out, in as many steps as it takes, and nothing twice', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b', 'c']);
  const body = say(id, '1', [{ id: 'c', status: 'later' }, { id: 'a', status: 'succeeded' }, { status: 'sent-back' }, { id: 'b', status: 'sent-back' }]);
  const first = await send('batch', body);
  assert.deepEqual(first.json.items.map((i) => i.disposition), ['unmapped', 'applied', 'unprocessable', 'unmapped'], first.text);
  const failed = await failedOf(id);
  await map({ 'sent-back': 'fail' });
  const asked = await replay(failed, true);
  assert.deepEqual([asked.status, asked.json.disposition, asked.json.closed], [200, 'partial', false], asked.text);
  assert.deepEqual(await states(id), { a: 'completed', b: 'accepted', c: 'accepted' }, 'a dry run changes nothing');
  const half = await replay(failed);
  assert.deepEqual([half.status, half.json.disposition, half.json.closed], [200, 'partial', false], half.text);
  assert.deepEqual(half.json.items.map((i) => [i.item_id ?? i.index, i.disposition]), [['c', 'unmapped'], [2, 'unprocessable'], ['b', 'applied']]);
  assert.deepEqual(await states(id), { a: 'completed', b: 'failed', c: 'accepted' });
  await map({ later: 'complete' });
  const rest = await Promise.all([1, 2, 3].map(() => replay(failed)));
  assert.deepEqual(rest.map((r) => r.status), [200, 200, 200]);
  assert.equal((await failedOf(id)).attempts >= 1, true, 'the element without an identity is left');
  assert.deepEqual(await states(id), { a: 'completed', b: 'failed', c: 'completed' });
  const moves = (await recibo.timeline(id)).filter((e) => e.kind === 'transition' && e.item_id);
  assert.deepEqual(moves.map((e) => [e.item_id, e.to]), [['a', 'completed'], ['b', 'failed'], ['c', 'completed']], 'each item moved once');
  assert.equal((await send('batch', body)).text, first.text, 'the answer stays what it was');
  const given = await recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/discard`, { token: 'ops', body: { reason: 'names no item' } });
  assert.equal(given.status, 200, given.text);
});

test('the same bytes after their key was swept, understood whole, leave nothing of a failed callback', async () => {
  const id = freshId();
  await withItems(id, 'brief', ['a', 'b']);
  const body = say(id, '1', [{ id: 'a', status: 'succeeded' }, { id: 'b', status: 'swept' }]);
  assert.equal((await send('brief', body)).json.disposition, 'partial');
  await map({ swept: 'fail' }, 'brief');
  assert.equal((await send('brief', body)).replayed, true);
  assert.ok(await failedOf(id), 'as long as its key is used, a resend moves nothing');
  await recibo.sql("UPDATE recibo.idempotency_keys SET expires_at = now() - interval '1 second' WHERE operation = (SELECT id FROM recibo.operations WHERE request_id = $1)", [id]);
  await until('the key is swept', async () => {
    const [{ n }] = await recibo.sql('SELECT count(*)::int AS n FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1', [id]);
    return n === 0;
  }, { timeout: 30_000, interval: 200 });
  const again = await send('brief', body);
  assert.deepEqual(told(again), [['a', 'redundant', 'completed'], ['b', 'applied', 'failed']], again.text);
  assert.equal(await failedOf(id), undefined);
});

test('five replays at once decide each element once, whatever was understood before', async () => {
  for (let round = 0; round < 6; ++round) {
    const id = freshId();
    const word = (n) => `at-once-${round}-${n}`;
    await withItems(id, 'switches', ['a', 'b', 'c']);
    const body = say(id, '1', [{ id: 'a', status: round % 2 === 0 ? 'toggle' : word(1) }, { id: 'b', status: word(1) }, { id: 'c', status: word(2) }]);
    await send('switches', body);
    const failed = await failedOf(id);
    await map({ [word(1)]: 'toggle' }, 'switches');
    const half = await Promise.all([1, 2, 3, 4, 5].map(() => replay(failed)));
    for (const answer of half) assert.ok(answer.status === 200 || isSendAgain(answer), answer.text);
    assert.deepEqual(await states(id), { a: 'on', b: 'on', c: 'off' }, `round ${round}`);
    await map({ [word(2)]: 'toggle' }, 'switches');
    await Promise.all([1, 2, 3, 4, 5].map(() => replay(failed)));
    assert.deepEqual(await states(id), { a: 'on', b: 'on', c: 'on' }, `round ${round}`);
    assert.equal(await failedOf(id), undefined, 'it is done');
  }
});

test('a resend that is understood in part leaves the rest to a replay', async () => {
  const id = freshId();
  await withItems(id, 'switches', ['a', 'b']);
  const body = say(id, '1', [{ id: 'a', status: 'one-day' }, { id: 'b', status: 'another-day' }]);
  assert.equal((await send('switches', body)).json.disposition, 'unmapped');
  const before = await failedOf(id);
  await map({ 'one-day': 'toggle' }, 'switches');
  assert.equal((await send('switches', body)).json.disposition, 'partial');
  const left = await failedOf(id);
  assert.notEqual(left.failed_callback_id, before.failed_callback_id);
  await map({ 'another-day': 'toggle' }, 'switches');
  assert.equal((await replay(before)).json.code, 'already_closed', 'it came again, and what is left of it is another');
  const done = await replay(left);
  assert.deepEqual([done.json.disposition, done.json.closed], ['applied', true], done.text);
  assert.deepEqual(await states(id), { a: 'on', b: 'on' });
});

test('what waited and was understood in part is replayed too', async () => {
  const id = freshId();
  assert.equal((await send('switches', say(id, '1', [{ id: 'a', status: 'toggle' }, { id: 'b', status: 'once-parked' }]))).status, 202);
  await withItems(id, 'switches', ['a', 'b']);
  assert.deepEqual(await states(id), { a: 'on', b: 'off' });
  const failed = await failedOf(id);
  await map({ 'once-parked': 'toggle' }, 'switches');
  const done = await replay(failed);
  assert.deepEqual([done.json.disposition, done.json.closed], ['applied', true], done.text);
  assert.deepEqual(await states(id), { a: 'on', b: 'on' });
});

test('what was applied in part is done once its failed callback is replayed', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b']);
  await send('batch', say(id, '1', [{ id: 'a', status: 'succeeded' }, { id: 'b', status: 'arrived' }]));
  const failed = await failedOf(id);
  await map({ arrived: 'complete' });
  const done = await replay(failed);
  assert.deepEqual([done.status, done.json.disposition, done.json.closed, done.json.state], [200, 'applied', true, 'completed'], done.text);
  const again = await replay(failed);
  assert.deepEqual([again.status, again.replayed, again.json.disposition], [200, true, 'applied']);
  assert.equal(await failedOf(id), undefined);
});

test('where no element can be understood nothing is claimed, and after the map was mended a replay or a resend is applied', async () => {
  const other = freshId();
  await withItems(other, 'batch', ['a']);
  await send('batch', say(other, '1', [{ id: 'a', status: 'settled' }]));
  const id = freshId();
  await withItems(id, 'batch', ['a']);
  const body = say(id, '1', [{ id: 'a', status: 'settled' }]);
  const first = await send('batch', body);
  assert.deepEqual([first.status, first.json.disposition], [202, 'unmapped']);
  await map({ settled: 'complete' });
  const replayed = await replay(await failedOf(other));
  assert.deepEqual([replayed.status, replayed.json.disposition, replayed.json.closed], [200, 'applied', true], replayed.text);
  assert.deepEqual(await states(other), { a: 'completed' });
  const failed = await failedOf(id);
  const second = await send('batch', body);
  assert.deepEqual([second.status, second.replayed, second.json.disposition, second.json.state], [200, false, 'applied', 'completed']);
  const [closing] = await recibo.sql('SELECT action, resent_as::text AS resent_as FROM recibo.replays WHERE failed_callback = $1', [failed.failed_callback_id]);
  assert.deepEqual(closing, { action: 'resent', resent_as: second.json.delivery_id });
  assert.equal((await recibo.list('/v1/failed-callbacks')).some((f) => f.request_id === id), false, 'the failed callback is closed');
});

test('a callback about one item, and one about the operation, at the same provider', async () => {
  const id = freshId();
  await withItems(id, 'single', ['a', 'b']);
  const one = await send('single', callbackBody(id, '1', 'succeeded', { item_id: 'b' }));
  assert.deepEqual([one.json.disposition, one.json.state, told(one)], ['applied', 'accepted', [['b', 'applied', 'completed']]]);
  const whole = await send('single', callbackBody(id, '2', 'processing'));
  assert.deepEqual([whole.json.disposition, whole.json.state, whole.json.items], ['applied', 'processing', undefined]);
  assert.deepEqual(await states(id), { a: 'accepted', b: 'completed' });
  // What is said of the operation is held against it, whatever is said of its items.
  const other = await send('single', callbackBody(id, '3', 'succeeded', { item_id: 'a', amount: '1.00' }));
  assert.deepEqual([other.json.disposition, (await states(id)).a], ['review', 'accepted']);
});

test('terminal items are never left by a callback', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b']);
  await send('batch', say(id, '1', [{ id: 'a', status: 'succeeded' }]));
  const against = await send('batch', say(id, '2', [{ id: 'a', status: 'failed' }]));
  assert.deepEqual([against.status, against.json.disposition, told(against)], [200, 'review', [['a', 'review', 'completed']]]);
  const [a] = await items(id, '?attention=true');
  assert.deepEqual([a.item_id, a.needs_attention.why], ['a', 'contradiction']);
  const late = await send('batch', say(id, '3', [{ id: 'a', status: 'processing' }]));
  assert.deepEqual(told(late), [['a', 'stale', 'completed']]);
});

test('early: a callback about items waits for its operation, and is applied once', async () => {
  const id = freshId();
  const body = say(id, '1', [{ id: 'a', status: 'succeeded', score: 12345678901234567890 }, { id: 'b', status: 'odd' }]);
  const early = await send('batch', body);
  assert.deepEqual([early.status, early.json.disposition], [202, 'parked']);
  await withItems(id, 'batch', ['a', 'b']);
  await until('it is applied', async () => (await recibo.get(id)).state === 'processing', { timeout: 30_000 });
  assert.deepEqual(await states(id), { a: 'completed', b: 'accepted' });
  const again = await send('batch', body);
  assert.deepEqual([again.status, again.replayed, again.json.disposition, told(again)], [200, true, 'partial', [['a', 'applied', 'completed'], ['b', 'unmapped', 'accepted']]]);
  const [b] = await items(id, '?attention=true');
  assert.equal(b.item_id, 'b');
});

test('clients and operators raise events for an item, as the table allows in its state', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b']);
  const skipped = await recibo.event(id, { event: 'skip', item_id: 'a', reason: 'not wanted' });
  assert.equal(skipped.status, 200, skipped.text);
  assert.deepEqual([(await states(id)).a, skipped.json.state], ['skipped', 'accepted']);
  const illegal = await recibo.event(id, { event: 'skip', item_id: 'a' });
  assert.deepEqual([illegal.status, illegal.json.code, illegal.json.state, illegal.json.allowed_events], [409, 'illegal_transition', 'skipped', []]);
  const missing = await recibo.event(id, { event: 'skip', item_id: 'nobody' });
  assert.deepEqual([missing.status, missing.json.code], [404, 'not_found']);
  // The last one is done: the rule moves the operation, whoever moved the item.
  const headers = [['Idempotency-Key', freshId()]];
  const last = await recibo.event(id, { event: 'skip', item_id: 'b' }, { headers });
  assert.deepEqual([last.status, last.json.state], [200, 'failed'], last.text);
  const replay = await recibo.event(id, { event: 'skip', item_id: 'b' }, { headers });
  assert.deepEqual([replay.status, replay.header('Idempotent-Replayed')], [200, 'true']);
  const other = await recibo.event(id, { event: 'skip', item_id: 'a' }, { headers });
  assert.deepEqual([other.status, other.json.code], [422, 'idempotency_key_reused']);
  const moves = (await recibo.timeline(id)).filter((e) => e.kind === 'transition').map((e) => [e.item_id, e.event, e.to, e.actor_kind]);
  assert.deepEqual(moves, [['a', 'skip', 'skipped', 'client'], ['b', 'skip', 'skipped', 'client'], [undefined, 'fail', 'failed', 'client']]);
});

test('S03 of items: order by sequence has a watermark for each item, and absurd sequences swallow nothing', async () => {
  const id = freshId();
  await withItems(id, 'ordered', ['a', 'b', 'c']);
  const results = (...list) => list.map(([item, status, seq]) => ({ id: item, status, seq }));
  const first = await send('ordered', say(id, '1', results(['a', 'processing', 5], ['b', 'processing', 9_000_000_000_000_000_000n.toString()], ['c', 'processing', 1])));
  assert.deepEqual(told(first).map((t) => t[1]), ['applied', 'applied', 'applied'], first.text);
  const stale = await send('ordered', say(id, '2', results(['a', 'succeeded', 4], ['b', 'succeeded', 3], ['c', 'succeeded', 2])));
  assert.deepEqual(told(stale), [['a', 'stale', 'processing'], ['b', 'applied', 'completed'], ['c', 'applied', 'completed']]);
  const overruled = await recibo.metric('recibo_sequence_decisions_total', { provider: 'ordered', decision: 'overruled' });
  const doubted = await recibo.metric('recibo_sequence_decisions_total', { provider: 'ordered', decision: 'doubted' });
  assert.deepEqual([overruled, doubted], [1, 1], 'what the table would have allowed is counted, and what was not believed');
  // An equal sequence says nothing about order, so the table decides.
  const equal = await send('ordered', say(id, '3', results(['a', 'succeeded', 5])));
  assert.deepEqual(told(equal), [['a', 'applied', 'completed']]);
});

test('operations that a callback registers get their items from callbacks', async () => {
  const id = freshId();
  const first = await send('registering', say(id, '1', [{ id: 'a', status: 'processing' }]));
  assert.deepEqual([first.status, told(first)], [200, [['a', 'applied', 'processing']]], first.text);
  const second = await send('registering', say(id, '2', [{ id: 'b', status: 'succeeded' }, { id: 'a', status: 'succeeded' }]));
  assert.deepEqual([second.json.state, told(second)], ['completed', [['b', 'applied', 'completed'], ['a', 'applied', 'completed']]]);
});

test('the client of an operation that a callback registered may name other items than the callbacks did', async () => {
  const id = freshId();
  const first = await send('registering', say(id, '1', [{ id: 'a', status: 'succeeded' }, { id: 'b', status: 'processing' }]));
  assert.deepEqual([first.json.disposition, told(first)], ['applied', [['a', 'applied', 'completed'], ['b', 'applied', 'processing']]]);
  const made = await recibo.register(id, { provider: 'registering', items: [{ item_id: 'a' }, { item_id: 'c' }] });
  assert.equal(made.status, 201, made.text);
  assert.deepEqual(await states(id), { a: 'completed', b: 'processing', c: 'accepted' });
  assert.equal((await recibo.register(id, { provider: 'registering', items: [{ item_id: 'a' }, { item_id: 'c' }] })).status, 200);
  assert.equal((await recibo.register(id, { provider: 'registering', items: [{ item_id: 'd' }] })).status, 409);
  const rest = await send('registering', say(id, '2', [{ id: 'c', status: 'succeeded' }, { id: 'b', status: 'succeeded' }]));
  assert.deepEqual(told(rest), [['c', 'applied', 'completed'], ['b', 'applied', 'completed']], rest.text);
  const audit = await recibo.audit(id);
  assert.equal(audit.code, 0, audit.stdout);
});

test('ten thousand items: registered, shown a thousand at a time, and moved by one callback', async () => {
  const id = freshId();
  const names = Array.from({ length: 10_000 }, (_, i) => `i${i}`);
  const made = await recibo.register(id, { provider: 'batch', items: names.map((item_id) => ({ item_id })) });
  assert.deepEqual([made.status, made.json.items.length, made.json.items_summary.total], [201, 1000, 10_000]);
  const tooMany = await recibo.register(freshId(), { provider: 'batch', items: [...names, 'one'].map((item_id) => ({ item_id })) });
  assert.equal(tooMany.status, 422, tooMany.text);
  const answer = await recibo.callback('batch', say(id, '1', names.map((name, i) => ({ id: name, status: i === 7 ? 'odd' : 'succeeded' }))), { secret: 'test-secret-A', timeout: 30_000 });
  assert.deepEqual([answer.status, answer.json.disposition, answer.json.items.length], [200, 'partial', 10_000]);
  assert.deepEqual((await recibo.get(id)).items_summary, { total: 10_000, by_state: { accepted: 1, completed: 9_999 }, needs_attention: 1 });
  const [left] = await items(id, '?state=accepted');
  assert.deepEqual([left.item_id, (await items(id, '?attention=true')).length], ['i7', 1]);
});

test('two replicas: copies of one callback about items have one effect', async () => {
  const id = freshId();
  await withItems(id, 'batch', ['a', 'b', 'c']);
  const one = recibo.service;
  const other = await recibo.serve();
  const bodies = ['a', 'b', 'c'].map((name, i) => say(id, `k${i}`, [{ id: name, status: 'succeeded' }]));
  const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => {
    recibo.service = i % 2 ? one : other;
    return recibo.deliver('batch', bodies[i % 3], { secret: 'test-secret-A' });
  }));
  assert.ok(answers.every((a) => a.status === 200), answers.map((a) => a.text).join('\n'));
  assert.equal(answers.filter((a) => !a.replayed).length, 3);
  recibo.service = other;
  assert.equal((await one.stop()).code, 0);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.items_summary.by_state], ['completed', { completed: 3 }]);
});

stage.ends();
