import { hash } from 'node:crypto'
import type { TransferOptions } from '../domain/bundle.ts'
import { type MessageInput, type ParsedMessage, parseMessage } from '../domain/chat.ts'
import type { Knowledge, Message, Millis, ToolCall } from '../domain/entry.ts'
import { formatKey, type Key, parseKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { noExpiry } from '../domain/session.ts'
import type { Memory } from '../memory.ts'
import { normalizeSecrets } from '../text/secrets.ts'
import { throwIfAborted } from './abort.ts'
import { toCanonicalJson } from './canonical.ts'
import type { ForeignData, ForeignKnowledge, ForeignSession, SkippedItem } from './foreign/conversations.ts'

/** Conversations are appended through the memory; knowledge is stored in the scope. */
export type ImportTarget = { readonly memory: Memory; readonly store: Store; readonly scope: Scope }
export type ForeignImportOptions = TransferOptions & { readonly now: Millis }

/** Counts of what was written; sessions and knowledge that existed already count as `unchanged`. */
export type ForeignImportResult = {
  readonly sessions: number
  readonly messages: number
  readonly knowledge: number
  readonly unchanged: number
  readonly skipped: readonly SkippedItem[]
}

/** Messages read or appended at a time. */
const pageSize = 500
const abortMessage =
  'The import was stopped by the caller. What was written stays; import the same file again to continue.'

/**
 * Imports the data of another program. Repeated imports add nothing twice and continue conversations that have grown;
 * conversations that have different messages in the store are skipped.
 *
 * @throws MemoryError `aborted`, or `conflict` when knowledge of the scope is written concurrently.
 *
 * @example
 * await importForeign({ memory, store, scope: 'acme' }, parseForeign('claude', text), { now: Date.now() })
 */
export async function importForeign(
  target: ImportTarget,
  data: ForeignData,
  options: ForeignImportOptions,
): Promise<ForeignImportResult> {
  const result = { sessions: 0, messages: 0, unchanged: 0, skipped: [...data.skipped] }
  for (const session of data.sessions) {
    const key = parseKey(`${target.scope}:${session.id}`)
    const existing = await countExistingMessages(target.memory, key, session)
    if (existing === undefined)
      result.skipped.push({ what: formatKey(key), why: 'has different messages in the store' })
    else if (existing === session.messages.length) result.unchanged++
    else {
      result.messages += await appendMessages(target.memory, key, session, existing, options)
      result.sessions++
    }
    options.onProgress?.({ sessions: result.sessions, messages: result.messages })
  }
  const knowledge = await storeKnowledge(target, data.knowledge, options)
  return { ...result, knowledge, unchanged: result.unchanged + data.knowledge.length - knowledge }
}

/** Counts the messages that are stored already; undefined when the stored ones are not the beginning of the session. */
async function countExistingMessages(
  memory: Memory,
  key: Key,
  { messages }: ForeignSession,
): Promise<number | undefined> {
  let matched = 0
  let after = 0
  while (matched < messages.length) {
    const page = await memory.transcript(key, { after, limit: pageSize })
    for (const message of page.slice(0, messages.length - matched))
      if (!isSameMessage(message, messages[matched++] as MessageInput)) return undefined
    if (page.length < pageSize) break
    after = page.at(-1)?.sequence ?? after
  }
  return matched
}

function isSameMessage(stored: Message, incoming: MessageInput): boolean {
  return identityOf(stored) === identityOf(parseMessage(incoming, 0, stored.at))
}

/** Text that is equal for a stored message and the message it was imported from. */
const identityOf = ({ at, role, content, name, toolCalls, toolCallId }: ParsedMessage): string =>
  toCanonicalJson(withoutSecrets({ at, role, content, name, toolCalls, toolCallId }))

/** Removes secrets for comparisons, because stored messages do not contain them. */
function withoutSecrets<
  M extends {
    readonly content: string
    readonly name?: string | undefined
    readonly toolCalls?: readonly ToolCall[] | undefined
  },
>(message: M): M {
  const { content, name, toolCalls } = message
  return {
    ...message,
    content: normalizeSecrets(content),
    name: name === undefined ? undefined : normalizeSecrets(name),
    toolCalls: toolCalls?.map((call) => ({ ...call, arguments: normalizeSecrets(call.arguments) })),
  }
}

async function appendMessages(
  memory: Memory,
  key: Key,
  { messages }: ForeignSession,
  existing: number,
  { signal }: ForeignImportOptions,
): Promise<number> {
  for (let start = existing; start < messages.length; start += pageSize) {
    throwIfAborted(signal, abortMessage)
    const page = messages.slice(start, start + pageSize)
    const identity = page.map((message) => withoutSecrets(parseMessage(message, 0, message.at ?? 0)))
    await memory.append(key, page, { operationId: `import ${start} ${hash('sha256', toCanonicalJson(identity))}` })
  }
  return messages.length - existing
}

/** Stores knowledge in the scope and replaces entries of earlier imports with the same key. */
async function storeKnowledge(
  { memory, store, scope }: ImportTarget,
  knowledge: readonly ForeignKnowledge[],
  { now, signal }: ForeignImportOptions,
): Promise<number> {
  const key = parseKey(scope)
  const { epoch, revision, expiresAt, derived } = await store.readHead(key, 0)
  const storedById = new Map(derived.map((entry) => [entry.id, entry]))
  const masked = await Promise.all(
    knowledge.map(async (item) => ({
      key: await memory.mask(key, item.key),
      value: await memory.mask(key, item.value),
    })),
  )
  const put = masked
    .map((item) => toKnowledgeEntry(item, now))
    .filter((entry) => !hasSameContent(storedById.get(entry.id), entry))
  throwIfAborted(signal, abortMessage)
  if (put.length === 0) return 0
  await store.commit({
    id: `import ${hash('sha256', toCanonicalJson(put))}`,
    key,
    at: now,
    epoch,
    base: revision,
    append: [],
    put,
    drop: [],
    expiresAt: revision === 0 ? noExpiry : expiresAt,
  })
  return put.length
}

const toKnowledgeEntry = ({ key, value }: ForeignKnowledge, now: Millis): Knowledge => ({
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

const hasSameContent = (stored: unknown, entry: Knowledge): boolean =>
  toCanonicalJson({ ...(stored as Knowledge | undefined), at: undefined, usedAt: undefined }) ===
  toCanonicalJson({ ...entry, at: undefined, usedAt: undefined })
