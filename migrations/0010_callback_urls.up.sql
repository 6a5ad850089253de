-- One more reason for a review: a callback at the URL of one operation that names another (R42).
-- oldest-binary: 0.1.0
--
-- Reason: the URL authenticates for its own operation alone, so that such a callback moves neither, and a person looks.

ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN
  ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'alias_taken', 'identity_mismatch'));
COMMENT ON COLUMN recibo.reviews.kind IS
  'contradiction, conflict, amount_mismatch, currency_mismatch, alias_taken, identity_mismatch.';
