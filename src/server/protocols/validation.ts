import { isObject } from '../../domain/checks.ts'
import { MemoryError } from '../../domain/error.ts'
import { Refusal } from '../http/httpError.ts'
import type { Body } from './protocol.ts'

/** Creates the error for a request field that memory cannot read. */
export const invalidField = (param: string, problem: string): MemoryError =>
  new MemoryError('bad-message', `${param} ${problem}.`, { param })

/** Read `type` of a part, block or item and `role` of a message; the empty string when the field is not text. */
export const readType = (value: unknown): string =>
  isObject(value) && typeof value.type === 'string' ? value.type : ''
export const readRole = (value: unknown): string =>
  isObject(value) && typeof value.role === 'string' ? value.role : ''

export const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const asNumber = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Requires an object. */
export function requireObject(value: unknown, param: string, example: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw invalidField(param, `must be an object such as ${example}`)
}

/** Requires text. With a `purpose`, which completes "it …" in the error, the text must not be empty. */
export function requireText(value: unknown, param: string, purpose?: string): void {
  if (typeof value !== 'string' || (value === '' && purpose !== undefined))
    throw invalidField(param, purpose === undefined ? 'must be text' : `must be text that is not empty; it ${purpose}`)
}

/** Requires text or a list of parts. Each part needs a type, and text if `isText` says its type is a text type. */
export function requireParts(content: unknown, param: string, isText: (type: string) => boolean): void {
  if (typeof content === 'string') return
  if (!Array.isArray(content)) throw invalidField(param, 'must be text or a list')
  for (const [index, part] of content.entries()) {
    // Fast path: valid parts need no parameter names for errors.
    if (
      isObject(part) &&
      typeof part.type === 'string' &&
      part.type !== '' &&
      (typeof part.text === 'string' || !isText(part.type))
    )
      continue
    const { type, text } = requireObject(part, `${param}[${index}]`, '{ "type": "text", "text": "Hello" }')
    requireText(type, `${param}[${index}].type`, 'says what the part is')
    if (isText(type as string)) requireText(text, `${param}[${index}].text`)
  }
}

/** Limits per request, far above real use: parsing a longer list would block other requests. */
const maxCount = { messages: 10_000, tools: 2_000 }

/** Returns the list unchanged, or throws a 400 error if it holds too many messages or tools. */
export function limitCount<T>(list: readonly T[], kind: keyof typeof maxCount, param: string = kind): readonly T[] {
  if (list.length <= maxCount[kind]) return list
  const remedy = kind === 'messages' ? 'Leave the older ones to memory.' : 'Send those that are needed now.'
  throw new Refusal(
    400,
    `too_many_${kind}`,
    `${param} holds ${list.length} ${kind}; one request may hold ${maxCount[kind]}. ${remedy}`,
    param,
  )
}

/** Requires a non-empty `messages` list. */
export function requireMessages({ messages }: Body): readonly unknown[] {
  if (Array.isArray(messages) && messages.length > 0) return limitCount(messages, 'messages')
  throw new Refusal(
    400,
    'missing_messages',
    'messages is missing: it must be a list with at least one message such as { "role": "user", "content": "Hello" }.',
    'messages',
  )
}
