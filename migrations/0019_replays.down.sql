ALTER TABLE recibo.parked DROP COLUMN replay;
DROP TABLE recibo.replays;
ALTER TABLE recibo.failed_callbacks DROP COLUMN head, DROP COLUMN signed_digest, DROP COLUMN attempts, DROP COLUMN last_attempt_at;
