// A destination that costs next to nothing: takes notifications on a thread of its own, answers 204, and counts each event ID. As
// a tarpit it takes connections and requests, and never answers.
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

export class Sink {
  #worker;
  #waiting = new Map();
  #asked = 0;

  static async start({ tarpit = false } = {}) {
    const sink = new Sink();
    sink.#worker = new Worker(fileURLToPath(import.meta.url), { workerData: { tarpit } });
    sink.#worker.unref();
    sink.port = await new Promise((resolve, reject) => {
      sink.#worker.once('message', ({ port }) => resolve(port));
      sink.#worker.once('error', reject);
    });
    sink.#worker.on('message', ({ number, answer }) => {
      sink.#waiting.get(number)?.(answer);
      sink.#waiting.delete(number);
    });
    return sink;
  }

  get url() {
    return `http://127.0.0.1:${this.port}/hooks`;
  }

  #ask(what) {
    this.#asked += 1;
    const number = this.#asked;
    return new Promise((resolve) => {
      this.#waiting.set(number, resolve);
      this.#worker.postMessage({ number, what });
    });
  }

  // {requests, distinct, last}: how many came, how many of them different, and when the last one did (ms).
  count() {
    return this.#ask('count');
  }

  // The event IDs and how often each came; and forgets them.
  take() {
    return this.#ask('take');
  }

  // Milliseconds from the fact to its notification, sorted, since the last time.
  lags() {
    return this.#ask('lags');
  }

  stop() {
    return this.#worker.terminate();
  }
}

function serve({ tarpit }) {
  let ids = new Map();
  let lags = [];
  let requests = 0;
  let last = 0;
  const done = Buffer.from('HTTP/1.1 204 No Content\r\n\r\n');
  const server = createServer({ noDelay: true }, (socket) => {
    let kept = '';
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      if (tarpit) return;
      kept += bytes.toString('latin1');
      for (;;) {
        const end = kept.indexOf('\r\n\r\n');
        if (end < 0) return;
        const length = Number(/content-length: *(\d+)/i.exec(kept.slice(0, end))?.[1] ?? 0);
        if (kept.length < end + 4 + length) return;
        const id = /webhook-id: *(\S+)/i.exec(kept.slice(0, end))?.[1];
        const body = kept.slice(end + 4, end + 4 + length);
        kept = kept.slice(end + 4 + length);
        ids.set(id, (ids.get(id) ?? 0) + 1);
        requests += 1;
        last = Date.now();
        const at = /"timestamp":"([^"]+)"/.exec(body)?.[1];
        if (at) lags.push(last - Date.parse(at));
        socket.write(done);
      }
    });
  });
  const answers = {
    count: () => ({ requests, distinct: ids.size, last }),
    take: () => {
      const out = ids;
      ids = new Map();
      requests = 0;
      return out;
    },
    lags: () => {
      const out = lags.sort((a, b) => a - b);
      lags = [];
      return out;
    },
  };
  parentPort.on('message', ({ number, what }) => parentPort.postMessage({ number, answer: answers[what]() }));
  server.listen(0, '127.0.0.1', () => parentPort.postMessage({ port: server.address().port }));
}

if (!isMainThread) serve(workerData);
