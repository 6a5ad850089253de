-- Keys of a whole provider, keys that are kept for a time only, and callbacks that nobody's registration ever met.
-- oldest-binary: 0.1.0
--
-- Reason: within the scope [provider, key] another operation's claim must be found, and two may not be made at once, so the
-- index is unique. Both new indexes hold only rows that need them: the usual key costs nothing more. What a sweeper takes away
-- leaves a trace, so that a missing claim is either explained or a fault (R4, R43).

ALTER TABLE recibo.idempotency_keys ADD COLUMN provider text COLLATE "C";
ALTER TABLE recibo.idempotency_keys ADD COLUMN expires_at timestamptz;
COMMENT ON COLUMN recibo.idempotency_keys.provider IS 'Under the scope [provider, key]: whose key it is; NULL: it means something for its operation only.';
COMMENT ON COLUMN recibo.idempotency_keys.expires_at IS 'When it may be swept; NULL: it is kept as long as its operation.';
CREATE UNIQUE INDEX idempotency_keys_provider ON recibo.idempotency_keys (provider, key) WHERE provider IS NOT NULL;
CREATE INDEX idempotency_keys_expires ON recibo.idempotency_keys (expires_at) WHERE expires_at IS NOT NULL;
GRANT DELETE ON recibo.idempotency_keys TO recibo_service;

CREATE TABLE recibo.swept_keys (
  operation uuid PRIMARY KEY,
  through uuid NOT NULL,
  count integer NOT NULL CONSTRAINT swept_keys_count_positive CHECK (count > 0),
  swept_at timestamptz NOT NULL
);
COMMENT ON TABLE recibo.swept_keys IS 'Operations of which keys have expired (R4): a delivery whose key is not there is no fault up to here.';
COMMENT ON COLUMN recibo.swept_keys.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.swept_keys.through IS 'The latest delivery whose key was swept.';
COMMENT ON COLUMN recibo.swept_keys.count IS 'How many keys were swept so far.';
COMMENT ON COLUMN recibo.swept_keys.swept_at IS 'When the last of them was.';
GRANT SELECT, INSERT, UPDATE ON recibo.swept_keys TO recibo_service;

CREATE TABLE recibo.unclaimed (
  delivery uuid PRIMARY KEY,
  provider text COLLATE "C" NOT NULL,
  request_id text COLLATE "C",
  parked_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  CONSTRAINT unclaimed_ended_later CHECK (ended_at >= parked_at)
);
COMMENT ON TABLE recibo.unclaimed IS 'Parked callbacks that were given up, because no operation came in time; their deliveries stay (R43).';
COMMENT ON COLUMN recibo.unclaimed.delivery IS 'deliveries.id.';
COMMENT ON COLUMN recibo.unclaimed.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.unclaimed.request_id IS 'As the callback said it.';
COMMENT ON COLUMN recibo.unclaimed.parked_at IS 'Since when it waited.';
COMMENT ON COLUMN recibo.unclaimed.ended_at IS 'When it was given up.';
GRANT SELECT, INSERT ON recibo.unclaimed TO recibo_service;
