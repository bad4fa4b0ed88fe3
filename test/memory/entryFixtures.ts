import type { DerivedEntry } from '../../src/domain/entry.ts'
import type { Key } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'

/** Stores user messages with these contents. */
export async function storeMessages(store: Store, key: Key, contents: readonly string[]): Promise<void> {
  const { epoch } = await store.readHead(key, 0)
  const size = { tokens: 1, lineTokens: 1, tokenizer: 'none', weight: 1 }
  const append = contents.map((content) => ({ at: 1, role: 'user' as const, content, ...size }))
  await store.commit({ key, at: 1, epoch, append, put: [], drop: [], expiresAt: noExpiry })
}

/** Stores derived entries. */
export async function putEntries(store: Store, key: Key, put: readonly DerivedEntry[]): Promise<void> {
  const { epoch } = await store.readHead(key, 0)
  await store.commit({ key, at: 1, epoch, append: [], put, drop: [], expiresAt: noExpiry })
}

/** Lists the ids of the messages of a session. */
export const listIds = async (store: Store, key: Key): Promise<readonly string[]> =>
  (await store.readMessages(key, { after: 0, limit: 10_000 })).map(({ id }) => id)
