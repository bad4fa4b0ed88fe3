import { isObject } from '../../domain/checks.ts'
import { MemoryError } from '../../domain/error.ts'
import { Refusal } from '../http/httpError.ts'

/** The error for a field of a request that memory cannot read. */
export const bad = (param: string, fault: string): MemoryError =>
  new MemoryError('bad-message', `${param} ${fault}.`, { param })

/** What a part, a block or an item says it is, and who says a message; nothing where that is no text. Asked of each of them many times. */
export const typeOf = (value: unknown): string => (isObject(value) && typeof value.type === 'string' ? value.type : '')
export const roleOf = (value: unknown): string => (isObject(value) && typeof value.role === 'string' ? value.role : '')

/** A field that must be an object. */
export function objectIn(value: unknown, param: string, example: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw bad(param, `must be an object such as ${example}`)
}

/** Demands text in a field; `purpose` says what it is for, and only text that may be empty needs none. */
export function demandText(value: unknown, param: string, purpose?: string): void {
  if (typeof value !== 'string' || (value === '' && purpose !== undefined))
    throw bad(param, purpose === undefined ? 'must be text' : `must be text that is not empty; it ${purpose}`)
}

/** Demands text, or a list of parts each of which has a type and, if it is one of text, the text itself. */
export function demandParts(content: unknown, param: string, isText: (type: string) => boolean): void {
  if (typeof content === 'string') return
  if (!Array.isArray(content)) throw bad(param, 'must be text or a list')
  for (const [place, part] of content.entries()) {
    // Where nothing is at fault nothing need be named.
    if (
      isObject(part) &&
      typeof part.type === 'string' &&
      part.type !== '' &&
      (typeof part.text === 'string' || !isText(part.type))
    )
      continue
    const { type, text } = objectIn(part, `${param}[${place}]`, '{ "type": "text", "text": "Hello" }')
    demandText(type, `${param}[${place}].type`, 'says what the part is')
    if (isText(type as string)) demandText(text, `${param}[${place}].text`)
  }
}

/** The most that one request may hold, far more than anybody sends to be answered: what takes longer to read keeps others waiting. */
const most = { messages: 10_000, tools: 2_000 }

/** A list of messages or tools as it is, if it holds no more than are read in one go. */
export function fewIn<T>(list: readonly T[], what: keyof typeof most, param: string = what): readonly T[] {
  if (list.length <= most[what]) return list
  const advice = what === 'messages' ? 'Leave the older ones to memory.' : 'Send those that are needed now.'
  throw new Refusal(
    400,
    `too_many_${what}`,
    `${param} holds ${list.length} ${what}; one request may hold ${most[what]}. ${advice}`,
    param,
  )
}
