DELETE FROM recibo.review_actions WHERE action IN ('opened', 'reminded') OR review IN (SELECT id FROM recibo.reviews WHERE kind = 'overdue');
DELETE FROM recibo.reviews WHERE kind = 'overdue';
-- What these alone kept open is not open any more.
UPDATE recibo.operations o SET review_open = false
WHERE o.review_open AND NOT EXISTS (SELECT FROM recibo.reviews v WHERE v.operation = o.id AND v.status = 'open');
ALTER TABLE recibo.review_actions DROP CONSTRAINT review_actions_action;
ALTER TABLE recibo.review_actions ADD CONSTRAINT review_actions_action CHECK (action IN ('assigned', 'resolved'));
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind CHECK (kind IN ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch', 'unknown_item', 'ambiguity', 'parked_age'));
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_delivery;
ALTER TABLE recibo.reviews ALTER COLUMN delivery SET NOT NULL;
ALTER TABLE recibo.reviews DROP COLUMN reminded_at;
DROP TABLE recibo.provider_activity, recibo.downtimes, recibo.intake, recibo.timers;
COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, account_mismatch, alias_taken, identity_mismatch, unknown_item, ambiguity, parked_age.';
COMMENT ON COLUMN recibo.reviews.delivery IS 'The delivery that opened it.';
COMMENT ON COLUMN recibo.review_actions.action IS 'assigned or resolved.';
COMMENT ON COLUMN recibo.review_actions.actor IS 'Name of the API token; recibo for what it does by itself.';
