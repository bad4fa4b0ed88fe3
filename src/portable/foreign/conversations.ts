import { hash } from 'node:crypto'
import { type MessageInput, parseMessage } from '../../domain/chat.ts'
import { isBlank, type Json, type Millis } from '../../domain/entry.ts'
import { isObject, MemoryError } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'

/** A conversation of another program; `id` is a valid session id, `title` is for display. */
export type ForeignSession = {
  readonly id: string
  readonly title?: string
  readonly messages: readonly MessageInput[]
}
/** Knowledge of another program, for the memory of a scope. */
export type ForeignKnowledge = { readonly key: string; readonly value: Json }
/** An item that is not imported, and the reason. */
export type SkippedItem = { readonly what: string; readonly why: string }

/** The importable contents of a file of another program. */
export type ForeignData = {
  readonly sessions: readonly ForeignSession[]
  readonly knowledge: readonly ForeignKnowledge[]
  readonly skipped: readonly SkippedItem[]
}

/** Returns the source's id if it is a valid session id, otherwise one derived from its hash. */
function toSessionId(sourceId: string): string {
  try {
    return parseKey(`any:${sourceId}`).id
  } catch {
    return `id-${hash('sha256', sourceId).slice(0, 32)}`
  }
}

/** Collects the conversations of a file and the reasons for what is skipped. */
export class ConversationCollector {
  private readonly sessions = new Map<string, ForeignSession>()
  private readonly skipped: SkippedItem[] = []

  skip(what: string, why: string): void {
    this.skipped.push({ what, why })
  }

  /** Adds a conversation; `candidates` are messages, or reasons why one is skipped. */
  addConversation(
    source: { readonly id: string; readonly title?: unknown },
    candidates: readonly (MessageInput | string)[],
  ): void {
    const id = toSessionId(source.id)
    const messages: MessageInput[] = []
    const skipCounts = new Map<string, number>()
    for (const [index, candidate] of candidates.entries()) {
      const reason = typeof candidate === 'string' ? candidate : findProblem(candidate, index)
      if (reason === undefined) messages.push(candidate as MessageInput)
      else skipCounts.set(reason, (skipCounts.get(reason) ?? 0) + 1)
    }
    for (const [reason, count] of skipCounts)
      this.skip(`${count} ${count === 1 ? 'message' : 'messages'} of ${id}`, reason)
    if (this.sessions.has(id)) this.skip(id, 'occurs twice')
    else if (messages.length === 0) this.skip(id, 'has no messages to import')
    else
      this.sessions.set(id, {
        id,
        messages,
        ...(typeof source.title === 'string' && !isBlank(source.title) ? { title: source.title } : {}),
      })
  }

  result(knowledge: readonly ForeignKnowledge[] = []): ForeignData {
    return { sessions: [...this.sessions.values()], knowledge, skipped: this.skipped }
  }
}

/** Returns the reason why a message cannot be imported, if any. */
function findProblem(message: MessageInput, index: number): string | undefined {
  try {
    const { content, toolCalls } = parseMessage(message, index, 0)
    return isBlank(content) && toolCalls === undefined ? 'is empty' : undefined
  } catch (error) {
    if (error instanceof MemoryError) return error.message
    throw error
  }
}

/** Parses a JSON array of objects, or a single object. Other elements become empty objects, to keep the positions. */
export function parseJsonObjects(text: string, fileTitle: string): readonly Record<string, unknown>[] {
  const value = parseJson(text)
  if (isObject(value)) return [value]
  if (Array.isArray(value)) return value.map((element: unknown) => (isObject(element) ? element : {}))
  throw new MemoryError(
    'bad-bundle',
    `The file is not ${fileTitle}: it must hold a JSON list. Give the file as it was downloaded, not an archive.`,
  )
}

/** Parses JSON Lines into objects with their line numbers; invalid lines are reported as skipped. */
export function* parseJsonLines(
  text: string,
  collector: ConversationCollector,
): Generator<{ readonly line: number; readonly value: Record<string, unknown> }> {
  const lines = text.replace(/^\ufeff/, '').split('\n')
  for (const [index, line] of lines.entries()) {
    if (isBlank(line)) continue
    const value = parseJson(line)
    if (isObject(value)) yield { line: index + 1, value }
    else collector.skip(`line ${index + 1}`, 'is not a JSON object')
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch {
    return undefined
  }
}

export const asString = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** Returns a finite number as whole milliseconds, otherwise undefined. */
export const asTimestamp = (value: unknown): Millis | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : undefined

/**
 * Collects the branch of a message tree from its root to `leaf`; edited prompts and regenerated replies are excluded.
 */
export function collectBranch<T>(leaf: T | undefined, parentOf: (node: T) => T | undefined): T[] {
  const branch = new Set<T>()
  for (let node = leaf; node !== undefined && !branch.has(node); node = parentOf(node)) branch.add(node)
  return [...branch].reverse()
}
