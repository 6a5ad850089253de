// A word that several places make together (`event: {join: […]}`), with the configuration that Adyen's page shows: a capture that
// failed is no capture, in whatever way it is received, replayed or sent for trying.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sourceFolder } from '../support/process.mjs';
import { freshId } from '../support/random.mjs';
import { Stage } from '../support/recibo.mjs';
import { hmac } from '../support/sign.mjs';

const key = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056';
const hubSecret = 'test-secret-of-the-code-host';
const { extract, events } = JSON.parse(readFileSync(join(sourceFolder, 'src', 'config', 'provider_profiles.json'), 'utf8')).adyen;

const stage = await Stage.begin({
  configure(config) {
    config.providers.adyen = { verify: { scheme: 'adyen', secrets: [key] }, extract, events };
    config.providers.hub = {
      verify: { scheme: 'github', secrets: [hubSecret] },
      extract: {
        request_id: '/id', idempotency_key: { header: 'x-github-delivery', unsigned: 'accept' },
        event: { join: [{ header: 'x-github-event', unsigned: 'accept' }, '/action'] },
      },
      events: { 'pull_request/closed': 'complete', 'pull_request/opened': 'ignore' },
    };
    return config;
  },
});
const { recibo } = stage;

function item(request, eventCode, success, { reference = freshId('psp'), original } = {}) {
  const one = { amount: { currency: 'EUR', value: 1999 }, eventCode, merchantAccountCode: 'Shop', merchantReference: request, pspReference: reference };
  if (success !== undefined) one.success = success;
  if (original !== undefined) one.originalReference = original;
  const signed = [reference, original ?? '', 'Shop', request, '1999', 'EUR', eventCode, success ?? ''].join(':');
  return { NotificationRequestItem: { ...one, additionalData: { hmacSignature: createHmac('sha256', Buffer.from(key, 'hex')).update(signed).digest('base64') } } };
}

const notify = (...items) => recibo.raw({ target: '/callbacks/adyen', headers: [['Content-Type', 'application/json']], body: JSON.stringify({ live: 'false', notificationItems: items }) });
async function accepted(provider = 'adyen') {
  const id = freshId();
  await recibo.accepted(id, { provider });
  return id;
}
const state = async (id) => (await recibo.get(id)).state;
const failedOf = async (reason, provider) => (await recibo.list('/v1/failed-callbacks')).filter((one) => one.provider === provider && one.reason === reason);

test('a capture that failed completes nothing, and one that succeeded does', async () => {
  const id = await accepted();
  const payment = freshId('psp');
  const steps = [
    [item(id, 'AUTHORISATION', 'true', { reference: payment }), 'processing'],
    [item(id, 'CAPTURE', 'false', { original: payment }), 'processing'],
    [item(id, 'CAPTURE', 'true', { original: payment }), 'completed'],
  ];
  for (const [sent, expected] of steps) {
    const answer = await notify(sent);
    assert.deepEqual([answer.status, answer.text], [200, '[accepted]'], answer.text);
    assert.equal(await state(id), expected, sent.NotificationRequestItem.eventCode);
  }
  // It had been taken, and the scheme's answer comes later: a contradiction, which a person decides.
  assert.equal((await notify(item(id, 'CAPTURE_FAILED', 'true', { original: payment }))).status, 200);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.review_open], ['completed', true]);
});

test('every item of a request is read, each with its own word', async () => {
  const [refused, cancelled, kept] = [await accepted(), await accepted(), await accepted()];
  const answer = await notify(item(refused, 'AUTHORISATION', 'false'), item(cancelled, 'CANCELLATION', 'true'), item(kept, 'CANCELLATION', 'false'));
  assert.deepEqual([answer.status, answer.text], [200, '[accepted]']);
  assert.deepEqual([await state(refused), await state(cancelled), await state(kept)], ['failed', 'failed', 'accepted']);
});

test('without one of its parts it is no word, and the callback is kept', async () => {
  const id = await accepted();
  const answer = await notify(item(id, 'CAPTURE', undefined));
  assert.equal(answer.status, 202, 'Adyen would hold back what is behind a refusal');
  assert.equal(await state(id), 'accepted');
  const kept = await failedOf('missing_field', 'adyen');
  assert.equal(kept.length, 1);
  assert.match(JSON.stringify(kept[0]), /event: one of its parts is absent or blank/);
});

test('a header and a member make a word, which a replay finds again', async () => {
  const id = await accepted('hub');
  const send = (action, kind, delivery) => {
    const body = JSON.stringify({ id, action });
    const headers = [['Content-Type', 'application/json'], ['X-GitHub-Delivery', delivery], ['X-Hub-Signature-256', `sha256=${hmac('sha256', hubSecret, [body], 'hex')}`]];
    if (kind) headers.push(['X-GitHub-Event', kind]);
    return recibo.raw({ target: '/callbacks/hub', headers, body });
  };
  const opened = await send('opened', 'pull_request', 'd-1');
  assert.deepEqual([opened.status, opened.json.disposition], [200, 'ignored']);
  assert.equal((await send('closed', null, 'd-2')).status, 422);
  const odd = await send('merged', 'pull_request', 'd-3');
  assert.deepEqual([odd.status, odd.json.disposition], [202, 'unmapped'], odd.text);
  const [kept] = await failedOf('unmapped', 'hub');
  recibo.config.providers.hub.events['pull_request/merged'] = 'complete';
  recibo.write();
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  const shown = (await recibo.api('GET', '/v1/config', { token: 'root' })).json;
  assert.match(JSON.stringify(shown), /"event":\{"join":\[\{"header":"x-github-event","unsigned":"accept"\},"\/action"\]\}/);
  const replayed = await recibo.api('POST', `/v1/failed-callbacks/${kept.failed_callback_id}/replay`, { body: { reason: 'the map was mended' } });
  assert.deepEqual([replayed.status, replayed.json.disposition, replayed.json.state], [200, 'applied', 'completed'], replayed.text);
  const told = (await recibo.timeline(id)).find((e) => e.kind === 'replay');
  assert.equal(told.event, 'pull_request/merged');
});

test('recibo send writes the parts where they stand', async () => {
  const id = await accepted();
  const to = `http://127.0.0.1:${recibo.service.callbacks}/callbacks/adyen`;
  const send = (event, ...more) => recibo.run(['send', 'adyen', '--request-id', id, '--reference', freshId('psp'), '--event', event, '--to', to, ...more]);
  const failed = await send('CAPTURE/false');
  assert.equal(failed.code, 0, failed.stderr);
  assert.equal(await state(id), 'accepted');
  const sent = await send('CAPTURE/true');
  assert.equal(sent.code, 0, sent.stderr);
  assert.equal(await state(id), 'completed');
  const half = await send('CAPTURE');
  assert.equal(half.code, 2);
  assert.match(half.stderr, /a word of this provider has 2 parts/);
  const nonsense = await send('NONSENSE/true', '--dry-run');
  assert.equal(nonsense.code, 0, nonsense.stderr);
  assert.match(nonsense.stderr, /NONSENSE\/true is not among the events of adyen, so it will be unmapped; there are .*CAPTURE\/true \(complete\)/);
});

stage.ends();
