// A provider's status endpoint: keeps what it was asked, and answers as it is told.
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { atExit } from './cleanup.mjs';

export class StatusServer {
  #server;
  #sockets = new Set();

  constructor() {
    this.asked = []; // in the order of arrival: {at, method, url, id, headers}; `id` is the decoded last segment of the path
    this.says = new Map(); // id → what is answered
    this.answer = (one) => this.says.get(one.id) ?? 404;
    this.open = 0;
    this.mostOpen = 0;
  }

  // `tls`: {key, cert}. An answer is a status, an object that becomes JSON, or {status, headers, body, after}; a list is used up
  // from the front, and its last element stays.
  static async start(tls) {
    const one = new StatusServer();
    const take = (request, response) => one.#take(request, response);
    one.#server = tls ? createTlsServer(tls, take) : createServer(take);
    one.#server.on(tls ? 'secureConnection' : 'connection', (socket) => {
      one.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => one.#sockets.delete(socket));
    });
    await new Promise((resolve) => one.#server.listen(0, '127.0.0.1', resolve));
    one.#server.unref();
    one.port = one.#server.address().port;
    atExit(() => one.stop());
    return one;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  of(id) {
    return this.asked.filter((one) => one.id === id);
  }

  #take(request, response) {
    this.open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    response.on('close', () => { this.open -= 1; });
    const id = decodeURIComponent(request.url.split('?')[0].split('/').pop());
    const one = { at: Date.now(), method: request.method, url: request.url, id, headers: request.headers };
    this.asked.push(one);
    let said = this.answer(one);
    if (Array.isArray(said)) said = said.length > 1 ? said.shift() : said[0];
    if (typeof said === 'number') said = { status: said };
    const shaped = 'status' in said && Number.isInteger(said.status);
    const { status = 200, headers = {}, body = '', after = 0 } = shaped ? said : { body: JSON.stringify(said), headers: { 'content-type': 'application/json' } };
    if (after === Infinity) return; // never
    setTimeout(() => {
      if (response.destroyed) return;
      response.writeHead(status, headers);
      response.end(body);
    }, after);
  }

  stop() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
