ALTER TABLE recibo.replays DROP COLUMN items;
ALTER TABLE recibo.failed_callbacks DROP COLUMN left_out;
