-- Which failed callback it is: the bytes, and what names the callback beside them.
-- oldest-binary: 0.1.0
--
-- Reason: two callbacks may have the same body and differ by a signed header alone, which is their key, or by the callback URL
-- of their operation. As one failed callback they would be replayed as one, and the other would be lost. What is parked with
-- items that could not be understood keeps what a replay will need of it, and which event of its request it was.

ALTER TABLE recibo.failed_callbacks ADD COLUMN key_beside bytea NOT NULL DEFAULT ''
  CONSTRAINT failed_callbacks_key_beside CHECK (octet_length(key_beside) IN (0, 32));
ALTER TABLE recibo.failed_callbacks DROP CONSTRAINT failed_callbacks_once;
ALTER TABLE recibo.failed_callbacks ADD CONSTRAINT failed_callbacks_once UNIQUE (provider, body_digest, key_beside);
COMMENT ON COLUMN recibo.failed_callbacks.key_beside IS 'SHA-256 over what names it and stands outside the body: the operation of its callback URL, identities, signed parts of the key; empty: nothing.';

ALTER TABLE recibo.parked ADD COLUMN key_beside bytea NOT NULL DEFAULT '';
ALTER TABLE recibo.parked ADD COLUMN part integer;
ALTER TABLE recibo.parked ADD COLUMN head text;
COMMENT ON COLUMN recibo.parked.key_beside IS 'As failed_callbacks.key_beside.';
COMMENT ON COLUMN recibo.parked.part IS 'Its place among the events of its request, from 0; NULL: the request is one event.';
COMMENT ON COLUMN recibo.parked.head IS 'As failed_callbacks.head, where some of its items could not be understood.';

COMMENT ON COLUMN recibo.signed_contents.owner IS 'operations.id; parked.id as long as it waits; failed_callbacks.id as long as that is open.';
COMMENT ON COLUMN recibo.signed_contents.key IS 'The key that it came under first, as in idempotency_keys; of a failed callback, the parts of it that are not signed.';
COMMENT ON COLUMN recibo.signed_contents.signed_digest IS 'SHA-256 over what the signature covers, with the parts of the key that stand there; of a failed callback, without these.';
