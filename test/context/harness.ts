import type { DerivedEntry, Message } from '../../src/domain/entry.ts'
import { parseKey, scopeKey } from '../../src/domain/key.ts'
import type { Context } from '../../src/domain/ledger.ts'
import type { SearchIndex, Store, Tokenizer } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type ContextOptions, fileSearch } from '../../src/memory/contextBuilder.ts'
import type { BundleIo } from '../../src/memory/memoryDeps.ts'
import { replayer } from '../../src/memory/replay.ts'
import { Memory } from '../../src/memory.ts'
import { profiles } from '../../src/profiles/index.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { startTime, type TestCase } from './cases.ts'

export const key = parseKey('acme:ann')

/** A test case loaded into a store. */
export type Fixture = {
  readonly memory: Memory
  readonly store: Store & SearchIndex
  readonly options: ContextOptions & { readonly budget: number }
  readonly transcript: readonly Message[]
  /** Derived entries that the receipt must list, in store order. */
  readonly derived: readonly DerivedEntry[]
  /** Newest turn of the user that is not blank. */
  readonly newestTurn: Message | undefined
}

const unsupported = (): never => {
  throw new Error('export and import are not available in this harness')
}
const noPortable: BundleIo = { exportBundle: () => unsupported(), importBundle: () => unsupported() }

/** Creates a memory with a fixed clock on a given store. */
export function createMemory(store: Store & SearchIndex, profile: Profile, tokenizer: Tokenizer): Memory {
  return new Memory({
    profile,
    sessions: store,
    store,
    tokenizer,
    clock: () => startTime,
    embedder: undefined,
    createUpkeep: undefined,
    rederive: undefined,
    masker: undefined,
    bundles: noPortable,
    replayer,
    fileSearch,
  })
}

/** Loads a test case into a new store. */
export async function createFixture(
  testCase: TestCase,
  tokenizer: Tokenizer,
  profile: Profile = profiles[testCase.profile],
): Promise<Fixture> {
  const store = ramStore()
  const memory = createMemory(store, profile, tokenizer)
  for (let at = 0; at < testCase.messages.length; at += testCase.batchSize)
    await memory.append(key, testCase.messages.slice(at, at + testCase.batchSize))
  await putDerived(store, key, testCase.derived)
  await putDerived(store, scopeKey(key), testCase.knowledge)
  const before = await memory.transcript(key)
  for (const fromEnd of new Set(testCase.forgotten)) {
    const message = before.at(-1 - fromEnd)
    if (message !== undefined) await memory.forget({ key: 'acme:ann', messageId: message.id })
  }
  const transcript = await memory.transcript(key)
  const newestTurn = transcript.findLast((message) => message.role === 'user' && message.content.trim() !== '')
  const query = testCase.query === 'newest' ? newestTurn?.content : testCase.query?.text
  const options = {
    budget: testCase.budget,
    ...(query === undefined ? {} : { query }),
    ...(testCase.framing === undefined ? {} : { framing: testCase.framing }),
  }
  // Read from the store, because forgetting a message also deletes the entries derived from it.
  const shared = profile.scopes.includes('scope') ? (await store.readHead(scopeKey(key), 0)).derived : []
  const derived = [...(await store.readHead(key, 0)).derived, ...shared]
  return { memory, store, options, transcript, derived, newestTurn }
}

export async function putDerived(store: Store, target: typeof key, entries: readonly DerivedEntry[]): Promise<void> {
  if (entries.length === 0) return
  const { epoch } = await store.readHead(target, 0)
  await store.commit({
    id: 'put',
    key: target,
    at: startTime,
    epoch,
    append: [],
    put: entries,
    drop: [],
    expiresAt: noExpiry,
  })
}

/** Serialises everything a store has of the session and its scope. */
export async function dumpStore(store: Store): Promise<string> {
  const sessions = [key, scopeKey(key)].map(async (target) => [
    await store.readHead(target, 1_000),
    await store.readMessages(target, { limit: 1_000 }),
  ])
  return JSON.stringify(await Promise.all(sessions))
}

export const serializeContext = ({ messages, text, ledger }: Context): string =>
  JSON.stringify({ messages, text, ledger })
