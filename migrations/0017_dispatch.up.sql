-- Delivery of the outbox: which rows are due, what each attempt came to, and what stands in the way of a destination.
-- oldest-binary: 0.1.0
--
-- Reason: any replica may deliver, so that what they have to agree on (leases, breakers, pauses) stands here. The index of
-- what is due holds pending rows only, so that it stays as small as the backlog (R19).

ALTER TABLE recibo.notifications
  ADD COLUMN reason text COLLATE "C",
  ADD COLUMN reason_class text COLLATE "C" CONSTRAINT notifications_reason_class CHECK (reason_class IN ('theirs', 'ours')),
  ADD COLUMN dead_at timestamptz,
  ADD COLUMN attempts_before integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN recibo.notifications.reason IS 'The word for what became of the last attempt that failed.';
COMMENT ON COLUMN recibo.notifications.reason_class IS 'theirs: the destination did not take it; ours: what we send or are configured with.';
COMMENT ON COLUMN recibo.notifications.dead_at IS 'When it was given up.';
COMMENT ON COLUMN recibo.notifications.attempts_before IS 'Attempts that the schedule does not count: those before the last replay, and those that were given back unsent.';
CREATE UNIQUE INDEX notifications_id ON recibo.notifications (id);
CREATE INDEX notifications_due ON recibo.notifications (destination, (coalesce(next_attempt_at, created_at))) WHERE status = 'pending';
CREATE INDEX notifications_stopped ON recibo.notifications (destination, operation, sequence) WHERE status IN ('held', 'dead');

CREATE TABLE recibo.notification_attempts (
  notification uuid NOT NULL,
  attempt integer NOT NULL,
  destination text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  answer_status smallint,
  outcome text COLLATE "C" NOT NULL,
  excerpt text,
  CONSTRAINT notification_attempts_pkey PRIMARY KEY (notification, attempt)
);
COMMENT ON TABLE recibo.notification_attempts IS 'What each attempt to deliver a notification came to.';
COMMENT ON COLUMN recibo.notification_attempts.notification IS 'notifications.id.';
COMMENT ON COLUMN recibo.notification_attempts.attempt IS 'From 1; counted before the attempt.';
COMMENT ON COLUMN recibo.notification_attempts.destination IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.notification_attempts.at IS 'When its outcome was recorded.';
COMMENT ON COLUMN recibo.notification_attempts.duration_ms IS 'From the first byte out to the last byte in.';
COMMENT ON COLUMN recibo.notification_attempts.answer_status IS 'HTTP status; NULL: no answer.';
COMMENT ON COLUMN recibo.notification_attempts.outcome IS 'delivered, or the word for what went wrong.';
COMMENT ON COLUMN recibo.notification_attempts.excerpt IS 'The beginning of the answer to a failed attempt: printable characters of it.';

CREATE INDEX notification_attempts_at ON recibo.notification_attempts USING brin (at);

CREATE TABLE recibo.notification_actions (
  action uuid NOT NULL,
  notification uuid NOT NULL,
  kind text COLLATE "C" NOT NULL CONSTRAINT notification_actions_kind CHECK (kind IN ('replay', 'discard')),
  actor text NOT NULL,
  reason text NOT NULL,
  at timestamptz NOT NULL,
  CONSTRAINT notification_actions_pkey PRIMARY KEY (notification, action)
);
COMMENT ON TABLE recibo.notification_actions IS 'What people did about notifications; the business state is untouched by it (R20).';
COMMENT ON COLUMN recibo.notification_actions.action IS 'UUIDv7; one per request, which may be about many notifications.';
COMMENT ON COLUMN recibo.notification_actions.notification IS 'notifications.id.';
COMMENT ON COLUMN recibo.notification_actions.kind IS 'replay or discard.';
COMMENT ON COLUMN recibo.notification_actions.actor IS 'Name of the API token.';
COMMENT ON COLUMN recibo.notification_actions.reason IS 'Why.';
COMMENT ON COLUMN recibo.notification_actions.at IS 'When.';

CREATE TABLE recibo.destinations (
  name text COLLATE "C" PRIMARY KEY,
  paused_at timestamptz,
  paused_by text,
  paused_reason text,
  breaker text COLLATE "C" NOT NULL DEFAULT 'closed' CONSTRAINT destinations_breaker CHECK (breaker IN ('closed', 'open', 'half_open')),
  breaker_since timestamptz,
  retry_at timestamptz,
  openings integer NOT NULL DEFAULT 0,
  CONSTRAINT destinations_paused CHECK ((paused_at IS NULL) = (paused_by IS NULL)),
  CONSTRAINT destinations_breaker_times CHECK ((breaker = 'closed') = (retry_at IS NULL))
);
COMMENT ON TABLE recibo.destinations IS 'What the replicas agree on about a destination; a row comes with the first trouble (R19, R21).';
COMMENT ON COLUMN recibo.destinations.name IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.destinations.paused_at IS 'Nothing is sent since then, until it is resumed.';
COMMENT ON COLUMN recibo.destinations.paused_by IS 'Name of the API token; recibo: what the destination answered.';
COMMENT ON COLUMN recibo.destinations.paused_reason IS 'gone, unauthorized, or an operator''s words.';
COMMENT ON COLUMN recibo.destinations.breaker IS 'closed: all is sent; open: nothing is; half_open: one is tried.';
COMMENT ON COLUMN recibo.destinations.breaker_since IS 'When the trouble began that it is not closed for.';
COMMENT ON COLUMN recibo.destinations.retry_at IS 'When the next one is tried.';
COMMENT ON COLUMN recibo.destinations.openings IS 'How often it opened in a row; the waits grow with it.';

GRANT SELECT, INSERT ON recibo.notification_attempts, recibo.notification_actions TO recibo_service;
GRANT SELECT, INSERT, UPDATE ON recibo.destinations TO recibo_service;
