import {
  type ExistingSessionPolicy,
  type ImportOptions,
  type ImportResult,
  existingSessionPolicies as onExistingChoices,
  type TransferOptions,
} from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseScope, type Scope } from '../domain/key.ts'
import type { AuxiliaryRecord, Store } from '../domain/ports.ts'
import { createEmptyHead } from '../domain/session.ts'
import { ownerOf } from '../lifecycle/auxiliaryKeys.ts'
import { throwIfAborted } from './abort.ts'
import { type BundleComparison, compareBundle, endsSession, type SessionComparison, targetKey } from './compare.ts'
import { confineRecords } from './confineRecords.ts'
import { GraphAccess, isGraphKey } from './graphAccess.ts'
import { GraphImporter, type GraphImportResult } from './graphImporter.ts'
import type { ByteSource } from './lines.ts'
import { type ImportDeps, maskRecords } from './maskRecords.ts'
import { measureRecords } from './measure.ts'
import { readBundle, type VerifiedRecord } from './read.ts'
import { type ComparedRow, formatRow, RowCollector } from './rowRecords.ts'
import { SessionWriter, type StoredState } from './sessionWriter.ts'

export type WriteOptions = TransferOptions &
  Pick<ImportOptions, 'onSession'> & { readonly scope: Scope | undefined; readonly onExisting: ExistingSessionPolicy }
/** The result so far. Sets: each session is looked up in them. */
type MutableResult = {
  -readonly [K in keyof ImportResult]: ImportResult[K] extends readonly string[] ? Set<string> : ImportResult[K]
}

/** Messages between two progress reports. */
const progressInterval = 500

/**
 * Imports the sessions of a bundle into a store. The bundle is opened twice: first to verify and compare it, then to
 * write it. Importing the same bundle again continues an interrupted import. Token counts are computed again, by the
 * given tokenizer if it is not built in; with a masker, secrets are masked. Pending end events and transfers in
 * progress are not imported.
 *
 * @throws MemoryError `bad-bundle` for a damaged bundle, `bad-secret` for a wrong passphrase, `conflict` for existing
 * sessions with other contents or concurrent writes, `bad-option`, `aborted`.
 *
 * @example
 * const { messages } = await importBundle(store, () => createReadStream('acme.jsonl'), { onExisting: 'skip' })
 */
export async function importBundle(
  store: Store,
  open: () => ByteSource,
  options: ImportOptions = {},
  deps: ImportDeps = {},
): Promise<ImportResult> {
  const { onExisting = 'refuse' } = options
  if (!onExistingChoices.includes(onExisting))
    throw new MemoryError(
      'bad-option',
      `onExisting is ${JSON.stringify(onExisting)}; it must be one of ${onExistingChoices.join(', ')}.`,
      { param: 'onExisting' },
    )
  const scope = options.scope === undefined ? undefined : parseScope(options.scope)
  const read = () => readUntrusted(open, options, deps, scope)
  return importRecords(store, read, { ...options, onExisting, scope })
}

/** Reads a bundle that anyone may have written. */
function readUntrusted(
  open: () => ByteSource,
  options: ImportOptions,
  deps: ImportDeps,
  scope: Scope | undefined,
): AsyncGenerator<VerifiedRecord> {
  const records = confineRecords(readBundle(open(), options))
  return measureRecords(maskRecords(records, deps, scope), deps.tokenizer)
}

/** Reads records twice: to compare them with the store, then to write those that it lacks. */
export async function importRecords(
  store: Store,
  read: () => AsyncGenerator<VerifiedRecord>,
  options: WriteOptions,
): Promise<ImportResult> {
  const { signal, scope, onExisting } = options
  const firstPass = withAbort(read(), signal, 'Nothing was written.')
  await using graph = new GraphAccess(store)
  const comparison = await compareBundle(store, firstPass, scope, graph)
  if (onExisting === 'refuse') rejectConflicts(comparison)
  const secondPass = withAbort(read(), signal, 'What was written stays; import the same bundle again to continue.')
  const records = requireHash(secondPass, comparison.hash)
  return await writeRecords(store, graph, records, comparison, options)
}

/**
 * Lists the sessions and graph rows for which the store has other contents than the bundle. Reads the whole bundle and
 * writes nothing.
 */
export async function findBundleConflicts(
  store: Store,
  open: () => ByteSource,
  options: ImportOptions = {},
  deps: ImportDeps = {},
): Promise<readonly string[]> {
  const scope = options.scope === undefined ? undefined : parseScope(options.scope)
  const records = readUntrusted(open, options, deps, scope)
  await using graph = new GraphAccess(store)
  return listConflicts(await compareBundle(store, records, scope, graph))
}

async function* withAbort(
  records: AsyncGenerator<VerifiedRecord>,
  signal: AbortSignal | undefined,
  consequence: string,
): AsyncGenerator<VerifiedRecord> {
  for await (const record of records) {
    throwIfAborted(signal, `The import was stopped by the caller. ${consequence}`)
    yield record
  }
}

/** Throws when the bundle is not the one that was verified in the first pass. */
async function* requireHash(
  records: AsyncGenerator<VerifiedRecord>,
  expectedHash: string,
): AsyncGenerator<VerifiedRecord> {
  let lastHash = ''
  try {
    for await (const record of records) {
      lastHash = record.hash
      yield record
    }
  } catch (cause) {
    throw cause instanceof MemoryError && cause.code === 'bad-bundle' ? bundleChangedError(cause) : cause
  }
  if (lastHash !== expectedHash) throw bundleChangedError()
}

const bundleChangedError = (cause?: unknown): MemoryError =>
  new MemoryError(
    'bad-bundle',
    'The bundle changed while it was being imported. Import it again when nothing writes to it; sessions written so far are continued.',
    { cause },
  )

const listConflicts = ({ sessions, rowConflicts }: BundleComparison): readonly string[] => [
  ...[...sessions].filter(([, { status }]) => status === 'other').map(([key]) => key),
  ...rowConflicts,
]

function rejectConflicts(comparison: BundleComparison): void {
  const conflicts = listConflicts(comparison)
  if (conflicts.length === 0) return
  const names =
    conflicts.length > 5 ? `${conflicts.slice(0, 5).join(', ')} and ${conflicts.length - 5} more` : conflicts.join(', ')
  throw new MemoryError(
    'conflict',
    `The store has other contents for ${names}. Nothing was imported. Skip or replace what the store has, or import into another scope.`,
    { param: 'onExisting' },
  )
}

async function writeRecords(
  store: Store,
  graph: GraphAccess,
  records: AsyncIterable<VerifiedRecord>,
  { sessions }: BundleComparison,
  options: WriteOptions,
): Promise<ImportResult> {
  const result: MutableResult = {
    sessions: 0,
    messages: 0,
    entries: 0,
    unchanged: 0,
    skipped: new Set(),
    replaced: new Set(),
  }
  const reportProgress = () => options.onProgress?.({ sessions: result.sessions, messages: result.messages })
  const graphImporter = new GraphImporter(store, graph, options.onExisting)
  const recordImporter = new RecordImporter(store)
  const rows = new RowCollector(store, (scope, compared) => writeRows(store, scope, compared, options, result))
  let writer: SessionWriter | GraphImporter | undefined
  for await (const verified of records) {
    const { record } = verified
    if (endsSession(record)) {
      if (writer instanceof SessionWriter) {
        await writer.finish()
        result.sessions++
      }
      await recordImporter.finish()
      const written = writer
      writer = undefined
      const nextScope = 'session' in record ? targetKey(options.scope, record.session).scope : undefined
      countGraph(result, await graphImporter.finish(nextScope))
      if (written instanceof SessionWriter) options.onSession?.(formatKey(written.key), 'written')
      reportProgress()
    }
    if ('session' in record) {
      const key = targetKey(options.scope, record.session)
      writer = isGraphKey(key)
        ? graphImporter.begin(key, record.session, verified.hash)
        : await createWriter(store, verified, sessions.get(formatKey(key)), options, result)
      if (!result.skipped.has(formatKey(key))) recordImporter.begin(key)
    } else if ('record' in record) recordImporter.add(record.record)
    else if ('row' in record) await rows.add(options.scope ?? record.row.scope, record.row)
    else await writer?.add(verified)
    if (!(writer instanceof SessionWriter)) continue
    if ('message' in record && ++result.messages % progressInterval === 0) reportProgress()
    if ('entry' in record) result.entries++
  }
  await rows.flush()
  return { ...result, skipped: [...result.skipped], replaced: [...result.replaced] }
}

/** Writes the rows that the store lacks, or has with other contents if these are to be replaced. */
async function writeRows(
  store: Store,
  scope: Scope,
  rows: readonly ComparedRow[],
  { onExisting }: WriteOptions,
  result: MutableResult,
): Promise<void> {
  const changed = rows.filter(({ isSame }) => !isSame)
  const existing = changed.filter(({ stored }) => stored !== undefined).map(({ record }) => formatRow(scope, record))
  for (const row of existing) result[onExisting === 'skip' ? 'skipped' : 'replaced'].add(row)
  const written = onExisting === 'skip' ? changed.filter(({ stored }) => stored === undefined) : changed
  // The store may write what it is given at once in one transaction.
  await Promise.all(
    written.map(({ record, write, stored }) =>
      store.table.writeRows(scope, record.updatedAt, [
        { ...write, expected: onExisting === 'refuse' ? 0 : (stored?.revision ?? 0) },
      ]),
    ),
  )
  if (written.length > 0) result.rows = (result.rows ?? 0) + written.length
}

/** Appends the auxiliary records of a session that the store lacks, also to a session that was imported before. */
class RecordImporter {
  private readonly store: Store
  private key: Key | undefined
  private records: AuxiliaryRecord[] = []

  constructor(store: Store) {
    this.store = store
  }

  begin(key: Key): void {
    this.key = key
  }

  add(record: AuxiliaryRecord): void {
    if (this.key !== undefined) this.records.push(record)
  }

  async finish(): Promise<void> {
    const { key, records } = this
    this.key = undefined
    this.records = []
    if (key === undefined || records.length === 0) return
    const stored = new Set((await this.store.records(key, { limit: Number.MAX_SAFE_INTEGER })).map(({ id }) => id))
    for (const record of records)
      if (!stored.has(record.id)) await this.store.appendRecord(key, record, Number.MAX_SAFE_INTEGER)
  }
}

/** Counts a graph as the session that holds it. */
function countGraph(result: MutableResult, graph: GraphImportResult | undefined): void {
  if (graph === undefined) return
  if (graph.isChanged) result.sessions++
  else if (graph.skipped.length === 0) result.unchanged++
  result.entries += graph.entries
  for (const row of graph.skipped) result.skipped.add(row)
  for (const row of graph.replaced) result.replaced.add(row)
}

/** Creates a writer that starts or continues a session; returns undefined if the session is not to be written. */
async function createWriter(
  store: Store,
  { record, hash }: VerifiedRecord,
  comparison: SessionComparison | undefined,
  { scope, onExisting, onSession }: WriteOptions,
  result: MutableResult,
): Promise<SessionWriter | undefined> {
  if (!('session' in record)) return undefined
  const { session } = record
  const key = targetKey(scope, session)
  if (comparison?.status === 'same') {
    result.unchanged++
    onSession?.(formatKey(key), 'unchanged')
    return undefined
  }
  // A branch stays with its session.
  const owner = ownerOf(key)
  const isOwnerSkipped = owner !== undefined && result.skipped.has(formatKey(owner))
  if (isOwnerSkipped || (comparison?.status === 'other' && onExisting !== 'replace')) {
    result.skipped.add(formatKey(key))
    return undefined
  }
  if (comparison?.status === 'beginning') return new SessionWriter(store, comparison.stored, session, hash)
  if (comparison !== undefined) await eraseIfUnchanged(store, comparison.stored)
  if (comparison?.status === 'other') result.replaced.add(formatKey(key))
  const { epoch } = await store.readHead(key, 0)
  return new SessionWriter(store, createEmptyHead(key, epoch), session, hash)
}

/** Erases a session that is to be replaced; throws if it was written to since the comparison. */
async function eraseIfUnchanged(store: Store, stored: StoredState): Promise<void> {
  const { revision, epoch } = await store.readHead(stored.key, 0)
  if (revision !== stored.revision || epoch !== stored.epoch)
    throw new MemoryError(
      'conflict',
      `Session ${formatKey(stored.key)} was written to during the import. What was written stays; import the same bundle again.`,
    )
  await store.erase(stored.key)
}
