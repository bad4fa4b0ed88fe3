import type { DatabaseSync } from 'node:sqlite'
import { MemoryError } from '../../domain/error.ts'

/** SQLite application id of our files: `Thrd` in ASCII. */
const applicationId = 0x54687264

/**
 * Migrations from an empty file to the newest schema. A released migration is never edited; add a new one instead.
 * Times are REAL because callers may pass fractions of a millisecond. `sum` is a checksum of the row's other columns.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO meta VALUES ('stamp', 0);

  CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    removals INTEGER NOT NULL,
    learnt INTEGER NOT NULL,
    started REAL NOT NULL,
    touched REAL NOT NULL,
    expires REAL NOT NULL,
    messages INTEGER NOT NULL,
    last INTEGER NOT NULL,
    weight INTEGER NOT NULL,
    asked INTEGER,
    gaps TEXT NOT NULL,
    UNIQUE (scope, name)
  ) STRICT;
  CREATE INDEX session_stamp ON session (scope, stamp);
  CREATE INDEX session_expires ON session (expires);

  CREATE TABLE message (
    place INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    at REAL NOT NULL,
    role TEXT NOT NULL,
    name TEXT,
    tokens INTEGER NOT NULL,
    line_tokens INTEGER NOT NULL,
    tokenizer TEXT NOT NULL,
    weight INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    calls TEXT,
    answers TEXT,
    content TEXT NOT NULL,
    terms TEXT NOT NULL,
    sum INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX message_sequence ON message (session, sequence);

  CREATE TABLE derived (
    place INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER NOT NULL,
    UNIQUE (session, id)
  ) STRICT;

  CREATE TABLE operation (
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (session, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE vector (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    model TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (session, id)
  ) STRICT;
  CREATE INDEX vector_place ON vector (session, place);

  -- Digest of the key of each erased session, so that late writers are rejected.
  CREATE TABLE tombstone (key BLOB PRIMARY KEY, epoch INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  -- Number of removals by scope; the scope is stored as a digest.
  CREATE TABLE removal (scope BLOB PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TABLE quarantine (
    place INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    why TEXT NOT NULL,
    row TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- Saved search indexes, so that a new process need not rebuild them. Names are digests. Any erasure in a scope deletes its snapshots.
  CREATE TABLE snapshot (
    name BLOB PRIMARY KEY,
    scope BLOB NOT NULL,
    stamp INTEGER NOT NULL,
    lineage TEXT NOT NULL,
    data BLOB NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX snapshot_scope ON snapshot (scope);
  `,
  `
  -- Auxiliary records of a session, such as receipts.
  CREATE TABLE record (
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    id TEXT NOT NULL,
    at REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, number)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Original form of a message, and its conversation within the session. They count towards \`sum\` if one is not NULL.
  ALTER TABLE message ADD COLUMN payload TEXT;
  ALTER TABLE message ADD COLUMN branch INTEGER;
  `,
  `
  -- A search index is built from the text, whose analysis changes with releases.
  ALTER TABLE message DROP COLUMN terms;
  DELETE FROM snapshot;
  `,
  `
  -- Random id of this store, whether its content is encrypted, and a proof of each key that wraps the keys of its sessions.
  -- The id is in the same page as the stamp, which every transaction writes.
  CREATE TABLE master_key (id TEXT PRIMARY KEY, proof TEXT NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO meta VALUES ('store', random() & 0x1fffffffffffff);
  INSERT INTO meta SELECT 'encrypted', EXISTS (
    SELECT 1 FROM session s WHERE EXISTS (SELECT 1 FROM derived d WHERE d.session = s.id AND d.id = '#key' AND d.kind = 'encrypted'));
  `,
  `
  -- Ids that callers gave to messages; they count towards \`sum\` if not NULL. Unique within a session after each change.
  ALTER TABLE message ADD COLUMN external_id TEXT;
  CREATE INDEX message_external_id ON message (session, external_id) WHERE external_id IS NOT NULL;

  -- Rows beside sessions. \`name\` is the namespace and the key in UTF-16BE, so that it sorts by code units; \`value\` is
  -- JSON text or bytes.
  CREATE TABLE table_row (
    place INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    name BLOB NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    revision INTEGER NOT NULL,
    value ANY NOT NULL,
    sum INTEGER NOT NULL,
    UNIQUE (scope, name)
  ) STRICT;
  CREATE TABLE row_quarantine (
    place INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    name BLOB NOT NULL,
    why TEXT NOT NULL,
    value ANY NOT NULL
  ) STRICT;
  `,
]

/** First format with a store id and an encryption marker. */
export const markedFormat = 6
/** First format with rows beside sessions. */
export const tableFormat = 7

/** Further work of a migration; `isDue` tells whether it is needed on a file of the newest schema. */
export type MigrationTask = {
  readonly isDue: (database: DatabaseSync) => boolean
  readonly run: (database: DatabaseSync) => void
}

/**
 * Migrates a file to the newest schema, and runs the task, in one transaction. Throws `bad-store` for a file of a newer
 * release.
 */
export function migrate(
  database: DatabaseSync,
  path: string,
  steps: readonly string[] = migrations,
  task?: MigrationTask,
): void {
  if (readSchemaVersion(database) === steps.length && task?.isDue(database) !== true) return
  database.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have migrated the file while this one waited for the lock.
    const version = readSchemaVersion(database)
    if (version > steps.length) {
      throw new MemoryError(
        'bad-store',
        `${path} was written by a newer Threadkeep (format ${version}; this version supports up to ${steps.length}). Update Threadkeep.`,
      )
    }
    for (const step of steps.slice(version)) database.exec(step)
    if (version < steps.length)
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${steps.length}`)
    task?.run(database)
    database.exec('COMMIT')
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}

export const readSchemaVersion = (database: DatabaseSync): number =>
  Number(database.prepare('PRAGMA user_version').get()?.user_version)

/** Throws `bad-store` for a file that is neither ours nor empty. */
export function rejectForeignDatabase(database: DatabaseSync, path: string): void {
  // One snapshot: another process may be creating the database, and its tables without its mark would look foreign.
  database.exec('BEGIN')
  const owner = Number(database.prepare('PRAGMA application_id').get()?.application_id)
  const isEmpty = database.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()?.tables === 0
  const isNew = owner === 0 && readSchemaVersion(database) === 0 && isEmpty
  database.exec('COMMIT')
  if (owner !== applicationId && !isNew)
    throw new MemoryError('bad-store', `${path} is a database of another program. Choose another file.`)
}
