import type { Derived, Tokens } from '../domain/entry.ts'
import { filesKey, type Key } from '../domain/key.ts'
import type { Index } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'
import type { Gathered } from '../context/gather.ts'
import { isSeen, mostPassages, passagesOf, withPassages } from '../context/shared.ts'

/** Finds what the files of a scope say on a question, and has it shown. */
export type Library = {
  /** Where they are kept, if the profile sees them. */
  files(profile: Profile, key: Key): Key | undefined
  /** Nothing, where there are none to be seen. */
  passages(store: Index, files: Head | undefined, text: string): Promise<readonly Derived[]> | undefined
  shown(gathered: Gathered, passages: readonly Derived[], budget: Tokens): Gathered
}

/** The platform's; where there are no files to be read, there is none. */
export const library: Library = {
  files: (profile, { scope }) => (isSeen(profile, 'files') ? filesKey(scope) : undefined),
  passages: (store, files, text) =>
    files === undefined || files.messages === 0
      ? undefined
      : store.search(files.key, { text, kinds: ['message'], limit: mostPassages }).then(passagesOf),
  shown: withPassages,
}
