CREATE OR REPLACE FUNCTION recibo.sweep_notification_attempts(older_than interval, most integer) RETURNS integer
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
DELETE FROM recibo.notifications n USING recibo.provider_events e WHERE n.operation = e.key AND n.sequence = e.sequence;
DROP TABLE recibo.provider_events, recibo.provider_counts;
ALTER TABLE recibo.provider_activity DROP COLUMN key, DROP COLUMN told, DROP COLUMN silent_reason, DROP COLUMN rate_within_s, DROP COLUMN rate_since;
COMMENT ON COLUMN recibo.notifications.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.notifications.sequence IS 'The audit row of the fact; order per operation and destination.';
COMMENT ON COLUMN recibo.notifications.type IS 'operation.accepted, operation.<state>, operation.review_opened, operation.review_resolved.';
