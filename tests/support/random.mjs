// Seeded randomness: every run prints its seed, and RECIBO_TEST_SEED replays it.
import { randomBytes } from 'node:crypto';

export const seed = Number(process.env.RECIBO_TEST_SEED ?? randomBytes(4).readUInt32LE(0));
if (!Number.isInteger(seed) || seed < 0 || seed > 0xffffffff) throw new Error('RECIBO_TEST_SEED must be an integer from 0 to 4294967295');
process.stdout.write(`seed ${seed} (RECIBO_TEST_SEED=${seed} replays this run)\n`);

// A generator of its own, so that one test's draws do not move another's: mulberry32.
export class Random {
  #state;
  constructor(start = seed, salt = '') {
    this.#state = start >>> 0;
    for (const c of salt) this.#state = Math.imul(this.#state ^ c.codePointAt(0), 0x01000193) >>> 0;
  }

  // Uniform in [0, 1).
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  // Uniform in 0 … bound − 1.
  int(bound) {
    return Math.floor(this.next() * bound);
  }

  pick(list) {
    return list[this.int(list.length)];
  }

  // A shuffled copy (Fisher and Yates).
  shuffle(list) {
    const out = [...list];
    for (let i = out.length - 1; i > 0; --i) {
      const j = this.int(i + 1);
      [out[i], out[j]] = [out[j], out[i]];
    }
    return out;
  }

  hex(digits) {
    let out = '';
    while (out.length < digits) out += this.int(16).toString(16);
    return out;
  }
}

let counter = 0;
const names = new Random(seed, 'names');
const run = names.hex(6);

// An identifier that no other test of this process has, of exactly `length` characters where one is asked for.
export function freshId(prefix = 'req', length) {
  const number = String(++counter);
  if (length === undefined) return `${prefix}-${run}-${number}`;
  const id = `${prefix}-`;
  if (id.length + number.length > length) throw new Error(`no ${length} characters for ${prefix}`);
  return id + number.padStart(length - id.length, '0');
}
