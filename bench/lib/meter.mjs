// What work costs: CPU of processes by /proc, write-ahead log by PostgreSQL's own count.
import { readFileSync } from 'node:fs';

const ticksPerSecond = 100; // of /proc, on every Linux that Node runs on

function seconds(pid, withChildren) {
  let fields;
  try {
    fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ').map(Number);
  } catch {
    return 0; // it has ended; its time is its parent's now
  }
  const [user, system, endedUser, endedSystem] = fields.slice(11, 15);
  return (user + system + (withChildren ? endedUser + endedSystem : 0)) / ticksPerSecond;
}

export const processSeconds = (pid) => seconds(pid, false);

// All processes of a cluster, those that have ended too.
export function clusterSeconds(cluster) {
  const children = readFileSync(`/proc/${cluster.pid}/task/${cluster.pid}/children`, 'utf8').trim();
  const living = children === '' ? [] : children.split(/\s+/).map(Number);
  return living.reduce((sum, pid) => sum + seconds(pid, true), seconds(cluster.pid, true));
}

export async function wal(cluster) {
  const [row] = await cluster.query('postgres', "SELECT pg_current_wal_lsn() - '0/0' AS bytes, wal_fpi AS pages FROM pg_stat_wal");
  return { bytes: Number(row.bytes), pages: Number(row.pages) };
}

export const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

const short = (number) => Number(number.toPrecision(4));
export const spread = (numbers) => ({ min: short(Math.min(...numbers)), median: short(median(numbers)), max: short(Math.max(...numbers)) });
export { short };

// Lines of cells as a table; the first line is its head. Numbers stand to the right.
export function table(lines) {
  const text = lines.map((line) => line.map((cell) => (typeof cell === 'number' ? String(short(cell)) : String(cell))));
  const widths = text[0].map((_, column) => Math.max(...text.map((line) => line[column].length)));
  const right = lines[0].map((_, column) => lines.slice(1).some((line) => typeof line[column] === 'number'));
  return text.map((line) => line.map((cell, column) => (right[column] ? cell.padStart(widths[column]) : cell.padEnd(widths[column]))).join('  ').trimEnd()).join('\n');
}
