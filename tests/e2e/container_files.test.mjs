// What stands in docker/ agrees with the rest: the Compose file exposes callbacks alone and sets what the configuration asks for, and the
// image is built from packages that ./dev names. The image itself is tried by `./dev image`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { sourceFolder } from '../support/process.mjs';

const text = (...path) => readFileSync(join(sourceFolder, ...path), 'utf8');
const compose = parse(text('docker', 'compose.yaml'), { merge: true });
const { services } = compose;
const dockerfile = text('docker', 'Dockerfile');

test('only the balancer is public, and it reaches no database', () => {
  for (const [name, { ports = [] }] of Object.entries(services)) {
    if (name === 'haproxy') continue;
    for (const port of ports) assert.match(port, /^127\.0\.0\.1:/, `${name} publishes ${port}`);
  }
  assert.deepEqual(services.haproxy.ports, ['80:8080']);
  assert.deepEqual(services.haproxy.networks, ['edge']);
  assert.deepEqual(services.postgres.networks, ['inside']);
  assert.equal(compose.networks.inside.internal, true);
});

test('every service that is named is there, and so are networks, volumes and files', () => {
  for (const [name, service] of Object.entries(services)) {
    for (const other of Object.keys(service.depends_on ?? {})) assert.ok(services[other], `${name} depends on ${other}`);
    for (const network of service.networks) assert.ok(network in compose.networks, network);
    for (const volume of service.volumes ?? []) {
      const [from] = volume.split(':');
      assert.ok(from.startsWith('.') ? text('docker', from === '../config' ? '../config/recibo.yaml' : from) : from in compose.volumes, volume);
    }
  }
});

test('the replicas get every variable that the configuration needs', () => {
  const config = text('config', 'recibo.yaml').replace(/^\s*#.*$/gm, '');
  const needed = [...config.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name);
  assert.ok(needed.includes('RECIBO_DATABASE_URL'));
  for (const name of ['recibo-1', 'recibo-2', 'migrate']) {
    for (const variable of needed) assert.ok(services[name].environment[variable], `${name} has no ${variable}`);
  }
  assert.equal(services['recibo-1'].environment.RECIBO_OWNER_URL, undefined, 'the owner migrates, and does nothing else');
});

test('no secret has a default', () => {
  assert.doesNotMatch(text('docker', 'compose.yaml').replaceAll('RECIBO_IMAGE:-', ''), /\$\{\w+(:-|\}|-)/);
});

test('replicas run without privilege, and have more time to end than a drain takes', () => {
  for (const name of ['recibo-1', 'recibo-2']) {
    const { read_only: readOnly, cap_drop: dropped, stop_grace_period: grace } = services[name];
    assert.deepEqual([readOnly, dropped], [true, ['ALL']]);
    assert.ok(parseInt(grace, 10) > 30);
  }
});

test('the image is built from packages that ./dev names', () => {
  const [, list] = /--no-install-recommends (g\+\+[\s\S]*?)\n &&|$/.exec(dockerfile);
  const packages = list.replaceAll('\\', ' ').split(/\s+/).filter(Boolean);
  assert.ok(packages.length > 10);
  for (const name of packages) assert.ok(text('dev').includes(name), `${name} is not among ./dev's packages`);
});
