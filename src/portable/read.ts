import type { Totals } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { type Key, parseStoredKey } from '../domain/key.ts'
import { damaged, origin, unlink } from './chain.ts'
import { decrypted } from './encrypt.ts'
import { isGraphKey } from './graph/access.ts'
import { type Bytes, following, linesOf, partFirstLine } from './lines.ts'
import { type BundleRecord, marked, parseRecord, type SessionRecord } from './records.ts'

/** A record that is part of an unbroken chain; its hash stands for everything up to it. */
export type Linked = { readonly record: BundleRecord; readonly hash: string }

/** A header is a few hundred bytes. */
const longestHeader = 4_096

/**
 * Reads a bundle record by record, checking each against all before it, and decrypting it first where needed. The end is
 * known to be there only once the last record, `end`, has come.
 *
 * @example
 * for await (const { record } of readBundle(createReadStream('memory.jsonl'))) if ('end' in record) console.log(record.end.messages)
 */
export async function* readBundle(source: Bytes, passphrase?: string): AsyncGenerator<Linked> {
  const chunks = following(new Uint8Array(0), source)
  try {
    const { first, rest } = await partFirstLine(chunks, longestHeader)
    const header = headerOf(await firstLineOf(first))
    yield* header.cipher === undefined
      ? recordsOf(following(first, rest))
      : recordsOf(decrypted(rest, header, passphrase))
  } finally {
    await chunks.return(undefined)
  }
}

const firstLineOf = async (bytes: Uint8Array): Promise<string> => (await linesOf([bytes]).next()).value ?? ''

function headerOf(line: string): { readonly cipher: unknown; readonly hash: string } {
  if (!line.startsWith(`{"bundle":"${marked.bundle}",`))
    throw damaged(1, 'is not the first line of a Threadkeep bundle')
  const { body, hash } = unlink(origin, line, 1)
  const { bundle: _, version, cipher, ...others } = body
  if (version !== marked.version)
    throw new MemoryError(
      'bad-bundle',
      `The bundle is of version ${JSON.stringify(version)}, this Threadkeep reads version ${marked.version}. Update Threadkeep.`,
    )
  if (Object.keys(others).length > 0) throw damaged(1, `has the unknown field ${Object.keys(others)[0]}`)
  return { cipher, hash }
}

async function* recordsOf(bytes: Bytes): AsyncGenerator<Linked> {
  let place = outset
  let previous = origin
  for await (const line of linesOf(bytes)) {
    place = { ...place, number: place.number + 1 }
    if (place.number === 1) {
      const header = headerOf(line)
      if (header.cipher !== undefined) throw damaged(1, 'is encrypted twice')
      previous = header.hash
      continue
    }
    const { body, hash } = unlink(previous, line, place.number)
    previous = hash
    const record = parseRecord(body, place.number)
    place = after(place, record)
    yield { record, hash }
  }
  if (!place.over) throw damaged(place.number + 1, 'is missing: the end of the bundle was cut off')
}

/** Where a reader is: which session, how much of it has come, and what has come in all. */
type Place = {
  readonly number: number
  readonly session: SessionRecord | undefined
  readonly messages: number
  readonly entries: number
  readonly sequence: number
  readonly entry: string
  readonly totals: Totals
  readonly over: boolean
}

const outset: Place = {
  number: 0,
  session: undefined,
  messages: 0,
  entries: 0,
  sequence: 0,
  entry: '',
  totals: { sessions: 0, messages: 0, entries: 0 },
  over: false,
}

/** Where a reader is after one more record; refuses one that has no business there. */
function after(place: Place, record: BundleRecord): Place {
  const { number, session, totals } = place
  const must = (holds: boolean, fault: string): void => {
    if (!holds) throw damaged(number, fault)
  }
  must(!place.over, 'follows the end of the bundle')
  if ('message' in record) {
    const { sequence } = record.message
    must(session !== undefined && place.entries === 0, 'is a message outside the messages of a session')
    must(
      sequence > place.sequence && sequence <= (session?.last ?? 0),
      `has the message number ${sequence}, which is out of order`,
    )
    return { ...place, sequence, messages: place.messages + 1, totals: { ...totals, messages: totals.messages + 1 } }
  }
  if ('entry' in record) {
    must(session !== undefined, 'is an entry outside a session')
    must(record.entry.id > place.entry, `has the entry ${JSON.stringify(record.entry.id)}, which is out of order`)
    return {
      ...place,
      entry: record.entry.id,
      entries: place.entries + 1,
      totals: { ...totals, entries: totals.entries + 1 },
    }
  }
  if ('graph' in record) {
    must(session !== undefined && isGraphKey(parseStoredKey(session.key)), 'is a row of a graph outside a graph')
    return { ...place, entries: place.entries + 1, totals: { ...totals, entries: totals.entries + 1 } }
  }
  const whole = session === undefined || (session.messages === place.messages && session.entries === place.entries)
  must(
    whole,
    `comes too early: session ${session?.key} should have ${session?.messages} messages and ${session?.entries} entries`,
  )
  if ('session' in record) {
    must(
      session === undefined || follows(parseStoredKey(record.session.key), parseStoredKey(session.key)),
      `has the session ${record.session.key}, which is out of order`,
    )
    return {
      ...place,
      session: record.session,
      messages: 0,
      entries: 0,
      sequence: 0,
      entry: '',
      totals: { ...totals, sessions: totals.sessions + 1 },
    }
  }
  const { sessions, messages, entries } = record.end
  must(
    sessions === totals.sessions && messages === totals.messages && entries === totals.entries,
    'counts other lines than there are',
  )
  return { ...place, over: true }
}

/** Whether a session stands behind another in the list of a store. */
const follows = (a: Key, b: Key): boolean => a.scope > b.scope || (a.scope === b.scope && a.id > b.id)
