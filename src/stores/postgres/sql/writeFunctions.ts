import { currentStamp } from './shared.ts'

/** Columns of appended and replacing messages in a change. */
const inputColumns = `at float8, role text, name text, tokens int, "lineTokens" int, tokenizer text, weight int,
      calls text, answers text, content text, payload text, branch bigint, "externalId" text, blank boolean`

/** Functions that write sessions. Each takes the lock of its session first and applies everything or nothing. */
export const writeFunctions = `
-- Locks a session until the end of the transaction. A session that does not exist is locked by its name.
CREATE OR REPLACE FUNCTION tk.lock_session(p_scope text, p_name text) RETURNS tk.session LANGUAGE plpgsql AS $$
DECLARE
  s tk.session;
BEGIN
  SELECT * INTO s FROM tk.session WHERE scope = p_scope AND name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('tk.session ' || tk.format_key(p_scope, p_name), 0));
    SELECT * INTO s FROM tk.session WHERE scope = p_scope AND name = p_name FOR UPDATE;
  END IF;
  RETURN s;
END $$;

-- Counts a removal and deletes the saved indexes of the scope, which may contain the removed text.
CREATE OR REPLACE FUNCTION tk.count_removal(p_scope text, p_session bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tk.removal AS r VALUES (tk.digest(p_scope), coalesce(p_session, 0) % 16, 1)
    ON CONFLICT (scope, slot) DO UPDATE SET count = r.count + 1;
  DELETE FROM tk.snapshot WHERE scope = tk.digest(p_scope);
END $$;

-- Newest user message with visible text before a number.
CREATE OR REPLACE FUNCTION tk.last_user_before(s tk.session, p_before bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT m.sequence FROM tk.message m WHERE m.scope = s.scope AND m.session = s.id AND m.sequence < p_before
    AND m.role = 'user' AND NOT m.blank ORDER BY m.sequence DESC LIMIT 1);
END $$;

-- Describes why the ids of a change do not fit the session; NULL if they do.
CREATE OR REPLACE FUNCTION tk.check_ids(s tk.session, c jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  replaced text[] := ARRAY(SELECT value->>'id' FROM jsonb_array_elements(c->'replace'));
  existing text[] := ARRAY(SELECT 'm' || m.sequence FROM tk.message m WHERE m.scope = s.scope AND m.session = s.id
    AND m.sequence IN (SELECT tk.parse_message_id(id) FROM unnest(replaced) id));
  given text[] := ARRAY(SELECT value FROM jsonb_array_elements_text(c->'externalIds'));
  owners jsonb := (SELECT coalesce(jsonb_object_agg(m.external_id, 'm' || m.sequence), '{}') FROM tk.message m
    WHERE m.scope = s.scope AND m.session = s.id AND m.external_id = ANY (given));
BEGIN
  IF (cardinality(replaced) > 0 AND c->'base' IS NULL)
    OR cardinality(existing) <> cardinality(replaced)
    OR (SELECT count(DISTINCT id) FROM unnest(given) id) <> cardinality(given)
    OR EXISTS (SELECT 1 FROM jsonb_each_text(owners) owner
      WHERE owner.value <> ALL (replaced) AND NOT coalesce(c->'drop' @> to_jsonb(owner.value), false)) THEN
    RETURN json_build_object('conflict', 'ids', 'existing', existing, 'owners', owners);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tk.replace_messages(INOUT s tk.session, c jsonb) LANGUAGE plpgsql AS $$
DECLARE
  m record;
  old_weight int;
BEGIN
  FOR m IN SELECT tk.parse_message_id(r.id) AS sequence, r.*, r.role = 'user' AND NOT r.blank AS is_visible_user
    FROM jsonb_to_recordset(c->'replace') AS r(id text, ${inputColumns}) LOOP
    SELECT t.weight INTO old_weight FROM tk.message t
      WHERE t.scope = s.scope AND t.session = s.id AND t.sequence = m.sequence;
    UPDATE tk.message t SET stamp = ${currentStamp}, at = m.at, role = m.role, name = m.name, tokens = m.tokens,
      line_tokens = m."lineTokens", tokenizer = m.tokenizer, weight = m.weight, calls = m.calls, answers = m.answers,
      content = m.content, payload = m.payload, branch = m.branch, external_id = m."externalId", blank = m.blank
      WHERE t.scope = s.scope AND t.session = s.id AND t.sequence = m.sequence;
    DELETE FROM tk.vector v WHERE v.scope = s.scope AND v.session = s.id AND v.id = m.id;
    -- Positions of later messages never move back.
    s.weight := s.weight + greatest(0, m.weight - old_weight);
    IF m.is_visible_user THEN
      s.last_user := greatest(m.sequence, s.last_user);
    ELSIF s.last_user = m.sequence THEN
      s.last_user := tk.last_user_before(s, m.sequence);
    END IF;
  END LOOP;
  s.removals := s.removals + 1;
  PERFORM tk.count_removal(s.scope, s.id);
END $$;

-- Inserts the messages of a change from a number and an offset on.
CREATE OR REPLACE FUNCTION tk.insert_messages(INOUT s tk.session, c jsonb, p_first bigint, p_offset bigint) LANGUAGE plpgsql AS $$
DECLARE
  added record;
BEGIN
  WITH input AS (
    SELECT * FROM ROWS FROM (jsonb_to_recordset(c->'append') AS (${inputColumns})) WITH ORDINALITY
  ), stored AS (
    INSERT INTO tk.message (scope, session, sequence, stamp, at, "offset", branch, tokens, line_tokens, weight, blank,
      role, tokenizer, name, answers, external_id, calls, content, payload)
    SELECT s.scope, s.id, p_first + i.ordinality - 1, ${currentStamp}, i.at,
      p_offset + sum(i.weight) OVER (ORDER BY i.ordinality) - i.weight, i.branch, i.tokens, i."lineTokens", i.weight,
      i.blank, i.role, i.tokenizer, i.name, i.answers, i."externalId", i.calls, i.content, i.payload
    FROM input i
    RETURNING sequence, weight, role = 'user' AND NOT blank AS is_visible_user
  )
  SELECT count(*) AS messages, coalesce(sum(t.weight), 0) AS weight,
    max(t.sequence) FILTER (WHERE t.is_visible_user) AS last_user INTO added FROM stored t;
  s.messages := s.messages + added.messages;
  s.weight := s.weight + added.weight;
  s.last_user := greatest(s.last_user, added.last_user);
END $$;

CREATE OR REPLACE FUNCTION tk.put_derived(INOUT s tk.session, c jsonb) LANGUAGE plpgsql AS $$
DECLARE
  e record;
BEGIN
  FOR e IN SELECT * FROM jsonb_to_recordset(c->'put') AS d(id text, kind text, at float8, body text, fields jsonb) LOOP
    s.derived_version := s.derived_version + 1;
    INSERT INTO tk.derived (scope, session, place, at, id, kind, body)
      VALUES (s.scope, s.id, s.derived_version, e.at, e.id, e.kind, e.body)
      ON CONFLICT (scope, session, id) DO UPDATE SET kind = excluded.kind, at = excluded.at, body = excluded.body;
    DELETE FROM tk.vector v WHERE v.scope = s.scope AND v.session = s.id AND v.id = e.id;
    IF e.id = 'about' THEN
      s.fields := CASE WHEN jsonb_typeof(e.fields) = 'array'
        THEN ARRAY(SELECT value FROM jsonb_array_elements_text(e.fields)) END;
    END IF;
  END LOOP;
END $$;

-- Removes entries. Returns the ids of those that existed, in the order given.
CREATE OR REPLACE FUNCTION tk.remove_entries(INOUT s tk.session, p_ids jsonb, OUT removed text[]) LANGUAGE plpgsql AS $$
DECLARE
  entry text;
  number bigint;
BEGIN
  removed := '{}';
  FOR entry IN SELECT value FROM jsonb_array_elements_text(p_ids) LOOP
    number := tk.parse_message_id(entry);
    IF number IS NULL THEN
      DELETE FROM tk.derived d WHERE d.scope = s.scope AND d.session = s.id AND d.id = entry;
    ELSE
      DELETE FROM tk.message m WHERE m.scope = s.scope AND m.session = s.id AND m.sequence = number;
    END IF;
    CONTINUE WHEN NOT FOUND;
    removed := removed || entry;
    DELETE FROM tk.vector v WHERE v.scope = s.scope AND v.session = s.id AND v.id = entry;
    IF number IS NULL THEN
      s.derived_version := s.derived_version + 1;
      IF entry = 'about' THEN s.fields := NULL; END IF;
    ELSE
      s.messages := s.messages - 1;
      s.gaps := s.gaps + int8multirange(int8range(number, number, '[]'));
      IF s.last_user = number THEN s.last_user := tk.last_user_before(s, number); END IF;
    END IF;
  END LOOP;
  IF cardinality(removed) > 0 THEN
    s.removals := s.removals + 1;
    PERFORM tk.count_removal(s.scope, s.id);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION tk.save_session(s tk.session, p_is_new boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  s.stamp := ${currentStamp};
  IF p_is_new THEN
    INSERT INTO tk.session SELECT s.*;
  ELSE
    UPDATE tk.session t SET revision = s.revision, stamp = s.stamp, removals = s.removals,
      derived_version = s.derived_version, touched = s.touched, expires = s.expires, messages = s.messages,
      last = s.last, weight = s.weight, last_user = s.last_user, gaps = s.gaps, fields = s.fields
      WHERE t.scope = s.scope AND t.name = s.name;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION tk.create_session(p_scope text, p_name text, c jsonb) RETURNS tk.session LANGUAGE plpgsql AS $$
DECLARE
  s tk.session;
BEGIN
  SELECT p_scope, p_name, nextval('tk.session_id'), (c->>'epoch')::bigint, 0, 0, 0, 0, (c->>'at')::float8,
    (c->>'at')::float8, (c->>'expiresAt')::float8, 0, 0, 0, NULL, '{}'::int8multirange, NULL::text[] INTO s;
  RETURN s;
END $$;

-- Applies a change. A change that does not fit the session is described and not applied.
CREATE OR REPLACE FUNCTION tk.commit_change(p_scope text, p_name text, c jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  s tk.session;
  is_new boolean;
  applied tk.operation;
  problem json;
  start bigint := (c->'from'->>'sequence')::bigint;
  first_number bigint;
  first_offset bigint;
  next_offset bigint;
  filled boolean;
  result record;
BEGIN
  PERFORM tk.enter_durably(p_scope);
  s := tk.lock_session(p_scope, p_name);
  is_new := s.id IS NULL;
  IF (c->>'epoch')::bigint <> coalesce(s.epoch, tk.tombstone_epoch(p_scope, p_name)) THEN
    RETURN json_build_object('conflict', 'epoch');
  END IF;
  SELECT * INTO applied FROM tk.operation WHERE scope = p_scope AND session = s.id AND id = c->>'id';
  IF FOUND THEN
    RETURN json_build_object('applied', tk.messages_json(p_scope, s.id, applied.first - 1, applied.last + 1,
      greatest(0, applied.last - applied.first + 1), false));
  END IF;
  IF (c->>'base')::bigint <> coalesce(s.revision, 0) THEN
    RETURN json_build_object('conflict', 'revision', 'revision', coalesce(s.revision, 0));
  END IF;
  filled := coalesce(start <= s.last, false);
  IF filled AND NOT (jsonb_array_length(c->'append') = 1 AND s.gaps @> start) THEN
    RETURN json_build_object('conflict', 'position', 'lastSequence', s.last, 'gaps', tk.gaps_json(s.gaps));
  END IF;
  IF c ? 'replace' OR c ? 'externalIds' THEN
    problem := tk.check_ids(s, c);
    IF problem IS NOT NULL THEN RETURN problem; END IF;
  END IF;

  IF is_new THEN s := tk.create_session(p_scope, p_name, c); END IF;
  IF c ? 'replace' THEN s := tk.replace_messages(s, c); END IF;
  IF filled THEN
    first_number := start;
    first_offset := coalesce((SELECT m."offset" + m.weight FROM tk.message m WHERE m.scope = p_scope
      AND m.session = s.id AND m.sequence < start ORDER BY m.sequence DESC LIMIT 1), 0);
    next_offset := (SELECT m."offset" FROM tk.message m WHERE m.scope = p_scope AND m.session = s.id
      AND m.sequence > start ORDER BY m.sequence LIMIT 1);
    s.gaps := s.gaps - int8multirange(int8range(start, start, '[]'));
    IF next_offset IS NOT NULL THEN
      first_offset := least(first_offset, next_offset);
      -- Caches and indexes read only what follows the last message they know; a changed lineage makes them start again.
      s.removals := s.removals + 1;
      PERFORM tk.count_removal(p_scope, s.id);
    END IF;
  ELSE
    IF start IS NOT NULL THEN
      s.gaps := s.gaps + int8multirange(int8range(s.last + 1, start));
      s.last := start - 1;
      s.weight := coalesce((c->'from'->>'offset')::bigint, s.weight);
    END IF;
    first_number := s.last + 1;
    first_offset := s.weight;
    s.last := s.last + jsonb_array_length(c->'append');
  END IF;
  IF jsonb_array_length(c->'append') > 0 THEN s := tk.insert_messages(s, c, first_number, first_offset); END IF;
  s.revision := s.revision + 1;
  IF c ? 'put' THEN s := tk.put_derived(s, c); END IF;
  IF c ? 'drop' THEN
    SELECT * INTO result FROM tk.remove_entries(s, c->'drop');
    s := result.s;
  END IF;
  s.touched := (c->>'at')::float8;
  s.expires := (c->>'expiresAt')::float8;
  INSERT INTO tk.operation (scope, session, revision, first, last, id) VALUES (p_scope, s.id, s.revision, first_number,
    CASE WHEN filled THEN first_number ELSE s.last END, c->>'id');
  IF s.revision % 256 = 0 THEN
    DELETE FROM tk.operation WHERE scope = p_scope AND session = s.id AND revision <= s.revision - 1000;
  END IF;
  PERFORM tk.save_session(s, is_new);
  RETURN json_build_object('first', first_number, 'offset', first_offset, 'session', tk.session_json(s));
END $$;

-- Tells all processes to drop what they hold of a scope.
CREATE OR REPLACE FUNCTION tk.notify_erasure(p_scope text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('tk.erased', p_scope);
END $$;

-- Erases a session or a part of it. Returns the ids of the erased entries.
CREATE OR REPLACE FUNCTION tk.erase(p_scope text, p_name text, p_only jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  s tk.session;
  ids text[] := '{}';
  result record;
BEGIN
  PERFORM tk.enter_durably(p_scope);
  s := tk.lock_session(p_scope, p_name);
  IF p_only ? 'records' THEN
    DELETE FROM tk.record WHERE scope = p_scope AND session = s.id;
  ELSIF p_only ? 'remains' THEN
    PERFORM tk.count_removal(p_scope, s.id);
  ELSIF p_only ? 'entries' THEN
    IF s.id IS NULL THEN RETURN '[]'; END IF;
    SELECT * INTO result FROM tk.remove_entries(s, p_only->'entries');
    s := result.s;
    ids := result.removed;
    PERFORM tk.erase_from_graph(p_scope, p_name, ARRAY(SELECT jsonb_array_elements_text(p_only->'entries')));
    PERFORM tk.count_removal(p_scope, s.id);
    -- Also if nothing was removed: a writer that read the session earlier may hold the erased text.
    s.revision := s.revision + 1;
    PERFORM tk.save_session(s, false);
  ELSE
    IF p_only ? 'expiredBy' AND (s.id IS NULL OR s.expires > (p_only->>'expiredBy')::float8) THEN RETURN '[]'; END IF;
    ids := ARRAY(SELECT 'm' || sequence FROM tk.message WHERE scope = p_scope AND session = s.id ORDER BY sequence)
      || ARRAY(SELECT id FROM tk.derived WHERE scope = p_scope AND session = s.id ORDER BY place);
    INSERT INTO tk.tombstone AS t VALUES (tk.digest(p_scope), tk.digest(tk.format_key(p_scope, p_name)),
      coalesce(s.epoch, tk.tombstone_epoch(p_scope, p_name)) + 1)
      ON CONFLICT (scope, key) DO UPDATE SET epoch = excluded.epoch;
    PERFORM tk.count_removal(p_scope, s.id);
    PERFORM tk.erase_from_graph(p_scope, p_name, NULL);
    PERFORM tk.delete_session(s);
  END IF;
  PERFORM tk.notify_erasure(p_scope);
  RETURN array_to_json(ids);
END $$;

CREATE OR REPLACE FUNCTION tk.delete_session(s tk.session) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM tk.message WHERE scope = s.scope AND session = s.id;
  DELETE FROM tk.derived WHERE scope = s.scope AND session = s.id;
  DELETE FROM tk.operation WHERE scope = s.scope AND session = s.id;
  DELETE FROM tk.record WHERE scope = s.scope AND session = s.id;
  DELETE FROM tk.vector WHERE scope = s.scope AND session = s.id;
  DELETE FROM tk.session WHERE scope = s.scope AND name = s.name;
END $$;
`
