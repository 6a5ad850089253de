// The rows that one round is about, by the owner's own session.

// A UUIDv7 that is older than any made at that instant.
const floorId = (ms) => {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-0000-0000-000000000000`;
};

// IDs begin with the service's time, which is this machine's; the margin is for the moment between stamp and note.
const marginMs = 5_000;

// `book` names the operations; deliveries are those since the round began.
export async function read(client, book) {
  const query = async (text, values) => (await client.query(text, values)).rows;
  const ids = [[...book.operations.keys()]];
  const operations = await query(
    'SELECT id, request_id, provider, state, version, sequence, review_open FROM recibo.operations WHERE request_id = ANY($1)',
    ids,
  );
  const known = [operations.map((o) => o.id)];
  return {
    operations,
    audit: await query('SELECT operation, sequence, kind, delivery FROM recibo.audit WHERE operation = ANY($1) ORDER BY operation, sequence', known),
    transitions: await query(
      'SELECT operation, sequence, version, event, from_state, to_state, delivery, actor_kind FROM recibo.transitions WHERE operation = ANY($1)',
      known,
    ),
    keys: await query('SELECT operation, delivery, disposition, state, duplicates FROM recibo.idempotency_keys WHERE operation = ANY($1)', known),
    aliases: await query('SELECT operation, provider, alias FROM recibo.aliases WHERE operation = ANY($1)', known),
    reviews: await query('SELECT operation, kind, delivery, status, count FROM recibo.reviews WHERE operation = ANY($1)', known),
    notifications: await query('SELECT operation, sequence, type, destination FROM recibo.notifications WHERE operation = ANY($1)', known),
    deliveries: await query(
      `SELECT id, operation, provider, disposition, encode(body_digest, 'hex') AS digest FROM recibo.deliveries WHERE id >= $1 ORDER BY id`,
      [floorId(book.since - marginMs)],
    ),
    parked: await query("SELECT id, provider, request_id, disposition, encode(body_digest, 'hex') AS digest FROM recibo.parked"),
    failed: await query("SELECT provider, disposition, delivery, count, encode(body_digest, 'hex') AS digest FROM recibo.failed_callbacks"),
  };
}
