/** SQL of a JSON array with the columns of a message, in the order of `MessageCells`. */
export const messageJson = (table: string): string =>
  `json_build_array(${[
    'sequence',
    'at',
    'role',
    'name',
    'tokens',
    'line_tokens',
    'tokenizer',
    'weight',
    '"offset"',
    'calls',
    'answers',
    'content',
    'payload',
    'branch',
    'external_id',
  ]
    .map((column) => `${table}.${column}`)
    .join(', ')})`

/** SQL of a JSON array with the columns of a derived entry. */
export const derivedJson = (table: string): string =>
  `json_build_array(${table}.id, ${table}.kind, ${table}.at, ${table}.body)`

/** SQL of the id of the running transaction. */
export const currentStamp = 'pg_current_xact_id()::text::bigint'

/** SQL of the newest stamp of which a reader has seen everything: no transaction up to it is still running. */
export const settledStamp = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1'

/** Names the schema of functions, which are written for a schema called `tk`. */
export const inSchema =
  (sql: string) =>
  (schema: string): string =>
    sql.replaceAll(/\btk\./g, `${schema}.`)

export const sharedFunctions = `
-- Enters a scope for the rest of the transaction: row-level security shows its rows. Planning a statement on
-- partitioned tables anew takes several times as long as running it.
CREATE OR REPLACE FUNCTION tk.enter(p_scope text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('threadkeep.scope', p_scope, true);
  PERFORM set_config('plan_cache_mode', 'force_generic_plan', true);
END $$;

-- Enters a scope for a change, which is on disk when it is acknowledged whatever the default of the server is.
CREATE OR REPLACE FUNCTION tk.enter_durably(p_scope text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tk.enter(p_scope);
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION tk.digest(p_text text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT sha256(convert_to(p_text, 'UTF8'))
$$;

CREATE OR REPLACE FUNCTION tk.format_key(p_scope text, p_name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_name WHEN '' THEN p_scope ELSE p_scope || ':' || p_name END
$$;

-- Sequence number of a message id; NULL for any other id.
CREATE OR REPLACE FUNCTION tk.parse_message_id(p_id text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_id ~ '^m[1-9][0-9]{0,14}$' THEN substr(p_id, 2)::bigint END
$$;

CREATE OR REPLACE FUNCTION tk.tombstone_epoch(p_scope text, p_name text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT epoch FROM tk.tombstone
    WHERE scope = tk.digest(p_scope) AND key = tk.digest(tk.format_key(p_scope, p_name))), 0);
END $$;

CREATE OR REPLACE FUNCTION tk.gaps_json(p_gaps int8multirange) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT coalesce(json_agg(json_build_array(lower(gap), upper(gap) - 1)), '[]'::json) FROM unnest(p_gaps) gap
$$;

-- Columns of a session in the order of SessionCells.
CREATE OR REPLACE FUNCTION tk.session_json(s tk.session) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_array(s.id, s.epoch, s.revision, s.removals, s.derived_version, s.started, s.touched, s.expires,
    s.messages, s.last, s.weight, s.last_user, tk.gaps_json(s.gaps));
END $$;

CREATE OR REPLACE FUNCTION tk.derived_json(p_scope text, p_session bigint) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(${derivedJson('d')} ORDER BY d.place), '[]'::json)
    FROM tk.derived d WHERE d.scope = p_scope AND d.session = p_session);
END $$;

-- Messages of a range in order of their numbers: the newest ones of it, or the oldest.
CREATE OR REPLACE FUNCTION tk.messages_json(p_scope text, p_session bigint, p_after bigint, p_before bigint,
  p_limit bigint, p_newest boolean) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_newest THEN
    RETURN (SELECT coalesce(json_agg(${messageJson('m')} ORDER BY m.sequence), '[]'::json) FROM (
      SELECT * FROM tk.message t WHERE t.scope = p_scope AND t.session = p_session
        AND t.sequence > p_after AND t.sequence < p_before ORDER BY t.sequence DESC LIMIT p_limit) m);
  END IF;
  RETURN (SELECT coalesce(json_agg(${messageJson('m')} ORDER BY m.sequence), '[]'::json) FROM (
    SELECT * FROM tk.message t WHERE t.scope = p_scope AND t.session = p_session
      AND t.sequence > p_after AND t.sequence < p_before ORDER BY t.sequence LIMIT p_limit) m);
END $$;

CREATE OR REPLACE FUNCTION tk.message_json(p_scope text, p_session bigint, p_sequence bigint)
RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT ${messageJson('m')} FROM tk.message m
    WHERE m.scope = p_scope AND m.session = p_session AND m.sequence = p_sequence);
END $$;

-- Lineage of a session, or of a whole scope if there is no name.
CREATE OR REPLACE FUNCTION tk.lineage(p_scope text, p_name text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_name IS NULL THEN
    RETURN (SELECT coalesce(sum(count), 0)::text FROM tk.removal WHERE scope = tk.digest(p_scope));
  END IF;
  RETURN coalesce(
    (SELECT epoch || '.' || removals FROM tk.session WHERE scope = p_scope AND name = p_name),
    tk.tombstone_epoch(p_scope, p_name) || '.0');
END $$;
`
