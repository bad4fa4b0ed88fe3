import type { ContextCandidates } from '../context/gatherCandidates.ts'
import { addPassages, isVisible, maxPassages, toPassages } from '../context/gatherCandidates.ts'
import type { DerivedEntry, Tokens } from '../domain/entry.ts'
import { filesKey, type Key } from '../domain/key.ts'
import type { SearchIndex, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'

/** Searches the files of a scope for passages on a question. */
export type FileSearch = {
  /** The session that holds the scope's files, when the profile reads them. */
  filesKeyFor(profile: Profile, key: Key): Key | undefined
  /** Passages on a question; empty when the scope has no files. */
  findPassages(store: Store & SearchIndex, files: Key, question: string): Promise<readonly DerivedEntry[]>
  /** Adds passages to the candidates of a context. */
  addPassages(gathered: ContextCandidates, passages: readonly DerivedEntry[], budget: Tokens): ContextCandidates
}

/** The file search of Node. Browsers have none. */
export const fileSearch: FileSearch = {
  filesKeyFor: (profile, { scope }) => (isVisible(profile, 'files') ? filesKey(scope) : undefined),
  findPassages: async (store, files, text) => {
    // Most scopes have no files, and reading one message is cheaper than a search.
    if ((await store.readMessages(files, { limit: 1 })).length === 0) return []
    return toPassages(await store.search(files, { text, kinds: ['message'], limit: maxPassages }))
  },
  addPassages,
}
