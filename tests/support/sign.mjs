// Signs callbacks as providers do, with node:crypto and nothing of the product, so that the product's verifier is held
// against a second reading of each scheme. A scheme is the short form of the configuration
// ({scheme: hmac, algorithm, signature: {header, prefix, encoding}, signed, timestamp: {header, unit}}) or the name of a preset.
// Sources of the presets: the Standard Webhooks specification; Stripe, GitHub, Slack and Shopify documentation on verifying
// webhook signatures; Svix manual verification.
import { createHash, createHmac } from 'node:crypto';

export const sha256Hex = (bytes) => createHash('sha256').update(bytes).digest('hex');

export function hmac(algorithm, key, parts, encoding) {
  const mac = createHmac(algorithm, key);
  for (const part of parts) mac.update(part);
  const digest = mac.digest();
  if (encoding === 'hex') return digest.toString('hex');
  if (encoding === 'base64') return digest.toString('base64');
  if (encoding === 'base64url') return digest.toString('base64url');
  throw new Error(`unknown encoding ${encoding}`);
}

const asBytes = (text) => (Buffer.isBuffer(text) ? text : Buffer.from(text, 'utf8'));

export const nowSeconds = () => Math.floor(Date.now() / 1000);

// The stamp of an instant (milliseconds) in a unit of the configuration.
export function stampOf(unit, atMs = Date.now()) {
  if (unit === 'seconds') return String(Math.floor(atMs / 1000));
  if (unit === 'milliseconds') return String(Math.floor(atMs));
  if (unit === 'rfc3339') return new Date(atMs).toISOString();
  throw new Error(`unknown unit ${unit}`);
}

function genericHmac(scheme, { secret, body, stamp, headers, method, url }) {
  const out = [];
  const unit = scheme.timestamp?.unit ?? 'seconds';
  const text = stamp ?? (scheme.timestamp ? stampOf(unit) : '');
  if (scheme.timestamp?.header && stamp !== null) out.push([scheme.timestamp.header, text]);
  const parts = [];
  for (const piece of scheme.signed.split(/(\{[^}]*\})/)) {
    if (piece === '') continue;
    if (piece === '{body}') parts.push(body);
    else if (piece === '{timestamp}') parts.push(text ?? '');
    else if (piece === '{method}') parts.push(method);
    else if (piece === '{url}') parts.push(url);
    else if (piece.startsWith('{header:')) parts.push(headers[piece.slice(8, -1).toLowerCase()] ?? '');
    else if (piece.startsWith('{')) throw new Error(`the signer does not know ${piece}`);
    else parts.push(piece);
  }
  const { header, prefix = '', encoding = 'hex' } = scheme.signature;
  out.push([header, prefix + hmac(scheme.algorithm, asBytes(secret), parts, encoding)]);
  return out;
}

const standardKey = (secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64');

function standardWebhooks(prefix) {
  return ({ secret, body, stamp, id }) => {
    const at = stamp ?? stampOf('seconds');
    const value = `v1,${hmac('sha256', standardKey(secret), [`${id}.${at}.`, body], 'base64')}`;
    return [[`${prefix}-id`, id], [`${prefix}-timestamp`, at], [`${prefix}-signature`, value]];
  };
}

const presets = {
  'standard-webhooks': standardWebhooks('webhook'),
  svix: standardWebhooks('svix'),
  stripe({ secret, body, stamp }) {
    const at = stamp ?? stampOf('seconds');
    return [['Stripe-Signature', `t=${at},v1=${hmac('sha256', asBytes(secret), [`${at}.`, body], 'hex')}`]];
  },
  github({ secret, body, id }) {
    return [['X-GitHub-Delivery', id], ['X-Hub-Signature-256', `sha256=${hmac('sha256', asBytes(secret), [body], 'hex')}`]];
  },
  slack({ secret, body, stamp }) {
    const at = stamp ?? stampOf('seconds');
    return [
      ['X-Slack-Request-Timestamp', at],
      ['X-Slack-Signature', `v0=${hmac('sha256', asBytes(secret), [`v0:${at}:`, body], 'hex')}`],
    ];
  },
  shopify({ secret, body, id }) {
    return [['X-Shopify-Webhook-Id', id], ['X-Shopify-Hmac-Sha256', hmac('sha256', asBytes(secret), [body], 'base64')]];
  },
};

// The headers that a provider with this scheme adds to `body`: a list of [name, value], in the order it sends them.
// `stamp` is the literal text of the time stamp (default: now); `id` the message ID, where the scheme has one.
export function sign(scheme, { secret, body, stamp, id = 'msg_test', headers = {}, method = 'POST', url = '' }) {
  const bytes = asBytes(body);
  const name = typeof scheme === 'string' ? scheme : scheme.scheme;
  if (name === 'hmac') return genericHmac(scheme, { secret, body: bytes, stamp, headers, method, url });
  const preset = presets[name];
  if (!preset) throw new Error(`the signer does not know the scheme ${name}`);
  return preset({ secret, body: bytes, stamp, id });
}
