import type { BundleTotals } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { type Key, parseStoredKey } from '../domain/key.ts'
import { chainStart, damagedBundleError, verifyChainLine } from './chain.ts'
import { decryptBundle } from './encrypt.ts'
import { isGraphKey } from './graphAccess.ts'
import { type ByteSource, prepend, readLines, splitFirstLine } from './lines.ts'
import { type BundleRecord, bundleHeader, parseRecord, type SessionRecord } from './records.ts'

/** A record whose hash chain is verified; the hash covers all lines up to it. */
export type VerifiedRecord = { readonly record: BundleRecord; readonly hash: string }

/** A header has a few hundred bytes. */
const maxHeaderBytes = 4_096

/**
 * Reads a bundle record by record, verifies each against all before it, and decrypts it if needed. The bundle is
 * complete once the last record, `end`, was read.
 *
 * @throws MemoryError `bad-bundle` for damage, `bad-secret` for a missing or wrong passphrase.
 *
 * @example
 * for await (const { record } of readBundle(createReadStream('memory.jsonl'))) if ('end' in record) console.log(record.end.messages)
 */
export async function* readBundle(source: ByteSource, passphrase?: string): AsyncGenerator<VerifiedRecord> {
  const chunks = prepend(new Uint8Array(0), source)
  try {
    const { first, rest } = await splitFirstLine(chunks, maxHeaderBytes)
    const header = parseHeader((await readLines([first]).next()).value ?? '')
    yield* header.cipher === undefined
      ? readRecords(prepend(first, rest))
      : readRecords(decryptBundle(rest, header, passphrase))
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

async function* readRecords(bytes: ByteSource): AsyncGenerator<VerifiedRecord> {
  let state = initialState
  let previousHash = chainStart
  for await (const line of readLines(bytes)) {
    state = { ...state, lineNumber: state.lineNumber + 1 }
    if (state.lineNumber === 1) {
      const header = parseHeader(line)
      if (header.cipher !== undefined) throw damagedBundleError(1, 'is encrypted twice')
      previousHash = header.hash
      continue
    }
    const { body, hash } = verifyChainLine(previousHash, line, state.lineNumber)
    previousHash = hash
    const record = parseRecord(body, state.lineNumber)
    state = advance(state, record)
    yield { record, hash }
  }
  if (!state.isEnded) throw damagedBundleError(state.lineNumber + 1, 'is missing: the end of the bundle was cut off')
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
  readonly isEnded: boolean
}

const initialState: ReaderState = {
  lineNumber: 0,
  session: undefined,
  messages: 0,
  entries: 0,
  lastSequence: 0,
  lastEntryId: '',
  totals: { sessions: 0, messages: 0, entries: 0 },
  isEnded: false,
}

/** Returns the state after a record; throws if the record is not allowed at its position. */
function advance(state: ReaderState, record: BundleRecord): ReaderState {
  const { session, totals } = state
  const require = (condition: boolean, problem: string): void => {
    if (!condition) throw damagedBundleError(state.lineNumber, problem)
  }
  const withEntry = { ...state, entries: state.entries + 1, totals: { ...totals, entries: totals.entries + 1 } }
  require(!state.isEnded, 'follows the end of the bundle')
  if ('message' in record) {
    const { sequence } = record.message
    require(session !== undefined && state.entries === 0, 'is a message outside the messages of a session')
    require(sequence > state.lastSequence &&
      sequence <= (session?.last ?? 0), `has the message number ${sequence}, which is out of order`)
    return {
      ...state,
      lastSequence: sequence,
      messages: state.messages + 1,
      totals: { ...totals, messages: totals.messages + 1 },
    }
  }
  if ('entry' in record) {
    const { id } = record.entry
    require(session !== undefined, 'is an entry outside a session')
    require(id > state.lastEntryId, `has the entry ${JSON.stringify(id)}, which is out of order`)
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
  if ('session' in record) {
    require(session === undefined ||
      isAfter(
        parseStoredKey(record.session.key),
        parseStoredKey(session.key),
      ), `has the session ${record.session.key}, which is out of order`)
    return {
      ...initialState,
      lineNumber: state.lineNumber,
      session: record.session,
      totals: { ...totals, sessions: totals.sessions + 1 },
    }
  }
  const { sessions, messages, entries } = record.end
  require(sessions === totals.sessions &&
    messages === totals.messages &&
    entries === totals.entries, 'counts other lines than there are')
  return { ...state, isEnded: true }
}

/** Compares keys in the order in which a store lists them. */
const isAfter = (a: Key, b: Key): boolean => a.scope > b.scope || (a.scope === b.scope && a.id > b.id)
