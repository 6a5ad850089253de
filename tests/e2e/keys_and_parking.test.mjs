// Within what a key means something, how long it is kept, and how much waits for operations that nobody registers (R4, R43).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const stage = await Stage.begin({
  configure(config) {
    config.providers.wide = { ...config.providers.p1, idempotency: { scope: ['provider', 'key'] } };
    config.providers.composite = { ...config.providers.p1, idempotency: { scope: ['provider', 'key'] }, extract: { ...config.providers.p1.extract, idempotency_key: ['/a', '/b'] } };
    config.providers.brief = { ...config.providers.p1, idempotency: { keep: '1h' } };
    config.providers.referring = { ...config.providers.p1, extract: { ...config.providers.p1.extract, reference: '/reference' } };
    config.providers.crowd = { ...config.providers.p1, parking: { per_identity: 3, expire: '1h' } };
    return config;
  },
});
const { recibo } = stage;
const secret = 'test-secret-A';
const send = (name, body) => recibo.callback(name, body, { secret });
const look = (answer) => [answer.status, answer.json?.disposition ?? answer.json?.code, answer.replayed];

test('a key of a whole provider means one callback, whatever operation it is of', async () => {
  const [one, two, elsewhere] = [freshId(), freshId(), freshId()];
  for (const id of [one, two]) await recibo.accepted(id, { provider: 'wide' });
  await recibo.accepted(elsewhere, { provider: 'p1' });
  const key = `k-${one}`;
  const first = await send('wide', callbackBody(one, key));
  assert.deepEqual(look(first), [200, 'applied', false]);
  assert.deepEqual(look(await send('wide', callbackBody(one, key))), [200, 'applied', true]);
  const foreign = await send('wide', callbackBody(two, key));
  assert.deepEqual(look(foreign), [409, 'conflict', false], foreign.text);
  assert.deepEqual(look(await send('wide', callbackBody(two, key))), [409, 'conflict', false], 'and again');
  await recibo.expectCounts(two, 0, 0, 1);
  const [review] = await recibo.list(`/v1/reviews?request_id=${two}`);
  const reached = review.deliveries.map((d) => [d.role, d.delivery_id, d.content_sha256.length]);
  assert.deepEqual([review.kind, review.count, reached], ['conflict', 2, [['first', first.json.delivery_id, 64], ['opened_by', foreign.json.delivery_id, 64]]]);
  assert.deepEqual(look(await send('p1', callbackBody(elsewhere, key))), [200, 'applied', false], 'another provider\'s keys are its own');
  assert.deepEqual(look(await send('wide', callbackBody(two, `${key}-2`))), [200, 'applied', false]);
});

test('two request IDs that wait under one reference and one key are two callbacks', async () => {
  const [one, two] = [freshId(), freshId()];
  const reference = `ref-${one}`;
  const tell = (id, status) => send('referring', callbackBody(id, 'k', status, { reference }));
  assert.deepEqual(look(await tell(one, 'processing')), [202, 'parked', false]);
  assert.deepEqual(look(await tell(two, 'succeeded')), [202, 'parked', false]);
  await recibo.accepted(two, { provider: 'referring' });
  await recibo.accepted(one, { provider: 'referring' });
  assert.equal((await recibo.get(two)).state, 'completed');
  const reviews = await recibo.list(`/v1/reviews?request_id=${one}`);
  assert.deepEqual(reviews.map((r) => r.kind), ['alias_taken'], 'whose the reference is, is for a person');
  assert.equal((await recibo.audit()).code, 0);
});

test('what was refused beside a callback that waits is no more than that when it meets its operation alone', async () => {
  const id = freshId();
  const reference = `lone-${id}`;
  const first = await send('referring', callbackBody(id, 'k', 'succeeded', { request_id: undefined, reference }));
  assert.deepEqual(look(first), [202, 'parked', false], first.text);
  assert.deepEqual(look(await send('referring', callbackBody(id, 'k', 'failed', { reference }))), [409, 'conflict', false]);
  await recibo.accepted(id, { provider: 'referring' });
  assert.equal((await recibo.get(id)).state, 'accepted', 'nothing that was refused is applied');
  assert.deepEqual((await recibo.list(`/v1/reviews?request_id=${id}`)).map((r) => r.kind), ['conflict']);
  assert.equal((await recibo.audit()).code, 0);
  const other = freshId();
  await recibo.accepted(other, { provider: 'referring', reference });
  assert.equal((await recibo.get(other)).state, 'completed', 'the first stands');
});

test('two operations at once under one key: one has it', async () => {
  for (let round = 0; round < 5; ++round) {
    const ids = Array.from({ length: 6 }, () => freshId());
    for (const id of ids) await recibo.accepted(id, { provider: 'wide' });
    const answers = await Promise.all(ids.map((id) => recibo.deliver('wide', callbackBody(id, `race-${ids[0]}`), { secret })));
    assert.equal(answers.filter((a) => a.status === 200).length, 1, answers.map((a) => a.text).join('\n'));
    assert.equal(answers.filter((a) => a.status === 409).length, 5);
  }
});

test('composite keys are compared field by field', async () => {
  const [one, two, three] = [freshId(), freshId(), freshId()];
  for (const id of [one, two, three]) await recibo.accepted(id, { provider: 'composite' });
  assert.deepEqual(look(await send('composite', callbackBody(one, undefined, 'succeeded', { a: 'ab', b: `c${one}` }))), [200, 'applied', false]);
  assert.deepEqual(look(await send('composite', callbackBody(two, undefined, 'succeeded', { a: 'a', b: `bc${one}` }))), [200, 'applied', false]);
  assert.deepEqual(look(await send('composite', callbackBody(three, undefined, 'succeeded', { a: 'ab', b: `c${one}` }))), [409, 'conflict', false]);
});

test('parked under a key that another operation has by then: a conflict when it is registered', async () => {
  const [one, two] = [freshId(), freshId()];
  const key = `k-${one}`;
  assert.deepEqual(look(await send('wide', callbackBody(two, key))), [202, 'parked', false]);
  await recibo.accepted(one, { provider: 'wide' });
  assert.deepEqual(look(await send('wide', callbackBody(one, key))), [200, 'applied', false]);
  await recibo.accepted(two, { provider: 'wide' });
  await recibo.expectCounts(two, 0, 0, 1);
});

test('a key counts until it is swept, and its absence is explained then', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'brief' });
  assert.deepEqual(look(await send('brief', callbackBody(id, 'k', 'processing'))), [200, 'applied', false]);
  const [kept] = await recibo.sql('SELECT expires_at > now() + interval \'59 minutes\' AS later FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1', [id]);
  assert.equal(kept.later, true);
  assert.deepEqual(look(await send('brief', callbackBody(id, 'k', 'processing'))), [200, 'applied', true]);
  await recibo.sql('UPDATE recibo.idempotency_keys SET expires_at = now() - interval \'1 second\' WHERE operation = (SELECT id FROM recibo.operations WHERE request_id = $1)', [id]);
  await until('the key is swept', async () => {
    const [{ n }] = await recibo.sql('SELECT count(*)::int AS n FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1', [id]);
    return n === 0;
  }, { timeout: 30_000, interval: 200 });
  const [swept] = await recibo.sql('SELECT s.count FROM recibo.swept_keys s JOIN recibo.operations o ON o.id = s.operation WHERE o.request_id = $1', [id]);
  assert.equal(swept.count, 1);
  assert.equal((await recibo.audit(id)).code, 0);
  assert.deepEqual(look(await send('brief', callbackBody(id, 'k', 'processing'))), [200, 'redundant', false], 'it is judged by the table alone, and has no second effect');
  assert.equal((await recibo.audit(id)).code, 0);
  // A delivery whose key is gone without a trace is a fault.
  const other = freshId();
  await recibo.accepted(other, { provider: 'brief' });
  await send('brief', callbackBody(other, 'k'));
  const [saved] = await recibo.sql('DELETE FROM recibo.idempotency_keys WHERE operation = (SELECT id FROM recibo.operations WHERE request_id = $1) RETURNING *', [other]);
  assert.equal((await recibo.audit(other)).code, 1);
  const columns = Object.keys(saved);
  await recibo.sql(`INSERT INTO recibo.idempotency_keys (${columns.join(', ')}) VALUES (${columns.map((_, i) => `$${i + 1}`).join(', ')})`, columns.map((c) => saved[c]));
});

test('one identity that nobody registers does not fill the table', async () => {
  const id = freshId();
  for (const n of [1, 2, 3]) assert.deepEqual(look(await send('crowd', callbackBody(id, `k-${n}`, 'processing'))), [202, 'parked', false]);
  assert.deepEqual(look(await send('crowd', callbackBody(id, 'k-4', 'succeeded'))), [404, 'unknown_operation', false]);
  assert.deepEqual(look(await send('crowd', callbackBody(id, 'k-1', 'processing'))), [202, 'parked', true], 'what waits is still recognised');
  const others = freshId();
  assert.deepEqual(look(await send('crowd', callbackBody(others, 'k-1', 'processing'))), [202, 'parked', false], 'another identity is another matter');
  await recibo.accepted(id, { provider: 'crowd' });
  assert.deepEqual(look(await send('crowd', callbackBody(id, 'k-4', 'succeeded'))), [200, 'applied', false], 'what was refused was told so, and comes again');
});

test('a replay finds no more room than a callback, and stays then', async () => {
  const id = freshId();
  const odd = await send('crowd', callbackBody(id, 'k-0', 'odd'));
  assert.deepEqual(look(odd), [202, 'unmapped', false]);
  for (const n of [1, 2, 3]) assert.deepEqual(look(await send('crowd', callbackBody(id, `k-${n}`, 'processing'))), [202, 'parked', false]);
  recibo.config.providers.crowd.events = { ...recibo.config.providers.crowd.events, odd: 'complete' };
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  const failedOne = async () => (await recibo.list('/v1/failed-callbacks')).find((f) => f.delivery_id === odd.json.delivery_id);
  const replay = async () => recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended' } });
  const failed = await failedOne();
  const full = await replay();
  assert.deepEqual([full.status, full.json.disposition, full.json.closed], [200, 'unknown_operation', false], full.text);
  assert.equal((await failedOne()).failed_callback_id, failed.failed_callback_id, 'it stays');
  assert.equal((await recibo.audit()).code, 0);
  await recibo.accepted(id, { provider: 'crowd' });
  const done = await replay();
  assert.deepEqual([done.status, done.json.disposition, done.json.closed], [200, 'applied', true], done.text);
  assert.equal((await recibo.get(id)).state, 'completed');
  assert.equal(await failedOne(), undefined);
});

test('what was replayed and waits in vain is given up too', async () => {
  const id = freshId();
  const strange = await send('crowd', callbackBody(id, 'k-0', 'strange'));
  assert.deepEqual(look(strange), [202, 'unmapped', false]);
  recibo.config.providers.crowd.events = { ...recibo.config.providers.crowd.events, strange: 'complete' };
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  const failed = (await recibo.list('/v1/failed-callbacks')).find((f) => f.delivery_id === strange.json.delivery_id);
  const done = await recibo.api('POST', `/v1/failed-callbacks/${failed.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended' } });
  assert.deepEqual([done.status, done.json.disposition, done.json.closed], [200, 'parked', true], done.text);
  await recibo.sql('UPDATE recibo.parked SET parked_at = now() - interval \'2 hours\' WHERE request_id = $1', [id]);
  await until('it is given up', async () => (await recibo.sql('SELECT 1 FROM recibo.unclaimed WHERE request_id = $1', [id])).length === 1, { timeout: 30_000, interval: 200 });
  const told = await recibo.audit();
  assert.equal(told.code, 0, told.stdout);
});

test('what nobody claims is given up in the end, on record', async () => {
  const id = freshId();
  const parked = await send('crowd', callbackBody(id, 'k-1'));
  assert.deepEqual(look(parked), [202, 'parked', false]);
  const listed = async (which) => (await recibo.list(`/v1/deliveries?parked=${which}&provider=crowd`)).filter((d) => d.request_id === id);
  assert.deepEqual([(await listed('waiting')).map((d) => [d.delivery_id, d.given_up_at]), await listed('given_up')], [[[parked.json.delivery_id, undefined]], []]);
  await recibo.sql("INSERT INTO recibo.reviews (id, kind, digest, key, delivery, detail, state, owner, opened_at, last_seen_at, provider, request_id) SELECT gen_random_uuid(), 'parked_age', p.content_digest, '', p.id, 'it waits', '', '', now(), now(), p.provider, p.request_id FROM recibo.parked p WHERE p.request_id = $1", [id]);
  await recibo.sql('UPDATE recibo.parked SET parked_at = now() - interval \'2 hours\' WHERE request_id = $1', [id]);
  await until('it is given up', async () => {
    const rows = await recibo.sql('SELECT delivery::text AS id FROM recibo.unclaimed WHERE request_id = $1', [id]);
    return rows[0]?.id === parked.json.delivery_id;
  }, { timeout: 30_000, interval: 200 });
  const [{ n }] = await recibo.sql('SELECT (SELECT count(*) FROM recibo.parked WHERE request_id = $1) + (SELECT count(*) FROM recibo.parked_identities WHERE identity = $1) AS n', [id]);
  assert.equal(Number(n), 0);
  assert.deepEqual([await listed('waiting'), (await listed('given_up')).map((d) => [d.delivery_id, typeof d.given_up_at])], [[], [[parked.json.delivery_id, 'string']]]);
  const [review] = await recibo.sql("SELECT v.status, v.resolution, a.actor FROM recibo.reviews v JOIN recibo.review_actions a ON a.review = v.id WHERE v.kind = 'parked_age' AND v.request_id = $1", [id]);
  assert.deepEqual(review, { status: 'resolved', resolution: 'given_up', actor: 'recibo' }, 'nobody has to look at its age any more');
  assert.equal((await recibo.api('GET', `/v1/deliveries/${parked.json.delivery_id}`)).status, 200, 'the delivery stays');
  assert.equal((await recibo.audit()).code, 0);
  await recibo.accepted(id, { provider: 'crowd' });
  await recibo.expectCounts(id, 0, 0, 0);
  assert.deepEqual(look(await send('crowd', callbackBody(id, 'k-1'))), [200, 'applied', false], 'sent again, it is new');
});

stage.ends();
