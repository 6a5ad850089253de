// Whatever a test process starts ends with it: on success, on failure, on a signal. Tasks are synchronous, because the
// event loop does not run any more when a process exits. Only processes that were started here are ended, by their PID.
import { readFileSync } from 'node:fs';

const tasks = new Set();

// Runs `task` when the process exits, the last one registered first; returns a function that takes it back.
export function atExit(task) {
  tasks.add(task);
  return () => tasks.delete(task);
}

process.on('exit', () => {
  for (const task of [...tasks].reverse()) {
    try {
      task();
    } catch (error) {
      process.stderr.write(`cleanup: ${error.message}\n`);
    }
  }
});
for (const [signal, number] of [['SIGINT', 2], ['SIGTERM', 15], ['SIGHUP', 1]]) {
  process.on(signal, () => process.exit(128 + number));
}

export function sleepSync(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Whether a process runs; a zombie that nobody has waited for yet does not.
export function isRunning(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
  } catch {
    return false;
  }
}

// Sends `signal`, waits, and sends SIGKILL if it still runs. For exit paths only.
export function endSync(pid, signal, patienceMs) {
  if (!isRunning(pid)) return;
  process.kill(pid, signal);
  for (let waited = 0; waited < patienceMs && isRunning(pid); waited += 20) sleepSync(20);
  if (isRunning(pid)) process.kill(pid, 'SIGKILL');
}

// Asks `probe` until it gives something truthy, and returns that. Fails with `what` after `timeout` ms.
export async function until(what, probe, { timeout = 10_000, interval = 25 } = {}) {
  const end = Date.now() + timeout;
  let last;
  for (;;) {
    try {
      const found = await probe();
      if (found) return found;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() >= end) throw new Error(`${what}: not within ${timeout} ms`, { cause: last });
    await sleep(interval);
  }
}
