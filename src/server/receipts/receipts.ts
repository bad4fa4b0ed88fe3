import { randomBytes } from 'node:crypto'
import type { About, Derived, Message, Millis, Said, Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, parseKey, receiptsKey } from '../../domain/key.ts'
import type { Ledger } from '../../domain/ledger.ts'
import type { Store } from '../../domain/ports.ts'
import { type Change, type Head, never } from '../../domain/session.ts'
import { lightZstd as zstd } from '../../stores/zstd.ts'
import {
  type Compact,
  compacted,
  idOf,
  joined,
  markOf,
  type Own,
  type Parted,
  parted,
  restored,
  type Shape,
} from './receiptForm.ts'

/** What explains an answer afterwards: which entries its model was shown and why, and what that cost. Ids and numbers, never text. */
export type Receipt = {
  readonly id: string
  readonly key: string
  readonly at: Millis
  /** The request it belongs to, and the id the model server gave its answer. */
  readonly request: string
  readonly response: string | null
  /** Where the reply stands in the transcript. */
  readonly sequence: number | null
  readonly protocol: string
  readonly model: string
  readonly upstream: string
  /** How what the client sent relates to what was stored: continued, edited, regenerated and so on. */
  readonly how: string
  readonly tokens: {
    readonly shown: Tokens
    /** What the whole history would have cost, and what was spared. */
    readonly history: Tokens
    readonly saved: Tokens
    /** What a provider can take from its cache, and its part of what was shown. */
    readonly cacheable: Tokens
    readonly cacheableShare: number
    /** As the model server counts. */
    readonly prompt: Tokens | null
    readonly completion: Tokens | null
    readonly cached: Tokens | null
  }
  readonly cost: unknown
  readonly degraded: readonly string[]
  readonly ledger: Ledger | null
}

/** So many receipts of a session are kept; when there are some more, the oldest of them go. */
const most = 1_000
/** So many stand by themselves, then they are packed together: most of what they hold is the same. */
const mostLoose = 8
/** So many are packed together at most. */
const block = 64

/** A new id; the key in it tells where to look. */
export const receiptId = (key: Key): string => idOf(formatKey(key), newMark())

/** Marks that nobody has yet, sixteen digits each: to ask for hundreds takes as long as to ask for one. */
let marks = ''

function newMark(): string {
  if (marks === '') marks = randomBytes(2_048).toString('hex')
  const mark = marks.slice(0, 16)
  marks = marks.slice(16)
  return mark
}

/** The session a receipt belongs to; undefined for what is no id of a receipt. */
export function keyOfReceipt(id: string): Key | undefined {
  const name = /^rc_([\w-]{1,300})_[0-9a-f]{16}$/.exec(id)?.[1]
  try {
    return name === undefined ? undefined : parseKey(Buffer.from(name, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

/** A receipt where it is kept: it has a number, which grows, and a time. */
type Kept = readonly [number: number, at: Millis, form: Compact]

/** Keeps a receipt beside its session, for as long as that lives; if it is gone by now, nothing is kept. */
export async function keepReceipt(store: Store, key: Key, receipt: Receipt): Promise<void> {
  const home = receiptsKey(key)
  try {
    const head = await store.head(home, 0)
    const change: Change = {
      key: home,
      at: receipt.at,
      epoch: head.epoch,
      append: [saidOf(receipt)],
      put: [],
      drop: [],
      expiresAt: never,
    }
    if (head.messages < mostLoose || !(await foldedWith(store, head, change))) await store.commit(change)
  } catch (error) {
    if (!(error instanceof MemoryError && error.code === 'erased')) throw error
  }
  // Whoever ended the session meanwhile may not have seen it.
  if ((await store.head(key, 0)).revision === 0) await store.erase(home)
}

/** The receipt of this id, or of the answer with this id of the model server's. */
export async function findReceipt(
  store: Store,
  key: Key,
  wanted: { readonly id: string } | { readonly response: string },
): Promise<Receipt | undefined> {
  const mark = 'id' in wanted ? markOf(wanted.id) : undefined
  for await (const [, at, form] of newestFirst(store, receiptsKey(key))) {
    const [its, , response] = form
    if ('response' in wanted ? response === wanted.response : its === mark) return restored(form, formatKey(key), at)
  }
  return undefined
}

/** True when a receipt belongs to a reply with `from <= sequence < before`. */
export async function hasReceiptBetween(store: Store, key: Key, from: number, before: number): Promise<boolean> {
  for await (const [, , form] of newestFirst(store, receiptsKey(key))) {
    const sequence = form[3]
    if (sequence !== null && sequence >= from && sequence < before) return true
  }
  return false
}

/** A page of receipts, the newest first. */
export async function listReceipts(
  store: Store,
  key: Key,
  limit: number,
  before = Number.MAX_SAFE_INTEGER,
): Promise<{ items: readonly Receipt[]; next: string | null }> {
  const items: Receipt[] = []
  for await (const [number, at, form] of newestFirst(store, receiptsKey(key), before)) {
    items.push(restored(form, formatKey(key), at))
    if (items.length === limit) return { items, next: String(number) }
  }
  return { items, next: null }
}

/** Writes a change, and packs those that stand by themselves with it; false if others have written meanwhile: then the next one does. */
async function foldedWith(store: Store, head: Head, change: Change): Promise<boolean> {
  const loose = await store.page(head.key, { limit: block })
  const blocks = blocksIn(head.derived)
  const before = joinedWith(blocks, loose.length)
  const gone = loose.map(({ id }) => id)
  for (const { id } of before) gone.push(id)
  for (const { id, last } of blocks) if (last <= head.last + 1 - most) gone.push(id)
  try {
    await store.commit({ ...change, base: head.revision, put: [blockOf(before, loose, change.at)], drop: gone })
    return true
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'conflict') return false
    throw error
  }
}

/** The newest blocks that make a full one with so many more; none before it is full, so that each receipt is packed twice and no more. */
function joinedWith(blocks: readonly Block[], many: number): readonly Block[] {
  let [count, sum] = [0, many]
  for (const { first, last } of blocks) {
    if (sum + last - first + 1 > block) break
    sum += last - first + 1
    count++
  }
  return sum + mostLoose > block ? blocks.slice(0, count) : []
}

/** Those that stand by themselves, and what was packed before, in one block; a small one may soon be packed with others, and is left as it is. */
function blockOf(before: readonly Block[], loose: readonly Message[], at: Millis): About {
  const rows = loose.map(rowOf)
  for (const { text } of before)
    rows.unshift(...keptIn(text).map(([number, at, form]): Row => [number, at, parted(form)]))
  const text = textOf(rows)
  return {
    kind: 'about',
    id: `r${rows[0]?.[0]}-${rows.at(-1)?.[0]}`,
    at,
    metadata: before.length === 0 ? text : packed(text),
    sources: [],
  }
}

/** A receipt that is packed with others. */
type Row = readonly [number: number, at: Millis, form: Parted]
type Rows = {
  readonly shapes: readonly Shape[]
  readonly kept: readonly (readonly [number: number, at: Millis, shape: number, own: Own])[]
}

/** The JSON of receipts, in which each shape stands once. */
function textOf(rows: readonly Row[]): string {
  const shapes: string[] = []
  const kept = rows.map(([number, at, { shape, own }]) => {
    const known = shapes.indexOf(shape)
    return `[${number},${at},${known < 0 ? shapes.push(shape) - 1 : known},${own}]`
  })
  return `{"shapes":[${shapes.join(',')}],"kept":[${kept.join(',')}]}`
}

/** What was packed together. Of old, each receipt had its own shape. */
function keptIn(text: string): readonly Kept[] {
  const rows = JSON.parse(unpacked(text)) as readonly Kept[] | Rows
  if (!('shapes' in rows)) return rows
  return rows.kept.map(([number, at, shape, own]): Kept => [number, at, joined(rows.shapes[shape] as Shape, own)])
}

/** A message without a word is never found, embedded or shown, whatever else stands in it. */
function saidOf(receipt: Receipt): Said {
  const { shape, own } = parted(compacted(receipt))
  const calls = [{ id: '', name: shape, arguments: own }]
  return { at: receipt.at, role: 'assistant', content: '', tokens: 0, lineTokens: 0, tokenizer: '', weight: 0, calls }
}

/** A receipt that stands by itself. What is none is never packed with others: nobody could read those any more. */
function rowOf({ id, sequence, at, calls }: Message): Row {
  const { name: shape = '', arguments: own = '' } = calls?.[0] ?? {}
  if (isList(own) && isList(shape)) return [sequence, at, { shape, own }]
  // Of old, it was all in one.
  if (isList(own) && shape === '') return [sequence, at, parted(JSON.parse(own) as Compact)]
  throw new MemoryError(
    'corrupt',
    `What is kept as receipt ${id} of a session is damaged. threadkeep doctor tells what else is.`,
  )
}

const isList = (text: string): boolean => text[0] === '[' && text[text.length - 1] === ']'

function kept(message: Message): Kept {
  const [number, at, { shape, own }] = rowOf(message)
  return [number, at, joined(JSON.parse(shape) as Shape, JSON.parse(own) as Own)]
}

const packed = (text: string): string =>
  zstd === undefined ? text : Buffer.from(zstd.pack(Buffer.from(text))).toString('base64')

/** The JSON of what was packed together. */
const unpacked = (text: string): string =>
  /^[[{]/.test(text) || zstd === undefined
    ? text
    : Buffer.from(zstd.unpack(Buffer.from(text, 'base64'))).toString('utf8')

type Block = { readonly id: string; readonly first: number; readonly last: number; readonly text: string }

/** What was packed together, the newest first. */
function blocksIn(derived: readonly Derived[]): readonly Block[] {
  const blocks = derived.flatMap((entry): Block[] => {
    const [, first, last] = /^r(\d+)-(\d+)$/.exec(entry.id) ?? []
    if (entry.kind !== 'about' || typeof entry.metadata !== 'string' || first === undefined) return []
    return [{ id: entry.id, first: Number(first), last: Number(last), text: entry.metadata }]
  })
  return blocks.sort((left, right) => right.first - left.first)
}

async function* newestFirst(store: Store, home: Key, from = Number.MAX_SAFE_INTEGER): AsyncIterable<Kept> {
  let before = from
  for (;;) {
    const page = await store.page(home, { before, limit: block, newest: true })
    for (const message of page.toReversed()) yield kept(message)
    before = page[0]?.sequence ?? before
    if (page.length < block) break
  }
  // Read last: what is packed together meanwhile is here then, and what was told already is not told again.
  for (const { first, text } of blocksIn((await store.head(home, 0)).derived)) {
    if (first >= before) continue
    for (const receipt of keptIn(text).toReversed()) if (receipt[0] < before) yield receipt
  }
}
