import type { MessageInput } from '../../src/domain/chat.ts'
import type { Millis, Summary } from '../../src/domain/entry.ts'
import type { Context, Degradation } from '../../src/domain/ledger.ts'
import type { Model } from '../../src/domain/ports.ts'
import { createUpkeep, type Memory, type MemoryOptions, openMemory } from '../../src/index.ts'
import { openaiModel } from '../../src/providers/openai.ts'
import type { UpkeepOptions } from '../../src/upkeep/upkeep.ts'
import { type Behaviour, type RecordedRequest, replyWith, startUpstream, type Upstream } from '../providers/upstream.ts'
import { sampleTurn } from './sampleTurns.ts'

/** Purpose of a model request: a summary, important data, or a chat turn. */
export type Purpose = 'summary' | 'facts' | 'chat'

export function purposeOf({ body }: RecordedRequest): Purpose {
  const system: string = body?.messages?.[0]?.content ?? ''
  if (system.startsWith('Summarize this conversation history')) return 'summary'
  return system.startsWith('You are extracting important structured data') ? 'facts' : 'chat'
}

/** The contents of the `<memory>` blocks in an upkeep prompt: the previous summary, if any, then the messages. */
export const memoryBlocksIn = ({ body }: RecordedRequest): readonly string[] =>
  Array.from(String(body.messages[1].content).matchAll(/<memory>\n([\s\S]*?)\n<\/memory>/g), ([, data = '']) => data)

/** Overrides the response to a request; undefined keeps the default. */
export type ResponseOverride = (purpose: Purpose, request: RecordedRequest) => Behaviour | undefined

export type UpkeepModel = Upstream & {
  readonly model: Model
  /** Requests received so far for a purpose. */
  requestsFor(purpose: Purpose): readonly RecordedRequest[]
  /** Sets the behaviour from now on; without an argument, the default. */
  setOverride(override?: ResponseOverride): void
}

export const modelName = 'gpt-4o-mini'

/** Starts a model server that summarises and extracts correctly unless overridden. Retries do not wait. */
export async function startUpkeepModel(override: ResponseOverride = () => undefined): Promise<UpkeepModel> {
  let current = override
  const upstream = await startUpstream((request) => {
    const purpose = purposeOf(request)
    return current(purpose, request) ?? defaultResponse(purpose, request)
  })
  return {
    ...upstream,
    model: openaiModel({ baseUrl: upstream.url, model: modelName, apiKey: 'sk-upkeep', sleep: async () => undefined }),
    requestsFor: (purpose) => upstream.requests.filter((request) => purposeOf(request) === purpose),
    setOverride: (next = () => undefined) => {
      current = next
    },
  }
}

function defaultResponse(purpose: Purpose, request: RecordedRequest): Behaviour {
  if (purpose === 'chat') return replyWith('Noted.')
  const data = ['```json\n', JSON.stringify(extractFacts(memoryBlocksIn(request).at(-1) ?? '')), '\n```'] as const
  if (purpose === 'facts') return replyWith(...data)
  return replyWith(correctSummary(request), ...(asksForData(request) ? ['\n\nIMPORTANT DATA\n', ...data] : []))
}

/** True if a summary request asks for the important data too. */
export const asksForData = ({ body }: RecordedRequest): boolean =>
  String(body.messages[0].content).includes('write a line with the words IMPORTANT DATA alone')

/** Answers with a correct summary and this text as the important data. */
export const dataWith =
  (text: string): ResponseOverride =>
  (purpose, request) =>
    purpose === 'summary' ? replyWith(`${correctSummary(request)}\n\nIMPORTANT DATA\n${text}`) : undefined

/** A correct summary for the request. */
export function correctSummary(request: RecordedRequest): string {
  const [messages = '', previous] = [...memoryBlocksIn(request)].reverse()
  const words = Number(/Word count target: (\d+) words/.exec(request.body.messages[0].content)?.[1])
  return writeSummary(messages, previous, words)
}

/** Shorter starts of messages say nothing. */
const minStartWords = 16

/**
 * Builds the summary that a correct model would write: the previous summary, then every rule, address and decision, then the
 * start of later messages, in exactly `words` words if there is enough text.
 */
export function writeSummary(messages: string, previous: string | undefined, words: number): string {
  const lines = messages.split('\n').filter((line) => line.trim() !== '')
  const previousPart = firstWords(previous ?? '', Math.floor(words * 0.7))
  const important = lines
    .flatMap((line) => line.split(/(?<=[.!])\s+/))
    .filter((sentence) => /\bnever\b|:\/\/|\w-\d|\/\w+\.\w+|\bdecided\b/i.test(sentence))
  const room = words - countOf(previousPart) - countOf(important.join(' '))
  const each = Math.max(minStartWords, Math.floor(room / lines.length))
  const share = Math.min(1, room / each / lines.length)
  const starts = lines
    .filter((_, at) => at === lines.length - 1 || Math.floor((at + 1) * share) > Math.floor(at * share))
    .map((line) => firstWords(line, each))
  const rest = (lines.at(-1) ?? '').slice(starts.at(-1)?.length ?? 0).trim()
  return firstWords([previousPart, ...important, ...starts, rest].filter((part) => part !== '').join('\n'), words)
}

const countOf = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length

/** The first `count` words, with line breaks preserved. */
const firstWords = (text: string, count: number): string =>
  new RegExp(`^\\s*(?:\\S+\\s*){0,${Math.max(0, count)}}`).exec(text)?.[0].trim() ?? ''

/** The important data of these scenarios' conversations, as a model would return it. */
function extractFacts(messages: string): Record<string, unknown> {
  const all = (pattern: RegExp): string[] => Array.from(messages.matchAll(pattern), ([, found = '']) => found)
  const [theme] = all(/I prefer (\w+) mode/g)
  const [language] = all(/I prefer answers in (\w+)/g)
  const [sections] = all(/Document structure: ([\w, ]+)\./g)
  return {
    user_preferences: { ...(theme === undefined ? {} : { theme }), ...(language === undefined ? {} : { language }) },
    key_decisions: all(/(We decided to [\w ]+)\./g),
    ...(sections === undefined ? {} : { document_structure: { sections: sections.split(', ') } }),
  }
}

type RecordingMemoryOptions = Pick<MemoryOptions, 'profile' | 'clock' | 'store'> &
  Pick<UpkeepOptions, 'timeoutSignal' | 'timeout' | 'model'>

/** A memory with every summary that upkeep committed, in order. */
export type RecordingMemory = Memory & { readonly committed: readonly Summary[] }

/** Opens a memory, with the model if one is given, and records the summaries that upkeep commits. */
export async function openRecordingMemory({
  profile = 'summary',
  clock,
  store,
  ...options
}: RecordingMemoryOptions): Promise<RecordingMemory> {
  const committed: Summary[] = []
  const memory = await openMemory({
    profile,
    ...(store === undefined ? {} : { store }),
    ...(clock === undefined ? {} : { clock }),
    upkeep: (deps) =>
      createUpkeep(options)({
        ...deps,
        onPut: (key, epoch, entries) => {
          committed.push(...entries.filter((entry) => entry.kind === 'summary'))
          deps.onPut(key, epoch, entries)
        },
      }),
  })
  return Object.assign(memory, { committed })
}

/** Runs one chat turn: stores the question, builds the context, stores the reply. */
export async function runTurn(
  memory: Memory,
  key: string,
  [question, reply]: readonly [MessageInput, MessageInput],
): Promise<Context> {
  await memory.append(key, [question], { replyFollows: true })
  const context = await memory.context(key)
  await memory.append(key, [reply], { answers: context.ledger })
  return context
}

/** Runs turns until the summary has this version and upkeep is idle; returns the number of turns. */
export async function runTurnsUntil(
  memory: Memory,
  key: string,
  version: number,
  from: number,
  maxTurns = 200,
): Promise<number> {
  for (let turn = from; turn < from + maxTurns; turn++) {
    await runTurn(memory, key, sampleTurn(turn))
    await memory.upkeep.whenIdle()
    if ((await memory.upkeep.record(key)).summary_version >= version) return turn + 1 - from
  }
  throw new Error(`after ${maxTurns} turns there is no version ${version} of the summary`)
}

/** Degradations of a receipt or of the health report, as `step reason`. */
export const formatFaults = ({ degraded }: { readonly degraded: readonly Degradation[] }): string[] =>
  degraded.map(({ step, why }) => `${step} ${why}`)

/** Timeout signals under the test's control: all of them fire once `requestCount` requests hang. */
export class ManualTimeouts {
  private readonly requestCount: number
  private waiting: AbortController[] = []
  private hanging = 0

  constructor(requestCount: number) {
    this.requestCount = requestCount
  }

  /** Signals for at most 10 s, a context's own timeout, never fire. */
  readonly expire = (after: Millis): AbortSignal => {
    const controller = new AbortController()
    if (after > 10_000) this.waiting.push(controller)
    return controller.signal
  }

  /** Records a request that is never answered. */
  hang(): Behaviour {
    if (++this.hanging >= this.requestCount) this.fireAll()
    return { does: 'hang' }
  }

  private fireAll(): void {
    const controllers = this.waiting
    this.waiting = []
    this.hanging = 0
    for (const controller of controllers) controller.abort(new DOMException('late', 'TimeoutError'))
  }
}
