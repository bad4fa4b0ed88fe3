import { type Derived, isBlank, type Message, type Said, type Sealed, type Source } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { BoxKey } from './box.ts'

/** What of a message goes into its box. */
type Secret = Partial<Pick<Said, 'content' | 'name' | 'calls' | 'answers'>>

/**
 * A message with its content, name, calls and answers in a box, which takes the place of the content. Blank content
 * stays, so that a store can tell what can be shown without reading it; a box beside it takes the place of the name.
 */
export function sealSaid(said: Said, key: Key, secret: BoxKey): Said {
  const { content, name, calls, answers, ...clear } = said
  const hidden: Secret = { ...(isBlank(content) ? {} : { content }), ...definedOf({ name, calls, answers }) }
  if (Object.keys(hidden).length === 0) return said
  const blank = isBlank(content) ? content : null
  const box = secret.seal(JSON.stringify(hidden), boundTo(key, clear, blank))
  return blank === null ? { ...clear, content: box } : { ...clear, content, name: box }
}

/** The message as it was given; `secret` is undefined for a session without a key, where nothing can be opened. */
export function openMessage(message: Message, key: Key, secret: BoxKey | undefined): Message {
  const { content, name, calls: _, answers: __, ...clear } = message
  const blank = isBlank(content) ? content : null
  const box = blank === null ? content : name
  if (box === undefined) return { ...clear, content }
  const hidden = secret?.open(box, boundTo(key, clear, blank))
  if (hidden === undefined) throw damaged(`Message ${message.id}`, key)
  return { ...clear, content, ...(JSON.parse(hidden.toString()) as Secret) }
}

/** A derived entry in a box. Only what erasing needs stays outside: which messages it came from, not which words of them. */
export function sealDerived(entry: Derived, key: Key, secret: BoxKey): Sealed {
  const { id, at } = entry
  const sources = entry.sources.map(({ message, session }) => ({ message, ...definedOf({ session }) }))
  return {
    kind: 'sealed',
    id,
    at,
    box: secret.seal(JSON.stringify(entry), entryBoundTo(key, { id, at, sources })),
    sources,
  }
}

export function openDerived(entry: Derived, key: Key, secret: BoxKey): Derived {
  const content = entry.kind === 'sealed' ? secret.open(entry.box, entryBoundTo(key, entry)) : undefined
  if (content === undefined) throw damaged(`Entry ${entry.id}`, key)
  return JSON.parse(content.toString()) as Derived
}

/**
 * A box is bound to its session and to everything that stands in the clear beside it, so that it cannot be moved to
 * another session, given to another speaker or made to weigh more or less. Its place in the session is unknown until
 * it is stored: whoever can write to the disk could still remove messages or exchange two with equal role, time and
 * counts, unnoticed. Each message is genuine; that they are all there is not proved.
 */
function boundTo(
  key: Key,
  { role, at, tokens, lineTokens, tokenizer, weight }: Omit<Said, 'content'>,
  blank: string | null,
): string {
  return JSON.stringify(['message', key.scope, key.id, role, at, tokens, lineTokens, tokenizer, weight, blank])
}

/** As above; an older version of the same entry put back in its place is not noticed. */
function entryBoundTo(
  key: Key,
  { id, at, sources }: { readonly id: string; readonly at: number; readonly sources: readonly Source[] },
): string {
  return JSON.stringify([
    'entry',
    key.scope,
    key.id,
    id,
    at,
    sources.map(({ message, session }) => [message, session ?? null]),
  ])
}

const damaged = (what: string, key: Key): MemoryError =>
  new MemoryError(
    'corrupt',
    `${what} of ${formatKey(key)} was changed, or moved here from elsewhere, and cannot be opened. Restore it from a backup or forget it.`,
  )

/** Fields without a value are left out: what was not given does not come back. */
const definedOf = <T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
