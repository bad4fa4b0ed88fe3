import type { Derived, Message } from '../../src/domain/entry.ts'
import { parseKey, scopeKey } from '../../src/domain/key.ts'
import type { Context } from '../../src/domain/ledger.ts'
import type { Index, Store, Tokenizer } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { never } from '../../src/domain/session.ts'
import type { ContextOptions } from '../../src/memory/contextBuilder.ts'
import { library } from '../../src/memory/fileSearch.ts'
import type { Portable } from '../../src/memory/memoryDeps.ts'
import { replaying } from '../../src/memory/replay.ts'
import { Memory } from '../../src/memory.ts'
import { profiles } from '../../src/profiles/index.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { type Case, start } from './histories.ts'

export const key = parseKey('acme:ann')

/** A case as it stands in a store, ready to be asked. */
export type Stage = {
  readonly memory: Memory
  readonly store: Store & Index
  readonly options: ContextOptions & { readonly budget: number }
  readonly transcript: readonly Message[]
  /** What the receipt must account for besides messages, in the order of the store. */
  readonly derived: readonly Derived[]
  /** The newest turn of the user that can be shown. */
  readonly asked: Message | undefined
}

const nowhere: Portable = { exportBundle: () => unused(), importBundle: () => unused() }
const unused = (): never => {
  throw new Error('nothing is exported here')
}

/** A memory on a store of its own, at a time that stands still. */
export function memoryOn(store: Store & Index, profile: Profile, tokenizer: Tokenizer): Memory {
  return new Memory({
    profile,
    sessions: store,
    store,
    tokenizer,
    clock: () => start,
    embedder: undefined,
    upkeep: undefined,
    rederive: undefined,
    barrier: undefined,
    portable: nowhere,
    replaying,
    library,
  })
}

/** Plays a case into a fresh store. */
export async function stage(
  scene: Case,
  tokenizer: Tokenizer,
  profile: Profile = profiles[scene.profile],
): Promise<Stage> {
  const store = ramStore()
  const memory = memoryOn(store, profile, tokenizer)
  for (let at = 0; at < scene.messages.length; at += scene.batch)
    await memory.append(key, scene.messages.slice(at, at + scene.batch))
  await put(store, key, scene.derived)
  await put(store, scopeKey(key), scene.knowledge)
  const before = await memory.transcript(key)
  for (const place of new Set(scene.forgotten)) {
    const message = before.at(-1 - place)
    if (message !== undefined) await memory.forget({ key: 'acme:ann', messageId: message.id })
  }
  const transcript = await memory.transcript(key)
  const asked = transcript.findLast((message) => message.role === 'user' && message.content.trim() !== '')
  const query = scene.query === 'newest' ? asked?.content : scene.query?.text
  const options = {
    budget: scene.budget,
    ...(query === undefined ? {} : { query }),
    ...(scene.framing === undefined ? {} : { framing: scene.framing }),
  }
  // what was derived from a forgotten message has gone with it
  const known = profile.sees.includes('scope') ? (await store.head(scopeKey(key), 0)).derived : []
  const derived = [...(await store.head(key, 0)).derived, ...known]
  return { memory, store, options, transcript, derived, asked }
}

async function put(store: Store, at: typeof key, entries: readonly Derived[]): Promise<void> {
  if (entries.length === 0) return
  const { epoch } = await store.head(at, 0)
  await store.commit({ id: 'put', key: at, at: start, epoch, append: [], put: entries, drop: [], expiresAt: never })
}

/** Everything a store holds of the session and its scope. */
export async function heldBy(store: Store): Promise<string> {
  const held = [key, scopeKey(key)].map(async (one) => [
    await store.head(one, 1_000),
    await store.page(one, { limit: 1_000 }),
  ])
  return JSON.stringify(await Promise.all(held))
}

export const bytesOf = ({ messages, text, ledger }: Context): string => JSON.stringify({ messages, text, ledger })
