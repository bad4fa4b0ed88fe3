import { derivedJson, messageJson, settledStamp } from './shared.ts'

/**
 * Functions that read. They are STABLE, so that all statements of one call see the same state. `read` answers several
 * requests of one scope in one round trip.
 */
export const readFunctions = `
CREATE OR REPLACE FUNCTION tk.read(p_scope text, p_requests jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  request jsonb;
  results json[] := '{}';
BEGIN
  PERFORM tk.enter(p_scope);
  FOR request IN SELECT value FROM jsonb_array_elements(p_requests) LOOP
    results := array_append(results, CASE request->>'read'
      WHEN 'head' THEN tk.read_head(p_scope, request)
      WHEN 'page' THEN tk.read_page(p_scope, request)
      WHEN 'found' THEN tk.find_messages(p_scope, request)
      WHEN 'derived' THEN tk.read_derived(p_scope, request)
      WHEN 'entries' THEN tk.read_entries(p_scope, request)
      WHEN 'changes' THEN tk.read_changes(p_scope, request)
      WHEN 'records' THEN tk.read_records(p_scope, request)
      WHEN 'vectors' THEN tk.read_vectors(p_scope, request)
      WHEN 'vector' THEN tk.read_vector(p_scope, request)
      WHEN 'nearest' THEN tk.find_nearest(p_scope, request)
      WHEN 'rows' THEN tk.read_rows(p_scope, request)
      WHEN 'rowRange' THEN tk.list_rows(p_scope, request)
      WHEN 'hasSnapshot' THEN to_json(EXISTS (SELECT 1 FROM tk.snapshot
        WHERE scope = tk.digest(p_scope) AND name = tk.digest(request->>'index')))
    END);
  END LOOP;
  RETURN array_to_json(results);
END $$;

-- Session that a request names, and NULL if it does not exist.
CREATE OR REPLACE FUNCTION tk.find_session(p_scope text, p_name text) RETURNS tk.session LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session;
BEGIN
  SELECT * INTO s FROM tk.session WHERE scope = p_scope AND name = p_name;
  RETURN s;
END $$;

-- State of a session. With the state that the caller has cached, only what is newer.
CREATE OR REPLACE FUNCTION tk.read_head(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session := tk.find_session(p_scope, r->>'name');
  known jsonb := r->'known';
  tail bigint := (r->>'recent')::bigint;
BEGIN
  IF s.id IS NULL THEN
    RETURN json_build_object('epoch', tk.tombstone_epoch(p_scope, r->>'name'));
  END IF;
  IF known->>'id' = s.id::text AND known->>'removals' = s.removals::text
    AND s.messages - (known->>'messages')::bigint <= 512 THEN
    RETURN json_build_object(
      'session', tk.session_json(s),
      'added', CASE WHEN known->>'revision' <> s.revision::text AND known ? 'tail'
        THEN tk.messages_json(p_scope, s.id, (known->>'tail')::bigint, 9007199254740991, 512, false) END,
      'derived', CASE WHEN known->>'derivedVersion' <> s.derived_version::text
        THEN tk.derived_json(p_scope, s.id) END);
  END IF;
  RETURN json_build_object(
    'session', tk.session_json(s),
    'first', (tk.messages_json(p_scope, s.id, 0, 9007199254740991, 1, false))->0,
    'lastUser', tk.message_json(p_scope, s.id, s.last_user),
    'tail', CASE WHEN tail > 0 THEN tk.messages_json(p_scope, s.id, 0, 9007199254740991, tail, true) END,
    'derived', tk.derived_json(p_scope, s.id));
END $$;

CREATE OR REPLACE FUNCTION tk.read_page(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session := tk.find_session(p_scope, r->>'name');
BEGIN
  RETURN tk.messages_json(p_scope, s.id, (r->>'after')::bigint, (r->>'before')::bigint, (r->>'limit')::bigint,
    (r->>'newest')::boolean);
END $$;

CREATE OR REPLACE FUNCTION tk.find_messages(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session := tk.find_session(p_scope, r->>'name');
BEGIN
  RETURN (SELECT coalesce(json_agg(${messageJson('m')} ORDER BY m.sequence), '[]'::json) FROM tk.message m
    WHERE m.scope = p_scope AND m.session = s.id
      AND m.external_id IN (SELECT value FROM jsonb_array_elements_text(r->'ids')));
END $$;

CREATE OR REPLACE FUNCTION tk.read_derived(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session := tk.find_session(p_scope, r->>'name');
BEGIN
  RETURN tk.derived_json(p_scope, s.id);
END $$;

-- Entries by session name and id, in the order of the request; NULL for those that do not exist.
CREATE OR REPLACE FUNCTION tk.read_entries(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(coalesce(
      (SELECT json_build_object('message', ${messageJson('m')}) FROM tk.message m
        WHERE m.scope = p_scope AND m.session = s.id AND m.sequence = tk.parse_message_id(e.value->>1)),
      (SELECT json_build_object('derived', ${derivedJson('d')}) FROM tk.derived d
        WHERE d.scope = p_scope AND d.session = s.id AND d.id = e.value->>1)) ORDER BY e.ordinality), '[]'::json)
    FROM jsonb_array_elements(r->'entries') WITH ORDINALITY e
    LEFT JOIN tk.session s ON s.scope = p_scope AND s.name = e.value->>0);
END $$;

-- Sessions changed since a stamp, with the new messages and the derived entries of the first ones.
CREATE OR REPLACE FUNCTION tk.read_changes(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  since bigint := (r->>'since')::bigint;
  max_contents bigint := (r->>'maxContents')::bigint;
  s tk.session;
  sessions json[] := '{}';
BEGIN
  IF r->>'name' IS NOT NULL THEN
    s := tk.find_session(p_scope, r->>'name');
    IF s.stamp > since AND s.revision IS DISTINCT FROM (r->>'revision')::bigint THEN
      sessions := ARRAY[tk.change_json(s, r, max_contents > 0)];
    END IF;
  ELSE
    FOR s IN SELECT * FROM tk.session t WHERE t.scope = p_scope AND t.stamp > since ORDER BY t.stamp, t.name LOOP
      sessions := array_append(sessions, tk.change_json(s, r, cardinality(sessions) < max_contents));
    END LOOP;
  END IF;
  RETURN json_build_object('stamp', ${settledStamp}, 'lineage', tk.lineage(p_scope, r->>'name'),
    'sessions', array_to_json(sessions));
END $$;

CREATE OR REPLACE FUNCTION tk.change_json(s tk.session, r jsonb, p_with_content boolean) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT p_with_content THEN RETURN json_build_array(s.name, s.revision, s.derived_version); END IF;
  RETURN json_build_array(s.name, s.revision, s.derived_version,
    tk.new_messages(s.scope, s.id, (r->>'since')::bigint, (r->>'after')::bigint, (r->>'page')::bigint),
    CASE WHEN s.derived_version IS DISTINCT FROM (r->>'derivedVersion')::bigint THEN tk.derived_json(s.scope, s.id) END);
END $$;

-- Messages that an index lacks: after a number, or stored since a stamp. NULL if they are more than a page.
CREATE OR REPLACE FUNCTION tk.new_messages(p_scope text, p_session bigint, p_since bigint, p_after bigint, p_page bigint)
RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT CASE WHEN count(*) <= p_page THEN coalesce(json_agg(
      ${messageJson('m')} ORDER BY m.sequence), '[]'::json) END
    FROM (SELECT * FROM tk.message t WHERE t.scope = p_scope AND t.session = p_session
        AND t.sequence > coalesce(p_after, 0)
      ORDER BY t.sequence DESC LIMIT p_page + 1) m
    WHERE p_after IS NOT NULL OR m.stamp > p_since);
END $$;

CREATE OR REPLACE FUNCTION tk.read_records(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session := tk.find_session(p_scope, r->>'name');
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(t.number, t.id, t.at, t.body) ORDER BY t.number DESC), '[]'::json)
    FROM (SELECT * FROM tk.record WHERE scope = p_scope AND session = s.id AND number < (r->>'before')::bigint
      ORDER BY number DESC LIMIT (r->>'limit')::bigint) t);
END $$;

-- Vectors stored after a stamp: whole transactions, at least a page of those that no running one can precede.
CREATE OR REPLACE FUNCTION tk.read_vectors(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  after bigint := (r->>'after')::bigint;
  settled bigint := ${settledStamp};
  source text := 'FROM tk.vector v JOIN tk.session s ON s.scope = v.scope AND s.id = v.session
    WHERE v.scope = $1 AND v.model = $2 AND v.stamp > $3 AND v.stamp <= $4'
    || CASE WHEN r->>'name' IS NULL THEN '' ELSE ' AND s.scope = $1 AND s.name = $5' END;
  page_end bigint;
  vectors json;
BEGIN
  EXECUTE 'SELECT v.stamp ' || source || ' ORDER BY v.stamp OFFSET $6 LIMIT 1' INTO page_end
    USING p_scope, r->>'model', after, settled, r->>'name', (r->>'limit')::bigint - 1;
  EXECUTE 'SELECT coalesce(json_agg(json_build_array(s.name, v.id, v.kind, v.at, encode(v.data, ''base64''))
    ORDER BY v.stamp, s.name, v.id), ''[]''::json) ' || source INTO vectors
    USING p_scope, r->>'model', after, coalesce(page_end, 9223372036854775807), r->>'name';
  RETURN json_build_object('next', greatest(after, coalesce(page_end, settled)), 'vectors', vectors);
END $$;

CREATE OR REPLACE FUNCTION tk.read_vector(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session := tk.find_session(p_scope, r->>'name');
BEGIN
  RETURN (SELECT json_build_array(v.model, encode(v.data, 'base64')) FROM tk.vector v
    WHERE v.scope = p_scope AND v.session = s.id AND v.id = r->>'id');
END $$;

CREATE OR REPLACE FUNCTION tk.row_json(t tk.table_row) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_array(encode(t.name, 'base64'), t.json, encode(t.bytes, 'base64'), t.created, t.updated, t.revision);
END $$;

CREATE OR REPLACE FUNCTION tk.read_rows(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(CASE WHEN t.revision IS NOT NULL THEN tk.row_json(t) END ORDER BY e.ordinality), '[]'::json)
    FROM jsonb_array_elements_text(r->'names') WITH ORDINALITY e
    LEFT JOIN tk.table_row t ON t.scope = p_scope AND t.digest = sha256(decode(e.value, 'base64')));
END $$;

-- Rows with a name above one and below another, in order.
CREATE OR REPLACE FUNCTION tk.list_rows(p_scope text, r jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  above bytea := decode(r->>'above', 'base64');
  below bytea := decode(r->>'below', 'base64');
BEGIN
  RETURN (SELECT coalesce(json_agg(tk.row_json(t) ORDER BY t.name), '[]'::json) FROM (
    SELECT * FROM tk.table_row WHERE scope = p_scope AND name > above AND name < below
      AND substr(name, 1, 1000) >= substr(above, 1, 1000) AND substr(name, 1, 1000) <= substr(below, 1, 1000)
    ORDER BY substr(name, 1, 1000), name LIMIT (r->>'limit')::bigint) t);
END $$;
`
