// Writes a page for each preset, and their index, from what the binary is made of: src/verify/presets.json and
// src/config/provider_profiles.json. Run it after changing one of them: node docs/providers/generate.mjs
// tests/e2e/providers.test.mjs fails when a page differs, and tries every piece of configuration.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const root = join(folder, '..', '..');
const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8'));

// What each verification request is, and what it is answered with.
const handshakes = {
  slack: 'A signed POST `{"type": "url_verification", "challenge": …}`. It is verified like a callback, then answered with the challenge as text.',
  zoom: 'A signed POST `endpoint.url_validation` with a `plainToken`, answered with the token and its HMAC under the secret that verified the request. Zoom repeats it every 72 hours.',
  meta: 'A GET with `hub.mode=subscribe`, `hub.verify_token` and `hub.challenge`. The token is compared with `handshake.token`: the challenge comes back as text, or 403.',
  dropbox: 'A GET with `challenge`, which comes back as text.',
  twitch: 'A signed POST with `Twitch-Eventsub-Message-Type: webhook_callback_verification`. It is verified, then answered with its challenge as text.',
  xero: 'The *intent to receive*: several POSTs without events, some of them signed wrongly. 200 for those that verify, 401 for the others, both without a body.',
  'microsoft-graph': 'A POST with `validationToken` in the query, which comes back decoded as text.',
  okta: 'A GET with the header `X-Okta-Verification-Challenge`, answered with JSON that holds its value.',
  'aws-sns': 'A signed POST of type `SubscriptionConfirmation`. It is verified, then its `SubscribeURL` is fetched, then it is answered; 503 where the fetching failed, so that SNS tries again.',
  discord: 'A signed POST of type 0, answered 204 without a body (type 1 of an interactions endpoint: 200 with `{"type":1}`). It is verified like a callback.',
  braintree: 'A GET with `bt_challenge`, answered with the public key and an HMAC that proves the private one.',
  woocommerce: 'An unsigned form `webhook_id=…` when the webhook is created, answered 200. Nothing is recorded of it.',
  circle: 'A HEAD, answered 200.',
  intercom: 'A HEAD when the URL is saved (unverified), and a signed callback of the topic `ping`. Both are answered 200 and not recorded.',
};

const plain = /^[A-Za-z0-9_/.:@$%+-]+$/;
const reserved = /^(true|false|yes|no|on|off|null|~|[-+.0-9].*)$/i;
const scalar = (text) => (plain.test(text) && !reserved.test(text) && !/:$|^[@%-]/.test(text) ? text : JSON.stringify(text));
function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (typeof value === 'object') return `{${Object.entries(value).map(([k, v]) => `${scalar(k)}: ${flow(v)}`).join(', ')}}`;
  return scalar(value);
}

// Schemes whose key is the provider's own and no secret.
export const hasPublicKey = (scheme) => ['ed25519', 'ecdsa', 'rsa', 'plaid', 'http-message-signatures'].includes(scheme?.kind);
function variableOf(name, scheme) {
  const stem = name.toUpperCase().replaceAll('-', '_');
  if (hasPublicKey(scheme) && scheme.key?.certificate_url_header === undefined) return `${stem}_PUBLIC_KEY`;
  return scheme?.key?.encoding === 'hex' ? `${stem}_KEY_HEX` : `${stem}_SECRET`;
}

export function configuration(name, profile, scheme) {
  const id = name.replaceAll(/[^a-z0-9_-]/g, '-');
  const minted = profile.needs === 'callback_url';
  const lines = minted ? ['callback_urls: {base: "https://hooks.example.com", secrets: ["${CALLBACK_URL_SECRET}"]}'] : [];
  lines.push('providers:', `  ${id}:`);
  const keys = profile.fetch ? { fetch: profile.fetch } : { secrets: [profile.secret_example ?? `\${${variableOf(name, scheme)}}`] };
  if (profile.keys) {
    lines.push('    verify:', `      scheme: ${name}`);
    const more = { ...keys, keys: profile.keys, required_components: profile.required_components };
    for (const [key, value] of Object.entries(more)) lines.push(`      ${key}: ${flow(value)}`);
  } else {
    lines.push(`    verify: ${flow({ scheme: name, ...keys })}`);
  }
  if (minted) lines.push('    callback_url: required');
  if (profile.public_url) lines.push(`    public_url: https://hooks.example.com/callbacks/${id}`);
  if (profile.mode) lines.push(`    mode: ${profile.mode}`);
  lines.push('    extract:');
  for (const [key, value] of Object.entries(profile.extract)) lines.push(`      ${key}: ${flow(value)}`);
  if (profile.events) lines.push('    events:', ...Object.entries(profile.events).map(([word, event]) => `      ${scalar(word)}: ${event}`));
  if (profile.status) lines.push('    status:', ...Object.entries(profile.status).map(([key, value]) => `      ${key}: ${flow(value)}`));
  if (profile.example_handshake) lines.push(`    handshake: ${flow(profile.example_handshake).replaceAll(/"?(\$\{\w+\})"?/g, '"$1"')}`);
  return `${lines.join('\n')}\n`;
}

const seconds = (ms) => `${ms / 1000} s`;
function span(s) {
  for (const [unit, size] of [['day', 86400], ['hour', 3600], ['minute', 60]]) {
    if (s >= size && (s % size === 0 || s >= 2 * size)) {
      const n = Math.round((s / size) * 10) / 10;
      return `${n} ${unit}${n === 1 ? '' : 's'}`;
    }
  }
  return `${s} s`;
}

const successes = { applied: 200, redundant: 200, partial: 200, duplicate: 200, stale: 200, parked: 202, review: 200, unmapped: 202, ignored: 200 };
// With `mode: hint` a callback is answered with this, or refused.
const hinted = { duplicate: 202, hint: 202, parked: 202, ignored: 200 };
// The statuses that differ from the usual ones, as the profile makes them (src/config/profiles.cpp).
export function statuses({ accepts = [], refusals_hurt: hurts, mode }) {
  const out = hurts ? { conflict: 200, unprocessable: 202 } : {};
  if (accepts.length === 0) return out;
  for (const [word, status] of Object.entries(mode === 'hint' ? hinted : successes)) if (!accepts.includes(status)) out[word] = accepts[0];
  for (const word of Object.keys(out)) if (!accepts.includes(out[word])) out[word] = accepts[0];
  return out;
}

function answersText(profile) {
  const own = statuses(profile);
  const all = profile.accepts !== undefined && Object.entries(successes).every(([word, usual]) => (own[word] ?? usual) === profile.accepts[0]);
  const rows = all ? [`every success is ${profile.accepts[0]}`] : [];
  for (const [word, status] of Object.entries(own)) if (!all || !(word in successes)) rows.push(`\`${word}\` is ${status}`);
  if (profile.body === '') rows.push('no body');
  else if (profile.body !== undefined) rows.push(`the body of a success is \`${profile.body}\``);
  return rows.length === 0 ? 'the usual ones.' : `${rows.join(', ')}. What is recorded is the same; \`answers\` in the configuration overrides it.`;
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!]$/.test(text.trim()) ? '' : '.'}`;

export function page(name, profile, scheme) {
  const kind = profile.handshake ?? profile.example_handshake?.type;
  const firstEvent = Object.entries(profile.events ?? {}).find(([, event]) => event !== 'ignore')?.[0];
  const out = [`# ${profile.title}`, '', `<!-- Made by docs/providers/generate.mjs; change src/config/provider_profiles.json instead. -->`, ''];
  if (profile.about) out.push(profile.about, '');
  out.push(`Preset \`${name}\`. How it signs is in [signature schemes](../signature-schemes.md#presets). What is marked *unverified* was not seen`, 'in a source of the provider; try it before you rely on it.', '');
  out.push('## At the provider', '');
  if (profile.needs === 'callback_url') {
    out.push('What this provider says is not covered by its signature, so that an identity cannot be taken from it. Each operation has a callback', 'URL of its own instead: it is `callback_url` in the answer of `POST /v1/operations`, it names the operation, and nothing that comes to', 'another URL is accepted.', '');
  } else {
    out.push(`The URL is \`https://hooks.example.com/callbacks/${name}\`, with the name that leads to your callbacks listener.`, '');
  }
  profile.setup.forEach((step, i) => out.push(`${i + 1}. ${step}`));
  out.push('', `The secret: ${profile.secret}.`, '');
  out.push('## Configuration', '');
  if (profile.extract === undefined) {
    out.push('There is none that could serve its callbacks: see below.', '');
  } else {
    if (hasPublicKey(scheme) && !profile.fetch && scheme.key?.certificate_url_header === undefined) out.push('<!-- not run by the tests: it wants a public key of this provider -->');
    out.push('```yaml', configuration(name, profile, scheme).trimEnd(), '```', '');
    if (profile.mode === 'hint') out.push('A callback is a [hint](../operations.md#look-ups): it names the payment, and what `status` answers is what counts. The events on the', 'right are those of the built-in workflow `default`.', '');
    else out.push('Words and places are those of one kind of event; look at a payload of your own and adapt `extract` and `events`. The events on the', 'right are those of the built-in workflow `default`.', '');
  }
  out.push('## How it behaves', '', '| | |', '| --- | --- |');
  out.push(`| takes for success | ${profile.success} |`);
  out.push(`| waits | ${profile.limit}; Recibo answers within ${profile.answer_within_ms ? seconds(profile.answer_within_ms) : '10 s, its default'} |`);
  out.push(`| sends again | ${profile.retries} |`);
  if (profile.resend_gap_s || profile.resend_span_s) {
    const parts = [];
    if (profile.resend_gap_s) parts.push(`first after ${span(profile.resend_gap_s)}`);
    if (profile.resend_span_s) parts.push(`last within ${span(profile.resend_span_s)}; a key must be kept for longer than that`);
    out.push(`| counted with | ${parts.join(', ')} |`);
  }
  if (profile.stops) out.push(`| gives up | ${profile.stops} |`);
  out.push(`| is answered | ${answersText(profile)} |`, '');
  out.push('**Handshake.** ' + (kind ? `${handshakes[kind]} ${profile.handshake ? 'The preset brings it' : 'It is configured as above'}; it leaves no row.` : 'None: POST is the only method.'), '');
  if (profile.notes?.length) out.push('## Worth knowing', '', ...profile.notes.map((note) => `- ${sentence(note)}`), '');
  if (profile.extract && (scheme?.signature?.from ?? 'header') === 'header' && ['hmac', 'hash', 'token'].includes(scheme?.kind)) {
    // Where the word for what happened is the reference itself, both are the same.
    const reference = profile.extract.event && JSON.stringify(profile.extract.reference) === JSON.stringify(profile.extract.event) ? firstEvent : 'REFERENCE';
    const identity = profile.extract.request_id || profile.needs === 'callback_url' ? '--request-id ID' : `--reference ${reference}`;
    const event = firstEvent === undefined ? '' : ` --event ${firstEvent}`;
    out.push('## Try it', '', `Register an operation at this provider, then \`recibo send ${name} ${identity}${event} --dry-run\` shows the`, 'request as the provider would sign it; without `--dry-run` it is sent to this machine.', '');
  }
  return `${out.join('\n').trimEnd()}\n`;
}

// The providers whose requests verify and cannot be read.
function without(pages) {
  const names = pages.filter(({ profile }) => profile.extract === undefined).map(({ name, profile }) => `[${profile.title}](${name}.md)`);
  return names.length === 0 ? [] : [`Without a configuration is ${names.join(', ')}: requests verify, and what they say is in no form that can be read here.`, ''];
}

export function index(pages) {
  const out = ['# Providers', '', '<!-- Made by docs/providers/generate.mjs. -->', '',
    'A page for each preset: what to paste where, a configuration that `recibo check` takes, the verification request, time limit and',
    'answers, how the provider sends again, and what has bitten others. For a sender without a page see',
    '[signature schemes](../signature-schemes.md#describing-a-scheme).', '',
    ...without(pages),
    'A word that means an attempt which may be made again is no end of an operation: it is `ignore` in these configurations, and the',
    'limit of the state speaks when nothing follows. What comes after an end and contradicts it is a review.', '',
    '| provider | preset | waits | sends again for | handshake |', '| --- | --- | --- | --- | --- |'];
  for (const { name, profile } of pages) {
    const kind = profile.handshake ?? profile.example_handshake?.type;
    out.push(`| [${profile.title}](${name}.md) | \`${name}\` | ${profile.limit.replace(/;.*/, '')} | ${profile.resend_span_s ? span(profile.resend_span_s) : 'not known'} | ${kind ? `\`${kind}\`` : ''} |`);
  }
  out.push('', 'Handshakes without a preset, for a scheme that is spelled out: `asana` (its `X-Hook-Secret` comes back; the same secret stands in the',
    'answer to the call that made the webhook, and belongs under `secrets`) and `x-twitter` (the CRC of X, answered with the consumer',
    'secret). `braintree` and the others may be named in the same way: `handshake: {type: …}`.', '');
  return out.join('\n');
}

// Every file of this folder that is made: name → text.
export function pages() {
  const [presets, profiles] = [read('src/verify/presets.json'), read('src/config/provider_profiles.json')];
  const served = Object.entries(profiles).map(([name, profile]) => ({ name, profile }));
  served.sort((a, b) => a.profile.title.localeCompare(b.profile.title, 'en'));
  return new Map([['README.md', index(served)], ...served.map(({ name, profile }) => [`${name}.md`, page(name, profile, presets[name])])]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of pages()) writeFileSync(join(folder, name), text);
}
