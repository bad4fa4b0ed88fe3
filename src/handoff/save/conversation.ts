import { type MessageInput, parseMessage } from '../../domain/chat.ts'
import type { Millis } from '../../domain/entry.ts'
import { isObject, MemoryError } from '../../domain/error.ts'
import { maxJsonDepth } from '../../domain/stringify.ts'
import { runInSlices, runSync, type Work } from '../../domain/work.ts'
import { findJsonFaultInSteps, type JsonLimits } from '../../providers/jsonStructure.ts'
import { yieldToEventLoop, yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { parseJson } from '../../text/json.ts'
import { type RecordSessions, stripRecords } from '../restore/record.ts'
import { metadataFromRow, restorationFromRow } from '../rows.ts'
import { findSessionRow, hasMessages } from '../sessions.ts'
import type { HandoffDeps } from '../settings.ts'

/** Messages with timestamps, and the sessions of the restored texts that were removed from them. */
export type IngestedMessages = {
  readonly messages: readonly MessageInput[]
  readonly records: readonly RecordSessions[]
}

const messagesPerPause = 500

/**
 * Validates messages, adds timestamps and removes restored texts that were pasted into them: those are not the words of
 * the person who pasted them. Fixed timestamps make a delayed write identical to an immediate one.
 */
export async function ingestMessages(
  deps: HandoffDeps,
  workspace: string,
  incoming: readonly MessageInput[],
  now: Millis,
): Promise<IngestedMessages> {
  const messages: MessageInput[] = []
  const records: RecordSessions[] = []
  for (const [index, message] of incoming.entries()) {
    if (index % messagesPerPause === messagesPerPause - 1) await yieldToEventLoop()
    assertHasContent(message, index)
    const { at, content } = parseMessage(message, index, now)
    const { text, found } = await stripRecords(content, (sessions) => findRecordHash(deps, workspace, sessions))
    records.push(...found)
    const [record] = found
    if (record === undefined) messages.push({ ...message, at })
    // A tool result must stay: a tool call refers to it.
    else if (text !== '' || message.role === 'tool')
      messages.push({ ...message, at, content: text || `[the record of ${record.from}]` })
  }
  return { messages, records }
}

/**
 * Parses a conversation given as text. Records are removed before splitting it: they quote speakers of another chat.
 */
export async function ingestText(
  deps: HandoffDeps,
  workspace: string,
  text: string,
  now: Millis,
): Promise<IngestedMessages> {
  const jsonMessages = await runInSlices(parseJsonMessagesInSteps(text), yieldWhenLong)
  if (jsonMessages !== undefined) return ingestMessages(deps, workspace, jsonMessages, now)
  const { text: rest, found } = await stripRecords(text, (sessions) => findRecordHash(deps, workspace, sessions))
  const parse = found.length === 0 ? splitBySpeaker : parseConversationInSteps
  const parsed = await runInSlices(parse(rest), yieldWhenLong)
  const { messages, records } = await ingestMessages(deps, workspace, parsed, now)
  return { messages, records: [...found, ...records] }
}

/** Rejects a message without content: its text is probably in another field and would be lost. */
function assertHasContent(message: MessageInput, index: number): void {
  const isEmpty = message?.content === undefined && (message?.tool_calls ?? []).length === 0
  if (!isEmpty || typeof message !== 'object' || message === null) return
  const param = `messages[${index}].content`
  throw new MemoryError('bad-message', `${param} is missing. Give it as text or as a list of parts.`, { param })
}

/** Reads the hash of the text a session was created with. If that fails, nothing is removed from the message. */
async function findRecordHash(
  deps: HandoffDeps,
  workspace: string,
  { session, from }: RecordSessions,
): Promise<string | undefined> {
  const row = await findSessionRow(deps, workspace, session).catch(() => undefined)
  const restoration = row === undefined ? undefined : restorationFromRow(row)
  return restoration?.from === from ? restoration.record : undefined
}

/** Returns the session a pasted record was created for if it is still empty: then these messages belong to it. */
export async function findSessionOfRecord(
  deps: HandoffDeps,
  workspace: string,
  [record]: readonly RecordSessions[],
): Promise<string | undefined> {
  if (record === undefined) return undefined
  const row = await findSessionRow(deps, workspace, record.session)
  const isEmpty =
    row !== undefined &&
    metadataFromRow(row).messageCount === 0 &&
    !(await hasMessages(deps, workspace, record.session))
  return isEmpty ? record.session : undefined
}

const rolesBySpeaker: Readonly<Record<string, 'user' | 'assistant' | 'system'>> = {
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
const speakerNames = Object.keys(rolesBySpeaker).join('|')

/** Matches `User: …`, `**Human:** …` and `## Assistant` at the start of a line; only a heading may omit the colon. */
const speakerLine = new RegExp(
  `^(?:#{1,6}[ \\t]+(?:\\*\\*)?(?<heading>${speakerNames})(?:\\*\\*)?[ \\t]*:?|(?:\\*\\*)?(?<label>${speakerNames})(?:\\*\\*)?[ \\t]*:(?:\\*\\*)?)[ \\t]*`,
  'i',
)
const fenceLine = /^\s{0,3}(`{3,}|~{3,})/

/** `System: …` also occurs in hardware listings, so it is a speaker only at the start of the text. */
const isSpeakerRole = (role: MessageInput['role'] | undefined, turnIndex: number): role is MessageInput['role'] =>
  role !== undefined && (role !== 'system' || turnIndex === 0)

/**
 * Parses a conversation: JSON or JSON Lines of messages, or text with speaker names; any other text is one user
 * message. Text before the first speaker becomes a message of its own.
 *
 * @example
 * parseConversation('User: Hello\nAssistant: Hi!') // [{ role: 'user', content: 'Hello' }, { role: 'assistant', content: 'Hi!' }]
 */
export const parseConversation = (text: string): readonly MessageInput[] => runSync(parseConversationInSteps(text))

function* parseConversationInSteps(text: string): Work<readonly MessageInput[]> {
  if (text.trim() === '') return []
  return (yield* parseJsonMessagesInSteps(text)) ?? (yield* splitBySpeaker(text))
}

/** Cost of a line beside its characters. */
const lineWork = 16

/** Messages may be of any number. Text with more levels or different field names is data, and takes long to parse. */
const messageLimits: JsonLimits = {
  depth: maxJsonDepth,
  values: Number.POSITIVE_INFINITY,
  fields: Number.POSITIVE_INFINITY,
}

/**
 * Parses JSON messages: a list, `{"messages":[…]}`, or one message per line. Undefined if the text is none of these.
 * The messages are not validated.
 */
export const parseJsonMessages = (text: string): readonly MessageInput[] | undefined =>
  runSync(parseJsonMessagesInSteps(text))

function* parseJsonMessagesInSteps(text: string): Work<readonly MessageInput[] | undefined> {
  const trimmed = text.trim()
  if (!/^[[{]/.test(trimmed)) return undefined
  if ((yield* findJsonFaultInSteps(trimmed, messageLimits)) !== undefined) return undefined
  const value = parseJson(trimmed)
  const list =
    isObject(value) && Array.isArray(value.messages) ? value.messages : Array.isArray(value) ? value : undefined
  if (list !== undefined) return list.length > 0 && list.every(isMessage) ? list : undefined
  const messages: MessageInput[] = []
  for (const line of trimmed.split('\n')) {
    yield lineWork + line.length / lineWork
    if (line.trim() === '') continue
    const message = parseJson(line)
    if (!isMessage(message)) return undefined
    messages.push(message)
  }
  return messages
}

const isMessage = (value: unknown): value is MessageInput => isObject(value) && typeof value.role === 'string'

function* splitBySpeaker(text: string): Work<readonly MessageInput[]> {
  const turns: { role: MessageInput['role']; lines: string[] }[] = []
  let openFence: string | undefined
  for (const line of text.split('\n')) {
    const fence = fenceLine.exec(line)?.[1]
    if (fence !== undefined)
      openFence = openFence === undefined ? fence : line.trim().startsWith(openFence) ? undefined : openFence
    // Speaker names inside code blocks are code.
    const match = openFence === undefined ? speakerLine.exec(line) : null
    const role = rolesBySpeaker[(match?.groups?.heading ?? match?.groups?.label ?? '').toLowerCase()]
    if (match !== null && isSpeakerRole(role, turns.length)) turns.push({ role, lines: [line.slice(match[0].length)] })
    else if (turns.length > 0) turns.at(-1)?.lines.push(line)
    else if (line.trim() !== '') turns.push({ role: 'user', lines: [line] })
    yield lineWork + line.length / lineWork
  }
  return turns
    .map(({ role, lines }) => ({ role, content: lines.join('\n').trim() }))
    .filter(({ content }) => content !== '')
}
