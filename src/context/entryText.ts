import { type ParsedMessage, replaceLoneSurrogates } from '../domain/chat.ts'
import { type DerivedEntry, isBlank, isInternal, type Message, type Tokens } from '../domain/entry.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { runSync, type Work } from '../domain/work.ts'
import { escapeMemoryTags, escapeMemoryTagsInSteps } from '../text/fences.ts'

const emptyToolOutput = '(no output)'
/** A person named System must not seem to be the system. */
const roleTitlePattern = /^(?:system|developer|user|assistant|tool)[^\p{L}\p{N}]*$/iu
const roleTitles = { system: 'System', user: 'User', assistant: 'Assistant', tool: 'Tool' }

/** Replaces the content of a message and makes all its strings well-formed Unicode. */
export function withContent(message: Message, content: string): Message {
  const { name, toolCalls, toolCallId } = message
  return {
    ...message,
    content: replaceLoneSurrogates(content),
    ...(name === undefined ? {} : { name: replaceLoneSurrogates(name) }),
    ...(toolCalls === undefined
      ? {}
      : {
          toolCalls: toolCalls.map((call) => ({
            id: replaceLoneSurrogates(call.id),
            name: replaceLoneSurrogates(call.name),
            arguments: replaceLoneSurrogates(call.arguments),
          })),
        }),
    ...(toolCallId === undefined ? {} : { toolCallId: replaceLoneSurrogates(toolCallId) }),
  }
}

/**
 * Formats a message as a line of text, without the newline. `escaped` is its content without memory tags, which takes
 * long to compute for a long one.
 */
export function formatLine(
  message: ParsedMessage,
  withCalls = true,
  escaped = escapeMemoryTags(message.content),
): string {
  const { role, toolCalls } = message
  const text = isBlank(escaped) ? (role === 'tool' ? emptyToolOutput : '') : escaped
  const calls = (withCalls && toolCalls?.map((call) => `[calls ${call.name} ${call.arguments}]`).join(' ')) || ''
  // The signs between speaker, text and calls end a tag.
  return `${escapeMemoryTags(speakerOf(message))}: ${text}${text && calls && ' '}${escapeMemoryTags(calls)}`
}

/**
 * Returns the name of the speaker, or the role title if the name does not start with a letter or digit, or is the title
 * of another role.
 */
export function speakerOf(message: ParsedMessage): string {
  const name = message.name?.replace(/\s+/gu, ' ').trim()
  const isName = name !== undefined && /^[\p{L}\p{N}]/u.test(name) && !roleTitlePattern.test(name)
  return isName ? name : roleTitles[message.role]
}

/** Converts a message to OpenAI's chat format. `escaped` is its content without memory tags. */
export function toChatMessage(message: ParsedMessage, withCalls = true, escaped?: string): ChatMessage {
  const { role, toolCalls } = message
  // Tool output and model replies must not imitate the memory tags. User text is sent as it is.
  const content = role === 'user' ? message.content : (escaped ?? escapeMemoryTags(message.content))
  if (role === 'tool')
    return { role, content: isBlank(content) ? emptyToolOutput : content, tool_call_id: message.toolCallId ?? '' }
  // The cut may split a surrogate pair, so the name is made well-formed afterwards.
  const name = message.name && replaceLoneSurrogates(message.name.replace(/[\s<|\\/>]+/gu, '_').slice(0, 64))
  if (role !== 'assistant' || !withCalls || !toolCalls?.length)
    return name ? { role, content, name } : { role, content }
  const tool_calls = toolCalls.map((call) => ({
    id: call.id,
    type: 'function' as const,
    function: { name: call.name, arguments: call.arguments },
  }))
  return { role, content: isBlank(content) ? null : content, ...(name ? { name } : {}), tool_calls }
}

/** Key of the stored message in a chat message that shows it whole. Set only if the message has a payload. */
export const storedSource: unique symbol = Symbol('stored message')

/** A chat message of a context, with the stored message that it shows whole, if that has a payload. */
export type SourcedChatMessage = ChatMessage & { readonly [storedSource]?: Message }

/** Adds the stored message to a chat message that shows it whole, so that its payload can be sent instead. */
export const withSource = (chat: ChatMessage, message: Message): SourcedChatMessage =>
  message.packedPayload === undefined ? chat : { ...chat, [storedSource]: message }

/** Copies the messages of a context: it is built from cached objects, which the caller must not be able to change. */
export const copyMessages = (history: readonly SourcedChatMessage[]): ChatMessage[] => history.map(copyMessage)

export function copyMessage({ [storedSource]: _source, ...message }: SourcedChatMessage): ChatMessage {
  if (message.role !== 'assistant' || message.tool_calls === undefined) return message
  return { ...message, tool_calls: message.tool_calls.map((call) => ({ ...call, function: { ...call.function } })) }
}

/** The text of a derived entry without its labels; '' for entries that are never shown. */
export function textOfDerived(entry: DerivedEntry): string {
  if (isInternal(entry)) return ''
  if (entry.kind === 'summary') return entry.text
  if (entry.kind === 'item') return entry.content
  return typeof entry.value === 'string' ? entry.value : JSON.stringify(entry.value)
}

/** Formats a derived entry, with `shorten` applied to its text. Returns '' for entries that are never shown. */
export function formatDerived(entry: DerivedEntry, shorten: (text: string) => string): string {
  if (isInternal(entry)) return ''
  const value = shorten(textOfDerived(entry))
  if (entry.kind === 'summary') return value
  if (entry.kind === 'item') return `[${entry.category}] ${value}`
  if (entry.kind === 'fact') return `${factLabel(entry.field, entry.key, value)}${value}`
  return entry.key === '' ? `[${entry.category}] ${value}` : `${entry.category}, ${entry.key}: ${value}`
}

/** Returns the field and key of a fact, as far as its value does not say the same. */
function factLabel(field: string, key: string, value: string): string {
  if (!isStated(key, value)) return `${field}.${key}: `
  return key !== '' && (field === 'important_facts' || field === 'custom_fields') ? '' : `${field}: `
}

/** True if a value says what its key says, as in `budget: Our budget is 900 euros`. */
function isStated(key: string, value: string): boolean {
  const text = value.toLowerCase()
  const words = key.toLowerCase().split(/[^\p{L}\p{N}]+/u)
  return words.every((word) => word === constraintsKey || text.includes(word.slice(0, stemLength)))
}

/** Letters that words of one family share, as in `allergy` and `allergic`. */
const stemLength = 5
/** First part of the key of each constraint. */
const constraintsKey = 'constraints'

/**
 * Formats a text as a line of a memory block. The first character is one before which every tokenizer splits after a
 * newline (no white space, no slash), so that the token counts of lines add up.
 */
export function toMemoryLine(text: string): string {
  const trimmed = escapeMemoryTags(replaceLoneSurrogates(text)).trimStart()
  return `${trimmed.startsWith('/') ? `- ${trimmed}` : trimmed}\n`
}

/** Messages are asked about once per rendering, which takes long for a long one. */
const memoryTags = new WeakMap<Message, boolean>()
const minLongCharacters = 4_096

/** True if part of the message looks like a memory tag. */
export const hasMemoryTag = (message: Message): boolean =>
  isLong(message) ? runSync(findMemoryTag(message)) : textsOf(message).some(hasTag)

/** Does the same as `hasMemoryTag` in steps, and remembers the result for the following calls. */
export function* findMemoryTag(message: Message): Work<boolean> {
  const known = memoryTags.get(message)
  if (known !== undefined) return known
  let isFound = false
  for (const text of textsOf(message)) isFound ||= (yield* escapeMemoryTagsInSteps(text)) !== text
  memoryTags.set(message, isFound)
  return isFound
}

/** True if a message takes long to search. */
export const isLong = ({ content, toolCalls }: Message): boolean =>
  content.length > minLongCharacters || toolCalls?.some((call) => call.arguments.length > minLongCharacters) === true

function textsOf({ content, name, toolCalls }: Message): readonly string[] {
  if (name === undefined && toolCalls === undefined) return [content]
  return [content, name ?? '', ...(toolCalls ?? []).flatMap((call) => [call.name, call.arguments])]
}

const hasTag = (text: string): boolean => escapeMemoryTags(text) !== text

/**
 * A rendered entry with its token count. `text` ends with its separator and starts with a character before which every
 * tokenizer splits, so that the count of joined texts is the sum of their counts.
 */
export type Rendering = {
  readonly text: string
  /** As chat messages, mostly one. */
  readonly chat: ChatMessage | readonly ChatMessage[]
  readonly tokens: Tokens
  readonly shortened: boolean
  readonly exact: boolean
}

/** A message sent verbatim at its stored cost. Builds text and chat message on demand: the text is rarely needed. */
export class VerbatimRendering implements Rendering {
  readonly #message: Message
  readonly #tokenizer: Tokenizer

  constructor(message: Message, tokenizer: Tokenizer) {
    this.#message = message
    this.#tokenizer = tokenizer
  }

  get exact(): boolean {
    return this.#tokenizer.isExact(this.#message.content)
  }

  get text(): string {
    return `${formatLine(this.#message)}\n\n`
  }

  get chat(): ChatMessage {
    const { role, content, name, packedPayload } = this.#message
    // The content has no memory tag, so most messages need no conversion.
    if (role !== 'tool' && name === undefined && packedPayload === undefined) return { role, content }
    return withSource(toChatMessage(this.#message), this.#message)
  }

  get tokens(): Tokens {
    return this.#message.tokens
  }

  get shortened(): boolean {
    return false
  }
}
