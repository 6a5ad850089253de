// The outbox poller that a team writes with pg and fetch: takes a hundred rows with SKIP LOCKED, posts them, sixteen at a time, each
// signed, and marks each as delivered in the transaction that took them. Ends when nothing is left.
// Environment: URL, SECRET (whsec_…), PGHOST, PGPORT, PGUSER, PGDATABASE. Prints what it took as JSON.
import { createHmac } from 'node:crypto';
import pg from 'pg';

const { URL: url, SECRET } = process.env;
const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
const atOnce = 16;
const client = new pg.Client();
await client.connect();

async function post(row) {
  const body = JSON.stringify({
    id: `evt_${row.id}`,
    type: row.type,
    timestamp: row.created_at.toISOString(),
    data: { request_id: row.request_id, provider: row.provider, state: row.state, version: row.version, amount: row.amount, currency: row.currency },
  });
  const seconds = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', key).update(`evt_${row.id}.${seconds}.${body}`).digest('base64');
  const headers = { 'content-type': 'application/json', 'webhook-id': `evt_${row.id}`, 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
  const answer = await fetch(url, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  const status = answer.ok ? 'delivered' : 'pending';
  await client.query({ name: 'mark', text: 'UPDATE notifications SET status = $2, attempts = attempts + 1 WHERE id = $1', values: [row.id, status] });
}

const began = Date.now();
let delivered = 0;
for (;;) {
  await client.query('BEGIN');
  const { rows } = await client.query({
    name: 'claim',
    text: `SELECT n.id, n.type, n.created_at, o.request_id, o.provider, o.state, o.version, o.amount::text, o.currency
           FROM notifications n JOIN operations o ON o.id = n.operation
           WHERE n.status = 'pending' ORDER BY n.id LIMIT 100 FOR UPDATE OF n SKIP LOCKED`,
  });
  let next = 0;
  const sender = async () => {
    while (next < rows.length) await post(rows[next++]);
  };
  await Promise.all(Array.from({ length: atOnce }, sender));
  await client.query('COMMIT');
  delivered += rows.length;
  if (rows.length === 0) break;
}
process.stdout.write(`${JSON.stringify({ delivered, milliseconds: Date.now() - began })}\n`);
await client.end();
