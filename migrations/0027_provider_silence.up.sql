-- What is told of providers that go silent, how many callbacks are expected of them, and clean-up that waits for nobody.
-- oldest-binary: 0.1.0
--
-- Reason: whoever is notified of operations may want to hear that a provider has gone silent (R30). That belongs to no operation, so
-- that a provider has a key of its own, which its notifications are in order of; it is written with the change itself. And replicas
-- that sweep at the same time must not wait for each other's rows.

ALTER TABLE recibo.provider_activity
  ADD COLUMN key uuid NOT NULL DEFAULT overlay(gen_random_uuid()::text placing 'ffffffff' from 1 for 8)::uuid,
  ADD COLUMN told integer NOT NULL DEFAULT 0,
  ADD COLUMN silent_reason text COLLATE "C" CONSTRAINT provider_activity_reason CHECK (silent_reason IN ('quiet', 'below_rate')),
  ADD COLUMN rate_within_s bigint,
  ADD COLUMN rate_since timestamptz;
ALTER TABLE recibo.provider_activity ADD CONSTRAINT provider_activity_key UNIQUE (key);
COMMENT ON COLUMN recibo.provider_activity.key IS 'Stands for it in notifications.operation; no operation has such an ID.';
COMMENT ON COLUMN recibo.provider_activity.told IS 'How many changes were told; the last one of provider_events.';
COMMENT ON COLUMN recibo.provider_activity.silent_reason IS 'quiet: nothing came for silence_alert; below_rate: less than expected_rate; NULL: it is not silent.';
COMMENT ON COLUMN recibo.provider_activity.rate_within_s IS 'expected_rate.within in seconds; NULL: no rate is expected.';
COMMENT ON COLUMN recibo.provider_activity.rate_since IS 'Since when callbacks are counted for that: a window that began before says nothing.';

CREATE TABLE recibo.provider_counts (
  provider text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  callbacks bigint NOT NULL,
  CONSTRAINT provider_counts_pkey PRIMARY KEY (provider, at)
);
COMMENT ON TABLE recibo.provider_counts IS 'Callbacks that verified, of all replicas, by slots of a sixtieth of expected_rate.within; older ones go (R30).';
COMMENT ON COLUMN recibo.provider_counts.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.provider_counts.at IS 'When the slot begins.';
COMMENT ON COLUMN recibo.provider_counts.callbacks IS 'How many.';
GRANT SELECT, INSERT, UPDATE, DELETE ON recibo.provider_counts TO recibo_service;

CREATE TABLE recibo.provider_events (
  key uuid NOT NULL,
  sequence integer NOT NULL,
  provider text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL CONSTRAINT provider_events_type CHECK (type IN ('provider.silent', 'provider.resumed')),
  reason text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  silent_since timestamptz NOT NULL,
  heard_at timestamptz,
  CONSTRAINT provider_events_pkey PRIMARY KEY (key, sequence)
);
COMMENT ON TABLE recibo.provider_events IS 'When providers went silent and spoke again; what notifications about them point at. Only ever added to.';
COMMENT ON COLUMN recibo.provider_events.key IS 'provider_activity.key.';
COMMENT ON COLUMN recibo.provider_events.sequence IS 'From 1, for each provider.';
COMMENT ON COLUMN recibo.provider_events.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.provider_events.type IS 'provider.silent or provider.resumed.';
COMMENT ON COLUMN recibo.provider_events.reason IS 'Why it was silent: provider_activity.silent_reason.';
COMMENT ON COLUMN recibo.provider_events.at IS 'When it was found.';
COMMENT ON COLUMN recibo.provider_events.silent_since IS 'When it was found silent.';
COMMENT ON COLUMN recibo.provider_events.heard_at IS 'When a callback of it last verified; NULL: never.';
GRANT SELECT, INSERT ON recibo.provider_events TO recibo_service;

COMMENT ON COLUMN recibo.notifications.operation IS 'operations.id; of what is told of a provider provider_activity.key.';
COMMENT ON COLUMN recibo.notifications.sequence IS 'The audit row of the fact, or the provider_events row; order per operation, or provider, and destination.';
COMMENT ON COLUMN recibo.notifications.type IS 'operation.accepted, operation.<state>, operation.review_opened, operation.review_resolved, provider.silent, provider.resumed.';

-- As before, but for rows that another replica is just deleting.
CREATE OR REPLACE FUNCTION recibo.sweep_notification_attempts(older_than interval, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  gone integer;
BEGIN
  DELETE FROM recibo.notification_attempts a USING (
    SELECT o.notification, o.attempt FROM recibo.notification_attempts o
    WHERE o.at < now() - greatest(older_than, interval '1 day') LIMIT least(most, 10000) FOR UPDATE SKIP LOCKED
  ) old WHERE a.notification = old.notification AND a.attempt = old.attempt;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END
$$;
