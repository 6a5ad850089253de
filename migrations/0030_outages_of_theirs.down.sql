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
  RETURN tried + gone;
END
$$;
COMMENT ON FUNCTION recibo.sweep_look_ups(interval, integer) IS 'Deletes attempts and look-ups without effect older than the interval, at least a day, at most so many of each; returns how many.';
ALTER TABLE recibo.event_lists DROP CONSTRAINT event_lists_reason;
UPDATE recibo.event_lists SET reason = NULL WHERE ended_at IS NULL AND attempts = 0;
ALTER TABLE recibo.event_lists DROP COLUMN rounds;
ALTER TABLE recibo.event_lists ADD CONSTRAINT event_lists_reason CHECK (reason IS NULL OR ended_at IS NOT NULL OR attempts > 0);
COMMENT ON COLUMN recibo.catch_ups.place IS 'operations.id up to which all have been seen.';
ALTER TABLE recibo.catch_ups DROP COLUMN below;
ALTER TABLE recibo.provider_activity DROP COLUMN put_back_at;
DROP TABLE recibo.provider_downtimes;
ALTER TABLE recibo.look_ups DROP COLUMN repeatable;
