// AWS SNS and PayPal name a certificate by URL, on a host of their own. Here these hosts are reached by `outbound.connect_to` at
// servers of this test's own: the names, the rule for the host, TLS under that name and the certificate's chain are the real ones.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createSign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { freshId } from '../support/random.mjs';
import { Stage, callbackBody } from '../support/recibo.mjs';

const folder = mkdtempSync(join(tmpdir(), 'rcb-certificates-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const path = (name) => join(folder, name);
const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });

function authority(name) {
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.pem`, '-days', '2', '-subj', `/CN=${name}`);
  return name;
}
// A certificate for `host` by `ca`; its PEM and private key.
let serial = 1000;
function certificate(ca, host) {
  serial += 1;
  const name = `leaf-${serial}`;
  openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${host}`);
  writeFileSync(path(`${name}.ext`), `subjectAltName=DNS:${host}\n`);
  openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-set_serial', String(serial), '-days', '2', '-extfile', `${name}.ext`, '-out', `${name}.pem`);
  return { pem: readFileSync(path(`${name}.pem`), 'utf8'), key: readFileSync(path(`${name}.key`), 'utf8') };
}

const [trusted, stranger] = [authority('trusted'), authority('stranger')];
// The authorities of "this system", in whom PayPal's chain has to end too.
process.env.SSL_CERT_FILE = path('trusted.pem');
process.env.SSL_CERT_DIR = path('none');

const snsHost = 'sns.us-east-1.amazonaws.com';
const foreignTls = 'sns.eu-west-1.amazonaws.com';
const paypalHost = 'api.paypal.com';
const asked = [];
const files = new Map(); // path → text
async function serve(host, ca) {
  const { pem, key } = certificate(ca, host);
  const server = createServer({ key, cert: pem }, (request, response) => {
    asked.push({ host: request.headers.host, url: request.url });
    const text = files.get(request.url);
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'text/plain' }).end(text);
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${server.address().port}`;
}

const topic = 'arn:aws:sns:us-east-1:123456789012:payments';
const webhook = 'WH-1234567890';
const connectTo = { [snsHost]: await serve(snsHost, trusted), [foreignTls]: await serve(foreignTls, stranger), [paypalHost]: await serve(paypalHost, trusted) };

const stage = await Stage.begin({
  configure(config) {
    const { p1 } = config.providers;
    config.outbound = { connect_to: connectTo };
    const at = (name) => ({ json: '/Message', then: `/${name}` });
    const extract = { request_id: at('request_id'), idempotency_key: '/MessageId', event: at('status') };
    const fetch = { allow: ['127.0.0.0/8'] };
    config.providers.sns = { ...p1, verify: { scheme: 'aws-sns', secrets: [topic], fetch }, extract };
    config.providers.closed = { ...p1, verify: { scheme: 'aws-sns', secrets: [topic] }, extract };
    config.providers.paypal = { ...p1, verify: { scheme: 'paypal', secrets: [webhook], fetch } };
    return config;
  },
});
const { recibo } = stage;

const outcome = (answer) => [answer.status, answer.json.disposition ?? answer.json.code];
const count = (url) => asked.filter((one) => one.url === url).length;
const rsa = (key, text) => createSign('RSA-SHA256').update(text).sign(key, 'base64');
// A file that nobody has asked for yet.
const publish = (text) => {
  const url = `/SimpleNotificationService-${freshId()}.pem`;
  files.set(url, text);
  return url;
};

function notification({ key, url, host = snsHost, type = 'Notification', more = {} }) {
  const id = freshId();
  const said = {
    Type: type, MessageId: freshId('msg'), TopicArn: topic, Message: callbackBody(id, freshId('evt')), Timestamp: '2026-10-01T10:00:00.000Z',
    SignatureVersion: '2', SigningCertURL: `https://${host}${url}`, ...more,
  };
  const names = type === 'Notification' ? ['Message', 'MessageId', 'Timestamp', 'TopicArn', 'Type'] : ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'];
  said.Signature = rsa(key, names.map((name) => `${name}\n${said[name]}\n`).join(''));
  return said;
}
const post = (provider, body, headers = []) => recibo.raw({ target: `/callbacks/${provider}`, headers: [['Content-Type', 'text/plain; charset=UTF-8'], ...headers], body });
const sns = (said, provider = 'sns') => post(provider, JSON.stringify(said));

function paypal({ key, url, body = callbackBody(freshId(), freshId('evt')), host = paypalHost, scheme = 'https' }) {
  const [id, time] = [freshId('tx'), '2026-10-01T10:00:00Z'];
  const signature = rsa(key, `${id}|${time}|${webhook}|${crc32(body)}`);
  return post('paypal', body, [['PAYPAL-TRANSMISSION-ID', id], ['PAYPAL-TRANSMISSION-TIME', time], ['PAYPAL-TRANSMISSION-SIG', signature], ['PAYPAL-AUTH-ALGO', 'SHA256withRSA'], ['PAYPAL-CERT-URL', `${scheme}://${host}${url}`]]);
}

test('SNS: the certificate is fetched once from the host that signs, and verifies', async () => {
  const signer = certificate(stranger, 'sns.amazonaws.com'); // Amazon's own name; TLS to the host vouches for it
  const url = publish(signer.pem);
  const answers = await Promise.all(Array.from({ length: 10 }, () => sns(notification({ key: signer.key, url }))));
  for (const answer of answers) assert.deepEqual(outcome(answer), [202, 'parked'], answer.text);
  assert.deepEqual(outcome(await sns(notification({ key: signer.key, url }))), [202, 'parked']);
  assert.equal(count(url), 1);
  assert.equal(asked.find((one) => one.url === url).host, snsHost, 'asked under its own name');
  const forged = notification({ key: certificate(stranger, 'sns.amazonaws.com').key, url });
  assert.deepEqual(outcome(await sns(forged)), [401, 'unauthenticated']);
  const changed = notification({ key: signer.key, url });
  changed.Message = callbackBody(freshId(), freshId('evt'));
  assert.deepEqual(outcome(await sns(changed)), [401, 'unauthenticated']);
});

test('SNS: a confirmation is verified, and its SubscribeURL fetched', async () => {
  const signer = certificate(stranger, 'sns.amazonaws.com');
  const url = publish(signer.pem);
  const confirm = `/?Action=ConfirmSubscription&Token=${freshId()}`;
  files.set(confirm, '<ConfirmSubscriptionResponse/>');
  const said = notification({ key: signer.key, url, type: 'SubscriptionConfirmation', more: { Token: 'token-1', SubscribeURL: `https://${snsHost}${confirm}` } });
  const answer = await sns(said);
  assert.deepEqual([answer.status, answer.text, count(confirm)], [200, '', 1]);
  const elsewhere = notification({ key: signer.key, url, type: 'SubscriptionConfirmation', more: { Token: 'token-2', SubscribeURL: 'https://evil.example/?Action=ConfirmSubscription' } });
  const before = asked.length;
  assert.deepEqual(outcome(await sns(elsewhere)), [202, 'unprocessable'], 'authentic, kept, and nothing fetched for it; 202, as a 4xx would end the topic\'s retries');
  assert.equal(asked.length, before);
});

test('a host that is not the provider\'s is refused without asking anybody', async () => {
  const signer = certificate(trusted, 'sns.amazonaws.com');
  const url = publish(signer.pem);
  const before = asked.length;
  const everything = await recibo.everything();
  for (const host of ['evil.example', `${snsHost}.evil.example`, `${snsHost}:443`, `user@${snsHost}`, 's3.us-east-1.amazonaws.com', 'sns.s3-us-west-2.amazonaws.com', '127.0.0.1', paypalHost]) {
    assert.deepEqual(outcome(await sns(notification({ key: signer.key, url, host }))), [401, 'unauthenticated'], host);
  }
  for (const host of ['evil.example', `${paypalHost}.evil.example`, 'evilpaypal.com', `user@${paypalHost}`, `${paypalHost}:444`, '127.0.0.1', snsHost]) {
    assert.deepEqual(outcome(await paypal({ key: signer.key, url, host })), [401, 'unauthenticated'], host);
  }
  assert.deepEqual(outcome(await paypal({ key: signer.key, url, scheme: 'http' })), [401, 'unauthenticated']);
  assert.equal(asked.length, before, 'nobody was asked');
  assert.deepEqual(await recibo.everything(), everything, 'and nothing is kept');
  for (const provider of ['sns', 'paypal']) {
    const [latest] = await recibo.list(`/v1/providers/${provider}/refusals`, { token: 'viewer' });
    assert.deepEqual([latest.reason, latest.cause], ['signature_mismatch', 'key_unknown'], JSON.stringify(latest));
  }
});

test('a host whose TLS does not hold is not believed: 503, and no certificate is taken from it', async () => {
  const signer = certificate(stranger, 'sns.amazonaws.com');
  const url = publish(signer.pem);
  const answer = await sns(notification({ key: signer.key, url, host: foreignTls }));
  assert.deepEqual(outcome(answer), [503, 'unavailable']);
  assert.equal(count(url), 0);
});

test('an address inside is not asked unless its network is allowed, whatever connect_to says', async () => {
  const signer = certificate(stranger, 'sns.amazonaws.com');
  const url = publish(signer.pem);
  assert.deepEqual(outcome(await sns(notification({ key: signer.key, url }), 'closed')), [503, 'unavailable']);
  assert.equal(count(url), 0);
});

test('PayPal: the chain is fetched once, has to end in an authority of this system, and to be PayPal\'s', async () => {
  const right = certificate(trusted, 'messageverificationcerts.paypal.com');
  const url = publish(right.pem);
  for (let i = 0; i < 3; i += 1) assert.deepEqual(outcome(await paypal({ key: right.key, url })), [202, 'parked']);
  assert.equal(count(url), 1);

  const chain = certificate(stranger, 'messageverificationcerts.paypal.com');
  const unchained = publish(chain.pem);
  for (let i = 0; i < 2; i += 1) assert.deepEqual(outcome(await paypal({ key: chain.key, url: unchained })), [401, 'unauthenticated'], 'of an authority that nobody trusts');
  assert.equal(count(unchained), 1, 'a refusal is remembered');

  const other = certificate(trusted, 'paypal.com.evil.example');
  assert.deepEqual(outcome(await paypal({ key: other.key, url: publish(other.pem) })), [401, 'unauthenticated'], 'of another name');
  assert.deepEqual(outcome(await paypal({ key: right.key, url: publish('<html>no certificate</html>') })), [401, 'unauthenticated']);
  assert.deepEqual(outcome(await paypal({ key: right.key, url: `/absent-${freshId()}` })), [401, 'unauthenticated']);
});

stage.ends();
