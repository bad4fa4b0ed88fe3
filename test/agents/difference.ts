import { isDeepStrictEqual } from 'node:util'
import type { Fields } from './recorder.ts'

/**
 * Finds the first difference between the body that a client sent and the body that reached the model, as a path such as
 * `messages[2].content`. Memory may add one message at the end; all else must be equal.
 */
export function findDifference(sent: Fields, forwarded: Fields): string | undefined {
  for (const name of new Set([...Object.keys(sent), ...Object.keys(forwarded)])) {
    const [before, after] = [sent[name], forwarded[name]]
    if (isDeepStrictEqual(before, after)) continue
    if (name !== 'messages' && name !== 'input') return name
    const difference = compareMessages(toList(before), toList(after))
    if (difference !== undefined) return `${name}${difference}`
  }
  return undefined
}

const toList = (value: unknown): readonly Fields[] =>
  Array.isArray(value) ? (value as readonly Fields[]) : [{ role: 'user', content: value }]

function compareMessages(sent: readonly Fields[], received: readonly Fields[]): string | undefined {
  const last = received.at(-1)
  const forwarded = last !== undefined && isMemory(last) ? received.slice(0, -1) : received
  for (const [index, message] of sent.entries()) {
    const other = forwarded[index]
    if (other === undefined) return `[${index}] is missing`
    const names = [...new Set([...Object.keys(message), ...Object.keys(other)])]
    const changed = names.find((name) => !isDeepStrictEqual(message[name], other[name]))
    if (changed !== undefined) return `[${index}].${changed}`
  }
  const added = forwarded.length - sent.length
  return added === 0 ? undefined : ` has ${added} more`
}

/** True for the message that memory adds to a conversation. */
export function isMemory({ content }: Fields): boolean {
  const [only, ...others] = typeof content === 'string' ? [{ text: content }] : ((content ?? []) as readonly Fields[])
  return others.length === 0 && /^<memory\b[^>]*>[\s\S]*<\/memory>$/.test(String(only?.text ?? ''))
}
