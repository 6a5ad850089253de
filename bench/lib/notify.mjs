// notify: how fast a backlog drains to a healthy destination, against the poller that a team writes; and what a destination that
// never answers costs callbacks and other destinations.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { sleep } from '../../tests/support/cleanup.mjs';
import { clusterPort } from '../../tests/support/cluster.mjs';
import { sha256Hex } from '../../tests/support/sign.mjs';
import { clusterSeconds, median, processSeconds, short, spread, table } from './meter.mjs';
import { Pgbench, Recibo } from './place.mjs';
import { folder, output } from './programs.mjs';
import { Sink } from './sink.mjs';

export const summary = 'drain of a backlog against a plain poller; callbacks and others beside a destination that never answers';

const sizes = {
  full: { rounds: 3, events: 100_000, slices: 12, seconds: 4, besides: 20_000 },
  quick: { rounds: 1, events: 20_000, slices: 3, seconds: 3, besides: 4_000 },
  smoke: { rounds: 1, events: 200, slices: 1, seconds: 1, besides: 100 },
};
const users = 64;
const secret = `whsec_${randomBytes(32).toString('base64')}`;
const operatorToken = `bench_${randomBytes(24).toString('hex')}`;
const quantile = (sorted, q) => (sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]);

class Notifying extends Recibo {
  constructor(name, sinks) {
    super(name);
    this.sinks = sinks;
  }

  configuration() {
    const made = super.configuration();
    const to = (sink, more) => ({ url: sink.url, secret, allow: ['127.0.0.0/8'], events: ['operation.*'], ...more });
    made.destinations = { ledger: to(this.sinks.ledger), tarpit: to(this.sinks.tarpit, { timeout: '5s', concurrency: 64 }) };
    made.api.tokens.push({ name: 'bench-operator', role: 'operator', sha256: sha256Hex(operatorToken) });
    return made;
  }

  async ask(what, name, body) {
    const headers = { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' };
    const answer = await fetch(`http://127.0.0.1:${this.api}/v1/destinations/${name}/${what}`, { method: 'POST', headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${what} ${name}: ${answer.status} ${await answer.text()}`);
  }

  async pause(name) {
    await this.ask('pause', name, { reason: 'bench' });
    await sleep(1_500); // a lane looks once a second
  }

  resume(name) {
    return this.ask('resume', name);
  }

  async pending(name) {
    const [row] = await this.cluster.query(this.database, "SELECT count(*)::int AS n FROM recibo.notifications WHERE destination = $1 AND status = 'pending'", [name]);
    return row.n;
  }

  // Facts are recorded by the service itself, two events of an operation; none leaves meanwhile.
  async fill(events) {
    await this.pause('ledger');
    const each = Math.max(1, Math.round(events / 2 / users));
    const registered = await this.send({ phase: 'registers', users, operations: each, time: 0 });
    await this.send({ phase: 'callbacks', run: registered.run, users, operations: each, time: 0 });
    await this.cluster.query(this.database, 'VACUUM ANALYZE recibo.notifications');
    await this.cluster.query(this.database, 'CHECKPOINT');
    return this.pending('ledger');
  }
}

// From the resumption to the last event; lost and doubled by the event IDs of the database.
async function drain(place, sink, events) {
  const count = await place.fill(events);
  const ids = new Set((await place.cluster.query(place.database, "SELECT id::text FROM recibo.notifications WHERE destination = 'ledger' AND status = 'pending'")).map((row) => row.id));
  await sink.take();
  const before = { front: processSeconds(place.pid), db: clusterSeconds(place.cluster) };
  const began = Date.now();
  await place.resume('ledger');
  for (let still = 0, seen = 0; ;) {
    const { distinct } = await sink.count();
    if (distinct >= count) break;
    still = distinct === seen ? still + 1 : 0;
    seen = distinct;
    if (still > 1_200) break; // a minute without any: what is missing is lost
    await sleep(50);
  }
  const { last } = await sink.count();
  for (const end = Date.now() + 20_000; Date.now() < end && (await place.pending('ledger')) > 0;) await sleep(50);
  const after = { front: processSeconds(place.pid), db: clusterSeconds(place.cluster) };
  const got = await sink.take();
  let lost = 0;
  let doubled = 0;
  for (const id of ids) {
    const times = got.get(id) ?? 0;
    if (times === 0) lost += 1;
    if (times > 1) doubled += 1;
  }
  const seconds = (last - began) / 1_000;
  return { count, seconds, rate: count / seconds, lost, doubled, front_cpu_us: ((after.front - before.front) * 1e6) / count, db_cpu_us: ((after.db - before.db) * 1e6) / count };
}

// The same number of rows of the reference schema, by the plain poller.
async function drainPlainly(place, sink, events) {
  await place.cluster.query(place.database, `TRUNCATE notifications`);
  await place.cluster.query(
    place.database,
    `WITH made AS (INSERT INTO operations (request_id, provider, action, amount, currency, chain)
       SELECT 'plain-${randomBytes(4).toString('hex')}-' || i, 'bench', 'charge', 19.99, 'EUR', '\\x00' FROM generate_series(1, ${Math.ceil(events / 2)}) i RETURNING id)
     INSERT INTO notifications (operation, type, destination) SELECT id, t, 'ledger' FROM made, unnest(ARRAY['operation.accepted', 'operation.completed']) t`,
  );
  await place.cluster.query(place.database, 'VACUUM ANALYZE notifications');
  await place.cluster.query(place.database, 'CHECKPOINT');
  await sink.take();
  const env = { ...process.env, NODE_ENV: 'production', URL: sink.url, SECRET: secret, PGHOST: place.cluster.socketFolder, PGPORT: String(clusterPort), PGUSER: 'recibo', PGDATABASE: place.database };
  const { delivered, milliseconds } = JSON.parse(await output(process.execPath, [join(folder, 'competitors', 'outbox.mjs')], { env }));
  const got = await sink.take();
  return { rate: delivered / (milliseconds / 1_000), lost: delivered - got.size };
}

// Callbacks at a third of the peak, open loop, with the destination that never answers at work or paused. Once more paused shows
// how much two equal slices differ: a ratio within that says nothing. In turns, as tables grow and what they are vacuumed by comes
// later.
async function callbacksBesideTarpit(place, sink, { slices, seconds }, say) {
  const ahead = await place.send({ phase: 'registers', users, operations: 20, time: 0 });
  const peak = await place.send({ phase: 'callbacks', run: ahead.run, users, operations: 20, time: 0 });
  const rate = Math.max(20, Math.floor(peak.callbacks / peak.seconds / 3));
  const operations = Math.max(20, Math.round(rate * seconds));
  say(`  tarpit: callbacks at ${rate}/s`);
  const found = { without: [], beside: [], again: [] };
  const books = [ahead, peak];
  const kinds = Object.keys(found);
  for (let slice = 0; slice < slices; ++slice) {
    for (let turn = 0; turn < kinds.length; ++turn) {
      const kind = kinds[(slice + turn) % kinds.length];
      if (kind === 'beside') await place.resume('tarpit');
      else await place.pause('tarpit');
      const registered = await place.send({ phase: 'registers', users, operations, rate: 1_000_000, time: 0 }); // as of an open loop: one sender's
      await sleep(1_000);
      await sink.lags();
      const sent = await place.send({ phase: 'callbacks', run: registered.run, users, operations, rate, time: 0 });
      await sleep(500);
      const lags = await sink.lags();
      books.push(registered, sent);
      found[kind].push({ p99: sent.p99_us, p50: sent.p50_us, other99: quantile(lags, 0.99), other50: quantile(lags, 0.5), others: lags.length });
    }
    const told = (kind) => `${found[kind].at(-1).p50}/${found[kind].at(-1).p99} us ${kind}`;
    const lag = (kind) => `${found[kind].at(-1).other50}/${found[kind].at(-1).other99} ms ${kind}`;
    say(`  slice ${slice + 1}: callbacks ${kinds.map(told).join(', ')}; ledger is told after ${kinds.map(lag).join(', ')} (p50/p99)`);
  }
  return { found, books };
}

async function drainsBesideTarpit(place, sink, { rounds, besides }, say) {
  const found = { without: [], beside: [] };
  for (let round = 0; round < rounds; ++round) {
    for (const kind of round % 2 === 0 ? ['without', 'beside'] : ['beside', 'without']) {
      if (kind === 'beside') await place.resume('tarpit');
      else await place.pause('tarpit');
      found[kind].push(await drain(place, sink, besides));
    }
    say(`  round ${round + 1}: another's backlog drains at ${found.without.at(-1).rate.toFixed(0)}/s without, ${found.beside.at(-1).rate.toFixed(0)}/s beside`);
  }
  return found;
}

export async function bench({ size, say }) {
  const how = sizes[size];
  const sinks = { ledger: await Sink.start(), tarpit: await Sink.start({ tarpit: true }) };
  const recibo = new Notifying('recibo', sinks);
  const plain = new Pgbench('plain_poller', 'callback.pgbench');
  const drains = [];
  const plainRates = [];
  let lost = 0;
  let beside;
  let drained;
  try {
    await recibo.open();
    await plain.open();
    await recibo.pause('tarpit');
    for (let round = 1; round <= how.rounds; ++round) {
      const one = await drain(recibo, sinks.ledger, how.events);
      const other = await drainPlainly(plain, sinks.ledger, Math.min(how.events, 20_000));
      drains.push(one);
      plainRates.push(other.rate);
      lost += one.lost;
      say(`  round ${round}: ${one.count} events in ${one.seconds.toFixed(1)} s, ${one.rate.toFixed(0)}/s, ${one.lost} lost, ${one.doubled} told twice; plain poller ${other.rate.toFixed(0)}/s`);
    }
    beside = await callbacksBesideTarpit(recibo, sinks.ledger, how, say);
    drained = await drainsBesideTarpit(recibo, sinks.ledger, how, say);
    for (const one of Object.values(drained).flat()) lost += one.lost;
    for (const { book } of beside.books) {
      const judged = await recibo.judge(book);
      lost += judged.lost + judged.doubled;
    }
  } finally {
    await recibo.close();
    await plain.close();
    for (const sink of Object.values(sinks)) await sink.stop();
  }
  const of = (field) => median(drains.map((d) => d[field]));
  const { found } = beside;
  // Slice by slice, against both neighbours that were without.
  const times = (kind, number) => spread(found[kind].map((one, i) => number(one) / number(found.without[i])));
  const besideBoth = (number) => spread(found.beside.map((one, i) => number(one) / ((number(found.without[i]) + number(found.again[i])) / 2)));
  const ratios = {
    plain_poller: spread(drains.map((d, i) => d.rate / plainRates[i])),
    tarpit_callback_p50: besideBoth((one) => one.p50),
    tarpit_callback_p99: besideBoth((one) => one.p99),
    without_callback_p99: times('again', (one) => one.p99),
    tarpit_other_p50: besideBoth((one) => one.other50 + 1),
    tarpit_other_drain: spread(drained.beside.map((one, i) => one.rate / drained.without[i].rate)),
  };
  const line = (name, { min, median: middle, max }, wanted) => [name, min, middle, max, wanted];
  say(
    table([
      ['', 'min', 'median', 'max', 'wanted'],
      ['drained, events/s', Math.min(...drains.map((d) => d.rate)), of('rate'), Math.max(...drains.map((d) => d.rate)), '>= 3000'],
      line('against the plain poller', ratios.plain_poller, ''),
      line('callback p50 beside a tarpit', ratios.tarpit_callback_p50, ''),
      line('callback p99 beside a tarpit', ratios.tarpit_callback_p99, '<= 1.2'),
      line('callback p99 without, twice', ratios.without_callback_p99, ''),
      line('others beside a tarpit, p50', ratios.tarpit_other_p50, '1'),
      line('others beside a tarpit, drain rate', ratios.tarpit_other_drain, '1'),
    ]),
  );
  say(`  an event costs the service ${of('front_cpu_us').toFixed(0)} us of CPU, the database ${of('db_cpu_us').toFixed(0)} us`);
  const doubled = drains.reduce((sum, d) => sum + d.doubled, 0);
  const result = { ratios, events: how.events, drained_per_second: short(of('rate')), plain_per_second: short(median(plainRates)), front_cpu_us: short(of('front_cpu_us')), db_cpu_us: short(of('db_cpu_us')), lost, doubled };
  // At least once: an event that was told twice is no fault, one that was not told is.
  return { result, sound: lost === 0 };
}
