ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN
  ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'alias_taken', 'identity_mismatch'));
DROP TABLE recibo.corrections;
ALTER TABLE recibo.operations DROP COLUMN corrected;
ALTER TABLE recibo.parked DROP COLUMN account;
ALTER TABLE recibo.registrations DROP COLUMN delivery, DROP COLUMN account;
COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, event, payload_access.';
