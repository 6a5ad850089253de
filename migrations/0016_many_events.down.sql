ALTER TABLE recibo.parked DROP COLUMN payload;
ALTER TABLE recibo.idempotency_keys DROP COLUMN payload;
