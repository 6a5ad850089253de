// Destinations in trouble, or gone: what their answers say of them and what is shown of it, how long they are left alone, and
// that nothing waits unseen for one that is not configured any more (R19-R21, R29, R30).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { Receiver } from '../support/receiver.mjs';
import { freshId } from '../support/random.mjs';
import { Stage } from '../support/recibo.mjs';

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const [ledger, mail] = [await Receiver.start([secret]), await Receiver.start([secret])];
const local = { secret, allow: ['127.0.0.0/8'], timeout: '5s', retry: { attempts: 8, first: '1s', max: '60s' } };

const stage = await Stage.begin({
  configure: (config) => {
    config.destinations = {
      ledger: { url: ledger.url, events: ['operation.accepted'], concurrency: 16, ...local },
      mail: { url: mail.url, events: ['operation.*'], concurrency: 8, ...local },
    };
    return config;
  },
});
const { recibo } = stage;

const destination = async (name) => (await recibo.list('/v1/destinations')).find((d) => d.name === name);
const notifications = (query) => recibo.list(`/v1/notifications?limit=200&${query}`);
const acceptSome = async (count) => {
  const ids = Array.from({ length: count }, () => freshId());
  await Promise.all(ids.map((id) => recibo.accepted(id)));
  return ids;
};
// What comes of `work` waits until the destination is resumed.
async function whilePaused(name, work) {
  assert.equal((await recibo.api('POST', `/v1/destinations/${name}/pause`, { body: { reason: 'test' } })).status, 200);
  await sleep(1_500); // every lane has seen it
  return work();
}
const resume = (name) => recibo.api('POST', `/v1/destinations/${name}/resume`);
const configureAs = async (destinations) => {
  recibo.config.destinations = destinations;
  recibo.write();
  const answer = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};

test('an answer that repeats what it should not is shown without it', async () => {
  const said = {
    title: 'Not accepted', status: 400, code: 'bad_card', message: 'card 4111 1111 1111 1111 of jane@example.com, account DE89370400440532013000',
    detail: 'Jane Doe', received: { name: 'Jane Doe', card: '4111-1111-1111-1111' },
  };
  ledger.answer = () => ({ status: 400, body: JSON.stringify(said) });
  mail.answer = () => ({ status: 400, body: 'card 4111-1111-1111-1111 of jane@example.com' });
  const [id] = await acceptSome(1);
  const rows = await until('both have refused', async () => {
    const all = await notifications(`request_id=${id}&status=dead`);
    return all.length === 2 && all;
  }, { timeout: 20_000 });
  const excerptOf = async (name) => {
    const one = rows.find((n) => n.destination === name);
    return (await recibo.api('GET', `/v1/notifications/${one.notification_id}`, { token: 'viewer' })).json.attempt_list[0].excerpt;
  };
  assert.equal(await excerptOf('ledger'), 'title: Not accepted, status: 400, code: bad_card, message: card (hidden) of (hidden), account (hidden)');
  assert.equal(await excerptOf('mail'), 'card (hidden) of (hidden)');
  ledger.answer = mail.answer = () => 204;
});

test('what is asked for while the breaker is open already is kept to', async () => {
  let count = 0;
  let asked = 0;
  mail.answer = () => 204;
  ledger.answer = () => {
    count += 1;
    if (count <= 12) return 500;
    if (count > 16) return 204;
    asked = Date.now() + 1_500;
    return { status: 503, headers: { 'Retry-After': '20' }, after: 1_500 };
  };
  await whilePaused('ledger', () => acceptSome(16));
  await resume('ledger');
  await until('all are answered', () => asked > 0 && Date.now() > asked, { timeout: 20_000 });
  const seen = await until('it is to be left alone', async () => {
    const d = await destination('ledger');
    return d.breaker === 'open' && Date.parse(d.retry_at) > asked + 15_000 && d;
  }, { timeout: 10_000 });
  assert.ok(Date.parse(seen.retry_at) < asked + 25_000);
  ledger.answer = () => 204;
  await resume('ledger');
  await until('what waited is delivered', async () => (await destination('ledger')).pending === 0, { timeout: 60_000 });
});

test('one that nobody was there for is dead; a wave of them is the destination\'s trouble, and waits', async () => {
  let missing = 1;
  ledger.answer = () => (missing-- > 0 ? 404 : 204);
  const [lone] = await acceptSome(1);
  const [dead] = await until('it is dead', async () => {
    const all = await notifications(`request_id=${lone}&status=dead`);
    return all.length > 0 && all;
  }, { timeout: 20_000 });
  assert.deepEqual([dead.reason, dead.reason_class, (await destination('ledger')).breaker], ['no_endpoint', 'ours', 'closed']);

  // However much it has taken just before.
  for (let i = 0; i < 5; ++i) await acceptSome(100);
  await until('it has taken them', async () => (await destination('ledger')).pending === 0, { timeout: 60_000 });
  const before = (await destination('ledger')).dead;
  ledger.answer = () => 404;
  await whilePaused('ledger', () => acceptSome(120));
  await resume('ledger');
  await until('its breaker opens', async () => (await destination('ledger')).breaker !== 'closed', { timeout: 20_000 });
  await sleep(2_000);
  const during = await destination('ledger');
  assert.ok(during.dead - before <= 10, `${during.dead - before} are dead`);
  assert.ok(during.pending >= 110, `${during.pending} wait`);
  ledger.answer = () => 204;
  await resume('ledger');
  await until('what waited is delivered', async () => (await destination('ledger')).pending === 0, { timeout: 60_000 });

  mail.answer = () => 400;
  await whilePaused('mail', () => acceptSome(15));
  await resume('mail');
  await until('each is refused by itself', async () => (await notifications('destination=mail&status=dead&reason=refused')).length >= 15, { timeout: 20_000 });
  assert.equal((await destination('mail')).breaker, 'closed');
  mail.answer = ledger.answer = () => 204;
});

test('what waits for a destination that is not configured any more is seen, and is not replayed into nowhere', async () => {
  const all = { ...recibo.config.destinations };
  ledger.answer = () => 400;
  const [id] = await acceptSome(1);
  const [dead] = await until('one is dead', async () => {
    const rows = await notifications(`request_id=${id}&destination=ledger&status=dead`);
    return rows.length > 0 && rows;
  }, { timeout: 20_000 });
  await whilePaused('ledger', () => acceptSome(3));
  // Its row goes once nobody sends to it.
  const { ledger: gone, ...rest } = all;
  const reloaded = await configureAs(rest);
  await recibo.sql("DELETE FROM recibo.destinations WHERE name = 'ledger'");
  assert.ok(reloaded.warnings.some((w) => /3 notifications wait for "ledger", which the configuration does not name: nobody sends them/.test(w.message)), JSON.stringify(reloaded.warnings));
  const shown = await destination('ledger');
  assert.deepEqual([shown.configured, shown.pending, shown.dead >= 1], [false, 3, true]);

  const single = await recibo.api('POST', `/v1/notifications/${dead.notification_id}/replay`, { body: { reason: 'x' } });
  assert.deepEqual([single.status, single.json.code], [409, 'destination_not_configured'], single.text);
  const [delivered] = await notifications('destination=ledger&status=delivered');
  const over = await recibo.api('POST', `/v1/notifications/${delivered.notification_id}/replay`, { body: { reason: 'x' } });
  assert.deepEqual([over.status, over.json.code, over.json.status_of_notification], [409, 'illegal_status', 'delivered'], over.text);
  const filter = { destination: 'ledger', request_id: id };
  for (const dry_run of [true, false]) {
    const many = await recibo.api('POST', '/v1/notifications/replay', { body: { filter, reason: 'x', dry_run } });
    assert.deepEqual([many.status, many.json.matched, many.json.replayed, many.json.left, many.json.unconfigured, many.json.replay_id], [200, 1, 0, 0, 1, null], many.text);
  }
  const command = await recibo.run(['replay', 'dead', '--id', dead.notification_id, '--reason', 'x']);
  assert.equal(command.code, 1, command.stdout + command.stderr);
  assert.match(command.stdout, /ledger is not in this configuration: nobody sends to it, and they stay dead/);
  const doctor = await recibo.run(['doctor']);
  assert.deepEqual([doctor.code, /WRONG {2}destinations {2}3 notifications wait for "ledger"/.test(doctor.stdout)], [1, true], doctor.stdout);
  await until('the gauges say so', async () => (await recibo.metric('recibo_oldest_age_seconds', { queue: 'stranded' })) > 0 && (await recibo.metric('recibo_oldest_age_seconds', { queue: 'outbox:ledger' })) > 0, { timeout: 40_000, interval: 1_000 });
  await until('the log says so', () => /3 notifications wait for .{1,3}ledger/.test(recibo.service.tail()), { timeout: 20_000 });

  ledger.answer = () => 204;
  await configureAs({ ledger: gone, ...rest });
  await until('they are delivered', async () => (await destination('ledger')).pending === 0, { timeout: 30_000 });
  const again = await recibo.api('POST', '/v1/notifications/replay', { body: { filter, reason: 'it is back' } });
  assert.deepEqual([again.json.matched, again.json.replayed, again.json.unconfigured], [1, 1, 0], again.text);
  await until('the gauge is at rest', async () => (await recibo.metric('recibo_oldest_age_seconds', { queue: 'stranded' })) === 0, { timeout: 40_000, interval: 1_000 });
});

test('one that no secret is valid for is paused, and no attempt is lost by it', async () => {
  const all = { ...recibo.config.destinations };
  const later = { name: 'later', value: secret, from: '2999-01-01T00:00:00Z' };
  const { secret: _, ...mute } = { ...all.mail, retry: { attempts: 1, first: '1s', max: '1s' } };
  const reloaded = await configureAs({ ...all, mail: { ...mute, secrets: [later] } });
  assert.ok(reloaded.warnings.some((w) => /none of them is valid now; nothing can be signed, and mail is paused/.test(w.message)), JSON.stringify(reloaded.warnings));
  const before = mail.got.length;
  await acceptSome(12);
  const paused = await until('it is paused', async () => {
    const now = await destination('mail');
    return now.paused && now;
  }, { timeout: 20_000 });
  assert.deepEqual([paused.paused_by, paused.paused_reason, paused.breaker], ['recibo', 'no_valid_secret', 'closed']);
  await until('the log says so', () => /"a destination is paused: it needs a person".*no_valid_secret/.test(recibo.service.tail()), { timeout: 10_000 });
  // Resumed too early it is paused again, and still nothing is dead.
  const deadBefore = paused.dead;
  await resume('mail');
  await until('it is paused again', async () => (await destination('mail')).paused_at > paused.paused_at, { timeout: 20_000 });
  const waiting = await notifications('destination=mail&status=pending');
  assert.deepEqual([waiting.length, (await destination('mail')).dead, mail.got.length], [12, deadBefore, before]);
  await configureAs({ ...all, mail: { ...mute, secrets: [{ ...later, from: '2020-01-01T00:00:00Z' }] } });
  await resume('mail');
  await until('they are delivered', async () => (await destination('mail')).pending === 0, { timeout: 20_000 });
  assert.deepEqual([mail.got.length - before, (await destination('mail')).dead], [12, deadBefore]);
  await configureAs(all);
});

test('at the end nothing was told wrongly', () => {
  assert.deepEqual([...ledger.problems, ...mail.problems], []);
  for (const one of [ledger, mail]) one.stop();
});

stage.ends();
