import { isObject } from './checks.ts'
import type { Millis, Role, Said, ToolCall } from './entry.ts'
import { MemoryError } from './error.ts'

/** A part of a message that is not plain text, as OpenAI's API writes it. */
export type Part = { readonly type: string; readonly text?: string; readonly [field: string]: unknown }

/** A message as a caller gives it: OpenAI's shape, with the time it was said (`at`, in milliseconds; now when missing). */
export type Incoming = {
  readonly role: Role | 'developer'
  readonly content?: string | null | readonly Part[]
  readonly name?: string
  readonly tool_calls?: readonly {
    readonly id: string
    readonly type?: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
  readonly tool_call_id?: string
  readonly at?: Millis
}

/** What was said, before it is weighed. */
export type Parsed = Omit<Said, 'tokens' | 'lineTokens' | 'tokenizer' | 'weight'>

const roles: ReadonlyMap<unknown, Role> = new Map<unknown, Role>(
  Object.entries({ system: 'system', developer: 'system', user: 'user', assistant: 'assistant', tool: 'tool' }),
)

/** Checks a message at the edge; inside, its type carries the proof. All of a history comes through here: what is at fault is named only if there is a fault. */
export function parseMessage(value: unknown, place: number, now: Millis): Parsed {
  if (!isObject(value)) throw bad(place, '', 'must be an object such as { role: "user", content: "Hello" }')
  const role = roles.get(value.role)
  if (role === undefined)
    throw bad(place, '.role', `is ${shown(value.role)}; it must be one of ${[...roles.keys()].join(', ')}`)
  const calls = role === 'assistant' ? callsOf(value.tool_calls, place) : undefined
  const name = value.name === undefined || value.name === null ? '' : textOf(value.name, place, '.name')
  const answers =
    role === 'tool'
      ? textOf(value.tool_call_id, place, '.tool_call_id', 'names the call a tool message answers')
      : undefined
  const parsed: { -readonly [field in keyof Parsed]: Parsed[field] } = {
    at: timeOf(value.at, now, place),
    role,
    content: contentOf(value.content, place),
  }
  if (name !== '') parsed.name = name
  if (calls !== undefined) parsed.calls = calls
  if (answers !== undefined) parsed.answers = answers
  return parsed
}

function contentOf(content: unknown, place: number): string {
  if (typeof content === 'string') return wellFormed(content)
  if (content === null || content === undefined) return ''
  if (!Array.isArray(content))
    throw bad(place, '.content', 'must be text, null or a list of parts such as { type: "text", text: "Hello" }')
  return content.map((part, at) => partText(part, place, `.content[${at}]`)).join('\n')
}

/** Text as it is; anything else leaves a mark where it stood. */
function partText(part: unknown, place: number, at: string): string {
  if (!isObject(part) || typeof part.type !== 'string')
    throw bad(place, at, 'must be a part such as { type: "text", text: "Hello" }')
  if (part.type === 'text' || part.type === 'input_text' || part.type === 'output_text')
    return textOf(part.text, place, `${at}.text`, 'holds the text of the part', true)
  if (part.type === 'refusal') return textOf(part.refusal, place, `${at}.refusal`, 'holds the text of the part', true)
  return `[${part.type.replace(/^input_|_url$/g, '')}]`
}

function callsOf(value: unknown, place: number): readonly ToolCall[] | undefined {
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value)) throw bad(place, '.tool_calls', 'must be a list')
  if (value.length === 0) return undefined
  return value.map((call, number) => {
    const at = `.tool_calls[${number}]`
    const made = isObject(call) && isObject(call.function) ? call.function : undefined
    if (made === undefined) throw bad(place, at, 'must be { id, type: "function", function: { name, arguments } }')
    const id = textOf((call as { id?: unknown }).id, place, `${at}.id`, 'names the call')
    const name = textOf(made.name, place, `${at}.function.name`, 'names the tool')
    return {
      id,
      name,
      arguments: textOf(made.arguments ?? '', place, `${at}.function.arguments`, 'holds JSON text', true),
    }
  })
}

function timeOf(value: unknown, now: Millis, place: number): Millis {
  const time = value ?? now
  // No date is further from 1970.
  if (typeof time === 'number' && Math.abs(time) <= 8.64e15) return time
  throw bad(place, '.at', `is ${shown(value)}; it must be a time in milliseconds`)
}

/** Text in a field; what has a purpose must be told, unless it may be empty. */
function textOf(
  value: unknown,
  place: number,
  at: string,
  purpose?: string,
  mayBeEmpty = purpose === undefined,
): string {
  if (typeof value === 'string' && (mayBeEmpty || value !== '')) return wellFormed(value)
  throw bad(
    place,
    at,
    `must be text${mayBeEmpty ? '' : ' that is not empty'}${purpose === undefined ? '' : `; it ${purpose}`}`,
  )
}

/** Half a character cannot be written as UTF-8, nor sent to anybody: a mark stands in its place. */
export const wellFormed = (text: string): string => text.toWellFormed()

const shown = (value: unknown): string =>
  value === undefined ? 'missing' : (JSON.stringify(value)?.slice(0, 40) ?? typeof value)

function bad(place: number, field: string, fault: string): MemoryError {
  const param = `messages[${place}]${field}`
  return new MemoryError('bad-message', `${param} ${fault}.`, { param })
}
