-- What a provider's answer lets be repeated.
-- oldest-binary: 0.1.0
--
-- Reason: a retry is raised only by an answer that says that nothing has happened (R23), which is judged by the provider's words when
-- the answer is decided.

ALTER TABLE recibo.look_ups ADD COLUMN repeatable text;
COMMENT ON COLUMN recibo.look_ups.repeatable IS 'JSON list of what may be repeated by the answer: IDs of items, "" for the operation; NULL: nothing.';
