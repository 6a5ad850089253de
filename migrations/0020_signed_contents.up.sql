-- Every content that came, signed, under a key that its signature does not cover.
-- oldest-binary: 0.1.0
--
-- Reason: a sender signs a retry anew, and two contents may come under one key. Of these only the first was remembered by what
-- was signed; the others' bytes, sent again under a key that nobody has used, would have been taken for news.

CREATE TABLE recibo.signed_contents (
  owner uuid NOT NULL,
  signed_digest bytea NOT NULL CONSTRAINT signed_contents_digest CHECK (octet_length(signed_digest) = 32),
  key bytea NOT NULL,
  seen_at timestamptz NOT NULL,
  CONSTRAINT signed_contents_pkey PRIMARY KEY (owner, signed_digest)
);
COMMENT ON TABLE recibo.signed_contents IS 'What was signed beside the first content of a key that is not signed: its bytes mean that key, whatever key stands beside them. Written under the operation''s row lock, or under the names of what is parked.';
COMMENT ON COLUMN recibo.signed_contents.owner IS 'operations.id, or parked.id as long as it waits.';
COMMENT ON COLUMN recibo.signed_contents.signed_digest IS 'SHA-256 over what the signature covers.';
COMMENT ON COLUMN recibo.signed_contents.key IS 'The key that it came under first, as in idempotency_keys.';
COMMENT ON COLUMN recibo.signed_contents.seen_at IS 'When it came first; for what was parked, when that was applied.';
CREATE INDEX signed_contents_digest ON recibo.signed_contents (signed_digest);
CREATE INDEX signed_contents_key ON recibo.signed_contents (owner, key);
COMMENT ON INDEX recibo.signed_contents_digest IS 'Finds what waits by what was signed.';
COMMENT ON INDEX recibo.signed_contents_key IS 'What goes with a key that expires.';

GRANT SELECT, INSERT, DELETE ON recibo.signed_contents TO recibo_service;
