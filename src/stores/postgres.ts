import '../requireNode.ts'
import { randomUUID } from 'node:crypto'
import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import {
  checkEraseFilter,
  checkListFilter,
  checkPage,
  checkRecordRange,
  checkTarget,
} from '../domain/checkStoreOptions.ts'
import { formatMessageId, type Message, type Millis } from '../domain/entry.ts'
import { anyFunction, anyText, integerAtLeast, trueOrFalse } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type {
  AuxiliaryRecord,
  EntryVector,
  EraseFilter,
  IndexChanges,
  IndexHit,
  IndexQuery,
  PageOptions,
  RecordRange,
  SearchIndex,
  SearchTarget,
  SessionFilter,
  Store,
  StoreCapabilities,
  StoredRecord,
  StoredVector,
  StoreTable,
  UnembeddedPage,
} from '../domain/ports.ts'
import type { SessionChange, SessionHead, SessionListItem } from '../domain/session.ts'
import { StoreSearch } from '../search/storeSearch.ts'
import { throwConflict } from './postgres/conflicts.ts'
import { Database } from './postgres/database.ts'
import { HeadCache } from './postgres/headCache.ts'
import { openPglite } from './postgres/pglite.ts'
import { NearestFinder, preparePgvector } from './postgres/pgvector.ts'
import { createPool } from './postgres/pool.ts'
import { prepareServer } from './postgres/prepareServer.ts'
import { BatchReader } from './postgres/reader.ts'
import {
  type CommitAnswer,
  formatChange,
  formatField,
  type ListedCells,
  type MessageCells,
  parseListed,
  parseMessage,
  parseSessionRow,
} from './postgres/rows.ts'
import { PostgresSearchSource } from './postgres/searchSource.ts'
import { storeMigrations } from './postgres/sql/migrations.ts'
import { PostgresTable } from './postgres/table.ts'
import { escapeText, unescapeText } from './postgres/text.ts'
import { PostgresTokenBuckets } from './postgres/tokenBuckets.ts'
import { checkSchema, defaultSettings, parsePgliteUrl, parsePostgresUrl } from './postgres/url.ts'
import { countVectors, listUnembedded, readVector, storeVectors } from './postgres/vectors.ts'
import { StoreClock } from './storeClock.ts'
import { textAnalysis } from './textAnalysis.ts'

/** Options of `postgresStore`; parameters of the URL take precedence. */
export type PostgresStoreOptions = {
  /** Schema of the tables. Default: `threadkeep`. */
  readonly schema?: string
  /** Connections of this process at most. Default: 10, and one that listens for erasures of other processes. */
  readonly maxConnections?: number
  /** Number of messages from which a search index is saved in the database. Default: 2,000. */
  readonly minSnapshotMessages?: number
  /**
   * Number of vectors of a scope up to which this process compares all of them itself. With more, and with pgvector,
   * the database finds the nearest ones with an HNSW index, which is approximate. Default: 10,000.
   */
  readonly maxExactVectors?: number
  /** The store is wrapped in `encryptedStore`. A database with encrypted content is opened only with this option. */
  readonly encrypted?: boolean
  /** Called for settings that weaken isolation, durability or speed. Default: `process.emitWarning`. */
  readonly onWarning?: (warning: string) => void
}

const optionChecks: OptionChecks<PostgresStoreOptions> = {
  schema: anyText,
  maxConnections: integerAtLeast(1),
  minSnapshotMessages: integerAtLeast(0),
  maxExactVectors: integerAtLeast(0),
  encrypted: trueOrFalse,
  onWarning: anyFunction,
}

/**
 * Opens a store in a PostgreSQL database, whose tables are created if they do not exist. Acknowledged writes are on
 * disk; any number of processes may share the database. `pglite:PATH` opens an embedded database for one process, for
 * which the package `@electric-sql/pglite` must be installed.
 *
 * Throws `bad-store` if the database cannot be used, and `busy` if the server cannot be reached.
 *
 * @example
 * const memory = await openMemory({ store: await postgresStore('postgres://threadkeep@localhost/memory') })
 */
export async function postgresStore(url: string, options: PostgresStoreOptions = {}): Promise<PostgresStore> {
  checkOptions<PostgresStoreOptions>('postgresStore', options, optionChecks)
  const { onWarning = (warning) => process.emitWarning(warning, 'ThreadkeepWarning') } = options
  const { minSnapshotMessages = 2_000, maxExactVectors = 10_000 } = options
  const database = await openDatabase(url, options)
  try {
    await prepareServer(database, options.encrypted === true, onWarning)
    const vectorSchema = await preparePgvector(database, onWarning)
    const store = new PostgresStore(database, { minSnapshotMessages, maxExactVectors, vectorSchema })
    await store.connect()
    return store
  } catch (error) {
    await database.close()
    throw error
  }
}

async function openDatabase(url: string, options: PostgresStoreOptions): Promise<Database> {
  const { schema = defaultSettings.schema, maxConnections = defaultSettings.maxConnections } = options
  const path = parsePgliteUrl(url)
  if (path !== undefined) return new Database(await openPglite(path), checkSchema(schema))
  const settings = parsePostgresUrl(url, { schema: checkSchema(schema), maxConnections })
  return new Database(createPool(settings), settings.schema, settings.connectTimeoutMs)
}

type SearchSettings = {
  readonly minSnapshotMessages: number
  readonly maxExactVectors: number
  /** Schema of pgvector; undefined without it. */
  readonly vectorSchema: string | undefined
}

type DatabaseCounts = Readonly<Record<'sessions' | 'messages' | 'derived' | 'vectors' | 'rows' | 'bytes', number>>
type DatabaseReportCells = DatabaseCounts & {
  readonly damage: readonly { readonly key: string; readonly reason: string }[]
}
/** State of a database for `threadkeep doctor`. */
export type DatabaseReport = DatabaseCounts & {
  readonly path: string
  readonly format: number
  readonly faults: readonly { readonly kind: 'session'; readonly key: string; readonly reason: string }[]
}

/** Messages read in one round trip: few enough not to block other work. */
const maxPageMessages = 1_000

/** Store in a PostgreSQL database. Each operation is one call of a function in the database. */
export class PostgresStore implements Store, SearchIndex {
  readonly durability = 'durable'
  readonly capabilities: StoreCapabilities
  readonly table: StoreTable
  readonly database: Database
  private readonly clock: StoreClock
  private readonly reader: BatchReader
  private readonly heads: HeadCache
  private readonly finder: StoreSearch
  private readonly nearest: NearestFinder | undefined

  constructor(database: Database, { minSnapshotMessages, maxExactVectors, vectorSchema }: SearchSettings) {
    this.database = database
    this.clock = new StoreClock(() => readTime(database))
    this.reader = new BatchReader(database)
    this.heads = new HeadCache(this.reader)
    this.nearest =
      vectorSchema === undefined ? undefined : new NearestFinder(database, this.reader, vectorSchema, maxExactVectors)
    const { reader, heads, nearest } = this
    this.finder = new StoreSearch(new PostgresSearchSource({ database, reader, heads, minSnapshotMessages, nearest }))
    this.table = new PostgresTable(database, this.reader)
    this.capabilities = {
      graph: { kind: 'postgres', database },
      tokenBuckets: new PostgresTokenBuckets(database),
      // A program that brings a clock, such as one that stores old conversations, keeps it.
      shared: { correctClock: (local) => (local === Date.now ? this.clock.correct(local) : local) },
      ...textAnalysis,
      indexedMessages: () => this.finder.indexedMessages,
    }
  }

  /** Compares the clocks. From now on drops what this process holds of a scope in which another one has erased. */
  async connect(): Promise<void> {
    await this.clock.sync()
    await this.database.listen(`${this.database.schema}.erased`, {
      onMessage: (scope) => {
        this.heads.dropScope(scope)
        this.finder.drop(scope)
      },
      onGap: () => {
        this.heads.clear()
        this.finder.clear()
      },
    })
  }

  async readHead(key: Key, recent: number, revision?: number): Promise<SessionHead> {
    this.clock.syncIfDue()
    const head = await this.heads.readHead(key, Math.min(recent, maxPageMessages), revision)
    const [oldest] = head.recent
    if (recent <= maxPageMessages || head.messages <= maxPageMessages || oldest === undefined) return head
    const range = { before: oldest.sequence, limit: recent - head.recent.length, newest: true }
    return { ...head, recent: [...(await this.readMessages(key, range)), ...head.recent] }
  }

  async readMessages(key: Key, range: PageOptions): Promise<readonly Message[]> {
    checkPage(range)
    const { limit, newest = false } = range
    const cached = this.heads.page(key, range)
    if (cached !== undefined) return cached
    const pages: (readonly Message[])[] = []
    let { after = 0, before = Number.MAX_SAFE_INTEGER } = range
    for (let missing = limit; missing > 0; ) {
      const size = Math.min(missing, maxPageMessages)
      const page = await this.readPage(key, { after, before, limit: size, newest })
      pages.push(page)
      missing -= page.length
      const edge = newest ? page[0] : page.at(-1)
      if (edge === undefined || page.length < size) break
      if (newest) before = edge.sequence
      else after = edge.sequence
    }
    return (newest ? pages.reverse() : pages).flat()
  }

  async findMessages(key: Key, externalIds: readonly string[]): Promise<readonly Message[]> {
    const request = { read: 'found', name: key.id, ids: externalIds.map(escapeText) }
    return (await this.reader.read<readonly MessageCells[]>(key.scope, request)).map(parseMessage)
  }

  async commit(change: SessionChange): Promise<readonly Message[]> {
    const { key, put, drop, replace = [] } = change
    // A change without an id gets one, so that it can be repeated when the connection is lost before the answer.
    const json = formatChange(change, change.id ?? randomUUID())
    const answer = await this.database.call<CommitAnswer>('commit_change', [key.scope, key.id, json], 'always')
    if ('conflict' in answer) return throwConflict(change, answer)
    if ('applied' in answer) return answer.applied.map(parseMessage)
    const messages = toMessages(change, answer.first, answer.offset)
    const isAppend = put.length + drop.length + replace.length === 0
    this.heads.applyWrite(key, parseSessionRow(answer.session), isAppend ? messages : undefined)
    return messages
  }

  async list(filter: SessionFilter): Promise<readonly SessionListItem[]> {
    checkListFilter(filter)
    const { scope, expiredBy, metadata, after = '', limit } = filter
    const [afterScope = '', afterName = ''] = after.split(/:(.*)/s)
    const request = JSON.stringify({
      scope,
      expiredBy,
      afterScope,
      afterName,
      limit: clampInteger(limit),
      fields: metadata && Object.entries(metadata).map(([name, value]) => formatField(name, value)),
    })
    return (await this.database.call<readonly ListedCells[]>('list_sessions', [request], 'always')).map(parseListed)
  }

  async erase(key: Key, only?: EraseFilter): Promise<readonly string[]> {
    checkEraseFilter(only)
    const filter = only !== undefined && 'entries' in only ? { entries: only.entries.map(escapeText) } : only
    try {
      const values = [key.scope, key.id, filter === undefined ? null : JSON.stringify(filter)]
      return (await this.database.call<readonly string[]>('erase', values)).map(unescapeText)
    } finally {
      this.finder.drop(key.scope)
      this.heads.drop(key)
    }
  }

  appendRecord(key: Key, { id, at, body }: AuxiliaryRecord, keep: number): Promise<boolean> {
    const record = JSON.stringify({ id: escapeText(id), at, body: escapeText(body) })
    return this.database.call<boolean>('append_record', [key.scope, key.id, record, clampInteger(keep)], 'always')
  }

  async records(key: Key, range: RecordRange): Promise<readonly StoredRecord[]> {
    checkRecordRange(range)
    const { before = Number.MAX_SAFE_INTEGER, limit } = range
    const request = { read: 'records', name: key.id, before: clampInteger(before), limit: clampInteger(limit) }
    type RecordCells = readonly [number: number, id: string, at: number, body: string]
    const records = await this.reader.read<readonly RecordCells[]>(key.scope, request)
    return records.map(([number, id, at, body]) => ({ number, id: unescapeText(id), at, body: unescapeText(body) }))
  }

  search(where: SearchTarget, query: IndexQuery): Promise<readonly IndexHit[]> {
    return this.finder.search(where, query)
  }

  async changesSince(where: SearchTarget, since: number): Promise<IndexChanges> {
    checkTarget(where)
    const { scope, id } = where
    const request = { read: 'changes', since, page: 0, maxContents: 0, ...(id !== undefined && { name: id }) }
    type Answer = { stamp: number; lineage: string; sessions: readonly (readonly [name: string])[] }
    const { stamp, lineage, sessions } = await this.reader.read<Answer>(scope, request)
    return { stamp, lineage, sessions: sessions.map(([name]) => ({ scope, id: name }) as Key) }
  }

  listUnembedded(model: string, after: string, limit: number): Promise<UnembeddedPage> {
    return listUnembedded(this.database, model, after, limit)
  }

  storeVectors(model: string, vectors: readonly EntryVector[]): Promise<number> {
    return storeVectors(this.database, this.reader, model, vectors)
  }

  readVectors(key: Key, ids: readonly string[]): Promise<readonly (StoredVector | undefined)[]> {
    return Promise.all(ids.map((id) => readVector(this.reader, key, id)))
  }

  countVectors(model: string): Promise<{ readonly done: number; readonly total: number }> {
    return countVectors(this.database, model)
  }

  /** Counts what is stored, and compares the counts that sessions keep with their messages. */
  async examine(): Promise<DatabaseReport> {
    const { damage, ...counts } = await this.database.call<DatabaseReportCells>('report', [], 'always')
    const faults = damage.map(({ key, reason }) => ({ kind: 'session' as const, key, reason }))
    return { path: this.database.name, format: storeMigrations.length, ...counts, faults }
  }

  async close(): Promise<void> {
    this.finder.clear()
    this.heads.clear()
    await this.nearest?.settled()
    await this.database.close()
  }

  private async readPage(
    key: Key,
    { after, before, limit, newest }: Required<Omit<PageOptions, 'revision'>>,
  ): Promise<readonly Message[]> {
    const range = { after, before: clampInteger(before), limit: clampInteger(limit), newest }
    const cells = await this.reader.read<readonly MessageCells[]>(key.scope, { read: 'page', name: key.id, ...range })
    return cells.map(parseMessage)
  }
}

async function readTime(database: Database): Promise<Millis> {
  const [row] = await database.query<[number]>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000',
    [],
    'always',
  )
  return row?.[0] ?? Date.now()
}

/** Builds the stored messages of a change from its input and the position that the database assigned. */
function toMessages({ append }: SessionChange, first: number, offset: number): readonly Message[] {
  let nextOffset = offset
  return append.map((input, index) => {
    const sequence = first + index
    const message: Message = Object.freeze({
      ...input,
      kind: 'message',
      id: formatMessageId(sequence),
      sequence,
      offset: nextOffset,
    })
    nextOffset += input.weight
    return message
  })
}

/** Keeps infinite limits within the integers of PostgreSQL. */
const clampInteger = (value: number): number => Math.min(value, Number.MAX_SAFE_INTEGER)
