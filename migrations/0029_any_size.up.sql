-- Indexes and a mark, so that what is done all the time reads what it needs, however much else there is.
-- oldest-binary: 0.1.0
--
-- Reason: a claim looked again at everything that waits behind an attempt that is put off; a claim of look-ups sorted all of
-- them; ages and lists read whole backlogs. None of the indexes is written by what is recorded and delivered at once.

ALTER TABLE recibo.notifications ADD COLUMN behind boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN recibo.notifications.behind IS 'It was put off with one before it: next_attempt_at is no wish of its own, and ends when that one does.';
CREATE INDEX notifications_waiting ON recibo.notifications (destination, created_at) WHERE status = 'pending' AND next_attempt_at IS NOT NULL;
-- For who goes by the ID alone: while it is small nobody else is to read the whole of it.
CREATE INDEX notifications_stopped_id ON recibo.notifications (id) WHERE status IN ('held', 'dead') AND id IS NOT NULL;

CREATE INDEX look_ups_next ON recibo.look_ups (provider, (cause = 'catch_up'), id) WHERE status IN ('queued', 'asking');
CREATE INDEX look_ups_leased ON recibo.look_ups (provider, lease_until) WHERE lease_until IS NOT NULL;

CREATE INDEX parked_age ON recibo.parked (provider, parked_at);
CREATE INDEX reviews_request ON recibo.reviews (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX reviews_open_age ON recibo.reviews (opened_at) WHERE status = 'open';
CREATE INDEX failed_callbacks_request ON recibo.failed_callbacks (request_id) WHERE request_id IS NOT NULL;
