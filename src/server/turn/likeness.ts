import type { Parsed } from '../../domain/chat.ts'
import { canonical } from '../../portable/canonical.ts'

/** What of a message tells it from others. */
export type Compared = Pick<Parsed, 'role' | 'content' | 'calls' | 'answers'>

export const isUser = ({ role }: Pick<Compared, 'role'>): boolean => role === 'user'

/** How the messages stored are compared with those sent; both are named by their place. */
export type Likeness = {
  /** They are one message, though a client may have trimmed it, written its JSON anew or left the reasoning out. */
  readonly same: (stored: number, sent: number) => boolean
  /** One is a reply, the other its beginning or its end: who stops a stream, or cuts a window in the middle of a message, has no more. */
  readonly isPartOf: (stored: number, sent: number) => boolean
  readonly storedForm: (place: number) => string
  readonly sentForm: (place: number) => string
}

/** Compares two lists of messages; what is alike to the letter, as nearly all is, is not looked at any closer. */
export function compare(stored: readonly Compared[], sent: readonly Compared[]): Likeness {
  const storedForm = lazily(stored)
  const sentForm = lazily(sent)
  const same = (one: number, other: number): boolean => {
    const [a, b] = [stored[one], sent[other]]
    if (a === undefined || b === undefined || a.role !== b.role) return false
    if (a.content === b.content && a.answers === b.answers && a.calls === undefined && b.calls === undefined) return true
    return storedForm(one) === sentForm(other)
  }
  const isPartOf = (one: number, other: number): boolean => {
    const [a, b] = [stored[one], sent[other]]
    if (a === undefined || b === undefined || isUser(a) || labelOf(a) !== labelOf(b)) return false
    const [short, long] = [said(a), said(b)].sort((x, y) => x.length - y.length) as [string, string]
    return long.startsWith(short) || long.endsWith(short)
  }
  return { same, isPartOf, storedForm, sentForm }
}

/**
 * The one text that all forms of a message share. Clients trim replies, merge their parts, drop the model's reasoning and
 * write the JSON of a call anew; but what a user wrote is the user's own, and any change inside it is a change.
 *
 * @example
 * formOf({ role: 'assistant', content: '<think>Hm.</think>\n\nHi  there' }) === formOf({ role: 'assistant', content: 'Hi there' }) // true
 */
export const formOf = (message: Compared): string => `${labelOf(message)} ${said(message)}`

const labelOf = ({ role, calls, answers }: Compared): string => {
  const made = calls?.map((call) => [call.id, call.name, plainJson(call.arguments)]) ?? []
  return JSON.stringify([role, answers ?? '', made])
}

const said = ({ role, content }: Compared): string => {
  if (role === 'user') return content.trim().replaceAll('\r\n', '\n')
  return (role === 'assistant' ? withoutReasoning(content) : content).replace(/\s+/g, '')
}

/** Arguments as the one text their JSON has; no arguments are an empty object. */
function plainJson(text: string): string {
  if (text.trim() === '') return '{}'
  try {
    return canonical(JSON.parse(text))
  } catch {
    return text.trim()
  }
}

const opening = /^\s*<(think|thinking|thought|reasoning|details(?= type="reasoning"))\b[^<>]{0,200}>/

/** Reasoning that a server writes into the reply stands at its beginning, between tags. */
function withoutReasoning(content: string): string {
  const tag = opening.exec(content)?.[1]
  const end = tag === undefined ? -1 : content.indexOf(`</${tag}>`)
  return tag === undefined || end < 0 ? content : content.slice(end + tag.length + 3)
}

function lazily(messages: readonly Compared[]): (place: number) => string {
  const forms: (string | undefined)[] = []
  return (place) => {
    const message = messages[place]
    if (message === undefined) return ''
    forms[place] ??= formOf(message)
    return forms[place]
  }
}
