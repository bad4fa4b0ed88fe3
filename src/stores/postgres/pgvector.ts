import { createHash } from 'node:crypto'
import type { Key } from '../../domain/key.ts'
import type { IndexQuery, SearchTarget } from '../../domain/ports.ts'
import type { NearestEntry } from '../../search/scopeIndex.ts'
import type { Database } from './database.ts'
import { partitionCount, partitionName } from './migrate.ts'
import type { BatchReader } from './reader.ts'
import { pgvectorMigrations } from './sql/pgvector.ts'
import { escapeText, unescapeText } from './text.ts'

/** Dimensions that an HNSW index of pgvector supports; longer vectors are compared in this process. */
const maxIndexedDimensions = 2_000

/**
 * Prepares pgvector if the server has it and the user may create it. Returns the schema of the extension, or undefined.
 */
export async function preparePgvector(
  database: Database,
  onWarning: (warning: string) => void,
): Promise<string | undefined> {
  const readSchema = async (): Promise<string | undefined> => {
    const sql = `SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
      WHERE e.extname = 'vector'`
    return (await database.query<[string]>(sql, [], 'always'))[0]?.[0]
  }
  const schema = (await readSchema()) ?? (await createExtension(database).then(readSchema))
  if (schema !== undefined) {
    await database.migrate('pgvector', pgvectorMigrations(schema))
    return schema
  }
  const [row] = await database.transaction(
    '*',
    ({ query }) => query(`SELECT EXISTS (SELECT 1 FROM ${database.schema}.vector)`),
    { readOnly: true },
  )
  if (row?.[0] === true)
    onWarning(
      `${database.name} has no pgvector: each process compares vectors itself, exactly and in its own memory. For scopes with many vectors, run CREATE EXTENSION vector.`,
    )
  return undefined
}

/** Fails on a server without pgvector, or for a user that may not create extensions. */
async function createExtension(database: Database): Promise<void> {
  const sql = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
  if ((await database.query(sql, [], 'always')).length === 0) return
  await database.query('CREATE EXTENSION IF NOT EXISTS vector', [], 'always').catch(() => undefined)
}

/** Finds the nearest vectors of scopes that have too many to compare all of them in this process. */
export class NearestFinder {
  private readonly database: Database
  private readonly reader: BatchReader
  private readonly extensionSchema: string
  private readonly maxExact: number
  /** Indexes that this process has created or found. */
  private readonly indexes = new Map<string, Promise<void>>()

  constructor(database: Database, reader: BatchReader, extensionSchema: string, maxExact: number) {
    this.database = database
    this.reader = reader
    this.extensionSchema = extensionSchema
    this.maxExact = maxExact
  }

  /** Returns undefined if all vectors should be compared instead. */
  async find(
    where: SearchTarget,
    { vector, kinds, from, to, before }: IndexQuery,
    limit: number,
  ): Promise<readonly NearestEntry[] | undefined> {
    if (vector === undefined || vector.values.length > maxIndexedDimensions) return undefined
    if (!vector.values.every(Number.isFinite)) return undefined
    const { scope, id } = where
    const answer = await this.reader.read<readonly (readonly [name: string, id: string, score: number])[] | null>(
      scope,
      {
        read: 'nearest',
        model: escapeText(vector.model),
        dimensions: vector.values.length,
        values: `[${vector.values.join(',')}]`,
        maxExact: this.maxExact,
        limit,
        kinds,
        name: id,
        from: from ?? -Number.MAX_VALUE,
        to: to ?? Number.MAX_VALUE,
        before: id === undefined || before === undefined ? Number.MAX_VALUE : before,
      },
    )
    if (answer === null) return undefined
    this.createIndexLater(scope, vector.model, vector.values.length)
    return answer.map(([name, entry, score]) => ({ key: { scope, id: name } as Key, id: unescapeText(entry), score }))
  }

  /** Waits for indexes that are being created. */
  async settled(): Promise<void> {
    await Promise.all(this.indexes.values())
  }

  /** Creates the HNSW index of a model in the partition of a scope, while searches read the whole partition. */
  private createIndexLater(scope: string, model: string, dimensions: number): void {
    const name = `${scope} ${model} ${dimensions}`
    if (!this.indexes.has(name))
      this.indexes.set(
        name,
        // A user that does not own the tables cannot create an index; searches work without it.
        this.createIndex(scope, escapeText(model), dimensions).catch(() => undefined),
      )
  }

  private async createIndex(scope: string, model: string, dimensions: number): Promise<void> {
    const { schema } = this.database
    const numbers = Array.from({ length: partitionCount }, (_, number) => number).join(', ')
    const [row] = await this.database.query<[number]>(
      `SELECT n FROM unnest(ARRAY[${numbers}]) n
        WHERE satisfies_hash_partition('${schema}.vector'::regclass, ${partitionCount}, n, $1::text)`,
      [scope],
      'always',
    )
    if (row === undefined) return
    const partition = partitionName('vector', row[0])
    const digest = createHash('sha256').update(`${model} ${dimensions}`).digest('hex').slice(0, 12)
    // An embedded database has no other connection that could wait.
    const mode = this.database.name.startsWith('pglite:') ? '' : 'CONCURRENTLY '
    const type = `${this.extensionSchema}.vector(${dimensions})`
    await this.database.maintain(
      `CREATE INDEX ${mode}IF NOT EXISTS ${partition}_hnsw_${digest} ON ${schema}.${partition}
        USING hnsw ((embedding::${type}) ${this.extensionSchema}.vector_cosine_ops)
        WHERE model = '${model.replaceAll("'", "''")}' AND dimensions = ${dimensions}`,
    )
  }
}
