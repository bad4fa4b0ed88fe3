import { MemoryError } from '../../domain/error.ts'
import type { SqlSession } from '../../domain/ports.ts'

/** SQL that brings a component from one version to the next. A released step is never edited; add a new one instead. */
export type MigrationStep = (schema: string) => string

type Component = { readonly name: string; readonly schema: string; readonly component: string }

/** Partitions of each large table, by hash of the scope. */
export const partitionCount = 16

/** Waiting for the migration of another process. */
const migrationTimeoutMs = 300_000

/** Condition of row-level security: the scope that the transaction has entered, or all of them. */
const visibleScope = (expression: string): string =>
  `(SELECT current_setting('threadkeep.scope', true)) IN (${expression}, '*')`

/** Tables whose rows belong to a scope are hidden from every statement that has not entered it. */
const secureTable = (table: string, condition: string): string => `
  ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY;
  ALTER TABLE ${table} FORCE ROW LEVEL SECURITY;
  CREATE POLICY scope ON ${table} USING (${condition}) WITH CHECK (${condition});`

/**
 * SQL of a table with a column `scope` that is partitioned by its hash. Partitions have no policy of their own, so that
 * nothing is visible in them directly.
 */
export const createPartitionedTable = (schema: string, name: string, columns: string): string => `
  CREATE TABLE ${schema}.${name} (scope text COLLATE "C" NOT NULL, ${columns}) PARTITION BY HASH (scope);
  ${Array.from(
    { length: partitionCount },
    (_, remainder) => `
  CREATE TABLE ${schema}.${partitionName(name, remainder)} PARTITION OF ${schema}.${name}
    FOR VALUES WITH (MODULUS ${partitionCount}, REMAINDER ${remainder});
  ALTER TABLE ${schema}.${partitionName(name, remainder)} ENABLE ROW LEVEL SECURITY;
  ALTER TABLE ${schema}.${partitionName(name, remainder)} FORCE ROW LEVEL SECURITY;`,
  ).join('')}
  ${secureTable(`${schema}.${name}`, visibleScope('scope'))}`

/** SQL of a small table whose column `scope` holds a digest of the scope: its rows outlive the scope. */
export const createDigestTable = (schema: string, name: string, columns: string): string => `
  CREATE TABLE ${schema}.${name} (scope bytea NOT NULL, ${columns});
  ${secureTable(
    `${schema}.${name}`,
    `scope = (SELECT sha256(convert_to(current_setting('threadkeep.scope', true), 'UTF8')))
      OR (SELECT current_setting('threadkeep.scope', true)) = '*'`,
  )}`

/** SQL of a table that only operations on the whole store see. It is empty after a crash of the server. */
export const createUnloggedTable = (schema: string, name: string, columns: string): string => `
  CREATE UNLOGGED TABLE ${schema}.${name} (${columns});
  ${secureTable(`${schema}.${name}`, `(SELECT current_setting('threadkeep.scope', true)) = '*'`)}`

export const partitionName = (table: string, remainder: number): string =>
  `${table}_${String(remainder).padStart(2, '0')}`

/**
 * Runs the missing steps in one transaction. Processes that open the store at the same time wait for each other.
 *
 * @throws MemoryError `bad-store` if a newer release has migrated the component.
 */
export async function migrateComponent(
  session: SqlSession,
  { name, schema, component }: Component,
  steps: readonly MigrationStep[],
): Promise<void> {
  const readVersion = async (): Promise<number> => {
    const [table] = await session.query(`SELECT to_regclass('${schema}.migration') IS NOT NULL`)
    if (table?.[0] !== true) return 0
    const [row] = await session.query(`SELECT version FROM ${schema}.migration WHERE component = $1`, [component])
    return (row?.[0] as number | undefined) ?? 0
  }
  const refuseNewer = (version: number): void => {
    if (version > steps.length)
      throw new MemoryError(
        'bad-store',
        `${name} was written by a newer Threadkeep (${component} ${version}; this version supports up to ${steps.length}). Update Threadkeep.`,
      )
  }
  const current = await readVersion()
  refuseNewer(current)
  if (current === steps.length) return
  await session.run(`BEGIN; SET LOCAL lock_timeout = ${migrationTimeoutMs}; SET LOCAL statement_timeout = ${migrationTimeoutMs};
    SET LOCAL threadkeep.scope = '*'; SELECT pg_advisory_xact_lock(hashtextextended('threadkeep ${schema}', 0))`)
  try {
    await session.run(`CREATE SCHEMA IF NOT EXISTS ${schema};
      CREATE TABLE IF NOT EXISTS ${schema}.migration (component text PRIMARY KEY, version int NOT NULL)`)
    const version = await readVersion()
    refuseNewer(version)
    for (const step of steps.slice(version)) await session.run(step(schema))
    await session.query(
      `INSERT INTO ${schema}.migration VALUES ($1, $2) ON CONFLICT (component) DO UPDATE SET version = excluded.version`,
      [component, steps.length],
    )
    await session.run('COMMIT')
  } catch (error) {
    await session.run('ROLLBACK').catch(() => undefined)
    throw error
  }
}
