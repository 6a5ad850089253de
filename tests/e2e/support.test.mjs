// The tests' own tools, where they hold logic: a tool that lies would make every other test lie.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, test } from 'node:test';
import pg from 'pg';
import { hmacTable, bodyOf, cutBody, escapeBodies } from '../support/bodies.mjs';
import { isRunning, sleep, until } from '../support/cleanup.mjs';
import { Cluster, clusterPort, isSocket, socketFile } from '../support/cluster.mjs';
import { Contract } from '../support/exchanges.mjs';
import { FaultProxy, FrontendWatcher, MessageSplitter } from '../support/fault_proxy.mjs';
import { Ledger } from '../support/ledger.mjs';
import { Random, freshId } from '../support/random.mjs';
import { RawConnection, chunked, exchange, requestBytes } from '../support/raw.mjs';
import { parseMetrics } from '../support/recibo.mjs';
import { hmac, sign } from '../support/sign.mjs';

const cluster = await Cluster.start();
after(() => cluster.destroy());

test('the signer computes the HMACs of the table', () => {
  for (const row of hmacTable) {
    const body = bodyOf(row);
    assert.equal(Buffer.byteLength(body), row.bytes, row.name);
    assert.equal(hmac('sha256', row.key, [body], 'hex'), row.hex, row.name);
  }
  assert.equal(Buffer.byteLength(cutBody.body), cutBody.bytes);
  assert.equal(hmac('sha256', 'test-secret-A', [cutBody.body], 'hex'), cutBody.hex);
  for (const { body, hex } of escapeBodies) assert.equal(hmac('sha256', 'test-secret-A', [body], 'hex'), hex);
});

test('the signer writes the headers of each scheme', () => {
  const stamped = hmacTable.find((row) => row.prefix);
  const generic = {
    scheme: 'hmac', algorithm: 'sha256', signature: { header: 'X-Signature', prefix: 'sha256=', encoding: 'hex' },
    signed: '{timestamp}.{body}', timestamp: { header: 'X-Timestamp', unit: 'seconds' },
  };
  assert.deepEqual(sign(generic, { secret: 'test-secret-A', body: bodyOf({}), stamp: '1790848800' }), [
    ['X-Timestamp', '1790848800'],
    ['X-Signature', `sha256=${stamped.hex}`],
  ]);
  // The example of the Standard Webhooks specification.
  assert.deepEqual(
    sign('standard-webhooks', { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', body: '{"test": 2432232314}', id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', stamp: '1614265330' }),
    [['webhook-id', 'msg_p5jXN8AQM9LWM0D4loKWxJek'], ['webhook-timestamp', '1614265330'], ['webhook-signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=']],
  );
  // The example of GitHub's documentation on validating deliveries.
  assert.equal(
    sign('github', { secret: "It's a Secret to Everybody", body: 'Hello, World!' })[1][1],
    'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  );
  // The example of Slack's documentation on verifying requests.
  assert.equal(
    sign('slack', {
      secret: '8f742231b10e8888abcd99yyyzzz85a5', stamp: '1531420618',
      body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    })[1][1],
    'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  );
  assert.match(sign('stripe', { secret: 'whsec_x', body: '{}', stamp: '12' })[0][1], /^t=12,v1=[0-9a-f]{64}$/);
});

test('randomness is replayed by its seed, and identifiers do not repeat', () => {
  const draw = (start) => {
    const random = new Random(start);
    return [random.int(1000), random.hex(8), random.shuffle([1, 2, 3, 4, 5, 6, 7, 8])];
  };
  assert.deepEqual(draw(7), draw(7));
  assert.notDeepEqual(draw(7), draw(8));
  assert.deepEqual([...draw(9)[2]].sort(), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal(new Set(Array.from({ length: 1000 }, () => freshId())).size, 1000);
  assert.equal(freshId('req', 8).length, 8);
});

// Answers each connection with the given bytes, in pieces.
async function peer(pieces) {
  const server = createServer(async (socket) => {
    socket.on('error', () => {});
    for (const piece of pieces) {
      socket.write(piece);
      await sleep(5);
    }
    socket.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

test('the raw client reads answers strictly', async () => {
  const ask = async (...pieces) => {
    const server = await peer(pieces);
    try {
      return await exchange(server.address().port, { target: '/' }, { timeout: 2_000 });
    } finally {
      server.close();
    }
  };
  const good = await ask('HTTP/1.1 200 OK\r\nContent-Le', 'ngth: 5\r\nX-A: \t b \r\n\r\nhe', 'llo');
  assert.deepEqual([good.status, good.text, good.header('x-a')], [200, 'hello', 'b']);
  const pieces = await ask('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r', '\nde\r\n0\r\n\r\n');
  assert.equal(pieces.text, 'abcde');
  const late = await ask('HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 204 No Content\r\n\r\n');
  assert.equal(late.status, 204);
  const bad = {
    'no length': 'HTTP/1.1 200 OK\r\n\r\n',
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na',
    'two framings': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'a short body': 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc',
    'a bare line feed': 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n',
    'another version': 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n',
    'a blank in a name': 'HTTP/1.1 200 OK\r\nContent Length: 0\r\n\r\n',
  };
  for (const [name, text] of Object.entries(bad)) await assert.rejects(ask(text), undefined, name);
  const twice = await ask('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nRetry-After: 1\r\nRetry-After: 2\r\n\r\n');
  assert.throws(() => twice.header('Retry-After'));
});

test('the raw client sends exactly what it is told', () => {
  assert.equal(requestBytes({ target: '/a', body: 'xy' }).toString(), 'POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\nxy');
  assert.equal(requestBytes({ method: 'GET', target: '/a', headers: [['host', 'h']] }).toString(), 'GET /a HTTP/1.1\r\nhost: h\r\n\r\n');
  assert.equal(requestBytes({ target: '/a', headers: [['Content-Length', '9']], body: '' }).toString(), 'POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n');
  assert.equal(chunked([Buffer.from('abc'), Buffer.from('0123456789abcdef0')]).toString(), '3\r\nabc\r\n11\r\n0123456789abcdef0\r\n0\r\n\r\n');
});

test('the raw client sees a connection being closed', async () => {
  const server = await peer([]);
  const connection = await RawConnection.open(server.address().port);
  await connection.untilClosed(2_000);
  assert.equal(connection.isClosed, true);
  server.close();
});

test('metrics are read with their labels', () => {
  const read = parseMetrics('# HELP a b\n# TYPE a counter\na{y="1",x="q\\"r"} 2\nb 0.5\nc_bucket{le="+Inf"} 7\n');
  assert.deepEqual(read, [
    { name: 'a', labels: { x: 'q\\"r', y: '1' }, value: 2 },
    { name: 'b', labels: {}, value: 0.5 },
    { name: 'c_bucket', labels: { le: '+Inf' }, value: 7 },
  ]);
  assert.throws(() => parseMetrics('not a metric'));
});

test('the contract finds what is not as documented', () => {
  const problem = { type: 'about:blank', title: 'Not found', status: 404, detail: 'none', code: 'not_found', retryable: false };
  const document = {
    openapi: '3.1.0',
    paths: {
      '/v1/things/{id}': {
        get: {
          responses: {
            200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/thing' } } } },
            404: { $ref: '#/components/responses/problem' },
          },
        },
      },
      '/v1/things/all': { get: { responses: { 200: { content: { 'application/json': { schema: { type: 'array' } } } } } } },
    },
    components: {
      schemas: { thing: { type: 'object', required: ['id'], properties: { id: { type: 'string' } }, additionalProperties: false } },
      responses: { problem: { content: { 'application/problem+json': { schema: { type: 'object', required: ['code'] } } } } },
    },
  };
  const contract = new Contract(document);
  const say = (target, status, type, body, headers = []) =>
    contract.complaints({ method: 'GET', target, status, headers: [['Content-Type', type], ...headers], body: Buffer.from(JSON.stringify(body)) });
  assert.deepEqual(say('/v1/things/7?x=1', 200, 'application/json', { id: '7' }), []);
  assert.deepEqual(say('/v1/things/all', 200, 'application/json', []), []);
  assert.deepEqual(say('/v1/things/7', 404, 'application/problem+json', problem), []);
  assert.deepEqual(contract.compileAll(), []);
  const wrong = [
    ['/v1/things/7', 200, 'application/json', { id: 7 }],
    ['/v1/things/7', 200, 'application/json', { id: '7', more: 1 }],
    ['/v1/things/7', 200, 'text/plain', { id: '7' }],
    ['/v1/things/7', 201, 'application/json', { id: '7' }],
    ['/v1/nothing', 200, 'application/json', {}],
    ['/v1/things/7', 404, 'application/json', problem],
    ['/v1/things/7', 404, 'application/problem+json', { ...problem, status: 400 }],
    ['/v1/things/7', 404, 'application/problem+json', { ...problem, retryable: true }],
    ['/v1/things/7', 500, 'application/problem+json', { ...problem, status: 500 }],
  ];
  for (const one of wrong) assert.notDeepEqual(say(...one), [], JSON.stringify(one));
  const busy = { ...problem, status: 503, code: 'database_away', retryable: true };
  document.paths['/v1/things/{id}'].get.responses['503'] = document.paths['/v1/things/{id}'].get.responses['404'];
  assert.deepEqual(say('/v1/things/7', 503, 'application/problem+json', busy, [['Retry-After', '2']]), []);
  assert.notDeepEqual(say('/v1/things/7', 503, 'application/problem+json', busy), [], 'a 503 says when to come again');
});

test('the ledger counts by event ID, verifies, and answers as told', async () => {
  const secret = `whsec_${Buffer.from('thirty-two bytes for the ledger!').toString('base64')}`;
  const ledger = await Ledger.start({ secret });
  const port = Number(new URL(ledger.url).port);
  ledger.answer({ status: 503, headers: { 'Retry-After': '9' } });
  const post = (id, key = secret) => exchange(port, { target: '/hooks', headers: sign('standard-webhooks', { secret: key, body: '{}', id }), body: '{}' });
  const first = await post('a');
  assert.deepEqual([first.status, first.header('Retry-After')], [503, '9']);
  assert.equal((await post('a')).status, 204);
  assert.equal((await post('b', `whsec_${Buffer.alloc(32).toString('base64')}`)).status, 204);
  assert.deepEqual([...ledger.counts()], [['a', 2], ['b', 1]]);
  assert.deepEqual(ledger.arrivals.map((one) => one.verified), [true, true, false]);
  await ledger.stop();
});

test('the cluster keeps what was committed through kill -9, and stops', async () => {
  const database = await cluster.createDatabase();
  await cluster.query(database, 'CREATE TABLE t (x int)');
  await cluster.query(database, 'INSERT INTO t VALUES (7)');
  const before = cluster.pid;
  await cluster.kill();
  assert.equal(isRunning(before), false);
  await assert.rejects(cluster.query(database, 'SELECT 1'));
  await cluster.start();
  assert.deepEqual(await cluster.query(database, 'SELECT x FROM t'), [{ x: 7 }]);
  await cluster.restart('immediate');
  assert.deepEqual(await cluster.query(database, 'SELECT x FROM t'), [{ x: 7 }]);
  await cluster.restart('fast');
  assert.deepEqual(await cluster.query('postgres', 'SHOW fsync'), [{ fsync: 'on' }]);
  assert.equal(isSocket(socketFile(cluster.socketFolder)), true);
});

test('frontend messages are split and a COMMIT is recognised', () => {
  const message = (type, ...parts) => {
    const payload = Buffer.concat(parts.map((p) => (typeof p === 'string' ? Buffer.from(`${p}\0`) : p)));
    const head = Buffer.alloc(4);
    head.writeUInt32BE(payload.length + 4);
    return Buffer.concat([Buffer.from(type), head, payload]);
  };
  const start = message('', Buffer.from([0, 3, 0, 0]), 'user', 'recibo', Buffer.from([0]));
  const stream = Buffer.concat([
    start,
    message('P', 's1', 'INSERT INTO deliveries VALUES ($1)', Buffer.from([0, 0])),
    message('P', 'c', 'COMMIT', Buffer.from([0, 0])),
    message('Q', 'BEGIN'),
    message('B', '', 's1', Buffer.alloc(6)),
    message('B', '', 'c', Buffer.alloc(6)),
    message('Q', 'begin; select 1'),
    message('Q', ' commit '),
  ]);
  for (const size of [1, 3, stream.length]) {
    const splitter = new MessageSplitter(true);
    const watcher = new FrontendWatcher();
    const commits = [];
    for (let at = 0; at < stream.length; at += size) {
      for (const one of splitter.push(stream.subarray(at, at + size))) if (one.type !== '') commits.push(watcher.see(one));
    }
    assert.deepEqual(commits.filter(Boolean).map(({ ran }) => ran), [
      ['BEGIN', 'INSERT INTO deliveries VALUES ($1)', 'COMMIT'],
      ['begin; select 1', ' commit '],
    ]);
  }
});

for (const over of ['unix', 'tcp']) {
  test(`the fault proxy passes, delays, refuses, falls silent and cuts around COMMIT (${over})`, async () => {
    const database = await cluster.createDatabase();
    await cluster.query(database, 'CREATE TABLE t (x int)');
    const proxy = await FaultProxy.start({ upstream: { path: socketFile(cluster.socketFolder) }, over });
    const at = over === 'unix' ? { host: proxy.folder, port: clusterPort } : { host: '127.0.0.1', port: proxy.port };
    const open = async () => {
      const client = new pg.Client({ ...at, user: 'recibo', database, connectionTimeoutMillis: 1_000 });
      client.on('error', () => {});
      await client.connect();
      return client;
    };
    const rows = async () => (await cluster.query(database, 'SELECT x FROM t ORDER BY x')).map(({ x }) => x);

    const client = await open();
    const since = Date.now();
    proxy.delayMs = 100;
    assert.deepEqual((await client.query('SELECT 1 AS one')).rows, [{ one: 1 }]);
    assert.ok(Date.now() - since >= 200, 'both ways were delayed');
    await proxy.heal();

    const write = async (connection, x) => {
      await connection.query('BEGIN');
      await connection.query({ name: `insert${x}`, text: 'INSERT INTO t VALUES ($1)', values: [x] });
      await connection.query({ name: 'commit', text: 'COMMIT' });
    };
    proxy.cutBeforeCommit({ match: /insert into t/i });
    await assert.rejects(write(client, 1));
    assert.deepEqual(await rows(), []);

    const second = await open();
    proxy.cutAfterCommit({ match: /insert into t/i });
    await assert.rejects(write(second, 2));
    assert.deepEqual(await rows(), [2]);
    assert.deepEqual(proxy.cuts.map(({ kind }) => kind), ['before', 'after']);

    const third = await open();
    await write(third, 3);
    assert.deepEqual(await rows(), [2, 3], 'after its turn the plan is over');

    proxy.blackHole();
    const silent = await Promise.race([third.query('SELECT 1').then(() => 'answer', () => 'error'), sleep(300).then(() => 'silence')]);
    assert.equal(silent, 'silence');
    await proxy.heal();
    await until('the starved session is closed', () => proxy.sessions === 0);

    await proxy.refuse();
    await assert.rejects(open());
    await proxy.heal();
    const fourth = await open();
    await write(fourth, 4);
    assert.deepEqual(await rows(), [2, 3, 4]);
    await fourth.end();
    await proxy.stop();
  });
}
