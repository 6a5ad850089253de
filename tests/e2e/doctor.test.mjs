// recibo doctor: what an operator and a container's health check are told, and by which exit code.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { run } from '../support/process.mjs';
import { Stage } from '../support/recibo.mjs';

const stage = await Stage.begin();
const { recibo } = stage;
const output = ({ stdout, stderr }) => `${stdout}${stderr}`;
const url = (listener = 'callbacks') => `http://127.0.0.1:${recibo.service[listener]}`;
const checks = (result) => Object.fromEntries(JSON.parse(result.stdout).checks.map(({ check, fine }) => [check, fine]));

test('everything is there', async () => {
  await until('ready', async () => (await recibo.ready()).status === 200);
  const shown = await recibo.run(['doctor']);
  assert.equal(shown.code, 0, output(shown));
  for (const word of ['configuration', 'database', 'schema', 'partitions', 'clock']) assert.match(shown.stdout, new RegExp(`^fine +${word}\\b`, 'm'));
  const json = await recibo.run(['doctor', '--json']);
  assert.equal(JSON.parse(json.stdout).fine, true);
  assert.deepEqual(checks(json), { configuration: true, database: true, schema: true, partitions: true, clock: true });
});

test('a configuration that is wrong is 2, and each problem is named', async () => {
  const file = recibo.write({ ...recibo.config, limits: { body: 'much', header: 'more' } }, `${recibo.folder}/wrong.yaml`);
  const result = await recibo.run(['doctor', '--config', file]);
  assert.equal(result.code, 2, output(result));
  assert.equal(result.stdout.match(/^WRONG +configuration .*wrong\.yaml:\d+:\d+/gm)?.length, 2, result.stdout);
});

test('the database away is 3, and no URL is printed', async () => {
  const away = { RECIBO_DATABASE_URL: 'postgresql://recibo_service:hidden-word@/x?host=/nonexistent' };
  const result = await recibo.run(['doctor'], { env: away });
  assert.equal(result.code, 3, output(result));
  assert.match(result.stdout, /^WRONG +database +database_away/m);
  assert.equal(output(result).includes('hidden-word'), false);
});

test('a schema that was never made is 1, and what to do is said', async () => {
  const database = await stage.cluster.createDatabase();
  const result = await recibo.run(['doctor'], { env: { RECIBO_DATABASE_URL: stage.cluster.url(database, { user: 'recibo' }) } });
  assert.equal(result.code, 1, output(result));
  assert.match(result.stdout, /^WRONG +schema .*recibo migrate/m);
});

test('what difference of the clocks is borne follows from the smallest tolerance', async () => {
  const strict = structuredClone(recibo.config);
  for (const one of Object.values(strict.providers)) if (one.verify.tolerance) one.verify.tolerance = '1s';
  const file = recibo.write(strict, `${recibo.folder}/strict.yaml`);
  const fine = await recibo.run(['doctor', '--config', file]);
  assert.match(fine.stdout, /250 ms are borne/);
});

test('--live and --ready ask an instance that runs', async () => {
  for (const listener of ['callbacks', 'api']) {
    for (const flag of ['--live', '--ready']) {
      const result = await run(['doctor', flag, url(listener)], { env: {} });
      assert.equal(result.code, 0, `without a configuration: ${output(result)}`);
      assert.match(result.stdout, /^200 /);
    }
  }
  assert.equal((await run(['doctor', '--ready', `${url()}/readyz`])).code, 0, 'a path of its own');
  assert.equal((await run(['doctor', '--ready', `${url()}/nothing`])).code, 1);
  const json = await run(['doctor', '--ready', url(), '--json']);
  assert.equal(JSON.parse(json.stdout).status, 'ready');
});

test('not ready is 1, and the reasons are shown', async () => {
  const own = await stage.fresh();
  await own.sql('ALTER DATABASE ' + own.database + ' SET default_transaction_read_only = on');
  await own.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND usename = 'recibo_service'`, [own.database]);
  await until('unready', async () => (await own.ready()).status === 503);
  const result = await run(['doctor', '--ready', `http://127.0.0.1:${own.service.callbacks}`]);
  assert.equal(result.code, 1, output(result));
  assert.match(result.stdout, /^503 .*"reasons":\["/);
  assert.equal((await run(['doctor', '--live', `http://127.0.0.1:${own.service.callbacks}`])).code, 0, 'live it is');
  await own.close();
});

test('nobody there is 3, and soon', async () => {
  const closed = await run(['doctor', '--ready', 'http://127.0.0.1:9']);
  assert.equal(closed.code, 3, output(closed));
  const silent = createServer(() => {});
  await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const since = Date.now();
  const waited = await run(['doctor', '--live', `http://127.0.0.1:${silent.address().port}`]);
  silent.close();
  assert.equal(waited.code, 3, output(waited));
  assert.ok(Date.now() - since < 8_000);
});

test('the callbacks listener of the configuration is asked by default', async () => {
  const result = await recibo.run(['doctor', '--ready']);
  assert.equal(result.code, 2, 'a port that nobody knows');
  assert.match(result.stderr, /port 0/);
  const config = structuredClone(recibo.config);
  config.listen.callbacks = { address: '0.0.0.0', port: recibo.service.callbacks };
  const file = recibo.write(config, `${recibo.folder}/port.yaml`);
  const asked = await recibo.run(['doctor', '--ready', '--config', file]);
  assert.equal(asked.code, 0, output(asked));
});

test('wrong use is 2', async () => {
  for (const args of [['doctor', '--live', '--ready'], ['doctor', url()], ['doctor', '--ready', 'ftp://x'], ['doctor', '--ready', '127.0.0.1']]) {
    const result = await recibo.run(args);
    assert.equal(result.code, 2, `${args.join(' ')}: ${output(result)}`);
  }
});

stage.ends();
