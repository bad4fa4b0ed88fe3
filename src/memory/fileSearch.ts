import type { Gathered } from '../context/gatherCandidates.ts'
import { isSeen, mostPassages, passagesOf, withPassages } from '../context/gatherCandidates.ts'
import type { Derived, Tokens } from '../domain/entry.ts'
import { filesKey, type Key } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'

/** Searches the files of a scope for passages on a question. */
export type Library = {
  /** The session that holds the scope's files, when the profile reads them. */
  files(profile: Profile, key: Key): Key | undefined
  /** Passages on a question; empty when the scope has no files. */
  passages(store: Store & Index, files: Key, question: string): Promise<readonly Derived[]>
  /** Adds passages to the candidates of a context. */
  shown(gathered: Gathered, passages: readonly Derived[], budget: Tokens): Gathered
}

/** The file search of Node. Browsers have none. */
export const library: Library = {
  files: (profile, { scope }) => (isSeen(profile, 'files') ? filesKey(scope) : undefined),
  passages: async (store, files, text) => {
    // Most scopes have no files, and reading one message is cheaper than a search.
    if ((await store.page(files, { limit: 1 })).length === 0) return []
    return passagesOf(await store.search(files, { text, kinds: ['message'], limit: mostPassages }))
  },
  shown: withPassages,
}
