// Dead letters: who owns them, what is shown of their answers, and replays from a terminal that cannot silently do nothing (R20).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Receiver } from '../support/receiver.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const secret = () => `whsec_${randomBytes(32).toString('base64')}`;
const [ledgerSecret, mailSecret] = [secret(), secret()];
const ledger = await Receiver.start([ledgerSecret]);
const mail = await Receiver.start([mailSecret]);
const local = { events: ['operation.accepted'], allow: ['127.0.0.0/8'], timeout: '2s' };

const stage = await Stage.begin({
  configure: (config) => {
    config.destinations = {
      ledger: { url: ledger.url, secret: ledgerSecret, owner: 'payments-ops', ...local, events: ['operation.*'] },
      mail: { url: mail.url, secret: mailSecret, ...local, retry: { attempts: 1 } },
    };
    return config;
  },
});
const { recibo } = stage;

const notifications = (query = '') => recibo.list(`/v1/notifications?${query}`);
const details = async (id) => (await recibo.api('GET', `/v1/notifications/${id}`)).json;
const replay = (...args) => recibo.run(['replay', 'dead', ...args]);
const why = ['--reason', 'the account exists now', '--actor', 'night watch'];
const said = ({ stdout, stderr }) => `${stdout}${stderr}`;
const settled = () => until('nothing is pending', async () => (await notifications('status=pending')).length === 0, { timeout: 30_000 });

// Three that the ledger refuses, and one that the mail server did not take.
const ids = [freshId(), freshId(), freshId()];
const echo = (n) => `cannot book: signature was ${n.headers['webhook-signature']}, token=hunter2 for ${n.body.data.request_id}`;

test('a dead letter names its owner, and shows of the answer nothing that may be secret', async () => {
  ledger.answer = (n) => ({ status: 422, body: echo(n) });
  mail.answer = (n) => (n.body.data.request_id === ids[0] ? 500 : 204);
  for (const id of ids) await recibo.accepted(id);
  await settled();
  const dead = await notifications('status=dead');
  assert.deepEqual(dead.map((n) => [n.destination, n.reason, n.reason_class, n.owner]).sort(), [
    ['ledger', 'refused', 'ours', 'payments-ops'], ['ledger', 'refused', 'ours', 'payments-ops'], ['ledger', 'refused', 'ours', 'payments-ops'], ['mail', 'server_error', 'theirs', null],
  ]);
  const [{ excerpt }] = (await details(dead.find((n) => n.destination === 'ledger').notification_id)).attempt_list;
  assert.match(excerpt, /^cannot book: signature was v1,\(hidden\), token=\(hidden\) for /);
  assert.deepEqual((await notifications('status=dead&reason_class=theirs')).map((n) => n.destination), ['mail']);
  const all = (await recibo.api('GET', '/v1/destinations')).json.data;
  assert.deepEqual(all.map((d) => [d.name, d.owner]).sort(), [['ledger', 'payments-ops'], ['mail', null]]);
});

test('wrong use is told, and changes nothing', async () => {
  const before = await recibo.everything();
  for (const wrong of [
    [], ['--reason', ' '], ['--filter', 'colour=red'], ['--filter', 'destination'], ['--filter', 'dead_after=yesterday'], ['--filter', 'class=mine'],
    ['--id', 'nonsense'], ['--id', '00000000-0000-7000-8000-000000000000', '--filter', 'class=ours'],
  ]) {
    const args = wrong.length === 0 || wrong[0] === '--reason' ? wrong : [...why, ...wrong];
    const done = await replay(...args);
    assert.equal(done.code, 2, `${args.join(' ')}: ${said(done)}`);
    assert.ok(said(done).length > 10);
  }
  assert.deepEqual(await recibo.everything(), before);
});

test('it counts first: a dry run tells how many, of whom and why', async () => {
  const dry = await replay(...why, '--dry-run');
  assert.equal(dry.code, 0, said(dry));
  assert.equal(dry.stdout, '4 dead notifications match\n  3 to ledger: refused (ours)\n  1 to mail: server_error (theirs)\na dry run: nothing was changed\n');
  const some = await replay(...why, '--dry-run', '--filter', 'class=theirs', '--filter', 'dead_after=2020-01-01T00:00:00Z');
  assert.match(some.stdout, /^1 dead notifications match\n {2}1 to mail: server_error \(theirs\)\n/);
  assert.equal((await notifications('status=dead')).length, 4);
});

test('a replay that does nothing says so, and ends with 1', async () => {
  for (const filter of ['dead_before=2020-01-01T00:00:00Z', 'created_before=2020-01-01T00:00:00Z', 'destination=nobody', 'reason=redirect', 'type=operation.failed', 'request_id=nobody']) {
    const none = await replay(...why, '--filter', filter);
    assert.deepEqual([none.code, none.stdout], [1, '0 dead notifications match\n'], said(none));
    assert.match(none.stderr, /nothing was replayed/);
  }
  const unknown = await replay(...why, '--id', '00000000-0000-7000-8000-000000000000');
  assert.deepEqual([unknown.code, /nothing was replayed/.test(unknown.stderr)], [1, true], said(unknown));
});

test('one by its ID: sent again under the same event ID, on record with the ID of the replay', async () => {
  mail.answer = () => 204;
  const [dead] = await notifications('status=dead&destination=mail');
  const done = await replay(...why, '--id', dead.notification_id);
  assert.equal(done.code, 0, said(done));
  const [, action] = /^replay ([0-9a-f-]{36})\n1 are sent again/m.exec(done.stdout) ?? assert.fail(said(done));
  await settled();
  const after = await details(dead.notification_id);
  assert.deepEqual([after.status, after.attempts], ['delivered', 2]);
  assert.deepEqual(after.actions.map((a) => [a.action_id, a.kind, a.actor, a.reason]), [[action, 'replay', 'night watch', 'the account exists now']]);
  assert.deepEqual(mail.of(ids[0]).map((n) => n.body.id), [dead.notification_id, dead.notification_id]);
  const again = await replay(...why, '--id', dead.notification_id);
  assert.deepEqual([again.code, /it is delivered, not dead: nothing was replayed/.test(again.stderr)], [1, true], said(again));
});

test('many by a filter: each once, also when it dies again; where nothing is sent for now, it is said', async () => {
  const count = ledger.got.length;
  const still = await replay(...why, '--filter', 'destination=ledger');
  assert.deepEqual([still.code, /3 are sent again, 0 are no longer dead/.test(still.stdout)], [0, true], said(still));
  await until('they are dead again', async () => (await notifications('status=dead&destination=ledger')).length === 3, { timeout: 20_000 });
  assert.equal(ledger.got.length, count + 3);
  ledger.answer = () => 204;
  assert.equal((await recibo.api('POST', '/v1/destinations/ledger/pause', { body: { reason: 'until noon' } })).status, 200);
  await sleep(1_500);
  const paused = await replay(...why, '--filter', 'destination=ledger', '--filter', 'reason=refused');
  assert.deepEqual([paused.code, /^ledger is paused \(until noon\): they wait until it is resumed$/m.test(paused.stdout)], [0, true], said(paused));
  assert.equal((await notifications('status=pending&destination=ledger')).length, 3);
  await recibo.api('POST', '/v1/destinations/ledger/resume');
  await settled();
  for (const id of ids) {
    const got = ledger.of(id);
    assert.equal(new Set(got.map((n) => n.body.id)).size, 1, 'one event, one ID');
    assert.equal((await recibo.get(id)).state, 'accepted', 'the business state is untouched');
  }
  assert.equal((await notifications('status=delivered&destination=ledger')).length, 3);
});

test('what is held behind a dead one goes with it; a discard needs a reason', async () => {
  const id = freshId();
  ledger.answer = (n) => (n.body.data.request_id === id ? 400 : 204);
  await recibo.accepted(id);
  assert.equal((await recibo.deliver('p1', callbackBody(id, 'e1'))).json.disposition, 'applied');
  await until('one is dead, one held', async () => (await notifications(`request_id=${id}&status=held`)).length === 1, { timeout: 20_000 });
  const [dead] = await notifications(`request_id=${id}&status=dead`);
  assert.equal((await recibo.api('POST', `/v1/notifications/${dead.notification_id}/discard`, { body: {} })).status, 422);
  ledger.answer = () => 204;
  const done = await replay(...why, '--filter', `request_id=${id}`);
  assert.equal(done.code, 0, said(done));
  await settled();
  assert.deepEqual(ledger.of(id).map((n) => n.body.type), ['operation.accepted', 'operation.accepted', 'operation.completed']);
});

test('K27: the same replay under its Idempotency-Key sends nothing twice, whatever has become of it', async () => {
  const id = freshId();
  ledger.answer = (n) => (n.body.data.request_id === id ? 400 : 204);
  await recibo.accepted(id);
  const dead = (times) => until('it is dead', async () => {
    const [one] = await notifications(`request_id=${id}&destination=ledger`);
    return one?.status === 'dead' && ledger.of(id).length === times && one;
  }, { timeout: 20_000 });
  const { notification_id } = await dead(1);
  const headers = [['Idempotency-Key', `key-${id}`]];
  const one = (more) => recibo.api('POST', `/v1/notifications/${notification_id}/replay`, { body: { reason: 'mended' }, headers, ...more });
  const first = await one();
  assert.deepEqual([first.status, first.header('Idempotent-Replayed') ?? null], [200, null], first.text);
  await dead(2);
  const again = await one();
  assert.deepEqual([again.status, again.header('Idempotent-Replayed'), again.json.status], [200, 'true', 'dead'], again.text);
  assert.deepEqual(again.json.actions, first.json.actions);

  const many = (more) => recibo.api('POST', '/v1/notifications/replay', { body: { filter: { request_id: id }, reason: 'mended' }, headers, ...more });
  const begun = await many();
  assert.deepEqual([begun.json.matched, begun.json.replayed], [1, 1], begun.text);
  await dead(3);
  const repeated = await many();
  assert.equal(repeated.header('Idempotent-Replayed'), 'true');
  assert.deepEqual(repeated.json, begun.json);

  ledger.answer = () => 204;
  const other = await one({ headers: [['Idempotency-Key', `other-${id}`]] });
  assert.equal(other.status, 200, other.text);
  await settled();
  const after = await one({ headers: [['Idempotency-Key', `other-${id}`]] });
  assert.deepEqual([after.status, after.header('Idempotent-Replayed'), after.json.status], [200, 'true', 'delivered'], after.text);
  assert.equal((await one({ headers: [] })).status, 409);
  assert.equal(ledger.of(id).length, 4);
});

test('K27: the same discard under its Idempotency-Key is no error, and another one is', async () => {
  const id = freshId();
  ledger.answer = (n) => (n.body.data.request_id === id ? 400 : 204);
  await recibo.accepted(id);
  const [{ notification_id }] = await until('it is dead', async () => {
    const found = await notifications(`request_id=${id}&status=dead`);
    return found.length === 1 && found;
  }, { timeout: 20_000 });
  const discard = (key) => recibo.api('POST', `/v1/notifications/${notification_id}/discard`, { body: { reason: 'over' }, headers: key ? [['Idempotency-Key', key]] : [] });
  const both = await Promise.all([discard(`out-${id}`), discard(`out-${id}`)]);
  const again = await discard(`out-${id}`);
  for (const one of [...both, again]) assert.deepEqual([one.status, one.json.status, one.json.actions.length], [200, 'discarded', 1], one.text);
  assert.equal(again.header('Idempotent-Replayed'), 'true');
  for (const key of [`other-${id}`, undefined]) assert.equal((await discard(key)).status, 409);
});

test('K27: a replay by a filter that found nothing takes nothing under its key that died later, and its key is its own', async () => {
  const id = freshId();
  const headers = [['Idempotency-Key', `empty-${id}`]];
  const many = (more) => recibo.api('POST', '/v1/notifications/replay', { body: { filter: { request_id: id }, reason: 'mended', ...more }, headers });
  const nothing = await many();
  assert.deepEqual([nothing.status, nothing.json.matched, nothing.json.replay_id], [200, 0, null], nothing.text);
  ledger.answer = (n) => (n.body.data.request_id === id ? 400 : 204);
  await recibo.accepted(id);
  await until('it is dead', async () => (await notifications(`request_id=${id}&status=dead`)).length === 1, { timeout: 20_000 });
  const again = await many();
  assert.deepEqual([again.status, again.header('Idempotent-Replayed'), again.json], [200, 'true', nothing.json], again.text);
  const counted = await many({ dry_run: true });
  assert.deepEqual([counted.json.matched, counted.json.replayed], [1, 0], counted.text);
  const other = await many({ filter: { destination: 'ledger' } });
  assert.deepEqual([other.status, other.json.code], [422, 'idempotency_key_reused'], other.text);
  headers[0][1] = `both-${id}`;
  ledger.answer = () => 204;
  const both = await Promise.all([many(), many(), many()]);
  assert.deepEqual(both.map((one) => [one.status, one.json.replayed, one.json.matched]), Array(3).fill([200, 1, 1]), both.map((one) => one.text).join());
  assert.equal(new Set(both.map((one) => one.json.replay_id)).size, 1);
  await settled();
  assert.equal(ledger.of(id).length, 2);
});

test('without the database it ends with 3', async () => {
  const away = await recibo.run(['replay', 'dead', ...why], { env: { RECIBO_DATABASE_URL: 'postgresql://recibo@127.0.0.1:1/none' } });
  assert.equal(away.code, 3, said(away));
});

test('at the end nothing was told wrongly', () => {
  assert.deepEqual([...ledger.problems, ...mail.problems], []);
  for (const one of [ledger, mail]) one.stop();
});

stage.ends();
