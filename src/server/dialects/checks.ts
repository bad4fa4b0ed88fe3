import { isObject } from '../../domain/checks.ts'
import { MemoryError } from '../../domain/error.ts'

/** The error for a field of a request that memory cannot read. */
export const bad = (param: string, fault: string): MemoryError => new MemoryError('bad-message', `${param} ${fault}.`, { param })

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
    const { type, text } = objectIn(part, `${param}[${place}]`, '{ "type": "text", "text": "Hello" }')
    demandText(type, `${param}[${place}].type`, 'says what the part is')
    if (isText(type as string)) demandText(text, `${param}[${place}].text`)
  }
}
