// Why a provider gets 401: the same for everybody outside, precise inside, and of bounded cost whoever sends how much.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { RawConnection, requestBytes } from '../support/raw.mjs';
import { Stage, callbackBody, memoryLimit, secrets } from '../support/recibo.mjs';
import { hmac, nowSeconds } from '../support/sign.mjs';

const stage = await Stage.begin();
const { recibo } = stage;

const latest = (provider, token = 'viewer') => recibo.list(`/v1/providers/${provider}/refusals`, { token });

test('the causes of refusals are told to those who run it, and to nobody outside', async () => {
  const id = freshId();
  const body = callbackBody(id, '1');
  const stamp = String(nowSeconds());
  const sign = (what, secret = secrets.p1, at = stamp) => `sha256=${hmac('sha256', secret, [`${at}.`, what], 'hex')}`;
  const old = String(nowSeconds() - 600);
  const cases = [
    // provider, body, headers, reason, cause
    ['p1', `${body}\n`, [['X-Timestamp', stamp], ['X-Signature', sign(body)]], 'signature_mismatch', 'body_changed'],
    ['strict', body, [['X-Timestamp', stamp], ['X-Signature', sign(body, `${secrets.strict}\n`)]], 'signature_mismatch', 'secret_form'],
    ['desk', body, [['X-Timestamp', stamp], ['X-Signature', sign(body, secrets.p2)]], 'signature_mismatch', 'other_provider'],
    ['p2', body, [['X-Timestamp', old], ['X-Signature', sign(body, secrets.p2, old)]], 'timestamp_stale', 'too_old'],
    ['milliseconds', body, [['X-Timestamp', stamp], ['X-Signature', sign(body, secrets.milliseconds)]], 'timestamp_stale', 'timestamp_form'],
    ['github', body, [], 'signature_missing', 'header_missing'],
    ['slack', body, [['X-Slack-Request-Timestamp', stamp], ['X-Slack-Signature', 'v0=00']], 'signature_mismatch', 'secret_of_nobody'],
    ['stripe', body, [['Stripe-Signature', `t=${stamp},v1=${hmac('sha256', 'whsec_of_somebody_else', [`${stamp}.`, body], 'hex')}`]], 'signature_mismatch', 'secret_of_nobody'],
  ];
  const seen = new Set();
  for (const [provider, sent, headers, reason, cause] of cases) {
    const answer = await recibo.raw({ target: `/callbacks/${provider}`, headers: [['Content-Type', 'application/json'], ...headers], body: sent });
    assert.equal(answer.status, 401, provider);
    const problem = answer.json;
    delete problem.trace_id;
    seen.add(JSON.stringify(problem));
    const [entry] = await latest(provider);
    assert.deepEqual([entry.reason, entry.count], [reason, 1], provider);
    assert.equal(entry.cause, cause, entry.explanation);
    assert.doesNotMatch(JSON.stringify(entry), /test-secret|req-1001|sha256=/, 'no secret and nothing of the request');
    // The looks are rationed; this test asks slowly enough for each of them.
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.equal(seen.size, 1, 'from outside every refusal is the same');
  assert.match((await latest('p1'))[0].explanation, /line feed at the end of the body removed/);
  assert.equal((await latest('p1'))[0].secret, 'secret-1');
});

for (const number of [5, 50]) {
  test(`a wrong secret, the commonest cause, is told with ${number} providers`, async () => {
    const names = ['p1', 'github', 'stripe', 'standard', 'slack'];
    const whole = structuredClone(recibo.config);
    const providers = Object.fromEntries(names.map((name) => [name, whole.providers[name]]));
    for (let i = names.length; i < number; ++i) {
      const like = structuredClone(whole.providers[names[i % names.length]]);
      like.verify.secrets = [names[i % names.length] === 'standard' ? `whsec_${Buffer.from(`secret of 32 bytes, number ${10_000 + i}`).toString('base64')}` : `test-secret-of-provider-${i}`];
      providers[`extra-${i}`] = like;
    }
    recibo.write({ ...whole, providers });
    assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
    for (const size of [0, 4_000]) {
      // The looks are rationed: one every two seconds for each provider in the long run.
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      const body = callbackBody(freshId(), '1', 'succeeded', { text: 'x'.repeat(size) });
      const stamp = String(nowSeconds());
      const signature = hmac('sha256', 'whsec_that_nobody_here_knows', [`${stamp}.`, body], 'hex');
      const answer = await recibo.raw({ target: '/callbacks/stripe', headers: [['Content-Type', 'application/json'], ['User-Agent', 'Stripe/1.0 (+https://stripe.com/docs/webhooks)'], ['Stripe-Signature', `t=${stamp},v1=${signature}`]], body });
      assert.equal(answer.status, 401);
      const [entry] = await latest('stripe');
      assert.deepEqual([entry.reason, entry.cause], ['signature_mismatch', 'secret_of_nobody'], entry.explanation);
    }
    recibo.write(whole);
    assert.equal((await recibo.api('POST', '/v1/config/reload', { token: 'root' })).status, 200);
  });
}

test('who may read them', async () => {
  assert.equal((await recibo.api('GET', '/v1/providers/p1/refusals', { token: 'ops' })).status, 200);
  assert.equal((await recibo.api('GET', '/v1/providers/p1/refusals', { token: 'helpdesk' })).status, 403);
  assert.equal((await recibo.api('GET', '/v1/providers/p1/refusals', { token: 'checkout' })).status, 403);
  assert.equal((await recibo.api('GET', '/v1/providers/p1/refusals', { token: null })).status, 401);
  assert.equal((await recibo.api('GET', '/v1/providers/nope/refusals')).status, 404);
  assert.deepEqual((await recibo.api('GET', '/v1/providers/p3/refusals')).json, { data: [], next_cursor: null });
});

test('ten thousand bad requests leave a count and nothing else', async () => {
  const everything = await recibo.everything();
  const series = (await recibo.metrics()).length;
  const before = await recibo.metric('recibo_signature_failures_total', { provider: 'p1' });
  const kinds = [
    () => [],
    (i) => [['X-Timestamp', String(nowSeconds())], ['X-Signature', `sha256=${i.toString(16).padStart(64, '0')}`]],
    (i) => [['X-Timestamp', String(i)], ['X-Signature', `sha256=${'ab'.repeat(32)}`]],
    (i) => [['X-Timestamp', `x${i}`], ['X-Signature', `v${i}=ab`], [`X-Strange-${i}`, 'a'.repeat(40)]],
  ];
  const connections = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(recibo.service.callbacks)));
  await Promise.all(
    connections.map(async (connection, c) => {
      for (let batch = 0; batch < 20; ++batch) {
        const requests = Array.from({ length: 50 }, (_, i) => requestBytes({ target: '/callbacks/p1', headers: kinds[i % 4](c * 1000 + batch * 50 + i), body: callbackBody(`req-${c}-${batch}-${i}`, 'x') }));
        connection.write(Buffer.concat(requests));
        for (let i = 0; i < 50; ++i) {
          const answer = await connection.response();
          assert.equal(answer.status, 401);
          if (i === 0) recibo.exchanges.add('callbacks', 'POST', '/callbacks/p1', answer);
        }
      }
      connection.destroy();
    }),
  );
  assert.equal((await recibo.metric('recibo_signature_failures_total', { provider: 'p1' })) - before, 10_000, 'each is counted');
  assert.deepEqual(await recibo.everything(), everything, 'no row');
  assert.equal((await recibo.metrics()).length, series, 'no metric series');
  const kept = await latest('p1');
  assert.ok(kept.length <= 20, 'a bounded memory');
  assert.ok(kept.reduce((sum, entry) => sum + entry.count, 0) >= 10_000, 'which counts all of them');
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${recibo.service.pid}/status`, 'utf8'))[1]);
  assert.ok(rss < memoryLimit(256), `${rss} KiB`);
  const id = freshId();
  await recibo.accepted(id);
  assert.equal((await recibo.callback('p1', callbackBody(id, '1'))).status, 200, 'and the provider is not shut out');
});

test('recibo verify tells the same about a captured request, as text and as JSON', async () => {
  const body = callbackBody(freshId(), '1');
  const { headers } = recibo.request('p1', body);
  const head = `POST /callbacks/p1 HTTP/1.1\r\n${headers.map(([n, v]) => `${n}: ${v}\r\n`).join('')}`;
  const put = (name, text) => {
    const file = join(recibo.folder, name);
    writeFileSync(file, text);
    return file;
  };
  const verify = (...args) => recibo.run(['verify', ...args]);
  const good = await verify('p1', '--request', put('good.http', `${head}\r\n${body}`));
  assert.equal(good.code, 0, good.stdout + good.stderr);
  assert.match(good.stdout, /verifies, by the secret secret-1/);
  const bad = await verify('p1', '--request', put('bad.http', `${head}\r\n${body}\n`), '--json');
  assert.equal(bad.code, 1);
  const told = JSON.parse(bad.stdout);
  assert.deepEqual([told.verifies, told.reason, told.cause, told.secret], [false, 'signature_mismatch', 'body_changed', 'secret-1']);
  assert.match(told.signed.shown, /\\n$/);
  const apart = await verify('p1', '--headers', put('head.txt', headers.map(([n, v]) => `${n}: ${v}\n`).join('')), '--body', put('body.json', body));
  assert.equal(apart.code, 0, apart.stdout + apart.stderr);
  for (const { stdout } of [good, bad, apart]) assert.equal(stdout.includes(secrets.p1), false, 'no secret');
  assert.equal((await verify('p1', '--request', put('none.http', 'nothing'))).code, 2);
  assert.equal((await verify('nope', '--request', join(recibo.folder, 'good.http'))).code, 2);
});

stage.ends();
