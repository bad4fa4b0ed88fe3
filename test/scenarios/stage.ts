import type { Incoming } from '../../src/domain/chat.ts'
import type { Millis, Summary } from '../../src/domain/entry.ts'
import type { Context, Ledger } from '../../src/domain/ledger.ts'
import type { Model } from '../../src/domain/ports.ts'
import { type Memory, type MemoryOptions, openMemory, upkeepWith } from '../../src/index.ts'
import { openaiModel } from '../../src/providers/openai.ts'
import type { UpkeepOptions } from '../../src/upkeep/upkeep.ts'
import { type Behaviour, type Received, replies, startUpstream, type Upstream } from '../providers/upstream.ts'
import { summaryOf } from './scribe.ts'
import { turnAt } from './turns.ts'

/** What a model server is asked for: a summary, important data, or a turn of a conversation. */
export type Purpose = 'summary' | 'facts' | 'chat'

export function purposeOf({ body }: Received): Purpose {
  const system: string = body?.messages?.[0]?.content ?? ''
  if (system.startsWith('Summarize this conversation history')) return 'summary'
  return system.startsWith('You are extracting important structured data') ? 'facts' : 'chat'
}

/** What stands between `<memory>` and `</memory>` in a prompt of upkeep, piece by piece: the earlier summary, if any, then what was said. */
export const dataIn = ({ body }: Received): readonly string[] =>
  Array.from(String(body.messages[1].content).matchAll(/<memory>\n([\s\S]*?)\n<\/memory>/g), ([, data = '']) => data)

/** What a model server does with a request; undefined where it does what it should. */
export type Mood = (purpose: Purpose, request: Received) => Behaviour | undefined

export type Scribe = Upstream & {
  readonly model: Model
  /** What was asked so far, by purpose. */
  asked(purpose: Purpose): readonly Received[]
  /** How it behaves from now on; without a mood, well. */
  turn(mood?: Mood): void
}

export const modelName = 'gpt-4o-mini'

/** A model server that sums up and extracts as it should, and is hostile when told to be. Between two tries nobody waits. */
export async function startScribe(mood: Mood = () => undefined): Promise<Scribe> {
  let current = mood
  const upstream = await startUpstream((request) => {
    const purpose = purposeOf(request)
    return current(purpose, request) ?? well(purpose, request)
  })
  return {
    ...upstream,
    model: openaiModel({ baseUrl: upstream.url, model: modelName, apiKey: 'sk-upkeep', wait: async () => undefined }),
    asked: (purpose) => upstream.requests.filter((request) => purposeOf(request) === purpose),
    turn: (next = () => undefined) => {
      current = next
    },
  }
}

function well(purpose: Purpose, request: Received): Behaviour {
  if (purpose === 'chat') return replies('Noted.')
  if (purpose === 'facts') return replies('```json\n', JSON.stringify(factsIn(dataIn(request).at(-1) ?? '')), '\n```')
  return replies(wellSummed(request))
}

/** The summary that a request asks for. */
export function wellSummed(request: Received): string {
  const [said = '', previous] = [...dataIn(request)].reverse()
  const words = Number(/Word count target: (\d+) words/.exec(request.body.messages[0].content)?.[1])
  return summaryOf(said, previous, words)
}

/** What the user of these scenarios says of importance, as a model would return it. */
function factsIn(said: string): Record<string, unknown> {
  const all = (pattern: RegExp): string[] => Array.from(said.matchAll(pattern), ([, found = '']) => found)
  const [theme] = all(/I prefer (\w+) mode/g)
  const [language] = all(/I prefer answers in (\w+)/g)
  const [sections] = all(/Document structure: ([\w, ]+)\./g)
  return {
    user_preferences: { ...(theme === undefined ? {} : { theme }), ...(language === undefined ? {} : { language }) },
    key_decisions: all(/(We decided to [\w ]+)\./g),
    ...(sections === undefined ? {} : { document_structure: { sections: sections.split(', ') } }),
  }
}

type StagedOptions = Pick<MemoryOptions, 'profile' | 'clock' | 'store'> &
  Pick<UpkeepOptions, 'expire' | 'timeout' | 'model'>

/** A memory with every summary that its upkeep has committed, in order. */
export type Staged = Memory & { readonly committed: readonly Summary[] }

/** Opens a memory with the model given, or with none, and remembers what upkeep commits. */
export async function openStaged({ profile = 'summary', clock, store, ...options }: StagedOptions): Promise<Staged> {
  const committed: Summary[] = []
  const memory = await openMemory({
    profile,
    ...(store === undefined ? {} : { store }),
    ...(clock === undefined ? {} : { clock }),
    upkeep: (means) =>
      upkeepWith(options)({
        ...means,
        onPut: (key, epoch, entries) => {
          committed.push(...entries.filter((entry) => entry.kind === 'summary'))
          means.onPut(key, epoch, entries)
        },
      }),
  })
  return Object.assign(memory, { committed })
}

/** One turn as a chat makes it: the question is stored, a context is built for the reply, the reply is stored. */
export async function takeTurn(
  memory: Memory,
  key: string,
  [question, reply]: readonly [Incoming, Incoming],
): Promise<Context> {
  await memory.append(key, [question], { replyFollows: true })
  const context = await memory.context(key)
  await memory.append(key, [reply], { answers: context.ledger })
  return context
}

/** Turn after turn until the summary has this version, and the rest of upkeep is done; tells how many it took. */
export async function talkUntil(
  memory: Memory,
  key: string,
  version: number,
  from: number,
  most = 200,
): Promise<number> {
  for (let turn = from; turn < from + most; turn++) {
    await takeTurn(memory, key, turnAt(turn))
    await memory.upkeep.settled()
    if ((await memory.upkeep.record(key)).summary_version >= version) return turn + 1 - from
  }
  throw new Error(`after ${most} turns there is no version ${version} of the summary`)
}

/** What did not go as it should, as a receipt tells it. */
export const faultsIn = ({ degraded }: Pick<Ledger, 'degraded'>): string[] =>
  degraded.map(({ step, why }) => `${step} ${why}`)

/** Time-out signals that a test gives: they all come as soon as so many requests hang that no other is on its way. */
export class Alarm {
  private readonly together: number
  private waiting: AbortController[] = []
  private hanging = 0

  constructor(together: number) {
    this.together = together
  }

  /** What waits for a context's patience of ten seconds never ends here. */
  readonly expire = (after: Millis): AbortSignal => {
    const controller = new AbortController()
    if (after > 10_000) this.waiting.push(controller)
    return controller.signal
  }

  /** A request has come and will never be answered. */
  hang(): Behaviour {
    if (++this.hanging >= this.together) this.ring()
    return { does: 'hang' }
  }

  private ring(): void {
    const late = this.waiting
    this.waiting = []
    this.hanging = 0
    for (const controller of late) controller.abort(new DOMException('late', 'TimeoutError'))
  }
}
