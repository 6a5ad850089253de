// Foreign text is data in logs and metrics, and secrets never appear.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freshId } from '../support/random.mjs';
import { RawConnection, exchange, requestBytes } from '../support/raw.mjs';
import { Stage, callbackBody, isSendAgain, secrets } from '../support/recibo.mjs';

const stage = await Stage.begin();
const { recibo } = stage;

const hostile = [
  ['authorization', 'Bearer SECRET-ZZZ'],
  ['Cookie', 'sid=SECRET-YYY'],
  ['User-Agent', 'evil\x1b[31m'],
];

test('S40 what reaches the logs and the metrics', async () => {
  const series = (await recibo.metrics()).length;
  // A JSON-escaped line break and what looks like a record of ours.
  const body = JSON.stringify({ request_id: 'x\n{"level":"info","msg":"forged"}', event_id: 'evt-40', status: 'succeeded' });
  // A bare ESC in a header is a broken request; a tester that insists gets 400, and none of it in a log.
  const broken = await exchange(recibo.service.callbacks, { ...recibo.request('p1', body, { secret: 'wrong-secret' }), headers: [...recibo.request('p1', body, { secret: 'wrong-secret' }).headers, ...hostile] });
  assert.ok(broken.status === 401 || broken.status === 400, String(broken.status));
  const tame = hostile.slice(0, 2);
  const wrong = await recibo.callback('p1', body, { secret: 'test-secret-wrong', headers: tame });
  assert.equal(wrong.status, 401);
  const right = await recibo.callback('p1', body, { headers: tame });
  assert.ok(right.status === 422 || right.status === 202, right.text);
  const failed = await recibo.list('/v1/failed-callbacks');
  assert.equal(JSON.stringify(failed).includes('SECRET'), false);

  const connections = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(recibo.service.callbacks)));
  await Promise.all(
    connections.map(async (connection, c) => {
      for (let batch = 0; batch < 20; ++batch) {
        const requests = Array.from({ length: 50 }, (_, i) => requestBytes({ target: `/unknown/${c}-${batch}-${i}`, headers: [['X-Signature', `sha256=${'ab'.repeat(32)}`]], body: '{}' }));
        connection.write(Buffer.concat(requests));
        for (let i = 0; i < 50; ++i) {
          const answer = await connection.response();
          if (i === 0) recibo.exchanges.add('callbacks', 'POST', '/unknown/x', answer);
          assert.equal(answer.status, 404);
        }
      }
      connection.destroy();
    }),
  );
  const text = (await exchange(recibo.service.api, { method: 'GET', target: '/metrics' })).text;
  const grown = (await recibo.metrics()).length - series;
  assert.ok(grown <= 20, `metric series grew by ${grown}`);
  for (const word of ['SECRET', 'forged', '/unknown/', ...Object.values(secrets)]) assert.equal(text.includes(word), false, `${word} in the metrics`);

  const { lines } = recibo.service;
  assert.deepEqual(recibo.logComplaints(['SECRET-ZZZ', 'SECRET-YYY', 'ab'.repeat(32), 'test-secret-wrong']), []);
  assert.equal(lines.filter(({ record }) => record?.msg === 'forged').length, 0);
  assert.ok(lines.length < 2_000, `ten thousand unknown paths made ${lines.length} log lines`);
});

test('answers say nothing of the inside', async () => {
  const id = freshId();
  await recibo.accepted(id);
  const answers = [
    await recibo.callback('p1', '{"a":', {}),
    await recibo.callback('p1', callbackBody(id, '1', 'succeeded', { amount: '77.77', secret_note: 'PAYLOAD-WORD' })),
    await recibo.callback('p1', callbackBody(id, '\u0000')),
    await recibo.api('POST', '/v1/operations', { token: 'checkout', body: { provider: "p1'; DROP TABLE operations; --" } }),
    await recibo.api('GET', "/v1/operations?state=';--"),
    await recibo.api('GET', '/v1/operations/%27%3B--'),
    await recibo.api('GET', '/v1/deliveries/%00'),
    await recibo.api('GET', '/v1/operations/%zz'),
  ];
  for (const answer of answers) {
    assert.ok(answer.status < 500 || isSendAgain(answer), answer.text);
    assert.doesNotMatch(answer.text, /SELECT|INSERT|relation|pg_|psql|libpq|\/tmp\/|\/src\/|\.cpp|PAYLOAD-WORD|77\.77/i, answer.text);
  }
});

test('headers of answers give no more than they must, and set no cookie', async () => {
  const answers = [await recibo.callback('p1', '{}'), await recibo.api('GET', '/v1/operations'), await recibo.live()];
  for (const answer of answers) {
    assert.equal(answer.header('Set-Cookie'), undefined);
    assert.equal(answer.header('X-Powered-By'), undefined);
    assert.doesNotMatch(answer.header('Server') ?? '', /boost|beast|\d/i);
  }
  assert.equal(answers[1].header('Cache-Control'), 'no-store', 'API answers are nobody\'s to keep');
});

test('a token in the query is no token', async () => {
  const answer = await recibo.api('GET', `/v1/operations?access_token=${recibo.tokens.ops}`, { token: null });
  assert.equal(answer.status, 401);
});

stage.ends();
