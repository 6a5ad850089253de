-- What waits for a person: reviews and callbacks that could not be understood.
-- oldest-binary: 0.1.0
--
-- Reason: small tables beside the hot ones, so that lists of open work never scan history (R17, R25).

CREATE TABLE recibo.reviews (
  id uuid PRIMARY KEY,
  operation uuid NOT NULL,
  kind text COLLATE "C" NOT NULL
    CONSTRAINT reviews_kind CHECK (kind IN ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'alias_taken')),
  digest bytea NOT NULL,
  key bytea NOT NULL DEFAULT '',
  delivery uuid NOT NULL,
  first_delivery uuid,
  first_digest bytea,
  detail text NOT NULL,
  state text COLLATE "C" NOT NULL,
  owner text NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'open' CONSTRAINT reviews_status CHECK (status IN ('open', 'resolved')),
  count integer NOT NULL DEFAULT 1,
  opened_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  due_at timestamptz,
  assigned_to text,
  resolved_at timestamptz,
  resolved_by text,
  resolution text,
  reason text,
  CONSTRAINT reviews_resolved_at CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
) WITH (fillfactor = 80);
COMMENT ON TABLE recibo.reviews IS 'Exceptions that a person must decide; resolving one is an event with actor and reason (R25).';
COMMENT ON COLUMN recibo.reviews.id IS 'UUIDv7.';
COMMENT ON COLUMN recibo.reviews.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, alias_taken.';
COMMENT ON COLUMN recibo.reviews.digest IS 'Content digest of the delivery that opened it: the same content again only raises the count.';
COMMENT ON COLUMN recibo.reviews.key IS 'For a conflict: the idempotency key, length-prefixed fields; else empty.';
COMMENT ON COLUMN recibo.reviews.delivery IS 'The delivery that opened it.';
COMMENT ON COLUMN recibo.reviews.first_delivery IS 'For a conflict: the delivery that holds the key.';
COMMENT ON COLUMN recibo.reviews.first_digest IS 'For a conflict: its content digest.';
COMMENT ON COLUMN recibo.reviews.detail IS 'Why, in words without payload.';
COMMENT ON COLUMN recibo.reviews.state IS 'State of the operation when it was opened: the last safe state.';
COMMENT ON COLUMN recibo.reviews.owner IS 'From the workflow: who has to act; empty where nobody is named.';
COMMENT ON COLUMN recibo.reviews.status IS 'open or resolved.';
COMMENT ON COLUMN recibo.reviews.count IS 'How often the same was seen.';
COMMENT ON COLUMN recibo.reviews.opened_at IS 'When it was opened.';
COMMENT ON COLUMN recibo.reviews.last_seen_at IS 'When the same was last seen.';
COMMENT ON COLUMN recibo.reviews.due_at IS 'Age limit.';
COMMENT ON COLUMN recibo.reviews.assigned_to IS 'Who took it.';
COMMENT ON COLUMN recibo.reviews.resolved_at IS 'When it was resolved.';
COMMENT ON COLUMN recibo.reviews.resolved_by IS 'By whom.';
COMMENT ON COLUMN recibo.reviews.resolution IS 'What was decided.';
COMMENT ON COLUMN recibo.reviews.reason IS 'Why.';
CREATE INDEX reviews_operation ON recibo.reviews (operation, digest);
CREATE UNIQUE INDEX reviews_open_once ON recibo.reviews (operation, kind, digest, key) WHERE status = 'open';
CREATE INDEX reviews_open ON recibo.reviews (id) WHERE status = 'open';

CREATE TABLE recibo.failed_callbacks (
  id uuid PRIMARY KEY,
  provider text COLLATE "C" NOT NULL,
  body_digest bytea NOT NULL,
  disposition text COLLATE "C" NOT NULL CONSTRAINT failed_callbacks_disposition CHECK (disposition IN ('unprocessable', 'unmapped')),
  reason text COLLATE "C" NOT NULL,
  detail text NOT NULL,
  delivery uuid NOT NULL,
  request_id text COLLATE "C",
  event text,
  answer_status smallint NOT NULL,
  count integer NOT NULL DEFAULT 1,
  first_seen_at timestamptz NOT NULL,
  last_seen_at timestamptz NOT NULL,
  CONSTRAINT failed_callbacks_once UNIQUE (provider, body_digest)
) WITH (fillfactor = 80);
COMMENT ON TABLE recibo.failed_callbacks IS 'Authentic callbacks that could not be understood; a row is deleted when it has been replayed or discarded (R17, R37).';
COMMENT ON COLUMN recibo.failed_callbacks.id IS 'UUIDv7.';
COMMENT ON COLUMN recibo.failed_callbacks.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.failed_callbacks.body_digest IS 'SHA-256 of the raw body: the same bytes again only raise the count.';
COMMENT ON COLUMN recibo.failed_callbacks.disposition IS 'unprocessable or unmapped.';
COMMENT ON COLUMN recibo.failed_callbacks.reason IS 'The stable word: malformed_json, missing_field, unmapped, …';
COMMENT ON COLUMN recibo.failed_callbacks.detail IS 'What is wrong, without payload.';
COMMENT ON COLUMN recibo.failed_callbacks.delivery IS 'The delivery with its raw body.';
COMMENT ON COLUMN recibo.failed_callbacks.request_id IS 'Where it could be extracted.';
COMMENT ON COLUMN recibo.failed_callbacks.event IS 'The provider''s word, where it could be extracted.';
COMMENT ON COLUMN recibo.failed_callbacks.answer_status IS 'HTTP status of the first answer; a repetition gets the same.';
COMMENT ON COLUMN recibo.failed_callbacks.count IS 'How often it came.';
COMMENT ON COLUMN recibo.failed_callbacks.first_seen_at IS 'When it first came.';
COMMENT ON COLUMN recibo.failed_callbacks.last_seen_at IS 'When it last came.';

CREATE TABLE recibo.payload_accesses (
  id uuid PRIMARY KEY,
  delivery uuid NOT NULL,
  at timestamptz NOT NULL,
  actor text NOT NULL,
  operation uuid,
  sequence integer
);
COMMENT ON TABLE recibo.payload_accesses IS 'Who looked at which raw body, and when (R29).';
COMMENT ON COLUMN recibo.payload_accesses.id IS 'UUIDv7.';
COMMENT ON COLUMN recibo.payload_accesses.delivery IS 'deliveries.id.';
COMMENT ON COLUMN recibo.payload_accesses.at IS 'When.';
COMMENT ON COLUMN recibo.payload_accesses.actor IS 'Name of the API token.';
COMMENT ON COLUMN recibo.payload_accesses.operation IS 'operations.id of the delivery, where it has one.';
COMMENT ON COLUMN recibo.payload_accesses.sequence IS 'Its audit row, where it has an operation.';

CREATE INDEX payload_accesses_delivery ON recibo.payload_accesses (delivery);

GRANT SELECT, INSERT, UPDATE ON recibo.reviews TO recibo_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON recibo.failed_callbacks TO recibo_service;
GRANT SELECT, INSERT ON recibo.payload_accesses TO recibo_service;
