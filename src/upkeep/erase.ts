import { type Derived, type Message, sequenceOf } from '../domain/entry.ts'

/** What was forgotten of a session: some of its messages, or with `'all'` the whole of it. */
export type Gone = ReadonlySet<string> | 'all'

/** The sessions of a scope in which something was forgotten, by the id of the session. */
export type GoneBySession = ReadonlyMap<string, Gone>

/**
 * Which derived entries of session `home` say, or may say, what was forgotten: they name a forgotten message as their
 * source, or sum up a stretch of the conversation that held one.
 */
export function taintedBy(derived: readonly Derived[], home: string, gone: GoneBySession): readonly Derived[] {
  return derived.filter((entry) => entry.sources.some(({ message, session = home }) => isGone(gone.get(session), message)) || spans(entry, gone.get(home)))
}

function spans(entry: Derived, gone: Gone | undefined): boolean {
  if (entry.kind !== 'summary' || gone === undefined) return false
  const [first, last] = entry.covers
  if (gone === 'all') return true
  for (const id of gone) {
    const sequence = sequenceOf(id)
    if (sequence !== undefined && sequence >= first && sequence <= last) return true
  }
  return entry.lost.some(({ message }) => gone.has(message))
}

const isGone = (gone: Gone | undefined, message: string): boolean => gone !== undefined && (gone === 'all' || gone.has(message))

/** What a message says in any of its parts, in lower case, for finding it by a text. */
export function says(entry: Message | Derived, text: string): boolean {
  return JSON.stringify(entry, (field, value: unknown) => (field === 'id' || field === 'kind' || field === 'tokenizer' ? undefined : value), 0)
    .toLowerCase()
    .includes(JSON.stringify(text).slice(1, -1).toLowerCase())
}
