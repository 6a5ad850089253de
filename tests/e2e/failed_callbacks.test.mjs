// Failed callbacks: kept, inspected, replayed after the configuration was mended, discarded; each on record, none twice (R17, R37).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { hmac } from '../support/sign.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';

const stage = await Stage.begin({
  configure(config) {
    const { p1, desk, strict } = config.providers;
    p1.extract.reference = '/reference';
    // The event in a header and the key in the query: what a replay needs beside the body.
    config.providers.p2.extract = { ...config.providers.p2.extract, event: { header: 'X-Event', unsigned: 'accept' }, idempotency_key: { query: 'delivery', unsigned: 'accept' } };
    // The key in a signed header: two callbacks may have the same body.
    config.providers.headed = {
      ...p1,
      verify: { scheme: 'hmac', algorithm: 'sha256', signature: { header: 'X-Signature', encoding: 'hex' }, content: [{ header: 'X-Delivery' }, { lit: '.' }, { body: true }], secrets: ['test-secret-headed'] },
      extract: { ...p1.extract, idempotency_key: { header: 'X-Delivery' } },
      idempotency: { keep: '1h' },
    };
    config.providers = { p1, p2: config.providers.p2, desk, strict, headed: config.providers.headed };
    return config;
  },
});
const { recibo } = stage;
const replicas = [recibo.service, await recibo.serve()];
recibo.service = replicas[0];

const post = (target, body, { token = 'ops' } = {}) => recibo.api('POST', target, { token, body });
const replay = (id, body = {}, options) => post(`/v1/failed-callbacks/${id}/replay`, { reason: 'the map was mended', ...body }, options);
const discard = (id, body = { reason: 'a test of theirs' }, options) => post(`/v1/failed-callbacks/${id}/discard`, body, options);
const failedOf = async (delivery) => (await recibo.list('/v1/failed-callbacks')).find((one) => one.delivery_id === delivery);

function problem(answer, status, code) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.json.code, code, answer.text);
}

async function atSecond(action) {
  recibo.service = replicas[1];
  try {
    return await action();
  } finally {
    recibo.service = replicas[0];
  }
}

// Changes the configuration on both replicas.
async function reconfigure(change) {
  change(recibo.config);
  recibo.write();
  for (const service of replicas) {
    recibo.service = service;
    const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
    assert.equal(answer.status, 200, answer.text);
  }
  recibo.service = replicas[0];
}
const map = (word, event, provider = 'p1') => reconfigure((config) => (config.providers[provider].events = { ...config.providers[provider].events, [word]: event }));

let words = 0;
// A callback with a word that nobody has mapped yet.
async function unmapped(id, { provider = 'p1', word = `word-${++words}`, key = 'e1', more } = {}) {
  const body = callbackBody(id, key, word, more);
  const answer = await recibo.deliver(provider, body);
  assert.deepEqual([answer.status, answer.json.disposition], [202, 'unmapped'], answer.text);
  return { word, body, delivery: answer.json.delivery_id, failed: await failedOf(answer.json.delivery_id) };
}

async function accepted(options) {
  const id = freshId();
  await recibo.accepted(id, options);
  return id;
}

test('after the map was mended a replay applies it, once, and says so on record', async () => {
  const id = await accepted();
  const { word, body, delivery, failed } = await unmapped(id);
  const still = await replay(failed.failed_callback_id);
  assert.deepEqual([still.status, still.json.disposition, still.json.closed], [200, 'unmapped', false], still.text);
  const tried = await failedOf(delivery);
  assert.deepEqual([tried.attempts, tried.reason], [1, 'unmapped']);
  assert.ok(tried.last_attempt_at);

  await map(word, 'complete');
  const dry = await replay(failed.failed_callback_id, { dry_run: true });
  assert.deepEqual([dry.status, dry.json.dry_run, dry.json.disposition, dry.json.state, dry.json.closed], [200, true, 'applied', 'completed', false], dry.text);
  assert.deepEqual([(await recibo.get(id)).state, (await failedOf(delivery)).attempts], ['accepted', 1], 'a dry run leaves nothing');

  const done = await replay(failed.failed_callback_id);
  assert.deepEqual(
    [done.status, done.json.disposition, done.json.state, done.json.request_id, done.json.closed, done.json.delivery_id, done.replayed],
    [200, 'applied', 'completed', id, true, delivery, false],
  );
  assert.equal(await failedOf(delivery), undefined);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.last_stage], ['completed', 'transitioned']);
  const timeline = await recibo.timeline(id);
  const told = timeline.find((e) => e.kind === 'replay');
  assert.deepEqual(
    [told.actor, told.disposition, told.delivery_id, told.failed_callback_id, told.reason, told.event, told.key],
    ['ops', 'applied', delivery, failed.failed_callback_id, 'the map was mended', word, 'e1'],
  );
  const move = timeline.find((e) => e.kind === 'transition');
  assert.deepEqual([move.sequence, move.actor, move.actor_kind, move.delivery_id], [told.sequence, 'p1', 'provider', delivery]);
  assert.deepEqual(await recibo.sql('SELECT count(*)::int AS n FROM recibo.deliveries WHERE id = $1', [delivery]), [{ n: 1 }]);
  assert.deepEqual((await recibo.sql('SELECT disposition FROM recibo.deliveries WHERE id = $1', [delivery]))[0].disposition, 'unmapped', 'it is on record as it came');
  await recibo.expectCounts(id, 1, 1, 0);
  assert.match((await recibo.run(['case', id])).stdout, /replay +ops replayed 'word-\d+': applied, key e1, because: the map was mended/);

  // Again, by a person and by the provider: nothing more happens.
  const again = await replay(failed.failed_callback_id);
  assert.deepEqual([again.status, again.replayed, again.json.disposition, again.json.state], [200, true, 'applied', 'completed'], again.text);
  const resent = await recibo.deliver('p1', body);
  assert.deepEqual([resent.status, resent.replayed, resent.json.disposition, resent.json.delivery_id], [200, true, 'applied', delivery], resent.text);
  await recibo.expectCounts(id, 1, 1, 0);
  assert.equal((await recibo.audit(id)).code, 0);
});

test('a resend that is understood closes the failed callback, and a replay then says so', async () => {
  const id = await accepted();
  const { word, body, delivery, failed } = await unmapped(id);
  await map(word, 'complete');
  assert.equal((await recibo.deliver('p1', body)).json.disposition, 'applied');
  assert.equal(await failedOf(delivery), undefined);
  problem(await replay(failed.failed_callback_id), 409, 'already_closed');
  const [row] = await recibo.sql('SELECT action, actor, closes FROM recibo.replays WHERE failed_callback = $1', [failed.failed_callback_id]);
  assert.deepEqual(row, { action: 'resent', actor: 'p1', closes: true });
  await recibo.expectCounts(id, 1, 1, 0);
});

test('two callbacks with the same body and different signed keys are two, also while they cannot be understood', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'headed' });
  const word = `twice-${id}`;
  const body = callbackBody(id, 'e1', word);
  const sendAs = (key, text = body) =>
    recibo.raw({ target: '/callbacks/headed', headers: [['Content-Type', 'application/json'], ['X-Delivery', key], ['X-Signature', hmac('sha256', 'test-secret-headed', [`${key}.`, text], 'hex')]], body: text });
  const deliveries = [];
  for (const key of ['d-1', 'd-2', 'd-3', 'd-4']) {
    const answer = await sendAs(key);
    assert.deepEqual([answer.status, answer.json.disposition], [202, 'unmapped'], answer.text);
    deliveries.push(answer.json.delivery_id);
    assert.equal((await sendAs(key)).json.delivery_id, answer.json.delivery_id, 'the same again is the same');
  }
  assert.equal(new Set(deliveries).size, 4);
  // What is no JSON at all has its key all the same.
  for (const key of ['j-1', 'j-2']) assert.equal((await sendAs(key, '{')).status, 422);
  const failed = (await recibo.list('/v1/failed-callbacks?provider=headed')).filter((f) => f.request_id === id);
  failed.sort((a, b) => deliveries.indexOf(a.delivery_id) - deliveries.indexOf(b.delivery_id));
  assert.deepEqual(failed.map((f) => f.count), [2, 2, 2, 2]);
  assert.equal((await recibo.list('/v1/failed-callbacks?provider=headed')).length, 6);
  await map(word, 'progress', 'headed');
  const words = [];
  for (const one of failed.slice(0, 3)) words.push((await replay(one.failed_callback_id)).json.disposition);
  assert.deepEqual(words, ['applied', 'redundant', 'redundant']);
  assert.equal((await sendAs('d-4')).json.disposition, 'redundant', 'a resend closes its own');
  for (const key of ['d-1', 'd-2', 'd-3', 'd-4']) assert.deepEqual([(await sendAs(key)).replayed], [true], key);
  const keys = await recibo.sql('SELECT count(*)::int AS n FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1', [id]);
  assert.equal(keys[0].n, 4, 'each has claimed its own key');
  assert.deepEqual((await recibo.list('/v1/failed-callbacks?provider=headed')).filter((f) => f.request_id === id), []);
  for (const one of await recibo.list('/v1/failed-callbacks?provider=headed')) assert.equal((await discard(one.failed_callback_id)).status, 200);
});

test('a resend closes all that failed of its bytes, whatever key was read from them meanwhile', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'headed' });
  const word = `late-${id}`;
  const body = callbackBody(id, 'e1', word);
  const sendAs = (key) =>
    recibo.raw({ target: '/callbacks/headed', headers: [['Content-Type', 'application/json'], ['X-Delivery', key], ['X-Signature', hmac('sha256', 'test-secret-headed', [`${key}.`, body], 'hex')]], body });
  const { idempotency_key: right } = recibo.config.providers.headed.extract;
  const keyed = (idempotency_key) => reconfigure((config) => (config.providers.headed.extract = { ...config.providers.headed.extract, idempotency_key }));
  await keyed('/absent');
  assert.equal((await sendAs('d-1')).status, 422);
  await keyed(right);
  assert.equal((await sendAs('d-1')).json.disposition, 'unmapped');
  const failed = (await recibo.list('/v1/failed-callbacks?provider=headed')).filter((f) => f.request_id === id);
  assert.equal(failed.length, 2);
  await map(word, 'complete', 'headed');
  assert.equal((await sendAs('d-1')).json.disposition, 'applied');
  assert.deepEqual((await recibo.list('/v1/failed-callbacks?provider=headed')).filter((f) => f.request_id === id), []);
  for (const one of failed) assert.equal((await replay(one.failed_callback_id)).json.code, 'already_closed');
  assert.equal((await recibo.audit()).code, 0);
});

test('a resend that is parked closes it too', async () => {
  const id = freshId();
  const { word, body, delivery } = await unmapped(id);
  await map(word, 'complete');
  assert.equal((await recibo.deliver('p1', body)).json.disposition, 'parked');
  assert.equal(await failedOf(delivery), undefined);
  assert.equal((await recibo.accepted(id)).state, 'completed');
  await recibo.expectCounts(id, 1, 1, 0);
});

test('a replay of what nobody has registered is parked, and applied by the registration', async () => {
  const id = freshId();
  const { word, body, delivery, failed } = await unmapped(id);
  await map(word, 'complete');
  assert.equal((await replay(failed.failed_callback_id, { dry_run: true })).json.disposition, 'parked');
  assert.equal((await replay(failed.failed_callback_id)).json.disposition, 'parked');
  assert.equal(await failedOf(delivery), undefined);
  assert.equal((await recibo.audit()).code, 0);
  assert.equal((await recibo.accepted(id)).state, 'completed');
  await recibo.expectCounts(id, 1, 1, 0);
  const told = (await recibo.timeline(id)).find((e) => e.kind === 'replay');
  assert.deepEqual([told.actor, told.disposition, told.failed_callback_id], ['ops', 'applied', failed.failed_callback_id]);
  const again = await replay(failed.failed_callback_id);
  assert.deepEqual([again.replayed, again.json.disposition, again.json.request_id], [true, 'applied', id]);
  assert.deepEqual([(await recibo.deliver('p1', body)).replayed, (await recibo.audit(id)).code], [true, 0]);
});

test('where the policy rejects what is unknown, it stays and says why', async () => {
  const id = freshId();
  const { word, delivery, failed } = await unmapped(id, { provider: 'strict' });
  await map(word, 'complete', 'strict');
  const refused = await replay(failed.failed_callback_id);
  assert.deepEqual([refused.json.disposition, refused.json.closed], ['unknown_operation', false], refused.text);
  assert.equal((await failedOf(delivery)).reason, 'unknown_operation');
  await recibo.accepted(id, { provider: 'strict' });
  assert.equal((await replay(failed.failed_callback_id)).json.disposition, 'applied');
});

test('a replay meets the same rules as any callback: stale, review, conflict, duplicate, ignored', async () => {
  const meets = async (prepare, event, disposition, more) => {
    const id = await accepted();
    const { word, failed } = await unmapped(id, { key: 'k', more });
    await prepare(id);
    await map(word, event);
    const dry = await replay(failed.failed_callback_id, { dry_run: true });
    const answer = await replay(failed.failed_callback_id);
    assert.deepEqual([dry.json.disposition, answer.json.disposition, answer.json.closed], [disposition, disposition, true], answer.text);
    assert.equal((await recibo.audit(id)).code, 0);
    return id;
  };
  const complete = (id) => recibo.deliver('p1', callbackBody(id, 'other'));
  await meets(complete, 'progress', 'stale');
  const contradicted = await meets(complete, 'fail', 'review');
  assert.equal((await recibo.get(contradicted)).review_open, true);
  const wrong = await meets(async () => {}, 'complete', 'review', { amount: '1999.00' });
  assert.equal((await recibo.get(wrong)).state, 'accepted');
  const conflict = await meets((id) => recibo.deliver('p1', callbackBody(id, 'k', 'processing')), 'complete', 'conflict');
  assert.deepEqual([(await recibo.get(conflict)).state, (await recibo.get(conflict)).review_open], ['processing', true]);
  await meets(async () => {}, 'ignore', 'ignored');
  // The same content under the same key, in other bytes: it is on record already.
  const id = await accepted();
  const { word, failed } = await unmapped(id, { key: 'k', more: { note: 'one' } });
  await map(word, 'complete');
  await recibo.deliver('p1', callbackBody(id, 'k', word, { note: 'two' }));
  const twice = await replay(failed.failed_callback_id);
  assert.deepEqual([twice.json.disposition, twice.json.closed], ['duplicate', true], twice.text);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('what the body does not say is kept for the replay, and nothing that authenticates', async () => {
  const id = await accepted({ provider: 'p2' });
  const body = callbackBody(id, undefined, undefined);
  const signed = recibo.request('p2', body, { headers: [['X-Event', 'brand-new'], ['Authorization', 'Bearer SECRET-ZZZ'], ['Cookie', 'sid=SECRET-YYY'], ['X-Api-Key', 'SECRET-WWW']] });
  const answer = await recibo.raw({ ...signed, target: `${signed.target}?delivery=d-1&access_token=SECRET-WWW` });
  assert.equal(answer.json.disposition, 'unmapped', answer.text);
  const [{ head }] = await recibo.sql('SELECT head FROM recibo.failed_callbacks WHERE delivery = $1', [answer.json.delivery_id]);
  assert.doesNotMatch(head, /SECRET|sha256=/);
  await map('brand-new', 'complete', 'p2');
  const failed = await failedOf(answer.json.delivery_id);
  const done = await replay(failed.failed_callback_id);
  assert.deepEqual([done.json.disposition, done.json.state], ['applied', 'completed'], done.text);
  // The signed bytes under another key are the same callback still (the signature does not cover the key).
  const again = await recibo.raw({ ...signed, target: `${signed.target}?delivery=d-2` });
  assert.deepEqual([again.status, again.replayed], [200, true], again.text);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('what cannot be read at all can be discarded, with a reason, and not replayed after', async () => {
  const answer = await recibo.deliver('p1', `{"request_id":"${freshId()}","event_id":"e","status":"failed","status":"succeeded"}`);
  assert.equal(answer.status, 422);
  const failed = await failedOf(answer.json.delivery_id);
  assert.equal((await replay(failed.failed_callback_id)).json.disposition, 'unprocessable');
  problem(await discard(failed.failed_callback_id, {}), 422, 'missing_field');
  const gone = await discard(failed.failed_callback_id);
  assert.deepEqual([gone.status, gone.json.discarded, gone.replayed], [200, true, false], gone.text);
  assert.equal(await failedOf(answer.json.delivery_id), undefined);
  assert.equal((await discard(failed.failed_callback_id)).replayed, true);
  problem(await discard(failed.failed_callback_id, { reason: 'another' }), 409, 'already_closed');
  problem(await replay(failed.failed_callback_id), 409, 'already_closed');
  assert.equal((await recibo.storedBody(answer.json.delivery_id)).length > 0, true, 'delivery and body stay');
});

test('only operators replay, and bad requests change nothing', async () => {
  const { failed } = await unmapped(await accepted());
  const before = await recibo.everything();
  for (const token of ['viewer', 'helpdesk', 'checkout']) {
    problem(await replay(failed.failed_callback_id, {}, { token }), 403, 'forbidden');
    problem(await discard(failed.failed_callback_id, undefined, { token }), 403, 'forbidden');
    problem(await post('/v1/failed-callbacks/replay', { filter: {}, reason: 'x' }, { token }), 403, 'forbidden');
  }
  problem(await post(`/v1/failed-callbacks/${failed.failed_callback_id}/replay`, {}), 422, 'missing_field');
  problem(await post('/v1/failed-callbacks/replay', { filter: { colour: 'red' }, reason: 'x' }), 422, 'unknown_field');
  problem(await post('/v1/failed-callbacks/replay', { filter: {}, reason: 'x', cursor: 'nonsense' }), 422, 'malformed_field');
  problem(await replay('00000000-0000-7000-8000-000000000000'), 404, 'not_found');
  problem(await replay('nonsense'), 404, 'not_found');
  problem(await discard('00000000-0000-7000-8000-000000000000'), 404, 'not_found');
  assert.deepEqual(await recibo.everything(), before);
});

test('two replicas replay at once, and the provider sends again: one effect', async () => {
  for (let round = 0; round < 6; ++round) {
    const id = await accepted();
    const { word, body, failed } = await unmapped(id);
    await map(word, 'complete');
    const answers = await Promise.all([
      replay(failed.failed_callback_id),
      atSecond(() => Promise.all([replay(failed.failed_callback_id, {}, { token: 'shift' }), recibo.callback('p1', body)])),
      replay(failed.failed_callback_id),
    ]);
    for (const answer of answers.flat()) assert.ok(answer.status === 200 || answer.json.code === 'already_closed' || isSendAgain(answer), answer.text);
    await recibo.expectCounts(id, 1, 1, 0);
    assert.equal((await recibo.audit(id)).code, 0);
    const closings = await recibo.sql('SELECT action FROM recibo.replays WHERE failed_callback = $1 AND closes', [failed.failed_callback_id]);
    assert.equal(closings.length, 1);
  }
});

test('killed in between: the same replay again finds what was done', async () => {
  for (let round = 0; round < 3; ++round) {
    const id = await accepted();
    const { word, failed } = await unmapped(id);
    await map(word, 'complete');
    const cut = replay(failed.failed_callback_id).catch(() => null);
    await sleep(round * 4);
    await recibo.service.kill();
    await cut;
    await recibo.serve();
    replicas[0] = recibo.service;
    const again = await until('an answer', async () => {
      const answer = await replay(failed.failed_callback_id);
      return isSendAgain(answer) ? null : answer;
    }, { timeout: 20_000 });
    assert.deepEqual([again.status, again.json.disposition, again.json.state], [200, 'applied', 'completed'], again.text);
    await recibo.expectCounts(id, 1, 1, 0);
  }
});

test('many at once: counted first, then replayed in bounded steps, each one once', async () => {
  const word = `many-${freshId()}`;
  const ids = [];
  for (let i = 0; i < 60; ++i) {
    const id = await accepted();
    await unmapped(id, { word });
    ids.push(id);
  }
  await unmapped(await accepted(), { word: 'another' });
  await map(word, 'complete');
  const ask = (body) => post('/v1/failed-callbacks/replay', { filter: { event: word }, reason: 'mended', ...body });
  const dry = await ask({ dry_run: true });
  assert.deepEqual([dry.json.matched, dry.json.taken, dry.json.by_disposition, dry.json.closed], [60, 60, { applied: 60 }, 0], dry.text);
  let closed = 0;
  for (let cursor, step = 0; step === 0 || cursor; ++step) {
    const answer = await ask({ limit: 25, ...(cursor ? { cursor } : {}) });
    assert.equal(answer.status, 200, answer.text);
    assert.ok(answer.json.taken <= 25);
    closed += answer.json.closed;
    cursor = answer.json.next_cursor;
  }
  assert.equal(closed, 60);
  assert.deepEqual((await ask({})).json, { matched: 0, dry_run: false, taken: 0, closed: 0, by_disposition: {}, next_cursor: null });
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0);
  assert.equal((await recibo.list('/v1/failed-callbacks?event=another')).length, 1);
});

test('recibo replay failed does the same from a terminal', async () => {
  const id = await accepted();
  const { word } = await unmapped(id);
  recibo.config.providers.p1.events = { ...recibo.config.providers.p1.events, [word]: 'complete' };
  recibo.write(); // for the command; the instances go on as they are
  const dry = await recibo.run(['replay', 'failed', '--filter', `event=${word}`, '--reason', 'mended', '--dry-run']);
  assert.deepEqual([dry.code, /1 failed callbacks match\n {2}1 applied\na dry run: nothing was changed/.test(dry.stdout)], [0, true], dry.stdout + dry.stderr);
  assert.equal((await recibo.get(id)).state, 'accepted');
  const done = await recibo.run(['replay', 'failed', '--filter', `event=${word}`, '--reason', 'mended', '--actor', 'night watch']);
  assert.deepEqual([done.code, /1 are done, 0 stay/.test(done.stdout)], [0, true], done.stdout + done.stderr);
  const told = (await recibo.timeline(id)).find((e) => e.kind === 'replay');
  assert.deepEqual([told.actor, told.reason, (await recibo.get(id)).state], ['night watch', 'mended', 'completed']);
  const stays = await recibo.run(['replay', 'failed', '--filter', 'event=another', '--reason', 'try']);
  assert.deepEqual([stays.code, /1 unmapped/.test(stays.stdout)], [1, true], stays.stdout + stays.stderr);
  for (const wrong of [['--filter', 'colour=red'], ['--filter', 'event'], ['--filter', 'first_seen_after=yesterday']]) {
    assert.equal((await recibo.run(['replay', 'failed', '--reason', 'x', ...wrong])).code, 2, wrong.join(' '));
  }
  assert.equal((await recibo.run(['replay', 'failed'])).code, 2, 'a reason is required');
});

test('a purged body cannot be replayed, and says so', async () => {
  const { failed, delivery } = await unmapped(await accepted());
  const [payload] = await recibo.sql('DELETE FROM recibo.payloads WHERE id = $1 RETURNING body, content_type', [delivery]);
  problem(await replay(failed.failed_callback_id), 410, 'payload_purged');
  await recibo.sql('INSERT INTO recibo.payloads (id, body, content_type) VALUES ($1, $2, $3)', [delivery, payload.body, payload.content_type]);
});

test('what a replay did cannot be changed unnoticed, nor by the service at all', async () => {
  const id = await accepted();
  const { word, failed } = await unmapped(id);
  await map(word, 'complete');
  await replay(failed.failed_callback_id);
  const change = (to) => recibo.sql('UPDATE recibo.replays SET reason = $2 WHERE failed_callback = $1', [failed.failed_callback_id, to]);
  await change('because');
  const told = await recibo.audit(id);
  assert.equal(told.code, 1, told.stdout);
  await change('the map was mended');
  assert.equal((await recibo.audit(id)).code, 0);
  const [may] = await recibo.sql(`SELECT has_table_privilege('recibo_service', 'recibo.replays', 'UPDATE') AS u, has_table_privilege('recibo_service', 'recibo.replays', 'DELETE') AS d`);
  assert.deepEqual(may, { u: false, d: false });
});

test('R26: the whole of it verifies when callbacks wait that were not understood, and when they were replayed', async () => {
  const { word, failed } = await unmapped(await accepted());
  const whole = async () => {
    const told = await recibo.run(['audit', 'verify']);
    assert.equal(told.code, 0, told.stdout + told.stderr);
  };
  await whole();
  await map(word, 'complete');
  await replay(failed.failed_callback_id);
  await whole();
});

test('the second replica ends well', async () => {
  const ended = await replicas[1].stop();
  assert.deepEqual([ended.code, ended.signal], [0, null], replicas[1].tail());
});

stage.ends();
