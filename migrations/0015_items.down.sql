ALTER TABLE recibo.reviews DROP CONSTRAINT reviews_kind;
ALTER TABLE recibo.reviews ADD CONSTRAINT reviews_kind
  CHECK (kind IN ('contradiction', 'conflict', 'amount_mismatch', 'currency_mismatch', 'account_mismatch', 'alias_taken', 'identity_mismatch'));
ALTER TABLE recibo.reviews DROP COLUMN item_id;
ALTER TABLE recibo.parked DROP COLUMN items;
ALTER TABLE recibo.idempotency_keys DROP COLUMN answer_items;
ALTER TABLE recibo.deliveries DROP COLUMN items;
ALTER TABLE recibo.items DROP CONSTRAINT items_attention, DROP COLUMN result, DROP COLUMN attention, DROP COLUMN attention_detail,
  DROP COLUMN attention_delivery, DROP COLUMN attention_at;
