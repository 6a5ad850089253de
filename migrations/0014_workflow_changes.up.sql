-- Operations that go on under another version of their workflow.
-- oldest-binary: 0.1.0
--
-- Reason: an operation keeps the table under which it was accepted, until somebody says otherwise for a reason (decision 7). Its
-- history is judged by the version that was in force at each move, so each change is a fact like the others.

CREATE TABLE recibo.workflow_changes (
  operation uuid NOT NULL,
  sequence integer NOT NULL,
  from_workflow bigint NOT NULL,
  to_workflow bigint NOT NULL,
  from_state text COLLATE "C" NOT NULL,
  to_state text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL,
  CONSTRAINT workflow_changes_pkey PRIMARY KEY (operation, sequence),
  CONSTRAINT workflow_changes_differ CHECK (from_workflow <> to_workflow)
);
COMMENT ON TABLE recibo.workflow_changes IS 'When an operation was put under another version of its workflow; only ever added to.';
COMMENT ON COLUMN recibo.workflow_changes.operation IS 'operations.id.';
COMMENT ON COLUMN recibo.workflow_changes.sequence IS 'Its audit row.';
COMMENT ON COLUMN recibo.workflow_changes.from_workflow IS 'workflow_versions.version_key before.';
COMMENT ON COLUMN recibo.workflow_changes.to_workflow IS 'workflow_versions.version_key after.';
COMMENT ON COLUMN recibo.workflow_changes.from_state IS 'State before, a word of that version.';
COMMENT ON COLUMN recibo.workflow_changes.to_state IS 'State after; the same where both versions have it.';
COMMENT ON COLUMN recibo.workflow_changes.at IS 'When it was recorded.';
COMMENT ON COLUMN recibo.workflow_changes.actor IS 'Who said so.';
COMMENT ON COLUMN recibo.workflow_changes.reason IS 'Why.';
COMMENT ON COLUMN recibo.operations.workflow IS 'workflow_versions.version_key under which it lives: the one of its acceptance, until it is changed by command.';
COMMENT ON COLUMN recibo.audit.kind IS 'accept, delivery, event, payload_access, correction, workflow.';
GRANT SELECT, INSERT ON recibo.workflow_changes TO recibo_service;
