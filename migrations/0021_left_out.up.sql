-- What is left of a failed callback of which something was understood, so that a replay decides that alone.
-- oldest-binary: 0.1.0
--
-- Reason: callbacks about items, and requests with many events, are on record with what could be understood. A replay after the
-- configuration was mended (R17, R37) must decide the rest and nothing twice, also when it takes several attempts.

ALTER TABLE recibo.failed_callbacks ADD COLUMN left_out text;
COMMENT ON COLUMN recibo.failed_callbacks.left_out IS 'JSON list of the events and elements that are still to be decided; NULL: all of it.';
ALTER TABLE recibo.replays ADD COLUMN items text;
COMMENT ON COLUMN recibo.replays.items IS 'What was decided about each item, as deliveries.items; NULL: it speaks of none.';
