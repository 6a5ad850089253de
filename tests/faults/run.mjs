// Fault tests: node tests/faults/run.mjs [name…] [--rounds N] [--seed N] [--quick] [--json FILE] [--list]
// Each drives the real binary, two replicas on a private PostgreSQL that syncs to disk, breaks something, and holds what was
// answered and what is on record against a model. Prints the seed first; exit 0 when everything was as it must be, 1 when not,
// 2 for wrong use.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const summaries = {
  kill: 'kill -9 of a replica at random instants under load, and right after a 2xx status line was read; restart',
  cut: 'connections to PostgreSQL cut before and after COMMIT, black hole, delay, under load',
  'stop-db': 'PostgreSQL stopped (fast, immediate) and killed under load, and started again',
  terminate: 'pg_terminate_backend of every session of the service under load',
  mix: 'N mixed callbacks (--rounds N, 20000) on two replicas against an independent model',
};
const names = Object.keys(summaries);
const file = (name) => `./${name.replace('-', '_')}.mjs`;

function wrongUse(why) {
  process.stderr.write(`faults: ${why}\nusage: run.mjs [${names.join(' | ')}]… [--rounds N] [--seed N] [--quick] [--json FILE] [--list]\n`);
  process.exit(2);
}

function wishes() {
  let parsed;
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: {
        rounds: { type: 'string' },
        seed: { type: 'string' },
        quick: { type: 'boolean', default: false },
        json: { type: 'string' },
        list: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    wrongUse(error.message);
  }
  const { values, positionals } = parsed;
  const number = (name, least, most) => {
    if (values[name] === undefined) return undefined;
    const value = Number(values[name]);
    if (!/^[0-9]{1,10}$/.test(values[name]) || value < least || value > most) wrongUse(`--${name} is a number from ${least} to ${most}`);
    return value;
  };
  for (const name of positionals) if (!names.includes(name)) wrongUse(`there is no fault test ${name}`);
  return {
    chosen: positionals.length > 0 ? [...new Set(positionals)] : names,
    rounds: number('rounds', 1, 10_000_000),
    seed: number('seed', 0, 0xffffffff),
    quick: values.quick,
    json: values.json,
    list: values.list,
  };
}

const say = (text) => process.stdout.write(`${text}\n`);
const shown = 8;

async function one(name, scenario, { rounds, quick, seed }) {
  const { Random } = await import('../support/random.mjs');
  const { Fleet } = await import('./fleet.mjs');
  const { Totals, words } = await import('./round.mjs');
  const since = Date.now();
  const totals = new Totals();
  const complain = (what) => {
    totals.complaints.push(what);
    say(`  ! ${what}`);
  };
  const tell = (text, complaints) => {
    say(`${name} ${text}`);
    for (const what of complaints.slice(0, shown)) say(`  ! ${what}`);
    if (complaints.length > shown) say(`  ! and ${complaints.length - shown} more`);
  };
  const count = rounds ?? (quick ? scenario.rounds.quick : scenario.rounds.usual);
  const fleet = await Fleet.start({ proxied: scenario.proxied ?? false });
  let audit = '';
  try {
    await scenario.run({ fleet, random: new Random(seed, name), rounds: count, tell, totals });
  } catch (error) {
    complain(`the test could not go on: ${error.stack}`);
  }
  try {
    if (!fleet.cluster.running) await fleet.cluster.start();
    const ended = await fleet.finish();
    audit = ended.audit;
    ended.complaints.forEach(complain);
  } catch (error) {
    complain(`the end could not be checked: ${error.stack}`);
  } finally {
    await fleet.close();
  }
  const seconds = (Date.now() - since) / 1000;
  const { attempts, answered, refused, unanswered, applied, slowestMs, answers, rows, complaints } = totals;
  say(`${name}: ${complaints.length === 0 ? 'passed' : `FAILED, ${complaints.length} complaints`} in ${seconds.toFixed(1)} s`);
  say(`  ${attempts} requests, ${answered} callbacks answered, ${refused} refused, ${unanswered} unanswered, slowest ${slowestMs} ms`);
  say(`  answers: ${words(answers)}`);
  say(`  deliveries: ${words(rows)}; ${applied} transitions; audit verify: ${audit}`);
  const counts = { attempts, answered, refused, unanswered, applied, slowest_ms: slowestMs, answers, deliveries: rows };
  return { passed: complaints.length === 0, rounds: count, seconds, ...counts, audit, complaints };
}

const wanted = wishes();
if (wanted.list) {
  for (const [name, summary] of Object.entries(summaries)) say(`${name.padEnd(10)} ${summary}`);
  process.exit(0);
}
if (wanted.seed !== undefined) process.env.RECIBO_TEST_SEED = String(wanted.seed);
const { seed } = await import('../support/random.mjs'); // prints it
const results = {};
for (const name of wanted.chosen) results[name] = await one(name, await import(file(name)), { ...wanted, seed });
if (wanted.json) writeFileSync(wanted.json, `${JSON.stringify({ seed, faults: results }, null, 2)}\n`);
const failed = Object.entries(results).filter(([, result]) => !result.passed).map(([name]) => name);
say(failed.length === 0 ? `all passed: ${wanted.chosen.join(', ')}` : `failed: ${failed.join(', ')}; --seed ${seed} replays it`);
process.exit(failed.length === 0 ? 0 : 1);
