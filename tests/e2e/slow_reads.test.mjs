// A database that is slow to read what notifications tell of: they are read in smaller groups until it can (R19, decision 26).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage } from '../support/recibo.mjs';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const ledger = await Receiver.start([secret]);
const stage = await Stage.begin({
  configure: (config) => {
    config.destinations = { ledger: { url: ledger.url, secret, events: ['operation.accepted'], allow: ['127.0.0.0/8'], concurrency: 16 } };
    return config;
  },
});
const { recibo } = stage;

test('a backlog is delivered, although a large claim of it takes longer than a statement may', { timeout: 180_000 }, async () => {
  assert.equal((await recibo.api('POST', '/v1/destinations/ledger/pause', { body: { reason: 'until all are there' } })).status, 200);
  await sleep(1_500); // every lane has seen it
  const ids = Array.from({ length: 400 }, () => freshId());
  for (let i = 0; i < ids.length; i += 50) await Promise.all(ids.slice(i, i + 50).map((id) => recibo.accepted(id)));
  // 80 registrations in 4 seconds.
  await recibo.sql('ALTER TABLE recibo.registrations ENABLE ROW LEVEL SECURITY');
  await recibo.sql('CREATE POLICY all_of_them ON recibo.registrations USING (true) WITH CHECK (true)');
  await recibo.sql('CREATE POLICY slowly ON recibo.registrations AS RESTRICTIVE FOR SELECT USING (pg_sleep(0.05)::text IS NOT NULL)');
  await recibo.api('POST', '/v1/destinations/ledger/resume');
  const delivered = () => new Set(ledger.got.map((n) => n.body.id)).size;
  await until('a claim took too long', () => recibo.service.lines.some(({ record }) => record?.msg.startsWith('what notifications tell of could not be read')), { timeout: 60_000 });
  await until('all are delivered', () => delivered() === ids.length, { timeout: 90_000 });
  await recibo.sql('DROP POLICY slowly ON recibo.registrations');
  await recibo.sql('DROP POLICY all_of_them ON recibo.registrations');
  await recibo.sql('ALTER TABLE recibo.registrations DISABLE ROW LEVEL SECURITY');
});

test('at the end nothing was told wrongly', () => {
  assert.deepEqual(ledger.problems, []);
  ledger.stop();
});

stage.ends();
