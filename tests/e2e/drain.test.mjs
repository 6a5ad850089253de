// SIGTERM: requests in hand are finished, idle connections closed, and the process ends with 0.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { likeB0 } from '../support/bodies.mjs';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { RawConnection, exchange, requestBytes } from '../support/raw.mjs';
import { Stage, isSendAgain } from '../support/recibo.mjs';

const drain = { delay: '3s', timeout: '10s' };
const stage = await Stage.begin({ configure: (config) => ({ ...config, drain }) });
const { recibo } = stage;

test('S31 a stop signal during requests', async () => {
  const { callbacks, api } = recibo.service;
  const ids = Array.from({ length: 20 }, () => freshId());
  for (const id of ids) await recibo.accepted(id);
  const halves = await Promise.all(
    ids.map(async (id) => {
      const bytes = recibo.bytes('p1', likeB0(id, 'evt-1'));
      const connection = await RawConnection.open(callbacks);
      connection.write(bytes.subarray(0, -68)); // the head and half of the body
      return { id, connection, rest: bytes.subarray(-68) };
    }),
  );
  const idle = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const connection = await RawConnection.open(callbacks);
      connection.write(requestBytes({ method: 'GET', target: '/livez' }));
      assert.equal((await connection.response({ method: 'GET' })).status, 200);
      return connection;
    }),
  );
  await sleep(200);
  const since = Date.now();
  const service = recibo.service;
  const ended = service.stop({ timeout: 12_000 });

  for (const port of [callbacks, api]) {
    // "At once" is when the signal has arrived, which the kernel decides.
    const ready = await until('/readyz says 503 at once', async () => {
      const answer = await exchange(port, { method: 'GET', target: '/readyz' });
      return answer.status === 503 ? answer : null;
    }, { timeout: 1_000 });
    assert.match(ready.text, /drain/i);
  }

  // New connections are still taken during drain.delay: the balancer may not have noticed yet.
  const late = freshId();
  const accepted = await recibo.register(late);
  assert.ok(accepted.status === 201 || isSendAgain(accepted), accepted.text);

  await sleep(Math.max(0, 2_000 - (Date.now() - since)));
  for (const { connection, rest } of halves) connection.write(rest);
  let done = 0;
  for (const { id, connection } of halves) {
    const answer = await connection.response({ timeout: 10_000 });
    recibo.exchanges.add('callbacks', 'POST', '/callbacks/p1', answer);
    assert.ok(answer.status === 200 || isSendAgain(answer), `${id}: ${answer.status} ${answer.text}`);
    assert.equal(answer.header('Connection')?.toLowerCase(), 'close', id);
    await connection.untilClosed(3_000);
    if (answer.status === 200) done += 1;
  }
  for (const connection of idle) {
    await connection.untilClosed(10_000);
    assert.equal(connection.pending.length, 0, 'an idle connection is closed without a word');
  }
  const { code, signal } = await ended;
  assert.deepEqual([code, signal], [0, null], service.tail());
  assert.ok(Date.now() - since < 10_500, 'within drain.timeout');

  await recibo.serve();
  const counts = await Promise.all(ids.map((id) => recibo.counts(id)));
  assert.equal(counts.reduce((sum, { A }) => sum + A, 0), done, 'after the restart A equals the number of 2xx');
  for (const id of ids) {
    const again = await recibo.callback('p1', likeB0(id, 'evt-1'));
    assert.equal(again.status, 200);
    await recibo.expectCounts(id, 1, 1, 0);
  }
});

test('a request that never ends does not hold up the end beyond drain.timeout', async () => {
  const own = await stage.fresh({ configure: (config) => ({ ...config, drain: { delay: '0s', timeout: '2s' } }) });
  const id = freshId();
  await own.accepted(id);
  const connection = await RawConnection.open(own.service.callbacks);
  connection.write(own.bytes('p1', likeB0(id, 'evt-1')).subarray(0, -10));
  await sleep(200);
  const { code, signal, ms } = await own.service.stop({ timeout: 10_000 });
  assert.deepEqual([code, signal], [0, null], own.service.tail());
  assert.ok(ms < 4_000, `ended after ${ms} ms`);
  await connection.untilClosed(1_000);
  await own.serve();
  await own.expectCounts(id, 0, 0, 0);
  await own.finish();
});

test('SIGTERM with nothing to do ends soon after drain.delay', async () => {
  const { code, ms } = await recibo.service.stop();
  assert.equal(code, 0);
  assert.ok(ms >= 2_900 && ms < 5_000, `${ms} ms`);
  await recibo.serve();
});

test('SIGTERM while the database is away ends with 0 too', async () => {
  const own = await stage.fresh({ configure: (config) => ({ ...config, drain: { delay: '0s', timeout: '5s' } }) });
  await stage.cluster.stop('immediate');
  try {
    await sleep(300);
    const { code, signal, ms } = await own.service.stop({ timeout: 8_000 });
    assert.deepEqual([code, signal], [0, null], own.service.tail());
    assert.ok(ms < 6_000, `${ms} ms`);
  } finally {
    await stage.cluster.start();
  }
  await own.finish();
});

stage.ends();
