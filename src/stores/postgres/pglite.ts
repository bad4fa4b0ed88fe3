import { resolve } from 'node:path'
import { MemoryError } from '../../domain/error.ts'
import { type Connection, type Driver, type SqlRow, typeIds } from './driver.ts'

const packageName = '@electric-sql/pglite'
const vectorPackageName = '@electric-sql/pglite-pgvector'

/** The methods of PGlite that are used. */
type Pglite = {
  query(
    sql: string,
    values: unknown[],
    options: { readonly rowMode: 'array'; readonly parsers: Readonly<Record<number, (text: string) => unknown>> },
  ): Promise<{ readonly rows: unknown[][] }>
  exec(sql: string): Promise<unknown>
  close(): Promise<void>
}
type PgliteModule = { readonly PGlite: { create(options: object): Promise<Pglite> } }

const parsers = { [typeIds.bigint]: Number, [typeIds.json]: String, [typeIds.jsonb]: String }

/**
 * Opens an embedded PostgreSQL in a folder; `memory://` keeps it in RAM. One process at a time may open a folder. The
 * database runs as a role without special rights, so that row-level security applies.
 *
 * Throws `bad-store` if the package `@electric-sql/pglite` is not installed.
 */
export async function openPglite(path: string): Promise<Driver> {
  const { PGlite } = await loadPackage()
  const name = `pglite:${path}`
  const extensions = await loadVectorExtension()
  const dataDir = path.startsWith('memory://') ? path : resolve(path)
  const database = await PGlite.create({ dataDir, extensions })
  await prepareRole(database, 'vector' in extensions)
  let last: Promise<void> = Promise.resolve()
  const connect = (): Promise<Connection> => {
    const { promise, resolve: release } = Promise.withResolvers<void>()
    const connection: Connection = {
      query: async (sql, values = []): Promise<readonly SqlRow[]> =>
        (await database.query(sql, [...values], { rowMode: 'array', parsers })).rows,
      run: async (sql) => void (await database.exec(sql)),
      release: () => release(),
    }
    const turn = last.then(() => connection)
    last = promise
    return turn
  }
  return {
    name,
    connect,
    // There are no other processes to hear of.
    listen: async () => undefined,
    close: async () => {
      await last
      await database.close()
    },
  }
}

async function loadPackage(): Promise<PgliteModule> {
  try {
    return (await import(packageName)) as PgliteModule
  } catch (error) {
    throw new MemoryError('bad-store', `pglite: needs the package ${packageName}. Run: npm install ${packageName}`, {
      cause: error,
    })
  }
}

/** Vectors are compared in this process if pgvector is not installed. */
async function loadVectorExtension(): Promise<{ readonly vector?: unknown }> {
  try {
    const { vector } = (await import(vectorPackageName)) as { readonly vector: unknown }
    return { vector }
  } catch {
    return {}
  }
}

const role = 'threadkeep'

async function prepareRole(database: Pglite, hasVector: boolean): Promise<void> {
  if (hasVector) await database.exec('CREATE EXTENSION IF NOT EXISTS vector')
  await database.exec(`
    DO $$ BEGIN
      IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '${role}') THEN
        CREATE ROLE ${role};
        EXECUTE format('GRANT CREATE ON DATABASE %I TO ${role}', current_database());
      END IF;
    END $$;
    SET ROLE ${role};`)
}
