import { currentStamp } from './shared.ts'

/** Functions for records, vectors, saved indexes, rows, and the operations that read all scopes. */
export const auxiliaryFunctions = `
-- Appends a record and drops the oldest beyond a number; false if the session does not exist.
CREATE OR REPLACE FUNCTION tk.append_record(p_scope text, p_name text, r jsonb, p_keep bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  session_id bigint;
  newest bigint;
BEGIN
  PERFORM tk.enter_durably(p_scope);
  SELECT id INTO session_id FROM tk.session WHERE scope = p_scope AND name = p_name FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  SELECT coalesce(max(number), 0) INTO newest FROM tk.record WHERE scope = p_scope AND session = session_id;
  -- A client repeats the call when the connection was lost before the answer.
  IF EXISTS (SELECT 1 FROM tk.record WHERE scope = p_scope AND session = session_id AND number > newest - 16
    AND id = r->>'id' AND body = r->>'body') THEN RETURN 'true'; END IF;
  INSERT INTO tk.record (scope, session, number, at, id, body)
    VALUES (p_scope, session_id, newest + 1, (r->>'at')::float8, r->>'id', r->>'body');
  DELETE FROM tk.record WHERE scope = p_scope AND session = session_id AND number <= newest + 1 - p_keep;
  RETURN 'true';
END $$;

-- Stores vectors of entries that still have the text, or for derived entries the body, that they were computed from.
CREATE OR REPLACE FUNCTION tk.store_vectors(p_model text, p_vectors jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v record;
  stored int := 0;
  session_id bigint;
  entry_at float8;
  entry_kind text;
BEGIN
  FOR v IN SELECT * FROM jsonb_to_recordset(p_vectors)
    AS x(scope text, name text, epoch bigint, id text, content text, body text, dimensions int, data text)
    ORDER BY scope, name LOOP
    PERFORM tk.enter_durably(v.scope);
    SELECT s.id INTO session_id FROM tk.session s
      WHERE s.scope = v.scope AND s.name = v.name AND s.epoch = v.epoch FOR UPDATE;
    CONTINUE WHEN NOT FOUND;
    IF v.body IS NULL THEN
      SELECT m.at, 'message' INTO entry_at, entry_kind FROM tk.message m WHERE m.scope = v.scope
        AND m.session = session_id AND m.sequence = tk.parse_message_id(v.id) AND m.content = v.content;
    ELSE
      SELECT d.at, d.kind INTO entry_at, entry_kind FROM tk.derived d WHERE d.scope = v.scope
        AND d.session = session_id AND d.id = v.id AND d.body = v.body;
    END IF;
    CONTINUE WHEN NOT FOUND;
    INSERT INTO tk.vector (scope, session, stamp, at, dimensions, id, kind, model, data)
      VALUES (v.scope, session_id, ${currentStamp}, entry_at, v.dimensions, v.id, entry_kind, p_model,
        decode(v.data, 'base64'))
      ON CONFLICT (scope, session, id) DO UPDATE SET stamp = excluded.stamp, at = excluded.at, kind = excluded.kind,
        dimensions = excluded.dimensions, model = excluded.model, data = excluded.data;
    stored := stored + 1;
  END LOOP;
  RETURN to_json(stored);
END $$;

-- Saves a search index; false if something in it was removed meanwhile.
CREATE OR REPLACE FUNCTION tk.save_snapshot(p_scope text, p_name text, p_index text, p_stamp bigint, p_lineage text, p_data bytea)
RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tk.enter(p_scope);
  IF tk.lineage(p_scope, p_name) <> p_lineage THEN RETURN 'false'; END IF;
  INSERT INTO tk.snapshot AS s VALUES (tk.digest(p_scope), tk.digest(p_index), p_stamp, p_lineage, p_data)
    ON CONFLICT (scope, name) DO UPDATE SET stamp = excluded.stamp, lineage = excluded.lineage, data = excluded.data;
  -- A removal that commits now has not seen this snapshot and does not delete it: its lineage tells.
  RETURN 'true';
END $$;

CREATE OR REPLACE FUNCTION tk.load_snapshot(p_scope text, p_index text) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM tk.enter(p_scope);
  RETURN (SELECT data FROM tk.snapshot WHERE scope = tk.digest(p_scope) AND name = tk.digest(p_index));
END $$;

-- Writes all rows or none. Returns the name and revision of the first row that is not as expected.
CREATE OR REPLACE FUNCTION tk.write_rows(p_scope text, p_at float8, p_writes jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  w record;
  existing bigint;
BEGIN
  PERFORM tk.enter_durably(p_scope);
  -- Rows are locked in the order of their digests, so that concurrent writers wait for each other and never mutually.
  FOR w IN SELECT sha256(decode(x.name, 'base64')) AS digest FROM jsonb_to_recordset(p_writes) AS x(name text) ORDER BY 1 LOOP
    PERFORM pg_advisory_xact_lock(hashtextextended('tk.row ' || p_scope || encode(w.digest, 'base64'), 0));
  END LOOP;
  FOR w IN SELECT x.*, sha256(decode(x.name, 'base64')) AS digest FROM ROWS FROM (jsonb_to_recordset(p_writes)
    AS (name text, expected bigint, json text, bytes text, created float8)) WITH ORDINALITY AS x ORDER BY ordinality LOOP
    SELECT t.revision INTO existing FROM tk.table_row t WHERE t.scope = p_scope AND t.digest = w.digest;
    IF w.expected <> coalesce(existing, 0) THEN
      RETURN json_build_object('index', w.ordinality - 1, 'revision', coalesce(existing, 0));
    END IF;
  END LOOP;
  FOR w IN SELECT x.*, decode(x.name, 'base64') AS raw_name FROM jsonb_to_recordset(p_writes)
    AS x(name text, json text, bytes text, created float8) LOOP
    IF w.json IS NULL AND w.bytes IS NULL THEN
      DELETE FROM tk.table_row t WHERE t.scope = p_scope AND t.digest = sha256(w.raw_name);
    ELSE
      INSERT INTO tk.table_row AS t (scope, digest, name, revision, created, updated, json, bytes)
        VALUES (p_scope, sha256(w.raw_name), w.raw_name, 1, coalesce(w.created, p_at), p_at, w.json,
          decode(w.bytes, 'base64'))
        ON CONFLICT (scope, digest) DO UPDATE SET revision = t.revision + 1, updated = excluded.updated,
          created = coalesce(w.created, t.created), json = excluded.json, bytes = excluded.bytes;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tk.erase_rows(p_scope text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  erased bigint;
BEGIN
  PERFORM tk.enter_durably(p_scope);
  DELETE FROM tk.table_row WHERE scope = p_scope;
  GET DIAGNOSTICS erased = ROW_COUNT;
  PERFORM tk.notify_erasure(p_scope);
  RETURN to_json(erased);
END $$;

-- Operations of the operator: those without a scope read all of them.

-- Planned for its values: a list of expired sessions reads only these.
CREATE OR REPLACE FUNCTION tk.list_sessions(p_filter jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  sessions json;
BEGIN
  PERFORM tk.enter(coalesce(p_filter->>'scope', '*'));
  EXECUTE 'SELECT coalesce(json_agg(json_build_array(t.scope, t.name, t.started, t.touched, t.expires, t.messages,
      (SELECT d.body FROM tk.derived d
        WHERE d.scope = t.scope AND d.session = t.id AND d.id = ''about'' AND d.kind = ''about''))
      ORDER BY t.scope, t.name), ''[]''::json)
    FROM (SELECT * FROM tk.session s WHERE (s.scope, s.name) > ($1, $2)'
    || CASE WHEN p_filter ? 'scope' THEN ' AND s.scope = $3' ELSE '' END
    || CASE WHEN p_filter ? 'expiredBy' THEN ' AND s.expires <= $4' ELSE '' END
    || CASE WHEN p_filter ? 'fields' THEN ' AND s.fields @> $5' ELSE '' END
    || ' ORDER BY s.scope, s.name LIMIT $6) t'
    INTO sessions USING p_filter->>'afterScope', p_filter->>'afterName', p_filter->>'scope',
      (p_filter->>'expiredBy')::float8, ARRAY(SELECT jsonb_array_elements_text(p_filter->'fields')),
      (p_filter->>'limit')::bigint;
  RETURN sessions;
END $$;

-- Scopes that have rows, in order. Each step finds the next one in the index instead of reading all rows.
CREATE OR REPLACE FUNCTION tk.list_row_scopes(p_after text, p_limit bigint) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  next_scope text := p_after;
  scopes text[] := '{}';
BEGIN
  PERFORM tk.enter('*');
  WHILE cardinality(scopes) < p_limit LOOP
    SELECT t.scope INTO next_scope FROM tk.table_row t WHERE t.scope > next_scope ORDER BY t.scope LIMIT 1;
    EXIT WHEN NOT FOUND;
    scopes := array_append(scopes, next_scope);
  END LOOP;
  RETURN array_to_json(scopes);
END $$;

-- Entries without a vector of a model after a position: messages first, then derived entries of visible kinds.
CREATE OR REPLACE FUNCTION tk.list_unembedded(p_model text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM tk.enter('*');
  IF r->>'in' = 'message' THEN
    RETURN (SELECT coalesce(json_agg(json_build_array(t.scope, t.name, t.epoch, t.session, t.sequence, t.content)
        ORDER BY t.scope, t.session, t.sequence), '[]'::json)
      FROM (SELECT m.scope, s.name, s.epoch, m.session, m.sequence, m.content FROM tk.message m
        JOIN tk.session s ON s.scope = m.scope AND s.id = m.session
        LEFT JOIN tk.vector v ON v.scope = m.scope AND v.session = m.session AND v.id = 'm' || m.sequence
        WHERE (m.scope, m.session, m.sequence) > (r->>'scope', (r->>'session')::bigint, (r->>'place')::bigint)
          AND NOT m.blank AND v.model IS DISTINCT FROM p_model
        ORDER BY m.scope, m.session, m.sequence LIMIT (r->>'limit')::bigint) t);
  END IF;
  RETURN (SELECT coalesce(json_agg(json_build_array(t.scope, t.name, t.epoch, t.session, t.place, t.id, t.kind, t.at, t.body)
      ORDER BY t.scope, t.session, t.place), '[]'::json)
    FROM (SELECT d.scope, s.name, s.epoch, d.session, d.place, d.id, d.kind, d.at, d.body FROM tk.derived d
      JOIN tk.session s ON s.scope = d.scope AND s.id = d.session
      LEFT JOIN tk.vector v ON v.scope = d.scope AND v.session = d.session AND v.id = d.id
      WHERE (d.scope, d.session, d.place) > (r->>'scope', (r->>'session')::bigint, (r->>'place')::bigint)
        AND d.kind NOT IN (SELECT jsonb_array_elements_text(r->'hidden')) AND v.model IS DISTINCT FROM p_model
      ORDER BY d.scope, d.session, d.place LIMIT (r->>'limit')::bigint) t);
END $$;

CREATE OR REPLACE FUNCTION tk.count_vectors(p_model text, p_hidden jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM tk.enter('*');
  RETURN json_build_object(
    'done', (SELECT count(*) FROM tk.vector WHERE model = p_model),
    'total', (SELECT count(*) FROM tk.message WHERE NOT blank) + (SELECT count(*) FROM tk.derived
      WHERE kind NOT IN (SELECT jsonb_array_elements_text(p_hidden))));
END $$;

-- Prepares the stamps of a database that was restored from a dump: its transaction ids start again.
CREATE OR REPLACE FUNCTION tk.adopt_stamps(p_identity text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_stamp bigint := ${currentStamp};
BEGIN
  IF EXISTS (SELECT 1 FROM tk.setting WHERE name = 'origin' AND value = p_identity) THEN RETURN 'false'; END IF;
  PERFORM tk.enter_durably('*');
  LOCK TABLE tk.setting;
  UPDATE tk.session SET stamp = now_stamp WHERE stamp > now_stamp;
  UPDATE tk.message SET stamp = now_stamp WHERE stamp > now_stamp;
  UPDATE tk.vector SET stamp = now_stamp WHERE stamp > now_stamp;
  DELETE FROM tk.snapshot;
  INSERT INTO tk.setting VALUES ('origin', p_identity) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
  RETURN 'true';
END $$;

-- Marks an empty store as encrypted or not. Returns how it is marked.
CREATE OR REPLACE FUNCTION tk.mark_encryption(p_encrypted boolean) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tk.enter_durably('*');
  INSERT INTO tk.setting VALUES ('encrypted', p_encrypted::text) ON CONFLICT (name) DO UPDATE
    SET value = excluded.value WHERE tk.setting.value <> excluded.value AND NOT EXISTS (SELECT 1 FROM tk.session);
  RETURN (SELECT to_json(value = 'true') FROM tk.setting WHERE name = 'encrypted');
END $$;

-- Numbers of rows and bytes, for the doctor.
CREATE OR REPLACE FUNCTION tk.report() RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM tk.enter('*');
  RETURN json_build_object(
    'sessions', (SELECT count(*) FROM tk.session), 'messages', (SELECT count(*) FROM tk.message),
    'derived', (SELECT count(*) FROM tk.derived), 'vectors', (SELECT count(*) FROM tk.vector),
    'rows', (SELECT count(*) FROM tk.table_row),
    'bytes', (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
      WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'tk.session'::regclass)),
    'damage', (SELECT coalesce(json_agg(json_build_object('key', tk.format_key(s.scope, s.name), 'reason', 'it counts '
        || s.messages || ' messages and holds ' || m.messages)), '[]'::json)
      FROM tk.session s CROSS JOIN LATERAL (SELECT count(*) AS messages FROM tk.message m
        WHERE m.scope = s.scope AND m.session = s.id) m WHERE m.messages <> s.messages));
END $$;
`
