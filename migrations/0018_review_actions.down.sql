DELETE FROM recibo.reviews WHERE operation IS NULL;
UPDATE recibo.reviews SET kind = 'alias_taken' WHERE kind = 'ambiguity';
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch', 'unknown_item'));
DROP INDEX recibo.reviews_parked_once;
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_of_something;
ALTER TABLE recibo.reviews DROP COLUMN provider, DROP COLUMN request_id;
ALTER TABLE recibo.reviews ALTER COLUMN operation SET NOT NULL;
DROP TABLE recibo.review_actions;
