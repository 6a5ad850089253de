DROP TABLE recibo.destinations, recibo.notification_actions, recibo.notification_attempts;
DROP INDEX recibo.notifications_stopped, recibo.notifications_due, recibo.notifications_id;
ALTER TABLE recibo.notifications DROP COLUMN attempts_before, DROP COLUMN dead_at, DROP COLUMN reason_class, DROP COLUMN reason;
