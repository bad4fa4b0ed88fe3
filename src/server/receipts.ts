import { type Message, type Millis, messageId, type Said, type Tokens } from '../domain/entry.ts'
import { formatKey, type Key, parseKey, receiptsKey } from '../domain/key.ts'
import type { Ledger } from '../domain/ledger.ts'
import type { Store } from '../domain/ports.ts'
import { parseJson } from '../models/json.ts'

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

/** So many receipts of a session are kept; when there are so many more, the oldest of them go. */
const most = 1_000
const batch = 100

/** A new id; the key in it tells where to look. */
export const receiptId = (key: Key): string => `rc_${Buffer.from(formatKey(key)).toString('base64url')}_${crypto.randomUUID().replaceAll('-', '').slice(0, 16)}`

/** The session a receipt belongs to; undefined for what is no id of a receipt. */
export function keyOfReceipt(id: string): Key | undefined {
  const name = /^rc_([\w-]{1,300})_[0-9a-f]{16}$/.exec(id)?.[1]
  try {
    return name === undefined ? undefined : parseKey(Buffer.from(name, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

/** A message without a word is never found, embedded or shown, whatever else stands in it. */
const blank = { role: 'assistant', content: '', tokens: 0, lineTokens: 0, tokenizer: '', weight: 0 } as const

/** Keeps a receipt beside its session, for as long as that lives. */
export async function keepReceipt(store: Store, key: Key, receipt: Receipt, expiresAt: Millis): Promise<void> {
  const home = receiptsKey(key)
  const { epoch, last } = await store.head(home, 0)
  const oldest = last - most - batch
  const drop = last > most && last % batch === 0 ? Array.from({ length: batch }, (_, at) => messageId(oldest + at + 1)).filter((id) => id > 'm0') : []
  const said: Said = { ...blank, at: receipt.at, calls: [{ id: receipt.id, name: receipt.response ?? '', arguments: JSON.stringify(receipt) }] }
  await store.commit({ key: home, at: receipt.at, epoch, append: [said], put: [], drop, expiresAt })
}

/** The receipt of this id, or of the answer with this id of the model server's. */
export async function findReceipt(store: Store, key: Key, wanted: { readonly id: string } | { readonly response: string }): Promise<Receipt | undefined> {
  for await (const { calls: [call] = [] } of newestFirst(store, receiptsKey(key))) {
    if (call !== undefined && ('id' in wanted ? call.id === wanted.id : call.name === wanted.response)) return parseJson(call.arguments) as Receipt | undefined
  }
  return undefined
}

/** A page of receipts, the newest first. */
export async function listReceipts(
  store: Store,
  key: Key,
  limit: number,
  before = Number.MAX_SAFE_INTEGER,
): Promise<{ items: readonly Receipt[]; next: string | null }> {
  const page = await store.page(receiptsKey(key), { before, limit, newest: true })
  const items = page.toReversed().flatMap(({ calls }) => (parseJson(calls?.[0]?.arguments ?? '') as Receipt | undefined) ?? [])
  return { items, next: page.length < limit ? null : String(page[0]?.sequence) }
}

async function* newestFirst(store: Store, key: Key): AsyncIterable<Message> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await store.page(key, { before, limit: 50, newest: true })
    yield* page.toReversed()
    const first = page[0]
    if (first === undefined) return
    before = first.sequence
  }
}
