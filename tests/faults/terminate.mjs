// An administrator ends the sessions of the service, again and again, under load.
import { sleep } from '../support/cleanup.mjs';
import { line, round } from './round.mjs';

export const rounds = { usual: 10, quick: 2 };

export const terminateAll = `
  SELECT count(pg_terminate_backend(pid))::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND usename = 'recibo_service' AND pid <> pg_backend_pid()`;

export async function run({ fleet, random, rounds: count, tell, totals }) {
  for (let at = 1; at <= count; ++at) {
    const ms = 1_500;
    const disturb = async () => {
      const ended = [];
      for (let i = 0; i < 4; ++i) {
        await sleep(100 + random.int(250));
        const [row] = await fleet.sql(terminateAll);
        ended.push(row.count);
      }
      return `${ended.join(' + ')} sessions ended`;
    };
    const result = await round({ fleet, random, operations: 60, ms, hot: 8, disturb });
    await fleet.ready().catch((error) => result.complaints.push(error.message));
    totals.add(result.book, result);
    tell(line(`round ${at}`, result), result.complaints);
  }
}
