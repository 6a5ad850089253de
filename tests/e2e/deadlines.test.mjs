// Deadlines: a state that lasts too long raises its event by itself, once, on one replica (R22); an outage makes nothing run out (R44).
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { sleep, until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const timed = {
  initial: 'accepted',
  states: {
    accepted: { label: 'Accepted', limit: { after: '1s', event: 'overdue' }, owner: 'checkout' },
    processing: { label: 'In progress', limit: { after: '1h', event: 'overdue' }, owner: 'payments-ops' },
    unknown: { label: 'Being checked', limit: { after: '2s', event: 'escalate' }, owner: 'payments-ops' },
    requires_review: { label: 'Being reviewed', limit: 'none', owner: 'payments-ops' },
    completed: { label: 'Completed', terminal: true, done: true },
    failed: { label: 'Rejected', terminal: true },
  },
  transitions: [
    { from: 'accepted', event: 'submitted', to: 'processing', by: 'client' },
    { from: 'accepted', event: 'edit', to: 'accepted', by: 'client' },
    { from: ['accepted', 'processing', 'unknown', 'requires_review'], event: 'complete', to: 'completed', by: 'provider' },
    { from: ['accepted', 'processing', 'unknown', 'requires_review'], event: 'fail', to: 'failed', by: 'provider' },
    { from: ['accepted', 'processing'], event: 'overdue', to: 'unknown', by: 'clock' },
    { from: 'unknown', event: 'escalate', to: 'requires_review', by: 'clock' },
    { from: 'completed', event: 'reopen', to: 'processing', by: 'operator' },
  ],
};

const stage = await Stage.begin({
  configure(config) {
    const words = { events: { succeeded: 'complete', failed: 'fail' } };
    config.workflows.timed = timed;
    config.workflows.later = structuredClone(config.workflows.fixture);
    config.providers.p1 = { ...config.providers.p1, ...words, workflow: 'timed' };
    // Limits of its own: one that is longer, one that is none.
    config.providers.p2 = { ...config.providers.p2, ...words, workflow: 'timed', limits: { accepted: 'none', processing: { after: '1s', event: 'overdue' } } };
    config.providers.p3 = { ...config.providers.p3, workflow: 'later' };
    config.providers.desk = { ...config.providers.desk, ...words };
    config.reviews = { due: '2s', owner: 'duty-desk' };
    return config;
  },
});
const { recibo } = stage;

const moves = async (id) => (await recibo.timeline(id)).filter((e) => e.kind === 'transition').map((e) => [e.from, e.event, e.to, e.actor_kind, e.actor]);
const inState = (id, state) => until(`${id} to be ${state}`, async () => (await recibo.get(id)).state === state);
const timers = (id) =>
  recibo.sql(
    `SELECT t.kind, t.event, t.fired_at IS NOT NULL AS fired, extract(epoch FROM t.due_at - now())::float AS left FROM recibo.timers t
     JOIN recibo.operations o ON o.id = t.operation WHERE o.request_id = $1 ORDER BY t.kind DESC`,
    [id],
  );
const kinds = async (id) => (await timers(id)).map((t) => t.kind);
const inFuture = (ms) => new Date(Date.now() + ms).toISOString();
// The state's time is over, whatever it is.
const runOut = (id, kind = 'limit') =>
  recibo.sql(`UPDATE recibo.timers t SET due_at = now() - interval '1 second' FROM recibo.operations o WHERE o.id = t.operation AND o.request_id = $1 AND t.kind = $2`, [id, kind]);
const types = async (id) => (await recibo.timeline(id)).filter((e) => e.kind === 'notification').map((e) => e.type);

test('a state that lasts too long raises its event, then escalates, each once and on record', async () => {
  const id = freshId();
  const made = await recibo.accepted(id);
  assert.equal(made.overdue, false);
  await inState(id, 'unknown');
  const told = (await recibo.timeline(id)).find((e) => e.kind === 'transition');
  assert.match(told.reason, /^the limit of state 'accepted' ran out at 20\d\d-/);
  assert.ok(Date.parse(told.at) - Date.parse(made.accepted_at) >= 990, 'not before its time');
  await inState(id, 'requires_review');
  assert.deepEqual(await moves(id), [
    ['accepted', 'overdue', 'unknown', 'clock', 'clock'],
    ['unknown', 'escalate', 'requires_review', 'clock', 'clock'],
  ]);
  assert.deepEqual(await types(id), ['operation.accepted', 'operation.unknown', 'operation.requires_review']);
  assert.deepEqual(await timers(id), [], 'nothing runs out in a state without a limit');
  assert.equal((await recibo.audit(id)).code, 0);
  assert.match((await recibo.run(['case', id])).stdout, /accepted -> unknown by overdue \(clock clock\), because: the limit/);
});

test('late news is still news: what the provider says ends it, and its timers with it', async () => {
  const id = freshId();
  await recibo.accepted(id, { deadline: inFuture(3_600_000) });
  await inState(id, 'unknown');
  assert.deepEqual(await kinds(id), ['limit', 'deadline']);
  assert.equal((await recibo.deliver('p1', callbackBody(id, 'e1'))).json.state, 'completed');
  assert.deepEqual(await timers(id), []);
  assert.equal((await recibo.get(id)).overdue, false);
});

test('a limit ends with its state, and the next state brings its own', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p1' });
  assert.equal((await recibo.event(id, { event: 'submitted' })).status, 200);
  const [limit] = await timers(id);
  assert.ok(limit.left > 3_500 && limit.left <= 3_600, `an hour: ${limit.left}`);
  await sleep(2_500);
  assert.equal((await recibo.get(id)).state, 'processing');
});

test("a provider's own limits hold instead of the workflow's", async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p2' });
  assert.deepEqual(await timers(id), [], 'none in the first state');
  assert.equal((await recibo.event(id, { event: 'submitted' })).status, 200);
  await inState(id, 'unknown');
  assert.deepEqual((await moves(id)).map((m) => m[1]), ['submitted', 'overdue']);
});

test('a deadline raises overdue too, whatever the limit of the state is', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p2', deadline: inFuture(1_000) });
  assert.equal((await recibo.get(id)).overdue, false);
  await inState(id, 'unknown');
  const told = (await recibo.timeline(id)).find((e) => e.kind === 'transition');
  assert.match(told.reason, /^the deadline passed at 20\d\d-/);
  const after = await recibo.get(id);
  assert.deepEqual([after.overdue, after.state], [true, 'unknown'], 'passed is passed');
  assert.ok((await recibo.list('/v1/operations?overdue=true')).some((o) => o.request_id === id));
  assert.ok(!(await recibo.list('/v1/operations?overdue=false')).some((o) => o.request_id === id));
});

test('where no transition answers to it, the operation is overdue, and its owner is asked, once', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk', deadline: inFuture(800) });
  const [review] = await until('a review', async () => {
    const found = await recibo.list(`/v1/reviews?status=open&request_id=${id}`);
    return found.length > 0 ? found : null;
  });
  assert.deepEqual([review.kind, review.owner, review.last_safe_state, review.deliveries], ['overdue', 'checkout', 'accepted', []]);
  assert.match(review.detail, /^the deadline passed at .*, and no transition answers to 'overdue' there$/);
  const now = await recibo.get(id);
  assert.deepEqual([now.state, now.overdue, now.review_open, now.version], ['accepted', true, true, 0]);
  const full = (await recibo.api('GET', `/v1/reviews/${review.review_id}`)).json;
  assert.deepEqual(full.actions.map((a) => [a.action, a.actor])[0], ['opened', 'clock']);
  // Past its own age limit somebody is reminded, once.
  await until('a reminder', async () => (await types(id)).includes('operation.review_overdue'));
  await sleep(2_500);
  const timeline = await recibo.timeline(id);
  assert.deepEqual(timeline.filter((e) => e.kind === 'review').map((e) => [e.status, e.actor, e.review_kind]), [['opened', 'clock', 'overdue'], ['reminded', 'clock', 'overdue']]);
  const opened = timeline.find((e) => e.kind === 'review');
  assert.deepEqual([opened.owner, typeof opened.due_at, opened.sequence], ['checkout', 'string', 2]);
  assert.deepEqual(await types(id), ['operation.accepted', 'operation.review_opened', 'operation.review_overdue']);
  assert.match((await recibo.run(['case', id])).stdout, /OVERDUE.*REVIEW OPEN/);
  assert.equal((await recibo.audit(id)).code, 0);
  const decided = await recibo.api('POST', `/v1/reviews/${review.review_id}/resolve`, { body: { resolution: 'asked them', reason: 'it was late', event: 'cancel' } });
  assert.equal(decided.status, 200, decided.text);
  assert.deepEqual([(await recibo.get(id)).state, (await recibo.get(id)).overdue], ['cancelled', false]);
});

test('a deadline that is edited is another one; any other edit leaves it alone', async () => {
  const id = freshId();
  await recibo.accepted(id, { deadline: inFuture(3_600_000) });
  const edit = async (changes) => assert.equal((await recibo.event(id, { event: 'edit', changes })).status, 200);
  await edit({ deadline: inFuture(7_200_000) });
  assert.ok((await timers(id)).find((t) => t.kind === 'deadline').left > 7_000);
  await edit({ metadata: { note: 'x' } });
  assert.ok((await timers(id)).find((t) => t.kind === 'deadline').left > 7_000);
  await edit({ deadline: null });
  assert.deepEqual(await kinds(id), ['limit']);
});

test('what ended and goes on after all has its deadline again', async () => {
  const id = freshId();
  await recibo.accepted(id, { deadline: inFuture(3_600_000) });
  assert.equal((await recibo.deliver('p1', callbackBody(id, 'e1'))).json.state, 'completed');
  assert.deepEqual(await timers(id), []);
  assert.equal((await recibo.event(id, { event: 'reopen' }, { token: 'ops' })).status, 200);
  assert.deepEqual(await kinds(id), ['limit', 'deadline']);
});

test('another version of the workflow brings its limits', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p3' });
  assert.deepEqual(await timers(id), []);
  const config = structuredClone(recibo.config);
  Object.assign(config.workflows.later.states.accepted, { limit: { after: '1s', event: 'overdue' }, owner: 'checkout' });
  config.workflows.later.transitions.push({ from: 'accepted', event: 'overdue', to: 'failed', by: 'clock' });
  const file = join(recibo.folder, 'later.yaml');
  recibo.write(config, file);
  const migrated = await recibo.run(['workflow', 'migrate', 'later', '--config', file, '--reason', 'it has a limit now']);
  assert.equal(migrated.code, 0, migrated.stdout + migrated.stderr);
  await inState(id, 'failed');
  assert.equal((await recibo.audit(id)).code, 0);
});

test('two replicas, in other time zones: each of many fires once', async () => {
  const other = await recibo.serve({ env: { TZ: 'Asia/Kathmandu' } });
  recibo.service = recibo.services[0];
  const ids = Array.from({ length: 120 }, () => freshId());
  await Promise.all(ids.map((id) => recibo.accepted(id)));
  await until('all of them to move', async () => {
    const [row] = await recibo.sql(`SELECT count(*)::int AS n FROM recibo.operations WHERE request_id = ANY($1) AND state <> 'accepted'`, [ids]);
    return row.n === ids.length;
  });
  const rows = await recibo.sql(
    `SELECT o.request_id, count(*)::int AS n FROM recibo.operations o JOIN recibo.transitions t ON t.operation = o.id AND t.event = 'overdue'
     WHERE o.request_id = ANY($1) GROUP BY 1`,
    [ids],
  );
  assert.equal(rows.length, ids.length);
  assert.ok(rows.every((r) => r.n === 1), JSON.stringify(rows.filter((r) => r.n !== 1)));
  await other.stop();
});

test('killed at any step, again and again, each fires once and leaves nothing half done', async () => {
  const ids = Array.from({ length: 450 }, () => freshId());
  await Promise.all(ids.map((id) => recibo.accepted(id, { provider: 'p2' })));
  await Promise.all(ids.map(async (id) => assert.equal((await recibo.event(id, { event: 'submitted' })).status, 200)));
  const left = async () => (await recibo.sql(`SELECT count(*)::int AS n FROM recibo.operations WHERE request_id = ANY($1) AND state = 'processing'`, [ids]))[0].n;
  for (let round = 0; round < 12 && (await left()) > 0; round += 1) {
    await sleep(150 + round * 90);
    await recibo.service.kill();
    await recibo.serve();
  }
  await until('all of them to move', async () => (await left()) === 0, { timeout: 20_000 });
  const [row] = await recibo.sql(
    `SELECT count(*)::int AS n, count(DISTINCT o.id)::int AS operations FROM recibo.operations o JOIN recibo.transitions t ON t.operation = o.id AND t.event = 'overdue' WHERE o.request_id = ANY($1)`,
    [ids],
  );
  assert.deepEqual(row, { n: ids.length, operations: ids.length });
});

test('a replica that was frozen fires nothing that ran out meanwhile: nobody could take a callback', async () => {
  const id = freshId();
  await recibo.accepted(id);
  process.kill(recibo.service.pid, 'SIGSTOP');
  await sleep(12_000);
  process.kill(recibo.service.pid, 'SIGCONT');
  await recibo.service.log((r) => r.msg === 'no replica was ready to take callbacks; limits stood still');
  await until('the limit to be put off', async () => (await timers(id))[0].left > 0);
  const [limit] = await timers(id);
  assert.ok(limit.left > 295 && limit.left < 320, `the outage, and five minutes: ${limit.left}`);
  await sleep(1_500);
  assert.equal((await recibo.get(id)).state, 'accepted');
});

test('an outage puts off what ran meanwhile, by as long as it lasted and the gap until the provider sends again', async () => {
  const [limited, wanted, before] = [freshId(), freshId(), freshId()];
  await recibo.accepted(limited);
  await recibo.accepted(wanted, { provider: 'p2', deadline: inFuture(3_600_000) });
  await recibo.accepted(before, { provider: 'p2', deadline: inFuture(3_600_000) });
  await recibo.service.stop();
  // As if it had been down for ten minutes: set an hour ago, and due in the middle of the outage; one before it.
  await recibo.sql(`UPDATE recibo.intake SET alive_at = now() - interval '10 minutes'`);
  await recibo.sql(`UPDATE recibo.timers SET set_at = now() - interval '1 hour', due_at = now() - interval '5 minutes' WHERE operation IN (SELECT id FROM recibo.operations WHERE request_id = ANY($1))`, [[limited, wanted]]);
  await recibo.sql(`UPDATE recibo.timers SET set_at = now() - interval '1 hour', due_at = now() - interval '11 minutes' WHERE operation = (SELECT id FROM recibo.operations WHERE request_id = $1)`, [before]);
  await recibo.serve();
  await recibo.service.log((r) => r.msg === 'no replica was ready to take callbacks; limits stood still');
  await inState(before, 'unknown');
  // Due five minutes ago, put off by ten and by the five that an unknown provider gets: ten minutes from now.
  await until('the limit to be put off', async () => (await timers(limited))[0].left > 0);
  const [limit] = await timers(limited);
  assert.ok(limit.left > 580 && limit.left < 605, `ten minutes: ${limit.left}`);
  await until('the deadline to be put off', async () => (await timers(wanted))[0].left > 0);
  const [deadline] = await timers(wanted);
  assert.ok(deadline.left > 280 && deadline.left < 305, `the end of the gap: ${deadline.left}`);
  assert.deepEqual([(await recibo.get(limited)).state, (await recibo.get(wanted)).state], ['accepted', 'accepted']);
  assert.equal((await recibo.get(limited)).overdue, false);
  assert.equal((await recibo.deliver('p1', callbackBody(limited, 'e1'))).json.state, 'completed', 'what the provider sends again is in time');
  // Once that is over it runs out, and is not put off by the same outage again.
  await recibo.sql(`UPDATE recibo.downtimes SET began_at = began_at - interval '6 minutes', ended_at = ended_at - interval '6 minutes'`);
  await recibo.sql(`UPDATE recibo.timers SET set_at = set_at - interval '6 minutes', due_at = due_at - interval '6 minutes', was_due_at = was_due_at - interval '6 minutes'
                    WHERE operation = (SELECT id FROM recibo.operations WHERE request_id = $1)`, [wanted]);
  await inState(wanted, 'unknown');
});

test('a clock that was set back fires nothing twice, and nothing falsely', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'p2', deadline: inFuture(3_600_000) });
  await runOut(id, 'deadline');
  await inState(id, 'unknown');
  const before = (await recibo.sql('SELECT count(*)::int AS n FROM recibo.downtimes'))[0].n;
  // The sign of life seems to come from the future: the database's clock was an hour ahead.
  await recibo.sql(`UPDATE recibo.intake SET alive_at = now() + interval '1 hour'`);
  await until('a sign of life by the clock as it is now', async () => (await recibo.sql('SELECT alive_at <= now() AS fine FROM recibo.intake'))[0].fine);
  await sleep(1_500);
  assert.deepEqual((await moves(id)).filter((m) => m[1] === 'overdue').length, 1);
  assert.equal((await recibo.sql('SELECT count(*)::int AS n FROM recibo.downtimes'))[0].n, before);
});

test('what is due and what is overdue are gauges', async () => {
  const id = freshId();
  await recibo.accepted(id, { provider: 'desk', deadline: '2020-01-01T00:00:00Z' });
  await until('the gauges', async () => (await recibo.metric('recibo_oldest_age_seconds', { queue: 'overdue' })) > 1_000_000, { timeout: 25_000 });
  assert.ok((await recibo.metric('recibo_oldest_age_seconds', { queue: 'timers' })) < 60);
  assert.ok((await recibo.metrics()).some((s) => s.name === 'recibo_oldest_age_seconds' && s.labels.queue === 'operations:unknown'));
});

test('operations that were there before the clock get their timers with the migration', async () => {
  const old = await stage.fresh({ configure: (config) => Object.assign(config, { workflows: recibo.config.workflows, providers: recibo.config.providers }) });
  const [limited, wanted, own, ended] = [freshId(), freshId(), freshId(), freshId()];
  await old.accepted(limited);
  assert.equal((await old.event(limited, { event: 'submitted' })).status, 200);
  await old.accepted(wanted, { provider: 'desk', deadline: inFuture(3_600_000) });
  await old.accepted(own, { provider: 'p2' });
  await old.accepted(ended, { deadline: inFuture(3_600_000) });
  assert.equal((await old.deliver('p1', callbackBody(ended, 'e1'))).json.state, 'completed');
  await old.service.stop();
  for (const args of [['migrate', '--down-to', '19', '--yes'], ['migrate']]) {
    const done = await old.run(args);
    assert.equal(done.code, 0, done.stdout + done.stderr);
  }
  const rows = await old.sql('SELECT o.request_id, t.kind, t.event FROM recibo.timers t JOIN recibo.operations o ON o.id = t.operation');
  const of = (id) => rows.filter((r) => r.request_id === id).map((r) => [r.kind, r.event]);
  assert.deepEqual([of(limited), of(wanted), of(ended)], [[['limit', null]], [['deadline', 'overdue']], []]);
  assert.deepEqual(of(own), [['limit', null]], "the provider's own limits are not in the database");
  await old.sql(`UPDATE recibo.timers SET due_at = now() WHERE event IS NULL`);
  await old.serve();
  await until('the limit to be judged anew', async () => (await old.sql('SELECT count(*)::int AS n FROM recibo.timers WHERE event IS NULL'))[0].n === 0);
  assert.deepEqual([(await old.get(limited)).state, (await old.get(own)).state], ['processing', 'accepted'], 'an hour is not over, and none never is');
  await old.finish();
});

stage.ends();
