import type { ExportOptions, TransferOptions, TransferProgress } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseKey, parseScope, type Scope } from '../domain/key.ts'
import type { AuxiliaryRecord, Store, TableKey } from '../domain/ports.ts'
import type { SessionHead } from '../domain/session.ts'
import { runInSlices } from '../domain/work.ts'
import { yieldWhenLong } from '../stores/yieldToEventLoop.ts'
import { throwIfAborted } from './abort.ts'
import { chainStart, createChainLine, createChainLineInSteps, type LineBody } from './chain.ts'
import { removeImportMark } from './confineRecords.ts'
import { encryptBundle } from './encrypt.ts'
import { GraphAccess, isGraphKey } from './graphAccess.ts'
import { bundleHeader, type SessionRecord, toMessageRecord } from './records.ts'
import { toRowRecord } from './rowRecords.ts'
import { checkSigningKey, signHash } from './signature.ts'

/** Messages, sessions, derived entries, records or graph rows that are written as one piece, if they are short. */
const pageSize = 500
/** Characters after which a piece ends with its line. */
const maxPieceCharacters = 1_048_576
/** Rows of a table held in memory at a time; each may have 16 MB. */
const tablePageSize = 20

/**
 * Exports the contents of a store as a bundle: sessions in the order of their keys, each with its messages, derived
 * entries, auxiliary records and graph rows, then the rows of tables, as of the moment each is read. Expired sessions
 * that are not yet erased are included.
 *
 * @throws MemoryError `conflict` when messages are erased during the export, `aborted`, or `bad-option`/`bad-secret`
 * for an invalid lock.
 *
 * @example
 * await pipeline(exportBundle(store, { scope: 'acme' }), createWriteStream('acme.jsonl'))
 */
export function exportBundle(store: Store, options: ExportOptions = {}): AsyncGenerator<Uint8Array> {
  if (options.signingKey !== undefined) checkSigningKey(options.signingKey, 'signingKey')
  const bodies = createBodies(store, options, ({ id, at, body }) => ({ id, at, body: removeImportMark(body) }))
  const plaintext = chainLines(bodies, options.signingKey)
  return options.encryption === undefined ? plaintext : encryptBundle(plaintext, options.encryption)
}

/** Exports a store for a copy that is trusted as much as the store: imported receipts keep their mark. */
export const exportForCopy = (
  store: Store,
  options: TransferOptions & { readonly scope?: Scope },
): AsyncGenerator<Uint8Array> =>
  chainLines(
    createBodies(store, options, ({ id, at, body }) => ({ id, at, body })),
    undefined,
  )

async function* chainLines(
  batches: AsyncIterable<readonly LineBody[]>,
  signingKey: Uint8Array | undefined,
): AsyncGenerator<Uint8Array> {
  let previousHash = chainStart
  for await (const bodies of batches) {
    let lines = ''
    for (const body of bodies) {
      await yieldWhenLong()
      const { line, hash } = await runInSlices(createChainLineInSteps(previousHash, body), yieldWhenLong)
      previousHash = hash
      lines += `${line}\n`
      if (lines.length < maxPieceCharacters) continue
      yield Buffer.from(lines)
      lines = ''
    }
    if (lines !== '') yield Buffer.from(lines)
  }
  if (signingKey === undefined) return
  const { line } = createChainLine(previousHash, { signature: signHash(signingKey, previousHash) })
  yield Buffer.from(`${line}\n`)
}

/** Yields the bodies of all lines in batches. */
async function* createBodies(
  store: Store,
  options: ExportOptions,
  toRecord: (record: AuxiliaryRecord) => AuxiliaryRecord,
): AsyncGenerator<readonly LineBody[]> {
  await using graph = new GraphAccess(store)
  const totals = { sessions: 0, messages: 0, entries: 0 }
  yield [bundleHeader]
  for await (const key of listKeys(store, options)) {
    const head = await store.readHead(key, 0)
    // The session was erased after it was listed.
    if (head.revision === 0) continue
    const rows = isGraphKey(key) ? ((await (await graph.openArchive())?.readAll(key.scope)) ?? []) : []
    yield [{ session: toSessionRecord(head, rows.length) }]
    for await (const messages of readMessages(store, head)) {
      yield messages
      totals.messages += messages.length
      reportProgress(options, totals)
    }
    const derived = [...head.derived].sort((a, b) => (a.id < b.id ? -1 : 1))
    for (const page of toPages(derived)) yield page.map((entry) => ({ entry }))
    const records = await store.records(key, { limit: Number.MAX_SAFE_INTEGER })
    for (const page of toPages(records.toReversed())) yield page.map((record) => ({ record: toRecord(record) }))
    for (const page of toPages(rows)) yield page.map(({ row }) => ({ graph: row }))
    totals.sessions++
    totals.entries += derived.length + rows.length
    reportProgress(options, totals)
  }
  let rowCount = 0
  for await (const rows of readTables(store, options)) {
    yield rows
    rowCount += rows.length
    reportProgress(options, totals)
  }
  yield [{ end: { ...totals, ...(rowCount > 0 && { rows: rowCount }) } }]
}

function* toPages<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += pageSize) yield items.slice(start, start + pageSize)
}

/** Reads the rows of tables by scope, namespace and key. */
async function* readTables(store: Store, options: ExportOptions): AsyncGenerator<readonly LineBody[]> {
  for await (const scope of listTableScopes(store, options)) {
    for (let after: TableKey | undefined; ; ) {
      const rows = await store.table.listRows(scope, { prefix: [], limit: tablePageSize, ...(after && { after }) })
      if (rows.length > 0) yield rows.map((row) => ({ row: toRowRecord(scope, row) }))
      if (rows.length < tablePageSize) break
      after = rows.at(-1)
    }
  }
}

/** Lists the scopes that have rows in tables. */
export async function* listTableScopes(store: Store, { scope, key }: ExportOptions): AsyncGenerator<Scope> {
  if (key !== undefined) return
  if (scope !== undefined) return yield parseScope(scope)
  for (let after = ''; ; ) {
    const scopes = await store.table.listScopes(after, pageSize)
    yield* scopes
    if (scopes.length < pageSize) return
    after = scopes.at(-1) as Scope
  }
}

function reportProgress({ signal, onProgress }: TransferOptions, { sessions, messages }: TransferProgress): void {
  throwIfAborted(signal, 'The export was stopped by the caller. The bundle is incomplete; export again.')
  onProgress?.({ sessions, messages })
}

/** Lists the sessions of an export in order. */
export async function* listKeys(store: Store, { scope, key }: ExportOptions): AsyncGenerator<Key> {
  if (key !== undefined) return yield parseKey(key)
  const filter = scope === undefined ? {} : { scope: parseScope(scope) }
  let after = ''
  for (;;) {
    const sessions = await store.list({ ...filter, after, limit: pageSize })
    for (const session of sessions) yield session.key
    const last = sessions.at(-1)
    if (last === undefined || sessions.length < pageSize) return
    after = formatKey(last.key)
  }
}

function toSessionRecord(
  { key, startedAt, touchedAt, expiresAt, lastSequence, messages, derived }: SessionHead,
  graphRows: number,
): SessionRecord {
  return {
    key: formatKey(key),
    startedAt,
    touchedAt,
    expiresAt,
    last: lastSequence,
    messages,
    entries: derived.length + graphRows,
  }
}

/** Reads the messages that the head counts; later ones are left to the next export. */
async function* readMessages(
  store: Store,
  { key, lastSequence, messages: expected }: SessionHead,
): AsyncGenerator<readonly LineBody[]> {
  let after = 0
  let count = 0
  while (count < expected) {
    const messages = await store.readMessages(key, { after, before: lastSequence + 1, limit: pageSize })
    if (messages.length === 0) break
    yield messages.map((message) => ({ message: toMessageRecord(message) }))
    count += messages.length
    after = messages.at(-1)?.sequence ?? lastSequence
  }
  if (count !== expected)
    throw new MemoryError(
      'conflict',
      `Messages of session ${formatKey(key)} were erased or added during the export. The bundle is incomplete; export again.`,
    )
}
