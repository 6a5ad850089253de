// Before anything is repeated after an ambiguous time-out the provider is asked (R23): a `retry` is raised only where the provider says
// that nothing has happened, and never on a belief that is older than the answer.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { StatusServer } from '../support/status_server.mjs';

const provider = await StatusServer.start();
const secret = 'test-secret-A';

const repeated = {
  initial: 'accepted',
  states: {
    accepted: { label: 'Accepted', limit: 'none', owner: 'checkout' },
    processing: { label: 'In progress', limit: 'none', owner: 'payments-ops' },
    unsure: { label: 'Being checked', limit: 'none', owner: 'payments-ops' },
    refused: { label: 'Refused, may be tried again', limit: 'none', owner: 'checkout' },
    completed: { label: 'Completed', terminal: true, done: true },
  },
  transitions: [
    { from: 'accepted', event: 'submitted', to: 'processing', by: 'client' },
    { from: 'processing', event: 'lost', to: 'unsure', by: ['client', 'operator'] },
    { from: ['unsure', 'refused'], event: 'retry', to: 'processing', by: ['client', 'operator'] },
    { from: ['accepted', 'processing', 'unsure', 'refused'], event: 'complete', to: 'completed', by: 'provider' },
    { from: ['accepted', 'processing', 'unsure'], event: 'fail', to: 'refused', by: 'provider' },
  ],
};

const stage = await Stage.begin({
  configure(config) {
    config.workflows.repeated = repeated;
    // Here the clock repeats what takes too long.
    config.workflows.patient = structuredClone(repeated);
    config.workflows.patient.states.unsure.limit = { after: '1s', event: 'retry' };
    config.workflows.patient.transitions.find((row) => row.event === 'retry').by = ['client', 'operator', 'clock'];
    const asked = { ...config.providers.p1, workflow: 'repeated', events: { succeeded: 'complete', failed: 'fail', pending: 'ignore', unbegun: 'ignore' } };
    const status = {
      url: `${provider.url}/payments/{request_id}`, allow: ['127.0.0.0/8'], timeout: '2s', retry: { attempts: 3, first: '1s', max: '1s' },
      rate: { per_second: 200, burst: 200 }, concurrency: 8, extract: { request_id: '/id', event: '/status', amount: '/amount', currency: '/currency' },
      safe_to_retry: ['unbegun', 'failed'],
    };
    config.providers.asked = { ...asked, status };
    config.providers.trusting = { ...asked, status: { ...status, before_retry: false } };
    config.providers.silent = { ...asked, status: { ...status, retry: { attempts: 8, first: '1h', max: '1h' } } };
    config.providers.slowly = { ...asked, status: { ...status, timeout: '10s' } };
    config.providers.named = { ...asked, status: { ...status, url: `${provider.url}/payments/{reference}`, extract: { reference: '/id', event: '/status' } } };
    config.providers.plain = asked;
    config.providers.itemised = { ...asked, status: { ...status, extract: { request_id: '/id', items: { each: '/lines', item_id: '/line', event: '/status' } } } };
    config.providers.patient = { ...asked, workflow: 'patient', status };
    config.providers.leisurely = { ...asked, workflow: 'patient', status: { ...status, retry: { attempts: 6, first: '1h', max: '1h' } } };
    config.providers.dead = { ...asked, workflow: 'patient', status: { ...status, retry: { attempts: 2, first: '1s', max: '1s' } } };
    return config;
  },
});
const { recibo } = stage;

const said = (id, status, more = {}) => ({ id, status, amount: '19.99', currency: 'EUR', ...more });
const retry = (id, { body = {}, token, key, headers = [] } = {}) =>
  recibo.event(id, { event: 'retry', ...body }, { token, headers: [...headers, ...(key ? [['Idempotency-Key', key]] : [])] });
const checks = async (id) => (await recibo.timeline(id)).filter((e) => e.kind === 'status_check');
const moves = async (id) => (await recibo.timeline(id)).filter((e) => e.kind === 'transition').map((e) => e.event);
const reviews = async (id) => (await recibo.list(`/v1/reviews?request_id=${id}`)).filter((r) => r.request_id === id);

async function unsure(at = 'asked') {
  const id = freshId();
  await recibo.accepted(id, { provider: at });
  for (const event of ['submitted', 'lost']) assert.equal((await recibo.event(id, { event })).status, 200);
  return id;
}

test('nothing has happened: the retry is raised, after the answer and with it as evidence', async () => {
  const id = await unsure();
  provider.says.set(id, said(id, 'unbegun'));
  const answer = await retry(id);
  assert.deepEqual([answer.status, answer.json.state], [200, 'processing'], answer.text);
  assert.equal(provider.of(id).length, 1);
  const [look] = await checks(id);
  assert.deepEqual([look.cause, look.actor, look.status, look.disposition], ['retry', 'checkout', 'answered', 'redundant']);
  assert.deepEqual(await moves(id), ['submitted', 'lost', 'retry']);
});

test('in progress at the provider: 409, for that is where a repetition pays twice', async () => {
  const id = await unsure();
  provider.says.set(id, said(id, 'pending'));
  const answer = await retry(id);
  assert.deepEqual([answer.status, answer.json.code, answer.json.state], [409, 'status_unclear', 'unsure'], answer.text);
  const [look] = await checks(id);
  assert.deepEqual([look.cause, look.status, look.disposition], ['retry', 'answered', 'redundant']);
  assert.deepEqual(await moves(id), ['submitted', 'lost']);
  // It knows the operation no more, which does not say how it ended.
  const gone = await unsure();
  provider.says.set(gone, 410);
  const refused = await retry(gone);
  assert.deepEqual([refused.status, refused.json.code], [409, 'status_unclear'], refused.text);
  assert.deepEqual((await reviews(gone)).map((r) => r.kind), ['look_up']);
});

test('the answer has news: 409 and the state that is now true', async () => {
  const id = await unsure();
  provider.says.set(id, said(id, 'succeeded'));
  const answer = await retry(id);
  assert.deepEqual([answer.status, answer.json.code, answer.json.state, answer.json.retryable], [409, 'overtaken', 'completed', false], answer.text);
  assert.deepEqual(answer.json.allowed_events, []);
  assert.deepEqual(await moves(id), ['submitted', 'lost', 'complete']);
  // Also where the new state would allow it: whoever wanted it did not know of that state.
  const other = await unsure();
  provider.says.set(other, said(other, 'failed'));
  const refused = await retry(other);
  assert.deepEqual([refused.status, refused.json.code, refused.json.state, refused.json.allowed_events], [409, 'overtaken', 'refused', ['retry']], refused.text);
  // Knowing it, it is raised: the provider says again what is so.
  const again = await retry(other);
  assert.deepEqual([again.status, again.json.state], [200, 'processing'], again.text);
  assert.equal(provider.of(other).length, 2);
});

test('a provider that does not know the operation, twice, has not done anything: the retry is raised and nobody has to look', async () => {
  const id = await unsure();
  provider.says.set(id, 404);
  const answer = await retry(id);
  assert.deepEqual([answer.status, answer.json.state], [200, 'processing'], answer.text);
  const [look] = await checks(id);
  assert.deepEqual([look.status, look.reason, look.attempts], ['failed', 'not_found', 2]);
  assert.deepEqual(await reviews(id), []);
});

test('what the provider says needs a person: 409, and nothing is repeated', async () => {
  const id = await unsure();
  provider.says.set(id, said(id, 'succeeded', { amount: '1999.00' }));
  const answer = await retry(id);
  assert.deepEqual([answer.status, answer.json.code, answer.json.state], [409, 'status_unclear', 'unsure'], answer.text);
  assert.deepEqual((await reviews(id)).map((r) => r.kind), ['amount_mismatch']);
  // An operator who has asked by other means says so, and is not made to wait.
  const decided = await retry(id, { token: 'ops', body: { evidence: 'their support: never arrived', reason: 'asked by telephone' } });
  assert.deepEqual([decided.status, decided.json.state], [200, 'processing'], decided.text);
  assert.equal(provider.of(id).length, 1);
});

test('the same answer after other news is not taken for no news', async () => {
  const id = await unsure();
  provider.says.set(id, said(id, 'failed'));
  assert.equal((await retry(id)).json.code, 'overtaken');
  assert.equal((await retry(id)).json.state, 'processing');
  assert.equal((await recibo.event(id, { event: 'lost' })).status, 200);
  // It says "failed" again, which is on record; from here it would be a move.
  const answer = await retry(id);
  assert.deepEqual([answer.status, answer.json.code, answer.json.state], [409, 'status_unclear', 'unsure'], answer.text);
});

test('no answer in time: 503, and the same again finds the answer', async () => {
  const id = await unsure('silent');
  provider.says.set(id, [500, said(id, 'unbegun')]);
  const key = freshId('key');
  const first = await retry(id, { key });
  assert.deepEqual([first.status, first.json.code, first.json.retryable], [503, 'status_unknown', true], first.text);
  assert.match(first.header('Retry-After'), /^[0-9]+$/);
  assert.equal((await recibo.get(id)).state, 'unsure');
  // After a failure its schedule would wait for minutes; somebody waits for the answer, so that it is asked sooner.
  const second = await until('the retry is raised', async () => {
    const one = await retry(id, { key });
    return one.status === 503 ? null : one;
  }, { timeout: 40_000 });
  assert.deepEqual([second.status, second.json.state, second.header('Idempotent-Replayed')], [200, 'processing', undefined], second.text);
  assert.equal(provider.of(id).length, 2, 'what it said a moment ago holds');
  const third = await retry(id, { key });
  assert.deepEqual([third.status, third.header('Idempotent-Replayed')], [200, 'true'], third.text);
  assert.equal(provider.of(id).length, 2, 'a repetition asks nobody');
  assert.deepEqual(await moves(id), ['submitted', 'lost', 'retry']);
});

test('a callback that comes while the provider is asked overtakes the retry', async () => {
  const id = await unsure('slowly');
  provider.says.set(id, { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(said(id, 'unbegun')), after: 5_000 });
  const pending = retry(id);
  await until('the provider is being asked', async () => provider.of(id).length === 1);
  assert.equal((await recibo.deliver('slowly', callbackBody(id, 'evt-1', 'failed'), { secret })).json.state, 'refused');
  const answer = await pending;
  assert.deepEqual([answer.status, answer.json.code, answer.json.state], [409, 'overtaken', 'refused'], answer.text);
  assert.deepEqual(await moves(id), ['submitted', 'lost', 'fail']);
});

test('many at once are one retry', async () => {
  const id = await unsure();
  provider.says.set(id, { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(said(id, 'unbegun')), after: 300 });
  const answers = await Promise.all(Array.from({ length: 6 }, () => retry(id)));
  const won = answers.filter((a) => a.status === 200);
  assert.equal(won.length, 1, JSON.stringify(answers.map((a) => [a.status, a.json.code])));
  for (const a of answers.filter((one) => one.status !== 200)) assert.ok(['overtaken', 'illegal_transition'].includes(a.json.code), a.text);
  assert.deepEqual((await moves(id)).filter((m) => m === 'retry'), ['retry']);
  assert.equal(provider.of(id).length, 1);
});

test('If-Match is held against what was looked at, not against the answer', async () => {
  const id = await unsure();
  provider.says.set(id, said(id, 'unbegun'));
  const etag = (await recibo.api('GET', `/v1/operations/${id}`)).header('ETag');
  const answer = await retry(id, { headers: [['If-Match', etag]] });
  assert.deepEqual([answer.status, answer.json.state], [200, 'processing'], answer.text);
  assert.equal((await retry(id, { headers: [['If-Match', etag]] })).status, 412);
});

test('who cannot be asked about says so; who need not be asked is not', async () => {
  const nameless = await unsure('named');
  const answer = await retry(nameless);
  assert.deepEqual([answer.status, answer.json.code], [409, 'status_unclear'], answer.text);
  for (const at of ['trusting', 'plain']) {
    const id = await unsure(at);
    assert.equal((await retry(id)).json.state, 'processing');
    assert.deepEqual(provider.of(id), []);
  }
  const early = freshId();
  await recibo.accepted(early, { provider: 'asked' });
  const illegal = await retry(early);
  assert.deepEqual([illegal.status, illegal.json.code], [409, 'illegal_transition'], illegal.text);
  assert.deepEqual(provider.of(early), [], 'what the table does not allow is not asked about');
});

test('an item is repeated only where the answer has moved neither it nor its operation', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'itemised', items: [{ item_id: 'a' }, { item_id: 'b' }] });
  for (const item_id of ['a', 'b']) {
    for (const event of ['submitted', 'lost']) assert.equal((await recibo.event(id, { event, item_id })).status, 200);
  }
  provider.says.set(id, { id, lines: [{ line: 'a', status: 'succeeded' }, { line: 'b', status: 'unbegun' }] });
  const overtaken = await retry(id, { body: { item_id: 'a' } });
  assert.deepEqual([overtaken.status, overtaken.json.code, overtaken.json.state], [409, 'overtaken', 'completed'], overtaken.text);
  // Of another item it says nothing that counts for this one.
  provider.says.set(id, { id, lines: [{ line: 'a', status: 'succeeded' }, { line: 'b', status: 'pending' }] });
  const unclear = await retry(id, { body: { item_id: 'b' } });
  assert.deepEqual([unclear.status, unclear.json.code], [409, 'status_unclear'], unclear.text);
  await recibo.sql("UPDATE recibo.look_ups SET settled_at = settled_at - interval '1 minute' WHERE status = 'answered'");
  provider.says.set(id, { id, lines: [{ line: 'b', status: 'unbegun' }] });
  const raised = await retry(id, { body: { item_id: 'b' } });
  assert.equal(raised.status, 200, raised.text);
  const items = await recibo.list(`/v1/operations/${id}/items`);
  assert.deepEqual(items.map((i) => [i.item_id, i.state]).sort(), [['a', 'completed'], ['b', 'processing']]);
});

test('the clock asks before it repeats, too', async () => {
  const [quiet, ended, doubtful, going] = [freshId(), freshId(), freshId(), freshId()];
  provider.says.set(quiet, said(quiet, 'unbegun'));
  provider.says.set(ended, said(ended, 'succeeded'));
  provider.says.set(doubtful, said(doubtful, 'succeeded', { amount: '1.00' }));
  provider.says.set(going, said(going, 'pending'));
  for (const id of [quiet, ended, doubtful, going]) {
    await recibo.accepted(id, { provider: 'patient' });
    for (const event of ['submitted', 'lost']) assert.equal((await recibo.event(id, { event })).status, 200);
  }
  await until('the quiet one is repeated', async () => (await recibo.get(quiet)).state === 'processing', { timeout: 40_000 });
  assert.deepEqual((await checks(quiet)).map((l) => [l.cause, l.actor, l.disposition]), [['retry', 'clock', 'redundant']]);
  assert.equal((await recibo.timeline(quiet)).find((e) => e.event === 'retry').actor_kind, 'clock');
  await until('what ended is found out', async () => (await recibo.get(ended)).state === 'completed', { timeout: 40_000 });
  assert.deepEqual((await moves(ended)).filter((m) => m === 'retry'), []);
  await until('what is in doubt is a person\'s', async () => (await reviews(doubtful)).some((r) => r.kind === 'overdue'), { timeout: 40_000 });
  await until('so is what is in progress', async () => (await reviews(going)).some((r) => r.kind === 'overdue'), { timeout: 40_000 });
  assert.deepEqual(await moves(going), ['submitted', 'lost']);
  assert.deepEqual([(await recibo.get(doubtful)).state, (await moves(doubtful)).includes('retry')], ['unsure', false]);
  assert.match((await reviews(doubtful)).find((r) => r.kind === 'overdue').detail, /has to be looked at before it is retried/);
});

test('the clock has time: it ends no back-off, and what was not answered is one review and tried again', async () => {
  const [slow, dead] = [freshId(), freshId()];
  provider.says.set(slow, 503);
  provider.says.set(dead, [503, 503, said(dead, 'unbegun')]);
  for (const [id, at] of [[slow, 'leisurely'], [dead, 'dead']]) {
    await recibo.accepted(id, { provider: at });
    for (const event of ['submitted', 'lost']) assert.equal((await recibo.event(id, { event })).status, 200);
  }
  await until('it is given up', async () => (await reviews(dead)).length > 0, { timeout: 40_000 });
  const timer = (id) => recibo.sql(
    `SELECT t.fired_at, extract(epoch FROM t.due_at - now())::float AS left FROM recibo.timers t JOIN recibo.operations o ON o.id = t.operation WHERE o.request_id = $1`, [id]);
  await until('the clock has seen it', async () => (await timer(dead))[0].left > 6, { timeout: 30_000 });
  assert.deepEqual((await reviews(dead)).map((r) => r.kind), ['look_up']);
  assert.equal((await timer(dead))[0].fired_at, null);
  const [look] = await recibo.sql(
    `SELECT extract(epoch FROM l.next_attempt_at - now())::float AS left, l.attempts FROM recibo.look_ups l JOIN recibo.operations o ON o.id = l.operation WHERE o.request_id = $1`, [slow]);
  assert.ok(look.left > 30 && look.attempts === 1, JSON.stringify(look));
  assert.deepEqual(await reviews(slow), []);
  // When its time has come.
  await recibo.sql(`UPDATE recibo.look_ups l SET settled_at = settled_at - interval '10 minutes' FROM recibo.operations o WHERE o.id = l.operation AND o.request_id = $1`, [dead]);
  await recibo.sql(`UPDATE recibo.timers t SET due_at = now() - interval '1 second' FROM recibo.operations o WHERE o.id = t.operation AND o.request_id = $1`, [dead]);
  await until('it is repeated', async () => (await recibo.get(dead)).state === 'processing', { timeout: 40_000 });
});

test('a review is not the way around it', async () => {
  const id = await unsure();
  provider.says.set(id, said(id, 'succeeded', { amount: '1.00' }));
  assert.equal((await retry(id)).json.code, 'status_unclear');
  const [review] = await reviews(id);
  const resolve = (more) => recibo.api('POST', `/v1/reviews/${review.review_id}/resolve`, { body: { resolution: 'again', reason: 'it got lost', event: 'retry', ...more } });
  const refused = await resolve({});
  assert.deepEqual([refused.status, refused.json.code], [409, 'illegal_transition'], refused.text);
  const decided = await resolve({ evidence: 'their support: never arrived' });
  assert.equal(decided.status, 200, decided.text);
  assert.equal((await recibo.get(id)).state, 'processing');
});

test('killed while the provider is asked: nothing is repeated, and the retry may come again', async () => {
  const id = await unsure();
  provider.says.set(id, [{ status: 200, after: Infinity }, said(id, 'unbegun')]);
  const pending = retry(id).catch(() => null);
  await until('the provider is being asked', async () => provider.of(id).length === 1);
  await recibo.restart('kill');
  await pending;
  assert.deepEqual(await moves(id), ['submitted', 'lost']);
  await recibo.sql("UPDATE recibo.look_ups SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL");
  const answer = await until('the retry is raised', async () => {
    const one = await retry(id);
    return one.status === 503 ? null : one;
  }, { timeout: 60_000 });
  assert.deepEqual([answer.status, answer.json.state], [200, 'processing'], answer.text);
});

test('safe_to_retry names words of the map', async () => {
  const config = structuredClone(recibo.config);
  config.providers.asked.status.safe_to_retry = ['unbegn'];
  const done = await recibo.run(['check', '--config', recibo.write(config, join(recibo.folder, 'unsafe.yaml'))]);
  assert.equal(done.code, 2);
  assert.match(done.stdout + done.stderr, /safe_to_retry: events has no word \"unbegn\"; did you mean \"unbegun\"\?/);
});

test('before_retry is a word of the configuration', async () => {
  const config = structuredClone(recibo.config);
  config.providers.asked.status.before_retry = 'perhaps';
  const done = await recibo.run(['check', '--config', recibo.write(config, join(recibo.folder, 'changed.yaml'))]);
  assert.equal(done.code, 2);
  assert.match(done.stdout + done.stderr, /before_retry/);
});

stage.ends();
