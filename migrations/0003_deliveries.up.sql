-- Deliveries: every authentic callback as it came, and its raw body.
-- oldest-binary: 0.1.0
--
-- Reason: evidence that is never updated (R27). Partitioned by month of the UUIDv7 itself, so that a row is found by its ID
-- alone and a month is retired whole. A body is stored once; deliveries point to it.

CREATE TABLE recibo.deliveries (
  id uuid NOT NULL,
  operation uuid,
  provider text COLLATE "C" NOT NULL,
  disposition text COLLATE "C" NOT NULL,
  received_at timestamptz NOT NULL,
  request_id text COLLATE "C",
  key bytea,
  event text,
  occurred_at timestamptz,
  provider_sequence bigint,
  body_digest bytea NOT NULL CONSTRAINT deliveries_body_digest_length CHECK (octet_length(body_digest) = 32),
  payload uuid NOT NULL,
  secret text COLLATE "C" NOT NULL,
  peer text COLLATE "C" NOT NULL,
  answer_status smallint NOT NULL,
  trace_id text COLLATE "C",
  CONSTRAINT deliveries_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
COMMENT ON TABLE recibo.deliveries IS 'One row per recorded callback, with its first disposition; never updated (decision: immutable deliveries).';
COMMENT ON COLUMN recibo.deliveries.id IS 'UUIDv7; its time is received_at.';
COMMENT ON COLUMN recibo.deliveries.operation IS 'operations.id; NULL where it belongs to none (unmapped, unprocessable).';
COMMENT ON COLUMN recibo.deliveries.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.deliveries.disposition IS 'What was decided when it came.';
COMMENT ON COLUMN recibo.deliveries.received_at IS 'By the service''s clock, when the request had been read.';
COMMENT ON COLUMN recibo.deliveries.request_id IS 'As the callback said it, where there is no operation; else NULL.';
COMMENT ON COLUMN recibo.deliveries.key IS 'Idempotency key, length-prefixed fields; NULL where it could not be extracted.';
COMMENT ON COLUMN recibo.deliveries.event IS 'The provider''s word.';
COMMENT ON COLUMN recibo.deliveries.occurred_at IS 'The provider''s event time.';
COMMENT ON COLUMN recibo.deliveries.provider_sequence IS 'The provider''s sequence.';
COMMENT ON COLUMN recibo.deliveries.body_digest IS 'SHA-256 of the raw body; stays when the payload is purged (R31).';
COMMENT ON COLUMN recibo.deliveries.payload IS 'payloads.id: its own ID, or the first delivery''s with the same bytes under the same key.';
COMMENT ON COLUMN recibo.deliveries.secret IS 'Name of the secret that verified it (R38).';
COMMENT ON COLUMN recibo.deliveries.peer IS 'Address of the sender''s socket.';
COMMENT ON COLUMN recibo.deliveries.answer_status IS 'HTTP status that was decided for it.';
COMMENT ON COLUMN recibo.deliveries.trace_id IS 'Trace of the request.';

CREATE TABLE recibo.payloads (
  id uuid NOT NULL,
  body bytea NOT NULL,
  content_type text NOT NULL,
  CONSTRAINT payloads_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
ALTER TABLE recibo.payloads ALTER COLUMN body SET COMPRESSION lz4;
COMMENT ON TABLE recibo.payloads IS 'Raw bodies, exactly the bytes that were signed (R13); purged before the deliveries are (R31).';
COMMENT ON COLUMN recibo.payloads.id IS 'The first delivery that brought these bytes.';
COMMENT ON COLUMN recibo.payloads.body IS 'Raw bytes, after transfer decoding, before anything else.';
COMMENT ON COLUMN recibo.payloads.content_type IS 'As the sender named it.';

GRANT SELECT, INSERT ON recibo.deliveries, recibo.payloads TO recibo_service;
