// Bodies of the field cases whose bytes are fixed, with the HMAC of each (data/e2e/bodies.json).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sourceFolder } from './process.mjs';

const data = JSON.parse(readFileSync(join(sourceFolder, 'tests', 'data', 'e2e', 'bodies.json'), 'utf8'));

// The row's bytes: B0 with the row's changes.
export function bodyOf({ prefix = '', suffix = '', comma = ',', amount = '19.99' }) {
  return prefix + data.B0.replace('19.99', amount).replaceAll(',', comma) + suffix;
}

export const { B0, hmac: hmacTable, cut: cutBody, escapes: escapeBodies } = data;
export const B1 = bodyOf({ amount: '1999.00' });

// B0 or B1 for another operation and event; equal lengths give equal sizes.
export const likeB0 = (requestId, eventId) => B0.replace('req-1001', requestId).replace('evt-1', eventId);
export const likeB1 = (requestId, eventId) => B1.replace('req-1001', requestId).replace('evt-1', eventId);
