-- Transitions and the audit chain.
-- oldest-binary: 0.1.0
--
-- Reason: append-only history that proves itself (R28). Partitioned by the operation's ID, which begins with its accept
-- time, so that retiring a month never cuts the chain of an operation.

CREATE TABLE recibo.transitions (
  operation uuid NOT NULL,
  sequence integer NOT NULL,
  version integer NOT NULL,
  item_id text COLLATE "C",
  event text COLLATE "C" NOT NULL,
  from_state text COLLATE "C" NOT NULL,
  to_state text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  actor_kind text COLLATE "C" NOT NULL CONSTRAINT transitions_actor_kind CHECK (actor_kind IN ('provider', 'client', 'operator', 'clock')),
  actor text NOT NULL,
  delivery uuid,
  reason text,
  evidence jsonb,
  result text,
  notifications smallint NOT NULL DEFAULT 0,
  CONSTRAINT transitions_pkey PRIMARY KEY (operation, sequence)
) PARTITION BY RANGE (operation);
COMMENT ON TABLE recibo.transitions IS 'Every applied move of the workflow table; replaying them gives the present state (invariant 3).';
COMMENT ON COLUMN recibo.transitions.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.transitions.sequence IS 'The audit row of the fact that made it.';
COMMENT ON COLUMN recibo.transitions.version IS 'operations.version (or items.version) after it.';
COMMENT ON COLUMN recibo.transitions.item_id IS 'The item that moved; NULL: the operation.';
COMMENT ON COLUMN recibo.transitions.event IS 'Event of the workflow.';
COMMENT ON COLUMN recibo.transitions.from_state IS 'State before.';
COMMENT ON COLUMN recibo.transitions.to_state IS 'State after.';
COMMENT ON COLUMN recibo.transitions.at IS 'When it was recorded.';
COMMENT ON COLUMN recibo.transitions.actor_kind IS 'Who raised the event.';
COMMENT ON COLUMN recibo.transitions.actor IS 'Provider, or name of the API token.';
COMMENT ON COLUMN recibo.transitions.delivery IS 'The callback that caused it.';
COMMENT ON COLUMN recibo.transitions.reason IS 'Given by a client or operator.';
COMMENT ON COLUMN recibo.transitions.evidence IS 'Given by a client or operator.';
COMMENT ON COLUMN recibo.transitions.result IS 'Allow-listed fields of what the provider said, as JSON text digit for digit (R39).';
COMMENT ON COLUMN recibo.transitions.notifications IS 'Number of outbox rows written with it (invariant 4).';

CREATE TABLE recibo.audit (
  operation uuid NOT NULL,
  sequence integer NOT NULL,
  kind text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  actor text NOT NULL,
  delivery uuid,
  digest bytea NOT NULL CONSTRAINT audit_digest_length CHECK (octet_length(digest) = 32),
  hash bytea NOT NULL CONSTRAINT audit_hash_length CHECK (octet_length(hash) = 32),
  CONSTRAINT audit_pkey PRIMARY KEY (operation, sequence)
) PARTITION BY RANGE (operation);
COMMENT ON TABLE recibo.audit IS 'One row per recorded fact of an operation, chained by hash; `recibo audit verify` recomputes it (R28).';
COMMENT ON COLUMN recibo.audit.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.audit.sequence IS 'From 1, without gaps.';
COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, event, payload_access.';
COMMENT ON COLUMN recibo.audit.at IS 'When it was recorded.';
COMMENT ON COLUMN recibo.audit.actor IS 'Provider, or name of the API token.';
COMMENT ON COLUMN recibo.audit.delivery IS 'The delivery that the fact is about, where there is one.';
COMMENT ON COLUMN recibo.audit.digest IS 'SHA-256 of the canonical fact, recomputed from the rows it is about.';
COMMENT ON COLUMN recibo.audit.hash IS 'SHA-256 over the previous hash and digest.';

GRANT SELECT, INSERT ON recibo.transitions, recibo.audit TO recibo_service;
