import type { Ask, Sent } from './dialect.ts'

/** What of a request is the conversation's, and so memory's alone. */
type Talk = Pick<Ask, 'said' | 'turn' | 'owed' | 'instructions' | 'hasTools' | 'files'>

/**
 * A request whose conversation is read, and refused if it cannot be, only when memory first looks at it: where memory
 * takes no part, all of it is the model server's business.
 */
export function askOf(envelope: Omit<Ask, keyof Talk>, read: () => Talk): Ask {
  let talk: Talk | undefined
  const known = (): Talk => {
    talk ??= read()
    return talk
  }
  return {
    ...envelope,
    get said() {
      return known().said
    },
    get turn() {
      return known().turn
    },
    get owed() {
      return known().owed
    },
    get instructions() {
      return known().instructions
    },
    get hasTools() {
      return known().hasTools
    },
    get files() {
      return known().files
    },
  }
}

/**
 * The place where the newest turn begins: with the last words of the user, or with the first of several messages in a row.
 * Those with which a client begins are no such row: where it leaves the replies to memory, each of them may have had one.
 * A client that leaves its history to memory may send results of tools alone: then all it sends belongs to the turn.
 */
export function startOfTurn(said: readonly Sent[]): number | undefined {
  const last = said.findLastIndex(({ role }) => role === 'user')
  const before = said.findLastIndex(({ role }, place) => place < last && role !== 'user')
  return said[before < 0 ? Math.max(0, last) : before + 1]?.place
}
