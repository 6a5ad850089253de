-- What a signature covers, of callbacks that conflicted.
-- oldest-binary: 0.1.0
--
-- Reason: where the idempotency key is not signed, bytes that were refused as a conflict could be sent again under a key that
-- nobody has used, and would be applied. What was signed names the conflict too, so that it stays the same conflict.

ALTER TABLE recibo.reviews ADD COLUMN signed_digest bytea
  CONSTRAINT reviews_signed_digest CHECK (octet_length(signed_digest) = 32);
COMMENT ON COLUMN recibo.reviews.signed_digest IS 'For a conflict: SHA-256 over what its signature covers; NULL: it covers the key.';
CREATE INDEX reviews_signed ON recibo.reviews (operation, signed_digest) WHERE signed_digest IS NOT NULL;

CREATE INDEX parked_signed ON recibo.parked (provider, signed_digest) WHERE signed_digest IS NOT NULL;
COMMENT ON INDEX recibo.parked_signed IS 'Finds what waits by what was signed, where the key beside it is anybody''s to write.';
