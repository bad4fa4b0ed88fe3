import { type DerivedEntry, type Message, parseMessageId } from '../../domain/entry.ts'
import { formatKey, type Key, type Scope } from '../../domain/key.ts'
import type { EraseFilter, SearchIndex, Store, TableKey } from '../../domain/ports.ts'
import { createEmptyHead, type SessionHead } from '../../domain/session.ts'

/** Erasure of a session: of everything, or of these entries. */
export type Erasure = {
  readonly key: Key
  isWhole: boolean
  readonly messages: Map<string, Message>
  readonly derived: Map<string, DerivedEntry>
}

export type DryRun = { readonly store: Store & SearchIndex; readonly erasures: ReadonlyMap<string, Erasure> }

/**
 * Wraps a store for a rehearsal of `forget`: records what would be erased and changes nothing. Recorded entries are
 * hidden from reads, as if they were erased. Files and graphs of the store are out of reach.
 */
export function createDryRun(store: Store & SearchIndex): DryRun {
  const erasures = new Map<string, Erasure>()
  const rehearsal: Store & SearchIndex = {
    capabilities: {},
    durability: store.durability,
    async readHead(key, recent) {
      return withoutErased(await store.readHead(key, recent), erasures.get(formatKey(key)))
    },
    async readMessages(key, range) {
      const erasure = erasures.get(formatKey(key))
      if (erasure?.isWhole === true) return []
      return readRemaining(store, key, range, erasure)
    },
    findMessages: (key, externalIds) => store.findMessages(key, externalIds),
    commit: () => Promise.resolve([]),
    list: (filter) => store.list(filter),
    async erase(key, only) {
      const erasure = erasures.get(formatKey(key)) ?? createErasure(key)
      const found = await findErased(store, key, only, erasure)
      if (found.length > 0) erasures.set(formatKey(key), erasure)
      return found
    },
    appendRecord: () => Promise.resolve(false),
    records: (key, range) => store.records(key, range),
    table: {
      readRows: (scope, keys) => store.table.readRows(scope, keys),
      writeRows: () => Promise.resolve(),
      listRows: (scope, range) => store.table.listRows(scope, range),
      listScopes: (after, limit) => store.table.listScopes(after, limit),
      eraseRows: (scope) => countRows(store, scope),
    },
    search: (where, query) => store.search(where, query),
    changesSince: (where, since) => store.changesSince(where, since),
    listUnembedded: (model, after, limit) => store.listUnembedded(model, after, limit),
    storeVectors: () => Promise.resolve(0),
    readVectors: (key, ids) => store.readVectors(key, ids),
    countVectors: (model) => store.countVectors(model),
    // The caller closes the store itself.
    close: () => Promise.resolve(),
  }
  return { store: rehearsal, erasures }
}

/** Rows read at a time; each may have 16 MB. */
const rowPageSize = 20

const createErasure = (key: Key): Erasure => ({ key, isWhole: false, messages: new Map(), derived: new Map() })

/** Records the entries that a call of `erase` would erase, and returns their ids; whole sessions name no messages. */
async function findErased(store: Store, key: Key, only: EraseFilter | undefined, erasure: Erasure): Promise<string[]> {
  if (only !== undefined && !('entries' in only)) return []
  const { revision, derived } = await store.readHead(key, 0)
  if (revision === 0 || erasure.isWhole) return []
  if (only === undefined) {
    erasure.isWhole = true
    for (const entry of derived) erasure.derived.set(entry.id, entry)
    return [formatKey(key)]
  }
  const found: string[] = []
  for (const id of only.entries) {
    const entry = derived.find((known) => known.id === id)
    const message = entry === undefined ? await findMessage(store, key, id) : undefined
    if (entry !== undefined) erasure.derived.set(id, entry)
    if (message !== undefined) erasure.messages.set(id, message)
    if (entry !== undefined || message !== undefined) found.push(id)
  }
  return found
}

async function countRows({ table }: Store, scope: Scope): Promise<number> {
  let count = 0
  for (let after: TableKey | undefined; ; ) {
    const rows = await table.listRows(scope, { prefix: [], limit: rowPageSize, ...(after && { after }) })
    count += rows.length
    if (rows.length < rowPageSize) return count
    after = rows.at(-1)
  }
}

async function findMessage(store: Store, key: Key, id: string): Promise<Message | undefined> {
  const sequence = parseMessageId(id)
  if (sequence === undefined) return undefined
  return (await store.readMessages(key, { after: sequence - 1, before: sequence + 1, limit: 1 }))[0]
}

function withoutErased(head: SessionHead, erasure: Erasure | undefined): SessionHead {
  if (erasure === undefined) return head
  if (erasure.isWhole) return createEmptyHead(head.key, head.epoch + 1)
  return {
    ...head,
    recent: head.recent.filter(({ id }) => !erasure.messages.has(id)),
    derived: head.derived.filter(({ id }) => !erasure.derived.has(id)),
  }
}

/** Reads on until a page has a message that remains: an empty page would mean the end of the session. */
async function readRemaining(
  store: Store,
  key: Key,
  range: Parameters<Store['readMessages']>[1],
  erasure: Erasure | undefined,
): Promise<readonly Message[]> {
  for (let { after = 0 } = range; ; ) {
    const page = await store.readMessages(key, { ...range, after })
    const remaining = erasure === undefined ? page : page.filter(({ id }) => !erasure.messages.has(id))
    if (remaining.length > 0 || page.length === 0 || range.newest === true) return remaining
    after = page.at(-1)?.sequence ?? after
  }
}
