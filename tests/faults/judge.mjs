// Holds the rows and the answers of one round against the model. The database says in which order things happened (the audit
// rows of an operation); the model says what must have come of them in that order; the senders say what they were told.
// Pure: returns complaints.
import { History } from './model.mjs';

// Beyond so many repetitions of a key only a count is kept.
const recordedMax = 100;

const group = (rows, by) => {
  const out = new Map();
  for (const row of rows) {
    const list = out.get(row[by]);
    if (list) list.push(row);
    else out.set(row[by], [row]);
  }
  return out;
};

class Judgement {
  constructor(book, rows) {
    this.book = book;
    this.complaints = [...book.complaints];
    this.byDisposition = {};
    this.applied = 0;
    this.operations = new Map(rows.operations.map((o) => [o.request_id, o]));
    this.audit = group(rows.audit, 'operation');
    this.transitions = group(rows.transitions, 'operation');
    this.keys = new Map(rows.keys.map((k) => [k.delivery, k]));
    this.aliases = group(rows.aliases, 'operation');
    this.reviews = group(rows.reviews, 'operation');
    this.notifications = group(rows.notifications, 'operation');
    // Rows of other rounds may share the time.
    this.deliveries = rows.deliveries.filter((d) => book.callbacks.has(d.digest));
    this.deliveryById = new Map(this.deliveries.map((d) => [d.id, d]));
    this.deliveriesOf = group(this.deliveries, 'digest');
    this.parkedOf = group(rows.parked, 'digest');
    this.failedOf = new Map(rows.failed.map((f) => [f.digest, f]));
  }

  say(what) {
    this.complaints.push(what);
  }

  run() {
    for (const d of this.deliveries) this.byDisposition[d.disposition] = (this.byDisposition[d.disposition] ?? 0) + 1;
    for (const operation of this.book.operations.values()) {
      const row = this.operations.get(operation.id);
      if (operation.registers) this.registered(operation, row);
      else this.unregistered(operation, row);
      for (const callback of operation.callbacks) this.recorded(callback);
    }
    return this;
  }

  registered(operation, row) {
    const { id } = operation;
    if (!row) return this.say(`${id}: registered (${operation.created} × 201, ${operation.repeated} × 200) and not there`);
    if (operation.created > 1) this.say(`${id}: created ${operation.created} times`);
    if (operation.created === 0 && operation.lost === 0) this.say(`${id}: nobody was told 201`);
    const history = new History();
    const expectedNotices = [];
    const claims = new Map(); // key → delivery
    const outcomes = new Map(); // callback → every disposition that the model gives it
    const moves = new Map((this.transitions.get(row.id) ?? []).map((t) => [t.sequence, t]));
    this.applied += moves.size;
    let sequence = 0;
    for (const fact of this.audit.get(row.id) ?? []) {
      if (fact.sequence !== ++sequence) this.say(`${id}: fact ${fact.sequence} follows ${sequence - 1}`);
      const move = moves.get(fact.sequence);
      moves.delete(fact.sequence);
      if (fact.kind === 'accept') expectedNotices.push(`${fact.sequence} operation.accepted`);
      else if (fact.kind === 'delivery' || fact.kind === 'replay') this.fact({ operation, fact, move, history, claims, outcomes, expectedNotices });
      else this.say(`${id}: a fact of kind ${fact.kind} that nobody asked for`);
    }
    for (const move of moves.values()) this.say(`${id}: transition ${move.sequence} (${move.event}) has no fact`);
    if (row.sequence !== sequence) this.say(`${id}: sequence ${row.sequence}, ${sequence} facts`);
    if (row.state !== history.state || row.version !== history.version) {
      this.say(`${id}: ${row.state} version ${row.version}; its history gives ${history.state} version ${history.version}`);
    }
    this.beside(operation, row, history, expectedNotices);
    const known = this.referenceKnown(operation, row, outcomes);
    this.parkedNoMore(operation, known);
    this.answered(operation, history, claims, known);
  }

  // One callback's turn: what is on record is what the model makes of it.
  fact({ operation, fact, move, history, claims, outcomes, expectedNotices }) {
    const delivery = this.deliveryById.get(fact.delivery);
    const callback = delivery && this.book.callbacks.get(delivery.digest);
    const where = `${operation.id} fact ${fact.sequence}`;
    if (!delivery || !callback) return this.say(`${where}: the delivery ${fact.delivery} is not one that was sent`);
    if (callback.operation !== operation || delivery.provider !== operation.provider) return this.say(`${where}: a callback of ${callback.operation.id}`);
    if (!callback.counts) return this.say(`${where}: a callback that is ${callback.kind} has an effect`);
    if (fact.kind === 'replay' && callback.kind !== 'mended') return this.say(`${where}: nobody replayed a callback that is ${callback.kind}`);
    const waited = delivery.operation === null;
    const wanted = history.next(callback);
    outcomes.set(callback, [...(outcomes.get(callback) ?? []), wanted.disposition]);
    if (waited) {
      // On record as it was answered when it came; the claim and the transition tell what became of it.
      if (fact.kind === 'replay' ? delivery.disposition !== 'unmapped' : delivery.disposition !== 'parked' && delivery.disposition !== 'conflict') this.say(`${where}: waited as ${delivery.disposition}`);
    } else if (delivery.disposition !== wanted.disposition) {
      this.say(`${where}: ${delivery.disposition}, must be ${wanted.disposition} (${callback.body})`);
    }
    const told = move && `${move.event} ${move.from_state} → ${move.to_state} v${move.version} by ${move.actor_kind} ${move.delivery}`;
    const t = wanted.transition;
    const right = t && `${t.event} ${t.from} → ${t.to} v${history.version} by provider ${delivery.id}`;
    if (told !== right) this.say(`${where}: transition ${told}, must be ${right}`);
    if (t) expectedNotices.push(`${fact.sequence} operation.${t.to}`);
    if (wanted.opens) expectedNotices.push(`${fact.sequence} operation.review_opened`);

    if (wanted.disposition === 'duplicate' || wanted.disposition === 'conflict') {
      if (this.keys.has(delivery.id)) this.say(`${where}: a ${wanted.disposition} holds a key`);
      return;
    }
    claims.set(callback.key, delivery);
    const claim = this.keys.get(delivery.id);
    if (!claim) this.say(`${where}: ${wanted.disposition} and holds no key`);
    else if (claim.disposition !== wanted.disposition || claim.state !== wanted.state) {
      this.say(`${where}: the claim says ${claim.disposition} in ${claim.state}, must be ${wanted.disposition} in ${wanted.state}`);
    }
  }

  // Reviews and notifications that stand beside the state.
  beside(operation, row, history, expectedNotices) {
    const { id } = operation;
    const reviews = this.reviews.get(row.id) ?? [];
    const kinds = reviews.map((r) => r.kind).sort();
    const wanted = [...history.reviews.keys()].map((name) => name.split(' ')[0]).sort();
    if (`${kinds}` !== `${wanted}`) this.say(`${id}: reviews [${kinds}], must be [${wanted}]`);
    if (row.review_open !== wanted.length > 0) this.say(`${id}: review_open is ${row.review_open}`);
    const notices = (this.notifications.get(row.id) ?? []).map((n) => `${n.sequence} ${n.type}`).sort();
    if (`${notices}` !== `${expectedNotices.sort()}`) this.say(`${id}: notifications [${notices}], must be [${expectedNotices}]`);
    const conflicts = operation.callbacks.flatMap((c) => c.answers.filter((a) => a.status === 409));
    const counted = reviews.filter((r) => r.kind === 'conflict').reduce((sum, r) => sum + r.count, 0);
    const lost = operation.callbacks.reduce((sum, c) => sum + c.lost, 0);
    const parkedOnes = operation.when !== 'early' || operation.knownAs === 'learned'; // repeated while parked: counted there
    if (counted > conflicts.length + lost || (counted < conflicts.length && !parkedOnes)) {
      this.say(`${id}: ${counted} conflicts counted, ${conflicts.length} answered, ${lost} attempts without an answer`);
    }
  }

  // Whether callbacks find the operation by its reference. One that was applied, or says what is so or was, teaches it; one that
  // repeats or contradicts does not. (What a review would have been without the parked callbacks that it brought in, nobody knows.)
  referenceKnown(operation, row, outcomes) {
    const names = (this.aliases.get(row.id) ?? []).map((a) => `${a.provider} ${a.alias}`);
    const known = names.includes(`${operation.provider} ${operation.reference}`);
    if (names.length > (known ? 1 : 0)) this.say(`${operation.id}: is known as [${names}]`);
    const carriers = operation.callbacks.filter((c) => c.kind === 'good' && c.names === 'both');
    const told = new Set(carriers.flatMap((c) => outcomes.get(c) ?? []));
    const taught = ['applied', 'redundant', 'stale'].some((word) => told.has(word));
    if (operation.knownAs === 'reference' || taught) {
      if (!known) this.say(`${operation.id}: is not known as ${operation.reference}, which its ${taught ? 'callback taught' : 'registration said'}`);
    } else if (known && !told.has('review')) {
      this.say(`${operation.id}: is known as ${operation.reference}, which nothing taught but [${[...told]}]`);
    }
    return known;
  }

  parkedNoMore(operation, known) {
    for (const callback of operation.callbacks) {
      if (!known && callback.names === 'reference') continue;
      for (const p of this.parkedOf.get(callback.digest) ?? []) {
        this.say(`${operation.id} (registered ${operation.when}, ${operation.knownAs}): still ${p.disposition}: ${callback.body}`);
      }
    }
  }

  // What the senders were told agrees with the claim of the key.
  answered(operation, history, claims, known) {
    for (const [key, copies] of group(operation.callbacks.filter((c) => c.counts), 'key')) {
      if (!known && copies[0].names === 'reference') {
        this.waiting(operation, key, copies);
        continue;
      }
      const claim = history.claims.get(key);
      const holder = claims.get(key);
      const where = `${operation.id} key ${key}`;
      this.conflicts(where, copies);
      if (!claim || !holder) {
        this.say(`${where}: answered ${copies.reduce((sum, c) => sum + c.answers.length, 0)} times and not claimed`);
        continue;
      }
      const firsts = [];
      const texts = new Set();
      for (const callback of copies) {
        for (const a of callback.answers) {
          if (this.isTooEarly(callback, a)) continue;
          if (callback.content !== claim.content) {
            if (a.status !== 409 || a.disposition !== 'conflict') this.say(`${where}: other content answered ${a.status} ${a.disposition}`);
            continue;
          }
          const asParked = a.status === 202 && a.disposition === 'parked';
          if (!asParked && (a.status !== 200 || a.disposition !== claim.disposition || a.state !== claim.state || a.request !== operation.id)) {
            this.say(`${where}: answered ${a.status} ${a.text}; on record ${claim.disposition} in ${claim.state}`);
          }
          const waitedAs = this.deliveryById.get(holder.id)?.disposition;
          if (asParked && waitedAs !== 'parked' && !(callback.kind === 'mended' && waitedAs === 'unmapped')) this.say(`${where}: answered parked, recorded ${waitedAs}`);
          if (a.delivery !== holder.id) this.say(`${where}: answered with delivery ${a.delivery}, the claim is ${holder.id}'s`);
          if (!a.replayed) firsts.push(a);
          if (!asParked) texts.add(a.text);
        }
      }
      if (firsts.length > 1) this.say(`${where}: ${firsts.length} answers that are no replay: ${firsts.map((a) => a.text)}`);
      const attempts = copies.reduce((sum, c) => sum + c.lost, 0);
      // Of a replay the operator is told, not the sender.
      const replayed = this.deliveryById.get(holder.id)?.disposition === 'unmapped';
      if (replayed && firsts.length > 0) this.say(`${where}: decided by a replay, and answered as if it were new: ${firsts.map((a) => a.text)}`);
      if (firsts.length === 0 && attempts === 0 && !replayed) this.say(`${where}: every answer is a replay, and none was lost`);
      if (texts.size > 1) this.say(`${where}: ${texts.size} different answers: ${[...texts]}`);
    }
  }

  // Whether this was the answer to what could not be understood yet.
  isTooEarly(callback, answer) {
    return callback.kind === 'mended' && answer.disposition === 'unmapped' && this.deliveryById.get(answer.delivery)?.disposition === 'unmapped';
  }

  // Other content under a key is kept once, however often and in whatever bytes it came (contract section 4).
  conflicts(where, copies) {
    for (const [content, same] of group(copies, 'content')) {
      if (!same.some((c) => c.answers.some((a) => a.status === 409))) continue;
      const kept = same.flatMap((c) => this.deliveriesOf.get(c.digest) ?? []);
      if (kept.length === 1 && kept[0].disposition === 'conflict') continue;
      this.say(`${where}: the conflict ${content} is kept as [${kept.map((d) => d.disposition)}], must be kept once`);
    }
  }

  // Never registered: everything authentic waits, visibly.
  unregistered(operation, row) {
    if (row) return this.say(`${operation.id}: nobody registered it, and it is there`);
    const good = operation.callbacks.filter((c) => c.counts);
    for (const [key, copies] of group(good, 'key')) this.waiting(operation, key, copies);
  }

  // Nobody knows the name under which they came.
  waiting(operation, key, copies) {
    const where = `${operation.id} key ${key}`;
    this.conflicts(where, copies);
    const rows = copies.flatMap((c) => this.parkedOf.get(c.digest) ?? []);
    for (const callback of copies) {
      for (const a of callback.answers) {
        if (this.isTooEarly(callback, a)) continue;
        if (!rows.some((p) => p.id === a.delivery)) this.say(`${where}: answered ${a.status} with delivery ${a.delivery}, which does not wait`);
        if (!(a.status === 202 && a.disposition === 'parked') && a.status !== 409) this.say(`${where}: answered ${a.status} ${a.disposition}`);
      }
    }
  }

  // Every attempt that was answered is on record, and none that was not made.
  recorded(callback) {
    const rows = this.deliveriesOf.get(callback.digest) ?? [];
    const { answers, lost, kind } = callback;
    const where = `${callback.operation.id}: ${callback.body}`;
    const counted = `${answers.length} answers, ${lost} attempts without one, ${rows.length} deliveries`;
    const wrong = (wanted) => this.say(`${where}: ${counted}; ${wanted}`);
    if (kind === 'forged') {
      if (rows.length > 0 || answers.some((a) => a.status !== 401)) wrong('a forgery gets 401 and leaves nothing');
      return;
    }
    if (kind === 'mended') {
      if (this.failedOf.has(callback.digest)) wrong('must not be among the failed any more');
      if (rows.length < 1) wrong('must be on record');
      for (const a of answers) if (!this.deliveryById.has(a.delivery)) wrong(`${a.delivery} is not on record`);
      return;
    }
    if (kind !== 'good') {
      const failed = this.failedOf.get(callback.digest);
      const status = kind === 'unmapped' ? 202 : 422;
      if (answers.some((a) => a.status !== status)) wrong(`must be answered ${status}`);
      if (rows.length !== 1 || failed?.disposition !== kind || failed.delivery !== rows[0].id) return wrong('must be kept once, among the failed');
      if (failed.count < answers.length || failed.count > answers.length + lost) wrong(`counted ${failed.count} times`);
      return;
    }
    if (answers.some((a) => a.status === 409)) return; // kept once by key and content: `conflicts`
    const least = Math.min(answers.length, recordedMax + 1);
    // The bound is the key's: other spellings of the same content take their share of it.
    const copies = callback.operation.callbacks.filter((c) => c.kind === 'good' && c.key === callback.key && c.content === callback.content);
    const ofKey = copies.reduce((sum, c) => sum + (this.deliveriesOf.get(c.digest)?.length ?? 0), 0);
    if (rows.length > answers.length + lost || (rows.length < least && ofKey <= recordedMax)) wrong(`at least ${least} must be on record`);
    for (const a of answers) {
      if (!this.deliveryById.has(a.delivery)) this.say(`${where}: answered ${a.status} with delivery ${a.delivery}, which is not on record`);
    }
    const claim = rows.map((d) => this.keys.get(d.id)).find((k) => k !== undefined);
    const alone = callback.operation.callbacks.every((c) => c === callback || c.key !== callback.key);
    if (claim && alone && rows.every((d) => d.operation !== null)) {
      const attempts = claim.duplicates + 1;
      if (attempts < answers.length || attempts > answers.length + lost) wrong(`its key counts ${attempts}`);
    }
  }
}

export function judge(rows, book) {
  const { complaints, byDisposition, applied } = new Judgement(book, rows).run();
  return { complaints, byDisposition, applied };
}
