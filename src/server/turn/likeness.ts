import type { Parsed } from '../../domain/chat.ts'
import { canonical } from '../../portable/canonical.ts'

/** What of a message tells it from others. */
export type Compared = Pick<Parsed, 'role' | 'content' | 'calls' | 'answers'>

export const isUser = ({ role }: Pick<Compared, 'role'>): boolean => role === 'user'

/** The one form that a message has in common with all that clients make of it: who says it to what, and the words. */
type Form = { readonly label: string; readonly words: string }

/** How messages that are stored are compared with those sent; both are named by their places. */
export type Likeness = {
  /** They are one message, though a client may have trimmed it, written its JSON anew or left the reasoning out. */
  readonly same: (stored: number, sent: number) => boolean
  /** One is the beginning or the end of the other, a reply: there is no more where a stream was stopped or a window cuts through a message. */
  readonly isPartOf: (stored: number, sent: number) => boolean
  /** Texts that are equal for messages that are the same. */
  readonly storedText: (place: number) => string
  readonly sentText: (place: number) => string
}

/** What is equal to the letter, as nearly all is, need not be looked at any closer. */
export const isLiteral = (a: Compared, b: Compared): boolean =>
  a.role === b.role &&
  a.content === b.content &&
  a.answers === b.answers &&
  a.calls === undefined &&
  b.calls === undefined

/** Whether so many messages sent, the first of them, are those stored from a place on, to the letter. */
export function startsAt(stored: readonly Compared[], place: number, sent: readonly Compared[], many: number): boolean {
  if (place < 0 || many < 1 || many > sent.length || many > stored.length - place) return false
  for (let at = 0; at < many; at++) if (!isLiteral(stored[place + at] as Compared, sent[at] as Compared)) return false
  return true
}

/** Compares two lists of messages. */
export function compare(stored: readonly Compared[], sent: readonly Compared[]): Likeness {
  const storedForm = lazily(stored)
  const sentForm = lazily(sent)
  const same = (one: number, other: number): boolean => {
    const a = stored[one]
    const b = sent[other]
    if (a === undefined || b === undefined || a.role !== b.role) return false
    if (isLiteral(a, b)) return true
    if (isUser(a) && isPlain(a.content) && isPlain(b.content)) return false
    return storedForm(one).words === sentForm(other).words && storedForm(one).label === sentForm(other).label
  }
  const isPartOf = (one: number, other: number): boolean => {
    const [a, b] = [stored[one], sent[other]]
    if (a === undefined || b === undefined || isUser(a) || storedForm(one).label !== sentForm(other).label) return false
    const [x, y] = [storedForm(one).words, sentForm(other).words]
    const [short, long] = x.length < y.length ? [x, y] : [y, x]
    return short !== '' && (long.startsWith(short) || long.endsWith(short))
  }
  const textOf = ({ label, words }: Form): string => `${label} ${words}`
  return {
    same,
    isPartOf,
    storedText: (place) => textOf(storedForm(place)),
    sentText: (place) => textOf(sentForm(place)),
  }
}

/** What a user wrote without white space around it is its own form. */
const isPlain = (text: string): boolean => text === text.trim() && !text.includes('\r')

function lazily(messages: readonly Compared[]): (place: number) => Form {
  const forms: (Form | undefined)[] = []
  return (place) => {
    forms[place] ??= formOf(messages[place] as Compared)
    return forms[place]
  }
}

/**
 * Clients trim replies, merge their parts, drop the model's reasoning and write the JSON of a call anew. But what a user
 * wrote is the user's own: any change inside it is a change.
 */
function formOf({ role, content, calls, answers }: Compared): Form {
  const made = calls?.map((call) => [call.id, call.name, plainJson(call.arguments)]) ?? []
  const label = JSON.stringify([role, answers ?? '', made])
  if (role === 'user') return { label, words: content.trim().replaceAll('\r\n', '\n') }
  return { label, words: (role === 'assistant' ? withoutReasoning(content) : content).replace(/\s+/g, '') }
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
