// Secrets in files and folders: noticed when they change, taken all or nothing, named in metrics, never shown.
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody, secrets } from '../support/recibo.mjs';

let folder;
const mount = () => join(folder, 'mount');

// As Kubernetes mounts a secret: the files are links through ..data, which is swapped as a whole.
function swap(version, files) {
  const real = join(mount(), `..${version}`);
  mkdirSync(real);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(real, name), text);
  symlinkSync(`..${version}`, join(mount(), '..data_tmp'));
  renameSync(join(mount(), '..data_tmp'), join(mount(), '..data'));
}

const stage = await Stage.begin({
  configure(config) {
    folder = join(process.env.TMPDIR ?? '/tmp', `rcb-secrets-${process.pid}`);
    mkdirSync(mount(), { recursive: true });
    writeFileSync(join(folder, 'single'), 'test-secret-in-a-file');
    swap('one', { current: 'test-secret-mounted-1' });
    symlinkSync(join('..data', 'current'), join(mount(), 'current'));
    config.providers.mounted = structuredClone(config.providers.p1);
    config.providers.mounted.verify.secrets = [{ directory: mount() }];
    config.providers.single = structuredClone(config.providers.p1);
    config.providers.single.verify.secrets = [{ name: 'the-file', file: join(folder, 'single'), until: '2099-01-01T00:00:00Z' }];
    return config;
  },
});
const { recibo } = stage;
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

// As p1 would be sent, to another provider of the same scheme.
const send = (name, id, secret) => recibo.raw({ ...recibo.request('p1', callbackBody(id, `evt-${id}`), { secret }), target: `/callbacks/${name}` });
const within5s = (what, probe) => until(what, probe, { timeout: 5_000, interval: 100 });
const lastReload = async () => (await recibo.api('GET', '/v1/config', { token: 'root' })).json.last_reload;

test('a folder of secrets: files that appear, are swapped by their links, and go', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'mounted' });
  const first = await send('mounted', id, 'test-secret-mounted-1');
  assert.deepEqual([first.status, first.json.disposition], [200, 'applied'], first.text);
  assert.equal((await recibo.deliveries(id))[0].secret, 'current', 'a secret is called as its file');

  swap('two', { current: 'test-secret-mounted-2', previous: 'test-secret-mounted-1' });
  symlinkSync(join('..data', 'previous'), join(mount(), 'previous'));
  await within5s('the new secret is taken', async () => (await send('mounted', id, 'test-secret-mounted-2')).status === 200);
  const old = await send('mounted', id, 'test-secret-mounted-1');
  assert.deepEqual([old.status, old.replayed], [200, true], 'no gap: the old one still counts');
  assert.deepEqual((await recibo.deliveries(id)).map((d) => d.secret).slice(-2), ['current', 'previous']);
  assert.ok((await recibo.metric('recibo_secret_last_used_seconds', { provider: 'mounted', secret: 'previous' })) > 1.7e9, 'when the old one was last used is a metric');

  unlinkSync(join(mount(), 'previous'));
  await within5s('the old secret is gone', async () => (await send('mounted', id, 'test-secret-mounted-1')).status === 401);
  assert.equal((await send('mounted', id, 'test-secret-mounted-2')).status, 200);
  const series = (await recibo.metrics()).filter((s) => s.labels.provider === 'mounted' && s.labels.secret === 'previous');
  assert.deepEqual(series, [], 'a rotation leaves no series behind');
  const last = await lastReload();
  assert.deepEqual([last.result, last.by, last.problems], ['taken', 'a changed secret', []]);
});

test('a secret file that is written anew is taken; its newline is cut off with a warning that names the place', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'single' });
  const from = recibo.service.lines.length;
  writeFileSync(join(folder, 'single'), 'test-secret-in-a-new-file\n');
  await within5s('the new text is taken', async () => (await send('single', id, 'test-secret-in-a-new-file')).status === 200);
  const said = await recibo.service.log((r) => r.level === 'warn' && /newline/.test(JSON.stringify(r)), { from, timeout: 2_000, what: 'a warning' });
  assert.match(said.at, /recibo\.yaml:\d+:\d+: warning/);
  assert.equal(await recibo.metric('recibo_secret_expires_seconds', { provider: 'single', secret: 'the-file' }), Date.parse('2099-01-01T00:00:00Z') / 1000);
});

test('a bad change is refused whole and says why, in log, metric and API; mending it is noticed too', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'single' });
  const refusedBefore = await recibo.metric('recibo_config_reloads_total', { result: 'refused' });
  const from = recibo.service.lines.length;
  swap('three', { current: 'test-secret-mounted-3' });
  writeFileSync(join(folder, 'single'), '');
  const record = await recibo.service.log((r) => r.level === 'error', { from, timeout: 5_000, what: 'an error about the reload' });
  assert.match(record.at, /recibo\.yaml:\d+:\d+: error: .*empty/);
  const last = await lastReload();
  assert.deepEqual([last.result, last.by], ['refused', 'a changed secret']);
  assert.match(last.problems[0].text, /empty/);
  assert.equal(await recibo.metric('recibo_config_reloads_total', { result: 'refused' }), refusedBefore + 1, 'tried once, not again and again');
  assert.equal((await send('single', id, 'test-secret-in-a-new-file')).status, 200, 'what was in force still is');
  assert.equal((await send('mounted', id, 'test-secret-mounted-3')).status, 401, 'half of a change is not taken');
  writeFileSync(join(folder, 'single'), 'test-secret-in-a-third-file');
  await within5s('the mended file', async () => (await send('single', id, 'test-secret-in-a-third-file')).status === 200);
  assert.notEqual((await send('mounted', freshId(), 'test-secret-mounted-3')).status, 401);
});

test('what was refused is no longer refused once the bad file is gone', async () => {
  const bad = join(mount(), 'raw');
  writeFileSync(bad, Buffer.from([1, 2, 3, 0, 10]));
  await within5s('the refusal', async () => (await lastReload()).result === 'refused');
  assert.match((await lastReload()).problems[0].text, /the file "raw" is no text/);
  unlinkSync(bad);
  await within5s('the same secrets again', async () => (await lastReload()).result === 'taken');
  assert.deepEqual((await lastReload()).problems, []);
});

test('edits of the configuration wait until somebody asks for them', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'single' });
  recibo.write('half of an edit: [');
  writeFileSync(join(folder, 'single'), 'test-secret-in-a-fourth-file');
  await within5s('the secret', async () => (await send('single', id, 'test-secret-in-a-fourth-file')).status === 200);
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  const last = await lastReload();
  assert.deepEqual([last.result, last.by], ['taken', 'root']);
});

test('check names what is wrong with a folder of secrets, and never a value', async () => {
  const other = join(recibo.folder, 'other.yaml');
  const cases = {
    'no folder': [{ directory: join(folder, 'nothing') }, /directory: .*cannot be read/],
    'an empty folder': [{ directory: (mkdirSync(join(folder, 'empty'), { recursive: true }), join(folder, 'empty')) }, /no secret in the directory|no file in the folder/],
    'two origins': [{ directory: folder, value: 'test-secret-x' }, /directory of secrets takes name, from, until and directory/],
  };
  for (const [name, [secret, about]] of Object.entries(cases)) {
    const config = structuredClone(recibo.config);
    config.providers.p1.verify.secrets = [secret];
    const result = await recibo.run(['check', '--config', recibo.write(config, other)]);
    assert.equal(result.code, 2, name);
    assert.match(`${result.stdout}${result.stderr}`, about, name);
    assert.doesNotMatch(`${result.stdout}${result.stderr}`, /test-secret/, 'never a value');
  }
  const shown = await recibo.api('GET', '/v1/config', { token: 'root' });
  assert.doesNotMatch(shown.text, /test-secret/);
  for (const { text } of recibo.service.lines) assert.equal(Object.values(secrets).concat('test-secret-mounted', 'test-secret-in-a').some((s) => text.includes(s)), false, 'no log line holds one');
});

stage.ends();
