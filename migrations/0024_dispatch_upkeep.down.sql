DROP FUNCTION recibo.sweep_notification_attempts(interval, integer);
ALTER TABLE recibo.destinations DROP COLUMN failing_since;
ALTER TABLE recibo.notifications RESET (fillfactor);
