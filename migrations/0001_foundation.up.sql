-- The schema, the two roles and the workflow tables as they were at each time.
-- oldest-binary: 0.1.0
--
-- Reason: the service writes evidence that it must not be able to change (R28), so it never runs as the owner. The owner
-- migrates, makes partitions (through a SECURITY DEFINER function) and purges; recibo_service only does what is granted.

CREATE SCHEMA IF NOT EXISTS recibo;
COMMENT ON SCHEMA recibo IS 'Recibo: receives callbacks, records them once, applies legal transitions.';

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'recibo_service') THEN
    CREATE ROLE recibo_service LOGIN;
  END IF;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this cluster was faster
  WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'the migrating role may not create roles: have an administrator run CREATE ROLE recibo_service LOGIN'
      USING ERRCODE = 'insufficient_privilege';
END $$;

GRANT USAGE ON SCHEMA recibo TO recibo_service;

CREATE TABLE recibo.workflow_versions (
  version_key bigint PRIMARY KEY,
  digest bytea NOT NULL UNIQUE CONSTRAINT workflow_versions_digest_length CHECK (octet_length(digest) = 32),
  name text COLLATE "C" NOT NULL,
  definition text NOT NULL,
  first_used_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE recibo.workflow_versions IS 'Every workflow table that an operation was ever accepted under; immutable (R8, late configuration).';
COMMENT ON COLUMN recibo.workflow_versions.version_key IS 'First eight bytes of digest as a signed integer: what rows carry.';
COMMENT ON COLUMN recibo.workflow_versions.digest IS 'SHA-256 of definition.';
COMMENT ON COLUMN recibo.workflow_versions.name IS 'Name in the configuration.';
COMMENT ON COLUMN recibo.workflow_versions.definition IS 'Canonical JSON: states, labels, limits, moves.';
COMMENT ON COLUMN recibo.workflow_versions.first_used_at IS 'When the first replica loaded it.';

GRANT SELECT, INSERT ON recibo.workflow_versions TO recibo_service;

CREATE FUNCTION recibo.expect_rows(actual bigint, expected bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF actual <> expected THEN
    RAISE EXCEPTION 'expected % rows, met %', expected, actual USING ERRCODE = 'RC001';
  END IF;
  RETURN true;
END $$;
COMMENT ON FUNCTION recibo.expect_rows(bigint, bigint) IS
  'Fails the transaction when a statement met other rows than were decided on: COMMIT travels in the same round trip, so afterwards would be too late.';
GRANT EXECUTE ON FUNCTION recibo.expect_rows(bigint, bigint) TO recibo_service;
