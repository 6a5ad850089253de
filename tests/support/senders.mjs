// Senders of callbacks at a steady rate over kept connections, as a provider's delivery service has them: each callback is resent
// until it is answered for good, and whatever a sender would call an error is noted.
import { sleep } from './cleanup.mjs';
import { freshId } from './random.mjs';
import { RawConnection } from './raw.mjs';
import { callbackBody, isSendAgain } from './recibo.mjs';

export class Senders {
  #free = [];
  #open = new Set();
  #going = new Set();

  // `perSecond` callbacks of `provider` to `port`; each operation is new, and the provider's policy registers it.
  constructor({ recibo, port, provider, perSecond }) {
    Object.assign(this, { recibo, port, provider, perSecond });
    this.done = []; // {id, answers}: what was answered for good, the first time and when it was sent again
    this.refused = 0; // answers that ask to send again
    this.errors = []; // what must not be: no answer, another status, a malformed one
    this.sent = 0;
  }

  // Sends until `stop` is called.
  start() {
    this.running = true;
    this.loop = (async () => {
      const since = Date.now();
      while (this.running) {
        const due = Math.floor(((Date.now() - since) * this.perSecond) / 1000);
        while (this.sent < due) {
          this.sent += 1;
          // Every tenth comes twice, as providers do.
          this.#go(this.deliver(freshId('lb'), this.sent % 10 === 0 ? 2 : 1));
        }
        await sleep(5);
      }
    })();
    return this;
  }

  #go(task) {
    this.#going.add(task);
    task.finally(() => this.#going.delete(task));
  }

  // Ends when every callback has been answered for good, or cannot be any more.
  async stop() {
    if (!this.running) return;
    this.running = false;
    const end = Date.now() + 20_000;
    this.givesUp = () => Date.now() > end;
    await this.loop;
    await Promise.all(this.#going);
    for (const connection of this.#open) connection.destroy();
  }

  async deliver(id, times = 1) {
    const body = callbackBody(id, `evt-${id}`);
    const answers = [];
    while (answers.length < times) {
      if (this.givesUp?.()) return;
      const answer = await this.attempt(body);
      if (answer === null || isSendAgain(answer)) {
        this.refused += answer === null ? 0 : 1;
        await sleep(200);
      } else {
        answers.push(answer);
      }
    }
    this.done.push({ id, answers });
  }

  // One request; null where a sender sees an error. A connection that the other side has closed before is not used: every
  // client looks.
  async attempt(body) {
    let connection = this.#free.pop();
    try {
      if (!connection || connection.isClosed) connection = await this.connect();
      connection.write(this.recibo.bytes(this.provider, body));
      const answer = await connection.response({ timeout: 40_000 });
      this.recibo.exchanges.add('callbacks', 'POST', `/callbacks/${this.provider}`, answer);
      if (answer.header('Connection')?.toLowerCase() === 'close') this.#drop(connection);
      else this.#free.push(connection);
      if (answer.status !== 200 && !isSendAgain(answer)) this.errors.push(`${answer.status} ${answer.text.slice(0, 200)}`);
      return answer;
    } catch (error) {
      if (connection) this.#drop(connection);
      this.errors.push(error.message);
      return null;
    }
  }

  async connect() {
    const connection = await RawConnection.open(this.port);
    this.#open.add(connection);
    return connection;
  }

  #drop(connection) {
    this.#open.delete(connection);
    connection.destroy();
  }
}
