import { createHash, hash } from 'node:crypto'
import type { ParsedMessage } from '../../domain/chat.ts'
import { getOrCompute } from '../../domain/keyed.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { toCanonicalJsonInSteps } from '../../portable/canonical.ts'

/** The fields of a message that decide whether two messages are the same. */
export type ComparableMessage = Pick<ParsedMessage, 'role' | 'content' | 'toolCalls' | 'toolCallId'>

export const isUser = ({ role }: Pick<ComparableMessage, 'role'>): boolean => role === 'user'

/** Compares stored messages with sent ones; both are named by their index. */
export type MessageEquality = {
  /** True for one message in two forms: trimmed, with its JSON rewritten, or with the reasoning removed. */
  readonly isSame: (stored: number, sent: number) => boolean
  /** True when one reply is a prefix or suffix of the other: a stopped stream, or a window that cuts a message. */
  readonly isPartOf: (stored: number, sent: number) => boolean
  /** Lookup keys: equal for messages that are the same. */
  readonly storedKey: (index: number) => string
  readonly sentKey: (index: number) => string
}

/** True for messages that are equal character by character, as nearly all resent ones are. */
export const isIdentical = (a: ComparableMessage, b: ComparableMessage): boolean =>
  a.role === b.role &&
  a.content === b.content &&
  a.toolCallId === b.toolCallId &&
  (a.toolCalls === b.toolCalls || haveIdenticalCalls(a.toolCalls, b.toolCalls))

const haveIdenticalCalls = (a: ComparableMessage['toolCalls'] = [], b: ComparableMessage['toolCalls'] = []): boolean =>
  a.length === b.length &&
  a.every((call, index) => {
    const other = b[index]
    return call.id === other?.id && call.name === other.name && call.arguments === other.arguments
  })

/** True when the first `count` sent messages are identical to the stored ones from `start` on. */
export function matchesAt(
  stored: readonly ComparableMessage[],
  start: number,
  sent: readonly ComparableMessage[],
  count: number,
): boolean {
  if (start < 0 || count < 1 || count > sent.length || count > stored.length - start) return false
  for (let index = 0; index < count; index++) {
    if (!isIdentical(stored[start + index] as ComparableMessage, sent[index] as ComparableMessage)) return false
  }
  return true
}

/** Builds the comparison of two message lists. Normal forms that are not in `forms` are computed on first use. */
export function compareMessages(
  stored: readonly ComparableMessage[],
  sent: readonly ComparableMessage[],
  forms: NormalForms = new Map(),
): MessageEquality {
  const formOf = (message: ComparableMessage): NormalForm =>
    getOrCompute(forms, message, () => runSync(normalizeMessage(message)))
  const storedForm = (index: number): NormalForm => formOf(stored[index] as ComparableMessage)
  const sentForm = (index: number): NormalForm => formOf(sent[index] as ComparableMessage)
  const isSame = (storedIndex: number, sentIndex: number): boolean => {
    const a = stored[storedIndex]
    const b = sent[sentIndex]
    if (a === undefined || b === undefined || a.role !== b.role) return false
    if (isIdentical(a, b)) return true
    if (isUser(a) && (differInLength(a.content, b.content) || (isTrimmed(a.content) && isTrimmed(b.content))))
      return false
    const [left, right] = [storedForm(storedIndex), sentForm(sentIndex)]
    return left.text === right.text && left.header === right.header
  }
  const isPartOf = (storedIndex: number, sentIndex: number): boolean => {
    const [a, b] = [stored[storedIndex], sent[sentIndex]]
    if (a === undefined || b === undefined || isUser(a)) return false
    const [left, right] = [storedForm(storedIndex), sentForm(sentIndex)]
    if (left.header !== right.header) return false
    const [short, long] = left.text.length < right.text.length ? [left.text, right.text] : [right.text, left.text]
    return short !== '' && (long.startsWith(short) || long.endsWith(short))
  }
  return {
    isSame,
    isPartOf,
    storedKey: (index) => storedForm(index).key,
    sentKey: (index) => sentForm(index).key,
  }
}

/** True for texts of users whose normal forms cannot be equal: a line break of two characters becomes one. */
function differInLength(one: string, other: string): boolean {
  const [a, b] = [one.trim().length, other.trim().length]
  return 2 * Math.min(a, b) < Math.max(a, b)
}

/** User text without surrounding white space is its own normal form. */
const isTrimmed = (text: string): boolean => text === text.trim() && !text.includes('\r')

/**
 * A message without what clients change on their own: `header` is role, call ids and calls; `text` the words; `key` is
 * equal for equal forms.
 */
type NormalForm = { readonly header: string; readonly text: string; readonly key: string }

/** Longer keys are replaced by their digest: looking up thousands of them would take long. */
const maxKeyCharacters = 200

function* createForm(header: string, text: string): Work<NormalForm> {
  const key = `${header} ${text}`
  if (key.length <= maxKeyCharacters) return { header, text, key }
  // UTF-8 has no lone surrogates.
  if (key.length <= stepCharacters) return { header, text, key: hash('sha256', Buffer.from(key, 'utf16le'), 'base64') }
  const digest = createHash('sha256')
  for (const part of splitText(key)) {
    digest.update(Buffer.from(part, 'utf16le'))
    yield stepWork
  }
  return { header, text, key: digest.digest('base64') }
}

/** Characters of a long message that are processed in one step, and the work of it. */
const stepCharacters = 65_536
const stepWork = 4_096

function* splitText(text: string): Iterable<string> {
  for (let start = 0; start < text.length; start += stepCharacters) yield text.slice(start, start + stepCharacters)
}

function* removeWhiteSpace(text: string): Work<string> {
  if (text.length <= stepCharacters) return joinWords(text)
  const parts: string[] = []
  for (const part of splitText(text)) {
    parts.push(joinWords(part))
    yield stepWork
  }
  return parts.join('')
}

/** Joins words without spaces. `replace` would link a small string per word, which takes ten times the memory. */
const joinWords = (text: string): string => text.match(/\S+/g)?.join('') ?? ''

/** Normal forms of the messages of one request and its session. */
export type NormalForms = Map<ComparableMessage, NormalForm>

/** Computes the normal forms of messages, so that comparing them takes little time. */
export function* normalizeInSteps(messages: readonly ComparableMessage[], forms: NormalForms): Work<void> {
  for (const message of messages) {
    if (!forms.has(message)) forms.set(message, yield* normalizeMessage(message))
    yield normalizeWork + Math.ceil(message.content.length / normalizeSpeed)
  }
}

/** Work on a message beside its text, and speed of the work on its text, in units of other work on text. */
const [normalizeWork, normalizeSpeed] = [20, 16]

/**
 * Clients trim replies, merge their parts, drop the reasoning and rewrite the JSON of tool calls, so replies are
 * compared without white space. User text keeps its inner white space: a change there is an edit.
 */
function* normalizeMessage({ role, content, toolCalls, toolCallId }: ComparableMessage): Work<NormalForm> {
  const callList: (readonly string[])[] = []
  for (const call of toolCalls ?? []) callList.push([call.id, call.name, yield* normalizeJson(call.arguments)])
  const header = JSON.stringify([role, toolCallId ?? '', callList])
  if (role === 'user') return yield* createForm(header, content.trim().split('\r\n').join('\n'))
  const text = yield* removeWhiteSpace(role === 'assistant' ? stripReasoning(content) : content)
  return yield* createForm(header, text)
}

/** Canonical JSON of call arguments; missing arguments count as an empty object. */
function* normalizeJson(text: string): Work<string> {
  if (text.trim() === '') return '{}'
  try {
    yield Math.ceil(text.length / normalizeSpeed)
    const value: unknown = JSON.parse(text)
    yield Math.ceil(text.length / normalizeSpeed)
    return yield* toCanonicalJsonInSteps(value)
  } catch {
    return text.trim()
  }
}

const reasoningTag = /^\s*<(think|thinking|thought|reasoning|details(?= type="reasoning"))\b[^<>]{0,200}>/

/** Removes the tagged reasoning that some servers write at the start of a reply. */
function stripReasoning(content: string): string {
  const tag = reasoningTag.exec(content)?.[1]
  const end = tag === undefined ? -1 : content.indexOf(`</${tag}>`)
  return tag === undefined || end < 0 ? content : content.slice(end + tag.length + 3)
}
