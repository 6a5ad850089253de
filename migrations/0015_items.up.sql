-- What callbacks say of the items of an operation (R7).
-- oldest-binary: 0.1.0
--
-- Reason: one callback may speak of many items, some of them in vain. The answer tells the result of each, the delivery keeps it
-- as evidence, and the item itself says that somebody has to look at it, and why.

ALTER TABLE recibo.items
  ADD COLUMN result text,
  ADD COLUMN attention text COLLATE "C",
  ADD COLUMN attention_detail text,
  ADD COLUMN attention_delivery uuid,
  ADD COLUMN attention_at timestamptz,
  ADD CONSTRAINT items_attention CHECK ((attention IS NULL) = (attention_at IS NULL));
COMMENT ON COLUMN recibo.items.result IS 'Allow-listed fields of what the provider said last of the item, as JSON text (R39).';
COMMENT ON COLUMN recibo.items.attention IS 'Why somebody has to look at the item: a disposition, or the kind of a review; NULL: nobody has to.';
COMMENT ON COLUMN recibo.items.attention_detail IS 'The same in words, without payload.';
COMMENT ON COLUMN recibo.items.attention_delivery IS 'The delivery that said it.';
COMMENT ON COLUMN recibo.items.attention_at IS 'Since when.';

ALTER TABLE recibo.deliveries ADD COLUMN items text;
COMMENT ON COLUMN recibo.deliveries.items IS 'What was decided about each item that the callback spoke of, as JSON text; NULL: it spoke of none, or was parked.';

ALTER TABLE recibo.idempotency_keys ADD COLUMN answer_items text;
COMMENT ON COLUMN recibo.idempotency_keys.answer_items IS 'The list of items in that answer; NULL: it had none.';

ALTER TABLE recibo.parked ADD COLUMN items text NOT NULL DEFAULT '';
COMMENT ON COLUMN recibo.parked.items IS 'What the callback says of items, as JSON text; empty: it speaks of none.';

ALTER TABLE recibo.reviews ADD COLUMN item_id text COLLATE "C";
COMMENT ON COLUMN recibo.reviews.item_id IS 'The item that it is about; NULL: the operation.';
ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind
  CHECK (kind IN ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch', 'unknown_item'));
COMMENT ON COLUMN recibo.reviews.kind IS 'contradiction, conflict, amount_mismatch, currency_mismatch, account_mismatch, alias_taken, identity_mismatch, unknown_item.';

COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, item, items, event, payload_access, correction, workflow.';
