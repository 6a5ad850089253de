// Callback URLs that belong to one operation each (R42): they authenticate and correlate providers that sign nothing, sign no
// identity or echo none.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { freshId } from '../support/random.mjs';
import { Stage } from '../support/recibo.mjs';
import { hmac, sha256Hex } from '../support/sign.mjs';

const keys = { old: 'the-first-secret-of-callback-urls', current: 'the-second-secret-of-callback-urls' };
const base = 'https://hooks.example.com/in';

const stage = await Stage.begin({
  configure(config) {
    config.callback_urls = { base, secrets: [{ name: 'current', value: keys.current }, { name: 'old', value: keys.old }] };
    const words = { events: { sent: 'complete', lost: 'fail', going: 'progress' }, workflow: 'fixture', unmatched: 'park' };
    const bare = { verify: { scheme: 'callback-url' }, ...words };
    // A form, or the same fields in a query.
    config.providers.faxes = { ...bare, callback_url: { methods: ['GET', 'POST'] }, extract: { event: { form: 'status' }, amount: { form: 'amount' } } };
    // JSON that may say whom it means, and has a number of its own.
    config.providers.letters = { ...bare, extract: { request_id: '/request_id', reference: '/reference', idempotency_key: '/n', event: '/status' } };
    config.providers.brief = { ...bare, callback_url: { expires: '1m' }, extract: { event: '/status' } };
    config.providers.asked = { ...bare, callback_url: { methods: ['GET'] }, extract: { event: { query: 'status' }, idempotency_key: { query: 'n' } } };
    // A shared word besides: both must be right.
    config.providers.gitlab = {
      ...words,
      verify: { scheme: 'gitlab-token', secrets: ['test-secret-gitlab'] },
      callback_url: 'required',
      extract: { idempotency_key: { header: 'x-gitlab-event-uuid', unsigned: 'accept' }, event: { json: '/object_attributes/status', unsigned: 'accept' } },
    };
    // The token proves who sends, and no field: keys in the body are accepted unsigned.
    config.providers.events = {
      ...words,
      verify: { scheme: 'gitlab-token', secrets: ['test-secret-gitlab'] },
      callback_url: 'required',
      extract: { each: '/events', idempotency_key: { json: '/id', unsigned: 'accept' }, event: { json: '/status', unsigned: 'accept' } },
    };
    config.providers.okta = {
      ...words,
      verify: { scheme: 'okta', secrets: ['test-secret-okta'] },
      callback_url: 'required',
      extract: { idempotency_key: { json: '/eventId', unsigned: 'accept' }, event: { json: '/data/events/0/eventType', unsigned: 'accept' } },
    };
    // The signature covers the URL that was called, which is the operation's own.
    config.providers.signed = {
      ...words,
      verify: { scheme: 'hmac', algorithm: 'sha256', signature: { header: 'X-Signature', encoding: 'hex' }, signed: '{url}.{body}', secrets: ['test-secret-signed'] },
      callback_url: 'required',
      extract: { reference: '/reference', idempotency_key: '/n', event: '/status' },
    };
    return config;
  },
});
const { recibo } = stage;

async function registered(provider, more = {}) {
  const id = freshId();
  const operation = await recibo.accepted(id, { provider, ...more });
  assert.ok(operation.callback_url?.startsWith(`${base}/callbacks/${provider}/`), JSON.stringify(operation));
  return { id, url: operation.callback_url, target: operation.callback_url.slice(base.length) };
}

const form = [['Content-Type', 'application/x-www-form-urlencoded']];
const json = [['Content-Type', 'application/json']];
const post = (target, body, headers = json) => recibo.raw({ target, headers, body });
const get = (target, headers = []) => recibo.raw({ method: 'GET', target, headers, body: '' });
const look = (answer) => [answer.status, answer.json?.disposition, answer.replayed];

test('a form at the URL of its operation is applied, and sent again it is a replay', async () => {
  const { id, target } = await registered('faxes');
  const first = await post(target, 'status=sent&amount=19.99', form);
  assert.deepEqual(look(first), [200, 'applied', false], first.text);
  assert.equal(first.json.request_id, id);
  const again = await post(`${target}/`, 'status=sent&amount=19.99', form);
  assert.deepEqual(look(again), [200, 'applied', true]);
  assert.equal(again.text, first.text);
  await recibo.expectCounts(id, 1, 1, 0);
  assert.deepEqual((await recibo.deliveries(id)).map((d) => [d.disposition, d.secret]), [['applied', 'callback-url/current'], ['duplicate', 'callback-url/current']]);
  assert.ok((await recibo.metric('recibo_secret_last_used_seconds', { provider: 'faxes', secret: 'callback-url/current' })) > 1e9, 'when it was last used is a metric');
});

test('equal bodies at the URLs of several operations are several callbacks, also while they cannot be understood', async () => {
  const all = [];
  for (let i = 0; i < 3; ++i) all.push(await registered('faxes'));
  for (const { id, target } of all) {
    const answer = await post(target, 'status=delivered', form);
    assert.deepEqual([answer.status, answer.json.disposition, answer.json.request_id], [202, 'unmapped', id], answer.text);
  }
  const words = { ...recibo.config.providers.faxes.events };
  const map = async (events) => {
    recibo.config.providers.faxes.events = events;
    recibo.write();
    assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  };
  await map({ ...words, delivered: words.sent });
  // One comes again, and closes its own.
  assert.equal((await post(all[1].target, 'status=delivered', form)).json.disposition, 'applied');
  const failed = (await recibo.list('/v1/failed-callbacks?provider=faxes')).filter((f) => all.some(({ id }) => id === f.request_id));
  assert.deepEqual(new Set(failed.map((f) => f.request_id)), new Set([all[0].id, all[2].id]));
  for (const one of failed) {
    const done = await recibo.api('POST', `/v1/failed-callbacks/${one.failed_callback_id}/replay`, { token: 'ops', body: { reason: 'mended' } });
    assert.deepEqual([done.json.disposition, done.json.closed], ['applied', true], done.text);
  }
  for (const { id } of all) await recibo.expectCounts(id, 1, 1, 0);
  await map(words);
});

test('events of one request that failed together keep a key each', async () => {
  const { id, target } = await registered('events');
  const body = JSON.stringify({ events: [{ id: 'a', status: 'begun' }, { id: 'b', status: 'ended' }] });
  const send = () => post(target, body, [...json, ['X-Gitlab-Token', 'test-secret-gitlab']]);
  assert.deepEqual((await send()).json.events.map((e) => e.disposition), ['unmapped', 'unmapped']);
  const before = { ...recibo.config.providers.events.events };
  const map = async (events) => {
    recibo.config.providers.events.events = events;
    recibo.write();
    assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  };
  await map({ ...before, begun: 'ignore', ended: before.sent });
  const answer = await send();
  assert.deepEqual(answer.json.events.map((e) => e.disposition), ['ignored', 'applied'], answer.text);
  const keys = await recibo.sql("SELECT convert_from(substr(k.key, 5), 'UTF8') AS key FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1", [id]);
  assert.deepEqual(keys.map((k) => k.key), ['b'], 'each its own');
  await map(before);
});

test('a GET brings the same, its repetition by a prefetch is a replay, and a HEAD is nothing', async () => {
  const { id, target } = await registered('faxes');
  const before = await recibo.everything();
  const head = await recibo.raw({ method: 'HEAD', target: `${target}?status=sent`, headers: [], body: '' });
  assert.deepEqual([head.status, head.header('Allow')], [405, 'GET, POST']);
  assert.deepEqual(await recibo.everything(), before, 'HEAD leaves no trace');
  const first = await get(`${target}?status=sent`);
  assert.deepEqual(look(first), [200, 'applied', false], first.text);
  for (const headers of [[['Purpose', 'prefetch']], [['Sec-Purpose', 'prefetch']], []])
    assert.deepEqual(look(await get(`${target}?status=sent`, headers)), [200, 'applied', true]);
  await recibo.expectCounts(id, 1, 1, 0);
  const [{ id: delivery, body_sha256: digest }] = await recibo.deliveries(id);
  assert.equal(digest, sha256Hex('status=sent'));
  assert.equal(String(await recibo.storedBody(delivery)), 'status=sent', 'what a GET says is kept as it came');
  // A scanner that follows the bare link says nothing, and moves nothing.
  const bare = await get(target);
  assert.deepEqual(look(bare), [422, undefined, false], bare.text);
  assert.equal((await recibo.raw({ method: 'GET', target: `${target}?status=lost`, headers: form, body: 'status=sent' })).status, 400, 'a GET with a body can be read in two ways');
  await recibo.expectCounts(id, 1, 1, 0);
});

test('methods that are not configured are refused with those that are', async () => {
  const { id, target } = await registered('asked');
  const refused = await post(target, '');
  assert.deepEqual([refused.status, refused.header('Allow')], [405, 'GET']);
  assert.deepEqual(look(await get(`${target}?status=going&n=1`)), [200, 'applied', false]);
  assert.deepEqual(look(await get(`${target}?n=1&status=going`)), [200, 'applied', true], 'the key is what counts, in any order');
  const other = await get(`${target}?status=sent&n=1`);
  assert.deepEqual([other.status, other.json.code], [409, 'conflict']);
  await recibo.expectCounts(id, 1, 1, 1);
  const letter = await registered('letters');
  const byGet = await get(`${letter.target}?status=sent`);
  assert.deepEqual([byGet.status, byGet.header('Allow')], [405, 'POST']);
});

test('whatever is wrong with the URL, the answer is the 401 of a wrong signature, and nothing is recorded', async () => {
  const one = await registered('letters');
  const two = await registered('letters');
  const fax = await registered('faxes');
  const token = one.target.split('/').at(-1);
  const flip = (text, at) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
  // Another operation's request ID behind this one's MAC.
  const bytes = Buffer.from(token, 'base64url');
  const forged = Buffer.concat([bytes.subarray(0, 41), Buffer.from(two.id)]).toString('base64url');
  // Its life prolonged.
  const longer = Buffer.from(bytes);
  longer[1] = 1;
  const wrong = {
    'no token': '/callbacks/letters',
    'the common URL with a slash': '/callbacks/letters/',
    'one of another provider': `/callbacks/letters/${fax.target.split('/').at(-1)}`,
    'forged for another operation': `/callbacks/letters/${forged}`,
    'prolonged': `/callbacks/letters/${longer.toString('base64url')}`,
    'changed at its front': `/callbacks/letters/${flip(token, 0)}`,
    'changed in its MAC': `/callbacks/letters/${flip(token, 30)}`,
    'changed at its end': `/callbacks/letters/${flip(token, token.length - 1)}`,
    'cut': `/callbacks/letters/${token.slice(0, -4)}`,
    'padded': `/callbacks/letters/${token}=`,
    'encoded': `/callbacks/letters/%${token.charCodeAt(0).toString(16)}${token.slice(1)}`,
    'nonsense': '/callbacks/letters/x',
  };
  const before = await recibo.everything();
  const bodies = new Set();
  for (const [what, target] of Object.entries(wrong)) {
    const answer = await post(target, JSON.stringify({ status: 'sent', n: 1 }));
    assert.equal(answer.status, 401, `${what}: ${answer.text}`);
    bodies.add(answer.text.replace(/"trace_id":"[^"]*"/, ''));
  }
  assert.equal(bodies.size, 1, [...bodies].join('\n'));
  const [latest] = await recibo.list('/v1/providers/letters/refusals', { token: 'viewer' });
  assert.equal(latest.cause, 'callback_url', 'who runs it is told why');
  assert.equal(JSON.stringify(latest).includes(token.slice(4, 20)), false, 'and never the token');
  assert.deepEqual(await recibo.everything(), before);
  assert.equal((await post(`/callbacks/p1/${token}`, '{}')).status, 404, 'a provider without such URLs has nothing there');
  assert.equal((await post(`${one.target}/more`, '{}')).status, 404);
  assert.deepEqual(look(await post(one.target, JSON.stringify({ status: 'sent', n: 1 }))), [200, 'applied', false], 'the right one is as good as ever');
});

test('a callback that names another operation than its URL moves neither, and a person looks', async () => {
  const mine = await registered('letters');
  const other = await registered('letters');
  const said = JSON.stringify({ request_id: other.id, status: 'sent', n: 1 });
  const answer = await post(mine.target, said);
  assert.deepEqual(look(answer), [200, 'review', false], answer.text);
  assert.equal(answer.json.request_id, mine.id);
  assert.deepEqual(look(await post(mine.target, said)), [200, 'review', true]);
  await recibo.expectCounts(mine.id, 0, 0, 1);
  await recibo.expectCounts(other.id, 0, 0, 0);
  const [review] = await recibo.list(`/v1/reviews?request_id=${mine.id}`);
  assert.equal(review.kind, 'identity_mismatch');
  assert.deepEqual(look(await post(other.target, JSON.stringify({ request_id: other.id, status: 'sent', n: 1 }))), [200, 'applied', false], 'its own name is fine');
});

test('a reference that nobody signed is compared and never learned; a signed one is learned', async () => {
  const mine = await registered('letters');
  const other = await registered('letters', { reference: `${mine.id}-ref` });
  const stolen = await post(mine.target, JSON.stringify({ reference: `${mine.id}-ref`, status: 'sent', n: 1 }));
  assert.deepEqual(look(stolen), [200, 'review', false]);
  assert.equal((await recibo.list(`/v1/reviews?request_id=${mine.id}`))[0].kind, 'alias_taken');
  await recibo.expectCounts(other.id, 0, 0, 0);
  assert.deepEqual(look(await post(mine.target, JSON.stringify({ reference: 'mine-alone', status: 'going', n: 2 }))), [200, 'applied', false]);
  assert.deepEqual((await recibo.get(mine.id)).references, [], 'whoever has the URL cannot claim references');

  const signed = await registered('signed');
  const body = JSON.stringify({ reference: `${signed.id}-ref`, status: 'sent', n: 1 });
  const by = (url) => post(signed.target, body, [...json, ['X-Signature', hmac('sha256', 'test-secret-signed', [`${url}.`, body], 'hex')]]);
  assert.equal((await by('https://hooks.example.com/in/callbacks/signed')).status, 401, 'the URL that is signed is the operation\'s own');
  assert.deepEqual(look(await by(signed.url)), [200, 'applied', false]);
  assert.deepEqual((await recibo.get(signed.id)).references, [`${signed.id}-ref`]);
});

test('with a shared word besides, both must be right', async () => {
  const mine = await registered('gitlab');
  const other = await registered('gitlab');
  const body = JSON.stringify({ object_attributes: { status: 'sent' } });
  const headers = (word) => [...json, ['X-Gitlab-Token', word], ['X-Gitlab-Event-UUID', 'u-1']];
  assert.equal((await post(mine.target, body, headers('test-secret-gitlob'))).status, 401);
  assert.equal((await post('/callbacks/gitlab', body, headers('test-secret-gitlab'))).status, 401);
  assert.deepEqual(look(await post(mine.target, body, headers('test-secret-gitlab'))), [200, 'applied', false]);
  await recibo.expectCounts(mine.id, 1, 1, 0);
  await recibo.expectCounts(other.id, 0, 0, 0);
  assert.equal((await recibo.deliveries(mine.id))[0].secret, 'secret-1', 'the secret of the signature is on record');
});

test('a handshake is answered at the common URL, and at an operation\'s own if that is right', async () => {
  const { target } = await registered('okta');
  for (const [at, status] of [['/callbacks/okta', 200], [target, 200], [`${target.slice(0, -1)}~`, 401]]) {
    const answer = await get(at, [['X-Okta-Verification-Challenge', 'c-1']]);
    assert.equal(answer.status, status, at);
    assert.equal(answer.text.includes('c-1'), status === 200);
  }
});

test('the URL is the same when it is asked for again, and is shown to nobody who only reads', async () => {
  const { id, url } = await registered('letters');
  const again = await recibo.register(id, { provider: 'letters' });
  assert.deepEqual([again.status, again.json.callback_url], [200, url]);
  for (const token of ['checkout', 'ops', 'root']) assert.equal((await recibo.get(id, { token })).callback_url, url, token);
  assert.ok(!('callback_url' in (await recibo.get(id, { token: 'viewer' }))));
  for (const target of [`/v1/operations/${id}/timeline`, `/v1/operations/${id}/status`, '/v1/operations?provider=letters', '/v1/config'])
    assert.ok(!(await recibo.api('GET', target, { token: 'root' })).text.includes(url.split('/').at(-1)), target);
  assert.ok(!('callback_url' in (await recibo.accepted(freshId()))), 'a provider with one URL for all has none to give');
});

test('it expires, and a rotation of the secret has no gap', async () => {
  const { id, target } = await registered('letters');
  // A token that the old secret made, and one whose time is over, as the service makes them.
  const withOnly = async (secret, provider, requestId) => {
    const file = join(recibo.folder, `only-${secret}.yaml`);
    writeFileSync(file, stringify({ ...recibo.config, callback_urls: { base, secrets: [{ name: secret, value: keys[secret] }] } }));
    const made = await recibo.run(['send', provider, '--request-id', requestId, '--event', 'going', '--key', secret, '--dry-run', '--config', file]);
    assert.equal(made.code, 0, made.stderr);
    return /^POST (\S+) /.exec(made.stdout)[1];
  };
  const old = await withOnly('old', 'letters', id);
  assert.notEqual(old, target);
  assert.deepEqual(look(await post(old, JSON.stringify({ status: 'going', n: 1 }))), [200, 'applied', false]);
  assert.equal((await recibo.deliveries(id))[0].secret, 'callback-url/old');
  // The old one ends; what it made ends with it, what the current one made does not.
  const config = structuredClone(recibo.config);
  recibo.write({ ...config, callback_urls: { base, secrets: [{ name: 'current', value: keys.current }] } });
  const reloaded = await recibo.api('POST', '/v1/config/reload', { token: 'root' });
  assert.equal(reloaded.status, 200, reloaded.text);
  assert.equal((await post(old, JSON.stringify({ status: 'sent', n: 2 }))).status, 401);
  assert.deepEqual(look(await post(target, JSON.stringify({ status: 'sent', n: 2 }))), [200, 'applied', false]);
  recibo.write(config);
  assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
});

test('recibo send and recibo verify know the URL of an operation', async () => {
  const { id } = await registered('letters');
  const sent = await recibo.run(['send', 'letters', '--request-id', id, '--event', 'sent', '--dry-run']);
  assert.equal(sent.code, 0, sent.stderr);
  const file = join(recibo.folder, 'captured.http');
  writeFileSync(file, sent.stdout);
  const good = await recibo.run(['verify', 'letters', '--request', file]);
  assert.equal(good.code, 0, good.stdout + good.stderr);
  assert.match(good.stdout, new RegExp(`URL: +of the operation ${id}, made with the secret current`));
  writeFileSync(file, sent.stdout.replace('/callbacks/letters/A', '/callbacks/letters/B'));
  const bad = await recibo.run(['verify', 'letters', '--request', file]);
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /does not verify: the callback URL/);
});

test('no token and no secret of theirs stands in a log', () => {
  const tokens = recibo.exchanges.all().map((one) => /\/callbacks\/[a-z]+\/([A-Za-z0-9_-]{40,})/.exec(one.target)?.[1]).filter(Boolean);
  assert.ok(tokens.length > 10);
  assert.deepEqual(recibo.logComplaints([...new Set(tokens), ...Object.values(keys)]), []);
});

stage.ends();
