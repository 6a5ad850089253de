// Senders: real sockets on loopback, kept open, each attempt signed afresh, resent until it has an answer that is not "send
// again". How often and how long is bounded; what stays open after that is a complaint.
import { sleep } from '../support/cleanup.mjs';
import { RawConnection, requestBytes } from '../support/raw.mjs';
import { isSendAgain } from '../support/recibo.mjs';
import { sign } from '../support/sign.mjs';

const attemptLimitMs = 15_000;

export class Load {
  #free = new Map(); // port → idle connections
  #open = new Set();

  // `answerWithinMs`: later than this is a complaint, whatever the answer is.
  constructor({ fleet, book, random, patienceMs = 60_000, answerWithinMs = 10_500 }) {
    Object.assign(this, { fleet, book, random, patienceMs, answerWithinMs });
  }

  // One request over a connection that may have served others; null where no answer came.
  async #exchange(port, bytes, method) {
    const free = this.#free.get(port) ?? [];
    let connection = free.pop();
    const since = Date.now();
    try {
      if (!connection || connection.isClosed) {
        connection = await RawConnection.open(port, { timeout: 2_000 });
        this.#open.add(connection);
      }
      connection.write(bytes);
      const answer = await connection.response({ method, timeout: attemptLimitMs });
      if (answer.header('Connection')?.toLowerCase() === 'close') this.#drop(connection);
      else {
        free.push(connection);
        this.#free.set(port, free);
      }
      return { answer, ms: Date.now() - since };
    } catch (error) {
      if (connection) this.#drop(connection);
      const ms = Date.now() - since;
      // A dead replica closes; one that says nothing at all hangs.
      if (ms >= attemptLimitMs) this.book.complain(`no answer within ${ms} ms (${error.message})`);
      else if (/not a|without a proper|two framings|bare line/.test(error.message)) this.book.complain(`a malformed answer: ${error.message}`);
      return { answer: null, ms };
    }
  }

  #drop(connection) {
    this.#open.delete(connection);
    connection.destroy();
  }

  async #attempt(listener, request, replica) {
    const service = replica ?? this.random.pick(this.fleet.replicas);
    this.book.attempts += 1;
    if (!service.running) return this.#noted({ answer: null, ms: 0 });
    return this.#noted(await this.#exchange(service[listener], requestBytes(request), request.method ?? 'POST'));
  }

  #noted({ answer, ms }) {
    this.book.slowestMs = Math.max(this.book.slowestMs, ms);
    if (answer === null) this.book.unanswered += 1;
    else {
      if (ms > this.answerWithinMs) this.book.complain(`answered ${answer.status} after ${ms} ms`);
      if (answer.status === 503 || answer.status === 429) {
        this.book.refused += 1;
        if (!isSendAgain(answer)) this.book.complain(`${answer.status} without Retry-After`);
      }
    }
    return answer;
  }

  // A pause before the next attempt, longer with each; Retry-After alone would make an outage of a test its whole length.
  #pause(tries) {
    const most = Math.min(100 * 2 ** tries, 800);
    return sleep(most / 2 + this.random.int(most / 2));
  }

  // Sends a callback once; returns the answer, null where none came or it asks to send again.
  async send(callback, replica) {
    const { provider } = callback.operation;
    const { verify } = this.fleet.recibo.config.providers[provider];
    const secret = callback.kind === 'forged' ? 'not-the-secret' : verify.secrets[0];
    const signed = sign(verify, { secret, body: callback.body });
    const request = { target: `/callbacks/${provider}`, headers: [['Content-Type', 'application/json'], ...signed], body: callback.body };
    const answer = await this.#attempt('callbacks', request, replica);
    if (answer === null || answer.status === 503 || answer.status === 429) {
      callback.lost += 1;
      return null;
    }
    callback.answers.push(this.#said(callback, answer));
    return answer;
  }

  #said(callback, answer) {
    const out = { status: answer.status, text: answer.text, replayed: answer.replayed };
    try {
      const { disposition, code, delivery_id: delivery, state, request_id: request } = answer.json;
      Object.assign(out, { disposition: disposition ?? code, delivery, state, request });
    } catch {
      this.book.complain(`an answer that is no JSON: ${answer.status} ${answer.text.slice(0, 200)}`);
    }
    if (answer.status >= 500) this.book.complain(`answered ${answer.status}: ${answer.text.slice(0, 200)}`);
    return out;
  }

  // Sends it until it is answered for good.
  async deliver(callback, replica) {
    const end = Date.now() + this.patienceMs;
    for (let tries = 0; ; ++tries) {
      const answer = await this.send(callback, replica);
      if (answer !== null) return answer;
      if (Date.now() > end) {
        this.book.complain(`not answered for good within ${this.patienceMs} ms: ${callback.body}`);
        return null;
      }
      await this.#pause(tries);
    }
  }

  // Registers an operation, until it is there.
  async register(operation, replica) {
    const { recibo } = this.fleet;
    const body = { request_id: operation.id, provider: operation.provider, amount: '19.99', currency: 'EUR' };
    if (operation.knownAs === 'reference') body.reference = operation.reference;
    const headers = [['Authorization', `Bearer ${recibo.tokens.checkout}`], ['Content-Type', 'application/json']];
    const request = { target: '/v1/operations', headers, body: JSON.stringify(body) };
    const end = Date.now() + this.patienceMs;
    for (let tries = 0; ; ++tries) {
      const answer = await this.#attempt('api', request, replica);
      if (answer?.status === 201) operation.created += 1;
      else if (answer?.status === 200 && answer.replayed) operation.repeated += 1;
      else if (answer !== null && answer.status !== 503 && answer.status !== 429) {
        this.book.complain(`registration of ${operation.id} answered ${answer.status}: ${answer.text.slice(0, 200)}`);
        return;
      } else {
        operation.lost += 1;
        if (Date.now() > end) return this.book.complain(`${operation.id} is not registered within ${this.patienceMs} ms`);
        await this.#pause(tries);
        continue;
      }
      return;
    }
  }

  // Runs tasks, at most `width` at a time, in their order.
  async drain(tasks, width) {
    let at = 0;
    const worker = async () => {
      while (at < tasks.length) await tasks[at++]();
    };
    await Promise.all(Array.from({ length: Math.min(width, tasks.length) }, worker));
  }

  // Runs tasks at random instants of the next `ms` milliseconds.
  async spread(tasks, ms) {
    await Promise.all(
      tasks.map(async (task) => {
        await sleep(this.random.int(ms));
        await task();
      }),
    );
  }

  close() {
    for (const connection of this.#open) connection.destroy();
    this.#open.clear();
    this.#free.clear();
  }
}
