// Stands between a balancer and a replica and loses the race of keep-alive: of the requests that arrive on a connection which has
// served one before, every tenth finds it closed, as by a server whose idle time ran out in that moment.
import { connect, createServer } from 'node:net';
import { atExit } from './cleanup.mjs';

export class ClosingProxy {
  cut = 0; // connections closed so
  #again = 0; // requests on a connection that has served one

  static async start(upstream) {
    const one = new ClosingProxy();
    one.sockets = new Set();
    one.server = createServer((from) => one.#pass(from, upstream));
    await new Promise((resolve) => one.server.listen(0, '127.0.0.1', resolve));
    one.port = one.server.address().port;
    atExit(() => one.stop());
    return one;
  }

  #pass(from, upstream) {
    const to = connect({ host: '127.0.0.1', port: upstream, noDelay: true });
    let answered = false;
    for (const socket of [from, to]) {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.sockets.delete(socket);
        from.destroy();
        to.destroy();
      });
    }
    from.on('data', (chunk) => {
      if (!answered) return to.write(chunk);
      this.#again += 1;
      if (this.#again % 10 !== 0) {
        answered = false;
        return to.write(chunk);
      }
      this.cut += 1;
      // Half of them by a reset, which unread bytes cause.
      return this.cut % 2 === 0 ? from.resetAndDestroy() : from.end();
    });
    to.on('data', (chunk) => {
      answered = true;
      from.write(chunk);
    });
    to.on('end', () => from.end());
  }

  stop() {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}
