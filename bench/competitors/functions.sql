-- One callback, or one registration, in one call: what `pgbench_single` and `fastify_pg_tuned` run as one transaction each.
CREATE FUNCTION register(new_request_id text, new_provider text, new_action text, new_amount numeric, new_currency text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  made bigint;
  fact bytea := sha256(convert_to('accepted' || new_request_id, 'UTF8'));
BEGIN
  INSERT INTO operations (request_id, provider, action, amount, currency, chain)
  VALUES (new_request_id, new_provider, new_action, new_amount, new_currency, fact)
  ON CONFLICT (request_id) DO NOTHING RETURNING id INTO made;
  IF made IS NULL THEN
    RETURN 'duplicate';
  END IF;
  INSERT INTO audit (operation, kind, hash) VALUES (made, 'accepted', fact);
  INSERT INTO notifications (operation, type, destination) VALUES (made, 'operation.accepted', 'ledger');
  RETURN 'registered';
END $$;

CREATE FUNCTION record(of_request_id text, of_provider text, new_key text, new_event text, new_occurred_at timestamptz,
                       new_digest bytea, new_body bytea) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  o operations;
  earlier idempotency_keys;
  word text;
  target text := CASE new_event WHEN 'succeeded' THEN 'completed' WHEN 'failed' THEN 'failed' ELSE 'processing' END;
  made bigint;
  fact bytea;
BEGIN
  SELECT * INTO o FROM operations WHERE request_id = of_request_id AND provider = of_provider FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN 'unknown_operation';
  END IF;
  SELECT * INTO earlier FROM idempotency_keys WHERE provider = of_provider AND key = new_key;
  IF FOUND THEN
    word := CASE WHEN earlier.digest = new_digest THEN 'duplicate' ELSE 'conflict' END;
  ELSIF o.state IN ('completed', 'failed') OR (o.state = 'processing' AND target = 'processing') THEN
    word := 'stale';
  ELSE
    word := 'applied';
  END IF;
  INSERT INTO deliveries (operation, provider, key, event, disposition, occurred_at, digest, body)
  VALUES (o.id, of_provider, new_key, new_event, word, new_occurred_at, new_digest, new_body) RETURNING id INTO made;
  fact := sha256(o.chain || new_digest || convert_to(word, 'UTF8'));
  INSERT INTO audit (operation, kind, delivery, hash) VALUES (o.id, word, made, fact);
  IF word IN ('applied', 'stale') THEN
    INSERT INTO idempotency_keys VALUES (of_provider, new_key, o.id, made, new_digest, word);
  END IF;
  IF word = 'applied' THEN
    UPDATE operations SET state = target, version = version + 1, chain = fact, occurred_at = new_occurred_at, updated_at = now()
    WHERE id = o.id;
    INSERT INTO transitions (operation, version, event, from_state, to_state, delivery)
    VALUES (o.id, o.version + 1, new_event, o.state, target, made);
    INSERT INTO notifications (operation, type, destination) VALUES (o.id, 'operation.' || target, 'ledger');
  ELSE
    UPDATE operations SET chain = fact, updated_at = now() WHERE id = o.id;
  END IF;
  RETURN word;
END $$;

-- Where an operation stands among its thousand: bench/load/stream.cpp computes the same.
CREATE FUNCTION place(of_user bigint, of_operation bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT (of_user * 37 + of_operation) * 7919 % 1000 $$;

-- 600 bytes, as many as a callback of the load generator has.
CREATE FUNCTION body(of_request_id text, of_key text, of_status text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT convert_to(rpad('{"request_id":"' || of_request_id || '","event_id":"' || of_key || '","status":"' || of_status
    || '","amount":"19.99","currency":"EUR","note":"', 598, 'settled by the acquirer in batch 20261130, ') || '"}', 'UTF8')
$$;

CREATE FUNCTION say(of_run text, of_user bigint, of_operation bigint, suffix text, status text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  name text := of_run || '-' || of_user || '-' || of_operation;
  bytes bytea := body(name, name || suffix, status);
BEGIN
  RETURN record(name, 'bench', name || suffix, status, now(), sha256(bytes), bytes);
END $$;

-- The same rows, `count` operations at a time: what the database can do when somebody has collected a batch. For reference;
-- it decides nothing that the mix does not need, and answers nobody.
CREATE FUNCTION record_set(of_run text, of_user bigint, from_operation bigint, count bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  done bigint;
BEGIN
  WITH made AS (
    INSERT INTO operations (request_id, provider, action, amount, currency, chain)
    SELECT of_run || '-' || of_user || '-' || i, 'bench', 'charge', 19.99, 'EUR', sha256(convert_to('accepted' || i, 'UTF8'))
    FROM generate_series(from_operation, from_operation + count - 1) i RETURNING id, chain
  ), chained AS (INSERT INTO audit (operation, kind, hash) SELECT id, 'accepted', chain FROM made)
  INSERT INTO notifications (operation, type, destination) SELECT id, 'operation.accepted', 'ledger' FROM made;

  CREATE TEMP TABLE IF NOT EXISTS said (request_id text, key text, status text, word text, id bigint, digest bytea, body bytea, version integer, chain bytea) ON COMMIT DELETE ROWS;
  INSERT INTO said
  SELECT n.request_id, n.request_id || w.suffix, w.status, w.word, o.id, sha256(b.bytes), b.bytes, o.version, o.chain
  FROM generate_series(from_operation, from_operation + count - 1) i
  CROSS JOIN LATERAL (SELECT of_run || '-' || of_user || '-' || i AS request_id, place(of_user, i) AS p) n
  CROSS JOIN LATERAL (VALUES ('-done', 'succeeded', 'applied', n.p < 962), ('-done', 'succeeded', 'duplicate', n.p < 260),
                             ('-seen', 'processing', 'stale', n.p BETWEEN 300 AND 364)) w(suffix, status, word, wanted)
  JOIN operations o ON o.request_id = n.request_id
  CROSS JOIN LATERAL (SELECT body(n.request_id, n.request_id || w.suffix, w.status) AS bytes) b
  WHERE w.wanted;
  GET DIAGNOSTICS done = ROW_COUNT;

  INSERT INTO deliveries (operation, provider, key, event, disposition, occurred_at, digest, body)
  SELECT id, 'bench', key, status, word, now(), digest, body FROM said;
  INSERT INTO idempotency_keys SELECT 'bench', key, id, 0, digest, word FROM said WHERE word <> 'duplicate';
  UPDATE operations o SET state = 'completed', version = o.version + 1, chain = sha256(s.chain || s.digest), occurred_at = now(), updated_at = now()
  FROM said s WHERE o.id = s.id AND s.word = 'applied';
  INSERT INTO transitions (operation, version, event, from_state, to_state, delivery)
  SELECT id, version + 1, status, 'accepted', 'completed', 0 FROM said WHERE word = 'applied';
  INSERT INTO audit (operation, kind, hash) SELECT id, word, sha256(chain || digest) FROM said;
  INSERT INTO notifications (operation, type, destination) SELECT id, 'operation.completed', 'ledger' FROM said WHERE word = 'applied';
  RETURN done;
END $$;
