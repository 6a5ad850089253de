COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, account_mismatch, alias_taken, identity_mismatch, unknown_item, ambiguity, parked_age, overdue.';
UPDATE recibo.reviews SET kind = 'contradiction' WHERE kind = 'look_up';
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN (
  'contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch',
  'unknown_item', 'ambiguity', 'parked_age', 'overdue'));
ALTER TABLE recibo.deliveries DROP COLUMN look_up;
DROP TABLE recibo.catch_ups;
DROP TABLE recibo.look_up_lanes;
DROP TABLE recibo.look_up_attempts;
DROP TABLE recibo.look_ups;
