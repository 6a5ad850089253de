// What a breaker does to those that were tried already: they are the probes, and when it closes they do not come in one moment
// (S37; R19, R21, K27).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage } from '../support/recibo.mjs';

const secret = () => `whsec_${randomBytes(32).toString('base64')}`;
const keys = { once: secret(), mended: secret() };
const once = await Receiver.start([keys.once]);
const mended = await Receiver.start([keys.mended]);
const to = (receiver, key, retry, concurrency) => ({
  url: receiver.url, secret: key, events: ['operation.accepted'], allow: ['127.0.0.0/8'], timeout: '2s', concurrency, retry,
});

const stage = await Stage.begin({
  configure: (config) => {
    config.destinations = {
      once: to(once, keys.once, { attempts: 12, first: '5s', max: '6h' }, 16),
      mended: to(mended, keys.mended, { attempts: 12, first: '10s', max: '6h' }, 100),
    };
    return config;
  },
});
const { recibo } = stage;
const destination = async (name) => (await recibo.list('/v1/destinations')).find((d) => d.name === name);

// Each arrival with how often its event has come.
const counted = (receiver) => {
  const times = new Map();
  return receiver.got.map(({ at, body }) => {
    times.set(body.id, (times.get(body.id) ?? 0) + 1);
    return { at, attempt: times.get(body.id) };
  });
};

test('S37: five hundred, all of which fail once, or for a moment', { timeout: 180_000 }, async () => {
  const seen = new Set();
  once.answer = (n) => {
    if (seen.has(n.body.id)) return 204;
    seen.add(n.body.id);
    return 503;
  };
  let failing = true;
  const failed = new Set();
  mended.answer = (n) => {
    if (!failing) return 204;
    failed.add(n.body.id);
    return { status: 503, after: 500 }; // so that many are on their way before the first is answered
  };
  for (const name of ['once', 'mended']) await recibo.api('POST', `/v1/destinations/${name}/pause`, { body: { reason: 'until all are there' } });
  await sleep(1_500); // every lane has seen it
  const ids = Array.from({ length: 500 }, () => freshId());
  for (let i = 0; i < ids.length; i += 50) await Promise.all(ids.slice(i, i + 50).map((id) => recibo.accepted(id)));
  for (const name of ['once', 'mended']) await recibo.api('POST', `/v1/destinations/${name}/resume`);
  await until('the breaker is open', async () => (await destination('mended')).breaker === 'open', { timeout: 20_000 });
  failing = false;
  assert.ok(failed.size >= 30, `${failed.size} had failed`);

  const seconds = () => counted(mended).filter((n) => n.attempt === 2);
  await until('those that failed have come again', () => seconds().length >= failed.size, { timeout: 60_000 });
  const all = seconds();
  assert.equal(all.length, failed.size);
  const first = Math.min(...all.map((n) => n.at));
  const last = Math.max(...all.map((n) => n.at));
  assert.ok(last - first >= 5_000, `spread over ${last - first} ms of an interval of 10 s`);
  const perSecond = new Map();
  for (const { at } of all) perSecond.set(Math.floor((at - first) / 1_000), (perSecond.get(Math.floor((at - first) / 1_000)) ?? 0) + 1);
  assert.ok(Math.max(...perSecond.values()) <= failed.size / 3, `not in one moment: ${[...perSecond.values()]}`);

  // Whatever comes after a silence is a probe.
  const arrivals = await until('two probes', async () => {
    const got = counted(once);
    return got.filter((n, i) => i > 0 && n.at - got[i - 1].at > 5_000).length >= 2 && got;
  }, { timeout: 60_000 });
  const probes = arrivals.filter((n, i) => i > 0 && n.at - arrivals[i - 1].at > 5_000);
  assert.ok(probes.every((n) => n.attempt === 2), `a probe is one that was tried: ${probes.map((n) => n.attempt)}`);
});

stage.ends();
