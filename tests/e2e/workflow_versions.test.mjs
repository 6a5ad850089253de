// Configuration that changes late: operations keep the version of their workflow, or go on under another by command (decision 7).
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    config.providers.parts = { ...p1, extract: { ...p1.extract, items: { each: '/results', item_id: '/id', event: '/status' } } };
    return config;
  },
});
const { recibo } = stage;
const look = (answer) => [answer.status, answer.json?.disposition ?? answer.json?.code];

// The same workflow without the state `processing`, and with another in its place.
function changed() {
  const config = structuredClone(recibo.config);
  const table = config.workflows.fixture;
  table.states = { accepted: table.states.accepted, working: { label: 'Working', limit: 'none' }, completed: table.states.completed, failed: table.states.failed };
  table.transitions = [
    { from: 'accepted', event: 'progress', to: 'working', by: 'provider' },
    { from: ['accepted', 'working'], event: 'complete', to: 'completed', by: 'provider' },
    { from: ['accepted', 'working'], event: 'fail', to: 'failed', by: 'provider' },
  ];
  return config;
}
const file = join(recibo.folder, 'changed.yaml');
recibo.write(changed(), file);
const check = (config = file) => recibo.run(['check', '--against-database', '--config', config]);
const migrate = (...more) => recibo.run(['workflow', 'migrate', 'fixture', '--config', file, ...more]);
const ids = { accepted: freshId(), processing: freshId(), ended: freshId() };

test('a state that is in use cannot be taken away unseen', async () => {
  for (const id of [ids.accepted, ids.processing, ids.ended]) await recibo.accepted(id);
  assert.deepEqual(look(await recibo.callback('p1', callbackBody(ids.processing, 'e-1', 'processing'))), [200, 'applied']);
  assert.deepEqual(look(await recibo.callback('p1', callbackBody(ids.ended, 'e-1', 'succeeded'))), [200, 'applied']);
  const same = await check(recibo.configFile);
  assert.equal(same.code, 0, same.stdout + same.stderr);
  const refused = await check();
  assert.equal(refused.code, 1, refused.stdout + refused.stderr);
  assert.match(refused.stdout, /workflow fixture: the state processing is gone, and 1 operation is in it/);
  assert.doesNotMatch(refused.stdout, /accepted|completed/);
  const without = structuredClone(recibo.config);
  for (const provider of Object.values(without.providers)) if (provider.workflow === 'fixture') Object.assign(provider, { workflow: 'default' });
  delete without.workflows.fixture;
  recibo.write(without, join(recibo.folder, 'without.yaml'));
  const gone = await check(join(recibo.folder, 'without.yaml'));
  assert.equal(gone.code, 1);
  assert.match(gone.stdout, /workflow fixture is gone/);
});

test('after a reload an operation keeps the version it began with', async () => {
  recibo.write(changed());
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  const fresh = freshId();
  await recibo.accepted(fresh);
  assert.equal((await recibo.callback('p1', callbackBody(fresh, 'e-1', 'processing'))).json.state, 'working');
  assert.equal((await recibo.get(ids.processing)).state, 'processing');
  assert.equal((await recibo.callback('p1', callbackBody(ids.accepted, 'e-1', 'processing'))).json.state, 'processing', 'the table of its acceptance');
});

test('migrating names what stays behind, changes nothing in a dry run, and needs a reason', async () => {
  const dry = await migrate('--dry-run');
  assert.equal(dry.code, 1, dry.stdout + dry.stderr);
  assert.match(dry.stdout, /^0 operations would go on/);
  assert.match(dry.stdout, /2 stay under version -?\d+ in state processing: no such state/);
  assert.equal((await migrate('--map', 'processing=working')).code, 2, 'without a reason');
  assert.equal((await migrate('--map', 'processing=nowhere', '--reason', 'x')).code, 2);
  assert.equal((await migrate('--map', 'processing', '--reason', 'x')).code, 2);
  assert.equal((await recibo.run(['workflow', 'migrate', 'nothing', '--reason', 'x', '--config', file])).code, 2);
  const would = await migrate('--dry-run', '--map', 'processing=working');
  assert.equal(would.code, 0);
  assert.match(would.stdout, /^2 operations would go on/);
  assert.equal((await recibo.get(ids.processing)).state, 'processing');
});

test('a migrated operation goes on under the new table, and its history is judged by both', async () => {
  const done = await migrate('--map', 'processing=working', '--reason', 'the state got another name', '--actor', 'maria');
  assert.equal(done.code, 0, done.stdout + done.stderr);
  assert.match(done.stdout, /^2 operations go on under this version of fixture/);
  const operation = await recibo.get(ids.processing);
  assert.deepEqual([operation.state, operation.version], ['working', 1], 'a version counts moves of the table, and this is none');
  const entry = (await recibo.timeline(ids.processing)).find((e) => e.kind === 'correction');
  assert.deepEqual([entry.change, entry.from, entry.to, entry.actor, entry.reason], ['workflow', 'processing', 'working', 'maria', 'the state got another name']);
  assert.equal((await recibo.callback('p1', callbackBody(ids.processing, 'e-2', 'succeeded'))).json.state, 'completed');
  assert.equal((await recibo.audit(ids.processing)).code, 0);
  assert.equal((await check()).code, 0);
  assert.match((await migrate('--map', 'processing=working', '--reason', 'again')).stdout, /^0 operations/);
  assert.equal((await recibo.audit()).code, 0, 'what has ended stays where it ended');
});

test('items go on in states of other names, and what came before is judged by the old ones', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'parts', items: ['a', 'b', 'c'].map((item_id) => ({ item_id })) });
  const tell = (key, ...results) => recibo.callback('parts', JSON.stringify({ ...JSON.parse(callbackBody(id, key, 'failed')), status: undefined, results }), { secret: 'test-secret-A' });
  assert.equal((await tell('1', { id: 'a', status: 'processing' }, { id: 'b', status: 'failed' })).json.disposition, 'applied');
  const table = changed().workflows.fixture;
  const renamed = JSON.parse(JSON.stringify(table).replaceAll('"working"', '"active"'));
  const config = changed();
  config.workflows.fixture = renamed;
  const other = join(recibo.folder, 'renamed.yaml');
  recibo.write(config, other);
  const move = (...more) => recibo.run(['workflow', 'migrate', 'fixture', '--config', other, ...more]);
  for (const more of [['--dry-run'], ['--reason', 'x', '--map', 'accepted=completed']]) {
    const refused = await move(...more);
    assert.equal(refused.code, 1, refused.stdout + refused.stderr);
    assert.match(refused.stdout, /an item is in state working; name another with --map working=/);
  }
  const done = await move('--map', 'working=active', '--reason', 'another name');
  assert.equal(done.code, 0, done.stdout + done.stderr);
  const states = async () => Object.fromEntries((await recibo.get(id)).items.map((i) => [i.item_id, i.state]));
  assert.deepEqual(await states(), { a: 'active', b: 'failed', c: 'accepted' });
  assert.deepEqual(await tell('2', { id: 'a', status: 'succeeded' }, { id: 'c', status: 'processing' }).then((a) => a.json.items.map((i) => [i.item_id, i.disposition, i.state])), [['a', 'applied', 'completed'], ['c', 'applied', 'active']]);
  assert.equal((await recibo.audit(id)).code, 0);
});

test('evidence of the change cannot be altered', async () => {
  const [row] = await recibo.sql('SELECT operation, sequence, reason, item_states FROM recibo.workflow_changes WHERE item_states IS NOT NULL');
  const set = (column, value) => recibo.sql(`UPDATE recibo.workflow_changes SET ${column} = $3 WHERE operation = $1 AND sequence = $2`, [row.operation, row.sequence, value]);
  for (const [column, value] of [['reason', 'none'], ['item_states', '{"working":"completed"}'], ['item_states', null]]) {
    await set(column, value);
    assert.equal((await recibo.audit()).code, 1, column);
    await set(column, row[column]);
  }
  assert.equal((await recibo.audit()).code, 0);
});

test('the usual drawing still works', async () => {
  assert.equal((await recibo.run(['workflow', 'fixture'])).code, 0);
  assert.equal((await recibo.run(['workflow'])).code, 2);
});

stage.ends();
