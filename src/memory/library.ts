import type { Derived, Tokens } from '../domain/entry.ts'
import { filesKey, type Key } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Gathered } from '../recall/gather.ts'
import { isSeen, mostPassages, passagesOf, withPassages } from '../recall/shared.ts'

type Means = { readonly profile: Profile; readonly store: Store & Index }

/** Finds what the files of a scope say on a question, and has it shown. */
export type Library = {
  passages(means: Means, key: Key, text: string): Promise<readonly Derived[]>
  shown(gathered: Gathered, passages: readonly Derived[], budget: Tokens): Gathered
}

/** The platform's; where there are no files to be read, there is none. */
export const library: Library = {
  async passages({ profile, store }, { scope }, text) {
    const files = filesKey(scope)
    if (!isSeen(profile, 'files') || (await store.head(files, 0)).messages === 0) return []
    return passagesOf(await store.search(files, { text, kinds: ['message'], limit: mostPassages }))
  },
  shown: withPassages,
}
