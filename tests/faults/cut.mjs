// A proxy between each replica and PostgreSQL that goes wrong: the connection ends before COMMIT was forwarded, or after it was
// done and before its answer passed; nothing passes any more; everything is slow.
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { callbackBody } from '../support/recibo.mjs';
import { Book, Callback, Operation } from './book.mjs';
import { Load } from './load.mjs';
import { line, round } from './round.mjs';

export const rounds = { usual: 14, quick: 4 };
export const proxied = true;

const recorded = /insert\s+into\s+(recibo\.)?deliveries/i;

const faults = {
  // At random moments, whichever transaction comes next.
  async before({ proxy, random }) {
    return cuts(proxy, random, () => proxy.cutBeforeCommit({ match: recorded }));
  },
  async after({ proxy, random }) {
    return cuts(proxy, random, () => proxy.cutAfterCommit({ match: recorded }));
  },
  async delay({ proxy, random, ms }) {
    proxy.delayMs = 20 + random.int(180);
    const said = `${proxy.delayMs} ms each way`;
    await sleep(ms);
    await proxy.heal();
    return said;
  },
  // Nothing passes and nothing is closed: who waits is told to send again within 5 s, and the other replica goes on.
  async silence({ proxy, fleet, i, ms }) {
    await sleep(ms / 4);
    proxy.blackHole();
    const since = Date.now();
    await until('/readyz of the replica says 503', async () => (await fleet.readyz(i)).status === 503, { timeout: 12_000 });
    const unready = Date.now() - since;
    if ((await fleet.readyz(1 - i)).status !== 200) throw new Error('the other replica is not ready');
    await proxy.heal();
    await fleet.ready();
    return `unready after ${unready} ms, ready again after ${Date.now() - since - unready} ms`;
  },
};

async function cuts(proxy, random, arm) {
  const before = proxy.cuts.length;
  for (let i = 0; i < 4; ++i) {
    arm();
    await sleep(60 + random.int(200));
  }
  await proxy.heal();
  return `${proxy.cuts.length - before} cut`;
}

const one = (what, when = 'early') => {
  const operation = new Operation({ id: freshId(what), provider: 'p1', when, knownAs: 'request_id' });
  const say = (amount) => {
    const body = callbackBody(operation.id, 'evt', 'succeeded', { amount });
    return new Callback({ operation, key: 'evt', content: amount, event: 'complete', agrees: amount === '19.99', body });
  };
  return { operation, say };
};

// One callback in so many copies, and the transaction that holds them is cut. Before COMMIT was forwarded nothing may be there;
// after it everything is, and every resend is a replay of it.
async function exactly(fleet, random, i, kind, copies) {
  const proxy = fleet.proxies[i];
  const book = new Book();
  // One session died once, however many copies its batch held: that is no reason to put the sender off for long.
  const load = new Load({ fleet, book, random, patienceMs: 5_000 });
  const { operation, say } = one('cut');
  const callback = say('19.99');
  book.add(operation);
  await load.register(operation);
  const done = proxy.cuts.length;
  const send = () => Promise.all(Array.from({ length: copies }, () => load.send(callback, fleet.replicas[i])));
  let sent;
  if (copies > 1) {
    // While the route is slow the copies gather behind another callback, and make one batch.
    const ahead = one('ahead');
    const first = ahead.say('19.99');
    book.add(ahead.operation);
    await load.register(ahead.operation);
    proxy.delayMs = 120;
    const blocked = load.deliver(first, fleet.replicas[i]);
    await sleep(60);
    sent = send();
    await blocked;
  }
  if (kind === 'before') proxy.cutBeforeCommit({ match: recorded });
  else proxy.cutAfterCommit({ match: recorded });
  await (sent ?? send());
  if (proxy.cuts.length !== done + 1) book.complain(`the proxy cut ${proxy.cuts.length - done} times instead of once`);
  if (callback.answers.length === 0) {
    const [{ count }] = await fleet.sql("SELECT count(*)::int AS count FROM recibo.deliveries WHERE encode(body_digest, 'hex') = $1", [callback.digest]);
    const wanted = kind === 'before' ? 0 : copies;
    if (count !== wanted) book.complain(`${count} deliveries after the cut, must be ${wanted}`);
  }
  await proxy.heal();
  // The sender comes again, always to the same replica.
  const again = await load.deliver(callback, fleet.replicas[i]);
  if (again && kind === 'after' && !again.replayed) book.complain(`the resend is answered ${again.text} as if it were new`);
  load.close();
  const result = await fleet.judge(book);
  return { book, ...result, complaints: result.complaints.map((what) => `${copies} copies cut ${kind} COMMIT: ${what}`) };
}

// Two contents under one key before their operation is there: the one that came first takes a slow route and is parked second.
// Which one stands was told to the senders; registration must keep to it.
async function overtaken(fleet, random, i) {
  const book = new Book();
  const load = new Load({ fleet, book, random });
  const { operation, say } = one('late', 'late');
  const [slow, fast] = [say('19.99'), say('20.00')];
  book.add(operation);
  fleet.proxies[i].delayMs = 150;
  const sent = load.deliver(slow, fleet.replicas[i]);
  await sleep(40);
  await load.deliver(fast, fleet.replicas[1 - i]);
  await sent;
  await fleet.proxies[i].heal();
  await load.register(operation);
  for (const callback of [slow, fast]) await load.deliver(callback);
  load.close();
  const result = await fleet.judge(book);
  return { book, ...result, complaints: result.complaints.map((what) => `parked in another order than received: ${what}`) };
}

export async function run({ fleet, random, rounds: count, tell, totals }) {
  const order = ['before', 'after', 'silence', 'delay', 'before', 'after', 'before'];
  for (let at = 1; at <= count; ++at) {
    const kind = order[(at - 1) % order.length];
    const i = random.int(2);
    const proxy = fleet.proxies[i];
    const ms = 1_200;
    const disturb = async () => `${kind}, replica ${i}, ${await faults[kind]({ proxy, fleet, random, i, ms })}`;
    const result = await round({ fleet, random, operations: 40, ms, hot: 8, disturb });
    await fleet.ready();
    const results = [result];
    if (kind === 'before' || kind === 'after') for (const copies of [1, 12]) results.push(await exactly(fleet, random, i, kind, copies));
    if (kind === 'delay') results.push(await overtaken(fleet, random, i));
    for (const part of results) totals.add(part.book, part);
    tell(line(`round ${at}`, result), results.flatMap(({ complaints }) => complaints));
  }
}
