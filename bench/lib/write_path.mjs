// write-path: how many callbacks are durable in a second, against the same done in other ways, in alternating rounds; then what
// one callback costs in CPU and log, with its operation registered ahead.
import { clusterSeconds, median, processSeconds, short, spread, table, wal } from './meter.mjs';
import { Fastify, Pgbench, Recibo, startCluster } from './place.mjs';

export const summary = 'callbacks a second against pgbench, set-wise SQL and Fastify; CPU and log of one callback';

const sizes = {
  full: { rounds: 5, milliseconds: 6_000, search: 2_000, operations: 24_000 },
  quick: { rounds: 3, milliseconds: 1_000, search: 0, operations: 6_000 },
  smoke: { rounds: 1, milliseconds: 0, search: 0, operations: 160 },
};

const rate = ({ callbacks, seconds }) => callbacks / seconds;

// The best number of senders of a small search; without one, what is usually found.
async function bestUsers(place, milliseconds, say) {
  if (milliseconds === 0) return place.usersUsual;
  let best = { users: 0, rate: 0 };
  for (const users of place.usersTried) {
    const found = rate(await place.mix({ milliseconds, users }));
    if (found > best.rate) best = { users, rate: found };
  }
  say(`  ${place.name}: ${best.users} senders are best of ${place.usersTried.join(', ')}`);
  return best.users;
}

// A round of the mix, and what it took of the processors: the service's and PostgreSQL's.
async function mixed(place, how) {
  const used = () => (place.pid ? processSeconds(place.pid) : 0) + clusterSeconds(place.cluster);
  const before = used();
  const done = await place.mix(how);
  return { ...done, cpu_us: ((used() - before) * 1e6) / done.callbacks };
}

// Callbacks alone, at saturation: what each costs the service and the database.
async function cost(place, users, operations) {
  const each = Math.max(1, Math.round(operations / users));
  const registered = await place.send({ phase: 'registers', users, operations: each, time: 0 });
  const before = { front: processSeconds(place.pid), db: clusterSeconds(place.cluster), wal: await wal(place.cluster) };
  const done = await place.send({ phase: 'callbacks', run: registered.run, users, operations: each, time: 0 });
  const after = { front: processSeconds(place.pid), db: clusterSeconds(place.cluster), wal: await wal(place.cluster) };
  const of = (total) => total / done.callbacks;
  return {
    books: [registered.book, done.book],
    rate: rate(done),
    front_cpu_us: of((after.front - before.front) * 1e6),
    db_cpu_us: of((after.db - before.db) * 1e6),
    wal_bytes: of(after.wal.bytes - before.wal.bytes),
    wal_pages: of(after.wal.pages - before.wal.pages),
  };
}

export async function bench({ size, say }) {
  const { rounds, milliseconds, search, operations } = sizes[size];
  const small = size === 'smoke';
  const places = [
    new Recibo('recibo'),
    new Pgbench('pgbench_single', 'single.pgbench'),
    new Pgbench('set_wise', 'set.pgbench', [2, 4, 8]),
    new Fastify('fastify_pg', 'statements'),
    new Fastify('fastify_pg_tuned', 'function'),
  ];
  const [recibo] = places;
  const rates = Object.fromEntries(places.map(({ name }) => [name, []]));
  const cpus = Object.fromEntries(places.map(({ name }) => [name, []]));
  const answers = {};
  const costs = [];
  let lost = 0;
  let doubled = 0;
  let accepted = 0;
  const held = async (place, book) => {
    const judged = await place.judge(book);
    lost += judged.lost;
    doubled += judged.doubled;
    accepted += judged.accepted;
    if (judged.lost + judged.doubled > 0) say(`  ! ${place.name}: ${judged.lost} lost, ${judged.doubled} doubled`);
  };
  const shared = small ? await startCluster() : undefined;
  try {
    for (const place of places) await place.open(shared);
    const users = {};
    for (const place of places) users[place.name] = small ? 4 : await bestUsers(place, search, say);
    // Once unmeasured: caches, plans and tables are as they will be.
    if (search > 0) for (const place of places) await place.mix({ milliseconds: search, users: users[place.name] });
    for (let round = 1; round <= rounds; ++round) {
      const said = [];
      for (const place of places) {
        const one = { milliseconds, users: users[place.name], operations: small ? operations / 4 : undefined };
        const result = await mixed(place, one);
        rates[place.name].push(rate(result));
        cpus[place.name].push(result.cpu_us);
        for (const [word, count] of Object.entries(result.answers)) {
          answers[place.name] ??= {};
          answers[place.name][word] = (answers[place.name][word] ?? 0) + count;
        }
        if (result.book) await held(place, result.book);
        said.push(`${place.name} ${rate(result).toFixed(0)}/s`);
      }
      const spent = await cost(recibo, users.recibo, operations);
      for (const book of spent.books) await held(recibo, book);
      costs.push(spent);
      say(`  round ${round}: ${said.join(', ')}; alone ${spent.rate.toFixed(0)}/s`);
    }
  } finally {
    for (const place of places) await place.close();
    await shared?.destroy();
  }
  const rivals = ['pgbench_single', 'fastify_pg', 'fastify_pg_tuned', 'set_wise'];
  // Round by round, because what disturbs the machine disturbs neighbours in time alike.
  const ratios = Object.fromEntries(rivals.map((name) => [name, spread(rates.recibo.map((mine, round) => mine / rates[name][round]))]));
  const of = (field) => short(median(costs.map((c) => c[field])));
  const result = {
    ratios,
    front_cpu_us: of('front_cpu_us'),
    db_cpu_us: of('db_cpu_us'),
    wal_bytes: of('wal_bytes'),
    lost,
    doubled,
    wal_full_pages: of('wal_pages'),
    accepted,
    rounds,
    callbacks_per_second: Object.fromEntries(Object.entries(rates).map(([name, all]) => [name, spread(all)])),
    callbacks_alone_per_second: spread(costs.map((c) => c.rate)),
    cpu_us_of_the_mix: Object.fromEntries(Object.entries(cpus).map(([name, all]) => [name, spread(all)])),
    answers,
  };
  say(
    table([
      ['', 'callbacks/s', 'ratio min', 'median', 'max', 'wanted', 'CPU us/callback', 'times ours'],
      ['recibo', median(rates.recibo), '', '', '', '', median(cpus.recibo), ''],
      ...rivals.map((name) => [name, median(rates[name]), ratios[name].min, ratios[name].median, ratios[name].max, { pgbench_single: '>= 3', fastify_pg: '>= 12', fastify_pg_tuned: '>= 5' }[name] ?? '-', median(cpus[name]), median(cpus[name]) / median(cpus.recibo)]),
    ]),
  );
  say(
    table([
      ['one callback', 'median', 'wanted'],
      ['CPU of the service, us', result.front_cpu_us, '<= 60'],
      ['CPU of PostgreSQL, us', result.db_cpu_us, '<= 60'],
      ['write-ahead log, bytes', result.wal_bytes, '<= 2200'],
    ]),
  );
  say(`accepted ${accepted}, lost ${lost}, doubled ${doubled}; answers of recibo: ${Object.entries(answers.recibo).map(([word, count]) => `${word} ${count}`).join(', ')}`);
  return { result, sound: lost === 0 && doubled === 0 };
}
