-- The reference schema of the competitors, frozen: what a careful team writes without Recibo. It records the same facts
-- (operation, key, delivery with its raw body, transition, hash-chained audit row, outbox row) with the same promise: one
-- transaction, the key unique, a late or repeated callback changes nothing. Identifiers are bigints, which is kinder to its
-- indexes than UUIDs. Changing this file makes old results incomparable; a new one gets a new name.
CREATE TABLE operations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  request_id text NOT NULL UNIQUE,
  provider text NOT NULL,
  action text NOT NULL,
  amount numeric(20, 2) NOT NULL,
  currency char(3) NOT NULL,
  state text NOT NULL DEFAULT 'accepted' CHECK (state IN ('accepted', 'processing', 'completed', 'failed')),
  version integer NOT NULL DEFAULT 0,
  chain bytea NOT NULL DEFAULT '\x',
  occurred_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE deliveries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  operation bigint NOT NULL REFERENCES operations,
  provider text NOT NULL,
  key text NOT NULL,
  event text NOT NULL,
  disposition text NOT NULL,
  occurred_at timestamptz,
  digest bytea NOT NULL,
  body bytea NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX deliveries_operation ON deliveries (operation);

CREATE TABLE idempotency_keys (
  provider text NOT NULL,
  key text NOT NULL,
  operation bigint NOT NULL REFERENCES operations,
  delivery bigint NOT NULL,
  digest bytea NOT NULL,
  disposition text NOT NULL,
  PRIMARY KEY (provider, key)
);

CREATE TABLE transitions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  operation bigint NOT NULL REFERENCES operations,
  version integer NOT NULL,
  event text NOT NULL,
  from_state text NOT NULL,
  to_state text NOT NULL,
  delivery bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (operation, version)
);

CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  operation bigint NOT NULL REFERENCES operations,
  kind text NOT NULL,
  delivery bigint,
  hash bytea NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_operation ON audit (operation);

CREATE TABLE notifications (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  operation bigint NOT NULL REFERENCES operations,
  type text NOT NULL,
  destination text NOT NULL,
  status text NOT NULL DEFAULT 'pending',
  attempts integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notifications_pending ON notifications (id) WHERE status = 'pending';
