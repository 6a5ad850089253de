DROP FUNCTION recibo.partition_horizon();
DROP FUNCTION recibo.ensure_partitions(integer);
DROP FUNCTION recibo.month_bound(timestamptz);
