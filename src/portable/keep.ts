import { hash } from 'node:crypto'
import type { Tended } from '../domain/bundle.ts'
import { type Incoming, parseMessage } from '../domain/chat.ts'
import type { Knowledge, Message, Millis, ToolCall } from '../domain/entry.ts'
import { formatKey, type Key, parseKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { never } from '../domain/session.ts'
import type { Memory } from '../memory.ts'
import { barringSecrets } from '../text/secretMark.ts'
import { canonical } from './canonical.ts'
import type { Foreign, ForeignKnowledge, ForeignSession, Skipped } from './foreign.ts'
import { stopIf } from './stop.ts'

/** Where to keep what another program knows: conversations in a memory, knowledge in the store of its scopes. */
export type Destination = { readonly memory: Memory; readonly store: Store; readonly scope: Scope }
export type KeepOptions = Tended & { readonly now: Millis }

/** What was written; what was there before counts as `unchanged`. */
export type Kept = {
  readonly sessions: number
  readonly messages: number
  readonly knowledge: number
  readonly unchanged: number
  readonly skipped: readonly Skipped[]
}

const most = 500

/**
 * Keeps what was read from a file of another program. What an earlier import of the same conversation has kept is not
 * kept twice, and a conversation that has grown since is continued; one that went on differently here is left alone.
 *
 * @example
 * await keepForeign({ memory, store, scope: 'acme' }, parseForeign('claude', text), { now: Date.now() })
 */
export async function keepForeign(into: Destination, foreign: Foreign, options: KeepOptions): Promise<Kept> {
  const done = { sessions: 0, messages: 0, knowledge: 0, unchanged: 0, skipped: [...foreign.skipped] }
  for (const session of foreign.sessions) {
    const key = parseKey(`${into.scope}:${session.id}`)
    const there = await already(into.memory, key, session)
    if (there === 'other') done.skipped.push({ what: formatKey(key), why: 'went on differently here' })
    else if (there === session.messages.length) done.unchanged++
    else {
      done.messages += await append(into.memory, key, session, there, options)
      done.sessions++
    }
    options.progress?.({ sessions: done.sessions, messages: done.messages })
  }
  const knowledge = await keepKnowledge(into, foreign.knowledge, options)
  return { ...done, knowledge, unchanged: done.unchanged + foreign.knowledge.length - knowledge }
}

/** How many messages of a conversation are there already; `other` when what is there is not its beginning. */
async function already(memory: Memory, key: Key, { messages }: ForeignSession): Promise<number | 'other'> {
  let matched = 0
  let after = 0
  while (matched < messages.length) {
    const page = await memory.transcript(key, { after, limit: most })
    for (const message of page.slice(0, messages.length - matched))
      if (!isSame(message, messages[matched++] as Incoming)) return 'other'
    if (page.length < most) break
    after = page.at(-1)?.sequence ?? after
  }
  return matched
}

function isSame(message: Message, incoming: Incoming): boolean {
  const parsed = parseMessage(incoming, 0, message.at)
  const { at, role, content, name, calls, answers } = message
  return canonical(comparable({ at, role, content, name, calls, answers })) === canonical(comparable(parsed))
}

/** Secrets are not kept: what was imported with them is known by the rest. */
function comparable<
  M extends {
    readonly content: string
    readonly name?: string | undefined
    readonly calls?: readonly ToolCall[] | undefined
  },
>(message: M): M {
  const { content, name, calls } = message
  return {
    ...message,
    content: barringSecrets(content),
    name: name === undefined ? undefined : barringSecrets(name),
    calls: calls?.map((call) => ({ ...call, arguments: barringSecrets(call.arguments) })),
  }
}

async function append(
  memory: Memory,
  key: Key,
  { messages }: ForeignSession,
  from: number,
  { signal }: KeepOptions,
): Promise<number> {
  for (let at = from; at < messages.length; at += most) {
    stopIf(
      signal,
      'The import was stopped by the caller. What was written stays; import the same file again to continue.',
    )
    const some = messages.slice(at, at + most)
    const known = some.map((message) => comparable(parseMessage(message, 0, message.at ?? 0)))
    await memory.append(key, some, { operationId: `import ${at} ${hash('sha256', canonical(known))}` })
  }
  return messages.length - from
}

/** Puts knowledge into the scope's own memory, in place of what an earlier import said under the same name. */
async function keepKnowledge(
  { memory, store, scope }: Destination,
  knowledge: readonly ForeignKnowledge[],
  { now, signal }: KeepOptions,
): Promise<number> {
  const key = parseKey(scope)
  const { epoch, revision, expiresAt, derived } = await store.head(key, 0)
  const held = new Map(derived.map((entry) => [entry.id, entry]))
  const masked = await Promise.all(
    knowledge.map(async (piece) => ({
      key: await memory.masked(key, piece.key),
      value: await memory.masked(key, piece.value),
    })),
  )
  const put = masked.map((piece) => entryOf(piece, now)).filter((entry) => !says(held.get(entry.id), entry))
  stopIf(
    signal,
    'The import was stopped by the caller. What was written stays; import the same file again to continue.',
  )
  if (put.length === 0) return 0
  const id = `import ${hash('sha256', canonical(put))}`
  await store.commit({
    id,
    key,
    at: now,
    epoch,
    base: revision,
    append: [],
    put,
    drop: [],
    expiresAt: revision === 0 ? never : expiresAt,
  })
  return put.length
}

const entryOf = ({ key, value }: ForeignKnowledge, now: Millis): Knowledge => ({
  kind: 'knowledge',
  id: `import-${hash('sha256', key).slice(0, 32)}`,
  at: now,
  category: 'domain',
  key,
  value,
  confidence: 1,
  usedAt: now,
  sources: [],
})

const says = (held: unknown, entry: Knowledge): boolean =>
  canonical({ ...(held as Knowledge | undefined), at: undefined, usedAt: undefined }) ===
  canonical({ ...entry, at: undefined, usedAt: undefined })
