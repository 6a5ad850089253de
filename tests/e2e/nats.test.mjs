// Notifications to a stream of NATS JetStream, on a real server: delivered is what the stream acknowledged, in order, under the
// event's ID, by which the stream drops what it has; trouble is told apart as it is for HTTP (R19-R21).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { Nats, hasNats } from '../support/nats.mjs';
import { Operator } from '../support/nats_jwt.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { hmac } from '../support/sign.mjs';

assert.ok(hasNats, 'nats-server is installed (./dev setup)');
const password = `pw-${randomBytes(12).toString('hex')}`;
process.env.NATS_PASSWORD = password; // of the service too
const secret = `whsec_${randomBytes(32).toString('base64')}`;
const who = (permissions = '') => `authorization { users: [
  {user: test, password: "test"}
  {user: recibo, password: "${password}"${permissions}}
] }`;
const nats = await Nats.start({ more: who(), as: { user: 'test', pass: 'test' } });
await nats.stream('facts', ['recibo.>']);
const local = { events: ['operation.*'], allow: ['127.0.0.0/8'], timeout: '2s', retry: { attempts: 5, first: '1s', max: '2s' } };

const stage = await Stage.begin({
  configure: (config) => {
    config.outbox = { lease: '3s' };
    config.destinations = {
      bus: { url: nats.url, subject: 'recibo.{provider}.{request_id}.{type}', user: 'recibo', password: '${NATS_PASSWORD}', secret, ...local },
      nowhere: { url: nats.url, subject: 'unheard.{type}', user: 'recibo', password: '${NATS_PASSWORD}', ...local, events: ['operation.failed'], retry: { attempts: 20, first: '1s', max: '2s' } },
      stranger: { url: nats.url, subject: 'recibo.{type}', user: 'recibo', password: 'wrong', ...local, events: ['operation.processing'] },
    };
    return config;
  },
});
const { recibo } = stage;

const notifications = (id, name = 'bus') => recibo.list(`/v1/notifications?request_id=${encodeURIComponent(id)}&destination=${name}`);
const settled = (id, name = 'bus') => until(`nothing is pending for ${id}`, async () => (await notifications(id, name)).every((n) => n.status !== 'pending'), { timeout: 30_000 });
const destination = async (name) => (await recibo.list('/v1/destinations')).find((d) => d.name === name);
const attempts = async (n) => (await recibo.api('GET', `/v1/notifications/${n.notification_id}`)).json.attempt_list;
const of = async (id) => (await nats.messages('facts')).filter((m) => m.body.data.request_id === id);

async function complete(id = freshId(), status = 'succeeded') {
  await recibo.accepted(id);
  const answer = await recibo.deliver('p1', callbackBody(id, `evt-${id}`, status));
  assert.equal(answer.json.disposition, 'applied', answer.text);
  return id;
}

test('a fact is published to its subject, signed, under the event\'s ID, in order', async () => {
  const id = await complete('req.1*>x');
  await settled(id);
  const got = await of(id);
  assert.deepEqual(got.map((m) => m.subject), ['recibo.p1.req%2E1%2A%3Ex.operation.accepted', 'recibo.p1.req%2E1%2A%3Ex.operation.completed']);
  const rows = (await notifications(id)).reverse();
  assert.deepEqual(rows.map((n) => [n.status, n.attempts]), [['delivered', 1], ['delivered', 1]]);
  for (const [i, m] of got.entries()) {
    assert.deepEqual([m.headers['Nats-Msg-Id'], m.headers['webhook-id'], m.body.id], [rows[i].notification_id, rows[i].notification_id, rows[i].notification_id]);
    assert.equal(m.headers['recibo-sequence'], String(rows[i].sequence));
    const signed = `${m.headers['webhook-id']}.${m.headers['webhook-timestamp']}.${m.text}`;
    assert.equal(m.headers['webhook-signature'], `v1,${hmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'), [signed], 'base64')}`);
  }
  assert.equal(got[1].body.data.state, 'completed');
});

test('sent again after a kill, the stream drops it by its ID', async () => {
  const ids = [];
  for (let round = 0; round < 3; ++round) {
    for (let i = 0; i < 5; ++i) ids.push(await complete());
    await recibo.service.kill();
    await recibo.serve();
  }
  for (const id of ids) await settled(id);
  const all = await nats.messages('facts');
  for (const id of ids) assert.deepEqual(all.filter((m) => m.body.data.request_id === id).map((m) => m.body.type), ['operation.accepted', 'operation.completed'], 'each once, in order');
  // What was recorded as delivered, and is sent again by hand, is known to the stream.
  const [first] = (await notifications(ids[0])).slice(-1);
  await recibo.sql("UPDATE recibo.notifications SET status = 'dead', delivered_at = NULL, dead_at = now() WHERE id = $1", [first.notification_id]);
  assert.equal((await recibo.api('POST', `/v1/notifications/${first.notification_id}/replay`, { body: { reason: 'again' } })).status, 200);
  await settled(ids[0]);
  assert.equal((await of(ids[0])).length, 2);
});

test('a broker that is away: tried again, nothing is lost, and callbacks do not wait', async () => {
  await nats.kill();
  const id = freshId();
  const began = Date.now();
  await complete(id);
  assert.ok(Date.now() - began < 5_000);
  await until('it was tried', async () => (await notifications(id)).some((n) => n.attempts > 0 && n.reason === 'connect_failed'), { timeout: 20_000 });
  await nats.run();
  await settled(id);
  assert.deepEqual((await of(id)).map((m) => m.body.type), ['operation.accepted', 'operation.completed']);
});

test('a broker that does not acknowledge has not got it', async () => {
  nats.child.kill('SIGSTOP');
  const id = freshId();
  await recibo.accepted(id);
  await until('it was tried', async () => (await notifications(id)).some((n) => n.reason !== null), { timeout: 20_000 });
  const [row] = await notifications(id);
  assert.equal(row.status, 'pending');
  assert.ok(['answer_unknown', 'connect_failed'].includes(row.reason), row.reason);
  nats.child.kill('SIGCONT');
  await settled(id);
  assert.equal((await of(id)).length, 1);
});

test('a subject that no stream keeps is no delivery', async () => {
  const id = await complete(freshId(), 'failed');
  await until('it was tried', async () => (await notifications(id, 'nowhere')).some((n) => n.reason === 'no_stream'), { timeout: 20_000 });
  assert.equal((await notifications(id, 'nowhere'))[0].reason_class, 'theirs');
  // Somebody who listens there says that he has it; he is no stream.
  for (const says of ['{"ok":true}', '{"stream":"","seq":0}']) {
    const somebody = await nats.answering('unheard.>', says);
    const [{ attempts }] = await notifications(id, 'nowhere');
    await until('he was heard', async () => (await notifications(id, 'nowhere')).some((n) => n.attempts > attempts && n.reason === 'answer_unknown' && somebody.answered > 0), { timeout: 20_000 });
    somebody.end();
  }
  await nats.stream('late', ['unheard.>']);
  await settled(id, 'nowhere');
  assert.deepEqual((await nats.messages('late')).map((m) => [m.subject, m.body.data.request_id, 'webhook-signature' in m.headers]), [['unheard.operation.failed', id, false]]);
});

test('wrong credentials, and a subject that may not be published, pause it until a person acts', async () => {
  const id = freshId();
  await recibo.accepted(id);
  await recibo.deliver('p1', callbackBody(id, `evt-${id}`, 'processing'));
  await until('it is paused', async () => (await destination('stranger')).paused, { timeout: 20_000 });
  const stranger = await destination('stranger');
  assert.deepEqual([stranger.paused_by, stranger.paused_reason, stranger.origin], ['recibo', 'unauthorized', nats.url]);

  nats.configure(who(', permissions: {publish: ["elsewhere"], subscribe: ">"}'));
  await nats.restart();
  const other = freshId();
  await recibo.accepted(other);
  await until('it is paused', async () => (await destination('bus')).paused, { timeout: 30_000 });
  assert.equal((await destination('bus')).paused_reason, 'unauthorized');
  nats.configure(who());
  await nats.restart();
  await recibo.api('POST', '/v1/destinations/bus/resume');
  await settled(other);
  assert.equal((await of(other)).length, 1);
});

test('a message beyond what the stream takes is dead at once; a full stream is tried again', async () => {
  await nats.request('$JS.API.STREAM.UPDATE.facts', JSON.stringify({ name: 'facts', subjects: ['recibo.>'], retention: 'limits', storage: 'file', max_msgs: -1, max_bytes: -1, num_replicas: 1, max_msg_size: 100 }));
  const large = freshId();
  await recibo.accepted(large);
  await settled(large);
  assert.deepEqual((await notifications(large)).map((n) => [n.status, n.reason, n.reason_class, n.attempts]), [['dead', 'too_large', 'ours', 1]]);

  await nats.request('$JS.API.STREAM.UPDATE.facts', JSON.stringify({ name: 'facts', subjects: ['recibo.>'], retention: 'limits', storage: 'file', max_msgs: 1, discard: 'new', max_bytes: -1, num_replicas: 1, max_msg_size: -1 }));
  const full = freshId();
  await recibo.accepted(full);
  await until('it was tried', async () => (await notifications(full)).some((n) => n.reason !== null), { timeout: 20_000 });
  const [row] = await notifications(full);
  assert.deepEqual([row.reason, row.reason_class], ['over_limit', 'theirs']);
  assert.deepEqual((await attempts(row))[0].answer_status, null);
  await nats.request('$JS.API.STREAM.UPDATE.facts', JSON.stringify({ name: 'facts', subjects: ['recibo.>'], retention: 'limits', storage: 'file', max_msgs: -1, max_bytes: -1, num_replicas: 1, max_msg_size: -1 }));
  await settled(full);
  assert.equal((await of(full)).length, 1);
});

test('a stop does not wait for a broker that hangs', async () => {
  nats.child.kill('SIGSTOP');
  const id = freshId();
  await recibo.accepted(id);
  await sleep(300);
  const began = Date.now();
  const ended = await recibo.service.stop();
  assert.deepEqual([ended.code, ended.signal], [0, null], recibo.service.tail());
  assert.ok(Date.now() - began < 9_000, `${Date.now() - began} ms`);
  nats.child.kill('SIGCONT');
  await recibo.serve();
  await settled(id);
  assert.equal((await of(id)).length, 1);
});

test('TLS: the broker\'s certificate is verified, by the host\'s name and the authorities that are believed', async () => {
  const own = await Nats.start();
  const openssl = (...args) => execFileSync('openssl', args, { cwd: own.folder, stdio: ['ignore', 'ignore', 'pipe'] });
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '60', '-subj', '/CN=nats.test', '-addext', 'subjectAltName=DNS:nats.test', '-keyout', 'nats.key', '-out', 'nats.pem');
  await own.stream('facts', ['recibo.>']);
  own.configure(`tls { cert_file: "${join(own.folder, 'nats.pem')}", key_file: "${join(own.folder, 'nats.key')}" }`);
  await own.restart();
  const secure = (host) => ({ url: `tls://${host}:${own.port}`, subject: 'recibo.{type}', ...local });
  const other = await stage.fresh({
    configure: (config) => {
      config.outbound = { ca: join(own.folder, 'nats.pem'), connect_to: { 'nats.test': '127.0.0.1', 'wrong.test': '127.0.0.1' } };
      config.destinations = { right: secure('nats.test'), wrong: secure('wrong.test') };
      return config;
    },
  });
  const id = freshId();
  await other.accepted(id);
  const rows = () => other.list(`/v1/notifications?request_id=${id}`);
  await until('one is told, the other tried', async () => (await rows()).every((n) => n.status === 'delivered' || n.reason !== null), { timeout: 20_000 });
  assert.deepEqual((await rows()).map((n) => [n.destination, n.status, n.reason]).sort(), [['right', 'delivered', null], ['wrong', 'pending', 'tls_failed']]);
  await other.close();
  own.configure('');
  await own.restart();
  assert.equal((await own.messages('facts')).length, 1);
  await own.stop();
});

test('what may not be published to one subject says nothing of another on the same connection', { timeout: 60_000 }, async () => {
  const own = await Nats.start({ more: 'authorization { users: [{user: test, password: "test"}, {user: narrow, password: "pw", permissions: {publish: {deny: "mixed.p2"}}}] }', as: { user: 'test', pass: 'test' } });
  await own.answering('mixed.p1');
  const other = await stage.fresh({
    configure: (config) => {
      config.destinations = { mixed: { url: own.url, subject: 'mixed.{provider}', user: 'narrow', password: 'pw', ...local, timeout: '3s' } };
      return config;
    },
  });
  const [slow, forbidden] = [freshId(), freshId()];
  await Promise.all([other.accepted(slow), other.accepted(forbidden, { provider: 'p2' })]);
  const of = async (id) => (await other.list(`/v1/notifications?request_id=${id}`))[0];
  await until('both were tried', async () => (await of(slow)).reason !== null && (await of(forbidden)).reason !== null, { timeout: 20_000 });
  assert.equal((await of(slow)).reason, 'answer_unknown', 'nobody has answered, and nobody has forbidden it');
  assert.deepEqual([(await of(forbidden)).reason, (await of(forbidden)).reason_class], ['unauthorized', 'ours']);
  const { attempt_list: [attempt] } = (await other.api('GET', `/v1/notifications/${(await of(forbidden)).notification_id}`)).json;
  assert.match(attempt.excerpt, /mixed\.p2/, 'the subject is named');
  await other.close();
  await own.stop();
});

test('a JWT and its key: an operator\'s user is let in, an expired one pauses it, and a wrong pair is no configuration', { timeout: 60_000 }, async () => {
  const operator = new Operator();
  const test = operator.user();
  const own = await Nats.start({ more: operator.lines, as: test.as });
  await own.stream('facts', ['jwt.>']);
  const mine = operator.user();
  const file = join(own.folder, 'recibo.creds');
  writeFileSync(file, mine.file);
  const old = operator.user({ expires: Math.floor(Date.now() / 1_000) - 60 });
  process.env.OLD_CREDS = old.file.trim();
  const configure = (config) => {
    config.destinations = {
      good: { url: own.url, subject: 'jwt.{type}', credentials: { file }, ...local },
      old: { url: own.url, subject: 'jwt.{type}', credentials: '${OLD_CREDS}', ...local },
    };
    return config;
  };
  const other = await stage.fresh({ configure });
  const id = freshId();
  await other.accepted(id);
  const rows = () => other.list(`/v1/notifications?request_id=${id}`);
  await until('one is told, the other tried', async () => (await rows()).every((n) => n.status === 'delivered' || n.reason !== null), { timeout: 20_000 });
  assert.deepEqual((await rows()).map((n) => [n.destination, n.status, n.reason]).sort(), [['good', 'delivered', null], ['old', 'pending', 'unauthorized']]);
  assert.deepEqual((await own.messages('facts')).map((m) => m.subject), ['jwt.operation.accepted']);
  const shown = (await other.api('GET', '/v1/config', { token: 'root' })).text;
  assert.deepEqual(other.logComplaints([mine.jwt, mine.seed, old.jwt, old.seed]), []);
  assert.ok(!shown.includes(mine.seed) && !shown.includes(mine.jwt) && !shown.includes(old.jwt));

  const good = await other.run(['check']);
  assert.equal(good.code, 0, good.stdout);
  assert.match(good.stdout + good.stderr, /the JWT has expired/);
  for (const [what, text, why] of [
    ['another key', mine.file.replace(mine.seed, test.seed), /the seed is not that of the key which the JWT names/],
    ['a letter changed', mine.file.replace(mine.seed, `${mine.seed.slice(0, 20)}${mine.seed[20] === 'A' ? 'B' : 'A'}${mine.seed.slice(21)}`), /the seed is not that of a user's key/],
    ['an account\'s seed', mine.file.replace(mine.seed, operator.account.seed), /the seed is not that of a user's key/],
    ['no seed', mine.file.slice(0, mine.file.indexOf('*****')).trim(), /a block USER NKEY SEED/],
    ['no JWT in it', mine.file.replace(mine.jwt, 'a.b.c'), /the JWT is none/],
  ]) {
    writeFileSync(file, text);
    const bad = await other.run(['check']);
    assert.equal(bad.code, 2, what);
    assert.match(bad.stdout, why, what);
    assert.ok(!bad.stdout.includes(mine.seed) && !bad.stdout.includes(mine.jwt), 'no part of it is shown');
  }
  writeFileSync(file, mine.file);
  await other.close();
  await own.stop();
});

test('the configuration shows no secret of it', async () => {
  const shown = (await recibo.api('GET', '/v1/config', { token: 'root' })).text;
  assert.ok(shown.includes('recibo.{provider}.{request_id}.{type}'));
  assert.ok(!shown.includes(password));
  assert.deepEqual(recibo.logComplaints([password, readFileSync(nats.file, 'utf8')]), []);
  await nats.stop();
});

stage.ends();
