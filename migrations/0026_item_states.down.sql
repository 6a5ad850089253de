ALTER TABLE recibo.workflow_changes DROP COLUMN item_states;
