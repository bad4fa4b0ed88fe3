import { type Derived, type Message, sequenceOf, textOf } from '../domain/entry.ts'

/** What was forgotten of a session: some of its messages, or with `'all'` the whole of it. */
export type Gone = ReadonlySet<string> | 'all'

/** The sessions of a scope in which something was forgotten, by the id of the session. */
export type GoneBySession = ReadonlyMap<string, Gone>

/**
 * Which derived entries of session `home` say, or may say, what was forgotten: they name a forgotten message as their
 * source, or sum up a stretch of the conversation that held one.
 */
export function taintedBy(derived: readonly Derived[], home: string, gone: GoneBySession): readonly Derived[] {
  return derived.filter(
    (entry) =>
      entry.sources.some(({ message, session = home }) => isGone(gone.get(session), message)) ||
      spans(entry, gone.get(home)),
  )
}

function spans(entry: Derived, gone: Gone | undefined): boolean {
  if (entry.kind !== 'summary' || gone === undefined) return false
  const [first, last] = entry.covers
  if (gone === 'all') return true
  for (const id of gone) {
    const sequence = sequenceOf(id)
    if (sequence !== undefined && sequence >= first && sequence <= last) return true
  }
  return false
}

const isGone = (gone: Gone | undefined, message: string): boolean =>
  gone !== undefined && (gone === 'all' || gone.has(message))

/** Whether an entry holds a text, in whichever case, in anything somebody has said or written: not in its role, its numbers or its id. */
export function says(entry: Message | Derived, text: string): boolean {
  const wanted = text.toLowerCase()
  return wordsIn(entry).some((words) => words.toLowerCase().includes(wanted))
}

function wordsIn(entry: Message | Derived): readonly string[] {
  if (entry.kind === 'message') return [entry.content, entry.name ?? '', ...textsIn(entry.calls ?? [])]
  if (entry.kind === 'fact' || entry.kind === 'knowledge') return [entry.key, ...textsIn(entry.value)]
  if (entry.kind === 'about') return textsIn(entry.metadata ?? '')
  return [textOf(entry)]
}

/** Every text in a value, names of fields included, and the value itself as it would be written. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [String(value)]
  return Object.entries(value).flatMap(([name, inner]) => [Array.isArray(value) ? '' : name, ...textsIn(inner)])
}
