-- The transactional outbox: what downstream must be told, written with the fact itself (R14, R19).
-- oldest-binary: 0.1.0
--
-- Reason: a row points at the transition that it speaks of, so that nothing is copied. Order per operation and destination is
-- the operation's own sequence.

CREATE TABLE recibo.notifications (
  id uuid NOT NULL,
  operation uuid NOT NULL,
  sequence integer NOT NULL,
  destination text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL DEFAULT 'pending'
    CONSTRAINT notifications_status CHECK (status IN ('pending', 'delivered', 'held', 'dead', 'discarded')),
  attempts integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  next_attempt_at timestamptz,
  lease_until timestamptz,
  leased_by uuid,
  delivered_at timestamptz,
  CONSTRAINT notifications_pkey PRIMARY KEY (operation, sequence, destination),
  CONSTRAINT notifications_delivered_at CHECK ((status = 'delivered') = (delivered_at IS NOT NULL))
);
COMMENT ON TABLE recibo.notifications IS 'Outbox: one row per fact and subscribed destination.';
COMMENT ON COLUMN recibo.notifications.id IS 'UUIDv7; the event ID that consumers de-duplicate by, the same for all attempts.';
COMMENT ON COLUMN recibo.notifications.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.notifications.sequence IS 'The audit row of the fact; order per operation and destination.';
COMMENT ON COLUMN recibo.notifications.destination IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.notifications.type IS 'operation.accepted, operation.<state>, operation.review_opened, operation.review_resolved.';
COMMENT ON COLUMN recibo.notifications.status IS 'pending, delivered, held, dead, discarded.';
COMMENT ON COLUMN recibo.notifications.attempts IS 'Attempts begun.';
COMMENT ON COLUMN recibo.notifications.created_at IS 'When the fact was recorded.';
COMMENT ON COLUMN recibo.notifications.next_attempt_at IS 'Not before; NULL: at once.';
COMMENT ON COLUMN recibo.notifications.lease_until IS 'A dispatcher holds it until then.';
COMMENT ON COLUMN recibo.notifications.leased_by IS 'Which one: the fence against a late return.';
COMMENT ON COLUMN recibo.notifications.delivered_at IS 'When the destination answered 2xx.';

GRANT SELECT, INSERT, UPDATE ON recibo.notifications TO recibo_service;
