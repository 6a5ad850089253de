-- Callbacks that came before their operation (R11).
-- oldest-binary: 0.1.0
--
-- Reason: one-shot work rows. Who applies a parked callback deletes its row in the same transaction, so that nobody can
-- apply it again. Registration and whoever parks take the same advisory locks, so that the two never miss each other.

CREATE TABLE recibo.parked (
  id uuid PRIMARY KEY,
  provider text COLLATE "C" NOT NULL,
  identity text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  content_digest bytea NOT NULL,
  body_digest bytea NOT NULL,
  disposition text COLLATE "C" NOT NULL CONSTRAINT parked_disposition CHECK (disposition IN ('parked', 'conflict')),
  request_id text COLLATE "C",
  event text COLLATE "C" NOT NULL,
  event_raw text NOT NULL,
  occurred_at timestamptz,
  provider_sequence bigint,
  amount text COLLATE "C",
  currency text COLLATE "C",
  result text NOT NULL,
  secret text COLLATE "C" NOT NULL,
  answer_status smallint NOT NULL,
  duplicates integer NOT NULL DEFAULT 0,
  parked_at timestamptz NOT NULL,
  CONSTRAINT parked_once UNIQUE (provider, identity, key, content_digest)
) WITH (fillfactor = 80);
COMMENT ON TABLE recibo.parked IS 'Callbacks that wait for their operation; a row is deleted by the transaction that applies it.';
COMMENT ON COLUMN recibo.parked.id IS 'deliveries.id.';
COMMENT ON COLUMN recibo.parked.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.parked.identity IS '"r" and the request ID, or "a" and the first reference.';
COMMENT ON COLUMN recibo.parked.key IS 'Idempotency key; claimed when the callback is applied.';
COMMENT ON COLUMN recibo.parked.content_digest IS 'SHA-256 over the extracted fields, or the body.';
COMMENT ON COLUMN recibo.parked.body_digest IS 'SHA-256 of the raw body.';
COMMENT ON COLUMN recibo.parked.disposition IS 'parked, or conflict: another content under a key that is parked already.';
COMMENT ON COLUMN recibo.parked.request_id IS 'As the callback said it.';
COMMENT ON COLUMN recibo.parked.event IS 'Event of the workflow.';
COMMENT ON COLUMN recibo.parked.event_raw IS 'The provider''s word.';
COMMENT ON COLUMN recibo.parked.occurred_at IS 'The provider''s event time.';
COMMENT ON COLUMN recibo.parked.provider_sequence IS 'The provider''s sequence.';
COMMENT ON COLUMN recibo.parked.amount IS 'Decimal as said.';
COMMENT ON COLUMN recibo.parked.currency IS 'ISO 4217 code as said.';
COMMENT ON COLUMN recibo.parked.result IS 'Allow-listed fields as JSON text; empty: none.';
COMMENT ON COLUMN recibo.parked.secret IS 'Name of the secret that verified it.';
COMMENT ON COLUMN recibo.parked.answer_status IS 'Status that was answered.';
COMMENT ON COLUMN recibo.parked.duplicates IS 'How often it was repeated while it waited.';
COMMENT ON COLUMN recibo.parked.parked_at IS 'Since when it waits.';

CREATE TABLE recibo.parked_identities (
  kind text COLLATE "C" NOT NULL CONSTRAINT parked_identities_kind CHECK (kind IN ('request_id', 'reference')),
  provider text COLLATE "C" NOT NULL,
  identity text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  parked uuid NOT NULL,
  CONSTRAINT parked_identities_pkey PRIMARY KEY (provider, kind, identity, parked)
);
COMMENT ON TABLE recibo.parked_identities IS 'Every name by which a parked callback can be met by a registration or a learned reference.';
COMMENT ON COLUMN recibo.parked_identities.kind IS 'request_id or reference.';
COMMENT ON COLUMN recibo.parked_identities.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.parked_identities.identity IS 'The request ID or the reference.';
COMMENT ON COLUMN recibo.parked_identities.key IS 'parked.key, so that one of many under a name is found at once.';
COMMENT ON COLUMN recibo.parked_identities.parked IS 'parked.id.';
CREATE INDEX parked_identities_key ON recibo.parked_identities (provider, kind, identity, key);
CREATE INDEX parked_identities_parked ON recibo.parked_identities (parked);

GRANT SELECT, INSERT, UPDATE, DELETE ON recibo.parked TO recibo_service;
GRANT SELECT, INSERT, DELETE ON recibo.parked_identities TO recibo_service;
