// Thin callbacks (`mode: hint`): an ID and no news. Each leads to a durable look-up, coalesced per operation, and what is
// fetched is what counts (R40).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { sourceFolder } from '../support/process.mjs';
import { freshId } from '../support/random.mjs';
import { Stage } from '../support/recibo.mjs';
import { StatusServer } from '../support/status_server.mjs';

const provider = await StatusServer.start();
const secret = 'test-secret-A';
const { mercadopago: mercado } = JSON.parse(readFileSync(join(sourceFolder, 'src', 'config', 'provider_profiles.json'), 'utf8'));

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    const status = {
      url: `${provider.url}/payments/{reference}`, allow: ['127.0.0.0/8'], timeout: '2s', retry: { attempts: 5, first: '1s', max: '2s' },
      rate: { per_second: 200, burst: 200 }, extract: { reference: '/id', event: '/status' }, events: { open: 'progress', paid: 'complete', expired: 'fail' },
    };
    const thin = { verify: p1.verify, workflow: 'fixture', unmatched: 'park', mode: 'hint', extract: { reference: '/id' }, status };
    config.providers.thin = thin;
    // A signature over the time alone, and the ID beside it: what it says is not believed, only looked up.
    config.providers.loose = { ...thin, verify: { ...p1.verify, signed: '{timestamp}.' }, extract: { reference: { json: '/id', unsigned: 'accept' } } };
    // The page of Mercado Pago, but for where it is asked.
    config.providers.mercado = {
      verify: { scheme: 'mercadopago', secrets: ['test-secret-of-mercado'] }, mode: mercado.mode, extract: mercado.extract,
      status: { ...mercado.status, url: `${provider.url}/payments/{reference}`, bearer: 'test-access-token', allow: ['127.0.0.0/8'], retry: { attempts: 5, first: '1s', max: '2s' } },
    };
    // Several in one request, each of which may be another operation's.
    config.providers.many = { ...thin, extract: { each: '/data', reference: '/id' } };
    config.providers.baskets = { ...thin, extract: { reference: '/id', items: { each: '/lines', item_id: '/id', event: '/what' } } };
    config.providers.picky = { ...thin, unmatched: 'reject', extract: { reference: '/id', event: '/type' }, events: { 'balance.changed': 'ignore' } };
    return config;
  },
});
const { recibo } = stage;

const hint = (reference, { at = 'thin', body = JSON.stringify({ id: reference }) } = {}) => recibo.callback(at, body, { secret });
async function accepted(at = 'thin') {
  const [id, reference] = [freshId(), freshId('tr')];
  await recibo.accepted(id, { provider: at, reference });
  return [id, reference];
}
const inState = (id, state) => until(`${id} is ${state}`, async () => (await recibo.get(id)).state === state, { timeout: 20_000 });
const lookUps = async (id) => (await recibo.timeline(id)).filter((e) => e.kind === 'status_check');
const quiet = (id) => until(`no look-up of ${id} is open`, async () => (await lookUps(id)).every((l) => l.settled_at), { timeout: 20_000 });

test('a hint is answered once its look-up is committed, and what is fetched is applied', async () => {
  const [id, reference] = await accepted();
  provider.says.set(reference, { id: reference, status: 'paid' });
  const answer = await hint(reference);
  assert.deepEqual([answer.status, answer.json.disposition, answer.json.state, answer.json.request_id], [202, 'hint', 'accepted', id], answer.text);
  await inState(id, 'completed');
  const [lookUp] = await lookUps(id);
  assert.deepEqual([lookUp.cause, lookUp.actor, lookUp.disposition], ['hint', 'thin', 'applied']);
  assert.deepEqual((await recibo.deliveries(id)).map((d) => d.disposition), ['hint', 'applied']);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('a payment at Mercado Pago completes by the configuration of its page, with the amount that it was registered with', async () => {
  const to = `http://127.0.0.1:${recibo.service.callbacks}/callbacks/mercado`;
  const send = (reference) => recibo.run(['send', 'mercado', '--reference', reference, '--to', to]);
  const says = (reference, status, amount = 19.9) => provider.says.set(reference, { id: Number(reference), status, transaction_amount: amount, currency_id: 'BRL' });
  const registered = async () => {
    const [id, reference] = [freshId(), String(Date.now()) + String(provider.says.size)];
    await recibo.accepted(id, { provider: 'mercado', reference, amount: '19.90', currency: 'BRL' });
    return [id, reference];
  };
  const [id, reference] = await registered();
  says(reference, 'in_process');
  assert.equal((await send(reference)).code, 0);
  await inState(id, 'processing');
  says(reference, 'approved');
  assert.equal((await send(reference)).code, 0);
  await inState(id, 'completed');
  const [refused, another] = await registered();
  says(another, 'rejected');
  assert.equal((await send(another)).code, 0);
  await inState(refused, 'failed');
  const [cheaper, third] = await registered();
  says(third, 'approved', 1);
  assert.equal((await send(third)).code, 0);
  await until('it is a review', async () => (await recibo.get(cheaper)).review_open);
  assert.equal((await recibo.get(cheaper)).state, 'accepted');
});

test('identical bytes may bring new content', async () => {
  const [id, reference] = await accepted();
  provider.says.set(reference, { id: reference, status: 'open' });
  const first = await hint(reference);
  await inState(id, 'processing');
  provider.says.set(reference, { id: reference, status: 'paid' });
  const second = await hint(reference);
  assert.deepEqual([second.status, second.replayed, second.text], [202, true, first.text], 'a replay to the sender');
  await inState(id, 'completed');
  await quiet(id);
  const third = await hint(reference);
  assert.equal(third.replayed, true);
  await until('the third look-up', async () => (await lookUps(id)).length === 3);
  await quiet(id);
  assert.deepEqual((await lookUps(id)).map((l) => l.disposition), ['applied', 'applied', 'duplicate']);
  await recibo.expectCounts(id, 2, 2, 0);
});

test('fifty hints at once: one look-up is asked and one waits at most', async () => {
  const [id, reference] = await accepted();
  let [open, most] = [0, 0];
  provider.says.set(reference, { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id: reference, status: 'paid' }), after: 300 });
  const watch = (async () => {
    while (open >= 0) {
      const [row] = await recibo.sql("SELECT count(*)::int AS n FROM recibo.look_ups l JOIN recibo.operations o ON o.id = l.operation WHERE o.request_id = $1 AND l.status IN ('queued', 'asking')", [id]);
      most = Math.max(most, row.n);
      await sleep(10);
    }
  })();
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => hint(reference, { body: JSON.stringify({ id: reference, n: i }) })));
  assert.deepEqual([...new Set(answers.map((a) => a.status))], [202]);
  await inState(id, 'completed');
  await quiet(id);
  open = -1;
  await watch;
  assert.ok(most <= 2, `${most} were open`);
  assert.ok(provider.of(reference).length <= 3, `asked ${provider.of(reference).length} times`);
  const all = await lookUps(id);
  assert.equal(all.reduce((sum, l) => sum + l.times, 0), 50, 'each hint asked for one');
  assert.equal((await recibo.deliveries(id)).filter((d) => d.disposition === 'hint').length, 50);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('a hint that comes while the provider is asked is asked for afterwards: its news is not lost', async () => {
  const [id, reference] = await accepted();
  const slowly = (status, after) => ({ status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id: reference, status }), after });
  provider.says.set(reference, [slowly('open', 800), slowly('paid', 0)]);
  await hint(reference);
  await until('it is being asked', async () => provider.of(reference).length === 1);
  assert.equal((await hint(reference)).status, 202);
  await inState(id, 'completed');
  await recibo.expectCounts(id, 2, 2, 0);
});

test('a hint ahead of its registration waits, and is looked up when that comes', async () => {
  const [id, reference] = [freshId(), freshId('tr')];
  provider.says.set(reference, { id: reference, status: 'paid' });
  const early = await hint(reference);
  assert.deepEqual([early.status, early.json.disposition], [202, 'parked'], early.text);
  await hint(reference);
  assert.equal(provider.of(reference).length, 0);
  await recibo.accepted(id, { provider: 'thin', reference });
  await inState(id, 'completed');
  await recibo.expectCounts(id, 1, 1, 0);
});

test('hints for what nobody registered are refused where the policy says so, and foreign traffic is ignored', async () => {
  const reference = freshId('tr');
  const refused = await hint(reference, { at: 'picky' });
  assert.deepEqual([refused.status, refused.json.code], [404, 'unknown_operation']);
  const ignored = await hint(reference, { at: 'picky', body: JSON.stringify({ id: reference, type: 'balance.changed' }) });
  assert.deepEqual([ignored.status, ignored.json.disposition], [200, 'ignored']);
  const nothing = await recibo.callback('thin', '{"x":1}', { secret });
  assert.deepEqual([nothing.status, nothing.json.code], [422, 'unprocessable']);
});

test('a hint that names several operations is a look-up for each of them, and one for what it names twice', async () => {
  const [[first, a], [second, b]] = [await accepted('many'), await accepted('many')];
  const stranger = freshId('tr');
  for (const reference of [a, b]) provider.says.set(reference, { id: reference, status: 'paid' });
  const body = JSON.stringify({ data: [{ id: a }, { id: b }, { id: a }, { id: stranger }] });
  const answer = await hint(a, { at: 'many', body });
  assert.ok([200, 202].includes(answer.status), answer.text);
  for (const id of [first, second]) {
    await inState(id, 'completed');
    await quiet(id);
    await recibo.expectCounts(id, 1, 1, 0);
  }
  assert.deepEqual([(await lookUps(first)).length, (await lookUps(second)).length], [1, 1]);
  assert.deepEqual([(await lookUps(first))[0].times, provider.of(a).length, provider.of(b).length], [2, 1, 1]);
  const [parked] = await recibo.sql("SELECT count(*)::int AS n FROM recibo.parked WHERE provider = 'many'");
  assert.equal(parked.n, 1, 'what nobody has registered yet waits for that');
  // The same bytes again may mean new content.
  const again = await hint(a, { at: 'many', body });
  assert.equal(again.status, answer.status);
  await until('each is asked again', async () => (await lookUps(first)).length === 2 && (await lookUps(second)).length === 2);
  await quiet(first);
  await quiet(second);
  const late = freshId();
  provider.says.set(stranger, { id: stranger, status: 'paid' });
  await recibo.accepted(late, { provider: 'many', reference: stranger });
  await inState(late, 'completed');
});

test('a hint that names items is a look-up of their operation', async () => {
  const [id, reference] = await accepted('baskets');
  provider.says.set(reference, { id: reference, status: 'paid' });
  const answer = await hint(reference, { at: 'baskets', body: JSON.stringify({ id: reference, lines: [{ id: 'l-1', what: 'paid' }, { id: 'l-2', what: 'no-such-word' }] }) });
  assert.deepEqual([answer.status, answer.json.disposition], [202, 'hint'], answer.text);
  await inState(id, 'completed');
  await quiet(id);
  assert.deepEqual((await lookUps(id)).map((l) => [l.cause, l.disposition]), [['hint', 'applied']]);
  await recibo.expectCounts(id, 1, 1, 0);
});

test('an identity outside the signature is only looked up: the answer has to be about it', async () => {
  const [id, reference] = await accepted('loose');
  provider.says.set(reference, { id: reference, status: 'paid' });
  const signed = recibo.signature('loose', '', { secret });
  const send = (body) => recibo.raw({ method: 'POST', target: '/callbacks/loose', headers: [['Content-Type', 'application/json'], ...signed], body });
  const lie = await send(JSON.stringify({ id: reference, status: 'expired' }));
  assert.deepEqual([lie.status, lie.json.disposition], [202, 'hint'], lie.text);
  await inState(id, 'completed');
  const [other, otherReference] = await accepted('loose');
  provider.says.set(otherReference, { id: reference, status: 'paid' });
  await send(JSON.stringify({ id: otherReference }));
  await quiet(other);
  await until('its look-up', async () => (await lookUps(other)).length === 1);
  await quiet(other);
  assert.equal((await recibo.get(other)).state, 'accepted');
  await recibo.expectCounts(other, 0, 0, 1);
});

test('check refuses what a hint could not mean', async () => {
  const refused = [
    [{ unmatched: 'register' }, /unmatched: register: a hint says too little to register an operation by/],
    [{ status: undefined }, /thin: status is required: with mode: hint all news is looked up there/],
    [{ status: { ...recibo.config.providers.thin.status, extract: undefined } }, /status: extract is required: hints bring no news/],
  ];
  for (const [change, message] of refused) {
    const config = structuredClone(recibo.config);
    config.providers = { thin: JSON.parse(JSON.stringify({ ...config.providers.thin, ...change })) };
    const done = await recibo.run(['check', '--config', recibo.write(config, join(recibo.folder, 'changed.yaml'))]);
    assert.equal(done.code, 2, done.stdout + done.stderr);
    assert.match(done.stdout + done.stderr, message);
  }
});

test('killed between the answer to a hint and the look-up: it is made after the restart', async () => {
  const all = [];
  for (let i = 0; i < 5; ++i) all.push(await accepted());
  for (const [, reference] of all) provider.says.set(reference, { id: reference, status: 'paid' });
  const answers = await Promise.all(all.map(([, reference]) => hint(reference)));
  await recibo.service.kill();
  assert.deepEqual(answers.map((a) => a.status), [202, 202, 202, 202, 202]);
  await recibo.sql("UPDATE recibo.look_ups SET lease_until = now() + interval '1 second' WHERE lease_until IS NOT NULL");
  await recibo.serve();
  for (const [id] of all) {
    await inState(id, 'completed');
    await recibo.expectCounts(id, 1, 1, 0);
  }
});

stage.ends();
