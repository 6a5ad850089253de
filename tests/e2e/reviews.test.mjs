// Reviews: every exception has an owner, an age limit and a way out that is on record (R25).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';

const stage = await Stage.begin({
  configure(config) {
    config.reviews = { due: '1h', owner: 'duty-desk', parked_after: '1s' };
    config.providers.desk.extract.reference = ['/reference', '/other_reference'];
    return config;
  },
});
const { recibo } = stage;
const replicas = [recibo.service, await recibo.serve()];
recibo.service = replicas[0];

// The same installation, through the second replica.
async function atSecond(action) {
  recibo.service = replicas[1];
  try {
    return await action();
  } finally {
    recibo.service = replicas[0];
  }
}

const act = (id, what, body, { token = 'ops', headers } = {}) => recibo.api('POST', `/v1/reviews/${id}/${what}`, { token, body, headers });
const resolve = (id, body = {}, options) => act(id, 'resolve', { resolution: 'stands', reason: 'the provider confirmed it', ...body }, options);
const read = async (id) => (await recibo.api('GET', `/v1/reviews/${id}`)).json;
const openOf = (requestId) => recibo.list(`/v1/reviews?status=open&request_id=${requestId}`);
const minutes = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / 60_000);

function problem(answer, status, code) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.json.code, code, answer.text);
}

// An operation at `desk` that has ended and is told to have ended otherwise.
async function contradicted() {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  assert.equal((await recibo.deliver('desk', callbackBody(id, 'e1'))).json.disposition, 'applied');
  assert.equal((await recibo.deliver('desk', callbackBody(id, 'e2', 'failed'))).json.disposition, 'review');
  const [review] = await openOf(id);
  assert.equal(review.kind, 'contradiction');
  return { id, review };
}

// An operation that is held, and was called back with another amount: the table lets operators end it.
async function mismatched() {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  assert.equal((await recibo.event(id, { event: 'hold' }, { token: 'ops' })).status, 200);
  assert.equal((await recibo.deliver('desk', callbackBody(id, 'e1', 'succeeded', { amount: '1999.00' }))).json.disposition, 'review');
  const [review] = await openOf(id);
  assert.equal(review.kind, 'amount_mismatch');
  return { id, review };
}

test('an exception names its owner, its age limit, the last safe state and what may be done', async () => {
  const { review: ended } = await contradicted();
  assert.deepEqual([ended.owner, ended.last_safe_state, ended.present_state, ended.overdue], ['duty-desk', 'completed', 'completed', false], 'nobody owns the end of a story: the configured owner does');
  assert.equal(minutes(ended.opened_at, ended.due_at), 60);
  assert.deepEqual([ended.permitted_actions, ended.allowed_events], [['assign', 'resolve'], []]);
  const { review: held } = await mismatched();
  assert.deepEqual([held.owner, held.last_safe_state], ['payments-ops', 'held'], 'the owner of the state');
  assert.deepEqual([...held.allowed_events].sort(), ['resolve_completed', 'resolve_failed']);
  assert.ok((await recibo.list('/v1/reviews?owner=payments-ops')).some((one) => one.review_id === held.review_id));
  assert.ok((await recibo.list('/v1/reviews?owner=payments-ops')).every((one) => one.owner === 'payments-ops'));
});

test('one past its age limit is overdue', async () => {
  const { review } = await contradicted();
  await recibo.sql(`UPDATE recibo.reviews SET due_at = now() - interval '1 minute' WHERE id = $1`, [review.review_id]);
  assert.equal((await read(review.review_id)).overdue, true);
  assert.deepEqual((await recibo.list('/v1/reviews?overdue=true')).map((one) => one.review_id), [review.review_id]);
  assert.equal((await resolve(review.review_id)).status, 200);
  assert.deepEqual([(await read(review.review_id)).overdue, await recibo.list('/v1/reviews?overdue=true')], [false, []]);
});

test('assigning is on record, each time; the same again is nothing new', async () => {
  const { id, review } = await contradicted();
  const first = await act(review.review_id, 'assign', { assignee: 'nightshift' });
  assert.deepEqual([first.status, first.json.assigned_to, first.json.status], [200, 'nightshift', 'open'], first.text);
  const again = await act(review.review_id, 'assign', { assignee: 'nightshift' }, { token: 'shift' });
  assert.deepEqual([again.status, again.replayed], [200, true], again.text);
  const passedOn = await act(review.review_id, 'assign', { assignee: 'dayshift', reason: 'handover' }, { token: 'shift' });
  assert.deepEqual([passedOn.json.assigned_to, passedOn.replayed], ['dayshift', false]);
  assert.deepEqual(
    passedOn.json.actions.map((a) => [a.action, a.actor, a.assignee, a.reason]),
    [['assigned', 'ops', 'nightshift', null], ['assigned', 'shift', 'dayshift', 'handover']],
  );
  const told = (await recibo.timeline(id)).filter((e) => e.kind === 'review');
  assert.deepEqual(told.map((e) => [e.status, e.actor, e.assignee]), [['opened', 'desk', undefined], ['assigned', 'ops', 'nightshift'], ['assigned', 'shift', 'dayshift']]);
  assert.deepEqual((await recibo.list('/v1/reviews?assigned_to=dayshift')).map((one) => one.review_id), [review.review_id]);
});

test('resolving with an event moves the operation, and the two are linked', async () => {
  const { id, review } = await mismatched();
  const before = await recibo.get(id);
  assert.deepEqual([before.review_open, before.state], [true, 'held']);
  const answer = await resolve(review.review_id, { resolution: 'billed as sent', event: 'resolve_completed', evidence: { statement: 'S-77' } });
  assert.equal(answer.status, 200, answer.text);
  const [action] = answer.json.actions;
  assert.deepEqual(
    [answer.json.status, answer.json.resolved_by, answer.json.resolution, answer.json.reason, answer.json.present_state, answer.json.last_safe_state],
    ['resolved', 'ops', 'billed as sent', 'the provider confirmed it', 'completed', 'held'],
  );
  assert.deepEqual([action.action, action.event, answer.json.permitted_actions], ['resolved', 'resolve_completed', []]);
  const after = await recibo.get(id);
  assert.deepEqual([after.review_open, after.state, after.version], [false, 'completed', before.version + 1]);
  const timeline = await recibo.timeline(id);
  const move = timeline.find((e) => e.kind === 'transition' && e.event === 'resolve_completed');
  assert.deepEqual([move.actor, move.actor_kind, move.from, move.to, move.evidence], ['ops', 'operator', 'held', 'completed', { statement: 'S-77' }]);
  const told = timeline.filter((e) => e.kind === 'review').at(-1);
  assert.deepEqual([told.status, told.actor, told.detail, told.transition, told.sequence], ['resolved', 'ops', 'billed as sent', move.sequence, move.sequence + 1]);
  const types = timeline.filter((e) => e.kind === 'notification').map((e) => e.type);
  assert.deepEqual(types.slice(-3), ['operation.review_opened', 'operation.completed', 'operation.review_resolved']);
  const drawn = (await recibo.run(['case', id])).stdout;
  assert.match(drawn, /resolved \(amount_mismatch\) by ops: billed as sent, because: the provider confirmed it, with the transition of fact \d+/);
  assert.doesNotMatch(drawn, /to review/);
});

test('the case says what is open, whose it is and until when', async () => {
  const { id, review } = await mismatched();
  await act(review.review_id, 'assign', { assignee: 'nightshift' });
  const drawn = (await recibo.run(['case', id])).stdout;
  assert.match(drawn, new RegExp(`to review +amount_mismatch ${review.review_id}, owner payments-ops, taken by nightshift, due 20`));
});

test('the operation is under review until the last exception is decided', async () => {
  const { id, review } = await contradicted();
  // The same key with other content: a second exception.
  assert.equal((await recibo.deliver('desk', callbackBody(id, 'e1', 'succeeded', { amount: '7.00' }))).status, 409);
  const open = await openOf(id);
  assert.deepEqual(open.map((one) => one.kind).sort(), ['conflict', 'contradiction']);
  await resolve(review.review_id);
  assert.equal((await recibo.get(id)).review_open, true);
  await resolve(open.find((one) => one.kind === 'conflict').review_id);
  assert.equal((await recibo.get(id)).review_open, false);
  assert.deepEqual(await openOf(id), []);
});

test('what comes again after the decision: a contradiction is a new exception, a conflict the same one', async () => {
  const { id, review } = await contradicted();
  await resolve(review.review_id);
  const decided = await read(review.review_id);
  assert.equal((await recibo.deliver('desk', callbackBody(id, 'e3', 'failed'))).json.disposition, 'review');
  const [fresh] = await openOf(id);
  assert.notEqual(fresh.review_id, review.review_id);
  assert.equal((await recibo.get(id)).review_open, true);
  assert.deepEqual({ ...(await read(review.review_id)) }, decided, 'what was decided is as it was');
  const other = callbackBody(id, 'e1', 'succeeded', { amount: '7.00' });
  assert.equal((await recibo.deliver('desk', other)).status, 409);
  const conflict = (await openOf(id)).find((one) => one.kind === 'conflict');
  await resolve(conflict.review_id);
  assert.equal((await recibo.deliver('desk', other)).status, 409);
  const same = await read(conflict.review_id);
  assert.deepEqual([same.status, same.count], ['resolved', 2]);
});

test('a decision is made once: the same again is answered as it was, another one is refused', async () => {
  const { review } = await contradicted();
  const first = await resolve(review.review_id);
  assert.deepEqual([first.status, first.replayed], [200, false]);
  const again = await resolve(review.review_id);
  assert.deepEqual([again.status, again.replayed, again.json], [200, true, first.json]);
  problem(await resolve(review.review_id, { resolution: 'otherwise' }), 409, 'already_resolved');
  problem(await resolve(review.review_id, {}, { token: 'shift' }), 409, 'already_resolved');
  problem(await act(review.review_id, 'assign', { assignee: 'late' }), 409, 'already_resolved');
  assert.equal((await read(review.review_id)).actions.length, 1);
});

test('Idempotency-Key and If-Match hold as with events', async () => {
  const { id, review } = await mismatched();
  const stale = (await recibo.api('GET', `/v1/reviews/${review.review_id}`)).header('ETag');
  await act(review.review_id, 'assign', { assignee: 'nightshift' });
  problem(await resolve(review.review_id, {}, { headers: [['If-Match', stale]] }), 412, 'precondition_failed');
  const fresh = (await recibo.api('GET', `/v1/reviews/${review.review_id}`)).header('ETag');
  assert.notEqual(fresh, stale);
  const key = freshId('key');
  const headers = [['If-Match', fresh], ['Idempotency-Key', key]];
  const body = { event: 'resolve_failed', evidence: 'the bank says so' };
  const first = await resolve(review.review_id, body, { headers });
  assert.equal(first.status, 200, first.text);
  const again = await resolve(review.review_id, body, { headers });
  assert.deepEqual([again.status, again.replayed], [200, true], 'the tag is old by now, and the answer of the first stands');
  problem(await resolve(review.review_id, { resolution: 'otherwise' }, { headers: [['Idempotency-Key', key]] }), 422, 'idempotency_key_reused');
  problem(await recibo.event(id, { event: 'hold' }, { token: 'ops', headers: [['Idempotency-Key', key]] }), 422, 'idempotency_key_reused');
});

test('an event that the table does not allow decides nothing', async () => {
  const { id, review } = await mismatched();
  const refused = await resolve(review.review_id, { event: 'submitted' });
  problem(refused, 409, 'illegal_transition');
  assert.deepEqual([refused.json.state, [...refused.json.allowed_events].sort()], ['held', ['resolve_completed', 'resolve_failed']]);
  problem(await resolve(review.review_id, { event: 'resolve_failed' }), 409, 'illegal_transition'); // evidence is missing
  assert.deepEqual([(await read(review.review_id)).status, (await recibo.get(id)).review_open], ['open', true]);
});

test('only operators decide, and bad requests change nothing', async () => {
  const { review } = await contradicted();
  const before = await recibo.everything();
  for (const token of ['viewer', 'helpdesk', 'checkout']) {
    problem(await resolve(review.review_id, {}, { token }), 403, 'forbidden');
    problem(await act(review.review_id, 'assign', { assignee: 'x' }, { token }), 403, 'forbidden');
  }
  problem(await resolve(review.review_id, {}, { token: null }), 401, 'unauthorized');
  problem(await act(review.review_id, 'resolve', { resolution: 'x' }), 422, 'missing_field');
  problem(await act(review.review_id, 'resolve', { reason: 'x' }), 422, 'missing_field');
  problem(await act(review.review_id, 'assign', {}), 422, 'missing_field');
  problem(await resolve(review.review_id, { more: 1 }), 422, 'unknown_field');
  problem(await resolve('00000000-0000-7000-8000-000000000000'), 404, 'not_found');
  problem(await resolve('nonsense'), 404, 'not_found');
  assert.deepEqual(await recibo.everything(), before);
});

test('references of two operations in one callback are for a person', async () => {
  const [one, two] = [freshId(), freshId()];
  await recibo.accepted(one, { provider: 'desk', reference: `ref-${one}` });
  await recibo.accepted(two, { provider: 'desk', reference: `ref-${two}` });
  const body = JSON.stringify({ event_id: 'e1', status: 'succeeded', reference: `ref-${one}`, other_reference: `ref-${two}` });
  const answer = await recibo.deliver('desk', body);
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'review'], answer.text);
  const [review] = await openOf(one);
  assert.deepEqual([review.kind, (await recibo.get(one)).state, (await recibo.get(two)).state], ['ambiguity', 'accepted', 'accepted']);
});

test('a parked callback that grows old is reviewed once, goes on waiting, and its registration ends the matter', async () => {
  const id = freshId();
  const parked = await recibo.deliver('p1', callbackBody(id, 'e1'));
  assert.equal(parked.status, 202, parked.text);
  const found = async () => (await recibo.list(`/v1/reviews?request_id=${id}`))[0];
  const review = await until('a review of its age', found, { timeout: 60_000, interval: 500 });
  assert.deepEqual(
    [review.kind, review.provider, review.owner, review.last_safe_state, review.present_state, review._links.operation, review.deliveries[0].delivery_id],
    ['parked_age', 'p1', 'duty-desk', null, null, null, parked.json.delivery_id],
  );
  const taken = await act(review.review_id, 'assign', { assignee: 'nightshift' });
  assert.equal(taken.status, 200, taken.text);
  problem(await resolve(review.review_id, { event: 'complete' }), 409, 'illegal_transition');
  assert.equal((await recibo.accepted(id)).state, 'completed');
  const closed = await read(review.review_id);
  assert.deepEqual([closed.status, closed.resolved_by, closed.resolution, closed.actions.map((a) => a.action)], ['resolved', 'recibo', 'registered', ['assigned', 'resolved']]);
});

test('the review of an old parked callback can be decided by hand, and is not opened again', async () => {
  const id = freshId();
  await recibo.deliver('p1', callbackBody(id, 'e1'));
  const review = await until('a review of its age', async () => (await recibo.list(`/v1/reviews?request_id=${id}`))[0], { timeout: 60_000, interval: 500 });
  const decided = await resolve(review.review_id, { resolution: 'foreign' });
  assert.deepEqual([decided.status, decided.json.status], [200, 'resolved'], decided.text);
  assert.equal((await resolve(review.review_id, { resolution: 'foreign' })).replayed, true);
  problem(await resolve(review.review_id, { resolution: 'ours after all' }), 409, 'already_resolved');
  await sleep(17_000); // a round of the sweeper of each replica
  assert.equal((await recibo.list(`/v1/reviews?request_id=${id}`)).length, 1);
  assert.equal((await recibo.accepted(id)).state, 'completed', 'it waited all the same');
  assert.equal((await read(review.review_id)).resolution, 'foreign');
});

test('two replicas decide at once: one decision', async () => {
  for (let round = 0; round < 8; ++round) {
    const { id, review } = await mismatched();
    const asked = [
      resolve(review.review_id, { event: 'resolve_completed', evidence: 'A' }),
      atSecond(() => resolve(review.review_id, { event: 'resolve_failed', evidence: 'B' }, { token: 'shift' })),
    ];
    const answers = await Promise.all(asked);
    assert.equal(answers.filter((a) => a.status === 200).length, 1, answers.map((a) => a.text).join('\n'));
    const loser = answers.find((a) => a.status !== 200);
    problem(loser, 409, 'already_resolved');
    const stored = await read(review.review_id);
    assert.equal(stored.actions.length, 1);
    const after = await recibo.get(id);
    assert.deepEqual([after.state, after.review_open], [stored.resolved_by === 'ops' ? 'completed' : 'failed', false]);
  }
});

test('a decision and a callback at once: both are on record, in one order', async () => {
  for (let round = 0; round < 8; ++round) {
    const { id, review } = await mismatched();
    const [decided, called] = await Promise.all([
      resolve(review.review_id, { event: 'resolve_failed', evidence: 'A' }),
      atSecond(() => recibo.callback('desk', callbackBody(id, 'e2'))),
    ]);
    assert.ok(decided.status === 200 || decided.json.code === 'illegal_transition', decided.text);
    assert.equal(called.status, 200, called.text);
    const after = await recibo.get(id);
    if (decided.status === 200) {
      assert.deepEqual([after.state, called.json.disposition, after.review_open], ['failed', 'review', true], 'the late success is the next exception');
    } else {
      assert.deepEqual([after.state, called.json.disposition, after.review_open], ['completed', 'applied', true], 'the callback was first, and the exception is still open');
    }
    assert.equal((await recibo.audit(id)).code, 0);
  }
});

test('killed in between: the same request again finds what was decided', async () => {
  for (let round = 0; round < 4; ++round) {
    const { id, review } = await mismatched();
    const headers = [['Idempotency-Key', freshId('key')]];
    const body = { event: 'resolve_completed', evidence: 'A' };
    const cut = resolve(review.review_id, body, { headers }).catch(() => null);
    await sleep(round * 3);
    await recibo.service.kill();
    await cut;
    await recibo.serve();
    replicas[0] = recibo.service;
    const again = await until('an answer', async () => {
      const answer = await resolve(review.review_id, body, { headers });
      return isSendAgain(answer) ? null : answer;
    }, { timeout: 20_000 });
    assert.equal(again.status, 200, again.text);
    assert.deepEqual([again.json.actions.length, again.json.status], [1, 'resolved']);
    assert.deepEqual([(await recibo.get(id)).state, (await recibo.get(id)).version], ['completed', 2]);
  }
});

test('what was done about a review cannot be changed unnoticed, nor by the service at all', async () => {
  const { id, review } = await contradicted();
  await act(review.review_id, 'assign', { assignee: 'nightshift' });
  await resolve(review.review_id);
  assert.equal((await recibo.audit(id)).code, 0);
  const notices = async (change, undo, word) => {
    await recibo.sql(change, [review.review_id]);
    const told = await recibo.audit(id);
    assert.deepEqual([told.code, word.test(told.stdout)], [1, true], `${change}: ${told.stdout}`);
    await recibo.sql(undo, [review.review_id]);
    assert.equal((await recibo.audit(id)).code, 0, undo);
  };
  await notices(`UPDATE recibo.review_actions SET reason = 'because' WHERE review = $1 AND action = 'resolved'`, `UPDATE recibo.review_actions SET reason = 'the provider confirmed it' WHERE review = $1 AND action = 'resolved'`, /review/);
  await notices(`UPDATE recibo.review_actions SET assignee = 'somebody' WHERE review = $1 AND action = 'assigned'`, `UPDATE recibo.review_actions SET assignee = 'nightshift' WHERE review = $1 AND action = 'assigned'`, /chain|digest|fact/);
  await notices(`UPDATE recibo.reviews SET resolution = 'otherwise' WHERE id = $1`, `UPDATE recibo.reviews SET resolution = 'stands' WHERE id = $1`, /review/);
  const [may] = await recibo.sql(`SELECT has_table_privilege('recibo_service', 'recibo.review_actions', 'UPDATE') AS u, has_table_privilege('recibo_service', 'recibo.review_actions', 'DELETE') AS d`);
  assert.deepEqual(may, { u: false, d: false });
});

test('the second replica ends well', async () => {
  const ended = await replicas[1].stop();
  assert.deepEqual([ended.code, ended.signal], [0, null], replicas[1].tail());
});

stage.ends();
