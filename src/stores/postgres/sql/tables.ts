import { createDigestTable, createPartitionedTable, type MigrationStep } from '../migrate.ts'

/**
 * Tables of the store. `stamp` is the id of the transaction that wrote a row last. Times are fractions of milliseconds
 * since 1970. Texts are escaped by `escapeText`. The other tables name a session by its `id`; a session that is erased
 * and created again gets another one.
 */
export const createTables: MigrationStep = (schema) => `
  CREATE SEQUENCE ${schema}.session_id;
  ${createPartitionedTable(schema, 'session', sessionColumns)}
  CREATE INDEX session_id_key ON ${schema}.session (scope, id);
  CREATE INDEX session_stamp ON ${schema}.session (scope, stamp);
  CREATE INDEX session_expires ON ${schema}.session (expires);
  ${createPartitionedTable(schema, 'message', messageColumns)}
  CREATE INDEX message_external_id ON ${schema}.message (scope, session, external_id)
    WHERE external_id IS NOT NULL;
  ${createPartitionedTable(schema, 'derived', derivedColumns)}
  ${createPartitionedTable(schema, 'operation', operationColumns)}
  ${createPartitionedTable(schema, 'record', recordColumns)}
  ${createPartitionedTable(schema, 'vector', vectorColumns)}
  CREATE INDEX vector_stamp ON ${schema}.vector (scope, stamp);
  ${createPartitionedTable(schema, 'table_row', tableRowColumns)}
  CREATE INDEX table_row_name ON ${schema}.table_row (scope, substr(name, 1, 1000));
  ${createDigestTable(schema, 'tombstone', tombstoneColumns)}
  ${createDigestTable(schema, 'removal', removalColumns)}
  ${createDigestTable(schema, 'snapshot', snapshotColumns)}
  -- Identity of the database that the stamps belong to, and whether the content is encrypted.
  CREATE TABLE ${schema}.setting (name text PRIMARY KEY, value text NOT NULL);
`

const sessionColumns = `
  name text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  epoch bigint NOT NULL,
  revision bigint NOT NULL,
  stamp bigint NOT NULL,
  -- Number of changes after which indexes and caches start again.
  removals bigint NOT NULL,
  -- Number of changes of derived entries.
  derived_version bigint NOT NULL,
  started float8 NOT NULL,
  touched float8 NOT NULL,
  expires float8 NOT NULL,
  messages bigint NOT NULL,
  last bigint NOT NULL,
  weight bigint NOT NULL,
  last_user bigint,
  gaps int8multirange NOT NULL,
  -- Top-level fields of the session's metadata, each as JSON of its name and value.
  fields text[],
  PRIMARY KEY (scope, name)`

const messageColumns = `
  session bigint NOT NULL,
  sequence bigint NOT NULL,
  stamp bigint NOT NULL,
  at float8 NOT NULL,
  "offset" bigint NOT NULL,
  branch bigint,
  tokens int NOT NULL,
  line_tokens int NOT NULL,
  weight int NOT NULL,
  -- Without visible text.
  blank boolean NOT NULL,
  role text NOT NULL,
  tokenizer text NOT NULL,
  name text,
  answers text,
  external_id text COLLATE "C",
  calls text,
  content text NOT NULL,
  payload text,
  PRIMARY KEY (scope, session, sequence)`

const derivedColumns = `
  session bigint NOT NULL,
  -- Order of insertion.
  place bigint NOT NULL,
  at float8 NOT NULL,
  id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (scope, session, id)`

const operationColumns = `
  session bigint NOT NULL,
  revision bigint NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, session, id)`

const recordColumns = `
  session bigint NOT NULL,
  number bigint NOT NULL,
  at float8 NOT NULL,
  id text NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (scope, session, number)`

const vectorColumns = `
  session bigint NOT NULL,
  stamp bigint NOT NULL,
  at float8 NOT NULL,
  dimensions int NOT NULL,
  id text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  model text COLLATE "C" NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (scope, session, id)`

/** The name of a row is encoded in UTF-16, so that rows sort by code units; names may exceed the limit of an index. */
const tableRowColumns = `
  digest bytea NOT NULL,
  name bytea NOT NULL,
  revision bigint NOT NULL,
  created float8 NOT NULL,
  updated float8 NOT NULL,
  json text,
  bytes bytea,
  PRIMARY KEY (scope, digest)`

/** Digest of the key of an erased session, so that late writers are rejected. */
const tombstoneColumns = `
  key bytea NOT NULL,
  epoch bigint NOT NULL,
  PRIMARY KEY (scope, key)`

/** Number of removals in a scope, spread over slots so that concurrent removals do not wait for each other. */
const removalColumns = `
  slot int NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (scope, slot)`

/** Saved search indexes, which any removal in the scope deletes. Names are digests. */
const snapshotColumns = `
  name bytea NOT NULL,
  stamp bigint NOT NULL,
  lineage text NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (scope, name)`
