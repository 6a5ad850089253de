// Many callbacks of every kind on two replicas at once, nothing broken: what is on record is what the model makes of the order
// that the database says, and what the senders were told. Halfway the configuration learns a word, on one replica after the other,
// and operators at both replay what failed for it, while senders send it again.
import { sleep, until } from '../support/cleanup.mjs';
import { exchange } from '../support/raw.mjs';
import { Random } from '../support/random.mjs';
import { Book } from './book.mjs';
import { Load } from './load.mjs';
import { line } from './round.mjs';
import { Stories, acts } from './stories.mjs';

export const rounds = { usual: 20_000, quick: 3_000 };
export const counts = 'callbacks';

// Callbacks that are made up, sent and judged together.
const waveSize = 5_000;
// Senders at once.
const width = 48;

// What clients read over the API, from either replica, is what the database says.
async function readBack({ fleet, book, random, complain }) {
  const some = random.shuffle([...book.operations.values()].filter((o) => o.registers)).slice(0, 10);
  for (const operation of some) {
    const [row] = await fleet.sql('SELECT state, version, review_open FROM recibo.operations WHERE request_id = $1', [operation.id]);
    for (const service of fleet.replicas) {
      const headers = [['Authorization', `Bearer ${fleet.recibo.tokens.ops}`]];
      const answer = await exchange(service.api, { method: 'GET', target: `/v1/operations/${operation.id}`, headers });
      const { state, version, review_open: open } = answer.status === 200 ? answer.json : {};
      if (!row || state !== row.state || version !== row.version || open !== row.review_open) {
        complain(`GET of ${operation.id}: ${answer.status} ${answer.text.slice(0, 300)}; the row is ${JSON.stringify(row)}`);
      }
    }
  }
}

// The word means "complete" from now on, first on one replica.
async function mend(fleet, word, complain) {
  const { recibo } = fleet;
  for (const provider of Object.values(recibo.config.providers)) provider.events = { ...provider.events, [word]: 'complete' };
  recibo.write();
  for (const service of fleet.replicas) {
    const answer = await ask(fleet, service, '/v1/config/reload', {}, 'root');
    if (answer.status !== 200) complain(`the reload was answered ${answer.status}: ${answer.text.slice(0, 300)}`);
  }
}

const ask = ({ recibo }, service, target, body, token = 'ops') =>
  exchange(service.api, {
    method: 'POST', target, body: JSON.stringify(body),
    headers: [['Authorization', `Bearer ${recibo.tokens[token]}`], ['Content-Type', 'application/json']],
  });

// An operator at one replica: all that failed with the word, in steps, until none is left and `isOver`.
async function replayAll(fleet, service, word, isOver, complain) {
  for (;;) {
    const last = isOver();
    const answer = await ask(fleet, service, '/v1/failed-callbacks/replay', { filter: { event: word }, reason: 'the map was mended', limit: 20 });
    if (answer.status !== 200 && answer.status !== 503) return complain(`a replay was answered ${answer.status}: ${answer.text.slice(0, 300)}`);
    if (last && answer.status === 200 && answer.json.matched === 0) return;
    await sleep(100);
  }
}

async function wave({ fleet, random, size, newWord }) {
  const book = new Book();
  const load = new Load({ fleet, book, random });
  const stories = new Stories(new Random(random.int(0x7fffffff), 'stories'), newWord);
  const operations = [];
  const add = (how) => {
    const made = book.add(stories.make(how));
    operations.push(made);
    return made.callbacks.reduce((sum, c) => sum + c.copies, 0);
  };
  // Some that are always there, however the dice fall: keys and operations that everybody wants.
  let planned = add({ when: 'early', knownAs: 'request_id', hot: 150 });
  planned += add({ when: 'late', knownAs: 'request_id', hot: 20 });
  planned += add({ when: 'racing', knownAs: 'learned', hot: 10 });
  planned += add({ when: 'late', knownAs: 'learned' });
  planned += add({ when: 'early', knownAs: 'request_id', twins: true });
  while (planned < size) planned += add({});
  const { before, middle, after } = acts(operations, load);
  const since = Date.now();
  await load.drain(before, width);
  const half = Math.floor(middle.length / 2);
  const complain = (what) => book.complain(what);
  await load.drain(middle.slice(0, half), width);
  let isOver = false;
  const operators = async () => {
    await mend(fleet, newWord, complain);
    await Promise.all(fleet.replicas.map((service) => replayAll(fleet, service, newWord, () => isOver, complain)));
  };
  const senders = async () => {
    await load.drain(middle.slice(half), width);
    await load.drain(after, width);
    isOver = true;
  };
  await Promise.all([operators(), senders()]);
  const ms = Date.now() - since;
  load.close();
  // The registration or the learning that knows a parked callback meets it; nobody has to wait for the periodic look.
  const ids = operations.filter((o) => o.registers).map((o) => o.id);
  const left = () => fleet.sql('SELECT count(*)::int AS count FROM recibo.parked WHERE request_id = ANY($1)', [ids]);
  await until('nothing is parked any more', async () => (await left())[0].count === 0, { timeout: 2_000, interval: 200 }).catch(() => {});
  await readBack({ fleet, book, random, complain: (what) => book.complain(what) });
  const result = await fleet.judge(book);
  return { book, said: `${operations.length} operations, ${Math.round((book.attempts / ms) * 1000)} requests/s`, ...result };
}

// The sums over all waves: what was answered is on record, no more and no less, unless an attempt was lost.
function sums(totals, complain) {
  const slack = totals.refused + totals.unanswered;
  for (const word of ['applied', 'redundant', 'stale', 'review', 'parked']) {
    const [said, kept] = [totals.answers[word] ?? 0, totals.rows[word] ?? 0];
    if (kept < said || kept > said + slack) complain(`${word}: answered ${said} times, ${kept} deliveries, ${slack} attempts lost`);
  }
}

export async function run({ fleet, random, rounds: count, tell, totals }) {
  let sent = 0;
  for (let at = 1; sent < count; ++at) {
    const result = await wave({ fleet, random, size: Math.min(waveSize, count - sent), newWord: `settled ${at}` });
    sent += result.book.answered;
    totals.add(result.book, result);
    tell(line(`wave ${at}`, result), result.complaints);
  }
  const odd = [];
  sums(totals, (what) => odd.push(what));
  totals.complaints.push(...odd);
  tell(`sums: ${sent} callbacks answered, ${totals.applied} transitions`, odd);
  return totals;
}
