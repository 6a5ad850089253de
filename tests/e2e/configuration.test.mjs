// Configuration: errors with their place, secrets in documented forms, reloads that are all or nothing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { likeB0 } from '../support/bodies.mjs';
import { until } from '../support/cleanup.mjs';
import { run } from '../support/process.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody, secrets } from '../support/recibo.mjs';

const stage = await Stage.begin();
const { recibo } = stage;
const other = join(recibo.folder, 'other.yaml');

// A copy of the configuration with a change.
function changed(change) {
  const config = structuredClone(recibo.config);
  change(config);
  return config;
}

const check = (config) => recibo.run(['check', '--config', recibo.write(config, other)]);
const output = ({ stdout, stderr }) => `${stdout}${stderr}`;

// Exit 2, and a line that names file:line:column and what it is about.
function refusedAt(result, about, hint) {
  assert.equal(result.code, 2, `${hint}: ${output(result)}`);
  const line = output(result).split('\n').find((one) => /other\.yaml:\d+:\d+/.test(one) && about.test(one));
  assert.ok(line, `${hint}: no line with its place about ${about}:\n${output(result)}`);
  return line;
}

test('check says that a good configuration is good', async () => {
  const result = await recibo.run(['check']);
  assert.equal(result.code, 0, output(result));
  const shipped = await run(['check', '--config', 'config/recibo.yaml'], { env: recibo.env({ RECIBO_CONFIG: '' }) });
  assert.ok([0, 2].includes(shipped.code), output(shipped));
});

test('check names every problem with file, line and column', async () => {
  const text = [
    'listen:', //                          1
    '  callbacks: {address: 127.0.0.1, port: eighty}', // 2
    '  api: {address: 127.0.0.1, port: 0}', // 3
    'database: {url: "postgresql:///x", pool: 0}', // 4
    'colour: red', //                      5
    'drain: {delay: 5s, delay: 6s}', //    6
    'log: {level: loud}', //               7
  ].join('\n');
  const result = await check(text);
  assert.equal(result.code, 2);
  for (const line of [2, 4, 5, 6, 7]) assert.match(output(result), new RegExp(`other\\.yaml:${line}:\\d+`), `line ${line}:\n${output(result)}`);
  const serve = await recibo.run(['serve', '--config', other], { timeout: 10_000 });
  assert.equal(serve.code, 2);
});

test('a port that is taken is named, and the service does not start', async () => {
  recibo.write(changed((config) => { config.listen.api = { address: '127.0.0.1', port: recibo.service.api }; config.listen.callbacks.port = 0; }), other);
  const serve = await recibo.run(['serve', '--config', other], { timeout: 10_000 });
  assert.equal(serve.code, 2, output(serve));
  assert.match(output(serve), new RegExp(`listen\\.api, 127\\.0\\.0\\.1 port ${recibo.service.api}: Address already in use`));
});

test('S18 a provider without a secret, or with an empty one, is refused with its place', async () => {
  const cases = {
    'an empty secret': (config) => { config.providers.p1.verify.secrets = ['']; },
    'a blank secret': (config) => { config.providers.p1.verify.secrets = ['  ']; },
    'no secrets': (config) => { delete config.providers.p1.verify.secrets; },
    'an empty list': (config) => { config.providers.p1.verify.secrets = []; },
    'an empty variable': (config) => { config.providers.p1.verify.secrets = ['${RECIBO_TEST_EMPTY}']; },
    'a variable that is not set': (config) => { config.providers.p1.verify.secrets = ['${RECIBO_TEST_UNSET}']; },
    'a file that is not there': (config) => { config.providers.p1.verify.secrets = [{ file: join(recibo.folder, 'nothing') }]; },
    'an empty file': (config) => {
      writeFileSync(join(recibo.folder, 'empty'), '');
      config.providers.p1.verify.secrets = [{ file: join(recibo.folder, 'empty') }];
    },
    'a short standard-webhooks secret': (config) => { config.providers.standard.verify.secrets = ['whsec_AAAA']; },
  };
  for (const [name, change] of Object.entries(cases)) {
    const config = changed(change);
    const result = await recibo.run(['check', '--config', recibo.write(config, other)], { env: { RECIBO_TEST_EMPTY: '' } });
    refusedAt(result, /secret/i, name);
    const serve = await recibo.run(['serve', '--config', other], { env: { RECIBO_TEST_EMPTY: '' }, timeout: 10_000 });
    refusedAt(serve, /secret/i, `serve: ${name}`);
    for (const secret of Object.values(secrets)) assert.equal(output(result).includes(secret), false, 'no secret is printed');
  }
});

test('S17 a secret file that ends in a newline', async () => {
  const file = join(recibo.folder, 'secret');
  writeFileSync(file, 'test-secret-A\n');
  const config = changed((c) => { c.providers.p1.verify.secrets = [{ file }]; });
  const result = await recibo.run(['check', '--config', recibo.write(config, other)]);
  if (result.code === 2) return refusedAt(result, /white ?space|newline|line (feed|break)/i, 'a trailing newline');
  assert.equal(result.code, 0, output(result));
  assert.match(output(result), /white ?space|newline|line (feed|break)/i, 'a warning');
  const own = await stage.fresh({ configure: (c) => { c.providers.p1.verify.secrets = [{ file }]; return c; } });
  const id = freshId();
  await own.accepted(id);
  const answer = await own.callback('p1', likeB0(id, 'evt-1'), { secret: 'test-secret-A' });
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
  assert.equal((await own.callback('p1', likeB0(id, 'evt-1'), { secret: 'test-secret-A\n' })).status, 401);
  await own.finish();
});

test('check refuses what could not work', async () => {
  const cases = {
    'an event that the workflow does not know': [(c) => { c.providers.p1.events.succeeded = 'explode'; }, /explode/],
    'a workflow that is not there': [(c) => { c.providers.p1.workflow = 'nope'; }, /nope/],
    'a state without a limit': [(c) => { delete c.workflows.fixture.states.accepted.limit; }, /limit/],
    'a state that cannot be reached': [(c) => { c.workflows.fixture.states.lonely = { label: 'x', limit: 'none' }; }, /lonely/],
    'a transition to nowhere': [(c) => { c.workflows.fixture.transitions[0].to = 'nowhere'; }, /nowhere/],
    'a transition out of a terminal state': [(c) => { c.workflows.fixture.transitions.push({ from: 'completed', event: 'progress', to: 'processing', by: 'provider' }); }, /terminal|completed/],
    'a body limit over what may be in flight': [(c) => { c.limits = { body: '2MiB', in_flight: '1MiB' }; }, /in_flight/],
    'a key outside the signature': [(c) => { c.providers.p1.extract.idempotency_key = { header: 'X-Key' }; }, /unsigned/],
    'an unknown key': [(c) => { c.providers.p1.colour = 'red'; }, /colour/],
    'a number for a duration': [(c) => { c.drain.delay = 5; }, /delay/],
    'a destination with credentials': [(c) => { c.destinations.ledger.url = 'https://user:pw@ledger.test/'; }, /url|credential|user/i],
    'a destination of another protocol': [(c) => { c.destinations.ledger.url = 'ftp://ledger.test/'; }, /url|https?/i],
    'two tokens of one digest': [(c) => { c.api.tokens[1].sha256 = c.api.tokens[0].sha256; }, /digest|token/i],
    'an unknown scheme': [(c) => { c.providers.p1.verify.scheme = 'stripey'; }, /stripe/],
  };
  for (const [name, [change, about]] of Object.entries(cases)) refusedAt(await check(changed(change)), about, name);
});

test('S16 rotation without a gap, and reload by SIGHUP', async () => {
  const [old, young] = [secrets.p1, 'test-secret-A2'];
  const ids = Array.from({ length: 5 }, () => freshId());
  for (const id of ids) await recibo.accepted(id);
  const before = recibo.config;
  const send = (id, secret) => recibo.callback('p1', callbackBody(id, 'evt-16'), { secret });
  const reloaded = async (config, probe) => {
    recibo.write(config);
    recibo.service.signal('SIGHUP');
    await until('the reload takes effect', probe, { timeout: 5_000 });
  };
  assert.equal((await send(ids[0], young)).status, 401);

  await reloaded(changed((c) => { c.providers.p1.verify.secrets = [{ name: 'old', value: old }, { name: 'young', value: young }]; }), async () => (await send(ids[0], young)).status === 200);
  const [first] = (await recibo.timeline(ids[0])).filter((entry) => entry.kind === 'delivery');
  assert.equal(first.secret, 'young');
  const second = await send(ids[1], old);
  assert.deepEqual([second.status, second.json.disposition], [200, 'applied']);
  assert.deepEqual((await recibo.timeline(ids[1])).filter((entry) => entry.kind === 'delivery').map((entry) => entry.secret), ['old']);

  await reloaded(changed((c) => { c.providers.p1.verify.secrets = [{ name: 'young', value: young }]; }), async () => (await send(freshId(), old)).status === 401);
  assert.equal((await send(ids[2], old)).status, 401);
  const replay = await send(ids[1], young);
  assert.deepEqual([replay.status, replay.replayed, replay.text], [200, true, second.text], 'an earlier verification stays good');
  await recibo.expectCounts(ids[2], 0, 0, 0);
  assert.deepEqual((await recibo.deliveries(ids[1])).map((d) => d.secret), ['old', 'young']);

  await reloaded(before, async () => (await send(ids[3], old)).status === 200);
  assert.equal(recibo.service.lines.some(({ text }) => text.includes(young)), false, 'never by value');
  assert.equal(JSON.stringify(await recibo.sql('SELECT DISTINCT secret FROM recibo.deliveries')).includes(young), false);
});

test('a bad reload changes nothing at all', async () => {
  const id = freshId();
  await recibo.accepted(id);
  // Half of it would be good: a new provider beside a broken one.
  const bad = changed((c) => {
    c.providers.extra = structuredClone(c.providers.p1);
    c.providers.p2.verify.secrets = [''];
  });
  for (const config of [bad, 'not: [yaml', '']) {
    const from = recibo.service.lines.length;
    recibo.write(config);
    recibo.service.signal('SIGHUP');
    const record = await recibo.service.log((r) => r.level === 'error', { from, timeout: 5_000, what: 'an error about the reload' });
    assert.match(JSON.stringify(record), /reload|configuration/i);
    assert.equal((await recibo.raw({ target: '/callbacks/extra', body: '{}' })).status, 404);
    const answer = await recibo.callback('p2', callbackBody(freshId(), '1'), { secret: '' });
    assert.equal(answer.status, 401);
    const api = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
    assert.ok(api.status === 422 || api.status === 409 || api.status === 400, `${api.status} ${api.text}`);
    assert.match(api.text, /recibo\.yaml:\d+:\d+|recibo\.yaml/, 'errors as in check');
  }
  const good = await recibo.callback('p1', callbackBody(id, '1'));
  assert.deepEqual([good.status, good.json.disposition], [200, 'applied']);
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
});

test('a pipe in the place of the configuration is refused at once, not waited for', async () => {
  rmSync(recibo.configFile);
  execFileSync('mkfifo', [recibo.configFile]);
  const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
  assert.equal(answer.status, 422, answer.text);
  assert.match(answer.text, /not a regular file/);
  rmSync(recibo.configFile);
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
});

test('a reload may add a provider and a token; operations in flight keep their workflow', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk' });
  const config = changed((c) => {
    c.providers.extra = structuredClone(c.providers.p1);
    c.workflows.desk.transitions.find((t) => t.event === 'cancel').by = 'operator';
  });
  recibo.write(config);
  const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
  assert.equal(answer.status, 200, answer.text);
  const young = freshId();
  await recibo.accepted(young, { provider: 'extra' });
  assert.equal((await recibo.callback('p1', callbackBody(young, '1')).catch(() => null))?.status === 200, false, 'not at p1');
  const body = callbackBody(young, '1');
  const request = recibo.request('p1', body);
  assert.equal((await recibo.raw({ ...request, target: '/callbacks/extra' })).json.disposition, 'applied');
  const cancelled = await recibo.event(id, { event: 'cancel' });
  assert.deepEqual([cancelled.status, cancelled.json.state], [200, 'cancelled'], 'accepted under the old table');
  const later = freshId();
  await recibo.accepted(later, { provider: 'desk' });
  assert.equal((await recibo.event(later, { event: 'cancel' })).status, 409, 'accepted under the new one');
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
});

test('the effective configuration is shown without secrets', async () => {
  const answer = await recibo.api('GET', '/v1/config', { token: 'root' });
  assert.equal(answer.status, 200, answer.text);
  for (const secret of [...Object.values(secrets), ...Object.values(recibo.tokens), recibo.ledgerSecret]) {
    assert.equal(answer.text.includes(secret), false, 'a secret is shown');
  }
  assert.ok(answer.text.includes('p1'));
});

stage.ends();
