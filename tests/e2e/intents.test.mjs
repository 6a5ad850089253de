// What was registered, and what is held against it: exact amounts, accounts, operations that a callback began, and edits
// (R5, R11, R36).
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const stage = await Stage.begin({
  configure(config) {
    const extract = { ...config.providers.p1.extract };
    config.providers.minor = { ...config.providers.p1, extract: { ...extract, amount: { json: '/amount', unit: 'minor' } } };
    config.providers.owned = { ...config.providers.p1, extract: { ...extract, account: '/account', reference: '/reference' }, unmatched: 'register' };
    config.workflows.desk.transitions.push(
      { from: 'accepted', event: 'edit', to: 'accepted', by: 'client' },
      { from: 'processing', event: 'timed_out', to: 'held', by: 'client' },
      { from: 'held', event: 'retry', to: 'processing', by: 'operator' },
    );
    config.providers.desk.extract = { ...config.providers.desk.extract, account: '/account' };
    return config;
  },
});
const { recibo } = stage;
const secretOf = { minor: 'test-secret-A', owned: 'test-secret-A' };
const send = (name, body) => recibo.callback(name, body, secretOf[name] ? { secret: secretOf[name] } : {});
const look = (answer) => [answer.status, answer.json?.disposition ?? answer.json?.code, answer.replayed];
const reviews = (id) => recibo.list(`/v1/reviews?request_id=${id}`);
// A body whose amount is written as it is given here.
const said = (id, amount, more = {}) => callbackBody(id, `evt-${id}-${amount}`, 'succeeded', { amount: '@', ...more }).replace('"@"', amount);

for (const [registered, amount, fine] of [
  ['10.0', '10.00', true], ['10.00', '"10"', true], ['10', '1e1', true], ['19.99', '1.999e1', true], ['19.99', '1999E-2', true], ['0.10', '1e-1', true],
  ['10.00', '10.001', false], ['10.00', '100', false], ['10.00', '"-10.00"', false], ['100', '1e3', false], ['0', '-0', true], ['0.00', '0e5', true],
  ['123456789012345678901234567890.000000000001', '123456789012345678901234567890.000000000001', true],
  ['123456789012345678901234567890.000000000001', '123456789012345678901234567890.000000000002', false],
]) {
  test(`${registered} registered and ${amount} said: ${fine ? 'applied' : 'a person looks'}`, async () => {
    const id = freshId();
    await recibo.accepted(id, { amount: registered });
    const answer = await send('p1', said(id, amount));
    assert.deepEqual(look(answer), [200, fine ? 'applied' : 'review', false], answer.text);
    if (!fine) {
      const [review] = await reviews(id);
      assert.deepEqual([review.kind, review.detail.endsWith(`${registered} EUR was registered`)], ['amount_mismatch', true], review.detail);
      assert.match(review.detail, /in state 'accepted': -?[0-9.]+ EUR came, /, 'both amounts, for who decides');
    }
    assert.equal((await recibo.get(id)).amount, registered, 'what was registered is shown digit for digit');
  });
}

for (const amount of ['"1e1"', '1e400', '1e-13', '"10,00"', '""', '" 10"', '"0x10"', '[10]', 'true']) {
  test(`${amount} is no amount`, async () => {
    const id = freshId();
    await recibo.accepted(id);
    assert.deepEqual(look(await send('p1', said(id, amount))), [422, 'unprocessable', false]);
    await recibo.expectCounts(id, 0, 0, 0);
  });
}

for (const [currency, registered, amount, outcome] of [
  ['EUR', '19.99', '1999', 'applied'], ['EUR', '19.99', '"1999"', 'applied'], ['EUR', '19.99', '1999.0', 'applied'], ['EUR', '19.99', '19.99', 'unprocessable'],
  ['EUR', '1999', '1999', 'review'], ['EUR', '0.05', '5', 'applied'], ['EUR', '-0.05', '-5', 'applied'], ['JPY', '1999', '1999', 'applied'], ['JPY', '19.99', '1999', 'review'],
  ['KWD', '1.999', '1999', 'applied'], ['CLF', '0.1999', '1999', 'applied'], ['EUR', '10', '1e3', 'applied'],
]) {
  test(`${amount} in the smallest unit of ${currency} against ${registered}: ${outcome}`, async () => {
    const id = freshId();
    await recibo.accepted(id, { provider: 'minor', amount: registered, currency });
    assert.deepEqual(look(await send('minor', said(id, amount, { currency }))), [outcome === 'unprocessable' ? 422 : 200, outcome, false]);
  });
}

test('an amount in a smallest unit without its currency says nothing', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'minor' });
  assert.equal((await send('minor', said(id, '1999', { currency: undefined }))).status, 422);
});

test('another account than registered is for a person, and nothing moves', async () => {
  const id = freshId();
  const operation = await recibo.accepted(id, { provider: 'desk', account: 'DE89370400440532013000' });
  assert.equal(operation.account, 'DE89370400440532013000');
  assert.deepEqual(look(await send('desk', callbackBody(id, 'e-1', 'succeeded', { account: 'DE00370400440532013000' }))), [200, 'review', false]);
  assert.equal((await reviews(id))[0].kind, 'account_mismatch');
  await recibo.expectCounts(id, 0, 0, 1);
  assert.deepEqual(look(await send('desk', callbackBody(id, 'e-2', 'succeeded', { account: 'DE89370400440532013000' }))), [200, 'applied', false]);
  const other = await recibo.register(id, { provider: 'desk', account: 'DE00370400440532013000' });
  assert.deepEqual([other.status, other.json.code], [409, 'intent_conflict'], 'an account is part of the intent');
});

test('a callback registers, and the client fills in what it asked for', async () => {
  const id = freshId();
  const first = await send('owned', callbackBody(id, 'e-1', 'processing', { account: 'A-1', reference: `${id}-ref` }));
  assert.deepEqual(look(first), [200, 'applied', false], first.text);
  const begun = await recibo.get(id);
  assert.deepEqual([begun.state, begun.amount, begun.currency, begun.account, begun.metadata], ['processing', '19.99', 'EUR', 'A-1', {}]);
  const fields = { provider: 'owned', account: 'A-1', action: 'capture', deadline: '2030-01-01T00:00:00Z', metadata: { order: id }, reference: `${id}-ref`, headers: [['Idempotency-Key', `k-${id}`]] };
  const registered = await recibo.register(id, fields);
  assert.equal(registered.status, 201, registered.text);
  assert.deepEqual([registered.json.state, registered.json.action, registered.json.metadata, registered.json.deadline], ['processing', 'capture', { order: id }, '2030-01-01T00:00:00.000000Z']);
  const again = await recibo.register(id, fields);
  assert.deepEqual([again.status, again.replayed], [200, true], again.text);
  assert.equal((await recibo.register(id, { ...fields, action: 'refund', headers: [] })).json.code, 'intent_conflict');
  assert.equal((await recibo.register(id, { ...fields, token: 'storefront' })).json.code, 'intent_conflict', 'it is somebody\'s now');
  assert.equal((await recibo.list(`/v1/operations?metadata.order=${id}`)).length, 1, 'found by what was filled in');
  const [correction] = (await recibo.timeline(id)).filter((e) => e.kind === 'correction');
  assert.deepEqual([correction.change, correction.actor, correction.action, correction.amount], ['registered', 'checkout', 'capture', '19.99']);
  assert.deepEqual(look(await send('owned', callbackBody(id, 'e-2', 'succeeded', { account: 'A-1' }))), [200, 'applied', false]);
  await recibo.expectCounts(id, 2, 2, 0);
});

test('what the callback said is held against what the client asked for', async () => {
  for (const [kind, change] of [['amount_mismatch', { amount: '20.00' }], ['currency_mismatch', { currency: 'USD' }], ['account_mismatch', { account: 'A-2' }]]) {
    const id = freshId();
    await send('owned', callbackBody(id, 'e-1', 'processing', { account: 'A-1' }));
    const registered = await recibo.register(id, { provider: 'owned', account: 'A-1', ...change });
    assert.deepEqual([registered.status, registered.json.review_open], [201, true], registered.text);
    const [review] = await reviews(id);
    assert.deepEqual([review.kind, review.status], [kind, 'open']);
    // From now on the client's word is what counts.
    assert.deepEqual(look(await send('owned', callbackBody(id, 'e-2', 'succeeded', { account: 'A-1', ...change }))), [200, 'applied', false]);
  }
});

test('an edit changes what is registered where the table allows it, with its history', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk', account: 'A-1', metadata: { order: 'one' } });
  for (const [body, status, code] of [
    [{ event: 'edit' }, 422, 'missing_field'],
    [{ event: 'edit', changes: {} }, 422, 'missing_field'],
    [{ event: 'submitted', changes: { amount: '1', currency: 'EUR' } }, 422, 'malformed_field'],
    [{ event: 'edit', changes: { amount: null } }, 422, 'missing_field'],
    [{ event: 'edit', changes: { amount: '1e3', currency: 'EUR' } }, 422, 'malformed_field'],
    [{ event: 'edit', changes: { provider: 'p2' } }, 422],
  ]) {
    const refused = await recibo.event(id, body);
    assert.equal(refused.status, status, `${JSON.stringify(body)}: ${refused.text}`);
    if (code) assert.equal(refused.json.code, code);
  }
  const edited = await recibo.event(id, { event: 'edit', reason: 'the basket grew', changes: { amount: '25.00', currency: 'EUR', account: null, metadata: { order: id }, deadline: '2031-01-01T00:00:00Z' } });
  assert.equal(edited.status, 200, edited.text);
  assert.deepEqual([edited.json.amount, edited.json.account, edited.json.metadata, edited.json.version, edited.json.state], ['25.00', null, { order: id }, 1, 'accepted']);
  assert.equal((await recibo.list(`/v1/operations?metadata.order=${id}`)).length, 1);
  assert.deepEqual(look(await send('desk', callbackBody(id, 'e-1', 'succeeded', { amount: '19.99' }))), [200, 'review', false], 'the old amount is not what is registered');
  assert.deepEqual(look(await send('desk', callbackBody(id, 'e-2', 'succeeded', { amount: '25' }))), [200, 'applied', false]);
  const late = await recibo.event(id, { event: 'edit', changes: { amount: '1', currency: 'EUR' } });
  assert.deepEqual([late.status, late.json.code, late.json.allowed_events], [409, 'illegal_transition', []]);
  const history = (await recibo.timeline(id)).filter((e) => e.kind === 'correction' || e.kind === 'transition').map((e) => [e.kind, e.change ?? e.event, e.amount, e.reason]);
  assert.deepEqual(history, [['transition', 'edit', undefined, 'the basket grew'], ['correction', 'edited', '25.00', undefined], ['transition', 'complete', undefined, undefined]]);
  const same = await recibo.register(id, { provider: 'desk', account: 'A-1', metadata: { order: 'one' } });
  assert.deepEqual([same.status, same.json.amount], [200, '25.00'], 'the first request sent again is still that request');
});

test('timed_out, retry and cancel only where the table says so', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  const early = await recibo.event(id, { event: 'timed_out' });
  assert.deepEqual([early.status, early.json.allowed_events], [409, ['submitted', 'cancel', 'edit']]);
  assert.equal((await recibo.event(id, { event: 'submitted' })).status, 200);
  assert.equal((await recibo.event(id, { event: 'cancel' })).status, 409);
  assert.equal((await recibo.event(id, { event: 'timed_out' })).json.state, 'held');
  assert.equal((await recibo.event(id, { event: 'retry' })).status, 409, 'a client may not');
  assert.equal((await recibo.event(id, { event: 'retry' }, { token: 'ops' })).json.state, 'processing');
});

stage.ends();
