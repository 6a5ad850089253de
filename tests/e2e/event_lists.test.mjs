// A provider's own list of events, read page by page after an outage or on command (R44): what had arrived counts once, what had not is
// applied as if it had, and the report says how many operations that healed.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/cleanup.mjs';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';
import { StatusServer } from '../support/status_server.mjs';

const provider = await StatusServer.start();
const secret = 'test-secret-A';
const apiKey = 'list-key-that-no-log-may-hold';

// Lists by name; a page is what `pages` says of it.
const lists = new Map();
provider.answer = ({ url }) => {
  const at = new URL(url, provider.url);
  const pages = lists.get(at.pathname.slice(1)) ?? [];
  const cursor = at.searchParams.get('cursor') ?? at.searchParams.get('page');
  const index = cursor === null ? 0 : at.searchParams.has('page') ? Number(cursor) - 1 : Number(cursor.replace('c', ''));
  const page = pages[index];
  if (page === undefined) return { data: [] };
  if (!Array.isArray(page)) return page;
  return { data: page, next: index + 1 < pages.length ? `c${index + 1}` : null };
};
const asked = (name) => provider.asked.filter((one) => one.url.startsWith(`/${name}?`));

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    const list = (name, more = {}) => ({
      url: `${provider.url}/${name}?since={since}&limit=100`, bearer: apiKey, allow: ['127.0.0.0/8'], timeout: '2s', retry: { attempts: 3, first: '1s', max: '1s' },
      rate: { per_second: 100 }, next: { parameter: 'cursor', from: '/next' },
      extract: { each: '/data', request_id: '/request_id', idempotency_key: '/id', event: '/status', amount: '/amount', currency: '/currency' }, ...more,
    });
    config.providers.listed = { ...p1, catch_up: list('listed') };
    config.providers.numbered = { ...p1, catch_up: list('numbered', { since: 'unix_s', next: { parameter: 'page' } }) };
    config.providers.endless = { ...p1, catch_up: list('endless', { pages: 3 }) };
    config.providers.broken = { ...p1, catch_up: list('broken') };
    config.providers.slow = { ...p1, catch_up: list('slow') };
    config.providers.after = { ...p1, catch_up: list('after', { after_outage: 'instead' }), status: { url: `${provider.url}/one/{request_id}`, allow: ['127.0.0.0/8'] } };
    return config;
  },
});
const { recibo } = stage;

const event = (id, key, status = 'succeeded', more = {}) => ({ id: key, request_id: id, status, amount: '19.99', currency: 'EUR', ...more });
async function accepted(at) {
  const id = freshId();
  await recibo.accepted(id, { provider: at });
  return id;
}
const start = async (name, body = {}) => {
  const started = await recibo.api('POST', `/v1/providers/${name}/event-lists`, { body });
  assert.equal(started.status, 202, started.text);
  return started.json.event_list_id;
};
const done = (id) => until(`${id} is done`, async () => {
  const now = await recibo.api('GET', `/v1/event-lists/${id}`);
  assert.equal(now.status, 200, now.text);
  return now.json.done ? now.json : null;
}, { timeout: 60_000 });
// All attempts were in vain: it is tried again after an hour.
const postponed = (id, reason) => until(`${id} waits`, async () => {
  const now = (await recibo.api('GET', `/v1/event-lists/${id}`)).json;
  return now.reason === reason && Date.parse(now.next_attempt_at) > Date.now() + 3_000_000 ? now : null;
}, { timeout: 60_000 });
const numbers = ({ pages, events, healed, known, parked, review, failed }) => ({ pages, events, healed, known, parked, review, failed });

test('what never arrived is applied, what had is a duplicate, and the report tells them apart', async () => {
  const [missed, had, twice, foreign] = [await accepted('listed'), await accepted('listed'), await accepted('listed'), freshId()];
  assert.equal((await recibo.deliver('listed', callbackBody(had, 'e-had'), { secret })).json.disposition, 'applied');
  lists.set('listed', [
    [event(missed, 'e-missed'), event(had, 'e-had'), event(foreign, 'e-foreign')],
    [event(twice, 'e-first', 'processing'), event(twice, 'e-second'), { id: 'e-odd', request_id: missed, status: 'no-such-word' }],
    [event(missed, 'e-missed')],
  ]);
  const report = await done(await start('listed', { since: '2026-10-01T00:00:00Z' }));
  assert.deepEqual(numbers(report), { pages: 3, events: 7, healed: 3, known: 2, parked: 1, review: 0, failed: 1 }, JSON.stringify(report));
  assert.equal(report.reason, null);
  assert.deepEqual(asked('listed').map((one) => new URL(one.url, provider.url).searchParams.get('cursor')), [null, 'c1', 'c2']);
  assert.equal(new URL(asked('listed')[0].url, provider.url).searchParams.get('since'), '2026-10-01T00:00:00.000000Z');
  assert.equal(asked('listed')[0].headers.authorization, `Bearer ${apiKey}`);
  assert.equal((await recibo.get(missed)).state, 'completed');
  await recibo.expectCounts(missed, 1, 1, 0);
  await recibo.expectCounts(had, 1, 1, 0);
  await recibo.expectCounts(twice, 2, 2, 0);
  // What waited for its operation says how it came, too.
  await recibo.accepted(foreign, { provider: 'listed' });
  assert.equal((await recibo.get(foreign)).state, 'completed');
  const applied = (await recibo.timeline(foreign)).find((e) => e.kind === 'delivery');
  assert.equal(applied.look_up_id, report.event_list_id, JSON.stringify(applied));
  assert.equal((await recibo.audit(foreign)).code, 0);
  const [delivery] = await recibo.deliveries(missed);
  assert.deepEqual([delivery.disposition, delivery.peer, delivery.secret], ['applied', '127.0.0.1', '']);
  assert.equal((await recibo.api('GET', `/v1/deliveries/${delivery.id}`)).json.look_up_id, report.event_list_id, 'it says how it came');
  // The callback after all, and once more the list.
  const late = await recibo.deliver('listed', callbackBody(missed, 'e-missed'), { secret });
  assert.deepEqual([late.status, late.replayed], [200, true], 'it says what is on record');
  const again = await done(await start('listed'));
  assert.deepEqual([again.healed, again.known, again.review], [0, 6, 0], JSON.stringify(again));
  await recibo.expectCounts(twice, 2, 2, 0);
});

test('pages that are numbered are counted up until one is empty; since as its provider writes it', async () => {
  const ids = [await accepted('numbered'), await accepted('numbered')];
  lists.set('numbered', ids.map((id, i) => [event(id, `n-${i}`)]));
  const report = await done(await start('numbered', { since: '2026-10-01T00:00:00Z' }));
  assert.deepEqual([report.pages, report.healed], [3, 2], JSON.stringify(report));
  assert.deepEqual(asked('numbered').map((one) => new URL(one.url, provider.url).searchParams.get('page')), [null, '2', '3']);
  assert.equal(new URL(asked('numbered')[0].url, provider.url).searchParams.get('since'), String(Date.parse('2026-10-01T00:00:00Z') / 1000));
});

test('a list that would never end is given up, with what was read on record', async () => {
  const id = await accepted('endless');
  lists.set('endless', [[event(id, 'x-1')], [], [], [], []]);
  const report = await done(await start('endless'));
  assert.deepEqual([report.reason, report.pages, report.healed], ['too_many_pages', 3, 1], JSON.stringify(report));
});

test('a page whose cursor leads nowhere is on record all the same', async () => {
  const [itself, ended, odd] = [await accepted('listed'), await accepted('listed'), await accepted('broken')];
  lists.set('listed', [{ data: [], next: 'c1' }, { data: [event(itself, 'i-1')], next: 'c1' }]);
  const same = await done(await start('listed'));
  assert.deepEqual([same.reason, same.pages, same.healed], ['cursor_repeated', 2, 1], JSON.stringify(same));
  lists.set('listed', [{ data: [event(ended, 'i-2')], next: false }]);
  const last = await done(await start('listed'));
  assert.deepEqual([last.reason, last.pages, last.healed], [null, 1, 1], JSON.stringify(last));
  for (const id of [itself, ended]) assert.equal((await recibo.get(id)).state, 'completed');
  // Nobody knows what is behind it, so that it is asked for again.
  lists.set('broken', [{ data: [event(odd, 'i-3')], next: { page: 2 } }]);
  const before = asked('broken').length;
  const started = await start('broken');
  const waits = await postponed(started, 'answer_malformed');
  assert.deepEqual([waits.pages, waits.events, waits.healed, waits.known], [0, 0, 1, 0], JSON.stringify(waits));
  assert.equal(asked('broken').length - before, 3);
  assert.equal((await recibo.get(odd)).state, 'completed');
  await recibo.expectCounts(odd, 1, 1, 0);
  assert.equal(await recibo.metric('recibo_event_lists_total', { provider: 'broken', result: 'later' }), 1);
  lists.set('broken', [[event(odd, 'i-3')]]);
  const mended = await done(await start('broken'));
  assert.deepEqual([mended.pages, mended.events, mended.known], [1, 1, 1], JSON.stringify(mended));
});

test('what is no list, or no answer, is asked for again, and once more after a while; what is refused is given up', async () => {
  for (const [answer, reason] of [[{ status: 500, body: '' }, 'server_error'], [{ status: 200, body: '<html>' }, 'no_list'], [{ status: 400, body: '{}' }, 'refused'], [{ items: [] }, 'no_list']]) {
    lists.set('broken', [answer]);
    const before = asked('broken').length;
    const started = await start('broken');
    const report = reason === 'refused' ? await done(started) : await postponed(started, reason);
    assert.deepEqual([report.reason, report.pages, report.events], [reason, 0, 0], JSON.stringify(report));
    assert.equal(asked('broken').length - before, reason === 'refused' ? 1 : 3, 'wanted anew, it has all its attempts');
  }
  assert.equal(await recibo.metric('recibo_event_lists_total', { provider: 'broken', result: 'later' }), 4);
  assert.equal(await recibo.metric('recibo_event_lists_total', { provider: 'broken', result: 'failed' }), 1);
  await until('it is seen', async () => (await recibo.metric('recibo_oldest_age_seconds', { queue: 'event_list:broken' })) > 0, { timeout: 40_000 });
  const missed = await accepted('broken');
  const late = (await start('broken'));
  await postponed(late, 'no_list');
  lists.set('broken', [[event(missed, 'b-0')]]);
  await recibo.sql('UPDATE recibo.event_lists SET next_attempt_at = now() WHERE id = $1', [late]);
  const healed = await done(late);
  assert.deepEqual([healed.reason, healed.healed, healed.next_attempt_at], [null, 1, null]);
  const id = await accepted('broken');
  lists.set('broken', [{ status: 429, headers: { 'retry-after': '1' } }]);
  const started = await start('broken');
  await until('it was asked', async () => (await recibo.api('GET', `/v1/event-lists/${started}`)).json.reason === 'over_rate');
  lists.set('broken', [[event(id, 'b-1')]]);
  const report = await done(started);
  assert.deepEqual([report.reason, report.healed], [null, 1]);
});

test('killed while a page is read: another goes on from a clean place, and nothing counts twice', async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, () => accepted('slow')));
  const page = (from) => ids.slice(from, from + 10).map((id, i) => event(id, `s-${from + i}`));
  lists.set('slow', [0, 10, 20, 30].map((from) => ({ status: 200, headers: { 'content-type': 'application/json' }, after: 400,
    body: JSON.stringify({ data: page(from), next: from < 30 ? `c${from / 10 + 1}` : null }) })));
  const started = await start('slow');
  for (let kills = 0; kills < 3; kills += 1) {
    const before = asked('slow').length;
    await until('the next page is being read', async () => asked('slow').length > before);
    await recibo.restart('kill');
    await recibo.sql("UPDATE recibo.event_lists SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL");
  }
  const report = await done(started);
  assert.deepEqual([report.reason, report.pages, report.events, report.healed], [null, 4, 40, 40], JSON.stringify(report));
  for (const id of ids) await recibo.expectCounts(id, 1, 1, 0);
});

test('a page that takes every reader with it is given up', async () => {
  lists.set('slow', [{ status: 200, after: Infinity }]);
  const started = await start('slow');
  await until('it is being read', async () => (await recibo.sql('SELECT lease_until FROM recibo.event_lists WHERE id = $1', [started]))[0].lease_until !== null);
  // As if each of them had been lost with it.
  await recibo.restart('kill');
  await recibo.sql("UPDATE recibo.event_lists SET attempts = 6, lease_until = now() - interval '1 second' WHERE id = $1", [started]);
  const report = await done(started);
  assert.deepEqual([report.reason, report.pages], ['lost_attempts', 0], JSON.stringify(report));
});

test('an event list that is wanted from earlier on begins anew, also under a page in hand', async () => {
  const id = await accepted('slow');
  lists.set('slow', [{ status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ data: [event(id, 'w-1')], next: null }), after: 800 }]);
  const first = await start('slow', { since: '2026-10-02T00:00:00Z' });
  const before = asked('slow').length;
  await until('a page is in hand', async () => asked('slow').length > before);
  assert.equal(await start('slow', { since: '2026-10-01T00:00:00Z' }), first, 'one at a time');
  const report = await done(first);
  assert.deepEqual([report.since, report.events >= 1, report.healed], ['2026-10-01T00:00:00.000000Z', true, 1], JSON.stringify(report));
  assert.ok(asked('slow').some((one) => one.url.includes(encodeURIComponent('2026-10-01T00:00:00.000000Z'))));
  await recibo.expectCounts(id, 1, 1, 0);
});

test('what a list moved counts as healed once, when it begins anew under a later page in hand', async () => {
  const ids = [await accepted('slow'), await accepted('slow'), await accepted('slow')];
  const last = { data: [event(ids[2], `again-${ids[2]}`)], next: null };
  lists.set('slow', [
    [event(ids[0], `again-${ids[0]}`), event(ids[1], `again-${ids[1]}`)],
    { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(last), after: 800 },
  ]);
  const before = asked('slow').length;
  const first = await start('slow', { since: '2026-10-02T00:00:00Z' });
  await until('the second page is in hand', async () => asked('slow').slice(before).some((one) => one.url.includes('cursor=c1')));
  assert.equal(await start('slow', { since: '2026-10-01T00:00:00Z' }), first);
  const report = await done(first);
  assert.deepEqual([report.since, report.healed], ['2026-10-01T00:00:00.000000Z', 3], JSON.stringify(report));
  assert.deepEqual(await recibo.sql('SELECT 1 FROM recibo.event_list_healed'), [], 'what was kept for that is gone');
});

test('a reading that no configuration goes on with is ended, once nobody has read for a while', async () => {
  const [{ id }] = await recibo.sql(`INSERT INTO recibo.event_lists (id, provider, started_at, started_by, since)
    VALUES (gen_random_uuid(), 'p2', now() - interval '11 minutes', 'ops', now() - interval '1 day') RETURNING id`);
  await until('it is ended', async () => (await recibo.sql('SELECT 1 FROM recibo.event_lists WHERE id = $1 AND ended_at IS NOT NULL', [id])).length === 1, { timeout: 90_000 });
  const [{ reason }] = await recibo.sql('SELECT reason FROM recibo.event_lists WHERE id = $1', [id]);
  assert.equal(reason, 'no_list');
});

test('two replicas read each page once, and the command waits for the end', async () => {
  const first = recibo.service;
  await recibo.serve();
  const ids = await Promise.all(Array.from({ length: 6 }, () => accepted('listed')));
  lists.set('listed', ids.map((id, i) => [event(id, `two-${i}-${id}`)]));
  const before = asked('listed').length;
  const command = await recibo.run(['look-up', 'listed', '--list', '--since', '2026-10-01T00:00:00Z', '--wait', '60'], { timeout: 90_000 });
  assert.equal(command.code, 0, command.stdout + command.stderr);
  assert.match(command.stdout, /6 events in 6 pages\n {2}6 healed, 0 known/);
  assert.equal(asked('listed').length - before, 6);
  assert.equal((await recibo.run(['look-up', 'p2', '--list'])).code, 2);
  assert.equal((await recibo.run(['look-up', 'listed', '--list', '--accepted-after', '2026-10-01T00:00:00Z'])).code, 2);
  assert.equal((await recibo.api('POST', '/v1/providers/p2/event-lists', { body: {} })).json.code, 'no_list');
  assert.equal((await recibo.api('POST', '/v1/providers/nobody/event-lists', { body: {} })).status, 404);
  assert.equal((await recibo.api('POST', '/v1/providers/listed/event-lists', { token: 'viewer', body: {} })).status, 403);
  await first.stop();
});

test('after an outage the list is read without anybody\'s help, from before it', async () => {
  const id = await accepted('after');
  lists.set('after', [[event(id, 'a-1')]]);
  const before = Date.now();
  await recibo.sql("UPDATE recibo.intake SET alive_at = now() - interval '3 minutes'");
  await until('it is healed', async () => (await recibo.get(id)).state === 'completed', { timeout: 60_000 });
  await recibo.expectCounts(id, 1, 1, 0);
  const since = Date.parse(new URL(asked('after')[0].url, provider.url).searchParams.get('since'));
  assert.ok(since < before - 3 * 60_000 && since > before - 2 * 3_600_000, new Date(since).toISOString());
  const [row] = await recibo.sql("SELECT count(*)::int AS n FROM recibo.catch_ups WHERE provider = 'after'");
  assert.equal(row.n, 0, 'instead of asking about every operation');
});

test('check refuses what could not be read', async () => {
  const refused = [
    [{ extract: { request_id: '/id', idempotency_key: '/id', event: '/status' } }, /each is required/],
    [{ extract: { each: '/data', request_id: '/id', event: '/status' } }, /idempotency_key is required/],
    [{ extract: { each: '/data', request_id: '/id', idempotency_key: { header: 'X-Id' }, event: '/status' } }, /an answer has no query and no form|each event of a list has its own/],
    [{ url: 'https://169.254.169.254/events' }, /never asked/],
    [{ url: `${provider.url}/events?of={reference}` }, /may hold \{since\}/],
    [{ next: { parameter: 'a&b' } }, /letters, digits/],
    [{ next: { parameter: 'page', from: '/next', first: 0 } }, /numbered or named/],
    [{ next: { from: '/next' } }, /parameter/],
  ];
  for (const [change, message] of refused) {
    const config = structuredClone(recibo.config);
    Object.assign(config.providers.listed.catch_up, change);
    const checked = await recibo.run(['check', '--config', recibo.write(config, join(recibo.folder, 'changed.yaml'))]);
    assert.equal(checked.code, 2, checked.stdout + checked.stderr);
    assert.match(checked.stdout + checked.stderr, message);
  }
  const lines = recibo.services.flatMap((s) => s.lines.map((l) => l.text)).join('\n');
  assert.ok(!lines.includes(apiKey));
  const shown = (await recibo.api('GET', '/v1/config', { token: 'root' })).text;
  assert.ok(shown.includes('catch_up') && !shown.includes(apiKey));
});

stage.ends();
