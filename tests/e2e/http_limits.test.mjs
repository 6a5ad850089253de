// One reading of where a request ends, bounded sizes, bounded memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { likeB0 } from '../support/bodies.mjs';
import { sleep } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { RawConnection, chunked, requestBytes } from '../support/raw.mjs';
import { Stage, callbackBody, isSendAgain, memoryLimit } from '../support/recibo.mjs';
import { nowSeconds } from '../support/sign.mjs';

const stage = await Stage.begin();
const { recibo } = stage;
const limit = 1 << 20; // limits.body, as it is by default

// Begun first, looked at last: a head that never ends.
const slow = await RawConnection.open(recibo.service.callbacks);
slow.write('POST /callbacks/p1 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
const slowSince = Date.now();

const open = () => RawConnection.open(recibo.service.callbacks);

// Sends bytes, reads one answer; then the connection must be closed or usable for another request.
async function refused(bytes, statuses, { mayReset = false } = {}) {
  const connection = await open();
  connection.write(bytes);
  let answer;
  try {
    answer = await connection.response({ timeout: 5_000 });
  } catch (error) {
    if (!mayReset) throw error;
    return null;
  }
  assert.ok(statuses.includes(answer.status), `${answer.status} instead of ${statuses}: ${answer.text}`);
  const problem = answer.json;
  assert.equal(answer.header('Content-Type')?.split(';')[0], 'application/problem+json');
  assert.equal(problem.status, answer.status);
  assert.match(problem.code, /^[a-z][a-z0-9_]*$/);
  if (answer.header('Connection')?.toLowerCase() === 'close') await connection.untilClosed(5_000);
  else {
    connection.write(requestBytes({ method: 'GET', target: '/livez' }));
    assert.equal((await connection.response({ method: 'GET' })).status, 200, 'the connection was drained');
  }
  connection.destroy();
  return answer;
}

async function freshCallbackWorks() {
  const id = freshId();
  await recibo.accepted(id);
  const answer = await recibo.callback('p1', likeB0(id, 'evt-1'));
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
}

test('S29 Expect: 100-continue', async () => {
  const id = freshId('req', 8);
  await recibo.accepted(id);
  const body = likeB0(id, 'evt-1');
  assert.equal(Buffer.byteLength(body), 136);
  const request = recibo.request('p1', body);
  const head = (length) => requestBytes({ ...request, headers: [...request.headers, ['Expect', '100-continue'], ['Content-Length', String(length)]], body: '' });
  const good = await open();
  const since = Date.now();
  good.write(head(136));
  const interim = await good.next({ timeout: 1_000 });
  assert.equal(interim.status, 100);
  assert.ok(Date.now() - since < 1_000);
  good.write(body);
  const answer = await good.next();
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
  good.destroy();

  const large = await open();
  large.write(head(2_097_152));
  const first = await large.next({ timeout: 5_000 });
  assert.equal(first.status, 413, '413 without 100');
  assert.equal(first.header('Connection')?.toLowerCase(), 'close');
  await large.untilClosed(5_000);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('a refusal that the head allows comes before 100 Continue', async () => {
  const expecting = (target, headers = []) => requestBytes({ target, headers: [...headers, ['Expect', '100-continue'], ['Content-Length', '10']], body: '' });
  for (const [bytes, status] of [
    [expecting('/callbacks/nope'), 404],
    [expecting('/callbacks/p1', [['Content-Encoding', 'gzip']]), 415],
  ]) {
    const connection = await open();
    connection.write(bytes);
    assert.equal((await connection.next({ timeout: 3_000 })).status, status);
    connection.destroy();
  }
});

test('S30 size limits', async () => {
  await freshCallbackWorks();
  const before = recibo.service.memory().now;
  const padded = (id, size) => Buffer.concat([Buffer.from(likeB0(id, 'evt-1')), Buffer.alloc(size - Buffer.byteLength(likeB0(id, 'evt-1')), ' ')]);
  const id = freshId();
  await recibo.accepted(id);
  const exact = await recibo.callback('p1', padded(id, limit));
  assert.deepEqual([exact.status, exact.json.disposition], [200, 'applied'], 'exactly at the limit');
  assert.equal((await recibo.storedBody(exact.json.delivery_id)).length, limit);

  const other = freshId();
  await recibo.accepted(other);
  const large = padded(other, limit + 1);
  const request = recibo.request('p1', large);
  await refused(requestBytes(request), [413]);
  await freshCallbackWorks();
  const head = requestBytes({ ...request, headers: [...request.headers, ['Transfer-Encoding', 'chunked']], body: '' });
  const pieces = Array.from({ length: 17 }, (_, i) => large.subarray(i * 65_536, (i + 1) * 65_536)).filter((p) => p.length > 0);
  await refused(Buffer.concat([head, chunked(pieces)]), [413]);
  await freshCallbackWorks();
  await refused(requestBytes(recibo.request('p1', large, { contentType: 'application/x-www-form-urlencoded' })), [413, 415]);
  await freshCallbackWorks();
  const wide = requestBytes({ ...request, headers: [...request.headers, ['X-Padding', 'x'.repeat(9_000)]], body: '' });
  await refused(wide, [431]);
  await freshCallbackWorks();
  await refused(Buffer.from(`POST /callbacks/p1?${'x'.repeat(9_000)} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`), [431, 414]);
  await freshCallbackWorks();
  await recibo.expectCounts(other, 0, 0, 0);
  const grown = recibo.service.memory().now - before;
  assert.ok(grown < memoryLimit(4), `memory grew by ${grown} KiB`);
});

test('routes and methods', async () => {
  const before = await recibo.everything();
  const series = (await recibo.metrics()).length;
  for (let i = 0; i < 5; ++i) {
    const unknown = await recibo.callback('p1', '{}', {}).then(() => recibo.raw({ target: `/callbacks/nope${i}`, body: '{}' }));
    assert.deepEqual([unknown.status, unknown.json.retryable], [404, false]);
  }
  assert.equal((await recibo.raw({ target: '/nothing', body: '' })).status, 404);
  assert.equal((await recibo.raw({ method: 'GET', target: '/v1/operations' })).status, 404, 'the API is not on this listener');
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const answer = await recibo.raw({ method, target: '/callbacks/p1', body: method === 'GET' ? '' : '{}' });
    assert.equal(answer.status, 405, method);
    assert.match(answer.header('Allow'), /\bPOST\b/, method);
  }
  const slash = await recibo.raw(({ ...recibo.request('p1', callbackBody(freshId(), '1')), target: '/callbacks/p1/' }));
  assert.ok(slash.status === 404 || slash.status === 202 || isSendAgain(slash), `no redirect: ${slash.status}`);
  for (const target of ['/livez', '/readyz']) assert.equal((await recibo.raw({ method: 'GET', target })).status, 200);
  for (const coding of ['gzip', 'br', 'deflate', 'x']) {
    const answer = await recibo.callback('p1', '{}', { headers: [['Content-Encoding', coding]] });
    assert.equal(answer.status, 415, coding);
  }
  const after = await recibo.everything();
  assert.deepEqual({ ...after, deliveries: 0, payloads: 0, failed: 0 }, { ...before, deliveries: 0, payloads: 0, failed: 0 });
  assert.ok((await recibo.metrics()).length - series <= 20, 'no series per unknown name');
});

test('S21 forwarded headers from a peer that is not a trusted proxy decide nothing', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const headers = [['X-Forwarded-For', '10.9.8.7'], ['X-Forwarded-Proto', 'http'], ['X-Forwarded-Host', 'evil.example'], ['Forwarded', 'for=10.9.8.7'], ['X-Real-IP', '10.9.8.7']];
  const answer = await recibo.callback('p1', likeB0(id, 'evt-1'), { headers });
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
  const [{ peer }] = await recibo.deliveries(id);
  assert.equal(peer, '127.0.0.1');
  assert.equal(answer.text.includes('evil.example'), false);
});

test('a head that can be read in two ways is refused', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const body = likeB0(id, 'evt-1');
  const request = recibo.request('p1', body);
  const lines = request.headers.map(([n, v]) => `${n}: ${v}\r\n`).join('');
  const with_ = (first, rest) => Buffer.from(`${first}\r\n${rest}`);
  const start = 'POST /callbacks/p1 HTTP/1.1';
  const n = Buffer.byteLength(body);
  const cases = {
    'two Host lines': with_(start, `Host: a\r\nHost: a\r\n${lines}Content-Length: ${n}\r\n\r\n${body}`),
    'no Host': with_(start, `${lines}Content-Length: ${n}\r\n\r\n${body}`),
    'two equal lengths': with_(start, `Host: a\r\n${lines}Content-Length: ${n}\r\nContent-Length: ${n}\r\n\r\n${body}`),
    'a list of lengths': with_(start, `Host: a\r\n${lines}Content-Length: ${n}, ${n}\r\n\r\n${body}`),
    'two lengths': with_(start, `Host: a\r\n${lines}Content-Length: ${n}\r\nContent-Length: ${n + 1}\r\n\r\n${body}`),
    'a length and chunks': with_(start, `Host: a\r\n${lines}Content-Length: ${n}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
    'chunks and a length': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked\r\nContent-Length: ${n}\r\n\r\n0\r\n\r\n`),
    'Transfer-Encoding twice': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
    'chunks of chunks': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`),
    'a folded header': with_(start, `Host: a\r\n${lines}X-Folded: one\r\n two\r\nContent-Length: ${n}\r\n\r\n${body}`),
    'a blank before the colon': with_(start, `Host: a\r\n${lines}X-Blank : one\r\nContent-Length: ${n}\r\n\r\n${body}`),
    'chunks in HTTP/1.0': with_('POST /callbacks/p1 HTTP/1.0', `Host: a\r\n${lines}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
    'a negative length': with_(start, `Host: a\r\n${lines}Content-Length: -1\r\n\r\n`),
    'a length with a sign': with_(start, `Host: a\r\n${lines}Content-Length: +${n}\r\n\r\n${body}`),
    'a NUL in a value': with_(start, `Host: a\r\n${lines}X-Nul: a\0b\r\nContent-Length: ${n}\r\n\r\n${body}`),
    'another protocol': Buffer.from('GARBAGE\r\n\r\n'),
    'a bad chunk size': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n`),
    'a bare LF after a chunk size, and no more': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked\r\n\r\n5\n`),
    'a folded trailer, and no more': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked\r\n\r\n0\r\nX: a\r\n b`),
    'an extension without end': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked\r\n\r\n5;a=${'x'.repeat(4_000)}`),
    'a hexadecimal length': with_(start, `Host: a\r\n${lines}Content-Length: 0x10\r\n\r\n`),
    'a coding that is almost chunked': with_(start, `Host: a\r\n${lines}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`),
    'a bare CR': with_(start, `Host: a\rX: b\r\n${lines}\r\n`),
    'an authority as target': Buffer.from('CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'),
    'HTTP/0.9, and no more': Buffer.from('GET /livez\r\n'),
    'HTTP/2': Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    'a TLS handshake': Buffer.from('1603010200010001fc0303', 'hex'),
    'a PROXY header that nobody expects': Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n'),
    'a chunk longer than it says': with_(start, `Host: a\r\n${lines}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n`),
  };
  for (const [name, bytes] of Object.entries(cases)) {
    const statuses = name === 'chunks in HTTP/1.0' ? [400, 505] : name === 'HTTP/2' ? [505] : [400];
    const answer = await refused(bytes, statuses).catch((error) => assert.fail(`${name}: ${error.message}`));
    assert.equal(answer.header('Connection')?.toLowerCase(), 'close', `${name}: in doubt the connection is closed`);
  }
  await recibo.expectCounts(id, 0, 0, 0);
  await freshCallbackWorks();
});

test('trailers never become headers', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const body = Buffer.from(likeB0(id, 'evt-1'));
  const request = recibo.request('p1', body);
  const signature = request.headers.find(([n]) => n === 'X-Signature');
  const head = requestBytes({ ...request, headers: [...request.headers.filter((h) => h !== signature), ['Transfer-Encoding', 'chunked'], ['Trailer', 'X-Signature']], body: '' });
  const connection = await open();
  connection.write(Buffer.concat([head, Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from(`\r\n0\r\nX-Signature: ${signature[1]}\r\n\r\n`)]));
  const answer = await connection.response();
  assert.equal(answer.status, 401);
  connection.destroy();
  await recibo.expectCounts(id, 0, 0, 0);
});

test('requests in one packet are answered in order, and a byte at a time is a request too', async () => {
  const ids = [freshId(), freshId(), freshId()];
  for (const id of ids) await recibo.accepted(id);
  const connection = await open();
  connection.write(Buffer.concat(ids.map((id) => recibo.bytes('p1', likeB0(id, 'evt-1')))));
  for (const id of ids) {
    const answer = await connection.response();
    assert.deepEqual([answer.status, answer.json.request_id], [200, id]);
  }
  const id = freshId();
  await recibo.accepted(id);
  for (const byte of recibo.bytes('p1', likeB0(id, 'evt-1'))) {
    connection.write(Buffer.from([byte]));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const answer = await connection.response();
  assert.deepEqual([answer.status, answer.json.request_id], [200, id]);
  connection.destroy();
});

test('a sender that leaves in the middle, or before its answer, harms nobody', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const bytes = recibo.bytes('p1', likeB0(id, 'evt-1'));
  for (let at = 1; at < bytes.length; at += 37) {
    const connection = await open();
    connection.write(bytes.subarray(0, at));
    await sleep(1);
    connection.destroy();
  }
  const gone = await open();
  gone.write(bytes);
  gone.destroy();
  const last = await recibo.deliver('p1', likeB0(id, 'evt-1'));
  assert.equal(last.status, 200);
  await recibo.expectCounts(id, 1, 1, 0);
  assert.ok(recibo.service.running);
});

test('a thousand connections that send stay under 64 MiB', async () => {
  const ids = Array.from({ length: 100 }, () => freshId());
  await Promise.all(ids.map((id) => recibo.accepted(id)));
  const connections = [];
  for (let i = 0; i < 1000; i += 100) connections.push(...(await Promise.all(Array.from({ length: 100 }, open))));
  const seen = {};
  await Promise.all(
    connections.map(async (connection, i) => {
      for (let round = 0; round < 3; ++round) {
        const body = callbackBody(ids[i % 100], `evt-${i}-${round}`, round === 0 ? 'processing' : 'succeeded', { note: 'n'.repeat(400) });
        connection.write(recibo.bytes('p1', body));
        const answer = await connection.response({ timeout: 20_000 });
        seen[answer.status] = (seen[answer.status] ?? 0) + 1;
        assert.ok(answer.status === 200 || isSendAgain(answer), answer.text);
      }
    }),
  );
  const { now, peak } = recibo.service.memory();
  for (const connection of connections) connection.destroy();
  assert.ok(peak < memoryLimit(64), `the peak was ${peak} KiB, now ${now} KiB, answers ${JSON.stringify(seen)}`);
  assert.ok((seen[200] ?? 0) >= 1000, `most are answered: ${JSON.stringify(seen)}`);
  for (const id of ids) {
    const operation = await recibo.get(id);
    assert.ok(['processing', 'completed'].includes(operation.state));
  }
});

test('a flood of large bodies is bounded in memory, and the service stays', async () => {
  const small = 8; // MiB
  const own = await stage.fresh({ configure: (config) => ({ ...config, limits: { in_flight: `${small}MiB` } }) });
  const id = freshId();
  await own.accepted(id);
  assert.equal((await own.callback('p1', likeB0(id, 'evt-1'))).status, 200);
  const before = own.service.memory().now;
  // 100 bodies of 1 MiB, all but the last byte: nobody has authenticated.
  const body = Buffer.alloc(limit, ' ');
  const bytes = requestBytes({ target: '/callbacks/p1', headers: [['X-Timestamp', String(nowSeconds())], ['X-Signature', `sha256=${'0'.repeat(64)}`]], body });
  const connections = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(own.service.callbacks)));
  for (const connection of connections) connection.write(bytes.subarray(0, -1));
  await sleep(1_500);
  const live = await own.live();
  assert.equal(live.status, 200);
  const grown = own.service.memory().peak - before;
  assert.ok(grown < memoryLimit(small * 2 + 16), `memory grew by ${grown} KiB for ${small} MiB in flight`);
  const statuses = {};
  await Promise.all(
    connections.map(async (connection) => {
      connection.write(bytes.subarray(-1));
      try {
        const answer = await connection.response({ timeout: 20_000 });
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        if (answer.status !== 401) assert.ok(isSendAgain(answer), answer.text);
      } catch (error) {
        if (error.code === 'ERR_ASSERTION') throw error;
        statuses.closed = (statuses.closed ?? 0) + 1; // refused while it was still sending
      }
      connection.destroy();
    }),
  );
  assert.ok((statuses[503] ?? 0) + (statuses.closed ?? 0) > 0, `over the bound is refused: ${JSON.stringify(statuses)}`);
  const other = freshId();
  await own.accepted(other);
  const after = await own.deliver('p1', likeB0(other, 'evt-1'));
  assert.deepEqual([after.status, after.json.disposition], [200, 'applied']);
  await own.finish();
});

test('a head that never ends is given up', async () => {
  const answer = await slow.next({ timeout: Math.max(1_000, 15_000 - (Date.now() - slowSince)) });
  assert.equal(answer.status, 408);
  assert.equal(answer.header('Connection')?.toLowerCase(), 'close');
  await slow.untilClosed(5_000);
  assert.ok(Date.now() - slowSince >= 5_000, 'but not at once');
});

stage.ends();
