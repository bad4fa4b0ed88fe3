import type { Derived, Tokens } from '../domain/entry.ts'
import { filesKey, type Key } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Gathered } from '../recall/gather.ts'
import { isSeen, mostPassages, passagesOf, withPassages } from '../recall/shared.ts'

type Means = { readonly profile: Profile; readonly store: Store & Index }

/** Finds what the files of a scope say on a question, and has it shown. */
export type Library = {
  /** Nothing, where there are none to be seen. */
  passages(means: Means, key: Key, text: string): Promise<readonly Derived[]> | undefined
  shown(gathered: Gathered, passages: readonly Derived[], budget: Tokens): Gathered
}

const none: readonly Derived[] = []

/** The platform's; where there are no files to be read, there is none. */
export const library: Library = {
  passages({ profile, store }, { scope }, text) {
    if (!isSeen(profile, 'files')) return undefined
    const files = filesKey(scope)
    const search = () => store.search(files, { text, kinds: ['message'], limit: mostPassages })
    return store.head(files, 0).then(({ messages }) => (messages === 0 ? none : search().then(passagesOf)))
  },
  shown: withPassages,
}
