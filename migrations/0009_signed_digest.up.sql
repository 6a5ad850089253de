-- What a signature covers, where it does not cover the idempotency key (K15).
-- oldest-binary: 0.1.0
--
-- Reason: a key in an unsigned header can be exchanged by anybody who has seen the request. Then what was signed names the
-- callback too, so that the same signed bytes under another key are the same callback and have no second effect.

ALTER TABLE recibo.idempotency_keys ADD COLUMN signed_digest bytea
  CONSTRAINT idempotency_keys_signed_digest CHECK (octet_length(signed_digest) = 32);
COMMENT ON COLUMN recibo.idempotency_keys.signed_digest IS 'SHA-256 over what the signature covers; NULL: it covers the key.';
CREATE UNIQUE INDEX idempotency_keys_signed ON recibo.idempotency_keys (operation, signed_digest) WHERE signed_digest IS NOT NULL;

ALTER TABLE recibo.parked ADD COLUMN signed_digest bytea CONSTRAINT parked_signed_digest CHECK (octet_length(signed_digest) = 32);
COMMENT ON COLUMN recibo.parked.signed_digest IS 'SHA-256 over what the signature covers; NULL: it covers the key.';
