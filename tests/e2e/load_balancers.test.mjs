// Two replicas behind HAProxy and behind nginx, with the files that docker/ ships: replicas are rolled and killed under load, and no
// sender sees more of it than an answer that asks to send again; every 2xx has its evidence.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { likeB0 } from '../support/bodies.mjs';
import { Balancer, freePort } from '../support/balancer.mjs';
import { sleep, until } from '../support/cleanup.mjs';
import { ClosingProxy } from '../support/closing_proxy.mjs';
import { Random, freshId, seed } from '../support/random.mjs';
import { exchange } from '../support/raw.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';
import { Senders } from '../support/senders.mjs';

const perSecond = 200;
// As shipped: the drain's default is what the balancers' checks have to be quick enough for.
const stage = await Stage.begin({
  configure(config) {
    config.drain = { delay: '5s', timeout: '30s' };
    config.providers.p1.unmatched = 'register';
    return config;
  },
});
const { recibo } = stage;
// It serves too, for reading, and stands behind no balancer.
const reading = recibo.service;
const random = new Random(seed, 'balancers');

const ports = [await freePort(), await freePort()];
const replicas = [];
async function begin(i) {
  const listen = { ...recibo.config.listen, callbacks: { address: '127.0.0.1', port: ports[i] } };
  const file = recibo.write({ ...recibo.config, listen }, `${recibo.configFile}.${i}`);
  replicas[i] = await recibo.serve({ env: { RECIBO_CONFIG: file } });
  recibo.service = reading;
  await until(`replica ${i} is ready`, async () => (await readyz(i)).status === 200, { timeout: 30_000 });
}
const readyz = (i) => exchange(ports[i], { method: 'GET', target: '/readyz' });
const target = '/callbacks/p1';
const through = (balancer, request, options) => exchange(balancer.port, request, options);

async function end(i) {
  const { code, signal } = await replicas[i].stop();
  assert.deepEqual([code, signal], [0, null], replicas[i].tail());
}

// Every callback that was answered is on record under the ID that was answered, was applied once, and its copies changed nothing.
async function expectEvidence(senders) {
  assert.ok(senders.done.length > 0);
  assert.equal(senders.done.length, senders.sent, 'every callback was answered for good in the end');
  const rows = await recibo.sql(
    `SELECT o.request_id, o.state, o.version, array_agg(d.id::text) FILTER (WHERE d.disposition = 'applied') AS applied,
            count(*) FILTER (WHERE d.disposition NOT IN ('applied', 'duplicate'))::int AS others,
            (SELECT count(*) FROM recibo.transitions t WHERE t.operation = o.id AND t.actor_kind = 'provider')::int AS a
     FROM recibo.operations o JOIN recibo.deliveries d ON d.operation = o.id WHERE o.request_id = ANY($1) GROUP BY o.id`,
    [senders.done.map(({ id }) => id)],
  );
  const found = new Map(rows.map((row) => [row.request_id, row]));
  for (const { id, answers } of senders.done) {
    const row = found.get(id);
    assert.ok(row, `${id} was answered ${answers[0].status} and is not on record`);
    assert.deepEqual([row.state, Number(row.version), row.a, row.others], ['completed', 1, 1, 0], id);
    for (const answer of answers) assert.deepEqual(row.applied, [answer.json.delivery_id], id);
  }
}

// One replica after the other is stopped as a supervisor does it, and comes back.
async function roll(balancer) {
  for (const i of [0, 1]) {
    const since = Date.now();
    const ended = replicas[i].stop();
    await until('/readyz says 503 before anything else changes', async () => (await readyz(i)).status === 503, { timeout: 2_000 });
    const direct = await exchange(ports[i], recibo.request('p1', likeB0(freshId('late'), 'evt-1'))).catch((error) => error);
    assert.equal(direct.status, 200, `it still serves, as the balancer may not have noticed yet: ${direct.message}\n${replicas[i].tail()}`);
    const { code, signal } = await ended;
    assert.deepEqual([code, signal], [0, null], replicas[i].tail());
    assert.ok(Date.now() - since < 30_000, 'within drain.timeout');
    await sleep(500);
    await begin(i);
    await sleep(3_000); // until the balancer has noticed that too
  }
  await until(`${balancer.kind} sends to both again`, async () => {
    const before = await Promise.all([0, 1].map(taken));
    await sleep(500);
    const after = await Promise.all([0, 1].map(taken));
    return after.every((count, i) => count > before[i]);
  }, { timeout: 20_000 });
}

// Callbacks that a replica has recorded since it started.
async function taken(i) {
  const response = await exchange(replicas[i].api, { method: 'GET', target: '/metrics' });
  return [...response.text.matchAll(/^recibo_callbacks_total\{[^}]*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
}

for (const kind of ['haproxy', 'nginx']) {
  let balancer;

  test(`${kind}: what it lets through, and what it says itself`, async () => {
    await Promise.all([begin(0), begin(1)]);
    balancer = await Balancer.start(kind, ports);
    const id = freshId();
    await until(`${kind} knows a replica`, async () => (await through(balancer, { method: 'GET', target })).status === 405);
    const first = await through(balancer, recibo.request('p1', callbackBody(id, 'evt')));
    assert.deepEqual([first.status, first.json.disposition], [200, 'applied'], first.text);
    const again = await through(balancer, recibo.request('p1', callbackBody(id, 'evt')));
    assert.deepEqual([again.status, again.replayed, again.text], [200, true, first.text]);

    // The request target and the body are signed by some, so they pass as they are.
    const odd = await through(balancer, { ...recibo.request('p1', callbackBody(freshId(), 'evt')), target: `${target}?a=%2F&b=//..//&c` });
    assert.equal(odd.status, 200, odd.text);
    const forged = await through(balancer, recibo.request('p1', callbackBody(freshId(), 'evt'), { secret: 'not-the-secret' }));
    assert.deepEqual([forged.status, forged.json.code], [401, 'unauthenticated']);

    for (const path of ['/', '/readyz', '/livez', '/metrics', '/v1/operations', '/callbacks']) {
      const answer = await through(balancer, { method: 'GET', target: path });
      assert.deepEqual([answer.status, answer.header('Content-Type'), answer.json.code], [404, 'application/problem+json', 'not_found'], path);
    }
    const longest = await through(balancer, { target, body: Buffer.alloc(1024 * 1024, 32) }, { timeout: 20_000 });
    assert.equal(longest.status, 401, 'a body of exactly limits.body reaches the service');
    const long = await through(balancer, { target, body: Buffer.alloc(1024 * 1024 + 1, 32) }, { timeout: 20_000 });
    recibo.exchanges.add('callbacks', 'POST', target, long);
    assert.deepEqual([long.status, long.header('Content-Type'), long.json.code], [413, 'application/problem+json', 'body_too_large']);
    for (const length of [8_200, 12_000]) {
      const wide = await through(balancer, { target, headers: [['X-Much', 'x'.repeat(4_000)], ['X-More', 'x'.repeat(length - 4_000)]] });
      assert.deepEqual([wide.status, wide.json.code], [431, 'header_too_large'], `${length}: ${wide.text}`);
    }
  });

  test(`${kind}: the recorded peer is the sender, by X-Forwarded-For from a trusted proxy alone`, async () => {
    // Each has 127.0.0.1, where it calls from, and the sender has an address of its own.
    const file = recibo.write({ ...recibo.config, listen: { ...recibo.config.listen, trusted_proxies: ['127.0.0.1/32'] } }, `${recibo.configFile}.trusting`);
    const trusting = await recibo.serve({ env: { RECIBO_CONFIG: file } });
    recibo.service = reading;
    const fronts = [await Balancer.start(kind, [trusting.callbacks, trusting.callbacks]), await Balancer.start(kind, [reading.callbacks, reading.callbacks])];
    const sender = '127.0.0.77';
    const peerOf = async (port, said) => {
      const id = freshId();
      const request = recibo.request('p1', callbackBody(id, 'evt'));
      const headers = said ? [...request.headers, ['X-Forwarded-For', said], ['Forwarded', `for=${said}`]] : request.headers;
      const answer = await exchange(port, { ...request, headers }, { from: sender });
      assert.equal(answer.status, 200, answer.text);
      return (await recibo.deliveries(id))[0].peer;
    };
    try {
      for (const front of fronts) await until(`${kind} knows it`, async () => (await exchange(front.port, { method: 'GET', target })).status === 405);
      assert.equal(await peerOf(fronts[0].port), sender);
      assert.equal(await peerOf(fronts[0].port, '203.0.113.9'), sender, 'what the sender says of himself goes no further');
      assert.equal(await peerOf(trusting.callbacks, '203.0.113.9'), sender, 'who is no trusted proxy speaks for nobody');
      assert.equal(await peerOf(fronts[1].port), '127.0.0.1', 'without trusted_proxies nobody is believed');
    } finally {
      for (const front of fronts) await front.stop();
      await trusting.stop();
    }
  });

  test(`${kind}: replicas are rolled under load`, { timeout: 120_000 }, async (t) => {
    const senders = new Senders({ recibo, port: balancer.port, provider: 'p1', perSecond }).start();
    t.after(() => senders.stop());
    await sleep(1_000);
    await roll(balancer);
    await senders.stop();
    assert.deepEqual(senders.errors.slice(0, 10), [], balancer.log.slice(-2_000));
    assert.equal(senders.refused, 0, 'nobody had to send again');
    await expectEvidence(senders);
    t.diagnostic(`${senders.sent} callbacks, ${senders.refused} asked to come again`);
  });

  test(`${kind}: a replica is killed under load`, { timeout: 60_000 }, async (t) => {
    const senders = new Senders({ recibo, port: balancer.port, provider: 'p1', perSecond }).start();
    t.after(() => senders.stop());
    for (const i of random.shuffle([0, 1])) {
      await sleep(1_000 + random.int(500));
      await replicas[i].kill();
      await sleep(1_000);
      await begin(i);
      await sleep(3_000);
    }
    await senders.stop();
    assert.deepEqual(senders.errors.slice(0, 10), [], balancer.log.slice(-2_000));
    await expectEvidence(senders);
    t.diagnostic(`${senders.sent} callbacks, ${senders.refused} asked to come again`);
  });

  test(`${kind}: connections that a replica closes as a request arrives`, { timeout: 60_000 }, async (t) => {
    const closing = await Promise.all(ports.map((port) => ClosingProxy.start(port)));
    const own = await Balancer.start(kind, closing.map(({ port }) => port));
    await sleep(1_500); // until it has seen that they are ready
    const senders = new Senders({ recibo, port: own.port, provider: 'p1', perSecond: 100 }).start();
    t.after(() => senders.stop());
    await sleep(5_000);
    await senders.stop();
    const cut = closing.reduce((sum, one) => sum + one.cut, 0);
    assert.deepEqual(senders.errors.slice(0, 10), [], own.log.slice(-2_000));
    await expectEvidence(senders);
    assert.ok(cut > 10, `${cut} connections were closed so`);
    t.diagnostic(`${senders.sent} callbacks, ${cut} connections closed, ${senders.refused} asked to come again`);
    await own.stop();
    for (const one of closing) one.stop();
  });

  test(`${kind}: both replicas are down`, { timeout: 60_000 }, async () => {
    await Promise.all([end(0), end(1)]);
    const id = freshId();
    for (const pause of [0, 3_000]) {
      await sleep(pause);
      const answer = await through(balancer, recibo.request('p1', callbackBody(id, 'evt')));
      recibo.exchanges.add('callbacks', 'POST', target, answer);
      assert.ok(isSendAgain(answer), `${answer.status} ${answer.text}`);
      assert.deepEqual([answer.status, answer.header('Content-Type'), answer.json.code, answer.json.retryable], [503, 'application/problem+json', 'unavailable', true]);
    }
    await Promise.all([begin(0), begin(1)]);
    const answer = await until('it goes on by itself', async () => {
      const tried = await through(balancer, recibo.request('p1', callbackBody(id, 'evt')));
      return tried.status === 200 ? tried : null;
    }, { timeout: 10_000 });
    assert.equal(answer.json.disposition, 'applied');
    await Promise.all([0, 1].map((i) => replicas[i].kill()));
    await balancer.stop();
  });
}

stage.ends();
