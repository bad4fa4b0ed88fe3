import { setImmediate } from 'node:timers/promises'
import type { Fact, Message } from '../../../src/domain/entry.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { noExpiry, type SessionChange } from '../../../src/domain/session.ts'
import { otherSession, key as session } from '../../../src/stores/conformance/fixtures.ts'
import { type Keyring, parseKeyring } from '../../../src/stores/encrypted.ts'

/** Three master keys, and their ids. */
export const hex = { old: `${'a3'.repeat(31)}01`, new: `${'b4'.repeat(31)}02`, foreign: `${'c5'.repeat(31)}03` }
export const keyIds = { old: '04bd7b688e6ae7b7', new: 'a978901406915502', foreign: '02f8b04e0abce0bb' }

/** Creates a keyring; the first key is the current one. */
export const testKeyring = (...names: readonly (keyof typeof hex)[]): Keyring =>
  parseKeyring(names.map((name) => hex[name]).join(' '), 'the test')

/** The sessions `acme:ann` and `acme:bob`. */
export const annKey = session
export const bobKey = otherSession

export const factWithSpan = (id: string, value: string): Fact => ({
  kind: 'fact',
  id,
  at: 1_000,
  field: 'important_facts',
  key: 'animal',
  value,
  importance: 5,
  sources: [{ message: 'm1', span: [2, 9] }],
})

let changeCount = 0
export const nextChange = (overrides: Partial<SessionChange> = {}): SessionChange => ({
  id: `change ${++changeCount}`,
  key: annKey,
  at: 1_000,
  epoch: 0,
  append: [],
  put: [],
  drop: [],
  expiresAt: noExpiry,
  ...overrides,
})

export const contentsOf = (messages: readonly Message[]): readonly string[] => messages.map(({ content }) => content)

/** Wraps a store as if it were remote: every call is asynchronous and passes only JSON. */
export function remoteStore(store: Store & SearchIndex): Store & SearchIndex {
  const callRemotely = async <T>(call: () => Promise<T>): Promise<T> => {
    await setImmediate()
    const response = await call()
    await setImmediate()
    return response === undefined ? response : JSON.parse(JSON.stringify(response))
  }
  return {
    durability: store.durability,
    capabilities: store.capabilities,
    readHead: (key, recent) => callRemotely(() => store.readHead(key, recent)),
    readMessages: (key, range) => callRemotely(() => store.readMessages(key, range)),
    findMessages: (key, externalIds) => callRemotely(() => store.findMessages(key, externalIds)),
    commit: (change) => callRemotely(() => store.commit(JSON.parse(JSON.stringify(change)))),
    list: (filter) => callRemotely(() => store.list(filter)),
    erase: (key, only) => callRemotely(() => store.erase(key, only)),
    appendRecord: (key, record, keep) => callRemotely(() => store.appendRecord(key, record, keep)),
    records: (key, range) => callRemotely(() => store.records(key, range)),
    table: {
      readRows: async (scope, keys) => structuredClone(await store.table.readRows(scope, keys)),
      writeRows: (scope, at, writes) => store.table.writeRows(scope, at, structuredClone(writes)),
      listRows: async (scope, range) => structuredClone(await store.table.listRows(scope, range)),
      listScopes: (after, limit) => callRemotely(() => store.table.listScopes(after, limit)),
      eraseRows: (scope) => store.table.eraseRows(scope),
    },
    search: (where, query) => callRemotely(() => store.search(where, query)),
    changesSince: (where, since) => callRemotely(() => store.changesSince(where, since)),
    listUnembedded: (model, after, limit) => callRemotely(() => store.listUnembedded(model, after, limit)),
    storeVectors: (model, vectors) => callRemotely(() => store.storeVectors(model, vectors)),
    readVectors: async (key, ids) => structuredClone(await store.readVectors(key, ids)),
    countVectors: (model) => callRemotely(() => store.countVectors(model)),
    close: () => store.close(),
  }
}

/** Serializes everything that can be read from a store. */
export async function dumpStore(store: Store & SearchIndex): Promise<string> {
  const sessions = await store.list({ limit: 1_000 })
  const read = sessions.map(async ({ key }) => [
    await store.readHead(key, 1_000),
    await store.readMessages(key, { limit: 1_000 }),
  ])
  return JSON.stringify([sessions, await Promise.all(read), await store.listUnembedded('m', '', 1_000)])
}
