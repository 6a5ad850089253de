DROP TABLE recibo.unclaimed;
DROP TABLE recibo.swept_keys;
REVOKE DELETE ON recibo.idempotency_keys FROM recibo_service;
DROP INDEX recibo.idempotency_keys_expires;
DROP INDEX recibo.idempotency_keys_provider;
ALTER TABLE recibo.idempotency_keys DROP COLUMN expires_at, DROP COLUMN provider;
