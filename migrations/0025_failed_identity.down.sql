-- Two that differ by their key alone cannot both stand: the later one is given up, on record. Its delivery stays.
WITH gone AS (DELETE FROM recibo.failed_callbacks f USING recibo.failed_callbacks g
  WHERE f.provider = g.provider AND f.body_digest = g.body_digest AND f.id > g.id RETURNING f.id, f.provider, f.delivery)
INSERT INTO recibo.replays (id, failed_callback, provider, delivery, action, at, actor, reason, closes)
  SELECT DISTINCT ON (id) id, id, provider, delivery, 'discarded', now(), 'migration', 'the schema before cannot keep two with one body', true
  FROM gone;
DELETE FROM recibo.signed_contents s WHERE NOT EXISTS (SELECT FROM recibo.operations o WHERE o.id = s.owner)
  AND NOT EXISTS (SELECT FROM recibo.parked p WHERE p.id = s.owner);
ALTER TABLE recibo.failed_callbacks DROP COLUMN key_beside;
ALTER TABLE recibo.failed_callbacks ADD CONSTRAINT failed_callbacks_once UNIQUE (provider, body_digest);
ALTER TABLE recibo.parked DROP COLUMN key_beside, DROP COLUMN part, DROP COLUMN head;
COMMENT ON COLUMN recibo.signed_contents.owner IS 'operations.id, or parked.id as long as it waits.';
COMMENT ON COLUMN recibo.signed_contents.signed_digest IS 'SHA-256 over what the signature covers.';
COMMENT ON COLUMN recibo.signed_contents.key IS 'The key that it came under first, as in idempotency_keys.';
