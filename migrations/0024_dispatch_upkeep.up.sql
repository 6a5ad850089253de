-- How long a destination has not taken anything, and an end for old attempts.
-- oldest-binary: 0.1.0
--
-- Reason: a destination that fails for days is paused and a person is told, also where too little is sent for a breaker to
-- notice, so that its beginning has to outlive replicas. Attempts explain failures for a while, and would grow for ever. And a
-- claim changes no indexed column: with room on its page it writes no index.

ALTER TABLE recibo.notifications SET (fillfactor = 80);

ALTER TABLE recibo.destinations ADD COLUMN failing_since timestamptz;
COMMENT ON COLUMN recibo.destinations.failing_since IS 'The first of the failed attempts since which none was taken; NULL: the last one was.';

-- The service may not delete attempts; this deletes old ones for it, a bounded number at a time, none younger than a day.
CREATE FUNCTION recibo.sweep_notification_attempts(older_than interval, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  gone integer;
BEGIN
  DELETE FROM recibo.notification_attempts a USING (
    SELECT o.notification, o.attempt FROM recibo.notification_attempts o
    WHERE o.at < now() - greatest(older_than, interval '1 day') LIMIT least(most, 10000)
  ) old WHERE a.notification = old.notification AND a.attempt = old.attempt;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END
$$;
COMMENT ON FUNCTION recibo.sweep_notification_attempts(interval, integer) IS 'Deletes attempts to deliver notifications older than the interval, at least a day, at most so many; returns how many.';
REVOKE ALL ON FUNCTION recibo.sweep_notification_attempts(interval, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recibo.sweep_notification_attempts(interval, integer) TO recibo_service;
