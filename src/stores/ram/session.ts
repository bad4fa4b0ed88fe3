import {
  type DerivedEntry,
  type Entry,
  formatMessageId,
  isBlank,
  type Json,
  type Message,
  type Millis,
  metadataId,
  type NewMessage,
  parseMessageId,
  utf8Length,
} from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { AuxiliaryRecord, StoredRecord } from '../../domain/ports.ts'
import {
  addGap,
  addGapRange,
  findMessageIndex,
  type Gap,
  removeFromGaps,
  type SessionChange,
} from '../../domain/session.ts'
import { type Compressor, compressText, decompressText } from './compression.ts'
/** Entries of a session. The maps are created on first use, because most sessions need none. */
export type SessionContent = {
  /** By sequence number. */
  messages: Message[]
  /** Sequence numbers by external id. */
  externalIds: Map<string, number> | undefined
  gaps: readonly Gap[]
  lastUserMessage: Message | undefined
  derived: Map<string, DerivedEntry> | undefined
  /** First and last message of each recent change by change id, so that a repeated change is applied once. */
  appliedChanges: Map<string, readonly [first: number, last: number]> | undefined
}

export type Session = {
  readonly key: Key
  readonly epoch: number
  revision: number
  startedAt: Millis
  touchedAt: Millis
  expiresAt: Millis
  lastSequence: number
  totalWeight: number
  messageCount: number
  /** Value of the table's change counter at the last change. */
  stamp: number
  /** Number of changes that removed or replaced entries, or filled a gap before the newest message. */
  removals: number
  /** Kept beside the content, so that listing does not decompress it. */
  metadata: Json | undefined
  /** Maintained by the session cache: position in the expiry heap, and estimated size. */
  heapIndex: number
  bytes: number
  /** Auxiliary records; created with the first one. */
  records: RecordLog | undefined
  /** Exactly one of the two is defined. */
  content: SessionContent | undefined
  compressed: string | undefined
}

/** Number of changes per session that are recognised when they are repeated. */
const maxRememberedChanges = 1_000

const emptyContent = (): SessionContent => ({
  messages: [],
  externalIds: undefined,
  gaps: [],
  lastUserMessage: undefined,
  derived: undefined,
  appliedChanges: undefined,
})

export const createSession = ({ key, epoch, at, expiresAt }: SessionChange): Session => ({
  key,
  epoch,
  revision: 0,
  startedAt: at,
  touchedAt: at,
  expiresAt,
  lastSequence: 0,
  totalWeight: 0,
  messageCount: 0,
  stamp: 0,
  removals: 0,
  metadata: undefined,
  heapIndex: 0,
  bytes: 0,
  records: undefined,
  content: emptyContent(),
  compressed: undefined,
})

/** Appends the messages of a change and returns them. */
export function appendMessages(
  session: Session,
  content: SessionContent,
  { id, from, append }: SessionChange,
): readonly Message[] {
  if (from !== undefined) skipToSequence(session, content, from)
  const added = append.map((input) => {
    const message = createMessage(input, ++session.lastSequence, session.totalWeight)
    session.totalWeight += input.weight
    if (isVisibleUserMessage(message)) content.lastUserMessage = message
    content.messages.push(message)
    addExternalId(content, message)
    return message
  })
  session.messageCount = content.messages.length
  if (id !== undefined) rememberChange(content, id, [session.lastSequence - added.length + 1, session.lastSequence])
  return added
}

/** Stores a message under a sequence number inside a gap and returns it. */
export function fillGap(
  session: Session,
  content: SessionContent,
  { id, append }: SessionChange,
  sequence: number,
): readonly Message[] {
  const [input] = append as readonly [NewMessage]
  const index = findMessageIndex(content.messages, sequence)
  const [previous, next] = [content.messages[index - 1], content.messages[index]]
  const end = previous === undefined ? 0 : previous.offset + previous.weight
  const message = createMessage(input, sequence, Math.min(end, next?.offset ?? end))
  // Search indexes read only what follows the last message they know; a changed lineage makes them start again.
  if (next !== undefined) session.removals++
  content.messages.splice(index, 0, message)
  addExternalId(content, message)
  content.gaps = removeFromGaps(content.gaps, sequence)
  if (isVisibleUserMessage(message) && sequence > (content.lastUserMessage?.sequence ?? 0))
    content.lastUserMessage = message
  session.totalWeight += input.weight
  session.messageCount = content.messages.length
  if (id !== undefined) rememberChange(content, id, [sequence, sequence])
  return [message]
}

/** Makes a message findable by its external id. */
export function addExternalId(content: Pick<SessionContent, 'externalIds'>, { externalId, sequence }: Message): void {
  if (externalId === undefined) return
  content.externalIds ??= new Map()
  content.externalIds.set(externalId, sequence)
}

/** Another message of the same change may have taken the external id over. */
export function removeExternalId({ externalIds }: SessionContent, { externalId, sequence }: Message): void {
  if (externalId !== undefined && externalIds?.get(externalId) === sequence) externalIds.delete(externalId)
}

/** Updates the metadata of a session after its derived entries changed. */
export function updateMetadata(session: Session, { derived }: SessionContent): void {
  const entry = derived?.get(metadataId)
  session.metadata = entry?.kind === 'about' ? entry.metadata : undefined
}

/**
 * Creates a message with all common fields in one literal. V8 keeps fields added later out of line, which takes more
 * memory; only the optional ones are added that way.
 */
export function createMessage(input: NewMessage, sequence: number, offset: number): Message {
  const {
    at,
    role,
    content,
    tokens,
    lineTokens,
    tokenizer,
    weight,
    name,
    toolCalls,
    toolCallId,
    externalId,
    packedPayload,
    branch,
  } = input
  const id = formatMessageId(sequence)
  const message: MutableMessage = {
    kind: 'message',
    id,
    sequence,
    offset,
    at,
    role,
    content,
    tokens,
    lineTokens,
    tokenizer,
    weight,
  }
  if (name !== undefined) message.name = name
  if (toolCalls !== undefined) message.toolCalls = toolCalls
  if (toolCallId !== undefined) message.toolCallId = toolCallId
  if (externalId !== undefined) message.externalId = externalId
  if (packedPayload !== undefined) message.packedPayload = packedPayload
  if (branch !== undefined) message.branch = branch
  return Object.freeze(message)
}

type MutableMessage = { -readonly [field in keyof Message]: Message[field] }

/** Stores derived entries and returns the ones they replace. */
export function putDerived(content: SessionContent, entries: readonly DerivedEntry[]): readonly Entry[] {
  const replaced: Entry[] = []
  for (const entry of entries) {
    content.derived ??= new Map()
    const previous = content.derived.get(entry.id)
    if (previous) replaced.push(previous)
    content.derived.set(entry.id, entry)
  }
  return replaced
}

function rememberChange(content: SessionContent, id: string, run: readonly [number, number]): void {
  content.appliedChanges ??= new Map()
  content.appliedChanges.set(id, run)
  if (content.appliedChanges.size > maxRememberedChanges)
    content.appliedChanges.delete(content.appliedChanges.keys().next().value as string)
}

/** Removes entries and returns those that existed. */
export function removeEntries(session: Session, content: SessionContent, ids: readonly string[]): readonly Entry[] {
  if (ids.length === 0) return []
  const removed = new Map<string, Entry>()
  for (const id of ids) {
    const entry = content.derived?.get(id) ?? findMessage(content, id)
    if (entry) removed.set(id, entry)
  }
  if (removed.size === 0) return []
  for (const entry of removed.values()) {
    if (entry.kind === 'message') {
      content.gaps = addGap(content.gaps, entry.sequence)
      removeExternalId(content, entry)
    } else content.derived?.delete(entry.id)
  }
  content.messages = content.messages.filter(({ id }) => !removed.has(id))
  if (content.lastUserMessage && removed.has(content.lastUserMessage.id))
    content.lastUserMessage = content.messages.findLast(isVisibleUserMessage)
  session.messageCount = content.messages.length
  session.removals++
  return [...removed.values()]
}

/** Finds the message with this id. */
export function findMessage(content: SessionContent, id: string): Message | undefined {
  const sequence = parseMessageId(id)
  return sequence === undefined ? undefined : messageAt(content, sequence)
}

/** Finds the message with this sequence number. */
export function messageAt({ messages }: SessionContent, sequence: number): Message | undefined {
  const message = messages[findMessageIndex(messages, sequence)]
  return message?.sequence === sequence ? message : undefined
}

/** True for a user message that has text to show. */
export const isVisibleUserMessage = ({ role, content }: Message): boolean => role === 'user' && !isBlank(content)

/** Moves the end of the session to just before `sequence`; the skipped numbers become a gap. */
function skipToSequence(
  session: Session,
  content: SessionContent,
  { sequence, offset = session.totalWeight }: NonNullable<SessionChange['from']>,
): void {
  content.gaps = addGapRange(content.gaps, session.lastSequence + 1, sequence - 1)
  session.lastSequence = sequence - 1
  session.totalWeight = offset
}

/** Records compressed together while a session is in use. Four similar receipts take about as much memory as one. */
const blockSize = 4
/** Records compressed together once the session is idle. */
const idleBlockSize = 64
/** Memory of a record besides its text: measured, rounded up. */
const recordOverheadBytes = 150

/** A block of consecutive records, as compressed JSON. */
type RecordBlock = { readonly last: number; readonly count: number; readonly compressed: string }

/** The auxiliary records of one session. With a compressor, all but the newest few are compressed in blocks. */
export class RecordLog {
  /** Estimated memory in bytes. */
  bytes = 0
  private lastNumber = 0
  private blocks: RecordBlock[] = []
  private recent: StoredRecord[] = []

  append(record: AuxiliaryRecord, keep: number, compressor: Compressor | undefined): void {
    const { id, at, body } = record
    this.recent.push({ id, at, body, number: ++this.lastNumber })
    if (compressor !== undefined && this.recent.length === blockSize) {
      this.blocks.push(toBlock(this.recent, compressor))
      this.recent = []
    }
    this.dropOldest(keep)
    this.bytes = this.measure()
  }

  /** Compresses all records in larger blocks, for an idle session. */
  compact(compressor: Compressor): void {
    const full = this.blocks.filter(({ count }) => count === idleBlockSize)
    const rest = this.blocks.slice(full.length).flatMap((block) => fromBlock(block, compressor))
    const loose = [...rest, ...this.recent]
    for (let from = 0; from < loose.length; from += idleBlockSize)
      full.push(toBlock(loose.slice(from, from + idleBlockSize), compressor))
    this.blocks = full
    this.recent = []
    this.bytes = this.measure()
  }

  /** Records older than the one with the number `before`, newest first. */
  list(before: number, limit: number, compressor: Compressor | undefined): readonly StoredRecord[] {
    const found = this.recent.filter(({ number }) => number < before).reverse()
    for (let index = this.blocks.length - 1; index >= 0 && found.length < limit; index--) {
      const block = this.blocks[index] as RecordBlock
      if (block.last - block.count + 1 >= before) continue
      const records = fromBlock(block, compressor as Compressor)
      found.push(...records.filter(({ number }) => number < before).reverse())
    }
    return found.slice(0, limit)
  }

  /** Drops whole blocks only, so that some more records than `keep` may remain. */
  private dropOldest(keep: number): void {
    const oldestKept = this.lastNumber - keep + 1
    if (this.blocks[0] !== undefined && this.blocks[0].last < oldestKept) this.blocks.shift()
    else if (this.blocks.length === 0 && this.recent.length > keep) this.recent.shift()
  }

  private measure(): number {
    let bytes = 0
    for (const { compressed } of this.blocks) bytes += recordOverheadBytes + compressed.length
    for (const { body } of this.recent) bytes += recordOverheadBytes + utf8Length(body)
    return bytes
  }
}

function toBlock(records: readonly StoredRecord[], compressor: Compressor): RecordBlock {
  return {
    last: records.at(-1)?.number ?? 0,
    count: records.length,
    compressed: compressText(JSON.stringify(records), compressor),
  }
}

const fromBlock = ({ compressed }: RecordBlock, compressor: Compressor): readonly StoredRecord[] =>
  JSON.parse(decompressText(compressed, compressor)) as StoredRecord[]
