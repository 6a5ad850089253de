// S28 and its kind: verification requests of providers, as they send them and as others would. None leaves a row.
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { before, test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { exchange } from '../support/raw.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { hmac, nowSeconds } from '../support/sign.mjs';

const secret = 'test-secret-of-handshakes';
const token = 'vt-1';
const extract = { request_id: '/request_id', idempotency_key: '/event_id', event: '/status', occurred_at: '/occurred_at', amount: '/amount', currency: '/currency' };
const events = { processing: 'progress', succeeded: 'complete', failed: 'fail' };
const own = (handshake, secrets = [secret]) => ({
  verify: { scheme: 'hmac', algorithm: 'sha256', signature: { header: 'X-Signature', prefix: 'sha256=', encoding: 'hex' }, signed: '{timestamp}.{body}', timestamp: { header: 'X-Timestamp', unit: 'seconds' }, tolerance: '5m', secrets },
  extract, events, workflow: 'fixture', unmatched: 'park', ...(handshake ? { handshake } : {}),
});
const preset = (scheme) => ({ verify: { scheme, secrets: [secret] }, extract, events, workflow: 'fixture', unmatched: 'park' });

const stage = await Stage.begin({
  configure(config) {
    Object.assign(config.providers, {
      p4: own({ type: 'meta', token }),
      x: { ...own({ type: 'x-twitter' }), verify: { scheme: 'hmac', algorithm: 'sha256', signature: { header: 'X-Twitter-Webhooks-Signature', prefix: 'sha256=', encoding: 'base64' }, signed: '{body}', secrets: [secret] } },
      two: own({ type: 'braintree' }, ['public-1|private-1']),
      slacked: preset('slack'), zoomed: preset('zoom'), twitched: preset('twitch'), xeroed: preset('xero'), dropped: preset('dropbox'),
      shop: { ...preset('woocommerce') }, chat: preset('intercom'), closed: { ...preset('dropbox'), handshake: 'none' },
      graph: own({ type: 'microsoft-graph' }), okta: own({ type: 'okta' }), circle: own({ type: 'circle' }), crc: { ...own({ type: 'x-twitter' }), verify: { scheme: 'hmac', algorithm: 'sha256', signature: { header: 'X-Signature', prefix: 'sha256=', encoding: 'hex' }, signed: '{body}', secrets: [secret] } },
      asana: own({ type: 'asana' }), discord: own({ type: 'discord' }),
    });
    return config;
  },
});
const { recibo } = stage;

let atFirst;
before(async () => {
  atFirst = await recibo.everything();
});
const unchanged = async (hint) => assert.deepEqual(await recibo.everything(), atFirst, hint);

const ask = (name, query, { method = 'GET', headers = [], body = '' } = {}) =>
  recibo.raw({ method, target: `/callbacks/${name}${query ? `?${query}` : ''}`, headers, body });
const post = (name, body, headers = [], query = '') => ask(name, query, { method: 'POST', headers: [['Content-Type', 'application/json'], ...headers], body });

function echoed(answer, text) {
  assert.deepEqual([answer.status, answer.text], [200, text]);
  assert.match(answer.header('Content-Type'), /^text\/plain/);
  assert.equal(answer.header('X-Content-Type-Options'), 'nosniff');
  assert.equal(answer.header('Set-Cookie'), undefined);
}
function refused(answer, status, canary = 'canary') {
  assert.equal(answer.status, status, answer.text);
  assert.ok(!answer.text.includes(canary) && !JSON.stringify(answer.headers).includes(canary), 'nothing of the request comes back');
}

test('S28 a GET challenge: echoed as text for the right token, refused without an echo for another', async () => {
  const script = '%3Cscript%3Ealert(1)%3C%2Fscript%3E';
  const query = `hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=${script}`;
  echoed(await ask('p4', query), '<script>alert(1)</script>');
  echoed(await ask('p4', `hub.challenge=1158201444&hub.verify_token=${token}&hub.mode=subscribe`), '1158201444');
  const wrong = await ask('p4', query.replace(`=${token}`, '=bad'));
  refused(wrong, 403, 'script');
  for (const method of ['HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const answer = await ask('p4', query, { method });
    assert.deepEqual([answer.status, answer.header('Allow')], [405, 'GET, POST'], method);
    if (method === 'HEAD') assert.equal(answer.text, '');
  }
  const without = await ask('p1', query);
  assert.deepEqual([without.status, without.header('Allow')], [405, 'POST']);
  await unchanged();
});

test('S28 hostile challenges: injection, length, repetition, encodings', async () => {
  const right = `hub.mode=subscribe&hub.verify_token=${token}`;
  for (const challenge of ['canary%0d%0aSet-Cookie:%20a=b', 'canary%00', 'canary%c3%a4', `canary${'x'.repeat(4000)}`, '', 'canary&hub.challenge=canary', 'canary%']) {
    const answer = await ask('p4', `${right}&hub.challenge=${challenge}`);
    assert.ok([400, 403].includes(answer.status), `${challenge.slice(0, 30)}: ${answer.status}`);
    refused(answer, answer.status);
  }
  const long = await ask('p4', `${right}&hub.challenge=${'canary'.repeat(2000)}`);
  refused(long, 431);
  for (const query of ['', 'hub.mode=subscribe&hub.challenge=canary', `hub.mode=subscribe&hub.verify_token=&hub.challenge=canary`, `${right}&hub.verify_token=bad&hub.challenge=canary`, `hub.verify_token=bad&${right}&hub.challenge=canary`, `hub.mode=subscribe&hub.verify_token=${token}x&hub.challenge=canary`])
    refused(await ask('p4', query), 403);
  await unchanged();
});

test('a provider with a handshake takes its callbacks as ever', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p4' });
  const answer = await recibo.callback('p4', callbackBody(id, freshId('evt')), { secret });
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
  atFirst = await recibo.everything();
});

test('Dropbox, Okta, Circle and Intercom ask without a signature', async () => {
  echoed(await ask('dropped', 'challenge=AbC-_123'), 'AbC-_123');
  refused(await ask('dropped', 'challenge=canary%0a'), 400);
  assert.deepEqual([(await ask('closed', 'challenge=x')).status, (await ask('closed', 'challenge=x')).header('Allow')], [405, 'POST'], 'handshake: none');
  const okta = await ask('okta', '', { headers: [['X-Okta-Verification-Challenge', 'a"b<c>']] });
  assert.deepEqual([okta.status, okta.json, okta.header('X-Content-Type-Options')], [200, { verification: 'a"b<c>' }, 'nosniff']);
  assert.match(okta.header('Content-Type'), /^application\/json/);
  refused(await ask('okta', ''), 400);
  for (const name of ['circle', 'chat']) {
    const head = await ask(name, '', { method: 'HEAD' });
    assert.deepEqual([head.status, head.text], [200, ''], name);
    assert.deepEqual([(await ask(name, '')).status, (await ask(name, '')).header('Allow')], [405, 'HEAD, POST'], name);
  }
  await unchanged();
});

test('Braintree and X get a proof of the secret, and sign no callback for anybody', async () => {
  const challenge = '20f9f8ed05f77439fe95';
  const key = createHash('sha1').update('private-1').digest();
  echoed(await ask('two', `bt_challenge=${challenge}`), `public-1|${createHmac('sha1', key).update(challenge).digest('hex')}`);
  refused(await ask('two', `bt_challenge=${Buffer.from('canary').toString('base64url')}`), 400);
  const crc = await ask('crc', 'crc_token=abc-123&nonce=7');
  assert.deepEqual([crc.status, crc.json], [200, { response_token: `sha256=${hmac('sha256', secret, ['abc-123'], 'base64')}` }]);
  refused(await ask('crc', `crc_token=${encodeURIComponent(callbackBody('canary', 'e'))}`), 400);
  await unchanged();
});

test('Microsoft Graph, WooCommerce and Asana post without a signature', async () => {
  echoed(await post('graph', '', [], 'validationToken=Validation%3a+Testing+%3Cb%3E'), 'Validation: Testing <b>');
  refused(await post('graph', '', [], 'validationToken=canary%0d%0aX:%20y'), 400);
  // With news in its body it is a callback, and nobody has signed it.
  refused(await post('graph', callbackBody('r', 'e'), [], 'validationToken=canary'), 401);
  const ping = await ask('shop', '', { method: 'POST', headers: [['Content-Type', 'application/x-www-form-urlencoded']], body: 'webhook_id=17' });
  assert.deepEqual([ping.status, ping.text], [200, '']);
  assert.equal((await post('shop', '{"id":1}')).status, 401, 'anything else has a signature');
  const asana = await post('asana', '', [['X-Hook-Secret', 'b537207f20cbfa02']]);
  assert.deepEqual([asana.status, asana.header('X-Hook-Secret'), asana.text], [200, 'b537207f20cbfa02', '']);
  refused(await post('asana', '', [['X-Hook-Secret', 'canary b']]), 400);
  assert.equal((await post('asana', callbackBody('r', 'e'), [['X-Hook-Secret', 'x']])).status, 401);
  await unchanged();
});

const slackHeaders = (body, key = secret, at = String(nowSeconds())) => [['X-Slack-Request-Timestamp', at], ['X-Slack-Signature', `v0=${hmac('sha256', key, [`v0:${at}:`, body], 'hex')}`]];
const zoomHeaders = (body, key = secret, at = String(nowSeconds())) => [['x-zm-request-timestamp', at], ['x-zm-signature', `v0=${hmac('sha256', key, [`v0:${at}:`, body], 'hex')}`]];

test('Slack and Zoom sign their questions: verified first', async () => {
  const body = JSON.stringify({ token: 't', challenge: '3eZbrw1aB10<script>', type: 'url_verification' });
  echoed(await post('slacked', body, slackHeaders(body)), '3eZbrw1aB10<script>');
  refused(await post('slacked', body), 401, '3eZbrw');
  refused(await post('slacked', body, slackHeaders(body, 'another')), 401, '3eZbrw');
  refused(await post('slacked', body, slackHeaders(body, secret, String(nowSeconds() - 1000))), 401, '3eZbrw');
  const zoom = JSON.stringify({ event: 'endpoint.url_validation', event_ts: 1, payload: { plainToken: 'qgg8vlvZRS6UYooatFL8Aw' } });
  const answer = await post('zoomed', zoom, zoomHeaders(zoom));
  assert.deepEqual([answer.status, answer.json], [200, { plainToken: 'qgg8vlvZRS6UYooatFL8Aw', encryptedToken: hmac('sha256', secret, ['qgg8vlvZRS6UYooatFL8Aw'], 'hex') }]);
  refused(await post('zoomed', zoom, zoomHeaders(zoom, 'another')), 401, 'qgg8');
  await unchanged();
});

test('a signed question that cannot be answered is kept like any other callback that cannot be understood', async () => {
  const slack = JSON.stringify({ type: 'url_verification', challenge: 'canary'.repeat(2000) });
  const answer = await post('slacked', slack, slackHeaders(slack));
  refused(answer, 422);
  assert.equal(answer.json.code, 'unprocessable');
  const [failed] = await recibo.sql('SELECT provider, disposition, detail FROM recibo.failed_callbacks WHERE delivery = $1', [answer.json.delivery_id]);
  assert.deepEqual([failed.provider, failed.disposition], ['slacked', 'unprocessable']);
  assert.match(failed.detail, /verification request whose challenge/);
  atFirst = await recibo.everything();
});

test('Twitch, Intercom and Discord too', async () => {
  const signed = (body, at = new Date().toISOString(), id = 'm-1') => [['Twitch-Eventsub-Message-Id', id], ['Twitch-Eventsub-Message-Timestamp', at], ['Twitch-Eventsub-Message-Signature', `sha256=${hmac('sha256', secret, [id, at, body], 'hex')}`]];
  const question = JSON.stringify({ challenge: 'pogchamp-kappa-360noscope-vohiyo', subscription: { status: 'webhook_callback_verification_pending' } });
  const type = (word) => ['Twitch-Eventsub-Message-Type', word];
  echoed(await post('twitched', question, [...signed(question), type('webhook_callback_verification')]), 'pogchamp-kappa-360noscope-vohiyo');
  refused(await post('twitched', question, [type('webhook_callback_verification')]), 401, 'pogchamp');
  const ping = JSON.stringify({ type: 'notification_event', topic: 'ping', id: 'notif_1' });
  const pinged = await post('chat', ping, [['X-Hub-Signature', `sha1=${hmac('sha1', secret, [ping], 'hex')}`]]);
  assert.deepEqual([pinged.status, pinged.text], [200, '']);
  const at = String(nowSeconds());
  const hello = '{"version":1,"application_id":"1","type":0}';
  const ponged = await post('discord', hello, [['X-Timestamp', at], ['X-Signature', `sha256=${hmac('sha256', secret, [`${at}.`, hello], 'hex')}`]]);
  assert.deepEqual([ponged.status, ponged.text, ponged.header('Content-Type')], [204, '', 'application/json']);
  refused(await post('discord', hello), 401, 'application_id');
  await unchanged();
});

test("Xero's intent to receive: 200 and 401, both without a body", async () => {
  const body = '{"events":[],"lastEventSequence": 0,"firstEventSequence": 0,"entropy": "S0m3r4Nd0mt3xt"}';
  const fine = await post('xeroed', body, [['x-xero-signature', hmac('sha256', secret, [body], 'base64')]]);
  assert.deepEqual([fine.status, fine.text, fine.header('Set-Cookie')], [200, '', undefined]);
  // Past the list of exchanges: the OpenAPI document promises problems to everybody else.
  const wrong = await exchange(recibo.service.callbacks, { method: 'POST', target: '/callbacks/xeroed', headers: [['Content-Type', 'application/json'], ['x-xero-signature', hmac('sha256', 'another', [body], 'base64')]], body });
  assert.deepEqual([wrong.status, wrong.text], [401, '']);
  await unchanged();
});

test('a handshake is counted apart, and logged without what it holds', async () => {
  assert.ok((await recibo.metric('recibo_callbacks_total', { provider: 'p4', disposition: 'handshake' })) >= 2);
  assert.ok((await recibo.metric('recibo_callbacks_total', { provider: 'p4', disposition: 'unauthenticated' })) >= 1);
  const lines = recibo.service.lines.map(({ text }) => text);
  assert.ok(lines.some((line) => line.includes('handshake answered')) && lines.some((line) => line.includes('handshake refused')));
  assert.ok(!lines.some((line) => /canary|alert\(1\)|pogchamp|vt-1/.test(line)), 'no challenge and no token in the log');
});

test('the signature that a handshake gives to anybody opens nothing', async () => {
  const told = await ask('x', 'crc_token=1234567');
  const headers = [['X-Twitter-Webhooks-Signature', told.json.response_token]];
  assert.equal((await post('x', '1234567', headers)).status, 401);
  const body = callbackBody('of-somebody', 'e');
  assert.notEqual((await post('x', body, [['X-Twitter-Webhooks-Signature', `sha256=${hmac('sha256', secret, [body], 'base64')}`]])).status, 401);
});

stage.ends();
