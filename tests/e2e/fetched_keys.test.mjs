// Providers whose keys are fetched: a server of this test's own stands in for their APIs, behind TLS of an authority that
// the configuration names. Keys are fetched once, failures are not the sender's, inventions drive no traffic.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { nowSeconds } from '../support/sign.mjs';

const folder = mkdtempSync(join(tmpdir(), 'rcb-keys-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const certificate = join(folder, 'authority.pem');
execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', join(folder, 'key.pem'),
  '-out', certificate, '-days', '2', '-subj', '/CN=provider.test', '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });

const pair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const circleKeys = new Map();
const plaidKeys = new Map();
const asked = [];
// What the API does instead of answering: undefined, a status, or 'hang'.
let trouble;

const api = createServer({ key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(certificate) }, async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  asked.push({ method: request.method, url: request.url, headers: request.headers, body });
  if (trouble === 'hang') return;
  const answer = (status, what) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(what));
  if (trouble) return answer(trouble, { error_code: 'INTERNAL_SERVER_ERROR' });
  if (request.url.startsWith('/circle/')) {
    if (request.headers.authorization !== 'Bearer circle-api-key') return answer(401, { code: 401 });
    const id = request.url.slice('/circle/'.length);
    const key = circleKeys.get(id);
    if (!key) return answer(404, { code: 404 });
    return answer(200, { data: { id, algorithm: 'ECDSA_SHA_256', publicKey: key.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'), createDate: '2026-01-01T00:00:00Z' } });
  }
  const said = JSON.parse(body);
  if (said.client_id !== 'plaid-client' || said.secret !== 'plaid-api-secret') return answer(400, { error_type: 'INVALID_INPUT', error_code: 'INVALID_API_KEYS' });
  const key = plaidKeys.get(said.key_id);
  if (!key) return answer(400, { error_type: 'INVALID_INPUT', error_code: 'INVALID_WEBHOOK_VERIFICATION_KEY_ID' });
  return answer(200, { key: { ...key.publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: said.key_id, created_at: 1700000000, expired_at: null }, request_id: 'r1' });
});
await new Promise((listening) => api.listen(0, '127.0.0.1', listening));
after(() => {
  api.closeAllConnections();
  api.close();
});
const at = (path) => `https://127.0.0.1:${api.address().port}${path}`;

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    const allow = ['127.0.0.0/8'];
    config.outbound = { ca: certificate };
    config.providers.circle = { ...p1, verify: { scheme: 'circle', fetch: { url: at('/circle/{id}'), headers: { Authorization: 'Bearer circle-api-key' }, allow } } };
    config.providers.plaid = { ...p1, verify: { scheme: 'plaid', fetch: { url: at('/plaid'), client_id: 'plaid-client', secret: 'plaid-api-secret', allow } } };
    config.providers.locked = { ...p1, verify: { scheme: 'plaid', fetch: { url: at('/plaid'), client_id: 'plaid-client', secret: 'wrong-api-secret', allow } } };
    config.providers.inside = { ...p1, verify: { scheme: 'circle', fetch: { url: at('/circle/{id}'), headers: { Authorization: 'Bearer circle-api-key' } } } };
    return config;
  },
});
const { recibo } = stage;

function newKey(keys) {
  const id = freshId('kid');
  keys.set(id, pair());
  return id;
}

function circle(provider, body, id, key = circleKeys.get(id)) {
  const headers = [['Content-Type', 'application/json'], ['X-Circle-Key-Id', id], ['X-Circle-Signature', sign('sha256', Buffer.from(body), key.privateKey).toString('base64')]];
  return recibo.raw({ target: `/callbacks/${provider}`, headers, body });
}

function plaid(provider, body, id, key = plaidKeys.get(id), sent = body) {
  const part = (what) => Buffer.from(JSON.stringify(what)).toString('base64url');
  const text = `${part({ alg: 'ES256', kid: id, typ: 'JWT' })}.${part({ iat: nowSeconds(), request_body_sha256: createHash('sha256').update(body).digest('hex') })}`;
  const token = `${text}.${sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  return recibo.raw({ target: `/callbacks/${provider}`, headers: [['Content-Type', 'application/json'], ['Plaid-Verification', token]], body: sent });
}

const fresh = () => callbackBody(freshId(), freshId('evt'));
const count = (id) => asked.filter((one) => one.url.includes(id) || one.body.includes(id)).length;
const outcome = (response) => [response.status, response.json.disposition ?? response.json.code];

test('a key is fetched once, however many callbacks name it', async () => {
  const id = newKey(circleKeys);
  const answers = await Promise.all(Array.from({ length: 20 }, () => circle('circle', fresh(), id)));
  for (const answer of answers) assert.deepEqual(outcome(answer), [202, 'parked']);
  assert.equal(count(id), 1);
  const request = asked.find((one) => one.url.includes(id));
  assert.deepEqual([request.method, request.url, request.headers.authorization], ['GET', `/circle/${id}`, 'Bearer circle-api-key']);

  const other = newKey(plaidKeys);
  for (let i = 0; i < 3; i += 1) assert.deepEqual(outcome(await plaid('plaid', fresh(), other)), [202, 'parked']);
  assert.equal(count(other), 1);
  assert.deepEqual(JSON.parse(asked.find((one) => one.body.includes(other)).body), { client_id: 'plaid-client', secret: 'plaid-api-secret', key_id: other });
});

test('a fetched key verifies what it signed and nothing else', async () => {
  const id = newKey(circleKeys);
  assert.deepEqual(outcome(await circle('circle', fresh(), id)), [202, 'parked']);
  assert.deepEqual(outcome(await circle('circle', fresh(), id, pair())), [401, 'unauthenticated']);
  const other = newKey(plaidKeys);
  assert.deepEqual(outcome(await plaid('plaid', fresh(), other, pair())), [401, 'unauthenticated']);
  assert.deepEqual(outcome(await plaid('plaid', fresh(), other)), [202, 'parked']);
});

test('a body that was changed after its hash was signed is told as that, and no key is fetched for it', async () => {
  const id = newKey(plaidKeys);
  const body = fresh();
  assert.deepEqual(outcome(await plaid('plaid', body, id, plaidKeys.get(id), `${body} `)), [401, 'unauthenticated']);
  assert.equal(count(id), 0);
  const [latest] = await recibo.list('/v1/providers/plaid/refusals', { token: 'viewer' });
  assert.deepEqual([latest.reason, latest.cause], ['signature_mismatch', 'body_changed'], JSON.stringify(latest));
});

test('a key that does not exist is 401, and asked for once', async () => {
  const before = await recibo.everything();
  for (const send of [circle, plaid]) {
    const id = freshId('invented');
    for (let i = 0; i < 3; i += 1) assert.deepEqual(outcome(await send(send.name, fresh(), id, pair())), [401, 'unauthenticated']);
    assert.equal(count(id), 1, send.name);
    const [latest] = await recibo.list(`/v1/providers/${send.name}/refusals`, { token: 'viewer' });
    assert.deepEqual([latest.reason, latest.cause, latest.count], ['signature_mismatch', 'key_unknown', 3], JSON.stringify(latest));
  }
  for (const id of ['../../admin', 'a/b', 'a?b', '..', 'a b', '', 'x'.repeat(200)]) {
    const sent = asked.length;
    assert.deepEqual(outcome(await circle('circle', fresh(), id, pair())), [401, 'unauthenticated'], id);
    assert.equal(asked.length, sent, `nothing is fetched for ${id}`);
  }
  assert.deepEqual(await recibo.everything(), before);
});

test('a provider that cannot be asked is no fault of the sender: 503, and the resend is taken', async () => {
  for (const [send, keys] of [[circle, circleKeys], [plaid, plaidKeys]]) {
    const id = newKey(keys);
    const body = fresh();
    trouble = 500;
    const refused = await send(send.name, body, id);
    trouble = undefined;
    assert.deepEqual(outcome(refused), [503, 'unavailable']);
    assert.match(refused.header('Retry-After'), /^[0-9]+$/);
    let answer = refused;
    for (const end = Date.now() + 20_000; answer.status === 503 && Date.now() < end; ) {
      await new Promise((later) => setTimeout(later, 200));
      answer = await send(send.name, body, id);
    }
    assert.deepEqual(outcome(answer), [202, 'parked']);
  }
  // Credentials that the provider refuses are ours to mend.
  assert.deepEqual(outcome(await plaid('locked', fresh(), newKey(plaidKeys))), [503, 'unavailable']);
});

test('an API on a private address is not asked unless its network is allowed', async () => {
  const id = newKey(circleKeys);
  assert.deepEqual(outcome(await circle('inside', fresh(), id)), [503, 'unavailable']);
  assert.equal(count(id), 0);
});

test('credentials and keys stay out of the logs', async () => {
  const log = recibo.services.flatMap((service) => service.lines.map(({ text }) => text)).join('\n');
  for (const word of ['circle-api-key', 'plaid-api-secret', 'wrong-api-secret']) assert.ok(!log.includes(word), word);
});

// Last, because these use up what new keys are granted.
test('inventions drive little traffic, and shut out nobody who is known', async () => {
  const id = newKey(circleKeys);
  assert.deepEqual(outcome(await circle('circle', fresh(), id)), [202, 'parked']);
  const before = asked.length;
  const forged = await Promise.all(Array.from({ length: 200 }, () => circle('circle', fresh(), freshId('invented'), pair())));
  assert.ok(forged.every((one) => one.status === 401 || one.status === 503));
  assert.ok(asked.length - before <= 30, `${asked.length - before} questions for 200 inventions`);
  assert.deepEqual(outcome(await circle('circle', fresh(), id)), [202, 'parked']);
});

// While inventions come on and on, from the very address that the provider has here: what is asked for again is no invention.
test('a new key of the provider is taken in the midst of inventions', async () => {
  let flooding = true;
  const flood = (async () => {
    while (flooding) {
      await Promise.all(Array.from({ length: 20 }, () => circle('circle', fresh(), freshId('invented'), pair())));
      await new Promise((later) => setTimeout(later, 20));
    }
  })();
  const id = newKey(circleKeys);
  const body = fresh();
  let answer = await circle('circle', body, id);
  for (const end = Date.now() + 30_000; answer.status === 503 && Date.now() < end; ) {
    await new Promise((later) => setTimeout(later, 1_000 * Number(answer.header('Retry-After'))));
    answer = await circle('circle', body, id);
  }
  flooding = false;
  await flood;
  assert.deepEqual(outcome(answer), [202, 'parked'], answer.text);
});

test('a token that cannot be right is refused before any key is asked for', async () => {
  const before = asked.length;
  const part = (what) => Buffer.from(JSON.stringify(what)).toString('base64url');
  const signature = Buffer.alloc(64, 1).toString('base64url');
  const body = fresh();
  const hash = createHash('sha256').update(body).digest('hex');
  for (const claims of [{ iat: nowSeconds() - 1000, request_body_sha256: hash }, { iat: nowSeconds(), request_body_sha256: '00'.repeat(32) }, { iat: nowSeconds() }, {}]) {
    const token = `${part({ alg: 'ES256', kid: freshId('kid') })}.${part(claims)}.${signature}`;
    const answer = await recibo.raw({ target: '/callbacks/plaid', headers: [['Content-Type', 'application/json'], ['Plaid-Verification', token]], body });
    assert.deepEqual(outcome(answer), [401, 'unauthenticated']);
  }
  assert.equal(asked.length, before);
  assert.ok((await recibo.list('/v1/providers/plaid/refusals', { token: 'viewer' })).some((one) => one.reason === 'timestamp_stale'));
});

stage.ends();
