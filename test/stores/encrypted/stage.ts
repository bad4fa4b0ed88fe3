import { setImmediate } from 'node:timers/promises'
import type { Fact, Message } from '../../../src/domain/entry.ts'
import type { Index, Store } from '../../../src/domain/ports.ts'
import { type Change, never } from '../../../src/domain/session.ts'
import { key as ann } from '../../../src/stores/conformance/stage.ts'
import { type Keyring, parseKeyring } from '../../../src/stores/encrypted.ts'

/** Three keys by the names the tests call them, and the ids they have. */
export const hex = { old: `${'a3'.repeat(31)}01`, new: `${'b4'.repeat(31)}02`, foreign: `${'c5'.repeat(31)}03` }
export const ids = { old: '04bd7b688e6ae7b7', new: 'a978901406915502', foreign: '02f8b04e0abce0bb' }

/** A keyring of these keys, the first of them current. */
export const ring = (...names: readonly (keyof typeof hex)[]): Keyring =>
  parseKeyring(names.map((name) => hex[name]).join(' '), 'the test')

export { key as ann, other as bob, said } from '../../../src/stores/conformance/stage.ts'

export const fact = (id: string, value: string): Fact => ({
  kind: 'fact',
  id,
  at: 1_000,
  field: 'important_facts',
  key: 'animal',
  value,
  importance: 5,
  sources: [{ message: 'm1', span: [2, 9] }],
})

let changes = 0
export const change = (more: Partial<Change> = {}): Change => ({
  id: `change ${++changes}`,
  key: ann,
  at: 1_000,
  epoch: 0,
  append: [],
  put: [],
  drop: [],
  expiresAt: never,
  ...more,
})

export const contents = (messages: readonly Message[]): readonly string[] => messages.map(({ content }) => content)

/** The same store as if it were elsewhere: every answer takes a turn, and only plain data passes. */
export function distant(store: Store & Index): Store & Index {
  const carried = async <T>(call: () => Promise<T>): Promise<T> => {
    await setImmediate()
    const answer = await call()
    await setImmediate()
    return answer === undefined ? answer : JSON.parse(JSON.stringify(answer))
  }
  return {
    durability: store.durability,
    head: (key, recent) => carried(() => store.head(key, recent)),
    page: (key, range) => carried(() => store.page(key, range)),
    commit: (change) => carried(() => store.commit(JSON.parse(JSON.stringify(change)))),
    list: (filter) => carried(() => store.list(filter)),
    erase: (key, only) => carried(() => store.erase(key, only)),
    search: (where, query) => carried(() => store.search(where, query)),
    changes: (where, since) => carried(() => store.changes(where, since)),
    unembedded: (model, after, limit) => carried(() => store.unembedded(model, after, limit)),
    embed: (model, vectors) => carried(() => store.embed(model, vectors)),
    embedded: (model) => carried(() => store.embedded(model)),
    close: () => store.close(),
  }
}

/** Everything a store gives out, as one text. */
export async function dump(store: Store & Index): Promise<string> {
  const sessions = await store.list({ limit: 1_000 })
  const read = sessions.map(async ({ key }) => [await store.head(key, 1_000), await store.page(key, { limit: 1_000 })])
  return JSON.stringify([sessions, await Promise.all(read), await store.unembedded('m', '', 1_000)])
}
