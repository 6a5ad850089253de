// The receiver that a team writes with Fastify and pg. MODE=statements: a statement each inside a transaction, as most do it;
// MODE=function: one call of record() (functions.sql), as the careful ones do it. Verifies, extracts and answers as Recibo does.
// Prints its port as JSON. Environment: MODE, PGHOST, PGPORT, PGUSER, PGDATABASE, SECRET, TOKEN, POOL.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import Fastify from 'fastify';
import pg from 'pg';

const { MODE, SECRET, TOKEN, POOL = '20' } = process.env;
const pool = new pg.Pool({ max: Number(POOL) });
const app = Fastify({ logger: false });
const provider = 'bench';
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();

// The raw body, since that is what is signed.
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => done(null, body));

function authentic(request) {
  const stamp = request.headers['x-timestamp'] ?? '';
  const given = /^sha256=([0-9a-f]{64})$/.exec(request.headers['x-signature'] ?? '')?.[1];
  if (given === undefined || Math.abs(Date.now() / 1000 - Number(stamp)) > 300) return false;
  const mac = createHmac('sha256', SECRET).update(`${stamp}.`).update(request.body).digest();
  return timingSafeEqual(mac, Buffer.from(given, 'hex'));
}

async function inTransaction(work) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const done = await work(client);
    await client.query('COMMIT');
    return done;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  } finally {
    client.release();
  }
}

const registerByFunction = async ({ request_id, action, amount, currency }) =>
  (await pool.query({ name: 'register', text: 'SELECT register($1, $2, $3, $4, $5) AS word', values: [request_id, provider, action, amount, currency] })).rows[0].word;

const registerByStatements = ({ request_id, action, amount, currency }) =>
  inTransaction(async (client) => {
    const fact = sha256('accepted', request_id);
    const made = await client.query(
      'INSERT INTO operations (request_id, provider, action, amount, currency, chain) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (request_id) DO NOTHING RETURNING id',
      [request_id, provider, action, amount, currency, fact],
    );
    if (made.rowCount === 0) return 'duplicate';
    await client.query("INSERT INTO audit (operation, kind, hash) VALUES ($1, 'accepted', $2)", [made.rows[0].id, fact]);
    await client.query("INSERT INTO notifications (operation, type, destination) VALUES ($1, 'operation.accepted', 'ledger')", [made.rows[0].id]);
    return 'registered';
  });

const recordByFunction = async (said, body) =>
  (
    await pool.query({
      name: 'record',
      text: 'SELECT record($1, $2, $3, $4, $5, $6, $7) AS word',
      values: [said.request_id, provider, said.event_id, said.status, said.occurred_at, sha256(body), body],
    })
  ).rows[0].word;

const recordByStatements = (said, body) =>
  inTransaction(async (client) => {
    const digest = sha256(body);
    const target = { succeeded: 'completed', failed: 'failed' }[said.status] ?? 'processing';
    const found = await client.query('SELECT id, state, version, chain FROM operations WHERE request_id = $1 AND provider = $2 FOR NO KEY UPDATE', [said.request_id, provider]);
    if (found.rowCount === 0) return 'unknown_operation';
    const o = found.rows[0];
    const earlier = await client.query('SELECT digest FROM idempotency_keys WHERE provider = $1 AND key = $2', [provider, said.event_id]);
    let word = 'applied';
    if (earlier.rowCount > 0) word = earlier.rows[0].digest.equals(digest) ? 'duplicate' : 'conflict';
    else if (o.state !== 'accepted' && (o.state !== 'processing' || target === 'processing')) word = 'stale';
    const made = await client.query(
      'INSERT INTO deliveries (operation, provider, key, event, disposition, occurred_at, digest, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id',
      [o.id, provider, said.event_id, said.status, word, said.occurred_at, digest, body],
    );
    const delivery = made.rows[0].id;
    const fact = sha256(o.chain, digest, word);
    await client.query('INSERT INTO audit (operation, kind, delivery, hash) VALUES ($1, $2, $3, $4)', [o.id, word, delivery, fact]);
    if (word === 'applied' || word === 'stale')
      await client.query('INSERT INTO idempotency_keys VALUES ($1, $2, $3, $4, $5, $6)', [provider, said.event_id, o.id, delivery, digest, word]);
    if (word !== 'applied') {
      await client.query('UPDATE operations SET chain = $2, updated_at = now() WHERE id = $1', [o.id, fact]);
      return word;
    }
    await client.query('UPDATE operations SET state = $2, version = version + 1, chain = $3, occurred_at = $4, updated_at = now() WHERE id = $1', [o.id, target, fact, said.occurred_at]);
    await client.query('INSERT INTO transitions (operation, version, event, from_state, to_state, delivery) VALUES ($1, $2, $3, $4, $5, $6)', [o.id, o.version + 1, said.status, o.state, target, delivery]);
    await client.query("INSERT INTO notifications (operation, type, destination) VALUES ($1, $2, 'ledger')", [o.id, `operation.${target}`]);
    return word;
  });

const byFunction = MODE === 'function';
const register = byFunction ? registerByFunction : registerByStatements;
const record = byFunction ? recordByFunction : recordByStatements;

app.post('/v1/operations', async (request, reply) => {
  if (request.headers.authorization !== `Bearer ${TOKEN}`) return reply.code(401).send({});
  const wanted = JSON.parse(request.body);
  const word = await register(wanted);
  return reply.code(word === 'registered' ? 201 : 200).send({ request_id: wanted.request_id, state: 'accepted' });
});

app.post('/callbacks/bench', async (request, reply) => {
  if (!authentic(request)) return reply.code(401).send({ code: 'unauthenticated' });
  const said = JSON.parse(request.body);
  const word = await record(said, request.body);
  if (word === 'unknown_operation') return reply.code(404).send({ code: word });
  if (word === 'conflict') return reply.code(409).send({ code: word });
  if (word === 'duplicate') reply.header('Idempotent-Replayed', 'true');
  return reply.code(200).send({ request_id: said.request_id, disposition: word });
});

await app.listen({ host: '127.0.0.1', port: 0 });
process.stdout.write(`${JSON.stringify({ port: app.server.address().port })}\n`);
