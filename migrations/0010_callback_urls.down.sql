ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN
  ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'alias_taken'));
COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, alias_taken.';
