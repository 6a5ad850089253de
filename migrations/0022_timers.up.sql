-- What runs out: limits of states, deadlines, the age of reviews, the silence of providers; and when intake was down.
-- oldest-binary: 0.1.0
--
-- Reason: a state that lasts too long raises its event by itself (R22), on one replica, by the database's clock alone. What is due
-- stands in a side table that holds rows only while they are open, so that nothing hot is indexed. An outage is noticed by the
-- gap in one row that ready replicas keep fresh, so that nothing runs out while no callback could be taken (R44).

CREATE TABLE recibo.timers (
  operation uuid NOT NULL,
  kind text COLLATE "C" NOT NULL CONSTRAINT timers_kind CHECK (kind IN ('limit', 'deadline')),
  due_at timestamptz NOT NULL,
  set_at timestamptz NOT NULL,
  event text COLLATE "C",
  version integer NOT NULL,
  fired_at timestamptz,
  CONSTRAINT timers_pkey PRIMARY KEY (operation, kind)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON TABLE recibo.timers IS 'What runs out for operations that have not ended; written with the move that sets it, deleted with the one that ends it (R22).';
COMMENT ON COLUMN recibo.timers.operation IS 'operations.id; its row lock covers the timers.';
COMMENT ON COLUMN recibo.timers.kind IS 'limit: how long the present state may last; deadline: what the client wants.';
COMMENT ON COLUMN recibo.timers.due_at IS 'When it runs out, by the clock of the database.';
COMMENT ON COLUMN recibo.timers.set_at IS 'When it was set or put off: downtimes that ended before it are counted.';
COMMENT ON COLUMN recibo.timers.event IS 'What is raised then; NULL: whoever fires it looks at the configuration again.';
COMMENT ON COLUMN recibo.timers.version IS 'operations.version that it was set at.';
COMMENT ON COLUMN recibo.timers.fired_at IS 'When it was acted on, where the state went on all the same; NULL: it waits.';
CREATE INDEX timers_due ON recibo.timers (due_at) WHERE fired_at IS NULL;
CREATE INDEX timers_fired ON recibo.timers (operation) WHERE fired_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON recibo.timers TO recibo_service;

-- Operations that are there already. A provider's own limit is not known here, so that whoever fires looks again.
INSERT INTO recibo.timers (operation, kind, due_at, set_at, version)
SELECT o.id, 'limit', o.state_at + (s.value #>> '{limit,after_s}')::bigint * interval '1 second', now(), o.version
FROM recibo.operations o
JOIN recibo.workflow_versions w ON w.version_key = o.workflow
CROSS JOIN LATERAL jsonb_array_elements(w.definition::jsonb -> 'states') AS s(value)
WHERE s.value ->> 'name' = o.state AND s.value #>> '{limit,after_s}' IS NOT NULL;
INSERT INTO recibo.timers (operation, kind, due_at, set_at, event, version)
SELECT o.id, 'deadline', d.deadline, now(), 'overdue', o.version
FROM recibo.operations o
JOIN recibo.registrations r ON r.operation = o.id
LEFT JOIN recibo.corrections c ON c.operation = o.id AND c.sequence = o.corrected
JOIN recibo.workflow_versions w ON w.version_key = o.workflow
CROSS JOIN LATERAL (SELECT CASE WHEN c.operation IS NULL THEN r.deadline ELSE c.deadline END AS deadline) d
WHERE d.deadline IS NOT NULL AND NOT EXISTS (SELECT FROM jsonb_array_elements(w.definition::jsonb -> 'states') AS s(value)
  WHERE s.value ->> 'name' = o.state AND coalesce((s.value ->> 'terminal')::boolean, false));

CREATE TABLE recibo.intake (
  only_row boolean PRIMARY KEY DEFAULT true CONSTRAINT intake_only_row CHECK (only_row),
  alive_at timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE recibo.intake IS 'One row: when a replica was last ready to take callbacks (R44).';
COMMENT ON COLUMN recibo.intake.only_row IS 'Always true.';
COMMENT ON COLUMN recibo.intake.alive_at IS 'Kept fresh by every replica that is ready; NULL: none was yet.';
INSERT INTO recibo.intake DEFAULT VALUES;
GRANT SELECT, UPDATE ON recibo.intake TO recibo_service;

CREATE TABLE recibo.downtimes (
  began_at timestamptz PRIMARY KEY,
  ended_at timestamptz NOT NULL,
  CONSTRAINT downtimes_last CHECK (ended_at > began_at)
);
COMMENT ON TABLE recibo.downtimes IS 'When no replica was ready to take callbacks; only ever added to (R44).';
COMMENT ON COLUMN recibo.downtimes.began_at IS 'When one was last ready.';
COMMENT ON COLUMN recibo.downtimes.ended_at IS 'When one was ready again.';
GRANT SELECT, INSERT ON recibo.downtimes TO recibo_service;

CREATE TABLE recibo.provider_activity (
  provider text COLLATE "C" PRIMARY KEY,
  heard_at timestamptz,
  since timestamptz NOT NULL,
  watched_at timestamptz NOT NULL,
  resumed_at timestamptz NOT NULL,
  alert_s bigint,
  silent_at timestamptz,
  spoke_at timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE recibo.provider_activity IS 'When each provider was last heard, and whether it has gone silent (R30).';
COMMENT ON COLUMN recibo.provider_activity.provider IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.provider_activity.heard_at IS 'When a callback of it last verified, whatever became of it; NULL: never.';
COMMENT ON COLUMN recibo.provider_activity.since IS 'When it was first configured here.';
COMMENT ON COLUMN recibo.provider_activity.watched_at IS 'When a replica that is ready last looked.';
COMMENT ON COLUMN recibo.provider_activity.resumed_at IS 'When one looked again after nobody had: what was missed then is still being sent.';
COMMENT ON COLUMN recibo.provider_activity.alert_s IS 'silence_alert in seconds; NULL: it may be silent.';
COMMENT ON COLUMN recibo.provider_activity.silent_at IS 'When it was found silent; NULL: it is not.';
COMMENT ON COLUMN recibo.provider_activity.spoke_at IS 'When it was last heard again after it had been silent.';
GRANT SELECT, INSERT, UPDATE ON recibo.provider_activity TO recibo_service;

ALTER TABLE recibo.reviews ADD COLUMN reminded_at timestamptz;
ALTER TABLE recibo.reviews ALTER COLUMN delivery DROP NOT NULL;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_delivery CHECK (delivery IS NOT NULL OR kind = 'overdue');
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN (
  'contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch',
  'unknown_item', 'ambiguity', 'parked_age', 'overdue'));
COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, account_mismatch, alias_taken, identity_mismatch, unknown_item, ambiguity, parked_age, overdue.';
COMMENT ON COLUMN recibo.reviews.delivery IS 'The delivery that opened it; NULL: the clock did.';
COMMENT ON COLUMN recibo.reviews.reminded_at IS 'When it was told that its age limit has passed; NULL: it was not.';
CREATE INDEX reviews_due ON recibo.reviews (due_at) WHERE status = 'open' AND reminded_at IS NULL;

ALTER TABLE recibo.review_actions DROP CONSTRAINT review_actions_action;
ALTER TABLE recibo.review_actions ADD CONSTRAINT review_actions_action CHECK (action IN ('opened', 'assigned', 'reminded', 'resolved'));
COMMENT ON COLUMN recibo.review_actions.action IS 'opened: by the clock, others with their delivery; assigned; reminded: its age limit has passed; resolved.';
COMMENT ON COLUMN recibo.review_actions.actor IS 'Name of the API token; clock for what ran out; recibo for what it does by itself.';
