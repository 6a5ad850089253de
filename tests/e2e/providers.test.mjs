// docs/providers/: every page is what docs/providers/generate.mjs makes of the data that the binary holds, its configuration is
// accepted, and its `recibo send` works as printed.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pages, statuses } from '../../docs/providers/generate.mjs';
import { blocks, inlineCommands } from '../support/documents.mjs';
import { run, sourceFolder } from '../support/process.mjs';

const shipped = join(sourceFolder, 'docs', 'providers');
const made = pages();
const folder = mkdtempSync(join(tmpdir(), 'rcb-pages-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const profiles = JSON.parse(readFileSync(join(sourceFolder, 'src', 'config', 'provider_profiles.json'), 'utf8'));

const presets = JSON.parse(readFileSync(join(sourceFolder, 'src', 'verify', 'presets.json'), 'utf8'));

// A public key in the form that a scheme reads.
function publicKeyFor({ kind, key }) {
  const options = kind === 'ed25519' || kind === 'http-message-signatures' ? ['ed25519'] : kind === 'rsa' ? ['rsa', { modulusLength: 2048 }] : ['ec', { namedCurve: 'P-256' }];
  const { publicKey } = generateKeyPairSync(...options);
  if (kind === 'plaid') return JSON.stringify({ ...publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'ES256', use: 'sig' });
  if (kind === 'ed25519') {
    const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url');
    return key.encoding === 'hex' ? raw.toString('hex') : `whpk_${raw.toString('base64')}`;
  }
  return kind === 'http-message-signatures' || key.encoding === 'pem' ? publicKey.export({ type: 'spki', format: 'pem' }).trim() : publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
}

function valueFor(name, preset) {
  if (/_PUBLIC_KEY$/.test(name)) return publicKeyFor(presets[preset]);
  if (/HEX$/.test(name)) return createHash('sha256').update(name).digest('hex');
  return `whsec_${Buffer.from(`${name}-`.repeat(8).slice(0, 32)).toString('base64')}`;
}

// The configuration of a page as a file, with an environment for it.
function configured(name, text) {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, text);
  return { file, env: Object.fromEntries([...text.matchAll(/\$\{(\w+)\}/g)].map(([, variable]) => [variable, valueFor(variable, name)])) };
}

test('the pages are those that the generator makes', () => {
  const there = readdirSync(shipped).filter((file) => file.endsWith('.md')).sort();
  assert.deepEqual(there, [...made.keys()].sort(), 'run node docs/providers/generate.mjs, and remove pages of presets that are gone');
  for (const [name, text] of made) assert.equal(readFileSync(join(shipped, name), 'utf8'), text, `${name}: run node docs/providers/generate.mjs`);
});

for (const [file, text] of made) {
  if (file === 'README.md') continue;
  const name = file.replace(/\.md$/, '');
  test(`${file}: its configuration is accepted, and what it says to try works`, async () => {
    const yaml = blocks({ name: file, text }).filter(({ language }) => language === 'yaml');
    if (profiles[name].extract === undefined) return assert.equal(yaml.length, 0);
    assert.equal(yaml.length, 1);
    const { file: config, env } = configured(name, yaml[0].text);
    const checked = await run(['check', '--config', config], { env });
    assert.equal(checked.code, 0, checked.stdout + checked.stderr);
    for (const command of inlineCommands({ text }).filter((c) => c.startsWith(`recibo send ${name} `))) {
      const sent = await run([...command.split(' ').slice(1), '--config', config], { env });
      assert.equal(sent.code, 0, `${command}: ${sent.stderr}`);
      assert.match(sent.stdout, /^POST /, command);
    }
    return undefined;
  });
}

test('the list of presets names every one', () => {
  const listed = [...readFileSync(join(sourceFolder, 'docs', 'signature-schemes.md'), 'utf8').matchAll(/^\| ((?:`[a-z0-9-]+`(?:, )?)+) \|/gm)].flatMap(([, names]) => names.match(/[a-z0-9-]+/g));
  for (const name of Object.keys(presets)) assert.ok(listed.includes(name), `docs/signature-schemes.md has no row for ${name}`);
});

test('every page is of a scheme that is served', async () => {
  for (const name of Object.keys(profiles)) {
    const { file, env } = configured(`scheme-${name}`, `providers:\n  p:\n    verify: {scheme: ${name}, secrets: [s3cret]}\n    extract: {request_id: /id, idempotency_key: /key, event: /type}\n    events: {done: complete}\n`);
    const { stdout } = await run(['check', '--config', file], { env });
    assert.doesNotMatch(stdout, /scheme: (there is none named|\S+ is not served)/, name);
  }
});

// tests/unit/config/profiles_test.cpp holds the binary against the same rule.
test('the statuses on the pages follow the rule of src/config/profiles.cpp', () => {
  assert.deepEqual(statuses({ accepts: [204], refusals_hurt: true }), Object.fromEntries(['applied', 'redundant', 'partial', 'duplicate', 'stale', 'parked', 'review', 'unmapped', 'ignored', 'conflict', 'unprocessable'].map((word) => [word, 204])));
  assert.deepEqual(statuses({ accepts: [200], refusals_hurt: true }), { parked: 200, unmapped: 200, conflict: 200, unprocessable: 200 });
  assert.deepEqual(statuses({ refusals_hurt: true }), { conflict: 200, unprocessable: 202 });
  assert.deepEqual(statuses({}), {});
});
