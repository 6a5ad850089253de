-- Outages of providers, catch-ups that begin with the newest, lists of events that are tried again, and what an answer lets be
-- repeated.
-- oldest-binary: 0.1.0
--
-- Reason: while a provider is known to be out its limits stand still, as they do while no replica is ready (R44). What an outage has hit
-- are the newest operations, whose limits run out first. A list of events that could not be read is not forgotten. A retry is raised
-- only by an answer that says that nothing has happened (R23), which is judged by the provider's words when the answer is decided. And
-- who was taken out of the configuration and put back is not silent for that.

ALTER TABLE recibo.look_ups ADD COLUMN repeatable text;
COMMENT ON COLUMN recibo.look_ups.repeatable IS 'JSON list of what may be repeated by the answer: IDs of items, "" for the operation; NULL: nothing.';

CREATE TABLE recibo.provider_downtimes (
  id uuid NOT NULL DEFAULT gen_random_uuid() CONSTRAINT provider_downtimes_pkey PRIMARY KEY,
  provider text COLLATE "C" NOT NULL,
  cause text COLLATE "C" NOT NULL CONSTRAINT provider_downtimes_cause CHECK (cause IN ('silence', 'look_ups')),
  began_at timestamptz NOT NULL,
  known_until timestamptz NOT NULL,
  ended_at timestamptz,
  CONSTRAINT provider_downtimes_known CHECK (known_until > began_at),
  CONSTRAINT provider_downtimes_last CHECK (ended_at >= began_at)
);
COMMENT ON TABLE recibo.provider_downtimes IS 'When providers were known to be out (R44); a few rows for each, looked up when something runs out.';
COMMENT ON COLUMN recibo.provider_downtimes.id IS 'UUIDv4; nothing refers to it.';
COMMENT ON COLUMN recibo.provider_downtimes.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.provider_downtimes.cause IS 'silence: nothing came for silence_alert; look_ups: it did not answer, so that the breaker opened.';
COMMENT ON COLUMN recibo.provider_downtimes.began_at IS 'When it was last heard; when the breaker opened.';
COMMENT ON COLUMN recibo.provider_downtimes.known_until IS 'Not longer, whether it ends or not: what is known gets old.';
COMMENT ON COLUMN recibo.provider_downtimes.ended_at IS 'When it spoke again, or answered; NULL: it did not yet.';
CREATE UNIQUE INDEX provider_downtimes_one ON recibo.provider_downtimes (provider, cause) WHERE ended_at IS NULL;
CREATE INDEX provider_downtimes_provider ON recibo.provider_downtimes (provider, began_at);
GRANT SELECT, INSERT, UPDATE ON recibo.provider_downtimes TO recibo_service;

ALTER TABLE recibo.provider_activity ADD COLUMN put_back_at timestamptz;
COMMENT ON COLUMN recibo.provider_activity.put_back_at IS 'When it was watched again after it had not been in the configuration; NULL: it always was.';

ALTER TABLE recibo.catch_ups ADD COLUMN below uuid;
COMMENT ON COLUMN recibo.catch_ups.below IS 'operations.id down to which all have been seen, from the newest on; NULL: none yet.';
COMMENT ON COLUMN recibo.catch_ups.place IS 'operations.id up to which all have been seen, by a binary that went upwards.';

ALTER TABLE recibo.event_lists ADD COLUMN rounds integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN recibo.event_lists.rounds IS 'How often all attempts at the next page were in vain.';
ALTER TABLE recibo.event_lists DROP CONSTRAINT event_lists_reason;
ALTER TABLE recibo.event_lists ADD CONSTRAINT event_lists_reason CHECK (reason IS NULL OR ended_at IS NOT NULL OR attempts > 0 OR rounds > 0);

-- As before, and lists of events and catch-ups that came to nothing.
CREATE OR REPLACE FUNCTION recibo.sweep_look_ups(older_than interval, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  bound timestamptz := now() - greatest(older_than, interval '1 day');
  first_kept uuid := (lpad(to_hex((extract(epoch FROM bound) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
  tried integer;
  gone integer;
BEGIN
  DELETE FROM recibo.look_up_attempts a USING (
    SELECT o.look_up, o.attempt FROM recibo.look_up_attempts o WHERE o.look_up < first_kept AND o.at < bound
    ORDER BY o.look_up, o.attempt LIMIT least(most, 10000) FOR UPDATE SKIP LOCKED
  ) old WHERE a.look_up = old.look_up AND a.attempt = old.attempt;
  GET DIAGNOSTICS tried = ROW_COUNT;
  DELETE FROM recibo.look_ups l USING (
    SELECT o.id FROM recibo.look_ups o WHERE o.settled_at IS NOT NULL
    AND coalesce(o.disposition, '') NOT IN ('applied', 'partial', 'review', 'conflict') AND o.settled_at < bound
    ORDER BY o.settled_at LIMIT least(most, 10000) FOR UPDATE SKIP LOCKED
  ) old WHERE l.id = old.id;
  GET DIAGNOSTICS gone = ROW_COUNT;
  DELETE FROM recibo.event_lists e USING (
    SELECT o.id FROM recibo.event_lists o WHERE o.ended_at < bound AND o.healed = 0 AND o.parked = 0 AND o.review = 0
    ORDER BY o.id LIMIT 100 FOR UPDATE SKIP LOCKED
  ) old WHERE e.id = old.id;
  DELETE FROM recibo.catch_ups c USING (
    SELECT o.id FROM recibo.catch_ups o WHERE o.listed_at < bound
    AND NOT EXISTS (SELECT FROM recibo.look_ups l WHERE l.catch_up = o.id) ORDER BY o.id LIMIT 100 FOR UPDATE SKIP LOCKED
  ) old WHERE c.id = old.id;
  RETURN tried + gone;
END
$$;
COMMENT ON FUNCTION recibo.sweep_look_ups(interval, integer) IS 'Deletes attempts and look-ups without effect older than the interval, at least a day, at most so many of each, and event lists and catch-ups without effect; returns how many of the former.';
