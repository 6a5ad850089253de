ALTER TABLE recibo.parked DROP COLUMN signed_digest;
ALTER TABLE recibo.idempotency_keys DROP COLUMN signed_digest;
