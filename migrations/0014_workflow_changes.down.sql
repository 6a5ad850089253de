DROP TABLE recibo.workflow_changes;
COMMENT ON COLUMN recibo.operations.workflow IS 'workflow_versions.version_key under which it was accepted.';
COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, event, payload_access, correction.';
