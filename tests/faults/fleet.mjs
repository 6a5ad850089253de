// A private PostgreSQL that syncs to disk, and two replicas of the real binary on ports of their own. Everything is local and
// ends with this process.
import { until } from '../support/cleanup.mjs';
import { Cluster, socketFile } from '../support/cluster.mjs';
import { FaultProxy } from '../support/fault_proxy.mjs';
import { exchange } from '../support/raw.mjs';
import { Recibo } from '../support/recibo.mjs';
import { judge } from './judge.mjs';
import { read } from './rows.mjs';

const silent = { add() {}, all: () => [], count: 0 };

// Two providers that also know operations by a reference of their own; notifications go to a port where nobody listens.
export function configure(config) {
  const { p1, p2 } = config.providers;
  for (const one of [p1, p2]) one.extract.reference = '/reference';
  config.providers = { p1, p2 };
  config.destinations.ledger.url = 'https://127.0.0.1:9/hooks';
  config.destinations.ledger.allow = ['127.0.0.0/8'];
  return config;
}

export class Fleet {
  // `proxied`: a proxy that can go wrong stands between each replica and the server.
  static async start({ proxied = false, cluster, settings = {} } = {}) {
    const fleet = new Fleet();
    fleet.ownsCluster = cluster === undefined;
    fleet.cluster = cluster ?? (await Cluster.start({ durable: true, settings }));
    fleet.proxies = [];
    if (proxied) for (let i = 0; i < 2; ++i) fleet.proxies.push(await FaultProxy.start({ upstream: { path: socketFile(fleet.cluster.socketFolder) } }));
    const folders = fleet.proxies.map((proxy) => proxy.folder);
    fleet.url = (i) => fleet.cluster.url(fleet.recibo.database, { user: 'recibo_service', folder: folders[i] });
    fleet.recibo = await Recibo.create(fleet.cluster, {
      configure,
      exchanges: silent,
      databaseUrl: (database) => fleet.cluster.url(database, { user: 'recibo_service', folder: folders[0] }),
    });
    fleet.replicas = [fleet.recibo.service];
    fleet.replicas[1] = await fleet.serve(1);
    await fleet.ready();
    return fleet;
  }

  serve(i) {
    return this.recibo.serve({ env: { RECIBO_DATABASE_URL: this.url(i) } });
  }

  // kill -9, and a new one in its place.
  async kill(i) {
    await this.replicas[i].kill();
  }

  async restart(i) {
    this.replicas[i] = await this.serve(i);
  }

  async readyz(i) {
    return exchange(this.replicas[i].callbacks, { method: 'GET', target: '/readyz' });
  }

  async ready({ timeout = 20_000 } = {}) {
    for (const i of [0, 1]) await until(`replica ${i} is ready`, async () => (await this.readyz(i)).status === 200, { timeout });
  }

  // Complaints about a round, with what became of its callbacks.
  async judge(book) {
    const client = await this.cluster.client(this.recibo.database);
    try {
      return judge(await read(client, book), book);
    } finally {
      await client.end();
    }
  }

  sql(text, values) {
    return this.recibo.sql(text, values);
  }

  // What must be true at the end, whatever happened: the evidence verifies, no replica ended by itself, both end with 0.
  async finish() {
    const complaints = [];
    for (const proxy of this.proxies) await proxy.heal();
    const audit = await this.recibo.run(['audit', 'verify'], { timeout: 600_000 });
    if (audit.code !== 0) complaints.push(`recibo audit verify ended with ${audit.code}: ${`${audit.stdout}${audit.stderr}`.slice(-2_000)}`);
    for (const [i, service] of this.replicas.entries()) {
      if (!service.running) complaints.push(`replica ${i} ended by itself: ${JSON.stringify(service.exit)}\n${service.tail()}`);
      else {
        const ended = await service.stop();
        if (ended.code !== 0) complaints.push(`replica ${i} ended with ${ended.code ?? ended.signal} after SIGTERM\n${service.tail()}`);
      }
    }
    const late = this.recibo.services.flatMap((s) => s.lines).filter(({ record }) => record?.msg === 'parked callbacks were met late');
    if (late.length > 0) complaints.push(`${late.length} times only the periodic re-match met what was parked: ${late[0].text}`);
    complaints.push(...new Set(this.recibo.logComplaints()));
    return { complaints, audit: audit.stdout.trim().split('\n').at(-1) };
  }

  async close() {
    await this.recibo?.close();
    for (const proxy of this.proxies) await proxy.stop();
    if (this.ownsCluster) await this.cluster.destroy();
  }
}
