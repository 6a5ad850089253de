// The command line: exit codes, and what each command prints.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../support/process.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody, secrets } from '../support/recibo.mjs';
import { sha256Hex } from '../support/sign.mjs';

const stage = await Stage.begin();
const { recibo } = stage;
const output = ({ stdout, stderr }) => `${stdout}${stderr}`;

// A completed operation with a review, to look at.
async function completed() {
  const id = freshId();
  await recibo.accepted(id);
  const answer = await recibo.callback('p1', callbackBody(id, '1'));
  assert.equal(answer.status, 200);
  await recibo.callback('p1', callbackBody(id, '1'));
  await recibo.callback('p1', callbackBody(id, '2', 'failed'));
  return { id, delivery: answer.json.delivery_id };
}

test('version, help, and wrong use', async () => {
  const version = await run(['version']);
  assert.deepEqual([version.code, /\d+\.\d+\.\d+/.test(version.stdout)], [0, true]);
  const help = await run(['--help']);
  assert.equal(help.code, 0);
  for (const command of ['serve', 'migrate', 'check', 'send', 'case', 'workflow', 'audit', 'replay', 'token', 'openapi', 'doctor', 'version']) {
    assert.match(help.stdout, new RegExp(`\\b${command}\\b`));
    const own = await run([command, '--help']);
    assert.equal(own.code, 0, `${command} --help: ${output(own)}`);
    assert.ok(own.stdout.length > 20, command);
  }
  for (const args of [[], ['nonsense'], ['check', '--nonsense'], ['case'], ['send'], ['workflow'], ['serve', '--config', '/nonexistent/recibo.yaml']]) {
    const result = await recibo.run(args, { timeout: 10_000 });
    assert.equal(result.code, 2, `${args.join(' ')}: ${output(result)}`);
    assert.ok(output(result).length > 0, 'with a sentence');
  }
});

test('migrate may run again, and beside itself', async () => {
  const runs = await Promise.all([recibo.run(['migrate']), recibo.run(['migrate'])]);
  for (const result of runs) assert.equal(result.code, 0, output(result));
  const database = await stage.cluster.createDatabase();
  const url = stage.cluster.url(database);
  const fresh = await Promise.all([0, 1, 2].map(() => recibo.run(['migrate'], { env: { RECIBO_OWNER_URL: url } })));
  for (const result of fresh) assert.equal(result.code, 0, output(result));
  assert.equal((await stage.cluster.query(database, "SELECT to_regclass('recibo.operations') IS NOT NULL AS there"))[0].there, true);
});

test('a request that is no file is said so, and one that never ends is not awaited', async () => {
  const crowded = join(recibo.folder, 'crowded');
  writeFileSync(crowded, `POST /callbacks/p1 HTTP/1.1\r\n${'X-Forwarded-For: 1\r\n'.repeat(2_000_000)}\r\n{}`);
  const cases = [
    [['--request', recibo.folder], /is a folder/],
    [['--request', crowded], /the head is longer than 256 KiB/],
    [['--headers', crowded], /the head is longer than 256 KiB/],
    [['--request', '/dev/zero'], /is longer than 65 MiB/],
    [['--request', '/nonexistent'], /does not exist/],
    [['--headers', recibo.folder], /is a folder/],
  ];
  for (const [args, said] of cases) {
    const result = await recibo.run(['verify', 'p1', ...args], { timeout: 20_000 });
    assert.equal(result.code, 2, `${args.join(' ')}: ${output(result)}`);
    assert.match(result.stderr, said);
    assert.equal(result.stderr.trim().split('\n').length, 1, 'one sentence');
  }
  const vectors = await run(['verify', '--vectors', '/dev/zero'], { timeout: 20_000 });
  assert.deepEqual([vectors.code, /is longer than 64 MiB/.test(vectors.stderr)], [2, true]);
  const sent = await recibo.run(['send', 'p1', '--body', recibo.folder]);
  assert.deepEqual([sent.code, /is a folder/.test(sent.stderr)], [2, true], output(sent));
});

test('the database away is exit 3, and no URL is printed', async () => {
  const away = { RECIBO_DATABASE_URL: 'postgresql://recibo_service:hidden-word@/x?host=/nonexistent', RECIBO_OWNER_URL: 'postgresql://recibo:hidden-word@/x?host=/nonexistent' };
  for (const args of [['migrate'], ['audit', 'verify'], ['case', 'req-1']]) {
    const result = await recibo.run(args, { env: away });
    assert.equal(result.code, 3, `${args.join(' ')}: ${output(result)}`);
    assert.equal(output(result).includes('hidden-word'), false);
  }
});

test('case shows one case for a terminal', async () => {
  const { id, delivery } = await completed();
  const shown = await recibo.run(['case', id]);
  assert.equal(shown.code, 0, output(shown));
  for (const word of [id, 'p1', 'completed', 'applied', 'duplicate', delivery]) assert.ok(shown.stdout.includes(word), `${word}:\n${shown.stdout}`);
  assert.equal(shown.stdout.includes('2026-10-01T10:00:00Z","'), false, 'no payload');
  assert.doesNotMatch(shown.stdout, /[\x00-\x08\x0b-\x1a\x1c-\x1f]/);
  const missing = await recibo.run(['case', freshId()]);
  assert.equal(missing.code, 1, output(missing));
});

test('workflow draws the transition table', async () => {
  const table = await recibo.run(['workflow', 'desk', '--format', 'table']);
  assert.equal(table.code, 0, output(table));
  for (const word of ['accepted', 'submitted', 'processing', 'resolve_completed', 'held']) assert.ok(table.stdout.includes(word), word);
  const mermaid = await recibo.run(['workflow', 'desk', '--format', 'mermaid']);
  assert.equal(mermaid.code, 0);
  assert.match(mermaid.stdout, /stateDiagram-v2/);
  assert.match(mermaid.stdout, /accepted\s*-->\s*processing/);
  const svg = await recibo.run(['workflow', 'desk', '--format', 'svg']);
  assert.equal(svg.code, 0, output(svg));
  assert.match(svg.stdout, /<svg[\s>]/);
  for (const args of [['workflow', 'nope'], ['workflow', 'desk', '--format', 'gif']]) {
    const result = await recibo.run(args);
    assert.ok(result.code === 1 || result.code === 2, `${args.join(' ')} exits ${result.code}`);
  }
});

test('what send --dry-run writes is the request byte for byte, and verifies', async () => {
  const file = join(recibo.folder, 'dry.http');
  const dry = (name, ...more) => recibo.run(['send', name, '--request-id', freshId(), '--event', 'succeeded', '--dry-run', ...more]);
  for (const name of ['p1', 'stripe', 'github', 'slack', 'standard']) {
    const made = await dry(name, '--amount', '19.99', '--currency', 'EUR');
    assert.equal(made.code, 0, made.stderr);
    const [head, ...rest] = made.stdout.split('\r\n\r\n');
    const body = rest.join('\r\n\r\n');
    assert.match(body, /\}$/, 'nothing stands behind the body');
    assert.equal(Number(/^Content-Length: (\d+)$/m.exec(head)[1]), Buffer.byteLength(body));
    writeFileSync(file, made.stdout);
    const whole = await recibo.run(['verify', name, '--request', file]);
    assert.equal(whole.code, 0, output(whole));
    assert.doesNotMatch(whole.stdout, /Content-Length/);
    // What an editor puts behind it is no part of the request, and is told.
    writeFileSync(file, `${made.stdout}\n\n`);
    const more = await recibo.run(['verify', name, '--request', file]);
    assert.equal(more.code, 0, output(more));
    assert.match(more.stdout, /2 bytes behind it are beyond its Content-Length and were left out/);
    const asJson = JSON.parse((await recibo.run(['verify', name, '--request', file, '--json'])).stdout);
    assert.deepEqual([asJson.body.bytes, asJson.body.beyond_content_length], [Buffer.byteLength(body), 2]);
    writeFileSync(file, made.stdout.slice(0, -1));
    const less = await recibo.run(['verify', name, '--request', file]);
    assert.equal(less.code, 1, output(less));
    assert.match(less.stdout, new RegExp(`Content-Length says ${Buffer.byteLength(body)} bytes: what was captured is not what was sent`));
  }
});

test('send says that a word is in no map, and sends it all the same', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const to = `http://127.0.0.1:${recibo.service.callbacks}/callbacks/p1`;
  const odd = await recibo.run(['send', 'p1', '--request-id', id, '--event', 'NONSENSE', '--to', to]);
  assert.equal(odd.code, 0, output(odd));
  assert.match(odd.stdout, /unmapped/);
  assert.match(odd.stderr, /NONSENSE is not among the events of p1, so it will be unmapped; there are failed \(fail\), processing \(progress\), succeeded \(complete\)/);
  for (const known of ['succeeded', 'complete']) {
    const fine = await recibo.run(['send', 'p1', '--request-id', id, '--event', known, '--dry-run']);
    assert.deepEqual([fine.code, fine.stderr], [0, '']);
  }
});

test('send signs and sends one callback as the provider would', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const to = `http://127.0.0.1:${recibo.service.callbacks}/callbacks/p1`;
  const said = ['send', 'p1', '--request-id', id, '--event', 'succeeded', '--key', 'k-1', '--occurred-at', '2026-10-01T10:00:00Z', '--to', to];
  const sent = await recibo.run(said);
  assert.equal(sent.code, 0, output(sent));
  assert.match(output(sent), /applied/);
  const again = await recibo.run(said);
  assert.equal(again.code, 0, output(again));
  assert.deepEqual((await recibo.deliveries(id)).map((d) => d.disposition), ['applied', 'duplicate']);
  assert.equal(output(sent).includes(secrets.p1), false);
  for (const name of ['stripe', 'standard', 'github', 'slack']) {
    const other = freshId();
    await recibo.accepted(other, { provider: name });
    const result = await recibo.run(['send', name, '--request-id', other, '--event', 'succeeded', '--to', `http://127.0.0.1:${recibo.service.callbacks}/callbacks/${name}`]);
    assert.equal(result.code, 0, `${name}: ${output(result)}`);
    assert.equal((await recibo.get(other)).state, 'completed', name);
  }
  const unknown = await recibo.run(['send', 'nope', '--request-id', id, '--event', 'succeeded', '--to', to]);
  assert.ok(unknown.code === 1 || unknown.code === 2, output(unknown));
  const nobody = await recibo.run(['send', 'p1', '--request-id', id, '--event', 'succeeded', '--to', 'http://127.0.0.1:9/callbacks/p1']);
  assert.ok(nobody.code === 1 || nobody.code === 3, output(nobody));
});

test('token new makes a random token and its digest', async () => {
  const results = [await run(['token', 'new']), await run(['token', 'new'])];
  const digests = results.map((result) => {
    assert.equal(result.code, 0, output(result));
    const digest = /\b[0-9a-f]{64}\b/.exec(output(result))?.[0];
    assert.ok(digest, output(result));
    const token = output(result).match(/[A-Za-z0-9_-]{20,}/g)?.find((word) => sha256Hex(word) === digest);
    assert.ok(token, 'the digest is that of the printed token');
    return digest;
  });
  assert.notEqual(digests[0], digests[1]);
});

test('openapi prints what the service serves', async () => {
  const printed = await recibo.run(['openapi']);
  assert.equal(printed.code, 0, output(printed));
  assert.deepEqual(JSON.parse(printed.stdout), await recibo.openapi());
});

test('audit verify notices every change behind its back', async () => {
  const own = await stage.fresh();
  const [id, clean] = [freshId(), freshId()];
  for (const one of [id, clean]) {
    await own.accepted(one);
    assert.equal((await own.callback('p1', callbackBody(one, '1', 'processing'))).status, 200);
    assert.equal((await own.callback('p1', callbackBody(one, '2'))).status, 200);
    assert.equal((await own.callback('p1', callbackBody(one, '2'))).status, 200);
    assert.equal((await own.callback('p1', callbackBody(one, '2', 'succeeded', { amount: '1.00' }))).status, 409);
  }
  const answer = (await own.list(`/v1/operations/${id}/timeline`)).find((entry) => entry.kind === 'delivery');
  assert.equal((await own.api('GET', `/v1/deliveries/${answer.delivery_id}/payload`)).status, 200);
  const good = await own.audit();
  assert.equal(good.code, 0, output(good));
  assert.equal((await own.audit(id)).code, 0);
  assert.equal((await own.audit(freshId())).code, 1, 'an unknown operation cannot be verified');

  const [{ op }] = await own.sql('SELECT id::text AS op FROM recibo.operations WHERE request_id = $1', [id]);
  const change = (table, set, where, back) => ({ what: `${table}: ${set}`, sql: `UPDATE recibo.${table} SET ${set} WHERE ${where}`, back: `UPDATE recibo.${table} SET ${back} WHERE ${where}` });
  const at = (sequence) => `operation = '${op}' AND sequence = ${sequence}`;
  const deliveries = await own.deliveries(id);
  const applied = `id = '${deliveries[0].id}'`;
  const [{ digest, hash, head }] = await own.sql(`SELECT a.digest::text AS digest, a.hash::text AS hash, o.chain_hash::text AS head FROM recibo.audit a JOIN recibo.operations o ON o.id = a.operation WHERE a.operation = $1 AND a.sequence = 2`, [op]);
  const [{ reg, client, proved }] = await own.sql(`SELECT amount AS reg, client, intent::text AS proved FROM recibo.registrations WHERE operation = $1`, [op]);
  const zeros = "decode(repeat('00', 32), 'hex')";
  const changes = [
    change('operations', "state = 'failed'", `id = '${op}'`, "state = 'completed'"),
    change('operations', 'version = 1', `id = '${op}'`, 'version = 2'),
    change('operations', `chain_hash = ${zeros}`, `id = '${op}'`, `chain_hash = '${head}'`),
    change('audit', `digest = ${zeros}`, at(2), `digest = '${digest}'`),
    change('audit', `hash = ${zeros}`, at(2), `hash = '${hash}'`),
    change('audit', "actor = 'somebody'", at(2), "actor = 'p1'"),
    change('audit', "kind = 'event'", at(2), "kind = 'delivery'"),
    change('audit', "at = at - interval '1 hour'", at(2), "at = at + interval '1 hour'"),
    change('transitions', "to_state = 'failed'", at(3), "to_state = 'completed'"),
    change('transitions', "actor = 'somebody'", at(3), "actor = 'p1'"),
    change('transitions', "actor_kind = 'operator'", at(3), "actor_kind = 'provider'"),
    change('transitions', "at = at - interval '1 hour'", at(3), "at = at + interval '1 hour'"),
    change('deliveries', "disposition = 'stale'", applied, "disposition = 'applied'"),
    change('deliveries', `body_digest = ${zeros}`, applied, `body_digest = decode('${deliveries[0].body_sha256}', 'hex')`),
    change('deliveries', "provider = 'p2'", applied, "provider = 'p1'"),
    change('deliveries', "received_at = received_at - interval '1 hour'", applied, "received_at = received_at + interval '1 hour'"),
    change('payloads', "body = body || '\\x20'", `id = '${deliveries[0].payload}'`, 'body = substring(body FOR octet_length(body) - 1)'),
    change('registrations', "amount = '1.00'", `operation = '${op}'`, `amount = '${reg}'`),
    change('registrations', "client = 'storefront'", `operation = '${op}'`, `client = '${client}'`),
    change('registrations', `intent = ${zeros}`, `operation = '${op}'`, `intent = '${proved}'`),
  ];
  const removals = [
    ['audit', at(2)], ['audit', `operation = '${op}' AND sequence = (SELECT sequence FROM recibo.operations WHERE id = '${op}')`], ['transitions', at(3)],
    ['deliveries', applied], ['notifications', at(3)], ['registrations', `operation = '${op}'`], ['idempotency_keys', `operation = '${op}'`],
  ];
  for (const [i, { what, sql, back }] of changes.entries()) {
    await own.sql(sql);
    const result = await own.audit();
    assert.equal(result.code, 1, `${what} was not noticed: ${output(result)}`);
    assert.ok(output(result).includes(id) || output(result).includes(op), `${what}: which operation is said: ${output(result)}`);
    if (i % 5 === 0) assert.equal((await own.audit(id)).code, 1, `${what} was not noticed for the one operation`);
    await own.sql(back);
  }
  for (const [table, where] of removals) {
    await own.sql(`CREATE TABLE public.kept AS SELECT * FROM recibo.${table} WHERE ${where}`);
    assert.ok((await own.sql('SELECT count(*)::int AS count FROM public.kept'))[0].count > 0, `${table}: something is removed`);
    await own.sql(`DELETE FROM recibo.${table} WHERE ${where}`);
    const result = await own.audit();
    assert.equal(result.code, 1, `a removed row of ${table} was not noticed: ${output(result)}`);
    await own.sql(`INSERT INTO recibo.${table} SELECT * FROM public.kept`);
    await own.sql('DROP TABLE public.kept');
  }
  assert.equal((await own.audit(clean)).code, 0, 'its neighbour verifies');
  await own.sql("UPDATE recibo.operations SET state = 'failed' WHERE id = $1", [op]);
  assert.equal((await own.audit(clean)).code, 0);
  await own.sql("UPDATE recibo.operations SET state = 'completed' WHERE id = $1", [op]);
  await own.finish();
});

test('the service role cannot change or remove evidence', async () => {
  const { id } = await completed();
  const session = await stage.cluster.client(recibo.database, { user: 'recibo_service' });
  for (const table of ['deliveries', 'payloads', 'transitions', 'audit', 'registrations', 'payload_accesses']) {
    await assert.rejects(session.query(`DELETE FROM recibo.${table}`), { code: '42501' }, `DELETE ${table}`);
    const [{ column_name: column }] = (await session.query("SELECT column_name FROM information_schema.columns WHERE table_schema = 'recibo' AND table_name = $1 LIMIT 1", [table])).rows;
    await assert.rejects(session.query(`UPDATE recibo.${table} SET ${column} = ${column}`), { code: '42501' }, `UPDATE ${table}`);
  }
  await assert.rejects(session.query('DELETE FROM recibo.operations'), { code: '42501' });
  await session.end();
  assert.ok(id);
});

stage.ends();
