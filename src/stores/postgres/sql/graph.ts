import { createPartitionedTable, type MigrationStep } from '../migrate.ts'

/**
 * Tables of graphs. `ref`, `type`, `source` and `target` are digests; `body` holds the content; `lower` is the search
 * text, NULL in an encrypted store. `place` increases with every inserted row of a scope. An observation names the
 * place of its `node`. Rows belong to the session `:graph` of their scope.
 */
export const createGraphTables: MigrationStep = (schema) => `
  CREATE SEQUENCE ${schema}.graph_place;
  ${createPartitionedTable(schema, 'graph_row', rowColumns)}
  CREATE INDEX graph_row_ref ON ${schema}.graph_row (scope, kind, ref);
  CREATE INDEX graph_row_type ON ${schema}.graph_row (scope, kind, type) WHERE type IS NOT NULL;
  CREATE INDEX graph_row_source ON ${schema}.graph_row (scope, source) WHERE source IS NOT NULL;
  CREATE INDEX graph_row_target ON ${schema}.graph_row (scope, target) WHERE target IS NOT NULL;
  CREATE INDEX graph_row_node ON ${schema}.graph_row (scope, node, ref) WHERE node IS NOT NULL;
  CREATE INDEX graph_row_session ON ${schema}.graph_row (scope, session) WHERE session IS NOT NULL;
  ${createPartitionedTable(schema, 'graph_origin', originColumns)}
  CREATE INDEX graph_origin_session ON ${schema}.graph_origin (scope, session, message);
`

const rowColumns = `
  place bigint NOT NULL,
  node bigint,
  created float8,
  updated float8,
  -- entity, relationship, node, observation, link or adopted.
  kind text COLLATE "C" NOT NULL,
  ref text COLLATE "C" NOT NULL,
  type text COLLATE "C",
  source text COLLATE "C",
  target text COLLATE "C",
  session text COLLATE "C",
  body text NOT NULL,
  lower text COLLATE "C",
  PRIMARY KEY (scope, place)`

/** Messages an entity was extracted from; message '' means the session as a whole. */
const originColumns = `
  entity bigint NOT NULL,
  session text COLLATE "C" NOT NULL,
  message text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, entity, session, message)`

export const graphFunctions = `
-- State of the session that owns a graph.
CREATE OR REPLACE FUNCTION tk.read_graph_owner(p_scope text, p_name text) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  s tk.session := tk.find_session(p_scope, p_name);
BEGIN
  RETURN json_build_object('revision', coalesce(s.revision, 0),
    'epoch', coalesce(s.epoch, tk.tombstone_epoch(p_scope, p_name)), 'derived', tk.derived_json(p_scope, s.id));
END $$;

-- Locks the session that owns a graph until the end of the transaction, also if it does not exist, and then reads it.
CREATE OR REPLACE FUNCTION tk.lock_graph_owner(p_scope text, p_name text) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tk.enter_durably(p_scope);
  PERFORM tk.lock_session(p_scope, p_name);
  RETURN tk.read_graph_owner(p_scope, p_name);
END $$;

-- Erases what was extracted from a session, or only from some entries of it, and the whole graph with its own session.
-- An entity is deleted with the last message it was extracted from. Returns the number of deleted entities.
CREATE OR REPLACE FUNCTION tk.erase_from_graph(p_scope text, p_name text, p_ids text[]) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  touched bigint[];
  deleted text[];
BEGIN
  IF p_name = ':graph' AND p_ids IS NULL THEN
    DELETE FROM tk.graph_origin WHERE scope = p_scope;
    DELETE FROM tk.graph_row WHERE scope = p_scope;
    RETURN 0;
  END IF;
  -- Writers of the graph hold this lock: one that has just found an entity may add an origin to it.
  PERFORM 1 FROM tk.session WHERE scope = p_scope AND name = ':graph' FOR UPDATE;
  IF NOT FOUND THEN RETURN 0; END IF;
  WITH removed AS (
    DELETE FROM tk.graph_origin o WHERE o.scope = p_scope AND o.session = p_name AND (p_ids IS NULL OR o.entity IN (
      SELECT m.entity FROM tk.graph_origin m WHERE m.scope = p_scope AND m.session = p_name AND m.message = ANY (p_ids)))
    RETURNING o.entity
  ) SELECT array_agg(DISTINCT r.entity) INTO touched FROM removed r;
  WITH removed AS (
    DELETE FROM tk.graph_row r WHERE r.scope = p_scope AND r.place = ANY (touched) AND NOT EXISTS (
      SELECT 1 FROM tk.graph_origin o WHERE o.scope = p_scope AND o.entity = r.place)
    RETURNING r.ref
  ) SELECT array_agg(r.ref) INTO deleted FROM removed r;
  DELETE FROM tk.graph_row r WHERE r.scope = p_scope AND r.kind = 'relationship' AND (
    r.source = ANY (deleted) OR r.target = ANY (deleted) OR (p_ids IS NULL AND r.session = p_name));
  RETURN coalesce(cardinality(deleted), 0);
END $$;
`
