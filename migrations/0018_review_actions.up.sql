-- What people do about a review, and reviews of what has no operation.
-- oldest-binary: 0.1.0
--
-- Reason: assigning and resolving are facts with an actor and a reason (R25). They are only ever added; the row in `reviews`
-- holds where things stand. A parked callback that grows old is an exception too, and belongs to no operation yet (R11).

CREATE TABLE recibo.review_actions (
  id uuid PRIMARY KEY,
  review uuid NOT NULL,
  operation uuid,
  sequence integer,
  action text COLLATE "C" NOT NULL CONSTRAINT review_actions_action CHECK (action IN ('assigned', 'resolved')),
  at timestamptz NOT NULL,
  actor text NOT NULL,
  assignee text,
  resolution text,
  reason text,
  transition integer,
  notifications smallint NOT NULL DEFAULT 0,
  CONSTRAINT review_actions_fact CHECK ((operation IS NULL) = (sequence IS NULL)),
  CONSTRAINT review_actions_assignee CHECK ((action = 'assigned') = (assignee IS NOT NULL)),
  CONSTRAINT review_actions_resolution CHECK ((action = 'resolved') = (resolution IS NOT NULL)),
  CONSTRAINT review_actions_transition CHECK (transition IS NULL OR (action = 'resolved' AND transition < sequence))
);
COMMENT ON TABLE recibo.review_actions IS 'What was done about a review; only ever added to (R25).';
COMMENT ON COLUMN recibo.review_actions.id IS 'UUIDv7.';
COMMENT ON COLUMN recibo.review_actions.review IS 'reviews.id.';
COMMENT ON COLUMN recibo.review_actions.operation IS 'operations.id; NULL where the review has no operation.';
COMMENT ON COLUMN recibo.review_actions.sequence IS 'Its audit row, where it has an operation.';
COMMENT ON COLUMN recibo.review_actions.action IS 'assigned or resolved.';
COMMENT ON COLUMN recibo.review_actions.at IS 'When it was recorded.';
COMMENT ON COLUMN recibo.review_actions.actor IS 'Name of the API token; recibo for what it does by itself.';
COMMENT ON COLUMN recibo.review_actions.assignee IS 'Who takes it from now on.';
COMMENT ON COLUMN recibo.review_actions.resolution IS 'What was decided.';
COMMENT ON COLUMN recibo.review_actions.reason IS 'Why.';
COMMENT ON COLUMN recibo.review_actions.transition IS 'transitions.sequence of the event that was raised with it.';
COMMENT ON COLUMN recibo.review_actions.notifications IS 'Outbox rows that were written with it.';
CREATE INDEX review_actions_review ON recibo.review_actions (review, id);
CREATE UNIQUE INDEX review_actions_fact_once ON recibo.review_actions (operation, sequence) WHERE operation IS NOT NULL;
CREATE UNIQUE INDEX review_actions_resolved_once ON recibo.review_actions (review) WHERE action = 'resolved';
GRANT SELECT, INSERT ON recibo.review_actions TO recibo_service;

ALTER TABLE recibo.reviews ALTER COLUMN operation DROP NOT NULL;
ALTER TABLE recibo.reviews ADD COLUMN provider text COLLATE "C";
ALTER TABLE recibo.reviews ADD COLUMN request_id text COLLATE "C";
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_of_something CHECK (operation IS NOT NULL OR provider IS NOT NULL);
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN (
  'contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch',
  'unknown_item', 'ambiguity', 'parked_age'));
COMMENT ON COLUMN recibo.reviews.operation IS 'operations.id; NULL: there is none yet (parked_age).';
COMMENT ON COLUMN recibo.reviews.provider IS 'Name in the configuration, where there is no operation.';
COMMENT ON COLUMN recibo.reviews.request_id IS 'As the callback said it, where there is no operation.';
COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, account_mismatch, alias_taken, identity_mismatch, unknown_item, ambiguity, parked_age.';
COMMENT ON COLUMN recibo.reviews.owner IS 'Who has to act: from the workflow''s state, else from the configuration.';
CREATE UNIQUE INDEX reviews_parked_once ON recibo.reviews (delivery) WHERE kind = 'parked_age';

COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, item, items, event, payload_access, correction, workflow, review.';
