// Brokers of NATS that take connections and say nothing, or stop in the middle of a handshake: they hold up no other destination,
// no callback and no stop, and are not asked by everybody at once (R21, R32).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { atExit, sleep, until } from '../support/cleanup.mjs';
import { Nats } from '../support/nats.mjs';
import { freshId } from '../support/random.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

// Says `greeting`, if anything, to whoever connects, and nothing more.
async function hole(greeting = '') {
  const out = { connections: 0, sockets: new Set() };
  const server = createServer((socket) => {
    out.connections += 1;
    out.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => out.sockets.delete(socket));
    socket.on('data', () => {});
    if (greeting) socket.write(greeting);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  atExit(() => server.close());
  out.port = server.address().port;
  out.close = () => {
    for (const socket of out.sockets) socket.destroy();
    server.close();
  };
  return out;
}

const info = (more) => `INFO ${JSON.stringify({ server_id: 'X', version: '2.9.10', proto: 1, headers: true, max_payload: 1048576, ...more })}\r\n`;
const [mute, half, secure] = [await hole(), await hole(info({})), await hole(info({ tls_required: true }))];
const secret = `whsec_${randomBytes(32).toString('base64')}`;
const healthy = await Receiver.start([secret]);
const local = { events: ['operation.*'], allow: ['127.0.0.0/8'], retry: { attempts: 20, first: '1s', max: '2s' } };
const broker = (scheme, at) => ({ url: `${scheme}://127.0.0.1:${at.port}`, subject: 'recibo.{type}', timeout: '10s', ...local });

const stage = await Stage.begin({
  configure: (config) => {
    config.outbox = { lease: '5s' };
    config.destinations = {
      mute: broker('nats', mute), half: broker('nats', half), secure: broker('tls', secure),
      healthy: { url: healthy.url, secret, timeout: '2s', ...local },
    };
    return config;
  },
});
const { recibo } = stage;
const destination = async (name) => (await recibo.list('/v1/destinations')).find((d) => d.name === name);
const rows = (id, name) => recibo.list(`/v1/notifications?request_id=${id}&destination=${name}`);

test('nobody else waits for them, and they are tried one at a time', { timeout: 90_000 }, async () => {
  const ids = Array.from({ length: 40 }, () => freshId());
  const began = Date.now();
  await Promise.all(ids.map((id) => recibo.accepted(id)));
  for (const id of ids.slice(0, 5)) await recibo.deliver('p1', callbackBody(id, `evt-${id}`));
  await until('the healthy one is told', () => healthy.got.length >= 45, { timeout: 15_000 });
  assert.ok(Date.now() - began < 15_000);
  for (const name of ['mute', 'half']) {
    await until(`${name} was tried`, async () => (await rows(ids[0], name)).some((n) => n.attempts > 0 && n.reason !== null), { timeout: 30_000 });
    assert.equal((await rows(ids[0], name)).at(-1).reason, 'connect_failed', name);
    assert.equal((await rows(ids[0], name)).at(-1).status, 'pending', name);
  }
  // Forty attempts failed with a handful of connections: who waits for one shares what comes of it.
  assert.ok(mute.connections <= 8, `${mute.connections} connections`);
  await until('it is left alone', async () => (await destination('mute')).breaker !== 'closed', { timeout: 30_000 });
  const id = freshId();
  const since = Date.now();
  await recibo.accepted(id);
  await until('the healthy one is told', () => healthy.of(id).length === 1, { timeout: 10_000 });
  assert.ok(Date.now() - since < 5_000, 'whatever hangs beside it');
});

test('a handshake that stands still is given up too', { timeout: 60_000 }, async () => {
  const id = freshId();
  await recibo.accepted(id);
  await until('it was tried', async () => (await recibo.list('/v1/notifications?destination=secure')).some((n) => n.reason !== null), { timeout: 40_000 });
  const reasons = new Set((await recibo.list('/v1/notifications?destination=secure')).map((n) => n.reason).filter((r) => r !== null));
  for (const reason of reasons) assert.ok(['connect_failed', 'answer_unknown', 'tls_failed', 'returned'].includes(reason), reason);
  assert.ok(secure.connections > 0);
});

test('a broker that comes to its senses is connected to', { timeout: 60_000 }, async () => {
  half.close();
  const real = await Nats.start({ port: half.port });
  await real.stream('facts', ['recibo.>']);
  await recibo.api('POST', '/v1/destinations/half/resume');
  await until('all are there', async () => (await recibo.list('/v1/notifications?destination=half')).every((n) => n.status === 'delivered'), { timeout: 40_000 });
  await real.stop();
});

test('a stop does not wait for them', { timeout: 60_000 }, async () => {
  for (const name of ['mute', 'half', 'secure']) await recibo.api('POST', `/v1/destinations/${name}/resume`);
  await Promise.all(Array.from({ length: 10 }, () => recibo.accepted(freshId())));
  await sleep(1_000);
  const began = Date.now();
  const ended = await recibo.service.stop();
  assert.deepEqual([ended.code, ended.signal], [0, null], recibo.service.tail());
  assert.ok(Date.now() - began < 9_000, `${Date.now() - began} ms`);
  const [left] = await recibo.sql("SELECT count(*)::int AS n FROM recibo.notifications WHERE leased_by IS NOT NULL");
  assert.equal(left.n, 0, 'what was in hand is given back');
  for (const one of [mute, half, secure]) one.close();
  await recibo.serve();
});

stage.ends();
