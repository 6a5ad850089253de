DROP INDEX recibo.parked_signed;
ALTER TABLE recibo.reviews DROP COLUMN signed_digest;
