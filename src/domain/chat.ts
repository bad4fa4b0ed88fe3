import type { Millis, Role, Said, ToolCall } from './entry.ts'
import { MemoryError } from './error.ts'

/** A part of a message that is not plain text, as OpenAI's API writes it. */
export type Part = { readonly type: string; readonly text?: string; readonly [field: string]: unknown }

/** A message as a caller gives it: OpenAI's shape, with the time it was said (`at`, in milliseconds; now when missing). */
export type Incoming = {
  readonly role: Role | 'developer'
  readonly content?: string | null | readonly Part[]
  readonly name?: string
  readonly tool_calls?: readonly { readonly id: string; readonly type?: string; readonly function: { readonly name: string; readonly arguments: string } }[]
  readonly tool_call_id?: string
  readonly at?: Millis
}

/** What was said, before it is weighed. */
export type Parsed = Omit<Said, 'tokens' | 'lineTokens' | 'tokenizer' | 'weight'>

const roles: Readonly<Record<string, Role>> = { system: 'system', developer: 'system', user: 'user', assistant: 'assistant', tool: 'tool' }

/** Checks a message at the edge; inside, its type carries the proof. */
export function parseMessage(value: unknown, place: number, now: Millis): Parsed {
  const at = `messages[${place}]`
  if (!isObject(value)) throw bad(at, 'must be an object such as { role: "user", content: "Hello" }')
  const role = typeof value.role === 'string' && Object.hasOwn(roles, value.role) ? roles[value.role] : undefined
  if (role === undefined) throw bad(`${at}.role`, `is ${shown(value.role)}; it must be one of ${Object.keys(roles).join(', ')}`)
  const calls = role === 'assistant' ? callsOf(value.tool_calls, `${at}.tool_calls`) : undefined
  const name = optionalText(value.name, `${at}.name`)
  const answers = role === 'tool' ? requiredText(value.tool_call_id, `${at}.tool_call_id`, 'names the call a tool message answers') : undefined
  return {
    at: timeOf(value.at, now, `${at}.at`),
    role,
    content: contentOf(value.content, `${at}.content`),
    ...(name === undefined || name === '' ? {} : { name }),
    ...(calls === undefined ? {} : { calls }),
    ...(answers === undefined ? {} : { answers }),
  }
}

function contentOf(content: unknown, at: string): string {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return wellFormed(content)
  if (!Array.isArray(content)) throw bad(at, 'must be text, null or a list of parts such as { type: "text", text: "Hello" }')
  return content.map((part, place) => partText(part, `${at}[${place}]`)).join('\n')
}

/** Text as it is; anything else leaves a mark where it stood. */
function partText(part: unknown, at: string): string {
  if (!isObject(part) || typeof part.type !== 'string') throw bad(at, 'must be a part such as { type: "text", text: "Hello" }')
  if (part.type === 'text' || part.type === 'input_text' || part.type === 'output_text')
    return requiredText(part.text, `${at}.text`, 'holds the text of the part', true)
  if (part.type === 'refusal') return requiredText(part.refusal, `${at}.refusal`, 'holds the text of the part', true)
  return `[${part.type.replace(/^input_|_url$/g, '')}]`
}

function callsOf(value: unknown, at: string): readonly ToolCall[] | undefined {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value)) throw bad(at, 'must be a list')
  if (value.length === 0) return undefined
  return value.map((call, place) => {
    const made = isObject(call) && isObject(call.function) ? call.function : undefined
    if (made === undefined) throw bad(`${at}[${place}]`, 'must be { id, type: "function", function: { name, arguments } }')
    const id = requiredText((call as { id?: unknown }).id, `${at}[${place}].id`, 'names the call')
    const name = requiredText(made.name, `${at}[${place}].function.name`, 'names the tool')
    return { id, name, arguments: requiredText(made.arguments ?? '', `${at}[${place}].function.arguments`, 'holds JSON text', true) }
  })
}

function timeOf(value: unknown, now: Millis, at: string): Millis {
  const time = value ?? now
  // No date is further from 1970.
  if (typeof time === 'number' && Math.abs(time) <= 8.64e15) return time
  throw bad(at, `is ${shown(value)}; it must be a time in milliseconds`)
}

function optionalText(value: unknown, at: string): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return wellFormed(value)
  throw bad(at, 'must be text')
}

function requiredText(value: unknown, at: string, purpose: string, mayBeEmpty = false): string {
  if (typeof value === 'string' && (mayBeEmpty || value !== '')) return wellFormed(value)
  throw bad(at, `must be text${mayBeEmpty ? '' : ' that is not empty'}; it ${purpose}`)
}

/** Half a character cannot be written as UTF-8, nor sent to anybody: a mark stands in its place. */
export const wellFormed = (text: string): string => text.toWellFormed()

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const shown = (value: unknown): string => (value === undefined ? 'missing' : (JSON.stringify(value)?.slice(0, 40) ?? typeof value))
const bad = (param: string, fault: string): MemoryError => new MemoryError('bad-message', `${param} ${fault}.`, { param })
