// One round: operations are made up, their callbacks sent over a while, something goes wrong meanwhile, everything refused or
// unanswered is sent again, and the whole is judged.
import { Random } from '../support/random.mjs';
import { Book } from './book.mjs';
import { Load } from './load.mjs';
import { Stories, acts } from './stories.mjs';

export class Totals {
  attempts = 0;
  answered = 0;
  refused = 0;
  unanswered = 0;
  applied = 0;
  slowestMs = 0;
  answers = {};
  rows = {};
  complaints = [];

  add(book, { complaints, byDisposition, applied }) {
    this.attempts += book.attempts;
    this.answered += book.answered;
    this.refused += book.refused;
    this.unanswered += book.unanswered;
    this.applied += applied;
    this.slowestMs = Math.max(this.slowestMs, book.slowestMs);
    for (const [into, from] of [[this.answers, book.byDisposition()], [this.rows, byDisposition]]) {
      for (const [word, count] of Object.entries(from)) into[word] = (into[word] ?? 0) + count;
    }
    this.complaints.push(...complaints);
  }
}

export const words = (counts) => Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)).map(([word, n]) => `${word} ${n}`).join(', ');

// `disturb({load, book, operations})` runs beside the load, which takes `ms`; both are awaited. `hot`: so many copies of one callback.
export async function round({ fleet, random, operations: count, ms, hot = 0, disturb, patienceMs, answerWithinMs }) {
  const book = new Book();
  const load = new Load({ fleet, book, random, patienceMs, answerWithinMs });
  const stories = new Stories(new Random(random.int(0x7fffffff), 'stories'));
  const operations = Array.from({ length: count }, (_, i) => book.add(stories.make(i === 0 && hot > 0 ? { when: 'early', knownAs: 'request_id', hot } : {})));
  const { before, middle, after } = acts(operations, load);
  try {
    await load.drain(before, 32);
    const [said] = await Promise.all([disturb?.({ load, book, operations }), load.spread(middle, ms)]);
    await load.drain(after, 32);
    const result = await fleet.judge(book);
    return { book, said, ...result };
  } finally {
    load.close();
  }
}

// The line of a round.
export function line(name, { book, byDisposition, complaints, said }) {
  const parts = [
    `${book.answered} answered`,
    `${book.refused} refused`,
    `${book.unanswered} unanswered`,
    `slowest ${book.slowestMs} ms`,
    words(byDisposition),
    complaints.length === 0 ? 'as it must be' : `${complaints.length} COMPLAINTS`,
  ];
  return `${name}${said ? ` (${said})` : ''}: ${parts.join('; ')}`;
}
