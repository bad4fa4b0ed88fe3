import type { Incoming } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'

const roles: Readonly<Record<string, 'user' | 'assistant' | 'system'>> = {
  user: 'user',
  human: 'user',
  me: 'user',
  you: 'user',
  assistant: 'assistant',
  ai: 'assistant',
  claude: 'assistant',
  chatgpt: 'assistant',
  model: 'assistant',
  bot: 'assistant',
  system: 'system',
}

/** `User: …`, `**Human:** …`, `## Assistant` at the beginning of a line; a heading needs no colon, anything else does. */
const speaker = new RegExp(
  `^(?:#{1,6}[ \\t]+(?:\\*\\*)?(?<heading>${Object.keys(roles).join('|')})(?:\\*\\*)?[ \\t]*:?|(?:\\*\\*)?(?<label>${Object.keys(roles).join('|')})(?:\\*\\*)?[ \\t]*:(?:\\*\\*)?)[ \\t]*`,
  'i',
)
const fence = /^\s{0,3}(`{3,}|~{3,})/

/** A list of what is on somebody's machine has a line "System: …" as well: only a text that begins with one has it for a speaker. */
const isSpeaker = (role: Incoming['role'] | undefined, place: number): role is Incoming['role'] =>
  role !== undefined && (role !== 'system' || place === 0)

/**
 * A conversation as its turns: JSON or JSON Lines of messages, or text with recognisable speakers; any other text is one
 * message. Nothing is lost: what stands before the first speaker is a message of its own.
 *
 * @example
 * turnsOf('User: Hello\nAssistant: Hi!') // [{ role: 'user', content: 'Hello' }, { role: 'assistant', content: 'Hi!' }]
 */
export function turnsOf(text: string): readonly Incoming[] {
  if (text.trim() === '') return []
  return messagesIn(text) ?? spokenIn(text)
}

/** JSON: a list of messages, `{"messages":[…]}`, or one message a line; undefined if it is none. What they hold is checked where it is kept. */
export function messagesIn(text: string): readonly Incoming[] | undefined {
  const trimmed = text.trim()
  if (!/^[[{]/.test(trimmed)) return undefined
  const whole = parsed(trimmed)
  const list =
    isObject(whole) && Array.isArray(whole.messages) ? whole.messages : Array.isArray(whole) ? whole : undefined
  if (list !== undefined) return list.length > 0 && list.every(isMessage) ? list : undefined
  const lines = trimmed
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parsed)
  return lines.every(isMessage) ? lines : undefined
}

const isMessage = (value: unknown): value is Incoming => isObject(value) && typeof value.role === 'string'

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function spokenIn(text: string): readonly Incoming[] {
  const turns: { role: Incoming['role']; lines: string[] }[] = []
  let open: string | undefined
  for (const line of text.split('\n')) {
    // A speaker's name inside a block of code is code.
    const mark = fence.exec(line)?.[1]
    if (mark !== undefined) open = open === undefined ? mark : line.trim().startsWith(open) ? undefined : open
    const found = open === undefined ? speaker.exec(line) : null
    const role = roles[(found?.groups?.heading ?? found?.groups?.label ?? '').toLowerCase()]
    if (found !== null && isSpeaker(role, turns.length)) turns.push({ role, lines: [line.slice(found[0].length)] })
    else if (turns.length > 0) turns.at(-1)?.lines.push(line)
    else if (line.trim() !== '') turns.push({ role: 'user', lines: [line] })
  }
  return turns
    .map(({ role, lines }) => ({ role, content: lines.join('\n').trim() }))
    .filter(({ content }) => content !== '')
}
