-- Failed callbacks are replayed, discarded, or overtaken by a resend: each on record, and none twice.
-- oldest-binary: 0.1.0
--
-- Reason: extraction has to run again after the configuration was mended (R17, R37), so what it may read beside the body is
-- kept with the failed callback, without what authenticates. What became of a failed callback outlives its row, which is the
-- token that makes a second effect impossible.

ALTER TABLE recibo.failed_callbacks ADD COLUMN head text;
ALTER TABLE recibo.failed_callbacks ADD COLUMN signed_digest bytea
  CONSTRAINT failed_callbacks_signed_digest CHECK (octet_length(signed_digest) = 32);
ALTER TABLE recibo.failed_callbacks ADD COLUMN attempts integer NOT NULL DEFAULT 0;
ALTER TABLE recibo.failed_callbacks ADD COLUMN last_attempt_at timestamptz;
COMMENT ON COLUMN recibo.failed_callbacks.reason IS 'The stable word: malformed_json, missing_field, unmapped, …; of the last replay, where there was one.';
COMMENT ON COLUMN recibo.failed_callbacks.head IS 'Query and headers as JSON, without what authenticates; NULL: not kept.';
COMMENT ON COLUMN recibo.failed_callbacks.signed_digest IS 'SHA-256 over what the signature covers, for keys that it does not cover.';
COMMENT ON COLUMN recibo.failed_callbacks.attempts IS 'How often it was replayed and could still not be understood.';
COMMENT ON COLUMN recibo.failed_callbacks.last_attempt_at IS 'When it was last replayed.';

CREATE TABLE recibo.replays (
  id uuid PRIMARY KEY,
  failed_callback uuid NOT NULL,
  provider text COLLATE "C" NOT NULL,
  delivery uuid NOT NULL,
  action text COLLATE "C" NOT NULL CONSTRAINT replays_action CHECK (action IN ('replayed', 'met', 'resent', 'discarded')),
  at timestamptz NOT NULL,
  actor text NOT NULL,
  reason text,
  disposition text COLLATE "C",
  closes boolean NOT NULL,
  operation uuid,
  sequence integer,
  key bytea,
  resent_as uuid,
  CONSTRAINT replays_fact CHECK ((operation IS NULL) = (sequence IS NULL)),
  CONSTRAINT replays_disposition CHECK ((action IN ('replayed', 'met')) = (disposition IS NOT NULL)),
  CONSTRAINT replays_resent CHECK ((action = 'resent') = (resent_as IS NOT NULL))
);
COMMENT ON TABLE recibo.replays IS 'What was done about failed callbacks, and what became of them; only ever added to (R17).';
COMMENT ON COLUMN recibo.replays.id IS 'UUIDv7.';
COMMENT ON COLUMN recibo.replays.failed_callback IS 'failed_callbacks.id, which may be gone.';
COMMENT ON COLUMN recibo.replays.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.replays.delivery IS 'deliveries.id: the delivery that could not be understood.';
COMMENT ON COLUMN recibo.replays.action IS 'replayed: by a person; met: what was replayed and parked met its operation; resent: the provider sent it again and it was understood; discarded.';
COMMENT ON COLUMN recibo.replays.at IS 'When it was recorded.';
COMMENT ON COLUMN recibo.replays.actor IS 'Name of the API token or user; the provider for what it sent again.';
COMMENT ON COLUMN recibo.replays.reason IS 'Why.';
COMMENT ON COLUMN recibo.replays.disposition IS 'What was decided about it.';
COMMENT ON COLUMN recibo.replays.closes IS 'The failed callback is done with it.';
COMMENT ON COLUMN recibo.replays.operation IS 'operations.id, where it became part of an operation.';
COMMENT ON COLUMN recibo.replays.sequence IS 'Its audit row there.';
COMMENT ON COLUMN recibo.replays.key IS 'Idempotency key with which it was decided there.';
COMMENT ON COLUMN recibo.replays.resent_as IS 'deliveries.id of what was sent again.';
CREATE INDEX replays_failed_callback ON recibo.replays (failed_callback, id);
CREATE UNIQUE INDEX replays_fact_once ON recibo.replays (operation, sequence) WHERE operation IS NOT NULL;
CREATE UNIQUE INDEX replays_closed_once ON recibo.replays (failed_callback) WHERE closes;
GRANT SELECT, INSERT ON recibo.replays TO recibo_service;

ALTER TABLE recibo.parked ADD COLUMN replay uuid;
COMMENT ON COLUMN recibo.parked.replay IS 'replays.id of the replay that parked it; NULL: it was parked when it came.';
COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, item, items, event, payload_access, correction, workflow, review, replay.';
