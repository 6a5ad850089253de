ALTER TABLE recibo.look_ups DROP COLUMN repeatable;
