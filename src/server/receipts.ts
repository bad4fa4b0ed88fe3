import { randomBytes } from 'node:crypto'
import type { Millis, Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseKey } from '../domain/key.ts'
import type { DegradationNotice, Ledger } from '../domain/ledger.ts'
import type { ModelUsage, Store, StoredRecord } from '../domain/ports.ts'

/** Explains one reply: which entries its model was shown and why, and their cost. Ids and numbers, never text. */
export type Receipt = {
  readonly id: string
  readonly key: string
  readonly at: Millis
  /** Id of the request, and the id that the upstream gave its response. */
  readonly request: string
  readonly response: string | null
  /** Sequence number of the reply in the transcript. */
  readonly sequence: number | null
  readonly protocol: string
  readonly model: string
  readonly upstream: string
  /** Relation of the client's history to the stored one: continued, edited, regenerated and so on. */
  readonly relation: string
  /** Kind of the client: `full` if it sent its conversation itself, `thin` if memory supplied the history. */
  readonly history: 'full' | 'thin'
  /** Digest of the client's user agent. */
  readonly client: string
  /** True if the client is known to resend its conversation, false if it is known not to. */
  readonly resends?: boolean
  /** Digest of the instructions and the number of tools, for a reply with tool calls. */
  readonly setup?: string
  /** HTTP status with which the upstream refused the turn, which is then not part of the session. */
  readonly refused?: number
  /** True if the upstream stores the response, so that it can be continued by its id there. */
  readonly isStoredUpstream?: true
  /** True if the receipt came with a bundle: its ids say nothing about what the upstream stores for the session. */
  readonly isImported?: true
  /** Sequence number of the question of a response that runs in the background; its reply comes on retrieval. */
  readonly question?: number
  readonly tokens: {
    readonly shown: Tokens
    /** Tokens of the client's whole conversation, as it would be sent without memory; minus `shown`, those saved. */
    readonly history: Tokens
    readonly saved: Tokens
    /** Tokens at the beginning that the previous prompt of the session began with too, and their share of `shown`. */
    readonly cacheable: Tokens
    readonly cacheableShare: number
    /** Counts reported by the upstream. */
    readonly prompt: Tokens | null
    readonly completion: Tokens | null
    readonly cached: Tokens | null
  }
  readonly cost: unknown
  readonly degraded: readonly DegradationNotice[]
  readonly ledger: Ledger | null
}

/** Accounts for one call of the upkeep model. */
export type UpkeepReceipt = Pick<Receipt, 'id' | 'key' | 'at' | 'model' | 'upstream' | 'cost'> & {
  readonly purpose: 'upkeep'
  readonly tokens: ModelUsage
}

/** A receipt of either kind. */
export type StoredReceipt = Receipt | UpkeepReceipt

const isTurnReceipt = (receipt: StoredReceipt): receipt is Receipt => !('purpose' in receipt)

/** Receipts kept per session. */
const maxReceipts = 1_000
/** Receipts read at a time. */
const pageSize = 64
const suffixLength = 16

/** Creates a receipt id, which contains the session's key. */
export const newReceiptId = (key: Key): string => formatReceiptId(key, takeRandomSuffix())

/** URL-safe without escaping: keys consist of characters whose Base64 has no `+` or `/`. */
const formatReceiptId = (key: Key, suffix: string): string => {
  const name = formatKey(key)
  return `rc_${btoa(name).slice(0, Math.ceil((name.length * 4) / 3))}_${suffix}`
}

/** Random hex digits for ids, drawn in bulk because each draw has a fixed cost. */
let randomDigits = ''

function takeRandomSuffix(): string {
  if (randomDigits === '') randomDigits = randomBytes(2_048).toString('hex')
  const suffix = randomDigits.slice(0, suffixLength)
  randomDigits = randomDigits.slice(suffixLength)
  return suffix
}

/** The session that a receipt id names; undefined when it is not a receipt id. */
export function keyOfReceipt(id: string): Key | undefined {
  const name = /^rc_([\w-]{1,300})_[0-9a-f]{16}$/.exec(id)?.[1]
  try {
    return name === undefined ? undefined : parseKey(Buffer.from(name, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

/** Stores a receipt beside its session; does nothing if the session was erased meanwhile. */
export async function storeReceipt(store: Store, key: Key, receipt: StoredReceipt): Promise<void> {
  const { id, key: _key, at, ...body } = receipt
  await store.appendRecord(key, { id: id.slice(-suffixLength), at, body: JSON.stringify(body) }, maxReceipts)
}

/** Finds a receipt by its id. */
export async function findReceiptById(store: Store, key: Key, id: string): Promise<StoredReceipt | undefined> {
  for await (const receipt of newestFirst(store, key)) if (receipt.id === id) return receipt
  return undefined
}

/** Finds the receipt of a turn by the upstream's response id, or by the sequence number of the reply. */
export async function findReceipt(
  store: Store,
  key: Key,
  wanted: { readonly response: string } | { readonly sequence: number },
): Promise<Receipt | undefined> {
  for await (const receipt of newestFirst(store, key)) {
    if (!isTurnReceipt(receipt)) continue
    if ('sequence' in wanted && receipt.sequence === wanted.sequence) return receipt
    if ('response' in wanted && receipt.response === wanted.response) return receipt
  }
  return undefined
}

/** Sequence numbers of the replies that have a receipt of this server. */
export async function readReplySequences(store: Store, key: Key): Promise<ReadonlySet<number>> {
  const sequences = new Set<number>()
  for await (const receipt of newestFirst(store, key))
    if (isTurnReceipt(receipt) && receipt.sequence !== null && receipt.isImported !== true)
      sequences.add(receipt.sequence)
  return sequences
}

/** True when a receipt belongs to a reply with `from <= sequence < before`. */
export async function hasReceiptBetween(store: Store, key: Key, from: number, before: number): Promise<boolean> {
  for await (const receipt of newestFirst(store, key)) {
    const sequence = isTurnReceipt(receipt) ? receipt.sequence : null
    if (sequence !== null && sequence >= from && sequence < before) return true
  }
  return false
}

/** Receipts that tell whether a client resends its conversation. */
const maxHabitReceipts = 64

/**
 * True when a recent receipt says that the client has resent its conversation in this session. The newest one mostly
 * tells, because each turn of a known client repeats what is known of it.
 */
export async function hasResentHistory(store: Store, key: Key, client: string): Promise<boolean> {
  for (const limit of [2, maxHabitReceipts]) {
    const { items, next } = await listReceipts(store, key, limit)
    const resends = items.find(
      (receipt): receipt is Receipt =>
        isTurnReceipt(receipt) && receipt.client === client && receipt.resends !== undefined,
    )?.resends
    if (resends !== undefined || next === null) return resends === true
  }
  return false
}

/** True when the upstream refused the newest turn of a session. */
export async function wasRefused(store: Store, key: Key): Promise<boolean> {
  for await (const receipt of newestFirst(store, key)) if (isTurnReceipt(receipt)) return receipt.refused !== undefined
  return false
}

/** A page of receipts, newest first. `next` is the `before` of the next page. */
export async function listReceipts(
  store: Store,
  key: Key,
  limit: number,
  before = Number.MAX_SAFE_INTEGER,
): Promise<{ readonly items: readonly StoredReceipt[]; readonly next: string | null }> {
  const records = await store.records(key, { before, limit })
  const last = records.at(-1)
  return {
    items: records.map((record) => toReceipt(key, record)),
    next: last === undefined || records.length < limit ? null : String(last.number),
  }
}

async function* newestFirst(store: Store, key: Key): AsyncIterable<StoredReceipt> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const records = await store.records(key, { before, limit: pageSize })
    for (const record of records) yield toReceipt(key, record)
    const last = records.at(-1)
    if (last === undefined) return
    before = last.number
  }
}

/** An imported receipt gives no right to what an upstream stores: anyone can write one. */
const removeUpstreamRights = ({ isStoredUpstream: _, question: __, ...receipt }: Receipt): Receipt => receipt

function toReceipt(key: Key, { id, at, body }: StoredRecord): StoredReceipt {
  try {
    const fields = JSON.parse(body) as Omit<Receipt, 'id' | 'key' | 'at'> | Omit<UpkeepReceipt, 'id' | 'key' | 'at'>
    const place = { id: formatReceiptId(key, id), key: formatKey(key), at }
    // First for the order of fields, and again because an imported body may have fields of these names.
    const receipt = { ...place, ...fields, ...place }
    return isTurnReceipt(receipt) && receipt.isImported === true ? removeUpstreamRights(receipt) : receipt
  } catch (cause) {
    throw new MemoryError(
      'corrupt',
      `Receipt ${id} of ${formatKey(key)} is damaged. Run threadkeep doctor to find other damage.`,
      { cause },
    )
  }
}
