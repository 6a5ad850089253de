// Who may speak for a provider: headers, time stamps, secrets, replays. Refusals are all alike and leave nothing but a count.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { likeB0 } from '../support/bodies.mjs';
import { sleep } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody, secrets } from '../support/recibo.mjs';
import { hmac, nowSeconds } from '../support/sign.mjs';

const stage = await Stage.begin();
const { recibo } = stage;

// Waits for the beginning of a second, so that a stamp does not grow older by one while it travels.
async function secondBegins() {
  const into = Date.now() % 1000;
  if (into > 250) await sleep(1005 - into);
  return nowSeconds();
}

const signatureOf = (body, stamp, secret = secrets.p1) => hmac('sha256', secret, [`${stamp}.`, body], 'hex');

// Sends exactly these headers.
const send = (name, body, headers) => recibo.raw({ target: `/callbacks/${name}`, headers: [['Content-Type', 'application/json'], ...headers], body });

// What the sender sees of a refusal, without what is different by nature.
function seen(response) {
  const problem = response.json;
  delete problem.trace_id;
  const headers = response.headers.filter(([n]) => !/^(date|traceparent|traceresponse|x-request-id|x-trace-id)$/i.test(n)).map(([n, v]) => `${n.toLowerCase()}: ${v}`);
  return { status: response.status, problem, headers: headers.filter((h) => !h.startsWith('content-length')).sort() };
}

async function refused(response, hint) {
  assert.deepEqual([response.status, response.json.code, response.json.retryable], [401, 'unauthenticated', false], hint);
  assert.doesNotMatch(response.text, /exception|what\(\)|stoi|std::|terminate/i, hint);
}

test('S13 spelling and spacing of headers', async () => {
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id);
  const stamp = String(nowSeconds());
  const value = `sha256=${signatureOf(body, stamp)}`;
  for (const [i, name] of ['x-signature', 'X-SIGNATURE', 'X-Signature'].entries()) {
    const answer = await send('p1', body, [['X-Timestamp', stamp], [name, value]]);
    assert.deepEqual([answer.status, answer.json.disposition, answer.replayed], [200, 'applied', i > 0], name);
  }
  for (const spaced of [`\t ${value} \t`, `${value}\t`, `  ${value}`]) {
    const answer = await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', spaced]]);
    assert.deepEqual([answer.status, answer.replayed], [200, true], JSON.stringify(spaced));
  }
  const blanks = await send('p1', body, [['x-timestamp', ` ${stamp}\t`], ['X-Signature', value]]);
  assert.deepEqual([blanks.status, blanks.replayed], [200, true], 'blanks around the stamp are not part of it');
  await recibo.expectCounts(id, 1, 1, 0);
});

test('S13 list-style schemes: a blank after the comma, and an unknown element', async () => {
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id, { provider: 'stripe' });
  const stamp = String(nowSeconds());
  const hex = signatureOf(body, stamp, secrets.stripe);
  for (const [i, value] of [`t=${stamp}, v1=${hex}`, `t=${stamp},v1=${hex},v0=abc`, `t=${stamp},v1=${'0'.repeat(64)},v1=${hex}`].entries()) {
    const answer = await send('stripe', body, [['Stripe-Signature', value]]);
    assert.deepEqual([answer.status, answer.json.disposition, answer.replayed], [200, 'applied', i > 0], value);
  }
  await recibo.expectCounts(id, 1, 1, 0);
  for (const value of [`t=${stamp},v0=${hex}`, `v1=${hex}`, `t=${stamp}`, `t=${stamp};v1=${hex}`, '']) {
    await refused(await send('stripe', body, [['Stripe-Signature', value]]), value);
  }
});

test('S14 a header sent twice: order does not decide', async () => {
  const body = callbackBody(freshId(), '1');
  const stamp = String(nowSeconds());
  const right = ['X-Signature', `sha256=${signatureOf(body, stamp)}`];
  const wrong = ['X-Signature', `sha256=${'0'.repeat(64)}`];
  const before = await recibo.everything();
  const answers = [];
  for (const pair of [[wrong, right], [right, wrong]]) answers.push(await send('p1', body, [['X-Timestamp', stamp], ...pair]));
  const classes = answers.map((a) => Math.floor(a.status / 100));
  assert.ok(classes[0] === classes[1] && (classes[0] === 2 || classes[0] === 4), JSON.stringify(answers.map((a) => a.status)));
  for (const answer of answers) await refused(answer, 'a repeated signature header is refused');
  await refused(await send('p1', body, [['X-Timestamp', stamp], ['X-Timestamp', stamp], right]), 'a repeated stamp too');
  assert.deepEqual(await recibo.everything(), before);

  const id = freshId();
  await recibo.accepted(id, { provider: 'p5' });
  const said = callbackBody(id, undefined);
  const twice = await recibo.callback('p5', said, { headers: [['Idempotency-Key', 'k1'], ['Idempotency-Key', 'k2']] });
  assert.ok(twice.status === 400 || twice.status === 422, `${twice.status} ${twice.text}`);
  await recibo.expectCounts(id, 0, 0, 0);
  for (const [i, key] of ['k1', 'k1', 'k2'].entries()) {
    const answer = await recibo.callback('p5', said, { headers: [['Idempotency-Key', key]], stamp });
    assert.deepEqual([answer.status, answer.replayed, answer.json.disposition], [200, i > 0, 'applied'], `${key}: the same signed bytes are the same callback`);
  }

  const typed = freshId();
  await recibo.accepted(typed);
  const sent = await recibo.callback('p1', callbackBody(typed, '1'), { headers: [['Content-Type', 'application/json']] });
  assert.ok(sent.status === 200 || sent.status === 400, String(sent.status));
});

test('S15 time stamps: two-sided, strict, in the one configured unit', async () => {
  const failures = () => recibo.metric('recibo_signature_failures_total', { provider: 'p1', reason: /time/ });
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id);
  const counted = await failures();
  const before = await recibo.everything();
  const literal = {
    'b: 301 s old': (now) => String(now - 301),
    'c: 301 s ahead': (now) => String(now + 301),
    'd: milliseconds': (now) => String(now * 1000),
    'e: junk after it': (now) => `${now}junk`,
    'f: empty': () => '',
    'a sign': (now) => `+${now}`,
    'a fraction': (now) => `${now}.0`,
    'hexadecimal': (now) => `0x${now.toString(16)}`,
    'beyond 64 bits': () => '99999999999999999999999',
    'negative': () => '-1',
  };
  for (const [name, make] of Object.entries(literal)) {
    const stamp = make(await secondBegins());
    await refused(await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', `sha256=${signatureOf(body, stamp)}`]]), name);
  }
  await refused(await send('p1', body, [['X-Signature', `sha256=${signatureOf(body, '')}`]]), 'g: the header is missing');
  assert.deepEqual(await recibo.everything(), before, 'nothing was stored but a count');
  assert.equal((await failures()) - counted, Object.keys(literal).length + 1, 'each is counted under a reason that names the time');
  const stamp = String((await secondBegins()) - 299);
  const good = await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', `sha256=${signatureOf(body, stamp)}`]]);
  assert.deepEqual([good.status, good.json.disposition, good.replayed], [200, 'applied', false], 'a: 299 s old');
  await recibo.expectCounts(id, 1, 1, 0);
});

test('S15 with the unit milliseconds, thirteen digits are right and seconds are not', async () => {
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id, { provider: 'milliseconds' });
  await refused(await recibo.callback('milliseconds', body, { stamp: String(nowSeconds()) }), 'seconds');
  const good = await recibo.callback('milliseconds', body, { stamp: String(Date.now()) });
  assert.deepEqual([good.status, good.json.disposition], [200, 'applied']);
});

test('S18 a missing or empty signature is refused', async () => {
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id);
  const before = await recibo.everything();
  const stamp = String(nowSeconds());
  await refused(await send('p1', body, [['X-Timestamp', stamp]]), 'missing');
  await refused(await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', '']]), 'empty');
  await refused(await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', `sha256=${signatureOf(body, stamp, '')}`]]), 'signed with the empty key');
  await refused(await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', `sha256=${signatureOf(body, stamp, secrets.p2)}`]]), "signed with another's secret");
  await refused(await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', `sha256=${hmac('sha256', secrets.p1, [body], 'hex')}`]]), 'the stamp is not covered');
  await refused(await send('p1', body, []), 'nothing at all');
  assert.deepEqual(await recibo.everything(), before);
  await recibo.expectCounts(id, 0, 0, 0);
});

test('S19 almost the right signature', async () => {
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id);
  const before = await recibo.everything();
  const stamp = String(nowSeconds());
  const right = signatureOf(body, stamp);
  const last = right.at(-1) === '0' ? '1' : '0';
  const almost = {
    'the empty value': 'sha256=',
    'eight digits': `sha256=${right.slice(0, 8)}`,
    'two more digits': `sha256=${right}00`,
    'the last digit changed': `sha256=${right.slice(0, -1)}${last}`,
  };
  const answers = [];
  for (const value of Object.values(almost)) answers.push(await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', value]]));
  for (const [i, name] of Object.keys(almost).entries()) {
    await refused(answers[i], name);
    assert.deepEqual(seen(answers[i]), seen(answers[0]), `${name}: identical answers`);
  }
  for (const [name, value] of Object.entries({
    'without the prefix': right, 'another prefix': `sha1=${right}`, 'the prefix in capitals': `SHA256=${right}`, 'base64': `sha256=${Buffer.from(right, 'hex').toString('base64')}`,
  })) {
    const answer = await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', value]]);
    await refused(answer, name);
    assert.deepEqual(seen(answer), seen(answers[0]), `${name}: identical answers`);
  }
  assert.deepEqual(await recibo.everything(), before);
  // Hex digits are decoded before they are compared, so capitals are the same value.
  const capitals = await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', `sha256=${right.toUpperCase()}`]]);
  assert.deepEqual([capitals.status, capitals.json.disposition], [200, 'applied']);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('every cause of a refused signature looks the same from outside', async () => {
  const body = callbackBody(freshId(), '1');
  const stamp = String(nowSeconds());
  const value = `sha256=${signatureOf(body, stamp)}`;
  const old = String(nowSeconds() - 4000);
  const answers = [
    await send('p1', body, [['X-Timestamp', stamp]]),
    await send('p1', body, [['X-Signature', value]]),
    await send('p1', body, [['X-Timestamp', old], ['X-Signature', `sha256=${signatureOf(body, old)}`]]),
    await send('p1', body, [['X-Timestamp', 'soon'], ['X-Signature', value]]),
    await send('p1', body, [['X-Timestamp', stamp], ['X-Signature', value], ['X-Signature', value]]),
    await send('p1', `${body} `, [['X-Timestamp', stamp], ['X-Signature', value]]),
    await send('p1', 'not json at all', [['X-Timestamp', stamp], ['X-Signature', value]]),
  ];
  for (const answer of answers) {
    await refused(answer);
    assert.deepEqual(seen(answer), seen(answers[0]));
  }
});

test('S20 a replay inside and outside the window', async () => {
  const id = freshId();
  const body = likeB0(id, freshId('evt'));
  await recibo.accepted(id);
  const stamp = String((await secondBegins()) - 298);
  const headers = [['X-Timestamp', stamp], ['X-Signature', `sha256=${signatureOf(body, stamp)}`]];
  const first = await send('p1', body, headers);
  assert.deepEqual([first.status, first.json.disposition], [200, 'applied']);
  const inside = await send('p1', body, headers);
  assert.deepEqual([inside.status, inside.replayed, inside.text], [200, true, first.text]);
  await refused(await send('p1', body, headers.slice(1)), 'without the stamp');
  await sleep(3_200);
  await refused(await send('p1', body, headers), '301 s old');
  await recibo.expectCounts(id, 1, 1, 0);
});

for (const name of ['stripe', 'standard', 'svix', 'github', 'slack', 'shopify']) {
  test(`the preset of ${name} takes what that provider signs, and nothing else`, async () => {
    const id = freshId();
    const body = callbackBody(id, '1');
    await recibo.accepted(id, { provider: name });
    const before = await recibo.everything();
    const request = recibo.request(name, body, { id: 'msg_1' });
    await refused(await recibo.raw({ ...request, body: `${body} ` }), 'another body');
    await refused(await recibo.callback(name, body, { id: 'msg_1', secret: name === 'standard' || name === 'svix' ? `whsec_${Buffer.alloc(32, 7).toString('base64')}` : 'test-secret-other' }), 'another secret');
    assert.deepEqual(await recibo.everything(), before);
    const first = await recibo.raw(request);
    assert.deepEqual([first.status, first.json.disposition, first.json.state], [200, 'applied', 'completed'], first.text);
    const again = await recibo.callback(name, body, { id: 'msg_1' });
    assert.deepEqual([again.status, again.replayed, again.text], [200, true, first.text]);
    await recibo.expectCounts(id, 1, 1, 0);
  });
}

test('a message ID that is part of the signed content cannot be exchanged', async () => {
  const id = freshId();
  const body = callbackBody(id, '1');
  await recibo.accepted(id, { provider: 'standard' });
  const request = recibo.request('standard', body, { id: 'msg_1' });
  const changed = { ...request, headers: request.headers.map(([n, v]) => (n === 'webhook-id' ? [n, 'msg_2'] : [n, v])) };
  await refused(await recibo.raw(changed), 'another message ID');
  await refused(await recibo.raw({ ...request, headers: request.headers.filter(([n]) => n !== 'webhook-id') }), 'no message ID');
});

test('which secret verified a delivery is on record by name, never by value', async () => {
  const id = freshId();
  await recibo.accepted(id);
  await recibo.callback('p1', callbackBody(id, '1'));
  const [delivery] = (await recibo.timeline(id)).filter((entry) => entry.kind === 'delivery');
  assert.equal(typeof delivery.secret, 'string');
  assert.notEqual(delivery.secret, '');
  assert.equal(JSON.stringify(await recibo.timeline(id)).includes(secrets.p1), false);
});

stage.ends();
