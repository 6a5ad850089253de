-- States of items that a change of the workflow gave other names.
-- oldest-binary: 0.1.0
--
-- Reason: an operation could not be put under another version of its workflow as long as an item of it was in a state that the
-- version does not have, although the command names the state that stands for it.

ALTER TABLE recibo.workflow_changes ADD COLUMN item_states text;
COMMENT ON COLUMN recibo.workflow_changes.item_states IS 'JSON object: states that items were in, and what they are called since; NULL: none got another name.';
