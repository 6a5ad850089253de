// kill -9 of a replica at random instants under load, and right after it has said 2xx.
import { connect } from 'node:net';
import { sleep } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { callbackBody } from '../support/recibo.mjs';
import { requestBytes } from '../support/raw.mjs';
import { Book, Callback, Operation } from './book.mjs';
import { Load } from './load.mjs';
import { line, round } from './round.mjs';

export const rounds = { usual: 20, quick: 3 };

// Sends the bytes and kills the replica in the very event that brings the status line; returns that line.
function killAtStatusLine(service, bytes) {
  return new Promise((resolve, reject) => {
    let seen = '';
    let found = null;
    const socket = connect({ host: '127.0.0.1', port: service.callbacks, noDelay: true });
    const timer = setTimeout(() => socket.destroy(new Error('no status line within 15 s')), 15_000);
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (chunk) => {
      seen += chunk.toString('latin1');
      if (found !== null || !seen.includes('\r\n')) return;
      service.signal('SIGKILL');
      [found] = seen.split('\r\n');
    });
    socket.on('error', (error) => found === null && reject(error));
    socket.on('close', () => {
      clearTimeout(timer);
      if (found === null) reject(new Error('closed without a status line'));
      else resolve(found);
    });
  });
}

// S08: its own operation, no resend, and everything must be there. Returns what a round returns.
export async function answeredThenKilled(fleet, random, i) {
  const book = new Book();
  const load = new Load({ fleet, book, random });
  const operation = new Operation({ id: freshId('s08'), provider: 'p1', when: 'early', knownAs: 'request_id' });
  const callback = new Callback({ operation, key: 'evt', content: '', event: 'complete', body: callbackBody(operation.id, 'evt') });
  book.add(operation);
  await load.register(operation);
  const request = fleet.recibo.request('p1', callback.body);
  book.attempts += 1;
  const status = await killAtStatusLine(fleet.replicas[i], requestBytes(request));
  await fleet.replicas[i].exited;
  load.close();
  if (!status.startsWith('HTTP/1.1 200 ')) book.complain(`S08: ${status}`);
  callback.lost = 1; // its answer was not read to the end
  await fleet.restart(i);
  const [row] = await fleet.sql(
    `SELECT o.state, (SELECT count(*) FROM recibo.transitions t WHERE t.operation = o.id)::int AS a,
       (SELECT count(*) FROM recibo.notifications n JOIN recibo.transitions t ON t.operation = n.operation AND t.sequence = n.sequence
        WHERE n.operation = o.id)::int AS n,
       (SELECT array_agg(d.disposition) FROM recibo.deliveries d WHERE d.operation = o.id) AS deliveries
     FROM recibo.operations o WHERE o.request_id = $1`,
    [operation.id],
  );
  const found = JSON.stringify(row);
  if (found !== '{"state":"completed","a":1,"n":1,"deliveries":["applied"]}') book.complain(`S08: answered ${status}, and after the kill there is ${found}`);
  return { book, ...(await fleet.judge(book)) };
}

export async function run({ fleet, random, rounds: count, tell, totals }) {
  for (let at = 1; at <= count; ++at) {
    const victim = random.int(2);
    const ms = 500 + random.int(500);
    const result = await round({
      fleet,
      random,
      operations: 40,
      ms,
      hot: 8,
      disturb: async () => {
        const moment = random.int(ms);
        await sleep(moment);
        await fleet.kill(victim);
        await sleep(random.int(200));
        await fleet.restart(victim);
        return `replica ${victim} killed at ${moment} of ${ms} ms`;
      },
    });
    totals.add(result.book, result);
    const last = await answeredThenKilled(fleet, random, random.int(2));
    totals.add(last.book, last);
    tell(line(`round ${at}`, result), [...result.complaints, ...last.complaints]);
  }
}
