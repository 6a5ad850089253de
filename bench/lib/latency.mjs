// latency: how long a callback waits for its durable answer at half of the peak rate, open loop, against the same writes in one
// pgbench transaction of one client that nobody disturbs.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { median, short, spread, table } from './meter.mjs';
import { Pgbench, Recibo } from './place.mjs';

export const summary = 'p50 and p99 of a durable answer at half of the peak rate, against one pgbench client';

const sizes = {
  full: { rounds: 5, operations: 12_000, transactions: 3_000 },
  quick: { rounds: 3, operations: 3_000, transactions: 600 },
  smoke: { rounds: 1, operations: 120, transactions: 60 },
};
const users = 128;

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

// Latencies in microseconds of single transactions, from pgbench's own log: client, transaction, latency, …
async function singleTransactions(place, transactions, runName, first) {
  const prefix = join(place.folder, `${runName}-${first}`);
  await place.bench('callback.pgbench', { users: 1, milliseconds: 0, runName, first, more: ['-t', transactions, '-l', `--log-prefix=${prefix}`] });
  const file = readdirSync(place.folder).find((name) => name.startsWith(`${runName}-${first}.`));
  return readFileSync(join(place.folder, file), 'utf8').trimEnd().split('\n').map((line) => Number(line.split(' ')[2])).sort((a, b) => a - b);
}

export async function bench({ size, say }) {
  const { rounds, operations, transactions } = sizes[size];
  const recibo = new Recibo('recibo');
  const single = new Pgbench('pgbench_single', 'callback.pgbench');
  const found = [];
  let lost = 0;
  let doubled = 0;
  const held = async ({ book }) => {
    const judged = await recibo.judge(book);
    lost += judged.lost;
    doubled += judged.doubled;
  };
  try {
    await recibo.open();
    await single.open();
    // The peak: closed loop, as many senders as later.
    const each = Math.ceil(operations / users);
    const ahead = await recibo.send({ phase: 'registers', users, operations: each, time: 0 });
    const peak = await recibo.send({ phase: 'callbacks', run: ahead.run, users, operations: each, time: 0 });
    await held(ahead);
    await held(peak);
    const half = Math.max(1, Math.floor(peak.callbacks / peak.seconds / 2));
    say(`  peak ${half * 2}/s, offered ${half}/s`);
    await single.cluster.query(single.database, `SELECT register('one-0-' || i, 'bench', 'charge', 19.99, 'EUR') FROM generate_series(0, ${rounds * transactions}) i`);
    for (let round = 0; round < rounds; ++round) {
      const registered = await recibo.send({ phase: 'registers', users: 1, operations, time: 0 });
      const open = await recibo.send({ phase: 'callbacks', run: registered.run, users, operations, rate: half, time: 0 });
      await held(registered);
      await held(open);
      const alone = await singleTransactions(single, transactions, 'one', round * transactions);
      const one = { p50: open.p50_us, p99: open.p99_us, alone50: quantile(alone, 0.5), alone99: quantile(alone, 0.99) };
      found.push(one);
      say(`  round ${round + 1}: p50 ${one.p50} us, p99 ${one.p99} us; one client p50 ${one.alone50} us, p99 ${one.alone99} us`);
    }
  } finally {
    await recibo.close();
    await single.close();
  }
  const ratios = { commit_p50: spread(found.map((f) => f.p50 / f.alone50)), commit_p99: spread(found.map((f) => f.p99 / f.alone99)) };
  const us = (field) => short(median(found.map((f) => f[field])));
  say(
    table([
      ['', 'recibo, us', 'one client, us', 'ratio min', 'median', 'max', 'wanted'],
      ['p50', us('p50'), us('alone50'), ratios.commit_p50.min, ratios.commit_p50.median, ratios.commit_p50.max, '<= 2.5'],
      ['p99', us('p99'), us('alone99'), ratios.commit_p99.min, ratios.commit_p99.median, ratios.commit_p99.max, '<= 5'],
    ]),
  );
  return { result: { ratios, p50_us: us('p50'), p99_us: us('p99'), rounds, lost, doubled }, sound: lost === 0 && doubled === 0 };
}
