-- What providers are asked: before a retry, by their event lists, and not for ever.
-- oldest-binary: 0.1.0
--
-- Reason: a retry is decided by what the provider says now (R23), so that a look-up knows which facts there were when it was
-- asked for. A provider that asks to be left alone is left alone by all replicas, whatever is restarted. What never
-- arrived is found in the provider's own list of events (R44), page by page. Old look-ups and attempts have an end, and
-- operations that were moved by a binary without timers get theirs.

ALTER TABLE recibo.look_ups ADD COLUMN sequence integer;
COMMENT ON COLUMN recibo.look_ups.sequence IS 'operations.sequence when it was asked for ahead of a retry; else NULL.';
ALTER TABLE recibo.look_ups DROP CONSTRAINT look_ups_cause;
ALTER TABLE recibo.look_ups ADD CONSTRAINT look_ups_cause CHECK (cause IN ('request', 'hint', 'state', 'catch_up', 'retry'));
COMMENT ON COLUMN recibo.look_ups.cause IS 'request: somebody asked; hint: a callback without news; state: a state was entered; catch_up: after an outage; retry: ahead of a retry.';
CREATE INDEX look_ups_swept ON recibo.look_ups (settled_at) WHERE settled_at IS NOT NULL
  AND coalesce(disposition, '') NOT IN ('applied', 'partial', 'review', 'conflict');

ALTER TABLE recibo.look_up_lanes ADD COLUMN asked_until timestamptz;
COMMENT ON COLUMN recibo.look_up_lanes.asked_until IS 'Until when the provider asked not to be asked; NULL: it did not.';

-- The service may not delete; this does it, a bounded number at a time. What moved an operation or needs a person stays.
CREATE FUNCTION recibo.sweep_look_ups(older_than interval, most integer) RETURNS integer
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
  RETURN tried + gone;
END
$$;
COMMENT ON FUNCTION recibo.sweep_look_ups(interval, integer) IS 'Deletes attempts and look-ups without effect older than the interval, at least a day, at most so many of each; returns how many.';
REVOKE ALL ON FUNCTION recibo.sweep_look_ups(interval, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recibo.sweep_look_ups(interval, integer) TO recibo_service;

CREATE TABLE recibo.timer_repairs (
  only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT timer_repairs_only_row CHECK (only_row),
  place uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  ended_at timestamptz
);
COMMENT ON TABLE recibo.timer_repairs IS 'One row: how far operations have been looked through for timers that are missing (R22).';
COMMENT ON COLUMN recibo.timer_repairs.only_row IS 'Always true.';
COMMENT ON COLUMN recibo.timer_repairs.place IS 'operations.id up to which all have been seen.';
COMMENT ON COLUMN recibo.timer_repairs.ended_at IS 'When all had been seen; NULL: one pass is under way.';
INSERT INTO recibo.timer_repairs DEFAULT VALUES;
GRANT SELECT, UPDATE ON recibo.timer_repairs TO recibo_service;

CREATE TABLE recibo.event_lists (
  id uuid PRIMARY KEY,
  provider text COLLATE "C" NOT NULL,
  started_at timestamptz NOT NULL,
  started_by text NOT NULL,
  since timestamptz NOT NULL,
  cursor text COLLATE "C" NOT NULL DEFAULT '',
  pages integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz,
  lease_until timestamptz,
  leased_by uuid,
  events bigint NOT NULL DEFAULT 0,
  healed bigint NOT NULL DEFAULT 0,
  known bigint NOT NULL DEFAULT 0,
  parked bigint NOT NULL DEFAULT 0,
  review bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  ended_at timestamptz,
  reason text COLLATE "C",
  CONSTRAINT event_lists_lease CHECK ((lease_until IS NULL) = (leased_by IS NULL)),
  CONSTRAINT event_lists_reason CHECK (reason IS NULL OR ended_at IS NOT NULL OR attempts > 0)
);
COMMENT ON TABLE recibo.event_lists IS 'Reading a provider''s list of events after an outage, page by page (R44).';
COMMENT ON COLUMN recibo.event_lists.id IS 'UUIDv7; deliveries.look_up of what it brought.';
COMMENT ON COLUMN recibo.event_lists.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.event_lists.started_at IS 'When.';
COMMENT ON COLUMN recibo.event_lists.started_by IS 'Name of the API token or user; outage.';
COMMENT ON COLUMN recibo.event_lists.since IS 'Events since then.';
COMMENT ON COLUMN recibo.event_lists.cursor IS 'What the next page is asked by; empty: it is the first.';
COMMENT ON COLUMN recibo.event_lists.pages IS 'Pages whose events are on record.';
COMMENT ON COLUMN recibo.event_lists.attempts IS 'Attempts at the next page; counted before the attempt.';
COMMENT ON COLUMN recibo.event_lists.next_attempt_at IS 'Not before; NULL: at once.';
COMMENT ON COLUMN recibo.event_lists.lease_until IS 'Until when its holder may settle the page; NULL: nobody holds it.';
COMMENT ON COLUMN recibo.event_lists.leased_by IS 'The holder: one running service.';
COMMENT ON COLUMN recibo.event_lists.events IS 'Events in these pages.';
COMMENT ON COLUMN recibo.event_lists.healed IS 'Of these, moved their operation or an item: what never arrived.';
COMMENT ON COLUMN recibo.event_lists.known IS 'Of these, said what was on record.';
COMMENT ON COLUMN recibo.event_lists.parked IS 'Of these, wait for their operation.';
COMMENT ON COLUMN recibo.event_lists.review IS 'Of these, a person has to decide about.';
COMMENT ON COLUMN recibo.event_lists.failed IS 'Of these, could not be understood.';
COMMENT ON COLUMN recibo.event_lists.ended_at IS 'When the last page had been read, or it was given up.';
COMMENT ON COLUMN recibo.event_lists.reason IS 'Why it was given up, or what went wrong with the last attempt; NULL: nothing.';
CREATE UNIQUE INDEX event_lists_one ON recibo.event_lists (provider) WHERE ended_at IS NULL;
GRANT SELECT, INSERT, UPDATE ON recibo.event_lists TO recibo_service;

COMMENT ON COLUMN recibo.deliveries.look_up IS 'look_ups.id or event_lists.id: nobody sent it, it was fetched; then peer is the host that was asked, and secret is empty.';
