-- The temporary table `book` (request_id, key) has a row for everything that was answered 2xx; key is empty for a registration.
-- Lost: accepted without a row. Doubled: a key with two deliveries that had an effect, or an operation completed twice.
WITH answered AS (
  SELECT request_id, key, count(*) AS times FROM book GROUP BY request_id, key
), kept AS (
  SELECT coalesce(o.request_id, d.request_id) AS request_id, convert_from(substring(d.key FROM 5), 'UTF8') AS key, count(*) AS times,
         count(*) FILTER (WHERE d.disposition <> 'duplicate') AS effective
  FROM recibo.deliveries d LEFT JOIN recibo.operations o ON o.id = d.operation GROUP BY 1, 2
), lost_registrations AS (
  SELECT count(*) AS n FROM answered a WHERE a.key = '' AND NOT EXISTS (SELECT FROM recibo.operations o WHERE o.request_id = a.request_id)
), lost_callbacks AS (
  SELECT coalesce(sum(greatest(0, a.times - coalesce(k.times, 0))), 0) AS n
  FROM answered a LEFT JOIN kept k ON k.request_id = a.request_id AND k.key = a.key WHERE a.key <> ''
), doubled_keys AS (
  SELECT coalesce(sum(effective - 1), 0) AS n FROM kept WHERE effective > 1
), doubled_effects AS (
  SELECT coalesce(sum(times - 1), 0) AS n
  FROM (SELECT count(*) AS times FROM recibo.transitions WHERE to_state = 'completed' GROUP BY operation HAVING count(*) > 1) twice
)
SELECT lost_registrations.n + lost_callbacks.n AS lost, doubled_keys.n + doubled_effects.n AS doubled
FROM lost_registrations, lost_callbacks, doubled_keys, doubled_effects
