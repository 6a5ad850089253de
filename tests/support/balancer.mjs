// HAProxy and nginx in front of replicas, with the very files of docker/: only addresses are put in, and where nginx logs. They run
// in the foreground on loopback, die with this process (setpriv --pdeathsig), and touch nothing of an installed service.
import { execFileSync, spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { atExit, endSync, until } from './cleanup.mjs';
import { sourceFolder } from './process.mjs';
import { exchange } from './raw.mjs';

// A port that was free a moment ago. What restarts has to come back where it was: so it is none of those that the kernel gives to
// outgoing connections and to listeners that ask for any.
export async function freePort() {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

function program(name) {
  for (const folder of [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin']) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // not here
    }
  }
  throw new Error(`${name} is not installed`);
}

const shipped = (name) => readFileSync(join(sourceFolder, 'docker', name), 'utf8');

// Replaces what must stand in the file exactly once.
function put(text, from, to) {
  if (text.split(from).length !== 2) throw new Error(`${JSON.stringify(from)} does not stand there once`);
  return text.replace(from, () => to);
}

const kinds = {
  haproxy({ port, replicas }) {
    const { username, uid } = userInfo();
    // Whoever is not root can become nobody else.
    const whom = uid === 0 ? {} : { RECIBO_BALANCER_USER: username, RECIBO_BALANCER_GROUP: execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim() };
    return {
      file: shipped('haproxy.cfg'),
      args: (file) => ['-db', '-f', file],
      env: { RECIBO_LISTEN: `127.0.0.1:${port}`, RECIBO_1: `127.0.0.1:${replicas[0]}`, RECIBO_2: `127.0.0.1:${replicas[1]}`, ...whom },
    };
  },

  nginx({ port, replicas, folder }) {
    let site = put(shipped('nginx.conf'), 'listen 80 default_server', `listen 127.0.0.1:${port} default_server`);
    site = put(site, 'server 127.0.0.1:8080 ', `server 127.0.0.1:${replicas[0]} `);
    site = put(site, 'server 127.0.0.1:8180 ', `server 127.0.0.1:${replicas[1]} `);
    site = put(site, 'access_log /var/log/nginx/recibo.log recibo', `access_log ${folder}/access.log recibo`);
    writeFileSync(join(folder, 'site.conf'), site);
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ');
    const file = `daemon off; pid ${folder}/nginx.pid; worker_processes 2; events { worker_connections 1024; }
      http { ${temporary} include ${folder}/site.conf; }`;
    return { file, args: (path) => ['-e', 'stderr', '-p', folder, '-c', path], env: {} };
  },
};

export class Balancer {
  // `kind`: haproxy or nginx. `replicas`: the ports of two callback listeners. Returns when it answers.
  static async start(kind, replicas) {
    const one = new Balancer();
    one.kind = kind;
    one.port = await freePort();
    one.folder = mkdtempSync(join(tmpdir(), 'rcb-lb-'));
    chmodSync(one.folder, 0o755);
    one.said = '';
    const { file, args, env } = kinds[kind]({ port: one.port, replicas, folder: one.folder });
    const path = join(one.folder, kind === 'haproxy' ? 'haproxy.cfg' : 'nginx.conf');
    writeFileSync(path, file);
    one.child = spawn('setpriv', ['--pdeathsig=KILL', program(kind), ...args(path)], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    one.ended = new Promise((resolve) => one.child.once('close', resolve));
    for (const stream of ['stdout', 'stderr']) one.child[stream].setEncoding('utf8').on('data', (text) => (one.said += text));
    one.forget = atExit(() => one.#end());
    await until(`${kind} answers`, async () => {
      if (one.child.exitCode !== null) throw new Error(`${kind} ended: ${one.log}`);
      return (await exchange(one.port, { method: 'GET', target: '/' })).status === 404;
    });
    return one;
  }

  // What it said and logged, for messages of tests.
  get log() {
    const file = join(this.folder, 'access.log');
    return this.said + (existsSync(file) ? readFileSync(file, 'utf8') : '');
  }

  // nginx's workers outlive a master that is killed, so that it is asked first.
  #end() {
    endSync(this.child.pid, this.kind === 'haproxy' ? 'SIGUSR1' : 'SIGTERM', 2_000);
    rmSync(this.folder, { recursive: true, force: true });
  }

  async stop() {
    this.child.kill('SIGTERM');
    await this.ended;
    this.forget();
    this.#end();
  }
}
