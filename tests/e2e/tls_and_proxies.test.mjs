// TLS and client certificates on the listeners, and proxies in front of them: who may say for whom he speaks.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import tls from 'node:tls';
import { likeB0 } from '../support/bodies.mjs';
import { sleep, until } from '../support/cleanup.mjs';
import { run } from '../support/process.mjs';
import { freshId } from '../support/random.mjs';
import { RawConnection, requestBytes } from '../support/raw.mjs';
import { Stage } from '../support/recibo.mjs';

const folder = mkdtempSync(join(tmpdir(), 'rcb-tls-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = (name) => join(folder, name);
const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });

function authority(name) {
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '60', '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.pem`);
}
function issue(name, by, days = 60) {
  openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`);
  openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-CAcreateserial', '-days', String(days), '-out', `${name}.pem`);
}
for (const name of ['inside', 'outside']) authority(name);
issue('server', 'inside');
issue('renewed', 'inside');
issue('soon', 'inside', 5);
issue('client', 'inside');
issue('stranger', 'outside');
for (const part of ['pem', 'key']) copyFileSync(file(`server.${part}`), file(`listener.${part}`));

const pair = (name) => ({ cert: readFileSync(file(`${name}.pem`)), key: readFileSync(file(`${name}.key`)) });
const ca = readFileSync(file('inside.pem'));
const files = { certificate: file('listener.pem'), key: file('listener.key') };

const stage = await Stage.begin();
const serving = (listen, more = {}) =>
  stage.fresh({ configure: (config) => ({ ...config, ...more, listen: { ...config.listen, ...listen, callbacks: { ...config.listen.callbacks, ...listen.callbacks } } }) });

// Every installation before the first test: a file that waits between two tests is taken for done.
const mutual = await serving({ callbacks: { tls: { ...files, client_ca: file('inside.pem') } } }, { limits: { header_timeout: '1s' } });
const open = await serving({ callbacks: { tls: files } }, { drain: { delay: '1s', timeout: '10s' } });
const trusting = await serving({ callbacks: { proxy_protocol: true }, trusted_proxies: ['127.0.0.0/8', '10.0.0.0/8'] }, { limits: { header_timeout: '1s' } });
const careful = await serving({ callbacks: { proxy_protocol: true }, trusted_proxies: ['10.0.0.0/8'] });

// HMAC over the URL and the body.
const signsUrl = {
  verify: { scheme: 'hmac', algorithm: 'sha256', signature: { header: 'X-Signature', encoding: 'hex' }, signed: '{url}|{body}', secrets: ['a secret for URLs'] },
  extract: { request_id: '/request_id', idempotency_key: '/event_id', event: '/status' },
  events: { succeeded: 'complete' },
  workflow: 'fixture',
};
const forwarded = await stage.fresh({
  configure: (config) => ({
    ...config,
    listen: { ...config.listen, trusted_proxies: ['127.0.0.1'] },
    providers: {
      ...config.providers,
      taken: { ...signsUrl, public_url: 'forwarded' },
      fixed: { ...signsUrl, public_url: 'https://hooks.example.com/callbacks/fixed' },
    },
  }),
});

// A connection through TLS; the socket before it may have said something.
function openTls(port, options = {}) {
  return new Promise((resolve, reject) => {
    const one = tls.connect({ host: '127.0.0.1', port, ca, checkServerIdentity: () => undefined, ...options });
    one.once('error', reject);
    one.once('secureConnect', () => {
      one.removeAllListeners('error');
      const connection = new RawConnection(one);
      connection.tls = { protocol: one.getProtocol(), alpn: one.alpnProtocol, serial: one.getPeerCertificate().serialNumber };
      resolve(connection);
    });
  });
}

// The connection ends without an answer: in the handshake, or by an alert right behind it.
async function refusedInHandshake(port, options) {
  let connection;
  try {
    connection = await openTls(port, options);
  } catch {
    return;
  }
  connection.write(requestBytes({ method: 'GET', target: '/livez' }));
  await assert.rejects(connection.response({ method: 'GET', timeout: 5_000 }));
  connection.destroy();
}

const refusals = (recibo, reason) => recibo.metric('recibo_http_connections_refused_total', { listener: 'callbacks', reason });
const peerOf = async (recibo, id) => (await recibo.deliveries(id)).at(-1).peer;


test('callbacks over TLS: keep-alive, pipelining, large bodies, a byte at a time', async () => {
  const connection = await openTls(open.service.callbacks, { ALPNProtocols: ['h2', 'http/1.1'] });
  assert.deepEqual([connection.tls.protocol, connection.tls.alpn], ['TLSv1.3', 'http/1.1']);
  const ids = [freshId(), freshId(), freshId()];
  for (const id of ids) await open.accepted(id);
  connection.write(Buffer.concat(ids.map((id) => open.bytes('p1', likeB0(id, 'evt-1')))));
  for (const id of ids) {
    const answer = await connection.response();
    assert.deepEqual([answer.status, answer.json.disposition, answer.json.request_id], [200, 'applied', id]);
  }
  await sleep(100); // idle, and back
  const id = freshId();
  await open.accepted(id);
  const large = Buffer.concat([Buffer.from(likeB0(id, 'evt-1')), Buffer.alloc(1 << 19, ' ')]);
  connection.write(open.bytes('p1', large));
  assert.deepEqual([(await connection.response()).status, await peerOf(open, id)], [200, '127.0.0.1']);
  for (const byte of requestBytes({ method: 'GET', target: '/livez' })) connection.write(Buffer.from([byte]));
  assert.equal((await connection.response({ method: 'GET' })).status, 200);
  connection.destroy();
});

test('TLS 1.2 is spoken, HTTP/2 and HTTP without TLS are not', async () => {
  const old = await openTls(open.service.callbacks, { maxVersion: 'TLSv1.2' });
  assert.equal(old.tls.protocol, 'TLSv1.2');
  old.write(requestBytes({ method: 'GET', target: '/livez', headers: [['Connection', 'close']] }));
  assert.equal((await old.response({ method: 'GET' })).status, 200);
  await old.untilClosed();
  await refusedInHandshake(open.service.callbacks, { ALPNProtocols: ['h2'] });
  const plain = await RawConnection.open(open.service.callbacks);
  plain.write(requestBytes({ method: 'GET', target: '/livez' }));
  const answer = await plain.response({ method: 'GET' });
  assert.equal(answer.status, 400);
  await plain.untilClosed();
  for (const reason of ['tls_alpn', 'tls_plain_http']) assert.equal(await refusals(open, reason), 1, reason);
  const onPlain = await RawConnection.open(open.service.api);
  onPlain.write(Buffer.from('1603010200010001fc0303', 'hex'));
  assert.equal((await onPlain.response()).status, 400, 'a handshake on the plain port');
  await onPlain.untilClosed();
});

test('a client certificate of that authority, or no word', async () => {
  const port = mutual.service.callbacks;
  const good = await openTls(port, pair('client'));
  good.write(requestBytes({ method: 'GET', target: '/livez' }));
  assert.equal((await good.response({ method: 'GET' })).status, 200);
  good.destroy();
  await refusedInHandshake(port);
  await refusedInHandshake(port, pair('stranger'));
  await refusedInHandshake(port, { ...pair('stranger'), maxVersion: 'TLSv1.2' });
  await refusedInHandshake(port, { maxVersion: 'TLSv1.2' });
  assert.equal(await refusals(mutual, 'tls_client_certificate_missing'), 2);
  assert.equal(await refusals(mutual, 'tls_client_certificate_refused'), 2);
  assert.equal((await mutual.live('api')).status, 200, 'health checks have the other listener');
});

test('a handshake that does not come is given up in time', async () => {
  const port = mutual.service.callbacks;
  const since = Date.now();
  const silent = await RawConnection.open(port);
  const half = await RawConnection.open(port);
  half.write(Buffer.from('1603010200010001fc0303', 'hex'));
  const garbage = await RawConnection.open(port);
  garbage.write(Buffer.alloc(64, 0xff));
  await garbage.untilClosed(3_000);
  await silent.untilClosed(5_000);
  await half.untilClosed(5_000);
  assert.ok(Date.now() - since >= 900, 'but not at once');
  await until('both are counted', async () => (await refusals(mutual, 'tls_timeout')) === 2);
  assert.equal(await mutual.metric('recibo_http_connections', { listener: 'callbacks' }), 0);
});

test('a reload takes a new certificate for new connections, all or nothing', async () => {
  const port = open.service.callbacks;
  const before = await openTls(port);
  const reload = async (msg) => {
    const from = open.service.lines.length;
    open.service.signal('SIGHUP');
    return open.service.log((r) => r.msg === msg, { from, what: msg });
  };
  copyFileSync(file('renewed.pem'), file('listener.pem'));
  await reload('configuration refused'); // the key is the old one still
  assert.equal((await openTls(port)).tls.serial, before.tls.serial);
  copyFileSync(file('renewed.key'), file('listener.key'));
  await reload('configuration taken');
  const renewed = await openTls(port);
  assert.notEqual(renewed.tls.serial, before.tls.serial);
  before.write(requestBytes({ method: 'GET', target: '/livez' }));
  assert.equal((await before.response({ method: 'GET' })).status, 200, 'an open connection goes on');
  writeFileSync(file('listener.pem'), 'nothing');
  await reload('configuration refused');
  assert.equal((await openTls(port)).tls.serial, renewed.tls.serial);
  for (const part of ['pem', 'key']) copyFileSync(file(`soon.${part}`), file(`listener.${part}`));
  const checked = await open.run(['check']);
  assert.equal(checked.code, 0, checked.stderr);
  assert.match(checked.stderr, /certificate: expires at .* in [45] days/);
  await reload('configuration taken');
  const expiry = await open.metric('recibo_tls_certificate_expiry_seconds', { listener: 'callbacks' });
  assert.ok(expiry > Date.now() / 1000 && expiry < Date.now() / 1000 + 6 * 86_400);
});

test('recibo doctor and recibo send speak TLS', async () => {
  const url = `https://127.0.0.1:${open.service.callbacks}`;
  assert.equal((await run(['doctor', '--ready', url])).code, 3, 'nobody on this machine trusts that authority');
  assert.equal((await run(['doctor', '--live', url, '--insecure'])).code, 0);
  const shown = ['--certificate', file('client.pem'), '--key', file('client.key'), '--insecure'];
  assert.equal((await run(['doctor', '--live', `https://127.0.0.1:${mutual.service.callbacks}`, ...shown])).code, 0);
  assert.equal((await run(['doctor', '--live', `https://127.0.0.1:${mutual.service.callbacks}`, '--insecure'])).code, 3);
  const id = freshId();
  await open.accepted(id);
  const sent = await open.run(['send', 'p1', '--request-id', id, '--event', 'succeeded', '--to', `${url}/callbacks/p1`, '--insecure']);
  assert.equal(sent.code, 0, sent.stderr);
});

test('a stop signal during requests over TLS', async () => {
  const id = freshId();
  await open.accepted(id);
  const bytes = open.bytes('p1', likeB0(id, 'evt-1'));
  const busy = await openTls(open.service.callbacks);
  busy.write(bytes.subarray(0, -68));
  const idle = await openTls(open.service.callbacks);
  await sleep(200);
  const ended = open.service.stop({ timeout: 12_000 });
  await sleep(300);
  busy.write(bytes.subarray(-68));
  const answer = await busy.response();
  assert.deepEqual([answer.status, answer.json.disposition], [200, 'applied']);
  assert.equal(answer.header('Connection')?.toLowerCase(), 'close');
  await idle.untilClosed(5_000);
  assert.equal((await ended).code, 0);
  await open.serve();
});

// PROXY protocol, from a trusted peer and from one that is not.
const line = (source) => Buffer.from(`PROXY TCP4 ${source} 10.0.0.1 56324 443\r\n`);
const binary = (source, { command = 0x21, family = 0x11, extra = Buffer.alloc(0) } = {}) => {
  const body = Buffer.concat([Buffer.from([...source.split('.').map(Number), 10, 0, 0, 1, 0xdc, 0x04, 0x01, 0xbb]), extra]);
  return Buffer.concat([Buffer.from('0d0a0d0a000d0a515549540a', 'hex'), Buffer.from([command, family, body.length >> 8, body.length & 255]), body]);
};


async function through(recibo, before, more = []) {
  const id = freshId();
  await recibo.accepted(id);
  const connection = await RawConnection.open(recibo.service.callbacks);
  connection.write(Buffer.concat([before, recibo.bytes('p1', likeB0(id, 'evt-1'), { headers: more })]));
  const answer = await connection.response();
  connection.destroy();
  assert.equal(answer.status, 200, answer.text);
  return peerOf(recibo, id);
}

test('a PROXY header of a trusted proxy names the client', async () => {
  assert.equal(await through(trusting, line('203.0.113.7')), '203.0.113.7');
  assert.equal(await through(trusting, binary('203.0.113.8')), '203.0.113.8');
  assert.equal(await through(trusting, binary('203.0.113.9', { extra: Buffer.from('0300041122334455', 'hex') })), '203.0.113.9');
  assert.equal(await through(trusting, binary('203.0.113.8', { command: 0x20 })), '127.0.0.1', 'its own connection');
  assert.equal(await through(trusting, Buffer.from('PROXY UNKNOWN\r\n')), '127.0.0.1');
  assert.equal(await through(trusting, line('203.0.113.7'), [['X-Forwarded-For', '8.8.8.8']]), '203.0.113.7', 'the client is no proxy');
  assert.equal(await through(trusting, line('10.9.9.9'), [['X-Forwarded-For', '8.8.8.8, 10.1.1.1']]), '8.8.8.8', 'this one is');
});

test('without one, with a broken one, or too slowly: closed', async () => {
  for (const bytes of [requestBytes({ method: 'GET', target: '/livez' }), Buffer.from('PROXY TCP4 x y 1 2\r\n'), binary('1.2.3.4', { family: 0x12 }), Buffer.from(`PROXY ${'x'.repeat(200)}`)]) {
    const connection = await RawConnection.open(trusting.service.callbacks);
    connection.write(bytes);
    await connection.untilClosed(3_000);
    assert.equal(connection.pending.length, 0, 'without a word');
  }
  const slow = await RawConnection.open(trusting.service.callbacks);
  slow.write('PROXY TCP4 203.0.');
  await slow.untilClosed(5_000);
  assert.equal(await refusals(trusting, 'proxy_header_malformed'), 4);
  assert.equal(await refusals(trusting, 'proxy_header_timeout'), 1);
});

test('from anybody else such a header is no request', async () => {
  for (const bytes of [line('203.0.113.7'), binary('203.0.113.7')]) {
    const connection = await RawConnection.open(careful.service.callbacks);
    connection.write(bytes);
    assert.equal((await connection.response()).status, 400);
    await connection.untilClosed();
  }
  assert.equal(await through(careful, Buffer.alloc(0), [['X-Forwarded-For', '8.8.8.8'], ['Forwarded', 'for=8.8.8.8']]), '127.0.0.1');
});

async function signedFor(url, provider, headers) {
  const id = freshId();
  await forwarded.accepted(id, { provider });
  const body = likeB0(id, 'evt-1');
  const signature = createHmac('sha256', 'a secret for URLs').update(`${url}|${body}`).digest('hex');
  const answer = await forwarded.raw({ method: 'POST', target: `/callbacks/${provider}`, headers: [['X-Signature', signature], ['Content-Type', 'application/json'], ...headers], body });
  return answer.status;
}

test('a trusted proxy says who the client is, and, where the configuration wants it, what the URL was', async () => {
  assert.equal(await through(forwarded, Buffer.alloc(0), [['X-Forwarded-For', '6.6.6.6, 203.0.113.7']]), '203.0.113.7');
  assert.equal(await through(forwarded, Buffer.alloc(0), [['Forwarded', 'for="[2001:db8::7]:4711"']]), '2001:db8::7');
  assert.equal(await through(forwarded, Buffer.alloc(0), [['X-Forwarded-For', '203.0.113.7'], ['Forwarded', 'for=6.6.6.6']]), '127.0.0.1', 'neither');
  const proxied = [['X-Forwarded-For', '203.0.113.7'], ['X-Forwarded-Proto', 'https'], ['X-Forwarded-Host', 'a.example']];
  assert.equal(await signedFor('https://a.example/callbacks/taken', 'taken', proxied), 200);
  assert.equal(await signedFor('https://b.example/callbacks/taken', 'taken', proxied), 401);
  assert.equal(await signedFor('http://127.0.0.1/callbacks/taken', 'taken', []), 401, 'around the proxy');
  assert.equal(await signedFor('https://a.example/callbacks/fixed', 'fixed', proxied), 401, 'the configured one wins');
  assert.equal(await signedFor('https://hooks.example.com/callbacks/fixed', 'fixed', proxied), 200);
});

test('the PROXY header comes before TLS', async () => {
  const own = await serving({ callbacks: { tls: { certificate: file('server.pem'), key: file('server.key') }, proxy_protocol: true }, trusted_proxies: ['127.0.0.1'] });
  const { connect } = await import('node:net');
  const socket = connect({ host: '127.0.0.1', port: own.service.callbacks });
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(line('203.0.113.7'));
  const id = freshId();
  await own.accepted(id);
  const connection = await openTls(undefined, { socket, host: undefined });
  connection.write(own.bytes('p1', likeB0(id, 'evt-1')));
  assert.equal((await connection.response()).status, 200);
  assert.equal(await peerOf(own, id), '203.0.113.7');
  connection.destroy();
});

stage.ends();
