DROP TABLE recibo.event_list_healed;
ALTER TABLE recibo.catch_ups DROP COLUMN head_end, DROP COLUMN tail, DROP COLUMN tail_next;
DROP FUNCTION recibo.sweep_downtimes(interval, integer);
COMMENT ON TABLE recibo.downtimes IS 'When no replica was ready to take callbacks; only ever added to (R44).';
DROP INDEX recibo.downtimes_end;
COMMENT ON TABLE recibo.provider_downtimes IS 'When providers were known to be out (R44); a few rows for each, looked up when something runs out.';
REVOKE DELETE ON recibo.provider_downtimes FROM recibo_service;
CREATE INDEX provider_downtimes_provider ON recibo.provider_downtimes (provider, began_at);
DROP INDEX recibo.provider_downtimes_end;
