// A notification tells its fact: whatever is recorded before the next attempt, the body stays what it was, and nothing in it
// is safer than the fact was (R19, R45, S36).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { Receiver } from '../support/receiver.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const ledgerSecret = `whsec_${randomBytes(32).toString('base64')}`;
const ledger = await Receiver.start([ledgerSecret]);

const stage = await Stage.begin({
  configure: (config) => {
    config.destinations = {
      ledger: {
        url: ledger.url, secret: ledgerSecret, events: ['operation.*', 'item.*'], allow: ['127.0.0.0/8'],
        retry: { attempts: 100, first: '1s', max: '1s' }, timeout: '2s',
      },
    };
    config.workflows.desk.transitions.push({ from: 'accepted', event: 'edit', to: 'accepted', by: 'client' });
    config.providers.desk.extract = { ...config.providers.desk.extract, account: '/account' };
    const { p1 } = config.providers;
    config.providers.parts = { ...p1, extract: { ...p1.extract, items: { each: '/results', item_id: '/id', event: '/status', result: { score: '/score' } } } };
    config.providers.registering = { ...p1, unmatched: 'register', extract: { ...config.providers.parts.extract } };
    return config;
  },
});
const { recibo } = stage;
const secret = 'test-secret-A';
const told = (id, type) => ledger.of(id).filter((n) => n.body.type === type);
const came = (id, type, count = 1) => until(`${count} of ${type} for ${id}`, async () => told(id, type).length >= count && told(id, type), { timeout: 60_000 });
// All attempts at these facts of the operation are refused until it is opened: after what comes between two of them.
function gateFor(id, type) {
  let openedAt = Infinity;
  ledger.answer = (n) => (n.body.data.request_id === id && n.body.type === type && openedAt === Infinity ? 500 : 204);
  return {
    open: () => { openedAt = Date.now(); },
    // Of the first of them, once it is taken: one body, before and after.
    attempts: () => {
      const all = told(id, type);
      const mine = all.filter((n) => n.body.id === all[0].body.id);
      assert.ok(mine[0].at < openedAt && mine.at(-1).at >= openedAt, `${mine.length} attempts, and none before or after`);
      assert.equal(new Set(mine.map((n) => n.text)).size, 1, 'one event, one body');
      return mine;
    },
  };
}
const itemsSaid = (id, key, ...results) => JSON.stringify({ ...JSON.parse(callbackBody(id, key)), status: undefined, results });

test('an open review is told with everything that happens beside it, until the last one is resolved', async () => {
  const id = freshId();
  await recibo.accepted(id);
  assert.equal((await recibo.callback('p1', callbackBody(id, 'a', 'processing'))).json.disposition, 'applied');
  for (const amount of ['1.00', '2.00'])
    assert.equal((await recibo.callback('p1', callbackBody(id, `w-${amount}`, 'failed', { amount }))).json.disposition, 'review');
  assert.equal((await recibo.callback('p1', callbackBody(id, 'f', 'failed'))).json.disposition, 'applied');
  const says = ({ body: { data } }) => [data.state, data.review_open, data.retry_safe.safe];
  assert.deepEqual((await came(id, 'operation.processing')).map(says), [['processing', false, false]]);
  assert.deepEqual((await came(id, 'operation.review_opened', 2)).map(says), [['processing', true, false], ['processing', true, false]]);
  const [failed] = await came(id, 'operation.failed');
  assert.deepEqual(says(failed), ['failed', true, false], 'a person is checking it: asked again it would be paid twice');
  const { data } = failed.body;
  const shown = await recibo.get(id);
  assert.deepEqual([data.review_open, data.retry_safe], [shown.review_open, shown.retry_safe]);
  for (const review of await recibo.list(`/v1/reviews?request_id=${id}&status=open`)) {
    const resolved = await recibo.api('POST', `/v1/reviews/${review.review_id}/resolve`, { body: { resolution: 'stands', reason: 'asked' } });
    assert.equal(resolved.status, 200, resolved.text);
  }
  assert.deepEqual((await came(id, 'operation.review_resolved', 2)).map(says), [['failed', true, false], ['failed', false, true]]);
});

test('a repetition after an edit, a learned reference and a move says what the first attempt said', async () => {
  const id = freshId();
  const gate = gateFor(id, 'operation.accepted');
  await recibo.accepted(id, { provider: 'desk', account: 'A-1', metadata: { order: 'one' }, deadline: '2031-01-01T00:00:00Z' });
  await came(id, 'operation.accepted');
  const edited = await recibo.event(id, { event: 'edit', changes: { amount: '25.00', currency: 'USD', account: 'B-2', metadata: { order: 'two' }, deadline: '2032-01-01T00:00:00Z' } });
  assert.equal(edited.status, 200, edited.text);
  assert.equal((await recibo.event(id, { event: 'submitted', references: [`ref-${id}`] })).status, 200);
  assert.equal((await recibo.callback('desk', callbackBody(id, 'e-1', 'succeeded', { amount: '25', currency: 'USD', account: 'B-2' }))).json.disposition, 'applied');
  gate.open();
  const [processing] = await came(id, 'operation.processing');
  const [first] = gate.attempts();
  const moved = told(id, 'operation.accepted').at(-1);
  const says = ({ body: { data } }) => [data.amount, data.currency, data.account, data.metadata.order, data.deadline.slice(0, 4), data.references, data.version, data.last_stage];
  assert.deepEqual(says(first), ['19.99', 'EUR', 'A-1', 'one', '2031', [], 0, 'accepted']);
  assert.deepEqual(says(moved), ['25.00', 'USD', 'B-2', 'two', '2032', [], 1, 'transitioned'], 'the edit tells what it has made of it');
  assert.deepEqual(says(processing), ['25.00', 'USD', 'B-2', 'two', '2032', [`ref-${id}`], 2, 'transitioned']);
});

test('items are counted as they were; what has no history is left out', async () => {
  const id = freshId();
  const gate = gateFor(id, 'item.processing');
  await recibo.accepted(id, { provider: 'parts', items: ['a', 'b', 'c'].map((item_id) => ({ item_id })) });
  const tell = async (key, ...results) => assert.equal((await recibo.callback('parts', itemsSaid(id, key, ...results), { secret })).json.disposition, 'applied');
  await tell('1', { id: 'a', status: 'processing' });
  await came(id, 'item.processing');
  await tell('2', { id: 'a', status: 'succeeded' }, { id: 'b', status: 'failed' });
  gate.open();
  await came(id, 'item.failed');
  const summary = (type) => told(id, type).map((n) => n.body.data.items_summary);
  assert.deepEqual(summary('operation.accepted'), [{ total: 3, by_state: { accepted: 3 } }]);
  assert.deepEqual(gate.attempts()[0].body.data.items_summary, { total: 3, by_state: { accepted: 2, processing: 1 } });
  assert.deepEqual(summary('item.completed'), [{ total: 3, by_state: { accepted: 2, completed: 1 } }]);
  assert.deepEqual(summary('item.failed'), [{ total: 3, by_state: { accepted: 1, completed: 1, failed: 1 } }]);
});

test('R39: an item is told with its result, as it was', async () => {
  const id = freshId();
  const gate = gateFor(id, 'item.processing');
  await recibo.accepted(id, { provider: 'parts', items: ['a', 'b'].map((item_id) => ({ item_id })) });
  const tell = async (key, ...results) => assert.equal((await recibo.callback('parts', itemsSaid(id, key, ...results), { secret })).json.disposition, 'applied');
  await tell('1', { id: 'a', status: 'processing', score: 1 });
  await came(id, 'item.processing');
  await tell('2', { id: 'a', status: 'succeeded', score: 7 }, { id: 'b', status: 'failed' });
  gate.open();
  await came(id, 'item.failed');
  const items = (type) => told(id, type).map((n) => n.body.data.item);
  assert.deepEqual(items('operation.accepted'), [undefined]);
  assert.deepEqual(gate.attempts()[0].body.data.item, { item_id: 'a', state: 'processing', result: { score: 1 } });
  assert.deepEqual(items('item.completed'), [{ item_id: 'a', state: 'completed', result: { score: 7 } }]);
  assert.deepEqual(items('item.failed'), [{ item_id: 'b', state: 'failed', result: null }]);
});

test('items that callbacks bring are counted from when they are there', async () => {
  const id = freshId();
  const tell = (key, ...results) => recibo.callback('registering', itemsSaid(id, key, ...results), { secret });
  const gate = gateFor(id, 'operation.accepted');
  assert.equal((await tell('1', { id: 'a', status: 'processing' })).json.disposition, 'applied');
  await came(id, 'operation.accepted');
  assert.equal((await tell('2', { id: 'b', status: 'succeeded' })).json.disposition, 'applied');
  gate.open();
  await came(id, 'item.completed');
  assert.equal(gate.attempts()[0].body.data.items_summary.total, 0);
  assert.deepEqual(told(id, 'item.processing')[0].body.data.items_summary, { total: 1, by_state: { processing: 1 } });
  assert.deepEqual(told(id, 'item.completed')[0].body.data.items_summary, { total: 2, by_state: { completed: 1, processing: 1 } });
});

test('an operation that goes on under another version is told by the version of the fact', async () => {
  const id = freshId();
  const gate = gateFor(id, 'operation.processing');
  await recibo.accepted(id);
  assert.equal((await recibo.callback('p1', callbackBody(id, 'e-1', 'processing'))).json.disposition, 'applied');
  await came(id, 'operation.processing');
  const config = structuredClone(recibo.config);
  const text = JSON.stringify(config.workflows.fixture).replaceAll('"processing"', '"working"').replaceAll('"Processing"', '"Working"');
  config.workflows.fixture = JSON.parse(text);
  const file = recibo.write(config, join(recibo.folder, 'changed.yaml'));
  const migrated = await recibo.run(['workflow', 'migrate', 'fixture', '--config', file, '--map', 'processing=working', '--reason', 'another name']);
  assert.equal(migrated.code, 0, migrated.stdout + migrated.stderr);
  assert.equal((await recibo.get(id)).state, 'working');
  assert.equal((await recibo.callback('p1', callbackBody(id, 'w', 'failed', { amount: '1.00' }))).json.disposition, 'review');
  gate.open();
  const [opened] = await came(id, 'operation.review_opened');
  const says = ({ body: { data } }) => [data.state, data.label, data.version];
  assert.deepEqual(says(gate.attempts()[0]), ['processing', 'Processing', 1]);
  assert.deepEqual(says(opened), ['working', 'Working', 1], 'the change came before it');
});

test('at the end nothing was told wrongly', () => {
  assert.deepEqual(ledger.problems, []);
  ledger.stop();
});

stage.ends();
