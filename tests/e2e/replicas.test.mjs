// Two replicas that share nothing but the database: the field cases about races, order, keys, locks, kills and lost sessions, each
// sent to both, and twenty thousand mixed callbacks against the model of the fault tests.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { Fleet } from '../faults/fleet.mjs';
import { judge } from '../faults/judge.mjs';
import { answeredThenKilled } from '../faults/kill.mjs';
import * as mix from '../faults/mix.mjs';
import { Totals } from '../faults/round.mjs';
import { read } from '../faults/rows.mjs';
import { terminateAll } from '../faults/terminate.mjs';
import { B0, likeB0 } from '../support/bodies.mjs';
import { sleep, until } from '../support/cleanup.mjs';
import { Random, freshId, seed } from '../support/random.mjs';
import { RawConnection } from '../support/raw.mjs';
import { Stage, callbackBody, isSendAgain } from '../support/recibo.mjs';
import { nowSeconds } from '../support/sign.mjs';

const stage = await Stage.begin({
  configure(config) {
    config.providers.p1.extract.reference = ['/provider_ref', '/reference']; // the first for S23
    return config;
  },
});
const { recibo, cluster } = stage;
const replicas = [recibo.service, await recibo.serve()];
const random = new Random(seed, 'replicas');

// The installation, speaking to replica `i`. The port is taken when a request begins.
function at(i) {
  recibo.service = replicas[i];
  return recibo;
}

async function timed(action) {
  const since = Date.now();
  const answer = await action();
  return { answer, ms: Date.now() - since };
}

const parked = async (id) => (await recibo.sql('SELECT count(*)::int AS count FROM recibo.parked WHERE request_id = $1', [id]))[0].count;

// The sums of A and N over operations, and that none of them has more than one of each.
async function expectOneEach(ids) {
  const rows = await recibo.sql(
    `SELECT o.request_id, o.state, count(t.operation)::int AS a, count(n.operation)::int AS n
     FROM recibo.operations o LEFT JOIN recibo.transitions t ON t.operation = o.id AND t.actor_kind = 'provider'
     LEFT JOIN recibo.notifications n ON n.operation = t.operation AND n.sequence = t.sequence AND n.destination = 'ledger'
     WHERE o.request_id = ANY($1) GROUP BY o.id`,
    [ids],
  );
  assert.equal(rows.length, ids.length);
  assert.deepEqual(rows.filter((r) => r.state !== 'completed' || r.a !== 1 || r.n !== 1), []);
}

test('S01 fifty copies at once, at two replicas: one is applied, the others replay it', async () => {
  await recibo.accepted('req-1001');
  const connections = await Promise.all(Array.from({ length: 50 }, (_, i) => RawConnection.open(replicas[i % 2].callbacks)));
  const bytes = recibo.bytes('p1', B0);
  for (const connection of connections) connection.write(bytes.subarray(0, -1));
  for (const connection of connections) connection.write(bytes.subarray(-1));
  const answers = await Promise.all(connections.map((connection) => connection.response()));
  for (const connection of connections) connection.destroy();
  for (const answer of answers) recibo.exchanges.add('callbacks', 'POST', '/callbacks/p1', answer);
  assert.deepEqual(answers.filter((a) => a.status !== 200 && !isSendAgain(a)).map((a) => a.text), []);
  const done = answers.filter((a) => a.status === 200);
  const firsts = done.filter((a) => !a.replayed);
  if (done.length === 50) assert.equal(firsts.length, 1, 'one is the first');
  for (let refused = 50 - done.length; refused > 0; --refused) {
    const again = await at(refused % 2).deliver('p1', B0);
    assert.deepEqual([again.status, again.replayed], [200, firsts.length > 0 || refused < 50 - done.length]);
    done.push(again);
  }
  assert.equal(new Set(done.map((a) => a.text)).size, 1, 'every answer is the first one, byte for byte');
  const { request_id: request, disposition, state, delivery_id: delivery } = done[0].json;
  assert.deepEqual([request, disposition, state], ['req-1001', 'applied', 'completed']);
  const recorded = await recibo.deliveries('req-1001');
  assert.deepEqual(recorded.filter((d) => d.disposition !== 'duplicate').map((d) => [d.id, d.disposition]), [[delivery, 'applied']]);
  assert.equal(recorded.length, 50, 'each authentic delivery is on record');
  await recibo.expectCounts('req-1001', 1, 1, 0, 0);
});

test('S02 a callback before its registration is parked at one replica, and applied when the other registers', async () => {
  const body = '{"request_id":"req-2001","event_id":"evt-2001","status":"succeeded","occurred_at":"2026-10-01T10:00:00Z"}';
  const early = await at(0).callback('p1', body);
  assert.deepEqual([early.status, early.json.disposition, early.replayed], [202, 'parked', false]);
  assert.equal(await parked('req-2001'), 1, 'K1');
  const [listed] = await recibo.list('/v1/deliveries?request_id=req-2001&disposition=parked');
  assert.equal(listed.delivery_id, early.json.delivery_id, 'it can be seen while it waits');
  await sleep(2_000);
  await at(1).accepted('req-2001');
  const operation = await until('completed by itself', async () => {
    const now = await at(0).get('req-2001');
    return now.state === 'completed' ? now : null;
  }, { timeout: 30_000 });
  assert.equal(operation.version, 1);
  await recibo.expectCounts('req-2001', 1, 1, 0, 0);
  const again = await at(1).callback('p1', body);
  assert.deepEqual([again.status, again.replayed, again.json], [200, true, { ...early.json, disposition: 'applied', state: 'completed' }]);
  await recibo.expectCounts('req-2001', 1, 1, 0, 0);
});

// It waits until the end of this file.
const never = freshId('never');
test('S02 never registered: it stays', async () => {
  const answer = await at(1).callback('p1', callbackBody(never, 'evt'));
  assert.deepEqual([answer.status, answer.json.disposition], [202, 'parked']);
});

test('S05 the key "1" three times, and a request that is repeated to another provider with the same secret', async () => {
  const ids = ['req-51', 'req-52', 'req-53'];
  const names = ['p1', 'p2', 'p3'];
  for (const [i, name] of names.entries()) await at(i % 2).accepted(ids[i], { provider: name });
  const recorded = recibo.request('p1', callbackBody('req-51', '1'));
  const deliveries = new Set();
  for (const [i, name] of names.entries()) {
    const answer = await at(i % 2).raw(name === 'p1' ? recorded : recibo.request(name, callbackBody(ids[i], '1')));
    const { request_id: request, disposition, state } = answer.json;
    assert.deepEqual([answer.status, answer.replayed, request, disposition, state], [200, false, ids[i], 'applied', 'completed']);
    deliveries.add(answer.json.delivery_id);
  }
  assert.equal(deliveries.size, 3);
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0, 0);
  const before = await recibo.get('req-51');
  const replayed = await at(1).raw({ ...recorded, target: '/callbacks/p3' });
  assert.deepEqual([replayed.status, replayed.json.disposition, replayed.replayed], [202, 'parked', false]);
  const waits = await recibo.sql("SELECT provider, request_id FROM recibo.parked WHERE request_id = 'req-51'");
  assert.deepEqual(waits, [{ provider: 'p3', request_id: 'req-51' }]);
  assert.deepEqual(await recibo.get('req-51'), before, "nothing of p1's is touched");
  const { A, N, V } = await recibo.counts('req-51');
  assert.deepEqual({ A, N, V }, { A: 1, N: 1, V: 0 });
});

let unlockedAt;
test('S07 a row lock for 20 seconds: everybody is answered in time, others at once', { timeout: 60_000 }, async () => {
  const [locked, ...others] = [freshId(), freshId(), freshId()];
  for (const id of [locked, ...others]) await recibo.accepted(id);
  const body = likeB0(locked, 'evt-1');
  const session = await cluster.client(recibo.database);
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM recibo.operations WHERE request_id = $1 FOR UPDATE', [locked]);
  // The sender stops listening after 5 s and sends again; what it would have heard is held to the limit all the same.
  const sends = [0, 5, 10, 15].map(async (second, i) => {
    await sleep(second * 1_000);
    return timed(() => at(i % 2).callback('p1', body, { timeout: 20_000 }));
  });
  await sleep(2_000);
  for (const [i, id] of others.entries()) {
    const { answer, ms } = await timed(() => at(i).callback('p1', likeB0(id, 'evt-1')));
    assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
    assert.ok(ms < 1_000, `another operation's at replica ${i} after ${ms} ms`);
  }
  await sleep(18_000);
  await session.query('COMMIT');
  await session.end();
  unlockedAt = Date.now();
  for (const { answer, ms } of await Promise.all(sends)) {
    assert.ok(answer.status === 200 || isSendAgain(answer), `${answer.status} ${answer.text}`);
    assert.ok(ms < 10_500, `answered after ${ms} ms`);
  }
  for (const i of [0, 1]) {
    const last = await at(i).deliver('p1', body);
    assert.deepEqual([last.status, last.json.disposition], [200, 'applied']);
  }
  for (const id of [locked, ...others]) await recibo.expectCounts(id, 1, 1, 0, 0);
});

test('S08 killed right after the answer, twenty times: everything is there without a resend', { timeout: 60_000 }, async () => {
  const restart = async (i) => {
    replicas[i] = await recibo.serve();
  };
  const fleet = { recibo, replicas, restart, sql: (text, values) => recibo.sql(text, values), judge: async (book) => judge(await rowsOf(book), book) };
  for (let round = 0; round < 20; ++round) assert.deepEqual((await answeredThenKilled(fleet, random, round % 2)).complaints, [], `round ${round}`);
});

async function rowsOf(book) {
  const client = await cluster.client(recibo.database);
  try {
    return await read(client, book);
  } finally {
    await client.end();
  }
}

test('S14 a header sent twice: order does not decide', async () => {
  const wrong = ['X-Signature', `sha256=${'0'.repeat(64)}`];
  const classes = [];
  for (const order of ['wrong then right', 'right then wrong']) {
    const id = freshId();
    await recibo.accepted(id);
    const right = recibo.request('p1', likeB0(id, 'evt-1'));
    const signature = right.headers.findIndex(([name]) => name === 'X-Signature');
    const headers = right.headers.toSpliced(order === 'wrong then right' ? signature : signature + 1, 0, wrong);
    assert.equal(headers.filter(([name]) => name === 'X-Signature').length, 2);
    const answer = await at(0).raw({ ...right, headers });
    const kind = Math.floor(answer.status / 100);
    assert.ok(kind === 2 || kind === 4, `${order}: ${answer.status}`);
    classes.push(kind);
    await recibo.expectCounts(id, kind === 2 ? 1 : 0, kind === 2 ? 1 : 0, 0, 0);
  }
  assert.equal(classes[0], classes[1], 'the same class of answer');

  const id = freshId();
  await recibo.accepted(id, { provider: 'p5' });
  const body = callbackBody(id, undefined);
  const keys = (...values) => ({ headers: values.map((value) => ['Idempotency-Key', value]) });
  const doubled = await at(1).callback('p5', body, keys('k1', 'k2'));
  assert.ok(doubled.status === 400 || doubled.status === 422, `${doubled.status} ${doubled.text}`);
  await recibo.expectCounts(id, 0, 0, 0, 0);
  const claims = 'SELECT k.delivery FROM recibo.idempotency_keys k JOIN recibo.operations o ON o.id = k.operation WHERE o.request_id = $1';
  assert.deepEqual(await recibo.sql(claims, [id]), [], 'no key is claimed');
  const single = await at(0).callback('p5', body, keys('k1'));
  assert.deepEqual([single.status, single.replayed, single.json.disposition], [200, false, 'applied'], 'k1 was free');
  const other = await at(1).callback('p5', body, { ...keys('k2'), stamp: String(nowSeconds() - 1) });
  assert.deepEqual([other.status, other.replayed, other.json.disposition], [200, false, 'redundant'], 'k2 was free');

  const twice = freshId();
  await recibo.accepted(twice);
  const types = await at(0).callback('p1', likeB0(twice, 'evt-1'), { headers: [['Content-Type', 'application/json']] });
  assert.ok(types.status === 200 || types.status === 400, `${types.status} ${types.text}`);
  const applied = types.status === 200 ? 1 : 0;
  await recibo.expectCounts(twice, applied, applied, 0, 0);
});

test('a reference that a parked callback brought is known once that callback is applied', async () => {
  const id = freshId();
  const reference = freshId('ref');
  const early = await at(0).callback('p1', JSON.stringify({ request_id: id, provider_ref: reference, event_id: '1', status: 'processing' }));
  const byReference = JSON.stringify({ provider_ref: reference, event_id: '2', status: 'succeeded' });
  const sooner = await at(1).callback('p1', byReference);
  assert.deepEqual([early.status, sooner.status], [202, 202]);
  await at(1).accepted(id);
  assert.deepEqual((await at(0).get(id)).references, [reference]);
  const again = await at(0).callback('p1', byReference);
  assert.deepEqual([again.status, again.json.disposition, again.json.request_id, again.replayed], [200, 'applied', id, true]);
  await recibo.expectCounts(id, 2, 2, 0, 0);
  assert.deepEqual(await recibo.sql('SELECT parked FROM recibo.parked_identities WHERE identity = $1', [reference]), [], 'nothing waits under it');
});

test('the same other content under two keys is two conflicts', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const amount = '20.00';
  for (const [i, key] of ['1', '2'].entries()) assert.equal((await at(i).callback('p1', callbackBody(id, key))).status, 200);
  const told = [];
  for (const key of ['1', '2', '1', '2']) {
    const answer = await at(told.length % 2).callback('p1', callbackBody(id, key, 'succeeded', { amount }));
    assert.deepEqual([answer.status, answer.json.code], [409, 'conflict']);
    told.push(answer.json.delivery_id);
  }
  assert.deepEqual([told[2], told[3]], [told[0], told[1]], 'each is kept once');
  assert.notEqual(told[0], told[1]);
  for (const [i, delivery] of told.slice(0, 2).entries()) {
    assert.equal((await recibo.storedBody(delivery)).toString(), callbackBody(id, String(i + 1), 'succeeded', { amount }), 'with its own bytes');
  }
});

test('a registration with a reference, repeated while its row is locked, is asked to come again or is a replay', async () => {
  const id = freshId();
  const fields = { reference: freshId('ref') };
  await recibo.accepted(id, fields);
  const session = await cluster.client(recibo.database);
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM recibo.operations WHERE request_id = $1 FOR UPDATE', [id]);
  const repeated = [0, 1].map((i) => at(i).register(id, fields));
  await sleep(500);
  await session.query('COMMIT');
  await session.end();
  for (const answer of await Promise.all(repeated)) {
    assert.ok((answer.status === 200 && answer.replayed) || isSendAgain(answer), `${answer.status} ${answer.text}`);
  }
});

test('S23 neighbouring big integers are two events, digit for digit', async () => {
  const id = 'req-2301';
  await recibo.accepted(id);
  const first = await at(0).callback('p1', `{"request_id":"${id}","event_id":9007199254740993,"status":"processing","provider_ref":9223372036854775807}`);
  assert.deepEqual([first.status, first.replayed, first.json.disposition], [200, false, 'applied']);
  const second = await at(1).callback('p1', `{"request_id":"${id}","event_id":9007199254740992,"status":"succeeded"}`);
  assert.deepEqual([second.status, second.replayed, second.json.disposition, second.json.state], [200, false, 'applied', 'completed']);
  await recibo.expectCounts(id, 2, 2, 0, 0);
  for (const [answer, key] of [[first, '9007199254740993'], [second, '9007199254740992']]) {
    const shown = await at(1).api('GET', `/v1/deliveries/${answer.json.delivery_id}`);
    assert.equal(shown.json.key, key);
  }
  const operation = await at(0).get(id);
  assert.deepEqual(operation.references, ['9223372036854775807']);
  const found = await at(1).list('/v1/operations?reference=9223372036854775807');
  assert.deepEqual(found.map((o) => o.request_id), [id]);
  assert.deepEqual(await recibo.list('/v1/operations?reference=9223372036854775808'), [], 'and no other number finds it');
  const byReference = await at(1).callback('p1', '{"provider_ref":9223372036854775807,"event_id":9007199254740994,"status":"succeeded"}');
  assert.deepEqual([byReference.status, byReference.json.request_id, byReference.json.disposition], [200, id, 'redundant']);
});

test('S25 awkward identifiers that are allowed work end to end; those that are not reach nothing', async () => {
  const decoys = ['a', 'b', 'ab', 'a%2F', 'x'.repeat(254)].filter((id) => !id.includes('%'));
  for (const id of decoys) await recibo.accepted(id);
  const allowed = ['a:b@c&d=e+f;g"<h>\\i\'', 'x'.repeat(255)];
  for (const [i, id] of allowed.entries()) {
    const registered = await at(i).accepted(id);
    assert.equal(registered.request_id, id);
    const answer = await at(1 - i).callback('p1', callbackBody(id, '1'));
    assert.deepEqual([answer.status, answer.json.disposition, answer.json.request_id], [200, 'applied', id]);
    const operation = await at(i).get(id);
    assert.deepEqual([operation.request_id, operation.state], [id, 'completed']);
    const shown = await recibo.run(['case', id]);
    assert.deepEqual([shown.code, shown.stdout.includes(id)], [0, true], shown.stderr);
    await recibo.expectCounts(id, 1, 1, 0, 0);
  }
  const before = await recibo.sql('SELECT request_id, revision FROM recibo.operations ORDER BY request_id');
  const kept = [];
  for (const [i, id] of ['a/b', 'a%2Fb', 'x'.repeat(256)].entries()) {
    const registered = await at(i % 2).register(id);
    assert.ok(registered.status === 400 || registered.status === 422, `${registered.status} ${registered.text}`);
    assert.match(registered.json.detail, id.length > 255 ? /request_id.*255/ : /request_id.*% ?|request_id.*\//, 'the rule is named');
    const answer = await at(i % 2).callback('p1', callbackBody(id, `s25-${i}`));
    assert.ok(answer.status === 422 || answer.status === 202, `${answer.status} ${answer.text}`);
    kept.push(answer.json.delivery_id);
    assert.equal((await at(0).api('GET', `/v1/operations/${encodeURIComponent(id)}`)).status < 500, true);
  }
  assert.deepEqual(await recibo.sql('SELECT request_id, revision FROM recibo.operations ORDER BY request_id'), before, 'no operation was touched');
  const listed = new Set((await at(1).list('/v1/deliveries', { limit: 50 })).map((d) => d.delivery_id));
  for (const delivery of kept) assert.ok(listed.has(delivery), `${delivery} is listed`);
  await recibo.list('/v1/failed-callbacks');
});

test('S26 empty and endless event identifiers are refused alike, and have no effect', async () => {
  const digits = Array.from({ length: 400 }, (_, i) => createHash('md5').update(String(i + 1)).digest('hex')).join('');
  assert.equal(digits.length, 12_800);
  const ids = { empty: '', blank: ' ', absent: undefined, 'one letter': 'a'.repeat(12_800), 'random digits': digits };
  const said = {};
  for (const [name, event] of Object.entries(ids)) {
    const id = freshId();
    await recibo.accepted(id);
    const body = callbackBody(id, event);
    for (const i of [0, 1]) {
      const answer = await at(i).callback('p1', body);
      assert.deepEqual([answer.status, answer.json.code], [422, 'unprocessable'], `${name}: ${answer.text}`);
      said[name] ??= answer.json;
      assert.equal(answer.json.delivery_id, said[name].delivery_id, 'the same bytes are kept once');
    }
    await recibo.expectCounts(id, 0, 0, 0, 0);
  }
  assert.equal(said['one letter'].detail, said['random digits'].detail, 'the same limit, whether the text can be packed or not');
});

test('S32 more callbacks than connections: nobody waits in silence, and after the resends all are there once', { timeout: 90_000 }, async () => {
  const ids = Array.from({ length: 104 }, () => freshId('s32'));
  await Promise.all(ids.map((id, i) => at(i % 2).accepted(id)));
  const blocked = ids.slice(0, 4);
  const session = await cluster.client(recibo.database);
  await session.query('BEGIN');
  await session.query('SELECT 1 FROM recibo.operations WHERE request_id = ANY($1) FOR UPDATE', [blocked]);
  let watching = true;
  const watch = [0, 1].map(async (i) => {
    let slowest = 0;
    while (watching) {
      const { answer, ms } = await timed(() => at(i).live());
      assert.equal(answer.status, 200);
      slowest = Math.max(slowest, ms);
      await sleep(200);
    }
    return slowest;
  });
  const first = blocked.map((id, i) => timed(() => at(i % 2).callback('p1', likeB0(id, 'evt-1'), { timeout: 20_000 })));
  const since = Date.now();
  await sleep(500);
  const more = ids.slice(4).map((id, i) => timed(() => at(i % 2).callback('p1', likeB0(id, 'evt-1'), { timeout: 20_000 })));
  const answers = await Promise.all(more);
  await sleep(Math.max(0, 15_000 - (Date.now() - since)));
  await session.query('COMMIT');
  await session.end();
  answers.push(...(await Promise.all(first)));
  watching = false;
  for (const slowest of await Promise.all(watch)) assert.ok(slowest < 1_000, `/livez took ${slowest} ms`);
  for (const { answer, ms } of answers) {
    assert.ok(answer.status === 200 || isSendAgain(answer), `${answer.status} ${answer.text}`);
    assert.ok(ms < 10_500, `answered ${answer.status} after ${ms} ms`);
  }
  const inOrder = [...ids.slice(4), ...blocked];
  for (const [i, { answer }] of answers.entries()) {
    if (answer.status === 200) continue;
    assert.equal((await at(i % 2).deliver('p1', likeB0(inOrder[i], 'evt-1'))).status, 200);
  }
  await expectOneEach(ids);
});

test('S33 all sessions terminated, idle and under load: a few are asked to come again, none is lost, none is there twice', { timeout: 60_000 }, async () => {
  const ids = Array.from({ length: 520 }, () => freshId('s33'));
  for (let i = 0; i < ids.length; i += 40) await Promise.all(ids.slice(i, i + 40).map((id, j) => at(j % 2).accepted(id)));
  let refused = 0;
  const send = async (id, i) => {
    const answer = await at(i % 2).callback('p1', likeB0(id, 'evt-1'));
    if (answer.status === 200) return;
    assert.ok(isSendAgain(answer), `${answer.status} ${answer.text}`);
    refused += 1;
    await sleep(100);
    await send(id, i);
  };
  const [{ count: idle }] = await recibo.sql(terminateAll);
  assert.ok(idle > 0);
  for (const [i, id] of ids.slice(0, 20).entries()) await send(id, i);
  assert.ok(refused <= idle, `${refused} refusals for ${idle} sessions that were idle`);
  refused = 0;
  let busy = 0;
  const ending = sleep(5_000).then(async () => {
    busy = (await recibo.sql(terminateAll))[0].count;
  });
  await Promise.all(ids.slice(20).map(async (id, i) => {
    await sleep(i * 20);
    await send(id, i);
  }));
  await ending;
  assert.ok(refused <= busy, `${refused} refusals for ${busy} sessions under load`);
  assert.ok(replicas.every((service) => service.running), 'nobody restarted');
  await expectOneEach(ids);
});

test('S34 identifiers beyond 32 bits: there is no sequence that could run out', async () => {
  const sequences = await recibo.sql(
    `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'S' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`,
  );
  assert.deepEqual(sequences, []);
  for (let i = 0; i < 10; ++i) {
    const id = freshId('s34');
    await at(i % 2).accepted(id);
    const answer = await at(1 - (i % 2)).callback('p1', likeB0(id, 'evt-1'));
    assert.deepEqual([answer.status, answer.json.request_id, answer.json.disposition], [200, id, 'applied']);
    const delivery = await at(i % 2).api('GET', `/v1/deliveries/${answer.json.delivery_id}`);
    assert.deepEqual([delivery.status, delivery.json.delivery_id, delivery.json.request_id], [200, answer.json.delivery_id, id]);
    const entry = (await recibo.timeline(id)).find((e) => e.kind === 'delivery');
    assert.equal(entry.delivery_id, answer.json.delivery_id);
    await recibo.expectCounts(id, 1, 1, 0, 0);
  }
});

test('twenty thousand mixed callbacks on two replicas keep to the model', { timeout: 120_000 }, async () => {
  const fleet = await Fleet.start({ cluster });
  after(() => fleet.close());
  const totals = new Totals();
  const lines = [];
  await mix.run({ fleet, random: new Random(seed, 'mix'), rounds: 20_000, totals, tell: (text) => lines.push(text) });
  assert.deepEqual(totals.complaints.slice(0, 10), [], lines.join('\n'));
  assert.ok(totals.answered >= 20_000);
  // Whatever these callbacks are made of, each outcome was met.
  for (const word of ['applied', 'conflict', 'duplicate', 'parked', 'redundant', 'review', 'stale', 'unauthenticated', 'unmapped', 'unprocessable']) {
    assert.ok(totals.answers[word] > 0, `${word} was met`);
  }
  const { complaints } = await fleet.finish();
  assert.deepEqual(complaints, []);
  await fleet.close();
});

test('the judge of the fault tests complains when something is not so', async () => {
  const { Book, Callback, Operation } = await import('../faults/book.mjs');
  const { Load } = await import('../faults/load.mjs');
  const book = new Book();
  const load = new Load({ fleet: { recibo, replicas }, book, random });
  const learned = new Operation({ id: freshId('judged'), reference: freshId('ref'), provider: 'p1', when: 'early', knownAs: 'learned' });
  for (const [key, word, event, names] of [
    ['1', 'processing', 'progress', { reference: learned.reference }],
    ['2', 'succeeded', 'complete', { request_id: undefined, reference: learned.reference }],
  ]) {
    new Callback({ operation: learned, key, content: word, event, body: callbackBody(learned.id, key, word, names) });
  }
  book.add(learned);
  await load.register(learned, replicas[0]);
  for (const callback of learned.callbacks.toReversed()) await load.deliver(callback, replicas[1]);
  const operation = new Operation({ id: freshId('judged'), provider: 'p1', when: 'early', knownAs: 'request_id' });
  const tell = (key, word, event, amount = '19.99') =>
    new Callback({ operation, key, content: `${word} ${amount}`, event, agrees: amount === '19.99', body: callbackBody(operation.id, key, word, { amount }) });
  const moves = [tell('1', 'processing', 'progress'), tell('2', 'succeeded', 'complete'), tell('1', 'processing', 'progress', '20.00')];
  book.add(operation);
  await load.register(operation, replicas[0]);
  for (const [i, callback] of [...moves, ...moves].entries()) await load.deliver(callback, replicas[i % 2]);
  load.close();
  const rows = await rowsOf(book);
  const complaints = (of = rows) => judge(of, book).complaints;
  assert.deepEqual(complaints(), []);

  const without = (table, which) => ({ ...rows, [table]: rows[table].filter((row) => !which(row)) });
  const changed = (table, which, change) => ({ ...rows, [table]: rows[table].map((row) => (which(row) ? { ...row, ...change } : row)) });
  const lies = {
    'a delivery is lost': without('deliveries', (d) => d.disposition === 'applied'),
    'a repetition is lost': without('deliveries', (d) => d.disposition === 'duplicate'),
    'a reference is not learned': without('aliases', () => true),
    'another reference is learned': { ...rows, aliases: [...rows.aliases, { ...rows.aliases[0], alias: 'other' }] },
    'a fact is lost': without('audit', (f) => f.sequence === 2),
    'a transition is lost': without('transitions', (t) => t.event === 'complete'),
    'a transition is there twice': { ...rows, transitions: [...rows.transitions, { ...rows.transitions[0], sequence: 99 }] },
    'a claim is lost': without('keys', (k) => k.disposition === 'applied'),
    'a claim says something else': changed('keys', (k) => k.state === 'completed', { state: 'failed' }),
    'a count is wrong': changed('keys', () => true, { duplicates: 0 }),
    'a notification is lost': without('notifications', (n) => n.type === 'operation.completed'),
    'a review is lost': without('reviews', () => true),
    'a conflict is not counted': changed('reviews', () => true, { count: 1 }),
    'the state is another': changed('operations', () => true, { state: 'failed' }),
    'the version is another': changed('operations', () => true, { version: 3 }),
    'a disposition is another': changed('deliveries', (d) => d.disposition === 'conflict', { disposition: 'stale' }),
    'something still waits': { ...rows, parked: [{ id: rows.deliveries[0].id, digest: moves[0].digest, disposition: 'parked' }] },
    'it is not there': without('operations', () => true),
  };
  for (const [name, lie] of Object.entries(lies)) assert.notDeepEqual(complaints(lie), [], name);

  const answered = moves[1].answers[0];
  const other = { state: 'failed', delivery: moves[0].answers[0].delivery, status: 409, replayed: true, text: 'other', request: 'another' };
  for (const [name, lie] of Object.entries(other)) {
    const before = answered[name];
    answered[name] = lie;
    assert.notDeepEqual(complaints(), [], `answered with another ${name}`);
    answered[name] = before;
  }
  assert.deepEqual(complaints(), []);
});

test('thirty seconds after the lock of S07 nothing of it is held', { timeout: 60_000 }, async () => {
  await sleep(Math.max(0, 30_000 - (Date.now() - unlockedAt)));
  const held = await recibo.sql(
    `SELECT state, wait_event, now() - xact_start AS since FROM pg_stat_activity
     WHERE datname = current_database() AND usename = 'recibo_service' AND xact_start < now() - interval '5 seconds'`,
  );
  assert.deepEqual(held, []);
  assert.deepEqual(await recibo.sql('SELECT locktype FROM pg_locks WHERE NOT granted'), []);
  for (const i of [0, 1]) {
    assert.equal(await at(i).metric('recibo_queue_depth'), 0);
    assert.equal((await at(i).ready()).status, 200);
  }
});

test('S02 never registered: it is still there, with its age', { timeout: 30_000 }, async () => {
  assert.equal(await parked(never), 1);
  const [listed] = await at(0).list(`/v1/deliveries?request_id=${never}&disposition=parked`);
  assert.equal(listed.disposition, 'parked');
  assert.ok(Date.parse(listed.received_at) <= Date.now());
  for (const i of [0, 1]) {
    await until('its age is shown', async () => (await at(i).metric('recibo_oldest_age_seconds', { queue: 'parked' })) > 0, { timeout: 20_000, interval: 500 });
  }
});

test('the second replica ends with 0', async () => {
  const ended = await replicas[1].stop();
  assert.deepEqual([ended.code, ended.signal], [0, null], replicas[1].tail());
  at(0);
});

stage.ends();
