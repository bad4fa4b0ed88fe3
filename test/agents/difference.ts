import { isDeepStrictEqual } from 'node:util'
import type { Fields } from './recorder.ts'

/**
 * Finds the first difference between the body that a client sent and the body that reached the model, as a path such as
 * `messages[2].content`. Memory may add system text; all else must be equal.
 */
export function findDifference(sent: Fields, forwarded: Fields): string | undefined {
  for (const name of new Set([...Object.keys(sent), ...Object.keys(forwarded)])) {
    const [before, after] = [sent[name], forwarded[name]]
    if (isDeepStrictEqual(before, after)) continue
    if (name === 'system' || name === 'instructions') {
      if (!isAddition(before, after)) return name
    } else if (name === 'messages' || name === 'input') {
      const difference = compareMessages(toList(before), toList(after))
      if (difference !== undefined) return `${name}${difference}`
    } else return name
  }
  return undefined
}

const toList = (value: unknown): readonly Fields[] =>
  Array.isArray(value) ? (value as readonly Fields[]) : [{ content: value }]

/** True when `after` has all of `before` in the same order, and more text. */
function isAddition(before: unknown, after: unknown): boolean {
  if (before === undefined) return true
  if (typeof before === 'string') return typeof after === 'string' && after.includes(before)
  const [wanted, rest] = [[...toList(before)], toList(after)]
  for (const block of rest) if (isDeepStrictEqual(block, wanted[0])) wanted.shift()
  return wanted.length === 0
}

const isSystem = (message: Fields | undefined): boolean => message?.role === 'system' || message?.role === 'developer'

function compareMessages(sent: readonly Fields[], forwarded: readonly Fields[]): string | undefined {
  let position = 0
  for (const [index, message] of sent.entries()) {
    while (isAddedBefore(message, forwarded[position])) position++
    const received = forwarded[position++]
    if (received === undefined) return `[${index}] is missing`
    if (isDeepStrictEqual(message, received)) continue
    if (isSystem(message) && isSystem(received) && isAddition(message.content, received.content)) continue
    const names = [...new Set([...Object.keys(message), ...Object.keys(received)])]
    return `[${index}].${names.find((name) => !isDeepStrictEqual(message[name], received[name]))}`
  }
  const added = forwarded.slice(position).filter((message) => !isSystem(message)).length
  return added === 0 ? undefined : ` has ${added} more`
}

/** True for a system message that is not the client's. */
const isAddedBefore = (message: Fields, received: Fields | undefined): boolean =>
  isSystem(received) && !isSystem(message)
