// PostgreSQL goes away under load, by each of its ways to stop, and comes back: nobody restarts the service.
import { sleep, until } from '../support/cleanup.mjs';
import { exchange } from '../support/raw.mjs';
import { line, round } from './round.mjs';

export const rounds = { usual: 9, quick: 3 };

const ways = ['fast', 'immediate', 'kill'];

export async function run({ fleet, random, rounds: count, tell, totals }) {
  for (let at = 1; at <= count; ++at) {
    const way = ways[(at - 1) % ways.length];
    const outage = 1_200 + random.int(1_500);
    const ms = 800 + outage;
    const disturb = async ({ book }) => {
      await sleep(100 + random.int(500));
      if (way === 'kill') await fleet.cluster.kill();
      else await fleet.cluster.stop(way);
      const since = Date.now();
      const unready = await Promise.all(
        [0, 1].map(async (i) => {
          const seen = await until(`/readyz of replica ${i} says 503`, async () => {
            const answer = await fleet.readyz(i);
            return answer.status === 503 ? answer : null;
          }, { timeout: 5_000 }).catch((error) => error);
          if (seen instanceof Error) book.complain(seen.message);
          for (const listener of ['callbacks', 'api']) {
            const live = await exchange(fleet.replicas[i][listener], { method: 'GET', target: '/livez' });
            if (live.status !== 200) book.complain(`/livez of replica ${i} says ${live.status} while the database is away`);
          }
          return Date.now() - since;
        }),
      );
      await sleep(Math.max(0, outage - (Date.now() - since)));
      await fleet.cluster.start();
      const back = Date.now();
      await fleet.ready({ timeout: 15_000 }).catch((error) => book.complain(error.message));
      return `${way}, away for ${back - since} ms, unready after ${Math.max(...unready)} ms, ready again after ${Date.now() - back} ms`;
    };
    const result = await round({ fleet, random, operations: 50, ms, hot: 8, disturb, answerWithinMs: 5_500 });
    totals.add(result.book, result);
    tell(line(`round ${at}`, result), result.complaints);
  }
}
