-- Look-ups: what a provider is asked, by whom and why, and what it answered (R23, R40, R44).
-- oldest-binary: 0.1.0
--
-- Reason: a hint is answered only once the look-up that it asks for cannot be lost, so that look-ups are rows: written with
-- what asks for them, claimed by any replica under a lease. Of one operation at most one waits and one is asked at a time,
-- which the two unique indexes state. What was answered is a delivery like any other.

CREATE TABLE recibo.look_ups (
  id uuid PRIMARY KEY,
  operation uuid NOT NULL,
  provider text COLLATE "C" NOT NULL,
  reference text COLLATE "C" NOT NULL DEFAULT '',
  cause text COLLATE "C" NOT NULL CONSTRAINT look_ups_cause CHECK (cause IN ('request', 'hint', 'state', 'catch_up')),
  asked_by text NOT NULL,
  asked_at timestamptz NOT NULL,
  times integer NOT NULL DEFAULT 1,
  catch_up uuid,
  status text COLLATE "C" NOT NULL DEFAULT 'queued' CONSTRAINT look_ups_status CHECK (status IN ('queued', 'asking', 'answered', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz,
  lease_until timestamptz,
  leased_by uuid,
  reason text COLLATE "C",
  settled_at timestamptz,
  delivery uuid,
  disposition text COLLATE "C",
  CONSTRAINT look_ups_settled CHECK ((status IN ('answered', 'failed')) = (settled_at IS NOT NULL)),
  CONSTRAINT look_ups_answered CHECK (status <> 'answered' OR delivery IS NOT NULL),
  CONSTRAINT look_ups_lease CHECK ((lease_until IS NULL) = (leased_by IS NULL)),
  CONSTRAINT look_ups_held CHECK (status = 'asking' OR lease_until IS NULL)
) WITH (fillfactor = 70);
COMMENT ON TABLE recibo.look_ups IS 'Questions to a provider about one operation; claimed by lease, bounded in attempts (R23).';
COMMENT ON COLUMN recibo.look_ups.id IS 'UUIDv7.';
COMMENT ON COLUMN recibo.look_ups.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.look_ups.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.look_ups.reference IS 'The reference that a hint named and that is asked by; empty: the operation''s own.';
COMMENT ON COLUMN recibo.look_ups.cause IS 'request: somebody asked; hint: a callback without news; state: a state was entered; catch_up: after an outage.';
COMMENT ON COLUMN recibo.look_ups.asked_by IS 'Name of the API token or user; the provider for a hint; recibo for a state.';
COMMENT ON COLUMN recibo.look_ups.asked_at IS 'When it was first asked for.';
COMMENT ON COLUMN recibo.look_ups.times IS 'How often it was asked for before it began.';
COMMENT ON COLUMN recibo.look_ups.catch_up IS 'catch_ups.id, where one asked for it.';
COMMENT ON COLUMN recibo.look_ups.status IS 'queued: not begun; asking: begun, perhaps between two attempts; answered; failed: given up.';
COMMENT ON COLUMN recibo.look_ups.attempts IS 'Attempts so far; counted before the attempt.';
COMMENT ON COLUMN recibo.look_ups.next_attempt_at IS 'Not before; NULL: at once.';
COMMENT ON COLUMN recibo.look_ups.lease_until IS 'Until when its holder may settle it; NULL: nobody holds it.';
COMMENT ON COLUMN recibo.look_ups.leased_by IS 'The holder: one running service.';
COMMENT ON COLUMN recibo.look_ups.reason IS 'The word for what became of the last attempt that failed.';
COMMENT ON COLUMN recibo.look_ups.settled_at IS 'When it was answered or given up.';
COMMENT ON COLUMN recibo.look_ups.delivery IS 'deliveries.id of the answer, or of what opened a review instead.';
COMMENT ON COLUMN recibo.look_ups.disposition IS 'What was decided about the answer.';
CREATE UNIQUE INDEX look_ups_one_queued ON recibo.look_ups (operation, reference) WHERE status = 'queued';
CREATE UNIQUE INDEX look_ups_one_asking ON recibo.look_ups (operation, reference) WHERE status = 'asking';
CREATE INDEX look_ups_open ON recibo.look_ups (provider, id) WHERE status IN ('queued', 'asking');
CREATE INDEX look_ups_operation ON recibo.look_ups (operation, id);
CREATE INDEX look_ups_catch_up ON recibo.look_ups (catch_up) WHERE catch_up IS NOT NULL;

CREATE TABLE recibo.look_up_attempts (
  look_up uuid NOT NULL,
  attempt integer NOT NULL,
  at timestamptz NOT NULL,
  host text NOT NULL,
  duration_ms integer NOT NULL,
  answer_status smallint,
  outcome text COLLATE "C" NOT NULL,
  CONSTRAINT look_up_attempts_pkey PRIMARY KEY (look_up, attempt)
);
COMMENT ON TABLE recibo.look_up_attempts IS 'What each request of a look-up came to; only ever added to.';
COMMENT ON COLUMN recibo.look_up_attempts.look_up IS 'look_ups.id.';
COMMENT ON COLUMN recibo.look_up_attempts.attempt IS 'From 1.';
COMMENT ON COLUMN recibo.look_up_attempts.at IS 'When its outcome was recorded.';
COMMENT ON COLUMN recibo.look_up_attempts.host IS 'The host that was asked; path and query are not kept.';
COMMENT ON COLUMN recibo.look_up_attempts.duration_ms IS 'From the call to the last byte of the answer.';
COMMENT ON COLUMN recibo.look_up_attempts.answer_status IS 'HTTP status; NULL: no answer.';
COMMENT ON COLUMN recibo.look_up_attempts.outcome IS 'answered, or the word for what went wrong.';

CREATE TABLE recibo.look_up_lanes (
  provider text COLLATE "C" PRIMARY KEY,
  tokens double precision NOT NULL,
  tokens_at timestamptz NOT NULL,
  breaker text COLLATE "C" NOT NULL DEFAULT 'closed' CONSTRAINT look_up_lanes_breaker CHECK (breaker IN ('closed', 'open', 'half_open')),
  retry_at timestamptz,
  openings integer NOT NULL DEFAULT 0,
  CONSTRAINT look_up_lanes_breaker_times CHECK ((breaker = 'closed') = (retry_at IS NULL))
);
COMMENT ON TABLE recibo.look_up_lanes IS 'What the replicas agree on about asking a provider: its rate and its breaker.';
COMMENT ON COLUMN recibo.look_up_lanes.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.look_up_lanes.tokens IS 'Requests that may be made at once, as of tokens_at.';
COMMENT ON COLUMN recibo.look_up_lanes.tokens_at IS 'When tokens were last counted.';
COMMENT ON COLUMN recibo.look_up_lanes.breaker IS 'closed: all is asked; open: nothing is; half_open: one is tried.';
COMMENT ON COLUMN recibo.look_up_lanes.retry_at IS 'When the next one is tried.';
COMMENT ON COLUMN recibo.look_up_lanes.openings IS 'How often it opened in a row; the waits grow with it.';

CREATE TABLE recibo.catch_ups (
  id uuid PRIMARY KEY,
  provider text COLLATE "C" NOT NULL,
  started_at timestamptz NOT NULL,
  started_by text NOT NULL,
  since timestamptz NOT NULL,
  place uuid NOT NULL,
  asked bigint NOT NULL DEFAULT 0,
  listed_at timestamptz
);
COMMENT ON TABLE recibo.catch_ups IS 'Look-ups about all open operations of a provider, after an outage (R44).';
COMMENT ON COLUMN recibo.catch_ups.id IS 'UUIDv7.';
COMMENT ON COLUMN recibo.catch_ups.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.catch_ups.started_at IS 'When.';
COMMENT ON COLUMN recibo.catch_ups.started_by IS 'Name of the API token or user; recibo.';
COMMENT ON COLUMN recibo.catch_ups.since IS 'Operations accepted since then.';
COMMENT ON COLUMN recibo.catch_ups.place IS 'operations.id up to which all have been seen.';
COMMENT ON COLUMN recibo.catch_ups.asked IS 'How many operations are looked up because of it.';
COMMENT ON COLUMN recibo.catch_ups.listed_at IS 'When the last operation had been seen; the look-ups themselves may go on.';
CREATE UNIQUE INDEX catch_ups_one_listing ON recibo.catch_ups (provider) WHERE listed_at IS NULL;

GRANT SELECT, INSERT, UPDATE ON recibo.look_ups, recibo.look_up_lanes, recibo.catch_ups TO recibo_service;
GRANT SELECT, INSERT ON recibo.look_up_attempts TO recibo_service;

ALTER TABLE recibo.deliveries ADD COLUMN look_up uuid;
COMMENT ON COLUMN recibo.deliveries.look_up IS 'look_ups.id: nobody sent it, it was fetched; then peer is the host that was asked, and secret is empty.';

ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN (
  'contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch',
  'unknown_item', 'ambiguity', 'parked_age', 'overdue', 'look_up'));
COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, account_mismatch, alias_taken, identity_mismatch, unknown_item, ambiguity, parked_age, overdue, look_up.';
