// The outbox reaches those who are notified: signed, in the order of each operation, at least once, whatever they answer and
// whatever ends in between (R19-R21, S36, S37, S38, S39).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { Receiver } from '../support/receiver.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const secret = () => `whsec_${randomBytes(32).toString('base64')}`;
const [ledgerSecret, oldSecret, mailSecret] = [secret(), secret(), secret()];
const ledger = await Receiver.start([ledgerSecret]);
const mail = await Receiver.start([mailSecret]);

const stage = await Stage.begin({
  configure: (config) => {
    config.outbox = { lease: '3s' };
    config.destinations = {
      ledger: {
        url: ledger.url, secrets: [ledgerSecret, oldSecret], events: ['operation.*'], allow: ['127.0.0.0/8'],
        retry: { attempts: 4, first: '1s', max: '2s' }, timeout: '2s',
      },
      mail: {
        url: mail.url, secret: mailSecret, events: ['operation.completed'], allow: ['127.0.0.0/8'],
        retry: { attempts: 4, first: '1s', max: '2s' }, timeout: '1s', on_dead: 'skip', concurrency: 4,
      },
    };
    return config;
  },
});
const { recibo } = stage;

// An operation that a callback completes: ledger is told twice, mail once.
async function complete(id = freshId()) {
  await recibo.accepted(id);
  const answer = await recibo.deliver('p1', callbackBody(id, `evt-${id}`));
  assert.equal(answer.json.disposition, 'applied', answer.text);
  return id;
}

const notifications = (id, query = '') => recibo.list(`/v1/notifications?request_id=${id}${query}`);
const types = (receiver, id) => receiver.of(id).map((n) => n.body.type);
const arrived = (receiver, id, count) => until(`${count} notifications of ${id}`, async () => receiver.of(id).length >= count, { timeout: 30_000 });
const settled = (id) => until(`nothing is pending for ${id}`, async () => (await notifications(id)).every((n) => n.status !== 'pending'), { timeout: 30_000 });
const destination = async (name) => (await recibo.list('/v1/destinations')).find((d) => d.name === name);

function receiversAnswer(status = 204) {
  for (const one of [ledger, mail]) one.answer = () => status;
}

test('what is recorded is told, signed, in order, once', async () => {
  const id = await complete();
  await arrived(ledger, id, 2);
  await settled(id);
  assert.deepEqual(types(ledger, id), ['operation.accepted', 'operation.completed']);
  assert.deepEqual(types(mail, id), ['operation.completed']);
  const [accepted, completed] = ledger.of(id);
  assert.deepEqual([accepted.path, accepted.headers['recibo-sequence'] < completed.headers['recibo-sequence']], ['/hooks', true]);
  assert.equal(completed.headers['webhook-signature'].split(' ').length, 2, 'both secrets sign, so that a rotation has an overlap');
  const { data } = accepted.body;
  assert.deepEqual([data.state, data.version, data.event, data.from, data.to, data.terminal], ['accepted', 0, null, null, null, false], 'as it was then');
  assert.deepEqual([completed.body.data.state, completed.body.data.version, completed.body.data.event, completed.body.data.from, completed.body.data.to],
    ['completed', 1, 'complete', 'accepted', 'completed']);
  assert.deepEqual([data.amount, data.currency, data.provider], ['19.99', 'EUR', 'p1']);
  const rows = await notifications(id);
  assert.deepEqual(rows.map((n) => [n.status, n.attempts]), [['delivered', 1], ['delivered', 1], ['delivered', 1]]);
  assert.equal((await recibo.get(id)).last_stage, 'notified');
  const shown = (await recibo.timeline(id)).filter((e) => e.kind === 'notification');
  assert.deepEqual(shown.map((e) => e.status), ['delivered', 'delivered', 'delivered']);
  assert.deepEqual([...ledger.problems, ...mail.problems], []);
});

test('a destination that no valid secret is left for holds up nobody, least of all the service', async () => {
  const reload = async () => {
    recibo.write();
    const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
    assert.equal(answer.status, 200, answer.text);
  };
  recibo.config.destinations.mute = {
    ...recibo.config.destinations.mail, secret: undefined, events: ['operation.accepted'],
    secrets: [{ name: 'ended', value: secret(), until: '2020-01-01T00:00:00Z' }],
  };
  await reload();
  const ids = [];
  for (let i = 0; i < 5; ++i) ids.push(await complete());
  for (const id of ids) {
    await arrived(ledger, id, 2);
    const [mute] = (await notifications(id)).filter((n) => n.destination === 'mute');
    assert.ok(['pending', 'dead', 'held'].includes(mute.status), mute.status);
  }
  await until('why it is not sent is told', async () => (await notifications(ids[0])).some((n) => n.destination === 'mute' && n.reason === 'no_valid_secret'), { timeout: 30_000 });
  assert.equal((await recibo.raw({ method: 'GET', target: '/livez', body: '' })).status, 200);
  // And a stop, while claims are under way.
  delete recibo.config.destinations.mute;
  recibo.write();
  await recibo.restart('stop');
});

test('a later event waits for an earlier one that was not taken yet', async () => {
  const id = freshId();
  let refusals = 2;
  ledger.answer = (n) => (n.body.data.request_id === id && n.body.type === 'operation.accepted' && refusals-- > 0 ? 500 : 204);
  await complete(id);
  await arrived(ledger, id, 4);
  await settled(id);
  assert.deepEqual(types(ledger, id), ['operation.accepted', 'operation.accepted', 'operation.accepted', 'operation.completed']);
  assert.equal(new Set(ledger.of(id).map((n) => n.body.id)).size, 2, 'an attempt keeps the event ID');
  const accepted = (await notifications(id)).find((n) => n.type === 'operation.accepted');
  const { attempt_list: attempts } = (await recibo.api('GET', `/v1/notifications/${accepted.notification_id}`)).json;
  assert.deepEqual(attempts.map((a) => [a.attempt, a.answer_status, a.outcome]), [[1, 500, 'server_error'], [2, 500, 'server_error'], [3, 204, 'delivered']]);
  receiversAnswer();
});

test('Retry-After is kept to', async () => {
  const id = freshId();
  let asked = 0;
  ledger.answer = (n) => {
    if (n.body.data.request_id !== id || asked > 0) return 204;
    asked = Date.now();
    return { status: 503, headers: { 'Retry-After': '2' } };
  };
  await complete(id);
  await arrived(ledger, id, 3);
  assert.ok(ledger.of(id)[1].at - asked >= 1_900, 'not before it asked for');
  await settled(id);
  receiversAnswer();
});

test('a refusal is final: dead, what follows is held, and a replay sets both free under the same IDs', async () => {
  const id = freshId();
  ledger.answer = (n) => (n.body.data.request_id === id ? { status: 422, body: 'no such account \u0007\u001b[31m' } : 204);
  await complete(id);
  await settled(id);
  const [completed, accepted] = (await notifications(id)).filter((n) => n.destination === 'ledger');
  assert.deepEqual([accepted.status, accepted.reason, accepted.reason_class, accepted.attempts], ['dead', 'refused', 'ours', 1]);
  assert.deepEqual([completed.status, completed.attempts], ['held', 0]);
  assert.deepEqual(types(mail, id), ['operation.completed'], 'the other destination is not touched by it');
  const before = await recibo.get(id);
  const one = `/v1/notifications/${accepted.notification_id}`;
  const { attempt_list: [attempt] } = (await recibo.api('GET', one)).json;
  assert.match(attempt.excerpt, /^no such account/);
  assert.doesNotMatch(attempt.excerpt, /[\x00-\x1f]/);
  for (const token of ['viewer', 'checkout']) assert.equal((await recibo.api('POST', `${one}/replay`, { token, body: { reason: 'x' } })).status, 403);
  assert.equal((await recibo.api('POST', `${one}/replay`, { body: {} })).status, 422, 'without a reason');
  const held = await recibo.api('POST', `/v1/notifications/${completed.notification_id}/replay`, { body: { reason: 'x' } });
  assert.deepEqual([held.status, held.json.code, held.json.status_of_notification], [409, 'illegal_status', 'held']);

  receiversAnswer();
  const replayed = await recibo.api('POST', `${one}/replay`, { body: { reason: 'the account exists now' } });
  assert.equal(replayed.status, 200, replayed.text);
  assert.deepEqual(replayed.json.actions.map((a) => [a.kind, a.actor, a.reason]), [['replay', 'ops', 'the account exists now']]);
  await settled(id);
  assert.deepEqual(types(ledger, id), ['operation.accepted', 'operation.accepted', 'operation.completed']);
  assert.equal(ledger.of(id)[0].body.id, ledger.of(id)[1].body.id);
  assert.equal((await recibo.api('POST', `${one}/replay`, { body: { reason: 'again' } })).status, 409, 'delivered is delivered');
  const after = await recibo.get(id);
  assert.deepEqual([after.state, after.version], [before.state, before.version], 'the business state is untouched');
});

test('discarded, or on_dead: skip: what follows goes on', async () => {
  const id = freshId();
  ledger.answer = (n) => (n.body.data.request_id === id && n.body.type === 'operation.accepted' ? 400 : 204);
  mail.answer = (n) => (n.body.data.request_id === id ? 400 : 204);
  await complete(id);
  await settled(id);
  const dead = (await notifications(id, '&status=dead')).find((n) => n.destination === 'ledger');
  const gone = await recibo.api('POST', `/v1/notifications/${dead.notification_id}/discard`, { body: { reason: 'they know it' } });
  assert.deepEqual([gone.status, gone.json.status], [200, 'discarded'], gone.text);
  await settled(id);
  assert.deepEqual((await notifications(id)).filter((n) => n.destination === 'ledger').map((n) => n.status), ['delivered', 'discarded']);
  assert.equal((await recibo.api('POST', `/v1/notifications/${dead.notification_id}/discard`, { body: { reason: 'twice' } })).status, 409);
  receiversAnswer();
});

test('attempts end: dead after as many as the configuration says; many are replayed by a filter that counts first', async () => {
  mail.answer = () => 500;
  const ids = [await complete()]; // more would open the breaker
  for (const id of ids) await settled(id);
  for (const id of ids) {
    const [row] = (await notifications(id)).filter((n) => n.destination === 'mail');
    assert.deepEqual([row.status, row.attempts, row.reason, row.reason_class], ['dead', 4, 'server_error', 'theirs']);
  }
  receiversAnswer();
  const many = (body) => recibo.api('POST', '/v1/notifications/replay', { body: { reason: 'mended', ...body } });
  const filter = { destination: 'mail', reason: 'server_error' };
  const dry = await many({ filter, dry_run: true });
  assert.deepEqual([dry.json.matched, dry.json.replayed, dry.json.left, dry.json.replay_id], [1, 0, 1, null], dry.text);
  const none = await many({ filter: { destination: 'ledger', reason: 'server_error' } });
  assert.deepEqual([none.json.matched, none.json.replayed, none.json.replay_id], [0, 0, null], 'nothing was to do, and it says so');
  const done = await many({ filter });
  assert.deepEqual([done.json.matched, done.json.replayed, done.json.left], [1, 1, 0]);
  assert.match(done.json.replay_id, /^[0-9a-f-]{36}$/);
  for (const id of ids) await settled(id);
  for (const id of ids) assert.deepEqual((await notifications(id)).map((n) => n.status), ['delivered', 'delivered', 'delivered']);
  assert.equal((await many({ filter: { nonsense: 1 } })).status, 422);
});

test('410 and 401 stop a destination until a person resumes it; nothing is lost meanwhile', async () => {
  for (const [status, reason] of [[410, 'gone'], [401, 'unauthorized']]) {
    mail.answer = () => status;
    const id = await complete();
    await until('it is paused', async () => (await destination('mail')).paused, { timeout: 20_000 });
    const seen = await destination('mail');
    assert.deepEqual([seen.paused_by, seen.paused_reason], ['recibo', reason]);
    const count = mail.got.length;
    await sleep(1_500);
    assert.equal(mail.got.length, count, 'it is left alone');
    receiversAnswer();
    assert.equal((await recibo.api('POST', '/v1/destinations/mail/resume', { token: 'viewer' })).status, 403);
    const resumed = await recibo.api('POST', '/v1/destinations/mail/resume');
    assert.deepEqual([resumed.status, resumed.json.paused], [200, false], resumed.text);
    await settled(id);
    assert.equal(types(mail, id).at(-1), 'operation.completed');
  }
});

test('a destination can be paused by a person', async () => {
  const paused = await recibo.api('POST', '/v1/destinations/mail/pause', { body: { reason: 'maintenance until noon' } });
  assert.deepEqual([paused.status, paused.json.paused, paused.json.paused_by, paused.json.paused_reason], [200, true, 'ops', 'maintenance until noon'], paused.text);
  await sleep(1_500); // every replica has seen it
  const id = await complete();
  await arrived(ledger, id, 2);
  await sleep(1_000);
  assert.deepEqual(types(mail, id), []);
  assert.ok((await destination('mail')).pending >= 1);
  assert.equal((await recibo.api('POST', '/v1/destinations/nobody/pause', { body: { reason: 'x' } })).status, 404);
  await recibo.api('POST', '/v1/destinations/mail/resume');
  await settled(id);
  assert.deepEqual(types(mail, id), ['operation.completed']);
});

test('hostile answers: redirects are not followed, endless and huge ones are cut, silence times out, others go on', async () => {
  let followed = 0;
  const away = await Receiver.start([mailSecret]);
  away.answer = () => { followed += 1; return 200; };
  mail.answer = () => ({ status: 307, headers: { Location: away.url } });
  const redirected = await complete();
  await settled(redirected);
  const [row] = (await notifications(redirected)).filter((n) => n.destination === 'mail');
  assert.deepEqual([row.status, row.reason, row.reason_class, followed], ['dead', 'redirect', 'ours', 0]);

  mail.answer = () => ({ status: 200, body: 'x'.repeat(1 << 20) });
  const huge = await complete();
  await settled(huge);
  assert.equal((await notifications(huge)).filter((n) => n.destination === 'mail')[0].status, 'delivered', 'its status counts');

  // A tarpit takes every connection that it may have, and no more.
  mail.answer = () => ({ after: Infinity });
  mail.mostOpen = 0;
  const stuck = await Promise.all(Array.from({ length: 12 }, () => complete()));
  for (const id of stuck) await arrived(ledger, id, 2);
  await until('the tarpit has got some', async () => mail.open > 0);
  assert.ok(mail.mostOpen <= 4, `${mail.mostOpen} connections at once`);
  await until('its breaker opens', async () => (await destination('mail')).breaker !== 'closed', { timeout: 30_000 });
  await until('the gauge says so', async () => (await recibo.metric('recibo_breaker_state', { destination: 'mail' })) >= 1);
  assert.equal((await destination('ledger')).breaker, 'closed');
  receiversAnswer();
  await recibo.api('POST', '/v1/destinations/mail/resume');
  await until('what waited is delivered', async () => {
    await recibo.api('POST', '/v1/notifications/replay', { body: { filter: { destination: 'mail', reason: 'answer_unknown' }, reason: 'it is back' } });
    return stuck.every((id) => types(mail, id).length > 0) && (await destination('mail')).pending === 0;
  }, { timeout: 40_000, interval: 500 });
  away.stop();
});

test('a breaker closes by itself once one was taken', async () => {
  mail.answer = () => 503;
  const ids = [];
  for (let i = 0; i < 12; i += 1) ids.push(await complete());
  await until('it opens', async () => (await destination('mail')).breaker === 'open', { timeout: 30_000 });
  const count = mail.got.length;
  await sleep(3_000);
  assert.ok(mail.got.length - count <= 4, 'an open breaker sends nothing');
  receiversAnswer();
  await until('it closes', async () => (await destination('mail')).breaker === 'closed', { timeout: 40_000 });
  for (const id of ids) await until(`${id} is told`, async () => types(mail, id).length > 0, { timeout: 30_000 });
});

test('two replicas, one of them killed with work in hand: each is told at least once, and first told in order', { timeout: 120_000 }, async () => {
  await recibo.serve();
  const [first, second] = recibo.services.slice(-2);
  ledger.answer = () => ({ status: 204, after: 150 });
  mail.answer = () => ({ status: 204, after: 50 });
  const ids = [];
  for (let round = 0; round < 3; round += 1) {
    for (let i = 0; i < 10; i += 1) ids.push(await complete());
    await recibo.service.kill();
    await recibo.serve();
  }
  await first.kill();
  await until('all of them are told', async () => ids.every((id) => types(ledger, id).includes('operation.completed') && types(mail, id).length > 0), { timeout: 60_000 });
  for (const id of ids) await settled(id);
  for (const id of ids) {
    const order = [...new Set(types(ledger, id))];
    assert.deepEqual(order, ['operation.accepted', 'operation.completed'], id);
    const ofEach = new Map(ledger.of(id).map((n) => [n.body.type, n.body.id]));
    for (const n of ledger.of(id)) assert.equal(n.body.id, ofEach.get(n.body.type), 'one event, one ID');
  }
  const [left] = await recibo.sql("SELECT count(*)::int AS n FROM recibo.notifications WHERE lease_until IS NOT NULL OR leased_by IS NOT NULL");
  assert.equal(left.n, 0, 'no lease is left over');
  assert.ok(second);
  receiversAnswer();
});

test('a stop gives back what was not answered, and the next start sends it', async () => {
  ledger.answer = () => ({ after: Infinity });
  const id = freshId();
  await recibo.accepted(id);
  await until('it is under way', async () => ledger.of(id).length === 1);
  const ended = await recibo.service.stop();
  assert.deepEqual([ended.code, ended.signal], [0, null], recibo.service.tail());
  const [row] = await recibo.sql('SELECT n.status, n.leased_by FROM recibo.notifications n JOIN recibo.operations o ON o.id = n.operation WHERE o.request_id = $1', [id]);
  assert.deepEqual(row, { status: 'pending', leased_by: null });
  receiversAnswer();
  await recibo.serve();
  await arrived(ledger, id, 2);
  await settled(id);
});

test('at the end nothing was told wrongly', () => {
  assert.deepEqual([...ledger.problems, ...mail.problems], []);
  for (const one of [ledger, mail]) one.stop();
});

stage.ends();
