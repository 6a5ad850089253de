-- Monthly partitions, made ahead by the service through a function of the owner.
-- oldest-binary: 0.1.0
--
-- Reason: without a partition an insert fails, so there are always two months ahead, and the horizon is part of /readyz
-- (K24). There is no default partition: rows in it would block the attaching of the right one.

CREATE FUNCTION recibo.month_bound(month timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (lpad(to_hex((extract(epoch FROM month) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
COMMENT ON FUNCTION recibo.month_bound(timestamptz) IS 'The smallest UUIDv7 of that instant.';

CREATE FUNCTION recibo.ensure_partitions(ahead integer DEFAULT 2) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '2s' AS $$
DECLARE
  parent text;
  month timestamptz;
  child text;
  made integer := 0;
BEGIN
  IF ahead NOT BETWEEN 1 AND 24 THEN
    RAISE EXCEPTION 'ahead must be from 1 to 24' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('recibo.ensure_partitions', 0));
  FOREACH parent IN ARRAY ARRAY['deliveries', 'payloads', 'transitions', 'audit'] LOOP
    -- From a month back, for a clock that is a little behind at the turn of a month.
    FOR step IN -1 .. ahead LOOP
      month := date_trunc('month', now()) + make_interval(months => step);
      child := format('%s_%s', parent, to_char(month, 'YYYY_MM'));
      IF to_regclass(format('recibo.%I', child)) IS NULL THEN
        EXECUTE format('CREATE TABLE recibo.%I (LIKE recibo.%I INCLUDING ALL)', child, parent);
        EXECUTE format('ALTER TABLE recibo.%I ATTACH PARTITION recibo.%I FOR VALUES FROM (%L) TO (%L)', parent, child,
                       recibo.month_bound(month), recibo.month_bound(month + interval '1 month'));
        made := made + 1;
      END IF;
    END LOOP;
  END LOOP;
  RETURN made;
END $$;
COMMENT ON FUNCTION recibo.ensure_partitions(integer) IS 'Makes the missing monthly partitions up to `ahead` months from now; returns how many it made.';

CREATE FUNCTION recibo.partition_horizon() RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT min(newest) FROM (
    SELECT max(to_timestamp(right(c.relname, 7) || '_01 +00', 'YYYY_MM_DD TZH')) + interval '1 month' AS newest
    FROM unnest(ARRAY['deliveries', 'payloads', 'transitions', 'audit']) AS parent(name)
    LEFT JOIN pg_inherits i ON i.inhparent = to_regclass('recibo.' || parent.name)
    LEFT JOIN pg_class c ON c.oid = i.inhrelid
    GROUP BY parent.name
  ) per_parent
$$;
COMMENT ON FUNCTION recibo.partition_horizon() IS 'Rows can be written until then; the nearest end over all partitioned tables.';

REVOKE ALL ON FUNCTION recibo.ensure_partitions(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recibo.ensure_partitions(integer), recibo.partition_horizon(), recibo.month_bound(timestamptz) TO recibo_service;

SELECT recibo.ensure_partitions();
