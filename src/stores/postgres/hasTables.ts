import { Database } from './database.ts'
import { createPool } from './pool.ts'
import { parsePostgresUrl } from './url.ts'

/**
 * Tells whether a database on a server has the tables of a store. Nothing is created.
 *
 * @throws MemoryError `busy` if the server cannot be reached
 */
export async function hasTables(url: string): Promise<boolean> {
  const settings = parsePostgresUrl(url, { maxConnections: 1 })
  const database = new Database(createPool(settings), settings.schema, settings.connectTimeoutMs)
  try {
    const [row] = await database.query(`SELECT to_regclass('${database.schema}.migration') IS NOT NULL`, [], 'always')
    return row?.[0] === true
  } finally {
    await database.close()
  }
}
