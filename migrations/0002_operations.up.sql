-- Operations, what was registered, and every name by which an operation can be found.
-- oldest-binary: 0.1.0
--
-- Reason: `operations` is updated by each recorded fact, so it is narrow, unpartitioned, and has no index on a column that
-- changes: updates stay heap-only. Everything that never changes lives in `registrations`.

CREATE TABLE recibo.operations (
  id uuid PRIMARY KEY,
  request_id text COLLATE "C" NOT NULL CONSTRAINT operations_request_id_length CHECK (octet_length(request_id) BETWEEN 1 AND 255),
  provider text COLLATE "C" NOT NULL,
  workflow bigint NOT NULL,
  state text COLLATE "C" NOT NULL,
  version integer NOT NULL CONSTRAINT operations_version_not_negative CHECK (version >= 0),
  revision integer NOT NULL CONSTRAINT operations_revision_positive CHECK (revision >= 1),
  watermark_at timestamptz,
  watermark_sequence bigint,
  sequence integer NOT NULL CONSTRAINT operations_sequence_covers_version CHECK (sequence > version),
  chain_hash bytea NOT NULL CONSTRAINT operations_chain_hash_length CHECK (octet_length(chain_hash) = 32),
  review_open boolean NOT NULL DEFAULT false,
  state_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT operations_request_id_key UNIQUE (request_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE recibo.operations IS 'One row per accepted operation: its present state. Hot: one UPDATE per batch and operation.';
COMMENT ON COLUMN recibo.operations.id IS 'UUIDv7, made by the service when it accepted; its time is the accept time.';
COMMENT ON COLUMN recibo.operations.request_id IS 'The stable outside identity, unique in the installation (R1, R35).';
COMMENT ON COLUMN recibo.operations.provider IS 'Name in the configuration; callbacks of another provider never touch the row (R35).';
COMMENT ON COLUMN recibo.operations.workflow IS 'workflow_versions.version_key under which it was accepted.';
COMMENT ON COLUMN recibo.operations.state IS 'Present state, a word of that workflow.';
COMMENT ON COLUMN recibo.operations.version IS 'Number of applied transitions.';
COMMENT ON COLUMN recibo.operations.revision IS 'Raised by every change of the row; the ETag of the API.';
COMMENT ON COLUMN recibo.operations.watermark_at IS 'Latest event time that a provider''s applied event carried; breaks ties only (R10).';
COMMENT ON COLUMN recibo.operations.watermark_sequence IS 'Highest provider sequence applied; rules under `order: sequence` only (R10).';
COMMENT ON COLUMN recibo.operations.sequence IS 'Number of audit rows of the operation; the last one''s sequence.';
COMMENT ON COLUMN recibo.operations.chain_hash IS 'Hash of the last audit row: the head of the chain (R28).';
COMMENT ON COLUMN recibo.operations.review_open IS 'An open review item stands beside the state.';
COMMENT ON COLUMN recibo.operations.state_at IS 'When the present state was entered.';
COMMENT ON COLUMN recibo.operations.updated_at IS 'When the row last changed.';

CREATE TABLE recibo.registrations (
  operation uuid PRIMARY KEY,
  client text COLLATE "C" NOT NULL,
  action text NOT NULL,
  reference text COLLATE "C",
  amount text COLLATE "C",
  currency text COLLATE "C" CONSTRAINT registrations_currency_code CHECK (currency ~ '^[A-Z]{3}$'),
  deadline timestamptz,
  metadata jsonb NOT NULL DEFAULT '{}',
  intent bytea NOT NULL CONSTRAINT registrations_intent_length CHECK (octet_length(intent) = 32),
  accepted_at timestamptz NOT NULL,
  trace_id text COLLATE "C"
);
COMMENT ON TABLE recibo.registrations IS 'What the client registered; immutable.';
COMMENT ON COLUMN recibo.registrations.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.registrations.client IS 'Name of the API token that registered: the tenant (R35).';
COMMENT ON COLUMN recibo.registrations.action IS 'What was asked of the provider, in the client''s word.';
COMMENT ON COLUMN recibo.registrations.reference IS 'The provider''s reference, where it was known at registration; also an alias.';
COMMENT ON COLUMN recibo.registrations.amount IS 'Decimal as given, digit for digit.';
COMMENT ON COLUMN recibo.registrations.currency IS 'ISO 4217 code.';
COMMENT ON COLUMN recibo.registrations.deadline IS 'When the client wants it done; later than this it is overdue.';
COMMENT ON COLUMN recibo.registrations.metadata IS 'The client''s own fields; searchable, never interpreted.';
COMMENT ON COLUMN recibo.registrations.intent IS 'SHA-256 over the meaningful fields: equal intent is the same registration (R3).';
COMMENT ON COLUMN recibo.registrations.accepted_at IS 'When it was accepted, by the service''s clock.';
COMMENT ON COLUMN recibo.registrations.trace_id IS 'Trace of the accepting request.';
CREATE INDEX registrations_metadata ON recibo.registrations USING gin (metadata jsonb_path_ops) WHERE metadata <> '{}';

CREATE TABLE recibo.aliases (
  provider text COLLATE "C" NOT NULL,
  alias text COLLATE "C" NOT NULL CONSTRAINT aliases_alias_length CHECK (octet_length(alias) BETWEEN 1 AND 255),
  operation uuid NOT NULL,
  learned_at timestamptz NOT NULL,
  CONSTRAINT aliases_pkey PRIMARY KEY (provider, alias)
);
COMMENT ON TABLE recibo.aliases IS 'The provider''s own references; each unique per provider, several per operation (R34).';
COMMENT ON COLUMN recibo.aliases.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.aliases.alias IS 'The reference, byte for byte.';
COMMENT ON COLUMN recibo.aliases.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.aliases.learned_at IS 'At registration or later.';
CREATE INDEX aliases_operation ON recibo.aliases (operation);

CREATE TABLE recibo.items (
  operation uuid NOT NULL,
  item_id text COLLATE "C" NOT NULL CONSTRAINT items_item_id_length CHECK (octet_length(item_id) BETWEEN 1 AND 255),
  ordinal integer NOT NULL,
  state text COLLATE "C" NOT NULL,
  version integer NOT NULL DEFAULT 0,
  watermark_at timestamptz,
  watermark_sequence bigint,
  updated_at timestamptz NOT NULL,
  CONSTRAINT items_pkey PRIMARY KEY (operation, item_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE recibo.items IS 'The items of a batch operation, each with its own state (R7).';
COMMENT ON COLUMN recibo.items.operation IS 'operations.id; its row lock covers the items.';
COMMENT ON COLUMN recibo.items.item_id IS 'Identity within the operation.';
COMMENT ON COLUMN recibo.items.ordinal IS 'Position in the registration, from 0.';
COMMENT ON COLUMN recibo.items.state IS 'Present state, a word of the operation''s workflow.';
COMMENT ON COLUMN recibo.items.version IS 'Number of applied transitions of the item.';
COMMENT ON COLUMN recibo.items.watermark_at IS 'As operations.watermark_at, for the item.';
COMMENT ON COLUMN recibo.items.watermark_sequence IS 'As operations.watermark_sequence, for the item.';
COMMENT ON COLUMN recibo.items.updated_at IS 'When the row last changed.';

CREATE TABLE recibo.idempotency_keys (
  operation uuid NOT NULL,
  key bytea NOT NULL,
  delivery uuid NOT NULL,
  content_digest bytea NOT NULL,
  body_digest bytea NOT NULL,
  disposition text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  answer_status smallint NOT NULL,
  answer_body text,
  duplicates integer NOT NULL DEFAULT 0,
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (operation, key)
) WITH (fillfactor = 90);
COMMENT ON TABLE recibo.idempotency_keys IS 'Claimed keys of callbacks, scope [operation, key]; written and read under the operation''s row lock (R15).';
COMMENT ON COLUMN recibo.idempotency_keys.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.idempotency_keys.key IS 'Length-prefixed fields of the key, never joined text.';
COMMENT ON COLUMN recibo.idempotency_keys.delivery IS 'The delivery that holds the claim.';
COMMENT ON COLUMN recibo.idempotency_keys.content_digest IS 'SHA-256 over the extracted fields, or the body (`content: bytes`): equal is the same content.';
COMMENT ON COLUMN recibo.idempotency_keys.body_digest IS 'SHA-256 of the raw body of that delivery.';
COMMENT ON COLUMN recibo.idempotency_keys.disposition IS 'What was decided and answered.';
COMMENT ON COLUMN recibo.idempotency_keys.state IS 'State in that answer.';
COMMENT ON COLUMN recibo.idempotency_keys.answer_status IS 'Status of that answer; a later change of `answers` does not change it.';
COMMENT ON COLUMN recibo.idempotency_keys.answer_body IS 'Literal body of that answer; NULL: the standard JSON made of the columns here.';
COMMENT ON COLUMN recibo.idempotency_keys.duplicates IS 'How often it was repeated; the first hundred have a delivery row each (R27).';

CREATE TABLE recibo.client_keys (
  client text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL CONSTRAINT client_keys_key_length CHECK (octet_length(key) BETWEEN 1 AND 255),
  operation uuid NOT NULL,
  fingerprint bytea NOT NULL,
  used_at timestamptz NOT NULL,
  CONSTRAINT client_keys_pkey PRIMARY KEY (client, key)
);
COMMENT ON TABLE recibo.client_keys IS 'Idempotency-Key headers of API clients, scoped by client (R4, R35).';
COMMENT ON COLUMN recibo.client_keys.client IS 'Name of the API token.';
COMMENT ON COLUMN recibo.client_keys.key IS 'The header''s value.';
COMMENT ON COLUMN recibo.client_keys.operation IS 'The operation that the request was about.';
COMMENT ON COLUMN recibo.client_keys.fingerprint IS 'SHA-256 over the request: another request under the same key is refused.';
COMMENT ON COLUMN recibo.client_keys.used_at IS 'When it was first used.';

GRANT SELECT, INSERT, UPDATE ON recibo.operations, recibo.items, recibo.idempotency_keys TO recibo_service;
GRANT SELECT, INSERT ON recibo.registrations, recibo.aliases, recibo.client_keys TO recibo_service;
