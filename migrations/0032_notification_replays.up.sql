-- Replays of many notifications under a key, as they began, and what was done under an action by its index.
-- oldest-binary: 0.1.0
--
-- Reason: the same request again must take nothing that died after the first, also where the first found nothing, and must not
-- read all that people ever did to know it (R19, decision 33).

CREATE TABLE recibo.notification_replays (
  action uuid NOT NULL,
  body_digest bytea NOT NULL,
  began_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT notification_replays_pkey PRIMARY KEY (action)
);
COMMENT ON TABLE recibo.notification_replays IS 'Replays of the notifications that a filter names, asked for under an Idempotency-Key.';
COMMENT ON COLUMN recibo.notification_replays.action IS 'notification_actions.action; made of who asks and the key (UUIDv8).';
COMMENT ON COLUMN recibo.notification_replays.body_digest IS 'SHA-256 of the request in canonical JSON.';
COMMENT ON COLUMN recibo.notification_replays.began_at IS 'What died after it is not replayed by the same request again.';
GRANT SELECT, INSERT ON recibo.notification_replays TO recibo_service;

CREATE INDEX notification_actions_action ON recibo.notification_actions (action);
COMMENT ON COLUMN recibo.notification_actions.action IS 'One per request, which may be about many notifications: UUIDv7, or UUIDv8 made of an Idempotency-Key.';
