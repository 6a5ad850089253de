// Keys and JWTs of NATS' decentralised authentication, as `nsc` makes them: operator, account, user. Source: nkeys (the encoding of
// keys) and the jwt library, version 2 (the claims).
import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const prefixes = { operator: 14 << 3, account: 0, user: 20 << 3 };

function base32(bytes) {
  let out = '';
  let [kept, bits] = [0, 0];
  for (const byte of bytes) {
    kept = ((kept << 8) | byte) & 0xffff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out += letters[(kept >> bits) & 31];
    }
  }
  return bits > 0 ? out + letters[(kept << (5 - bits)) & 31] : out;
}

function checksum(bytes) {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let i = 0; i < 8; ++i) crc = ((crc & 0x8000) !== 0 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return Buffer.from([crc & 0xff, crc >> 8]);
}

const encode = (bytes) => base32(Buffer.concat([bytes, checksum(bytes)]));

// {kind, id, seed, sign(text)}
export function makeKey(kind) {
  const { privateKey } = generateKeyPairSync('ed25519');
  const jwk = privateKey.export({ format: 'jwk' });
  const [d, x] = [Buffer.from(jwk.d, 'base64url'), Buffer.from(jwk.x, 'base64url')];
  const prefix = prefixes[kind];
  const seed = encode(Buffer.concat([Buffer.from([(18 << 3) | (prefix >> 5), (prefix & 31) << 3]), d]));
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  return { kind, id: encode(Buffer.concat([Buffer.from([prefix]), x])), seed, sign: (text) => sign(null, Buffer.from(text), key) };
}

export function makeJwt(by, of, nats, { name = of.kind, expires } = {}) {
  const claims = { iat: Math.floor(Date.now() / 1_000), iss: by.id, name, sub: of.id, ...(expires ? { exp: expires } : {}), nats: { ...nats, type: of.kind, version: 2 } };
  claims.jti = base32(createHash('sha256').update(JSON.stringify(claims)).digest());
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`;
  return `${signed}.${by.sign(signed).toString('base64url')}`;
}

const unlimited = { subs: -1, data: -1, payload: -1 };

// An operator with one account that may have streams, as lines for the server's configuration; and users of that account.
export class Operator {
  constructor() {
    this.key = makeKey('operator');
    const [system, account] = [makeKey('account'), makeKey('account')];
    this.account = account;
    const limits = { ...unlimited, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
    const accounts = {
      [system.id]: makeJwt(this.key, system, { limits }, { name: 'SYS' }),
      [account.id]: makeJwt(this.key, account, { limits: { ...limits, mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 } }, { name: 'APP' }),
    };
    const own = makeJwt(this.key, this.key, { system_account: system.id });
    this.lines = `operator: "${own}"\nsystem_account: "${system.id}"\nresolver: MEMORY\nresolver_preload: {\n${Object.entries(accounts).map(([id, jwt]) => `  ${id}: "${jwt}"`).join('\n')}\n}`;
  }

  // {jwt, seed, file, as}: `file` is what nsc writes; `as` what a client says to a server that asks it to sign.
  user(options = {}) {
    const key = makeKey('user');
    const jwt = makeJwt(this.account, key, { ...unlimited, pub: {}, sub: {} }, options);
    return {
      jwt,
      seed: key.seed,
      file: `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n************************* IMPORTANT *************************\nNKEY Seed printed below can be used to sign and prove identity.\n\n-----BEGIN USER NKEY SEED-----\n${key.seed}\n------END USER NKEY SEED------\n\n*************************************************************\n`,
      as: ({ nonce }) => ({ jwt, sig: key.sign(nonce).toString('base64url') }),
    };
  }
}
