// A clock of its own for one process, which a test may set while it runs (libfaketime). Time that is only measured (the monotonic
// clock) goes on as it is.
import { existsSync, renameSync, rmSync, writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atExit } from './cleanup.mjs';

const library = ['/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1', '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1'].find(existsSync);
export const hasFaketime = library !== undefined;

export class FakeClock {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'rcb-clock-'));
    atExit(() => rmSync(this.folder, { recursive: true, force: true }));
    this.file = join(this.folder, 'now');
    this.step(0);
  }

  // From now on so many seconds beside the true time.
  step(seconds) {
    this.seconds = seconds;
    writeFileSync(`${this.file}.next`, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`);
    renameSync(`${this.file}.next`, this.file); // never seen half written
  }

  get env() {
    return { LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: this.file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1', DONT_FAKE_MONOTONIC: '1', NO_FAKE_STAT: '1' };
  }
}
