COMMENT ON COLUMN recibo.notification_actions.action IS 'UUIDv7; one per request, which may be about many notifications.';
DROP INDEX recibo.notification_actions_action;
DROP TABLE recibo.notification_replays;
