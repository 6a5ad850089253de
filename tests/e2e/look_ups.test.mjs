// A provider is asked what it knows of an operation: on demand, when a state is entered, and after an outage. What it says moves
// the operation as a callback would, and nothing else does (R23, R44, S39).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { StatusServer } from '../support/status_server.mjs';

const folder = mkdtempSync(join(tmpdir(), 'rcb-status-'));
after(() => rmSync(folder, { recursive: true, force: true }));
execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem', '-days', '2', '-subj', '/CN=api.p1.test',
  '-addext', 'subjectAltName=DNS:api.p1.test'], { cwd: folder, stdio: 'ignore' });
const pem = (name) => readFileSync(join(folder, name), 'utf8');

const provider = await StatusServer.start();
const byReference = await StatusServer.start({ key: pem('key.pem'), cert: pem('cert.pem') });
const apiKey = 'status-key-that-no-log-may-hold';

const states = {
  accepted: { label: 'Accepted', limit: 'none', owner: 'checkout' },
  unknown: { label: 'Being checked', limit: 'none', owner: 'payments-ops' },
  completed: { label: 'Completed', terminal: true, done: true },
  failed: { label: 'Failed', terminal: true },
};
const checked = {
  states,
  initial: 'accepted',
  transitions: [
    { from: 'accepted', event: 'lost', to: 'unknown', by: ['client', 'operator'] },
    { from: ['accepted', 'unknown'], event: 'complete', to: 'completed', by: 'provider' },
    { from: ['accepted', 'unknown'], event: 'fail', to: 'failed', by: 'provider' },
  ],
};
const status = (more = {}) => ({
  url: `${provider.url}/operations/{request_id}`, bearer: apiKey, allow: ['127.0.0.0/8'], timeout: '1s', body: '4KiB',
  retry: { attempts: 3, first: '1s', max: '2s' }, rate: { per_second: 200, burst: 200 }, concurrency: 8,
  extract: { request_id: '/id', event: '/status', amount: '/amount', currency: '/currency', result: { code: '/code' } }, ...more,
});

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    config.workflows.checked = checked;
    const asked = { ...p1, workflow: 'checked', events: { succeeded: 'complete', failed: 'fail', pending: 'ignore' } };
    config.providers.asked = { ...asked, status: status() };
    config.providers.slow = { ...asked, status: status({ retry: { attempts: 2, first: '1s', max: '1s' }, rate: { per_second: 5, burst: 1 }, concurrency: 1 }) };
    // Asked about as soon as there is something to ask about.
    config.providers.eager = { ...asked, status: status({ states: ['accepted', 'unknown'] }) };
    config.providers.checking = { ...asked, workflow: 'later', status: status({ states: ['unknown'] }) };
    config.workflows.later = structuredClone(checked);
    config.providers.p1.status = {
      url: 'https://api.p1.test/operations/{reference}', basic: { user: 'recibo', password: apiKey }, allow: ['127.0.0.0/8'],
      rate: { per_second: 200, burst: 200 }, extract: { reference: '/id', event: '/status' },
    };
    config.outbound = { ca: join(folder, 'cert.pem'), connect_to: { 'api.p1.test': `127.0.0.1:${byReference.port}` } };
    return config;
  },
});
const { recibo } = stage;

const check = (id, options) => recibo.api('POST', `/v1/operations/${encodeURIComponent(id)}/status-check`, options);
const checks = async (id) => (await recibo.timeline(id)).filter((e) => e.kind === 'status_check');
const settled = (id, count = 1) => until(`${count} look-ups of ${id} have ended`, async () => {
  const all = await checks(id);
  return all.length >= count && all.every((one) => one.settled_at) ? all : null;
}, { timeout: 30_000 });
const reviews = async (id) => (await recibo.list(`/v1/reviews?request_id=${id}`)).filter((r) => r.request_id === id);
const said = (id, word, more = {}) => ({ id, status: word, amount: '19.99', currency: 'EUR', ...more });

async function accepted(at = 'asked', fields = {}) {
  const id = freshId();
  await recibo.accepted(id, { provider: at, ...fields });
  return id;
}
async function ask(id) {
  const before = (await checks(id)).length;
  const answer = await check(id);
  assert.equal(answer.status, 202, answer.text);
  const all = await settled(id, before + 1);
  return { lookUp: all.find((one) => one.look_up_id === answer.json.look_up_id), answer };
}

test('asked on demand: what the provider says is applied, and kept as evidence', async () => {
  const id = await accepted();
  provider.says.set(id, said(id, 'succeeded', { code: 'A1' }));
  const { lookUp } = await ask(id);
  assert.deepEqual([lookUp.status, lookUp.disposition, lookUp.cause, lookUp.actor, lookUp.attempts], ['answered', 'applied', 'request', 'ops', 1]);
  assert.deepEqual(lookUp.requests.map((r) => [r.host, r.answer_status, r.outcome]), [['127.0.0.1', 200, 'answered']]);
  const operation = await recibo.get(id);
  assert.deepEqual([operation.state, operation.result], ['completed', { code: 'A1' }]);
  const [one] = provider.of(id);
  assert.deepEqual([one.method, one.url, one.headers.authorization], ['GET', `/operations/${id}`, `Bearer ${apiKey}`]);
  const [delivery] = await recibo.deliveries(id);
  assert.deepEqual([delivery.id, delivery.disposition, delivery.peer, delivery.secret], [lookUp.delivery_id, 'applied', '127.0.0.1', '']);
  assert.deepEqual(JSON.parse((await recibo.storedBody(delivery.id)).toString()), said(id, 'succeeded', { code: 'A1' }));
  const shown = await recibo.api('GET', `/v1/deliveries/${delivery.id}`);
  assert.deepEqual([shown.json.look_up_id, shown.json.peer, shown.json.disposition], [lookUp.look_up_id, '127.0.0.1', 'applied']);
  const entry = (await recibo.timeline(id)).find((e) => e.kind === 'delivery');
  assert.equal(entry.look_up_id, lookUp.look_up_id);
  assert.match(entry.key, /^look-up \/ [0-9a-f]{64}$/);
  await recibo.expectCounts(id, 1, 1, 0);
  const drawn = await recibo.run(['case', id]);
  assert.match(drawn.stdout, /look-up \(request\) for ops: answered, applied after 1 attempt/);
});

test('the same answer twice is one effect, and an answer after a callback says nothing new', async () => {
  const id = await accepted();
  provider.says.set(id, said(id, 'succeeded'));
  assert.equal((await ask(id)).lookUp.disposition, 'applied');
  assert.equal((await ask(id)).lookUp.disposition, 'duplicate');
  await recibo.expectCounts(id, 1, 1, 0);
  const other = await accepted();
  provider.says.set(other, said(other, 'succeeded'));
  assert.equal((await recibo.deliver('asked', callbackBody(other, 'evt-1'), { secret: 'test-secret-A' })).json.disposition, 'applied');
  assert.equal((await ask(other)).lookUp.disposition, 'redundant');
  const contrary = await accepted();
  assert.equal((await recibo.deliver('asked', callbackBody(contrary, 'evt-2'), { secret: 'test-secret-A' })).json.disposition, 'applied');
  provider.says.set(contrary, said(contrary, 'failed'));
  assert.equal((await ask(contrary)).lookUp.disposition, 'review');
  assert.equal((await recibo.get(contrary)).state, 'completed');
});

test('entering unknown asks by itself, and the answer completes', async () => {
  const id = await accepted();
  provider.says.set(id, said(id, 'succeeded'));
  assert.equal((await recibo.event(id, { event: 'lost' })).json.state, 'unknown');
  const [lookUp] = await settled(id);
  assert.deepEqual([lookUp.cause, lookUp.actor, lookUp.disposition], ['state', 'recibo', 'applied']);
  assert.equal((await recibo.get(id)).state, 'completed');
  await recibo.expectCounts(id, 1, 1, 0);
});

test('no news is no news: a word that is ignored moves nothing and needs nobody', async () => {
  const id = await accepted();
  provider.says.set(id, said(id, 'pending'));
  assert.equal((await ask(id)).lookUp.disposition, 'redundant');
  assert.equal((await recibo.get(id)).state, 'accepted');
  await recibo.expectCounts(id, 0, 0, 0);
});

test('not found is not failed: asked again, then a person decides', async () => {
  const id = await accepted();
  provider.says.set(id, { status: 404, body: '{"error":"no such operation"}' });
  const { lookUp } = await ask(id);
  assert.deepEqual([lookUp.status, lookUp.reason, lookUp.disposition, lookUp.attempts], ['failed', 'not_found', 'review', 2]);
  assert.equal((await recibo.get(id)).state, 'accepted');
  const [review] = await reviews(id);
  assert.deepEqual([review.kind, review.status], ['look_up', 'open']);
  assert.match(review.detail, /does not know the operation, twice/);
  assert.equal((await recibo.storedBody(lookUp.delivery_id)).toString(), '{"error":"no such operation"}');
  // It appears late: asked once more it is found.
  const late = await accepted();
  provider.says.set(late, [404, said(late, 'succeeded')]);
  const found = await ask(late);
  assert.deepEqual([found.lookUp.disposition, found.lookUp.attempts], ['applied', 2]);
});

test('what is ambiguous opens a review: another word, another operation or none, another amount, no JSON', async () => {
  const cases = [
    [(id) => said(id, 'no-such-word'), 'look_up'],
    [() => said('somebody-else', 'succeeded'), 'identity_mismatch'],
    [() => ({ status: 200, body: JSON.stringify({ status: 'failed', message: 'upstream timed out' }) }), 'look_up'],
    [() => ({ status: 200, body: JSON.stringify({ id: null, status: 'succeeded' }) }), 'look_up'],
    [() => ({ status: 200, body: JSON.stringify({ id: ' ', status: 'succeeded' }) }), 'look_up'],
    [(id) => said(id, 'succeeded', { amount: '1999.00' }), 'amount_mismatch'],
    [() => ({ status: 200, body: '<html>maintenance</html>' }), 'look_up'],
    [() => ({ status: 200, body: '' }), 'look_up'],
  ];
  for (const [answer, kind] of cases) {
    const id = await accepted();
    provider.says.set(id, answer(id));
    const { lookUp } = await ask(id);
    assert.deepEqual([lookUp.status, lookUp.disposition], ['answered', 'review'], kind);
    assert.deepEqual((await reviews(id)).map((r) => r.kind), [kind]);
    assert.equal((await recibo.get(id)).state, 'accepted');
    await recibo.expectCounts(id, 0, 0, 1);
  }
  // What could not be understood counts once it can be: it has used up no key.
  const id = await accepted();
  provider.says.set(id, said(id, 'no-such-word'));
  await ask(id);
  await ask(id);
  assert.deepEqual((await reviews(id)).map((r) => [r.kind, r.count]), [['look_up', 2]]);
});

test('a redirect is not followed, a huge answer is not read, a hanging provider is given up', async () => {
  const cases = [
    [{ status: 302, headers: { location: `${provider.url}/operations/trap` } }, 'redirect', 1],
    [{ status: 200, headers: { 'content-type': 'application/json' }, body: `"${'x'.repeat(1 << 20)}"` }, 'answer_too_large', 1],
    [{ status: 400, body: '{}' }, 'refused', 1],
  ];
  for (const [answer, reason, attempts] of cases) {
    const id = await accepted();
    provider.says.set(id, answer);
    const { lookUp } = await ask(id);
    assert.deepEqual([lookUp.status, lookUp.reason, lookUp.attempts], ['failed', reason, attempts]);
    assert.deepEqual((await reviews(id)).map((r) => r.kind), ['look_up']);
  }
  assert.deepEqual(provider.of('trap'), []);
  const id = await accepted();
  provider.says.set(id, { status: 200, after: Infinity });
  const began = Date.now();
  const { lookUp } = await ask(id);
  assert.deepEqual([lookUp.status, lookUp.attempts, (await reviews(id)).length], ['failed', 3, 1]);
  assert.ok(Date.now() - began > 3_000, 'each attempt had its deadline');
  assert.equal((await recibo.ready()).status, 200);
});

test('429 with Retry-After is waited for, and does not end anything', async () => {
  const id = await accepted();
  provider.says.set(id, [{ status: 429, headers: { 'retry-after': '2' } }, said(id, 'succeeded')]);
  const { lookUp } = await ask(id);
  assert.deepEqual([lookUp.disposition, lookUp.attempts, lookUp.requests.map((r) => r.outcome)], ['applied', 2, ['over_rate', 'answered']]);
  const [first, second] = provider.of(id);
  assert.ok(second.at - first.at >= 1_900, `asked again after ${second.at - first.at} ms`);
});

test('Retry-After is the provider\'s, not one operation\'s: nothing is asked meanwhile, whoever wants it', async () => {
  const [first, second] = [await accepted(), await accepted()];
  provider.says.set(first, [{ status: 503, headers: { 'retry-after': '2' } }, said(first, 'succeeded')]);
  provider.says.set(second, said(second, 'succeeded'));
  assert.equal((await check(first)).status, 202);
  const wanted = await until('the provider asked for time', async () =>
    (await recibo.sql("SELECT asked_until FROM recibo.look_up_lanes WHERE provider = 'asked' AND asked_until > now()"))[0]?.asked_until);
  // Neither an answer to somebody else, nor somebody in a hurry, nor a restart makes it forgotten.
  assert.equal((await check(second)).status, 202);
  assert.equal((await check(first)).status, 202);
  await recibo.restart();
  for (const id of [first, second]) await settled(id);
  const asked = [...provider.of(first).slice(1), ...provider.of(second)];
  assert.ok(asked.length >= 2 && asked.every((one) => one.at >= wanted.getTime() - 50), JSON.stringify([wanted, asked.map((one) => new Date(one.at))]));
});

test('an operation that is accepted into such a state is asked about, and one that another version of its workflow brings there', async () => {
  const id = freshId();
  provider.says.set(id, said(id, 'succeeded'));
  await recibo.accepted(id, { provider: 'eager' });
  const [lookUp] = await settled(id);
  assert.deepEqual([lookUp.cause, lookUp.disposition], ['state', 'applied']);
  const moved = freshId();
  provider.says.set(moved, said(moved, 'succeeded'));
  await recibo.accepted(moved, { provider: 'checking' });
  assert.deepEqual(await checks(moved), []);
  const config = structuredClone(recibo.config);
  config.workflows.later.states.waiting = config.workflows.later.states.accepted;
  delete config.workflows.later.states.accepted;
  config.workflows.later.initial = 'waiting';
  for (const row of config.workflows.later.transitions) row.from = [row.from].flat().map((s) => (s === 'accepted' ? 'waiting' : s));
  const file = recibo.write(config, join(folder, 'later.yaml'));
  const migrated = await recibo.run(['workflow', 'migrate', 'later', '--config', file, '--map', 'accepted=unknown', '--reason', 'nobody knows']);
  assert.equal(migrated.code, 0, migrated.stdout + migrated.stderr);
  const [asked] = await settled(moved);
  assert.deepEqual([asked.cause, asked.disposition], ['state', 'applied']);
  assert.equal((await recibo.get(moved)).state, 'completed');
});

// The database refuses what a look-up brought, as it would where we have made a mistake.
const refuseDeliveries = async (when, code) => {
  await recibo.sql(`CREATE OR REPLACE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.look_up IS NOT NULL AND NEW.provider = 'slow' AND ${when} THEN RAISE EXCEPTION 'refused' USING ERRCODE = '${code}'; END IF; RETURN NEW; END $$`);
  await recibo.sql('CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON recibo.deliveries FOR EACH ROW EXECUTE FUNCTION public.refuse()');
};

test('an answer that cannot be stored is a review, and is asked for once', async () => {
  await refuseDeliveries("NEW.event = 'succeeded'", '22P05');
  const id = await accepted('slow');
  provider.says.set(id, said(id, 'succeeded'));
  const { lookUp } = await ask(id);
  assert.deepEqual([lookUp.status, lookUp.disposition, lookUp.attempts], ['answered', 'review', 1]);
  const [review] = await reviews(id);
  assert.deepEqual([review.kind, review.status], ['look_up', 'open']);
  assert.match(review.detail, /cannot be stored/);
  assert.equal(JSON.parse((await recibo.storedBody(lookUp.delivery_id)).toString()).status, 'succeeded', 'the body is evidence');
  await recibo.sql('DROP TRIGGER refuse ON recibo.deliveries');
  // It has used up no key: the same answer counts once it can be stored.
  assert.equal((await ask(id)).lookUp.disposition, 'applied');
});

test('what can never be recorded is not asked for ever', async () => {
  await refuseDeliveries('true', '23514');
  const id = await accepted('slow');
  provider.says.set(id, said(id, 'succeeded'));
  assert.equal((await check(id)).status, 202);
  const [lookUp] = await settled(id);
  assert.deepEqual([lookUp.status, lookUp.reason], ['failed', 'not_recorded']);
  assert.equal(provider.of(id).length, 2, 'as often as retry.attempts says');
  await recibo.sql('DROP TRIGGER refuse ON recibo.deliveries');
  // Where only the answer is refused, a person is told.
  await refuseDeliveries('NEW.event IS NOT NULL', '23514');
  const other = await accepted('slow');
  provider.says.set(other, said(other, 'succeeded'));
  assert.equal((await check(other)).status, 202);
  const [told] = await settled(other);
  assert.deepEqual([told.status, told.reason, told.disposition], ['failed', 'not_recorded', 'review']);
  assert.match((await reviews(other))[0].detail, /could not be recorded/);
  await recibo.sql('DROP TRIGGER refuse ON recibo.deliveries');
});

test('look-ups of a provider that cannot be asked any more are ended, once nobody has asked it for a while', async () => {
  const [old, young] = [freshId(), freshId()];
  for (const id of [old, young]) {
    await recibo.accepted(id, { provider: 'p2' });
    await recibo.sql(`INSERT INTO recibo.look_ups (id, operation, provider, cause, asked_by, asked_at)
      SELECT gen_random_uuid(), o.id, 'p2', 'hint', 'p2', now() - $2 * interval '1 minute' FROM recibo.operations o WHERE o.request_id = $1`, [id, id === old ? 11 : 1]);
  }
  const [lookUp] = await settled(old);
  assert.deepEqual([lookUp.status, lookUp.reason, lookUp.attempts], ['failed', 'no_status', 0]);
  assert.deepEqual((await checks(young)).map((l) => l.status), ['queued'], 'a configuration may be on its way');
  await recibo.sql("UPDATE recibo.look_ups SET asked_at = now() - interval '1 hour' WHERE provider = 'p2' AND status = 'queued'");
  await settled(young);
});

test('old look-ups go, and what moved an operation or needs a person stays', async () => {
  const [applied, quiet] = [await accepted(), await accepted()];
  provider.says.set(applied, said(applied, 'succeeded'));
  provider.says.set(quiet, said(quiet, 'pending'));
  for (const id of [applied, quiet]) await ask(id);
  const of = async (id) => (await checks(id)).map((l) => [l.disposition, l.requests.length]);
  const older = (id) => `(lpad(to_hex((extract(epoch FROM now() - interval '91 days') * 1000)::bigint), 12, '0') || substr(replace(${id}::text, '-', ''), 13))::uuid`;
  const mine = "(SELECT l.id FROM recibo.look_ups l JOIN recibo.operations o ON o.id = l.operation WHERE o.request_id = ANY($1))";
  await recibo.sql(`UPDATE recibo.look_up_attempts a SET look_up = ${older('a.look_up')}, at = now() - interval '91 days' WHERE a.look_up IN ${mine}`, [[applied, quiet]]);
  await recibo.sql(`UPDATE recibo.look_ups x SET id = ${older('x.id')}, settled_at = now() - interval '91 days' WHERE x.id IN ${mine}`, [[applied, quiet]]);
  await until('the old ones have gone', async () => (await of(quiet)).length === 0, { timeout: 30_000 });
  assert.deepEqual(await of(applied), [['applied', 0]], 'without its attempts');
  const [may] = await recibo.sql("SELECT has_function_privilege('recibo_service', 'recibo.sweep_look_ups(interval, integer)', 'EXECUTE') AS sweep, has_table_privilege('recibo_service', 'recibo.look_ups', 'DELETE') AS delete");
  assert.deepEqual(may, { sweep: true, delete: false });
  assert.equal((await recibo.audit(applied)).code, 0);
});

test('rate and concurrency hold', async () => {
  const ids = await Promise.all(Array.from({ length: 8 }, () => accepted('slow')));
  for (const id of ids) provider.says.set(id, { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(said(id, 'succeeded')), after: 50 });
  provider.mostOpen = 0;
  await Promise.all(ids.map((id) => check(id)));
  for (const id of ids) await settled(id);
  const at = ids.flatMap((id) => provider.of(id)).map((one) => one.at).sort((a, b) => a - b);
  assert.equal(at.length, ids.length);
  assert.ok(at.at(-1) - at[0] > 1_000, `8 look-ups at 5 a second took ${at.at(-1) - at[0]} ms`);
  assert.equal(provider.mostOpen, 1);
});

test('who may ask: operators, and clients about their own; a provider without status says so', async () => {
  const id = await accepted();
  provider.says.set(id, said(id, 'pending'));
  assert.equal((await check(id, { token: 'checkout' })).status, 202);
  assert.equal((await check(id, { token: 'storefront' })).status, 404);
  assert.equal((await check(id, { token: 'viewer' })).status, 403);
  assert.equal((await check(freshId())).status, 404);
  const elsewhere = freshId();
  await recibo.accepted(elsewhere, { provider: 'p2' });
  const refused = await check(elsewhere);
  assert.deepEqual([refused.status, refused.json.code], [409, 'no_status']);
  await settled(id);
});

test('S39 a reference that wants to go elsewhere stays one segment of the path, or is not sent and says why', async () => {
  const references = ['../../admin', '..%2f..%2fadmin', 'x@169.254.169.254/', '//169.254.169.254/', 'a?b=c#d'];
  byReference.answer = (one) => ({ id: one.id, status: 'succeeded' });
  for (const reference of references) {
    const id = freshId();
    await recibo.accepted(id, { reference });
    const { lookUp } = await ask(id);
    assert.equal(lookUp.disposition, 'applied', reference);
    const { url, headers } = byReference.asked.at(-1);
    assert.deepEqual([url, headers.host], [`/operations/${encodeURIComponent(reference)}`, 'api.p1.test']);
    assert.equal(headers.authorization, `Basic ${Buffer.from(`recibo:${apiKey}`).toString('base64')}`);
    assert.equal((await recibo.get(id)).state, 'completed');
  }
  const refused = await recibo.register(freshId(), { reference: 'a\r\nHost: evil.example' });
  assert.equal(refused.status >= 400 && refused.status < 500, true, refused.text);
  const count = byReference.asked.length;
  const [dots, none] = [freshId(), freshId()];
  await recibo.accepted(dots, { reference: '..' });
  await recibo.accepted(none);
  assert.deepEqual([(await ask(dots)).lookUp.reason, (await ask(none)).lookUp.reason], ['reference_refused', 'no_reference']);
  assert.equal(byReference.asked.length, count, 'nothing was sent');
  // An answer about another reference than the one that was asked for.
  const id = freshId();
  await recibo.accepted(id, { reference: freshId('ref') });
  byReference.answer = () => ({ id: 'another', status: 'succeeded' });
  assert.equal((await ask(id)).lookUp.disposition, 'review');
  assert.deepEqual((await reviews(id)).map((r) => r.kind), ['identity_mismatch']);
});

test('S39 check refuses what could not be asked', async () => {
  const problems = async (url, more = {}) => {
    const config = structuredClone(recibo.config);
    config.providers.p1.status = { url, ...more };
    const file = recibo.write(config, join(folder, 'changed.yaml'));
    const done = await recibo.run(['check', '--config', file]);
    return [done.code, done.stdout + done.stderr];
  };
  for (const url of ['ftp://api.p1.test/{reference}', 'https://user:pw@api.p1.test/{reference}', 'https://2130706433/{reference}', 'https://{reference}/x',
    'http://api.p1.test/{reference}', 'https://169.254.169.254/{reference}', 'https://10.0.0.1/{reference}', 'https://api.p1.test/status', 'https://api.p1.test/{account}']) {
    const [code, text] = await problems(url);
    assert.equal(code, 2, `${url}: ${text}`);
    assert.match(text, /changed\.yaml:\d+:\d+: .*url: /, url);
    assert.doesNotMatch(text, /user:pw/);
  }
  assert.equal((await problems('https://10.0.0.1/{reference}', { allow: ['10.0.0.0/8'] }))[0], 0);
});

test('killed while a provider is asked: the next one asks again when the lease has ended, and applies once', async () => {
  const id = await accepted();
  provider.says.set(id, [{ status: 200, after: Infinity }, said(id, 'succeeded')]);
  assert.equal((await check(id)).status, 202);
  await until('the provider is being asked', async () => provider.of(id).length === 1);
  await recibo.restart('kill');
  const [open] = await recibo.sql("UPDATE recibo.look_ups SET lease_until = now() + interval '2 seconds' WHERE status = 'asking' RETURNING attempts");
  assert.equal(open.attempts, 1, 'it is still on record as asked');
  const [lookUp] = await settled(id);
  assert.deepEqual([lookUp.disposition, lookUp.attempts], ['applied', 2]);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('a breaker opens for a provider that is out of order, and a probe closes it', async () => {
  const [{ before }] = await recibo.sql('SELECT now() AS before');
  const ids = await Promise.all(Array.from({ length: 12 }, () => accepted()));
  for (const id of ids) provider.says.set(id, 500);
  await Promise.all(ids.map((id) => check(id)));
  await until('the breaker is open', async () => (await recibo.sql("SELECT breaker FROM recibo.look_up_lanes WHERE provider = 'asked'"))[0].breaker !== 'closed', { timeout: 20_000 });
  for (const id of ids) provider.says.set(id, said(id, 'succeeded'));
  // As if it had been out for a while: what it could not deliver is asked about when it is back.
  const missed = await accepted();
  provider.says.set(missed, said(missed, 'succeeded'));
  await recibo.sql("UPDATE recibo.provider_downtimes SET began_at = began_at - interval '10 minutes' WHERE provider = 'asked' AND ended_at IS NULL");
  await recibo.sql("UPDATE recibo.look_up_lanes SET retry_at = now() WHERE provider = 'asked' AND breaker <> 'closed'");
  await until('it is closed again', async () => (await recibo.sql("SELECT breaker FROM recibo.look_up_lanes WHERE provider = 'asked'"))[0].breaker === 'closed', { timeout: 30_000 });
  await until('what it missed is healed', async () => (await recibo.get(missed)).state === 'completed', { timeout: 30_000 });
  const runs = await recibo.sql("SELECT FROM recibo.catch_ups WHERE started_by = 'outage' AND provider = 'asked' AND started_at >= $1", [before]);
  assert.ok(runs.length >= 1); // a stall of ours is an outage too
  await until('all are settled', async () => (await recibo.sql(
    "SELECT (SELECT count(*) FROM recibo.look_ups WHERE status IN ('queued', 'asking'))::int + (SELECT count(*) FROM recibo.catch_ups WHERE listed_at IS NULL)::int AS n"))[0].n === 0, { timeout: 60_000 });
});

test('two replicas: a catch-up asks about every open operation once, and says how many it healed', async () => {
  const first = recibo.service;
  await recibo.serve();
  const ids = await Promise.all(Array.from({ length: 30 }, () => accepted()));
  ids.forEach((id, i) => provider.says.set(id, said(id, i < 20 ? 'succeeded' : 'pending')));
  const done = await accepted();
  assert.equal((await recibo.deliver('asked', callbackBody(done, 'evt-9'), { secret: 'test-secret-A' })).json.state, 'completed');
  const since = new Date(Date.now() - 60_000).toISOString();
  const started = await recibo.api('POST', '/v1/providers/asked/catch-ups', { body: { accepted_after: since } });
  assert.equal(started.status, 202, started.text);
  const report = await until('it is done', async () => {
    const now = await recibo.api('GET', `/v1/catch-ups/${started.json.catch_up_id}`);
    return now.json.done ? now.json : null;
  }, { timeout: 60_000 });
  assert.ok(report.asked >= 30 && report.open === 0, JSON.stringify(report));
  assert.ok(report.healed >= 20, JSON.stringify(report));
  for (const id of ids.slice(0, 20)) await recibo.expectCounts(id, 1, 1, 0);
  for (const id of ids) assert.equal(provider.of(id).length, 1, 'each was asked about once');
  assert.equal(provider.of(done).length, 0, 'what has ended is left alone');
  // The command asks for the same, and waits for it.
  const id = await accepted();
  provider.says.set(id, said(id, 'succeeded'));
  const command = await recibo.run(['look-up', 'asked', '--accepted-after', since, '--wait', '60'], { timeout: 90_000 });
  assert.equal(command.code, 0, command.stdout + command.stderr);
  assert.match(command.stdout, / healed, /);
  assert.equal((await recibo.get(id)).state, 'completed');
  assert.equal((await recibo.run(['look-up', 'p2'])).code, 2);
  assert.equal((await recibo.run(['look-up', 'nobody'])).code, 2);
  assert.equal((await recibo.api('POST', '/v1/providers/p2/catch-ups', { body: {} })).json.code, 'no_status');
  assert.equal((await recibo.api('POST', '/v1/providers/nobody/catch-ups', { body: {} })).status, 404);
  await first.stop();
});

test('after an outage providers are asked what never arrived, without anybody\'s help', async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, () => accepted()));
  for (const id of ids) provider.says.set(id, said(id, 'succeeded'));
  const [{ before }] = await recibo.sql('SELECT now() AS before');
  await recibo.sql("UPDATE recibo.intake SET alive_at = now() - interval '3 minutes'");
  await until('all are healed', async () => {
    const states = await Promise.all(ids.map(async (id) => (await recibo.get(id)).state));
    return states.every((state) => state === 'completed');
  }, { timeout: 60_000 });
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0);
  const runs = await recibo.sql("SELECT provider, count(*)::int AS n FROM recibo.catch_ups WHERE started_by = 'outage' AND started_at >= $1 GROUP BY 1", [before]);
  assert.ok(runs.some((r) => r.provider === 'asked'), JSON.stringify(runs));
  assert.ok(runs.every((r) => r.n === 1), 'once for each provider that can be asked');
});

test('metrics and logs tell what was asked, and hold no credential', async () => {
  const id = await accepted();
  provider.says.set(id, said(id, 'succeeded'));
  await ask(id);
  assert.ok((await recibo.metric('recibo_look_up_attempts_total', { provider: 'asked', result: 'answered' })) > 0);
  assert.ok((await recibo.metric('recibo_look_ups_total', { provider: 'asked', result: 'applied' })) > 0);
  assert.equal(await recibo.metric('recibo_look_up_breaker_state', { provider: 'asked' }), 0);
  const lines = recibo.services.flatMap((s) => s.lines.map((l) => l.text)).join('\n');
  assert.ok(!lines.includes(apiKey));
  assert.ok((await recibo.api('GET', '/v1/config', { token: 'root' })).text.includes('operations/{request_id}'));
  assert.ok(!(await recibo.api('GET', '/v1/config', { token: 'root' })).text.includes(apiKey));
});

stage.ends();
