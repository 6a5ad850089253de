// The database away, slow, silent or cut off in COMMIT; the service killed: transient for the sender, healed without help,
// one effect.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { likeB0 } from '../support/bodies.mjs';
import { sleep, until } from '../support/cleanup.mjs';
import { socketFile } from '../support/cluster.mjs';
import { FaultProxy } from '../support/fault_proxy.mjs';
import { Random, freshId, seed } from '../support/random.mjs';
import { RawConnection } from '../support/raw.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';

const stage = await Stage.begin();
const { recibo, cluster } = stage;
const callbacksOnly = /insert\s+into\s+(recibo\.)?deliveries/i;

async function timed(action) {
  const since = Date.now();
  const answer = await action();
  return { answer, ms: Date.now() - since };
}

const isReady = async (of) => (await of.ready()).status === 200;

// The server is stopped by `how` while `action` runs, and is back afterwards whatever happened.
async function withoutServer(how, action) {
  if (how === 'kill') await cluster.kill();
  else await cluster.stop(how);
  try {
    await action();
  } finally {
    await cluster.start();
  }
}

// What a test left behind does not fail the next one.
beforeEach(() => until('/readyz says 200', () => isReady(recibo), { timeout: 15_000 }));

for (const how of ['immediate', 'kill']) {
  test(`S09 the database is down (${how}), and comes back`, async () => {
    const id = freshId();
    const body = likeB0(id, freshId('evt'));
    await recibo.accepted(id);
    await withoutServer(how, async () => {
      const first = await timed(() => recibo.callback('p1', body));
      assert.ok(isSendAgain(first.answer), `${first.answer.status} ${first.answer.text}`);
      assert.equal(first.answer.status, 503);
      assert.ok(first.ms < 5_000, `answered after ${first.ms} ms`);
      assert.equal(first.answer.json.retryable, true);
      const next = await timed(() => recibo.callback('p1', body));
      assert.equal(next.answer.status, 503);
      assert.ok(next.ms < 1_000, `while it is known to be away, at once: ${next.ms} ms`);
      const unready = await until('/readyz says 503', async () => {
        const answer = await recibo.ready('callbacks');
        return answer.status === 503 ? answer : null;
      }, { timeout: 5_000 });
      assert.ok(unready.json.reasons?.length > 0, `with reasons: ${unready.text}`);
      assert.equal((await recibo.live('callbacks')).status, 200);
      assert.equal((await recibo.live('api')).status, 200);
      const read = await timed(() => recibo.api('GET', `/v1/operations/${id}`));
      assert.equal(read.answer.status, 503);
      assert.ok(read.ms < 5_000, `a read answered after ${read.ms} ms`);
      const accept = await timed(() => recibo.register(freshId()));
      assert.equal(accept.answer.status, 503);
      assert.ok(accept.ms < 5_000, `a registration answered after ${accept.ms} ms`);
    });
    const again = await recibo.deliver('p1', body);
    assert.deepEqual([again.status, again.replayed, again.json.disposition], [200, false, 'applied'], 'without a restart');
    await recibo.expectCounts(id, 1, 1, 0);
    await until('/readyz says 200', () => isReady(recibo));
    assert.equal((await recibo.ready('callbacks')).status, 200);
  });
}

test('sessions that were terminated are replaced', async () => {
  const [{ count: sessions }] = await recibo.sql("SELECT count(pg_terminate_backend(pid))::int AS count FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = 'recibo_service'");
  assert.ok(sessions > 0);
  let refused = 0;
  for (let i = 0; i < 20; ++i) {
    const id = freshId();
    await until('accepted', async () => {
      const answer = await recibo.register(id);
      if (answer.status === 503) ++refused;
      return answer.status < 300;
    });
    const body = likeB0(id, 'evt-1');
    let answer = await recibo.callback('p1', body);
    if (answer.status !== 200) {
      assert.ok(isSendAgain(answer));
      ++refused;
      answer = await recibo.deliver('p1', body);
    }
    assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
    await recibo.expectCounts(id, 1, 1, 0);
  }
  assert.ok(refused <= sessions, `${refused} refusals for ${sessions} sessions`);
});

test('a locked row delays neither the answer beyond its limit nor another operation', async () => {
  const [locked, free] = [freshId(), freshId()];
  for (const id of [locked, free]) await recibo.accepted(id);
  const session = await cluster.client(recibo.database);
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM recibo.operations WHERE request_id = $1 FOR UPDATE', [locked]);
  const waiting = timed(() => recibo.callback('p1', likeB0(locked, 'evt-1')));
  await sleep(300);
  const other = await timed(() => recibo.callback('p1', likeB0(free, 'evt-1')));
  assert.deepEqual([other.answer.status, other.answer.json.disposition], [200, 'applied']);
  assert.ok(other.ms < 1_000, `${other.ms} ms`);
  await sleep(1_500);
  await session.query('COMMIT');
  await session.end();
  const { answer, ms } = await waiting;
  assert.ok(answer.status === 200 || isSendAgain(answer), answer.text);
  assert.ok(ms < 10_500, `${ms} ms`);
  const last = await recibo.deliver('p1', likeB0(locked, 'evt-1'));
  assert.equal(last.status, 200);
  await recibo.expectCounts(locked, 1, 1, 0);
  await recibo.expectCounts(free, 1, 1, 0);
});

test('killed right after the answer, twenty times: everything answered is on record and in its state', async () => {
  const done = [];
  for (let round = 0; round < 20; ++round) {
    const id = freshId();
    await recibo.accepted(id);
    const body = likeB0(id, 'evt-1');
    const connection = await RawConnection.open(recibo.service.callbacks);
    connection.write(recibo.bytes('p1', body));
    // The status line has arrived: the service dies now.
    await until('a status line', () => connection.pending.includes('\r\n'), { interval: 0 });
    recibo.service.signal('SIGKILL');
    const line = connection.pending.toString('latin1').split('\r\n')[0];
    connection.destroy();
    assert.match(line, /^HTTP\/1\.1 200 /);
    await recibo.service.exited;
    await recibo.serve();
    done.push({ id, body });
  }
  for (const { id } of done) {
    await recibo.expectCounts(id, 1, 1, 0);
    assert.equal((await recibo.get(id)).state, 'completed');
    assert.deepEqual((await recibo.deliveries(id)).map((d) => d.disposition), ['applied']);
  }
  const { id, body } = done.at(-1);
  const again = await recibo.callback('p1', body);
  assert.deepEqual([again.status, again.replayed, again.json.request_id], [200, true, id]);
});

test('killed at any moment under load: what was answered 2xx is there, once', async () => {
  const random = new Random(seed, 'kills');
  const answered = [];
  for (let round = 0; round < 4; ++round) {
    const ids = Array.from({ length: 30 }, () => freshId());
    for (const id of ids) await recibo.accepted(id);
    const sends = ids.flatMap((id) => [likeB0(id, 'evt-1'), likeB0(id, 'evt-1')]).map(async (body) => {
      const answer = await recibo.callback('p1', body).catch(() => null);
      if (answer?.status === 200) answered.push({ id: JSON.parse(body).request_id, text: answer.text });
      return answer;
    });
    await sleep(random.int(40));
    recibo.service.signal('SIGKILL');
    await Promise.all(sends);
    await recibo.service.exited;
    await recibo.serve();
    const resent = await Promise.all(ids.map((id) => recibo.deliver('p1', likeB0(id, 'evt-1'))));
    for (const [i, id] of ids.entries()) {
      assert.equal(resent[i].status, 200);
      for (const one of answered.filter((a) => a.id === id)) assert.equal(resent[i].text, one.text, 'the resend gets what was answered');
      await recibo.expectCounts(id, 1, 1, 0);
    }
  }
});

test('the server is killed under load: what was answered 2xx is there, once', async () => {
  const ids = Array.from({ length: 40 }, () => freshId());
  for (const id of ids) await recibo.accepted(id);
  const random = new Random(seed, 'server kills');
  const sends = ids.map(async (id) => {
    await sleep(random.int(60));
    return recibo.callback('p1', likeB0(id, 'evt-1'));
  });
  await sleep(30);
  let answers;
  await withoutServer('kill', async () => {
    answers = await Promise.all(sends);
    for (const answer of answers) assert.ok(answer.status === 200 || isSendAgain(answer), answer.text);
  });
  for (const [i, id] of ids.entries()) {
    const again = await recibo.deliver('p1', likeB0(id, 'evt-1'));
    assert.equal(again.status, 200);
    if (answers[i].status === 200) assert.deepEqual([again.replayed, again.text], [true, answers[i].text]);
    await recibo.expectCounts(id, 1, 1, 0);
  }
});

// From here on a proxy stands between the service and the server.
let proxy;
let behind;
after(() => proxy?.stop());

test('a proxy is put between the service and the server', async () => {
  proxy = await FaultProxy.start({ upstream: { path: socketFile(cluster.socketFolder) } });
  behind = await stage.fresh({ databaseUrl: (database) => cluster.url(database, { user: 'recibo_service', folder: proxy.folder }) });
  await until('the service connects through it', () => proxy.sessions > 0);
});

test('cut off before COMMIT was forwarded: send again, and nothing was done', async () => {
  const id = freshId();
  const body = likeB0(id, 'evt-1');
  await behind.accepted(id);
  proxy.cutBeforeCommit({ match: callbacksOnly });
  const { answer, ms } = await timed(() => behind.callback('p1', body));
  assert.deepEqual(proxy.cuts.map((c) => c.kind), ['before'], 'the proxy saw the COMMIT of a callback');
  assert.ok(isSendAgain(answer) || answer.status === 200, answer.text);
  assert.ok(ms < 10_000);
  await proxy.heal();
  const again = await behind.deliver('p1', body);
  if (answer.status === 200) assert.deepEqual([again.replayed, again.text], [true, answer.text]);
  else assert.deepEqual([again.status, again.replayed, again.json.disposition], [200, false, 'applied'], 'the resend is the first one');
  await behind.expectCounts(id, 1, 1, 0);
});

test('cut off after COMMIT, before its answer passed: 503 or 2xx, and the resend finds the truth', async () => {
  for (let round = 0; round < 5; ++round) {
    const id = freshId();
    const body = likeB0(id, 'evt-1');
    await behind.accepted(id);
    const cutsBefore = proxy.cuts.length;
    proxy.cutAfterCommit({ match: callbacksOnly });
    const { answer, ms } = await timed(() => behind.callback('p1', body));
    assert.deepEqual(proxy.cuts.slice(cutsBefore).map((c) => c.kind), ['after']);
    assert.ok(isSendAgain(answer) || answer.status === 200, answer.text);
    assert.ok(ms < 10_000, `${ms} ms`);
    await behind.expectCounts(id, 1, 1, 0);
    await proxy.heal();
    const again = await behind.deliver('p1', body);
    assert.deepEqual([again.status, again.replayed, again.json.disposition, again.json.state], [200, true, 'applied', 'completed']);
    if (answer.status === 200) assert.equal(again.text, answer.text);
    await behind.expectCounts(id, 1, 1, 0);
  }
});

test('a registration cut off after COMMIT is accepted once', async () => {
  const id = freshId();
  proxy.cutAfterCommit({ match: /insert\s+into\s+(recibo\.)?operations/i });
  const answer = await behind.register(id);
  assert.ok(answer.status === 201 || isSendAgain(answer), answer.text);
  await proxy.heal();
  const again = await until('an answer', async () => {
    const one = await behind.register(id);
    return isSendAgain(one) ? null : one;
  });
  assert.deepEqual([again.status, again.replayed, again.json.request_id], [200, true, id]);
  assert.deepEqual(await behind.sql('SELECT count(*)::int AS count FROM recibo.operations WHERE request_id = $1', [id]), [{ count: 1 }]);
});

test('a silent route to the database: 503 within 5 s, and healing without help', async () => {
  const ids = Array.from({ length: 10 }, () => freshId());
  for (const id of ids) await behind.accepted(id);
  proxy.blackHole();
  const answers = await Promise.all(ids.map((id) => timed(() => behind.callback('p1', likeB0(id, 'evt-1')))));
  for (const { answer, ms } of answers) {
    assert.equal(answer.status, 503, answer.text);
    assert.ok(isSendAgain(answer));
    assert.ok(ms < 5_000, `answered after ${ms} ms`);
  }
  assert.equal((await behind.live()).status, 200);
  await until('/readyz says 503', async () => !(await isReady(behind)), { timeout: 12_000 });
  await proxy.heal();
  for (const id of ids) {
    const again = await behind.deliver('p1', likeB0(id, 'evt-1'));
    assert.deepEqual([again.status, again.json.disposition], [200, 'applied']);
    await behind.expectCounts(id, 1, 1, 0);
  }
  await until('/readyz says 200', () => isReady(behind), { timeout: 15_000 });
});

test('refused connections: 503 at once, and healing without help', async () => {
  const id = freshId();
  await behind.accepted(id);
  await proxy.refuse();
  const first = await timed(() => behind.callback('p1', likeB0(id, 'evt-1')));
  assert.ok(isSendAgain(first.answer), first.answer.text);
  assert.ok(first.ms < 5_000, `${first.ms} ms`);
  await sleep(300);
  const known = await timed(() => behind.callback('p1', likeB0(id, 'evt-1')));
  assert.ok(isSendAgain(known.answer));
  assert.ok(known.ms < 1_000, `${known.ms} ms`);
  await proxy.heal();
  const again = await behind.deliver('p1', likeB0(id, 'evt-1'));
  assert.deepEqual([again.status, again.replayed, again.json.disposition], [200, false, 'applied']);
  await behind.expectCounts(id, 1, 1, 0);
});

test('a slow route is slow, and nothing else', async () => {
  proxy.delayMs = 150;
  const id = freshId();
  await behind.accepted(id);
  const answer = await behind.callback('p1', likeB0(id, 'evt-1'));
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
  await proxy.heal();
  await behind.expectCounts(id, 1, 1, 0);
});

test('sessions cut at random under load: one effect each', async () => {
  const random = new Random(seed, 'cuts');
  const ids = Array.from({ length: 60 }, () => freshId());
  for (const id of ids) await behind.accepted(id);
  // Three seconds of it, with air in between: a route that never carries a COMMIT would prove nothing.
  const cutter = (async () => {
    for (const end = Date.now() + 3_000; Date.now() < end; await sleep(40 + random.int(200))) {
      const kind = random.int(3);
      if (kind === 0) proxy.cutAll();
      else if (kind === 1) proxy.cutBeforeCommit();
      else proxy.cutAfterCommit();
    }
    await proxy.heal();
  })();
  const results = await Promise.all(
    ids.map(async (id) => {
      await sleep(random.int(2_500));
      return behind.deliver('p1', callbackBody(id, 'evt-1'), { patience: 30_000 });
    }),
  );
  await cutter;
  assert.ok(proxy.cuts.length > 0);
  for (const [i, id] of ids.entries()) {
    assert.equal(results[i].status, 200, results[i].text);
    const again = await behind.deliver('p1', callbackBody(id, 'evt-1'));
    assert.deepEqual([again.replayed, again.text], [true, results[i].text]);
    await behind.expectCounts(id, 1, 1, 0);
  }
});

test('behind the proxy: the evidence verifies, and the service ends with 0', async () => {
  await until('/readyz says 200', () => isReady(behind), { timeout: 15_000 });
  await behind.finish();
  assert.ok(proxy.accepted > 0);
  await proxy.stop();
});

stage.ends();
