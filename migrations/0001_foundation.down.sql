-- The role stays: other databases of the cluster may use it.
DROP TABLE recibo.workflow_versions;
DROP FUNCTION recibo.expect_rows(bigint, bigint);
