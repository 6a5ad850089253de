// connections: what idle keep-alive connections cost in memory.
import { once } from 'node:events';
import { sleep } from '../../tests/support/cleanup.mjs';
import { short, table } from './meter.mjs';
import { Recibo } from './place.mjs';
import { firstLine, program, start } from './programs.mjs';

export const summary = 'resident memory with 10,000 idle keep-alive connections';

export async function bench({ size, say }) {
  const count = size === 'smoke' ? 200 : 10_000;
  const recibo = new Recibo('recibo');
  try {
    await recibo.open();
    const before = recibo.service.memory().now;
    const holder = start(program('recibo_load'), ['--callbacks', String(recibo.callbacks), '--idle', String(count)], { stdin: 'pipe' });
    const { held } = await firstLine(holder);
    await sleep(1_000);
    const after = recibo.service.memory().now;
    holder.stdin.end();
    await once(holder, 'close');
    const mib = (kib) => short(kib / 1024);
    const result = { connections: held, resident_mib: mib(after), resident_before_mib: mib(before), bytes_each: short(((after - before) * 1024) / held) };
    say(table([['', 'MiB', 'wanted'], ['before', result.resident_before_mib, ''], [`with ${held} idle connections`, result.resident_mib, '<= 64']]));
    return { result, sound: held === count };
  } finally {
    await recibo.close();
  }
}
