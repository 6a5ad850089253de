-- Outages end, and go when nothing needs them any more; what is asked after them reaches its end, and is counted once.
-- oldest-binary: 0.1.0
--
-- Reason: what a provider's outages put off is read inside the transaction that moves an operation: it has to cost what there has been
-- since the timer was set, and not what there ever was. A breaker that flaps writes a row each time, so that those which were too short
-- to count are deleted when they end, and all others once no timer was set before them. A catch-up that begins anew with each outage would never come to the oldest, so that the walk
-- before goes on beside the new one. What is put off twice is reckoned from when it was due at first, so that outages close to each
-- other are one pause. And of a list that begins anew each event that moved something counts once.

CREATE INDEX provider_downtimes_end ON recibo.provider_downtimes (provider, (coalesce(ended_at, known_until)));
DROP INDEX recibo.provider_downtimes_provider;
GRANT DELETE ON recibo.provider_downtimes TO recibo_service;
COMMENT ON TABLE recibo.provider_downtimes IS 'When providers were known to be out (R44), for a minute at least; looked up when something runs out, and deleted once no timer needs it.';

CREATE INDEX downtimes_end ON recibo.downtimes (ended_at);
COMMENT ON TABLE recibo.downtimes IS 'When no replica was ready to take callbacks (R44); deleted by sweep_downtimes once no timer needs it.';

-- The IDs of operations are in the order in which they were accepted, and no timer was set before its operation was: the first
-- operation that has one tells what is needed, without reading all. A day is for clocks of replicas that differ.
CREATE FUNCTION recibo.sweep_downtimes(older_than interval, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  bound timestamptz := now() - greatest(older_than, interval '1 day');
  first_timed uuid;
  ours integer;
  theirs integer;
BEGIN
  SELECT t.operation INTO first_timed FROM recibo.timers t ORDER BY t.operation, t.kind LIMIT 1;
  IF first_timed IS NOT NULL THEN
    bound := least(bound, to_timestamp(('x' || substr(replace(first_timed::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0) - interval '1 day');
  END IF;
  DELETE FROM recibo.downtimes d USING (
    SELECT o.began_at FROM recibo.downtimes o WHERE o.ended_at < bound ORDER BY o.ended_at LIMIT least(most, 10000) FOR UPDATE SKIP LOCKED
  ) old WHERE d.began_at = old.began_at;
  GET DIAGNOSTICS ours = ROW_COUNT;
  DELETE FROM recibo.provider_downtimes d USING (
    SELECT o.id FROM recibo.provider_downtimes o WHERE o.ended_at < bound LIMIT least(most, 10000) FOR UPDATE SKIP LOCKED
  ) old WHERE d.id = old.id;
  GET DIAGNOSTICS theirs = ROW_COUNT;
  RETURN ours + theirs;
END
$$;
COMMENT ON FUNCTION recibo.sweep_downtimes(interval, integer) IS 'Deletes outages that ended before the interval, at least a day, and before the first operation that has a timer, at most so many of ours and of theirs; returns how many.';
REVOKE ALL ON FUNCTION recibo.sweep_downtimes(interval, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recibo.sweep_downtimes(interval, integer) TO recibo_service;

ALTER TABLE recibo.timers ADD COLUMN was_due_at timestamptz;
COMMENT ON COLUMN recibo.timers.was_due_at IS 'When it would have run out but for the outages that put it off; NULL: none has.';

ALTER TABLE recibo.catch_ups
  ADD COLUMN head_end uuid,
  ADD COLUMN tail uuid,
  ADD COLUMN tail_next boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN recibo.catch_ups.head_end IS 'operations.id at which the walk from the newest on ends, because one before has been there; NULL: none has.';
COMMENT ON COLUMN recibo.catch_ups.tail IS 'operations.id down to which the walk before has seen all; it goes on beside the new one; NULL: it has ended, or there is none.';
COMMENT ON COLUMN recibo.catch_ups.tail_next IS 'Whether the next step is that walk''s.';

CREATE TABLE recibo.event_list_healed (
  list uuid NOT NULL,
  delivery uuid NOT NULL,
  CONSTRAINT event_list_healed_pkey PRIMARY KEY (list, delivery)
);
COMMENT ON TABLE recibo.event_list_healed IS 'What counts as healed already of lists that are being read, so that it counts once however often a page is read; deleted when the list ends.';
COMMENT ON COLUMN recibo.event_list_healed.list IS 'event_lists.id.';
COMMENT ON COLUMN recibo.event_list_healed.delivery IS 'deliveries.id.';
GRANT SELECT, INSERT, DELETE ON recibo.event_list_healed TO recibo_service;
