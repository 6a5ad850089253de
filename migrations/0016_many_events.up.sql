-- Several events in one request (R41).
-- oldest-binary: 0.1.0
--
-- Reason: each event is a delivery with a key of its own, and the body is kept once, under the first of them. A repetition of one
-- of them must find it.

ALTER TABLE recibo.idempotency_keys ADD COLUMN payload uuid;
COMMENT ON COLUMN recibo.idempotency_keys.payload IS 'payloads.id of that delivery, where it is not its own: several events came in one request.';

ALTER TABLE recibo.parked ADD COLUMN payload uuid;
COMMENT ON COLUMN recibo.parked.payload IS 'payloads.id, where it is not its own: several events came in one request.';
