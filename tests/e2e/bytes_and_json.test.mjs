// The bytes are what was signed, and what is ambiguous is refused: raw bodies, strict JSON, identifiers.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { B0, bodyOf, cutBody, escapeBodies, hmacTable, likeB0 } from '../support/bodies.mjs';
import { freshId } from '../support/random.mjs';
import { RawConnection, chunked, requestBytes } from '../support/raw.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { sha256Hex } from '../support/sign.mjs';

const stage = await Stage.begin();
const { recibo } = stage;

const byName = (name) => bodyOf(hmacTable.find((row) => row.name === name));

// A service of its own with req-1001, for cases whose bytes are fixed.
async function fresh() {
  const own = await stage.fresh();
  await own.accepted('req-1001');
  return own;
}

for (const name of ['B0 and a line feed', 'B0 with a break after each comma']) {
  test(`S10 every byte counts: ${name}`, async () => {
    const own = await fresh();
    const body = byName(name);
    const answer = await own.callback('p1', body, { contentType: 'application/json; charset=UTF-8' });
    assert.deepEqual([answer.status, answer.json.disposition, answer.json.state], [200, 'applied', 'completed'], answer.text);
    const stored = await own.storedBody(answer.json.delivery_id);
    assert.equal(sha256Hex(stored), sha256Hex(body));
    const payload = await own.api('GET', `/v1/deliveries/${answer.json.delivery_id}/payload`);
    assert.equal(sha256Hex(payload.body), sha256Hex(body), 'the API gives the same bytes');
    const [delivery] = await own.deliveries('req-1001');
    assert.equal(delivery.body_sha256, sha256Hex(body));
    await own.expectCounts('req-1001', 1, 1, 0);
    await own.finish();
  });
}

test("S10 B0 with the signature of another body's bytes is refused", async () => {
  const id = freshId();
  await recibo.accepted(id);
  const before = await recibo.everything();
  const request = recibo.request('p1', `${likeB0(id, 'evt-1')}\n`);
  const answer = await recibo.raw({ ...request, body: likeB0(id, 'evt-1') });
  assert.equal(answer.status, 401);
  assert.deepEqual(await recibo.everything(), before);
  await recibo.expectCounts(id, 0, 0, 0);
});

test('S11 a character cut in two by chunks', async () => {
  const own = await fresh();
  const body = Buffer.from(cutBody.body);
  const request = own.request('p1', body);
  const head = requestBytes({ ...request, headers: [...request.headers, ['Transfer-Encoding', 'chunked']], body: '' });
  const connection = await RawConnection.open(own.service.callbacks);
  const piece = (bytes) => Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
  await connection.writePieces([Buffer.concat([head, piece(body.subarray(0, cutBody.first_chunk))]), Buffer.concat([piece(body.subarray(cutBody.first_chunk)), Buffer.from('0\r\n\r\n')])], 200);
  const answer = await connection.response();
  connection.destroy();
  assert.deepEqual([answer.status, answer.json.disposition, answer.json.state], [200, 'applied', 'processing'], answer.text);
  const payload = await own.api('GET', `/v1/deliveries/${answer.json.delivery_id}/payload`);
  assert.deepEqual(payload.body, body);
  assert.equal(JSON.parse(payload.body.toString('utf8')).note, 'héllo 😊 \u2028');
  await own.expectCounts('req-1001', 1, 1, 0);
  await own.finish();
});

test('S12 two spellings of one escape are two bodies', async () => {
  for (const [i, one] of escapeBodies.entries()) {
    const own = await fresh();
    const other = own.request('p1', escapeBodies[1 - i].body);
    assert.equal((await own.raw({ ...other, body: one.body })).status, 401);
    const answer = await own.callback('p1', one.body);
    assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied'], answer.text);
    assert.equal((await own.storedBody(answer.json.delivery_id)).toString('utf8'), one.body);
    await own.finish();
  }
});

// The failed-callbacks queue's entry for a body.
async function failedEntry(body) {
  const digest = sha256Hex(body);
  const rows = await recibo.sql("SELECT id::text, disposition, reason, count, delivery::text, answer_status FROM recibo.failed_callbacks WHERE encode(body_digest, 'hex') = $1", [digest]);
  assert.equal(rows.length, 1, 'kept once');
  const listed = (await recibo.list('/v1/failed-callbacks')).filter((one) => JSON.stringify(one).includes(rows[0].delivery));
  assert.equal(listed.length, 1, 'in the list of the API');
  return { row: rows[0], listed: listed[0] };
}

test('S22 two statuses in one object: refused, kept once, no key claimed', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const body = `{"request_id":"${id}","event_id":"evt-22","status":"failed","status":"succeeded"}`;
  const first = await recibo.callback('p1', body);
  assert.deepEqual([first.status, first.json.code, first.json.retryable], [422, 'unprocessable', false]);
  const again = await recibo.callback('p1', body);
  assert.deepEqual([again.status, again.json.code], [422, 'unprocessable']);
  const { row } = await failedEntry(body);
  assert.deepEqual([row.disposition, row.reason, row.count], ['unprocessable', 'malformed_json', 2]);
  assert.equal((await recibo.storedBody(row.delivery)).toString('utf8'), body);
  await recibo.expectCounts(id, 0, 0, 0);
  const good = await recibo.callback('p1', callbackBody(id, 'evt-22'));
  assert.deepEqual([good.status, good.json.disposition, good.replayed], [200, 'applied', false], 'the key was not claimed');
});

test('S24 NUL, a lone surrogate, a broken byte', async () => {
  const noted = (id, event, note) => Buffer.from(`${callbackBody(id, event).slice(0, -1)},"note":"${note}"}`, 'latin1');
  const cases = [
    { note: 'x\\u0000y', allowed: [200, 422] },
    { note: '\\ud800', allowed: [422] },
    { note: '\xff', allowed: [422] },
  ];
  for (const { note, allowed } of cases) {
    const id = freshId();
    await recibo.accepted(id);
    const body = noted(id, freshId('evt'), note);
    const answer = await recibo.callback('p1', body);
    assert.ok(allowed.includes(answer.status), `${JSON.stringify(note)}: ${answer.status} ${answer.text}`);
    const applied = answer.status === 200 ? 1 : 0;
    await recibo.expectCounts(id, applied, applied, 0);
    const delivery = answer.json.delivery_id ?? (await failedEntry(body)).row.delivery;
    assert.deepEqual(await recibo.storedBody(delivery), body, 'the bytes can be had');
    const payload = await recibo.api('GET', `/v1/deliveries/${delivery}/payload`);
    assert.equal(payload.status, 200);
    assert.deepEqual(payload.body, body);
  }
  const id = freshId();
  await recibo.accepted(id);
  const normal = await recibo.callback('p1', callbackBody(id, '1'));
  assert.equal(normal.json.disposition, 'applied');
  const listed = await recibo.list('/v1/deliveries', { limit: 2 });
  const [{ count }] = await recibo.sql('SELECT count(*)::int AS count FROM recibo.deliveries');
  assert.equal(new Set(listed.map((one) => one.delivery_id ?? one.id)).size, count, 'the list is complete');
});

test('what is not JSON, or not understandable, is unprocessable and kept with its bytes', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const rest = ',"status":"succeeded"}';
  const cases = {
    'no JSON': 'hello',
    'nothing': '',
    'cut off': `{"request_id":"${id}"`,
    'something after it': `${callbackBody(id, 'x')} {}`,
    'an array': '[]',
    'a comma too many': `{"request_id":"${id}","event_id":"1"${rest.slice(0, -1)},}`,
    'a comment': `{"request_id":"${id}"/* */,"event_id":"1"${rest}`,
    'single quotes': `{'request_id':'${id}'}`,
    'NaN': `{"request_id":"${id}","event_id":"1","amount":NaN${rest}`,
    'a byte order mark and no JSON': '\ufeffx',
    'a leading zero': `{"request_id":"${id}","event_id":"1","x":01${rest}`,
    'a bare control character': `{"request_id":"${id}","event_id":"1","x":"\t"${rest}`,
    'a repeated key in depth': `{"request_id":"${id}","event_id":"1","x":{"y":{"a":1,"a":2}}${rest}`,
    'a repeated key by escape': `{"request_id":"${id}","event_id":"1","\\u0073tatus":"failed"${rest}`,
    'a thousand levels': `{"request_id":"${id}","event_id":"1","x":${'['.repeat(1000)}${']'.repeat(1000)}${rest}`,
    'no event ID': `{"request_id":"${id}"${rest}`,
    'an empty event ID': `{"request_id":"${id}","event_id":""${rest}`,
    'a blank event ID': `{"request_id":"${id}","event_id":" "${rest}`,
    'an event ID that is an object': `{"request_id":"${id}","event_id":{}${rest}`,
    'an event ID that is null': `{"request_id":"${id}","event_id":null${rest}`,
    'an endless event ID': `{"request_id":"${id}","event_id":"${'a'.repeat(12_800)}"${rest}`,
    'no request ID': `{"event_id":"1"${rest}`,
    'a request ID with a slash': `{"request_id":"a/b","event_id":"1"${rest}`,
    'a request ID of 256 bytes': `{"request_id":"${'x'.repeat(256)}","event_id":"1"${rest}`,
    'no status': `{"request_id":"${id}","event_id":"1"}`,
    'a status that is a list': `{"request_id":"${id}","event_id":"1","status":["succeeded"]}`,
    'a time without a zone': callbackBody(id, '1', 'succeeded', { occurred_at: '2026-10-25T02:30:00' }),
    'a time in other words': callbackBody(id, '1', 'succeeded', { occurred_at: '2026-06-28 16:08:11 +0200' }),
    'a time in milliseconds': callbackBody(id, '1', 'succeeded', { occurred_at: 1767225600000 }),
    'an amount in words': callbackBody(id, '1', 'succeeded', { amount: 'twenty' }),
    'a currency in words': callbackBody(id, '1', 'succeeded', { currency: 'Euro' }),
  };
  const [{ count: before }] = await recibo.sql('SELECT count(*)::int AS count FROM recibo.failed_callbacks');
  for (const [name, body] of Object.entries(cases)) {
    const answer = await recibo.callback('p1', body);
    assert.deepEqual([answer.status, answer.json.code, answer.json.retryable], [422, 'unprocessable', false], `${name}: ${answer.text}`);
    const { row } = await failedEntry(body);
    assert.equal((await recibo.storedBody(row.delivery)).toString('utf8'), body, name);
  }
  const [{ count: after }] = await recibo.sql('SELECT count(*)::int AS count FROM recibo.failed_callbacks');
  assert.equal(after - before, Object.keys(cases).length);
  await recibo.expectCounts(id, 0, 0, 0);
  const good = await recibo.callback('p1', callbackBody(id, '1'));
  assert.deepEqual([good.json.disposition, good.replayed], ['applied', false]);
});

test('S26 endless event IDs get the same answer from the same limit', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const sums = Array.from({ length: 400 }, (_, i) => createHash('md5').update(String(i + 1)).digest('hex')).join('');
  assert.equal(sums.length, 12_800);
  const answers = [];
  for (const event of ['a'.repeat(12_800), sums]) answers.push(await recibo.callback('p1', callbackBody(id, event)));
  for (const answer of answers) assert.deepEqual([answer.status, answer.json.code], [422, 'unprocessable']);
  assert.equal(answers[0].json.detail, answers[1].json.detail);
  await recibo.expectCounts(id, 0, 0, 0);
  for (const [length, disposition] of [[255, 'applied'], [256, null]]) {
    const answer = await recibo.callback('p1', callbackBody(id, 'k'.repeat(length)));
    assert.equal(disposition ? answer.json.disposition : answer.json.code, disposition ?? 'unprocessable', `${length} bytes`);
  }
});

test('S23 neighbouring big integers are two keys', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const one = `{"request_id":"${id}","event_id":9007199254740993,"status":"processing"}`;
  const two = `{"request_id":"${id}","event_id":9007199254740992,"status":"succeeded"}`;
  const first = await recibo.callback('p1', one);
  const second = await recibo.callback('p1', two);
  assert.deepEqual([first.status, second.status], [200, 200], 'numbers are taken as their text');
  assert.deepEqual([first.json.disposition, second.json.disposition, second.replayed], ['applied', 'applied', false]);
  await recibo.expectCounts(id, 2, 2, 0);
});

test('S25 awkward but allowed identifiers work end to end, others are refused at registration', async () => {
  for (const id of ['a:b@c&d=e+f;g"<h>\\i\'', 'x'.repeat(255), '~', '-', '...']) {
    const accepted = await recibo.register(id);
    assert.equal(accepted.status, 201, accepted.text);
    const answer = await recibo.callback('p1', callbackBody(id, '1'));
    assert.deepEqual([answer.status, answer.json.disposition, answer.json.request_id], [200, 'applied', id]);
    assert.equal((await recibo.get(id)).request_id, id);
    const location = accepted.header('Location');
    assert.ok(location, 'the accept answer says where the operation is');
    const found = await recibo.api('GET', location.replace(/^https?:\/\/[^/]+/, ''));
    assert.deepEqual([found.status, found.json.request_id], [200, id]);
    const shown = await recibo.run(['case', '--', id]);
    assert.equal(shown.code, 0, `recibo case ${id}: ${shown.stderr}`);
    assert.ok(shown.stdout.includes(id));
  }
  for (const id of ['a/b', 'a%2Fb', 'x'.repeat(256), '', ' ', 'a b', 'a?b', 'a#b', 'é', 'a\u0000b', 'a\nb', '.', '..']) {
    const answer = await recibo.register(id);
    assert.ok(answer.status === 400 || answer.status === 422, `${JSON.stringify(id)}: ${answer.status}`);
    assert.match(answer.json.detail, id.includes('\u0000') ? /U\+0000/ : /request_id/, 'the rule is named');
  }
});

test('a body with chunks of any size is the same body', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const body = Buffer.from(likeB0(id, 'evt-1'));
  for (const [i, size] of [1, 7, 64, body.length].entries()) {
    const request = recibo.request('p1', body);
    const pieces = Array.from({ length: Math.ceil(body.length / size) }, (_, k) => body.subarray(k * size, (k + 1) * size));
    const head = requestBytes({ ...request, headers: [...request.headers, ['Transfer-Encoding', 'chunked']], body: '' });
    const connection = await RawConnection.open(recibo.service.callbacks);
    connection.write(Buffer.concat([head, chunked(pieces)]));
    const answer = await connection.response();
    connection.destroy();
    assert.deepEqual([answer.status, answer.replayed], [200, i > 0], `chunks of ${size}`);
  }
  assert.equal(B0.length, 136);
});

stage.ends();
