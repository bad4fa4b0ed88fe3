import type { BundleTotals, ImportOptions } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { filesKey, type Key, parseStoredKey } from '../domain/key.ts'
import { formatTableKey, parseDescribedKey } from '../domain/tableRows.ts'
import { runInSlices } from '../domain/work.ts'
import { yieldWhenLong } from '../stores/yieldToEventLoop.ts'
import { toCanonicalJson } from './canonical.ts'
import { chainStart, damagedBundleError, verifyChainLine, verifyChainLineInSteps } from './chain.ts'
import { decryptBundle } from './encrypt.ts'
import { isGraphKey } from './graphAccess.ts'
import { type ByteSource, prepend, readLines, splitFirstLine } from './lines.ts'
import { type BundleRecord, bundleHeader, type MessageRecord, parseRecord, type SessionRecord } from './records.ts'
import type { RowRecord } from './rowRecords.ts'
import { checkSigningKey, unsignedError, verifySignature } from './signature.ts'

/** A record whose hash chain is verified; the hash covers all lines up to it. */
export type VerifiedRecord = { readonly record: BundleRecord; readonly hash: string }

export type ReadOptions = Pick<ImportOptions, 'passphrase' | 'verifyKey'>

/** A header has a few hundred bytes. */
const maxHeaderBytes = 4_096

/**
 * Reads a bundle record by record, verifies each against all before it, and decrypts it if needed. The bundle is
 * complete once the last record, `end`, was read.
 *
 * @throws MemoryError `bad-bundle` for damage, `bad-secret` for a missing or wrong passphrase or signature.
 *
 * @example
 * for await (const { record } of readBundle(createReadStream('memory.jsonl'))) if ('end' in record) console.log(record.end.messages)
 */
export async function* readBundle(
  source: ByteSource,
  { passphrase, verifyKey }: ReadOptions = {},
): AsyncGenerator<VerifiedRecord> {
  if (verifyKey !== undefined) checkSigningKey(verifyKey, 'verifyKey')
  const chunks = prepend(new Uint8Array(0), source)
  try {
    const { first, rest } = await splitFirstLine(chunks, maxHeaderBytes)
    const header = parseHeader((await readLines([first]).next()).value ?? '')
    yield* header.cipher === undefined
      ? readRecords(prepend(first, rest), verifyKey)
      : readRecords(decryptBundle(rest, header, passphrase), verifyKey)
  } finally {
    await chunks.return(undefined)
  }
}

function parseHeader(line: string): { readonly cipher: unknown; readonly hash: string } {
  if (!line.startsWith(`{"bundle":"${bundleHeader.bundle}",`))
    throw damagedBundleError(1, 'is not the first line of a Threadkeep bundle')
  const { body, hash } = verifyChainLine(chainStart, line, 1)
  const { bundle: _, version, cipher, ...unknownFields } = body
  if (version !== bundleHeader.version)
    throw new MemoryError(
      'bad-bundle',
      `The bundle is of version ${JSON.stringify(version)}, this Threadkeep reads version ${bundleHeader.version}. Update Threadkeep.`,
    )
  const [unknownField] = Object.keys(unknownFields)
  if (unknownField !== undefined) throw damagedBundleError(1, `has the unknown field ${unknownField}`)
  return { cipher, hash }
}

async function* readRecords(bytes: ByteSource, verifyKey: Uint8Array | undefined): AsyncGenerator<VerifiedRecord> {
  let state = createState(0)
  let previousHash = chainStart
  for await (const line of readLines(bytes)) {
    state = { ...state, lineNumber: state.lineNumber + 1 }
    if (state.lineNumber === 1) {
      const header = parseHeader(line)
      if (header.cipher !== undefined) throw damagedBundleError(1, 'is encrypted twice')
      previousHash = header.hash
      continue
    }
    const verification = verifyChainLineInSteps(previousHash, line, state.lineNumber)
    const { body, hash } = await runInSlices(verification, yieldWhenLong)
    const record = parseRecord(body, state.lineNumber)
    state = advance(state, record)
    if ('signature' in record && verifyKey !== undefined) verifySignature(verifyKey, previousHash, record.signature)
    previousHash = hash
    yield { record, hash }
  }
  if (!state.isEnded) throw damagedBundleError(state.lineNumber + 1, 'is missing: the end of the bundle was cut off')
  if (verifyKey !== undefined && !state.isSigned) throw unsignedError('is not signed')
}

type ReaderState = {
  readonly lineNumber: number
  /** The current session. */
  readonly session: SessionRecord | undefined
  /** Messages and entries of the current session read so far. */
  readonly messages: number
  readonly entries: number
  readonly lastSequence: number
  readonly lastEntryId: string
  /** Counts of the whole bundle so far. */
  readonly totals: BundleTotals
  readonly lastOffset: number
  /** External ids of the current session. */
  readonly externalIds: Set<string>
  readonly lastRow: RowRecord | undefined
  readonly isEnded: boolean
  readonly isSigned: boolean
}

const createState = (lineNumber: number): ReaderState => ({
  lineNumber,
  session: undefined,
  messages: 0,
  entries: 0,
  lastSequence: 0,
  lastEntryId: '',
  totals: { sessions: 0, messages: 0, entries: 0 },
  lastOffset: 0,
  externalIds: new Set(),
  lastRow: undefined,
  isEnded: false,
  isSigned: false,
})

/** Returns the state after a record; throws if the record is not allowed at its position. */
function advance(state: ReaderState, record: BundleRecord): ReaderState {
  const { session, totals } = state
  const require = (condition: boolean, problem: string): void => {
    if (!condition) throw damagedBundleError(state.lineNumber, problem)
  }
  const withEntry = { ...state, entries: state.entries + 1, totals: { ...totals, entries: totals.entries + 1 } }
  if ('signature' in record) {
    require(state.isEnded && !state.isSigned, 'is a signature before the end of the bundle')
    return { ...state, isSigned: true }
  }
  require(!state.isEnded, 'follows the end of the bundle')
  if ('message' in record) return advanceMessage(state, record.message, require)
  if ('entry' in record) {
    const { id } = record.entry
    require(session !== undefined, 'is an entry outside a session')
    require(id > state.lastEntryId, `has the entry ${JSON.stringify(id)}, which is out of order`)
    const { entry } = record
    require(entry.kind !== 'summary' ||
      entry.covers[1] <= (session?.last ?? 0), 'is a summary of messages that the session does not have')
    return { ...withEntry, lastEntryId: id }
  }
  if ('record' in record) {
    require(session?.messages === state.messages &&
      session.entries === state.entries, 'is a record before the end of the entries')
    return state
  }
  if ('graph' in record) {
    require(session !== undefined && isGraphKey(parseStoredKey(session.key)), 'is a row of a graph outside a graph')
    return withEntry
  }
  require(session === undefined ||
    (session.messages === state.messages &&
      session.entries ===
        state.entries), `comes too early: session ${session?.key} should have ${session?.messages} messages and ${session?.entries} entries`)
  if ('row' in record) return advanceRow(state, record.row, require)
  if ('session' in record) {
    require(state.lastRow === undefined, 'is a session after the rows of tables')
    require(session === undefined ||
      isAfter(
        parseStoredKey(record.session.key),
        parseStoredKey(session.key),
      ), `has the session ${record.session.key}, which is out of order`)
    return {
      ...createState(state.lineNumber),
      session: record.session,
      totals: { ...totals, sessions: totals.sessions + 1 },
    }
  }
  require(toCanonicalJson(record.end) === toCanonicalJson(totals), 'counts other lines than there are')
  return { ...state, isEnded: true }
}

function advanceMessage(
  state: ReaderState,
  { sequence, offset, externalId, role, toolCallId }: MessageRecord,
  require: (condition: boolean, problem: string) => void,
): ReaderState {
  const { session, totals } = state
  require(session !== undefined && state.entries === 0, 'is a message outside the messages of a session')
  const isInOrder = sequence > state.lastSequence && sequence <= (session?.last ?? 0)
  require(isInOrder, `has the message number ${sequence}, which is out of order`)
  // Passages of files have the role of a tool that nobody called.
  require(role !== 'tool' ||
    toolCallId !== undefined ||
    (session !== undefined &&
      isFilesKey(parseStoredKey(session.key))), 'is a reply of a tool without the id of its call')
  require(offset >= state.lastOffset, `has the offset ${offset}, which is lower than that of the message before`)
  if (externalId !== undefined) {
    require(!state.externalIds.has(externalId), `repeats the message id ${JSON.stringify(externalId)}`)
    state.externalIds.add(externalId)
  }
  return {
    ...state,
    lastSequence: sequence,
    lastOffset: offset,
    messages: state.messages + 1,
    totals: { ...totals, messages: totals.messages + 1 },
  }
}

function advanceRow(
  state: ReaderState,
  row: RowRecord,
  require: (condition: boolean, problem: string) => void,
): ReaderState {
  const { lastRow, totals } = state
  const isInOrder =
    lastRow === undefined ||
    row.scope > lastRow.scope ||
    (row.scope === lastRow.scope && sortableName(row) > sortableName(lastRow))
  require(isInOrder, `has the row ${row.name}, which is out of order`)
  return { ...state, session: undefined, lastRow: row, totals: { ...totals, rows: (totals.rows ?? 0) + 1 } }
}

const isFilesKey = ({ scope, id }: Key): boolean => id === filesKey(scope).id

const sortableName = ({ name }: RowRecord): string => formatTableKey(parseDescribedKey(name))

/** Compares keys in the order in which a store lists them. */
const isAfter = (a: Key, b: Key): boolean => a.scope > b.scope || (a.scope === b.scope && a.id > b.id)
