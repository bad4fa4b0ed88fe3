import type { DerivedEntry, Message, NewMessage } from '../domain/entry.ts'
import type { PageOptions } from '../domain/ports.ts'
import { findMessageIndex } from '../domain/session.ts'
import { estimateSize } from '../domain/stringify.ts'

/** The newest messages of a session, without a hole, and the number of all its messages. */
export type MessageTail = { readonly tail: readonly Message[]; readonly messageCount: number }

/** Returns a range from the newest messages; undefined if they do not cover it. */
export function sliceTail(
  { tail, messageCount }: MessageTail,
  { after = 0, before = Number.MAX_SAFE_INTEGER, limit, newest = false }: PageOptions,
): readonly Message[] | undefined {
  const [from, to] = [findMessageIndex(tail, after + 1), findMessageIndex(tail, before)]
  const coversStart = tail.length === messageCount || (tail[0] !== undefined && after + 1 >= tail[0].sequence)
  if (!newest) return coversStart ? tail.slice(from, Math.min(to, from + limit)) : undefined
  return coversStart || to >= limit ? tail.slice(Math.max(from, to - limit), to) : undefined
}

/** Estimated size of a message besides its text. */
const messageOverheadBytes = 200

/** Estimates the memory of a message. */
export const estimateMessageBytes = ({ content, packedPayload = '', toolCalls = [] }: NewMessage): number =>
  toolCalls.reduce(
    (length, { name, arguments: text }) => length + name.length + text.length,
    messageOverheadBytes + content.length + packedPayload.length,
  )

/** Sizes by list: a list of derived entries stays the same while messages are added to its session. */
const derivedBytes = new WeakMap<readonly DerivedEntry[], number>()

/** Estimates the memory of derived entries. */
export function estimateDerivedBytes(entries: readonly DerivedEntry[]): number {
  const known = derivedBytes.get(entries)
  if (known !== undefined) return known
  const bytes = entries.length === 0 ? 0 : estimateSize(entries, Number.POSITIVE_INFINITY)
  derivedBytes.set(entries, bytes)
  return bytes
}
