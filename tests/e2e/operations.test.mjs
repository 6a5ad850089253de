// The REST API: accepting, events, roles, evidence.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { sha256Hex } from '../support/sign.mjs';

const stage = await Stage.begin();
const { recibo } = stage;

const instant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/;
const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function problem(answer, status, code) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.json.code, code, answer.text);
}

const invalid = (answer, hint) => {
  assert.ok(answer.status === 400 || answer.status === 422, `${hint}: ${answer.status} ${answer.text}`);
  assert.equal(answer.json.retryable, false, hint);
};

test('accepting gives a stable identity, a place to look, and the true state', async () => {
  const id = freshId();
  const answer = await recibo.register(id, { provider: 'desk', action: 'pay', reference: freshId('ref'), metadata: { order: 'A-1' } });
  assert.equal(answer.status, 201, answer.text);
  const location = answer.header('Location');
  assert.match(location, new RegExp(`/v1/operations/${id}$`));
  const operation = answer.json;
  assert.deepEqual(
    [operation.request_id, operation.provider, operation.workflow, operation.state, operation.label, operation.terminal, operation.done, operation.version],
    [id, 'desk', 'desk', 'accepted', 'Accepted, waiting to be sent', false, false, 0],
  );
  assert.deepEqual([operation.amount, operation.currency, operation.review_open, operation.overdue], ['19.99', 'EUR', false, false]);
  assert.match(operation.accepted_at, instant);
  assert.match(operation.updated_at, instant);
  assert.deepEqual([...operation.allowed_events].sort(), ['cancel', 'submitted'], 'what its client may do');
  const read = await recibo.api('GET', location.replace(/^https?:\/\/[^/]+/, ''), { token: 'checkout' });
  assert.deepEqual([read.status, read.json], [200, operation]);
  assert.ok(read.header('ETag'));
  // Durable before it was said: the row, the registration, the audit row, the notification.
  const [row] = await recibo.sql(
    `SELECT (SELECT count(*) FROM recibo.registrations r WHERE r.operation = o.id)::int AS registrations, (SELECT count(*) FROM recibo.audit a WHERE a.operation = o.id)::int AS audit,
            (SELECT array_agg(n.type) FROM recibo.notifications n WHERE n.operation = o.id) AS types FROM recibo.operations o WHERE o.request_id = $1`,
    [id],
  );
  assert.deepEqual(row, { registrations: 1, audit: 1, types: ['operation.accepted'] });
});

test('an operation without an ID of its own gets a UUIDv7', async () => {
  const first = await recibo.api('POST', '/v1/operations', { token: 'checkout', body: { provider: 'p1' } });
  assert.equal(first.status, 201, first.text);
  assert.match(first.json.request_id, uuid7);
  const second = await recibo.api('POST', '/v1/operations', { token: 'checkout', body: { provider: 'p1' } });
  assert.notEqual(second.json.request_id, first.json.request_id);
});

test('the same again returns the existing operation in its present state', async () => {
  const id = freshId();
  const first = await recibo.register(id);
  assert.deepEqual([first.status, first.replayed], [201, false]);
  const again = await recibo.register(id);
  assert.deepEqual([again.status, again.replayed, again.json], [200, true, first.json]);
  await recibo.callback('p1', callbackBody(id, '1'));
  const later = await recibo.register(id);
  assert.deepEqual([later.status, later.replayed, later.json.state], [200, true, 'completed']);
  assert.deepEqual(await recibo.sql('SELECT count(*)::int AS count FROM recibo.operations WHERE request_id = $1', [id]), [{ count: 1 }]);
});

test('fields in another order, and an amount written otherwise, are the same intent', async () => {
  const id = freshId();
  assert.equal((await recibo.api('POST', '/v1/operations', { token: 'checkout', body: `{"request_id":"${id}","provider":"p1","amount":"19.99","currency":"EUR"}` })).status, 201);
  const again = await recibo.api('POST', '/v1/operations', { token: 'checkout', body: `{"currency":"EUR",  "amount":"19.990","provider":"p1","request_id":"${id}"}` });
  assert.deepEqual([again.status, again.replayed], [200, true], again.text);
});

test('the same ID with another intent is a conflict, and nothing is merged', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const before = await recibo.everything();
  for (const other of [{ amount: '20.00' }, { currency: 'USD' }, { provider: 'p2' }, { action: 'refund' }]) {
    problem(await recibo.register(id, other), 409, 'intent_conflict');
  }
  assert.deepEqual(await recibo.everything(), before);
  const foreign = await recibo.register(id, { token: 'storefront' });
  assert.equal(foreign.status, 409, "another client's ID cannot be taken over");
  assert.equal(foreign.text.includes('19.99'), false, 'nor looked at');
});

test('an Idempotency-Key makes a registration without an ID repeatable, within its client', async () => {
  const key = freshId('key');
  const post = (token, body) => recibo.api('POST', '/v1/operations', { token, body, headers: [['Idempotency-Key', key]] });
  const first = await post('checkout', { provider: 'p1', amount: '5.00', currency: 'EUR' });
  assert.equal(first.status, 201, first.text);
  const again = await post('checkout', { provider: 'p1', amount: '5.00', currency: 'EUR' });
  assert.deepEqual([again.status, again.replayed, again.json.request_id], [200, true, first.json.request_id]);
  problem(await post('checkout', { provider: 'p1', amount: '6.00', currency: 'EUR' }), 422, 'idempotency_key_reused');
  const other = await post('storefront', { provider: 'p1', amount: '5.00', currency: 'EUR' });
  assert.equal(other.status, 201, "another client's key is another key");
  assert.notEqual(other.json.request_id, first.json.request_id);
});

test('fifty registrations at once are one operation', async () => {
  for (const headers of [[], [['Idempotency-Key', freshId('key')]]]) {
    const id = freshId();
    const answers = await Promise.all(Array.from({ length: 50 }, () => recibo.register(id, { headers })));
    const settled = await Promise.all(answers.map((a) => (a.status === 503 ? until('accepted', async () => {
      const one = await recibo.register(id, { headers });
      return one.status === 503 ? null : one;
    }) : a)));
    assert.ok(settled.every((a) => a.status === 200 || a.status === 201), JSON.stringify(settled.map((a) => a.status)));
    assert.equal(settled.filter((a) => a.status === 201).length <= 1, true);
    assert.ok(settled.every((a) => a.json.request_id === id && a.replayed === (a.status === 200)));
    assert.deepEqual(await recibo.sql('SELECT count(*)::int AS count FROM recibo.operations WHERE request_id = $1', [id]), [{ count: 1 }]);
  }
});

test('fifty registrations with one key and no ID at once are one operation', async () => {
  const key = freshId('key');
  const post = () => recibo.api('POST', '/v1/operations', { token: 'checkout', body: { provider: 'p1' }, headers: [['Idempotency-Key', key]] });
  const answers = (await Promise.all(Array.from({ length: 50 }, post))).filter((a) => a.status !== 503);
  assert.equal(new Set(answers.map((a) => a.json.request_id)).size, 1);
  assert.equal(answers.filter((a) => a.status === 201).length, 1);
  assert.deepEqual(await recibo.sql('SELECT count(DISTINCT operation)::int AS count FROM recibo.client_keys WHERE key = $1', [key]), [{ count: 1 }]);
});

test('a reference belongs to one operation of a provider', async () => {
  const reference = freshId('ref');
  assert.equal((await recibo.register(freshId(), { provider: 'desk', reference })).status, 201);
  const second = await recibo.register(freshId(), { provider: 'desk', reference });
  problem(second, 409, 'alias_taken');
  assert.equal((await recibo.register(freshId(), { provider: 'p1', reference })).status, 201, 'at another provider it is another one');
});

test('bad registrations get a precise refusal and leave nothing', async () => {
  const before = await recibo.everything();
  const good = { provider: 'p1', amount: '1.00', currency: 'EUR' };
  const cases = {
    'no body': '',
    'no JSON': '{',
    'an array': '[]',
    'a repeated key': '{"provider":"p1","provider":"p2"}',
    'no provider': { ...good, provider: undefined },
    'an unknown provider': { ...good, provider: 'nope' },
    'an unknown workflow': { ...good, workflow: 'nope' },
    'an unknown field': { ...good, colour: 'red' },
    'a float as amount': { ...good, amount: 19.99 },
    'an amount in words': { ...good, amount: 'ten' },
    'an exponent': { ...good, amount: '1e3' },
    'an amount without a currency': { ...good, currency: undefined },
    'a currency in small letters': { ...good, currency: 'eur' },
    'a currency of two letters': { ...good, currency: 'EU' },
    'a deadline without a zone': { ...good, deadline: '2026-10-25T02:30:00' },
    'a deadline in words': { ...good, deadline: 'tomorrow' },
    'metadata that is a list': { ...good, metadata: [] },
    'a request ID that is a number': { ...good, request_id: 7 },
    'a reference with a control character': { ...good, reference: 'a\u0007b' },
    'an endless reference': { ...good, reference: 'r'.repeat(256) },
    'NUL in metadata': '{"provider":"p1","metadata":{"a":"\\u0000"}}',
    'a lone surrogate in metadata': '{"provider":"p1","metadata":{"a":"\\ud800"}}',
  };
  for (const [name, body] of Object.entries(cases)) invalid(await recibo.api('POST', '/v1/operations', { token: 'checkout', body }), name);
  for (const key of ['', 'x'.repeat(256)]) {
    invalid(await recibo.api('POST', '/v1/operations', { token: 'checkout', body: good, headers: [['Idempotency-Key', key]] }), `the key ${key.length}`);
  }
  invalid(await recibo.api('POST', '/v1/operations', { token: 'checkout', body: good, headers: [['Idempotency-Key', 'a'], ['Idempotency-Key', 'b']] }), 'two keys');
  assert.deepEqual(await recibo.everything(), before);
});

test('events by clients and operators move the operation as the table says', async () => {
  const id = freshId();
  const reference = freshId('ref');
  await recibo.accepted(id, { provider: 'desk' });
  const sent = await recibo.event(id, { event: 'submitted', references: [reference] });
  assert.deepEqual([sent.status, sent.json.state, sent.json.version], [200, 'processing', 1], sent.text);
  assert.ok(sent.json.references.includes(reference), 'the reference is learned');
  const illegal = await recibo.event(id, { event: 'cancel' });
  problem(illegal, 409, 'illegal_transition');
  assert.deepEqual(illegal.json.allowed_events, [], 'a client may do nothing there');
  problem(await recibo.event(id, { event: 'hold' }), 409, 'illegal_transition');
  const held = await recibo.event(id, { event: 'hold', reason: 'the customer called' }, { token: 'ops' });
  assert.deepEqual([held.status, held.json.state], [200, 'held'], held.text);
  const bare = await recibo.event(id, { event: 'resolve_completed', reason: 'seen' }, { token: 'ops' });
  problem(bare, 409, 'illegal_transition');
  assert.deepEqual([...bare.json.allowed_events].sort(), ['resolve_completed', 'resolve_failed']);
  const resolved = await recibo.event(id, { event: 'resolve_completed', reason: 'it is on the statement', evidence: { statement: '2026-10, line 4' } }, { token: 'ops' });
  assert.deepEqual([resolved.status, resolved.json.state, resolved.json.terminal, resolved.json.version], [200, 'completed', true, 3], resolved.text);
  assert.deepEqual(resolved.json.allowed_events, []);
  problem(await recibo.event(id, { event: 'cancel' }, { token: 'ops' }), 409, 'illegal_transition');
  const unknown = await recibo.event(id, { event: 'explode' }, { token: 'ops' });
  assert.ok([409, 422, 400].includes(unknown.status), unknown.text);
  // Found by the learned reference, and terminal: a contradiction only opens a review.
  const late = await recibo.callback('desk', JSON.stringify({ reference, event_id: '1', status: 'failed' }));
  assert.deepEqual([late.status, late.json.disposition, late.json.request_id, late.json.state], [200, 'review', id, 'completed'], late.text);

  const moves = (await recibo.timeline(id)).filter((entry) => entry.kind === 'transition');
  assert.deepEqual(moves.map(({ event, from, to }) => [event, from, to]), [['submitted', 'accepted', 'processing'], ['hold', 'processing', 'held'], ['resolve_completed', 'held', 'completed']]);
  assert.match(JSON.stringify(moves[0].actor), /checkout/);
  assert.match(JSON.stringify(moves[2].actor), /ops/);
  assert.match(JSON.stringify(moves[2]), /it is on the statement/);
  const [{ types }] = await recibo.sql('SELECT array_agg(n.type ORDER BY n.sequence) AS types FROM recibo.notifications n JOIN recibo.operations o ON o.id = n.operation WHERE o.request_id = $1', [id]);
  assert.deepEqual(types, ['operation.accepted', 'operation.processing', 'operation.held', 'operation.completed', 'operation.review_opened']);
});

test('a cancelled operation stays cancelled: a late success opens a review', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  const cancelled = await recibo.event(id, { event: 'cancel', reason: 'the customer changed their mind' });
  assert.deepEqual([cancelled.status, cancelled.json.state, cancelled.json.terminal, cancelled.json.done], [200, 'cancelled', true, false]);
  const late = await recibo.callback('desk', callbackBody(id, '1'));
  assert.deepEqual([late.status, late.json.disposition, late.json.state], [200, 'review', 'cancelled']);
  await recibo.expectCounts(id, 0, 0, 1);
});

test('If-Match: only on the revision that was looked at', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  const tag = (await recibo.api('GET', `/v1/operations/${id}`, { token: 'checkout' })).header('ETag');
  assert.match(tag, /^"[^"]+"$/);
  const first = await recibo.event(id, { event: 'submitted' }, { headers: [['If-Match', tag]] });
  assert.equal(first.status, 200, first.text);
  const newTag = (await recibo.api('GET', `/v1/operations/${id}`, { token: 'checkout' })).header('ETag');
  assert.notEqual(newTag, tag);
  problem(await recibo.event(id, { event: 'hold' }, { token: 'ops', headers: [['If-Match', tag]] }), 412, 'precondition_failed');
  assert.equal((await recibo.get(id)).state, 'processing');
  const condition = (value, event = 'hold') => recibo.event(id, { event, reason: 'r' }, { token: 'ops', headers: [['If-Match', value]] });
  for (const none of [`W/${newTag}`, `${tag}, "999", "x"`, `W/${newTag}, ${tag}`]) problem(await condition(none), 412, 'precondition_failed');
  for (const nonsense of ['1', newTag.slice(1), `${newTag} ${tag}`, `*, ${newTag}`]) problem(await condition(nonsense), 422, 'malformed_field');
  assert.equal((await condition('*', 'nothing')).status, 409, 'whatever is there: the event decides');
  const right = await recibo.event(id, { event: 'hold', reason: 'r' }, { token: 'ops', headers: [['If-Match', `${tag}, ${newTag}`]] });
  assert.deepEqual([right.status, right.json.state], [200, 'held']);
});

test('Idempotency-Key on events: the same again is a replay, another is refused', async () => {
  const id = freshId();
  const key = freshId('key');
  await recibo.accepted(id, { provider: 'desk' });
  const send = (body) => recibo.event(id, body, { headers: [['Idempotency-Key', key]] });
  const first = await send({ event: 'submitted', reason: 'sent' });
  assert.deepEqual([first.status, first.replayed, first.json.state], [200, false, 'processing']);
  const again = await send({ event: 'submitted', reason: 'sent' });
  assert.deepEqual([again.status, again.replayed, again.json.state], [200, true, 'processing'], again.text);
  problem(await send({ event: 'cancel' }), 422, 'idempotency_key_reused');
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.version], ['processing', 1]);
});

test('of fifty cancellations and submissions at once exactly one kind wins', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => recibo.event(id, { event: i % 2 ? 'cancel' : 'submitted' })));
  assert.equal(answers.filter((a) => a.status === 200).length, 1);
  assert.ok(answers.every((a) => a.status === 200 || a.status === 409 || a.status === 503));
  const operation = await recibo.get(id);
  assert.equal(operation.version, 1);
  assert.equal(operation.state, answers.find((a) => a.status === 200).json.state);
});

test('who may do what', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  const { json: delivered } = await recibo.callback('desk', JSON.stringify({ request_id: id, event_id: '1', status: 'succeeded' }));
  const path = `/v1/operations/${id}`;

  for (const token of [null, 'no-such-token', '']) {
    for (const [method, target] of [['GET', path], ['GET', '/v1/deliveries'], ['POST', '/v1/operations'], ['GET', '/v1/nothing']]) {
      const answer = await recibo.api(method, target, { token, body: method === 'POST' ? {} : undefined });
      problem(answer, 401, 'unauthorized');
      assert.match(answer.header('WWW-Authenticate') ?? '', /^Bearer/);
    }
  }
  const basic = await recibo.api('GET', path, { token: null, headers: [['Authorization', 'Basic b3BzOm9wcw==']] });
  problem(basic, 401, 'unauthorized');

  const allowed = async (token, method, target, body) => (await recibo.api(method, target, { token, body })).status;
  // Reading an operation.
  for (const [token, status] of [['checkout', 200], ['storefront', 404], ['viewer', 200], ['ops', 200], ['root', 200], ['helpdesk', 403]]) {
    assert.equal(await allowed(token, 'GET', path), status, `${token} reads the operation`);
    assert.equal(await allowed(token, 'GET', `${path}/timeline`), status, `${token} reads the timeline`);
  }
  for (const [token, status] of [['checkout', 200], ['storefront', 404], ['helpdesk', 200], ['viewer', 200]]) {
    assert.equal(await allowed(token, 'GET', `${path}/status`), status, `${token} reads the status`);
  }
  // A missing operation and a foreign one look the same to a client.
  const foreign = (await recibo.api('GET', path, { token: 'storefront' })).json;
  const missing = (await recibo.api('GET', `/v1/operations/${freshId()}`, { token: 'storefront' })).json;
  assert.deepEqual([foreign.code, foreign.title, foreign.status], [missing.code, missing.title, missing.status]);
  assert.equal((await recibo.event(id, { event: 'cancel' }, { token: 'storefront' })).status, 404);
  // Evidence is for readers and above, payloads for those with the permission.
  for (const target of ['/v1/deliveries', `/v1/deliveries/${delivered.delivery_id}`, '/v1/failed-callbacks', '/v1/reviews']) {
    for (const [token, status] of [['checkout', 403], ['helpdesk', 403], ['viewer', 200], ['shift', 200], ['root', 200]]) {
      assert.equal(await allowed(token, 'GET', target), status, `${token} GET ${target}`);
    }
  }
  const payload = `/v1/deliveries/${delivered.delivery_id}/payload`;
  for (const [token, status] of [['checkout', 403], ['helpdesk', 403], ['viewer', 403], ['shift', 403], ['ops', 200], ['root', 200]]) {
    assert.equal(await allowed(token, 'GET', payload), status, `${token} GET payload`);
  }
  // Accepting and events.
  for (const [token, status] of [['viewer', 403], ['helpdesk', 403]]) {
    assert.equal(await allowed(token, 'POST', '/v1/operations', { provider: 'p1' }), status);
    assert.equal(await allowed(token, 'POST', `${path}/events`, { event: 'cancel' }), status);
  }
  for (const [token, status] of [['checkout', 403], ['viewer', 403], ['ops', 403], ['root', 200]]) {
    assert.equal(await allowed(token, 'POST', '/v1/config/reload'), status, `${token} reloads`);
  }
});

test('the status is in words for a customer, and no more', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk', metadata: { iban: 'secret-number' } });
  const status = await recibo.api('GET', `/v1/operations/${id}/status`, { token: 'helpdesk' });
  assert.equal(status.status, 200, status.text);
  assert.ok(status.text.includes('Accepted, waiting to be sent'));
  assert.equal(status.text.includes('secret-number'), false);
});

test('the timeline tells everything, oldest first', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const bodies = [callbackBody(id, '1', 'processing'), callbackBody(id, '1', 'processing'), callbackBody(id, '2'), callbackBody(id, '3', 'failed')];
  const answers = [];
  for (const body of bodies) answers.push(await recibo.callback('p1', body));
  const entries = await recibo.timeline(id, { token: 'checkout' });
  for (const entry of entries) {
    assert.match(entry.at, instant);
    assert.equal(typeof entry.kind, 'string');
    assert.ok(entry.actor !== undefined, JSON.stringify(entry));
  }
  const times = entries.map((entry) => entry.at);
  assert.deepEqual(times, [...times].sort(), 'oldest first');
  assert.equal(entries[0].kind, 'accepted');
  const deliveries = entries.filter((entry) => entry.kind === 'delivery');
  assert.deepEqual(deliveries.map((entry) => entry.disposition), ['applied', 'duplicate', 'applied', 'review']);
  assert.equal(deliveries[0].delivery_id, answers[0].json.delivery_id);
  assert.equal(deliveries[2].delivery_id, answers[2].json.delivery_id);
  assert.ok(deliveries.every((entry) => typeof entry.secret === 'string' && entry.secret.length > 0));
  const moves = entries.filter((entry) => entry.kind === 'transition');
  assert.deepEqual(
    moves.map(({ event, from, to, delivery_id: by }) => [event, from, to, by]),
    [['progress', 'accepted', 'processing', answers[0].json.delivery_id], ['complete', 'processing', 'completed', answers[2].json.delivery_id]],
  );
  assert.equal(entries.filter((entry) => entry.kind === 'review').length, 1);
  const kinds = ['accepted', 'delivery', 'transition', 'notification', 'status_check', 'reconciliation', 'review', 'correction', 'replay', 'payload_access'];
  assert.ok(entries.every((entry) => kinds.includes(entry.kind)), JSON.stringify(entries.map((e) => e.kind)));
  assert.equal(JSON.stringify(entries).includes('occurred_at":"2026-10-01T10:00:00Z","note'), false, 'no payload');
});

test('deliveries can be found, read, and their bytes had by those who may; each look is on record', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const body = callbackBody(id, '1', 'succeeded', { note: 'ü \u2028' });
  const { json: answer } = await recibo.callback('p1', body);
  const read = await recibo.api('GET', `/v1/deliveries/${answer.delivery_id}`, { token: 'viewer' });
  assert.equal(read.status, 200, read.text);
  assert.deepEqual([read.json.delivery_id, read.json.request_id, read.json.provider, read.json.disposition], [answer.delivery_id, id, 'p1', 'applied']);
  assert.match(read.json.received_at, instant);
  assert.ok(read.text.includes(sha256Hex(body)));
  assert.equal(read.text.includes('\u2028'), false, 'no payload');
  const listed = (await recibo.list('/v1/deliveries', { token: 'viewer' })).find((one) => one.delivery_id === answer.delivery_id);
  assert.ok(listed);

  const looks = () => recibo.sql('SELECT actor, sequence FROM recibo.payload_accesses WHERE delivery = $1 ORDER BY at', [answer.delivery_id]);
  assert.equal((await recibo.api('GET', `/v1/deliveries/${answer.delivery_id}/payload`, { token: 'viewer' })).status, 403);
  assert.deepEqual(await looks(), []);
  const payload = await recibo.api('GET', `/v1/deliveries/${answer.delivery_id}/payload`, { token: 'ops' });
  assert.equal(payload.status, 200);
  assert.deepEqual(payload.body, Buffer.from(body));
  assert.equal(payload.header('X-Content-Type-Options'), 'nosniff');
  const recorded = await looks();
  assert.deepEqual(recorded.map((one) => one.actor), ['ops']);
  const [audit] = await recibo.sql(
    "SELECT a.kind, a.actor FROM recibo.audit a JOIN recibo.operations o ON o.id = a.operation WHERE o.request_id = $1 AND a.sequence = $2",
    [id, recorded[0].sequence],
  );
  assert.deepEqual(audit, { kind: 'payload_access', actor: 'ops' });
  for (const missing of [freshId(), '01890000-0000-7000-8000-000000000000']) {
    problem(await recibo.api('GET', `/v1/deliveries/${missing}`, { token: 'viewer' }), 404, 'not_found');
    problem(await recibo.api('GET', `/v1/deliveries/${missing}/payload`, { token: 'ops' }), 404, 'not_found');
  }
});

test('lists come in pages that are complete and do not overlap', async () => {
  const ids = Array.from({ length: 7 }, () => freshId());
  for (const id of ids) await recibo.accepted(id, { provider: 'milliseconds' });
  const found = await recibo.list('/v1/operations?provider=milliseconds', { limit: 3 });
  assert.equal(found.length, new Set(found.map((one) => one.request_id)).size);
  for (const id of ids) assert.ok(found.some((one) => one.request_id === id));
  assert.ok(found.every((one) => one.provider === 'milliseconds'));
  await recibo.callback('milliseconds', callbackBody(ids[0], '1'), { stamp: String(Date.now()) });
  const done = await recibo.list('/v1/operations?provider=milliseconds&state=completed', { limit: 2 });
  assert.deepEqual(done.map((one) => one.request_id), [ids[0]]);
  const own = await recibo.list('/v1/operations?provider=milliseconds', { token: 'storefront' });
  assert.deepEqual(own, [], 'a client sees its own');
  for (const query of ['limit=0', 'limit=201', 'limit=x', 'cursor=%00', 'cursor=nonsense', 'nonsense=1']) {
    invalid(await recibo.api('GET', `/v1/operations?${query}`), query);
  }
  const reviews = await recibo.list('/v1/reviews', { limit: 1 });
  assert.equal(new Set(reviews.map((one) => one.review_id ?? one.id)).size, reviews.length);
});

test('what is not there, and what may not be done', async () => {
  problem(await recibo.api('GET', `/v1/operations/${freshId()}`), 404, 'not_found');
  problem(await recibo.event(freshId(), { event: 'cancel' }, { token: 'ops' }), 404, 'not_found');
  assert.equal((await recibo.api('GET', '/v1/nothing')).status, 404);
  const method = await recibo.api('DELETE', '/v1/operations');
  assert.equal(method.status, 405);
  assert.match(method.header('Allow'), /POST/);
  for (const body of ['', '{', '[]', '{}', '{"event":7}', '{"event":"cancel","event":"cancel"}', '{"event":"cancel","colour":1}']) {
    const id = freshId();
    await recibo.accepted(id, { provider: 'desk' });
    invalid(await recibo.event(id, body), body);
    assert.equal((await recibo.get(id)).version, 0);
  }
});

test('callbacks are counted by provider and disposition, and nothing a sender says is a label', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p2' });
  const count = (disposition) => recibo.metric('recibo_callbacks_total', { provider: 'p2', disposition });
  const before = [await count('applied'), await count('duplicate')];
  await recibo.callback('p2', callbackBody(id, '1'));
  await recibo.callback('p2', callbackBody(id, '1'));
  assert.deepEqual([await count('applied'), await count('duplicate')], [before[0] + 1, before[1] + 1]);
  const metrics = await recibo.metrics();
  assert.equal(JSON.stringify(metrics).includes(id), false);
  for (const name of ['recibo_build_info', 'recibo_callback_seconds_bucket', 'recibo_queue_depth', 'recibo_record_batch_size_bucket', 'recibo_db_connections']) {
    assert.ok(metrics.some((series) => series.name === name), name);
  }
});

test('the request ID and a trace ID travel through answers and logs', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const from = recibo.service.lines.length;
  const refused = await recibo.callback('p1', callbackBody(id, '1'), { secret: 'test-secret-wrong', headers: [['traceparent', `00-${trace}-00f067aa0ba902b7-01`]] });
  assert.equal(refused.json.trace_id, trace);
  await recibo.service.log((record) => record.trace_id === trace, { from, timeout: 3_000, what: 'a record with the trace ID' });
  const answer = await recibo.callback('p1', callbackBody(id, '1'), { headers: [['traceparent', `00-${trace}-00f067aa0ba902b7-01`]] });
  const [{ trace_id: stored }] = await recibo.sql('SELECT trace_id FROM recibo.deliveries WHERE id = $1', [answer.json.delivery_id]);
  assert.equal(stored, trace);
});

stage.ends();
