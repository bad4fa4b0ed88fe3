import { toAnthropic } from '../../context/anthropic.ts'
import { isObject } from '../../domain/checks.ts'
import type { AnthropicMessage, ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { parseJson, textAt } from '../../providers/json.ts'
import { preludeCost } from '../../text/cost.ts'
import type { Problem } from '../http/httpError.ts'
import { askOf, sentOf } from './ask.ts'
import { instruction, listOf, messagesIn, numberOf } from './chat.ts'
import { demandParts, fewIn } from './checks.ts'
import type { Ask, Body, Dialect, FilePart } from './dialect.ts'
import { resentMedia } from './media.ts'
import { type Block, blocksOf, checkRaw, isResult, type Raw, spokenIn } from './messagesBlocks.ts'
import { hearMessage, messagesListener } from './messagesReply.ts'

/** Anthropic's messages. */
export const messages: Dialect = {
  name: 'messages',
  path: '/messages',
  read,
  write,
  listener: messagesListener,
  hear: hearMessage,
  problem,
  failure: (error) => `event: error\ndata: ${JSON.stringify(problem(error))}\n\n`,
}

function read(body: Body, tokenizer: Tokenizer): Ask {
  const envelope = {
    body,
    model: textAt(body, 'model'),
    streams: body.stream === true,
    maxTokens: numberOf(body.max_tokens),
    session: sessionIn(textAt(body, 'metadata', 'user_id')),
  }
  return askOf(envelope, () => {
    const raw = messagesIn(body).map(checkRaw)
    demandParts(body.system ?? '', 'system', (type) => type === 'text')
    const files: FilePart[] = []
    const spoken = raw.flatMap((one, place) => spokenIn(one, files).map((message) => ({ message, place })))
    // Each result of a tool is a message of its own.
    const sent = fewIn(spoken, 'messages').map(({ message, place }) => sentOf(message, place))
    const system = blocksOf(body.system).map((block) => textAt(block, 'text'))
    const instructions = [
      ...system,
      ...sent.filter(({ role }) => role === 'system').map(({ content }) => content),
    ].filter(Boolean)
    const tools = fewIn(listOf(body.tools), 'tools').map(asChatTool)
    return {
      said: sent.filter(({ role }) => role !== 'system'),
      turn: startOfTurn(raw),
      owed: preludeCost(tokenizer, instructions.map(instruction), tools),
      instructions,
      hasTools: tools.length > 0,
      files,
    }
  })
}

function write(ask: Ask, memory: readonly ChatMessage[], from = ask.turn): Body {
  const raw = ask.body.messages as readonly Raw[]
  const { system, messages: shown } = toAnthropic(memory)
  const instructions = raw.slice(0, from).filter(({ role }) => role === 'system')
  const more = [...instructions.flatMap(({ content }) => blocksOf(content)), ...(system === '' ? [] : blocksOf(system))]
  const before = withMedia(shown, resentMedia(ask.said, raw, from))
  return {
    ...ask.body,
    ...(more.length === 0 ? {} : { system: extended(ask.body.system, more) }),
    messages: joined(before, raw.slice(from)),
  }
}

/** What memory shows, with the pictures that the client has sent again in the place of the words for them. */
function withMedia(shown: readonly AnthropicMessage[], resent: ReadonlyMap<string, Raw>): readonly Raw[] {
  if (resent.size === 0) return shown
  return shown.map((message): Raw => {
    const { role, content } = message
    if (role !== 'user') return message
    if (typeof content === 'string') return resent.get(content) ?? message
    return {
      role,
      content: content.flatMap((block) =>
        blocksOf((block.type === 'text' && resent.get(block.text)?.content) || [block]),
      ),
    }
  })
}

/** The client's own words stay in front, as they are: it may have marked them for the cache. */
const extended = (own: unknown, more: readonly Block[]): readonly Block[] => [
  ...(own === '' ? [] : blocksOf(own)),
  ...more,
]

/** Where memory ends with the user and the client begins with the user, they are one turn: results of tools must not stand apart from each other. */
function joined(memory: readonly Raw[], own: readonly Raw[]): readonly Raw[] {
  const [last, first] = [memory.at(-1), own[0]]
  if (last?.role !== 'user' || first?.role !== 'user') return [...memory, ...own]
  const blocks = [...blocksOf(last.content), ...blocksOf(first.content)]
  const content = [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))]
  return [...memory.slice(0, -1), { ...first, content }, ...own.slice(1)]
}

/**
 * The place of the newest message in which the user asks something, or of the first of several in a row; those with which a
 * client begins may each have had a reply that it leaves to memory. Where results of tools stand beside the words, the turn
 * has begun before. A client that leaves its history to memory may send results alone: then all it sends belongs to the turn.
 */
function startOfTurn(raw: readonly Raw[]): number {
  const isUsers = ({ role, content }: Raw, of: (blocks: readonly Block[]) => boolean): boolean =>
    role === 'user' && of(blocksOf(content))
  const isOnlyWords = (one: Raw): boolean => isUsers(one, (blocks) => !blocks.some(isResult))
  const asked = raw.findLastIndex((one) => isUsers(one, (blocks) => !blocks.every(isResult)))
  const begun = raw.slice(0, asked + 1).findLastIndex(isOnlyWords)
  const before = raw.slice(0, Math.max(0, begun)).findLastIndex((one) => one.role !== 'system' && !isOnlyWords(one))
  if (begun >= 0 && before < 0) return begun
  const first = raw.findIndex(({ role }, place) => place > before && role !== 'system')
  return first >= 0 ? first : raw.length
}

/** Nothing else is worth a try: failing costs as much as reading ten messages. */
const isJsonObject = /^\s*\{/

/** What names the session; coding agents write it behind or between the names of the device and the account. */
function sessionIn(user: string): string | undefined {
  const session =
    (isJsonObject.test(user) && textAt(parseJson(user), 'session_id')) || /_session_([\w-]+)$/.exec(user)?.[1] || user
  return session.trim() === '' ? undefined : session
}

/** A tool as chat completions define it, by which it is priced. */
function asChatTool(tool: unknown): unknown {
  if (!isObject(tool) || tool.input_schema === undefined) return tool
  const { input_schema: parameters, cache_control: _marked, ...definition } = tool
  return { type: 'function', function: { ...definition, parameters } }
}

const types: Readonly<Record<string, string>> = {
  invalid_request_error: 'invalid_request_error',
  authentication_error: 'authentication_error',
  permission_error: 'permission_error',
  not_found_error: 'not_found_error',
  conflict_error: 'invalid_request_error',
  moved_error: 'not_found_error',
  rate_limit_error: 'rate_limit_error',
  timeout_error: 'timeout_error',
}
const codes: Readonly<Record<string, string>> = {
  body_too_large: 'request_too_large',
  closed: 'overloaded_error',
  busy: 'overloaded_error',
}

/** An error in the words Anthropic has for it; what it has none for is the server's own fault. */
function problem({ message, type, code }: Problem['error']): unknown {
  return { type: 'error', error: { type: codes[code ?? ''] ?? types[type] ?? 'api_error', message } }
}
