import { hash } from 'node:crypto'
import { type Incoming, parseMessage } from '../domain/chat.ts'
import { isObject } from '../domain/checks.ts'
import { isBlank, type Json, type Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'

/** A conversation of another program; `id` is fit for a session, `title` is for showing. */
export type ForeignSession = { readonly id: string; readonly title?: string; readonly messages: readonly Incoming[] }
/** Something another program knows, for the memory of a scope. */
export type ForeignKnowledge = { readonly key: string; readonly value: Json }
/** What was left out, and why. */
export type Skipped = { readonly what: string; readonly why: string }

/** What a file of another program holds that a memory can keep. */
export type Foreign = {
  readonly sessions: readonly ForeignSession[]
  readonly knowledge: readonly ForeignKnowledge[]
  readonly skipped: readonly Skipped[]
}

/** The source's own id where a session may have it, otherwise one made of its hash. */
function sessionId(source: string): string {
  try {
    return parseKey(`any:${source}`).id
  } catch {
    return `id-${hash('sha256', source).slice(0, 32)}`
  }
}

/** Collects what is kept of a source and counts what is not. */
export class Sieve {
  private readonly sessions = new Map<string, ForeignSession>()
  private readonly skipped: Skipped[] = []

  skip(what: string, why: string): void {
    this.skipped.push({ what, why })
  }

  /** Keeps a conversation; messages are candidates or reasons why there is none. */
  keep(source: { readonly id: string; readonly title?: unknown }, candidates: readonly (Incoming | string)[]): void {
    const id = sessionId(source.id)
    const messages: Incoming[] = []
    const reasons = new Map<string, number>()
    for (const [place, candidate] of candidates.entries()) {
      const fault = typeof candidate === 'string' ? candidate : faultOf(candidate, place)
      if (fault === undefined) messages.push(candidate as Incoming)
      else reasons.set(fault, (reasons.get(fault) ?? 0) + 1)
    }
    for (const [why, count] of reasons) this.skip(`${count} ${count === 1 ? 'message' : 'messages'} of ${id}`, why)
    if (this.sessions.has(id)) this.skip(id, 'occurs twice')
    else if (messages.length === 0) this.skip(id, 'has no messages to keep')
    else
      this.sessions.set(id, {
        id,
        messages,
        ...(typeof source.title === 'string' && !isBlank(source.title) ? { title: source.title } : {}),
      })
  }

  result(knowledge: readonly ForeignKnowledge[] = []): Foreign {
    return { sessions: [...this.sessions.values()], knowledge, skipped: this.skipped }
  }
}

/** Why a message cannot be kept, if so. */
function faultOf(message: Incoming, place: number): string | undefined {
  try {
    const { content, calls } = parseMessage(message, place, 0)
    return isBlank(content) && calls === undefined ? 'is empty' : undefined
  } catch (error) {
    if (error instanceof MemoryError) return error.message
    throw error
  }
}

/** A list of objects in JSON, or one of them by itself; what is no object is an empty one, and is missed by its place. */
export function parseList(text: string, what: string): readonly Record<string, unknown>[] {
  const value = parseJson(text)
  if (isObject(value)) return [value]
  if (Array.isArray(value)) return value.map((one: unknown) => (isObject(one) ? one : {}))
  throw new MemoryError(
    'bad-bundle',
    `The file is not ${what}: it must hold a JSON list. Give the file as it was downloaded, not an archive.`,
  )
}

/** The objects of JSON Lines with their numbers; other lines are skipped aloud. */
export function* parseLines(
  text: string,
  sieve: Sieve,
): Generator<{ readonly line: number; readonly value: Record<string, unknown> }> {
  for (const [place, line] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    if (isBlank(line)) continue
    const value = parseJson(line)
    if (isObject(value)) yield { line: place + 1, value }
    else sieve.skip(`line ${place + 1}`, 'is not a JSON object')
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch {
    return undefined
  }
}

export const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** A time in milliseconds, if this is one. */
export const timeIn = (value: unknown): Millis | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? Math.round(value) : undefined

/**
 * Walks a tree of messages from a leaf up to its root and gives them in the order they were said; what was said on other
 * branches, before a prompt was edited or a reply was asked for again, is no part of the conversation.
 */
export function branchOf<T>(leaf: T | undefined, parentOf: (node: T) => T | undefined): T[] {
  const seen = new Set<T>()
  for (let node = leaf; node !== undefined && !seen.has(node); node = parentOf(node)) seen.add(node)
  return [...seen].reverse()
}
