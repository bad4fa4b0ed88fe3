import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { spokenBy } from '../auth/headers.ts'
import { Refusal } from '../http/httpError.ts'
import type { Answer, Backend, Call } from './backend.ts'
import { hasModel, protocolOf, whoIsAsked } from './choice.ts'
import { type Patience, Upstream, type UpstreamOptions } from './upstream.ts'

/** How often one model server is asked, and how long it may have the client wait in between. */
export type Persistence = { readonly tries: number; readonly wait: Millis; readonly longest: Millis }

export type PoolOptions = {
  readonly upstreams: readonly UpstreamOptions[]
  readonly patience: Patience
  readonly persistence: Persistence
  /** Resolves after so long, or rejects when the signal says so. */
  readonly pause: (time: Millis, signal: AbortSignal) => Promise<void>
  readonly random?: () => number
}

/**
 * Several model servers behind one face. A request goes to the first that has its model; where that one is busy or down,
 * it is asked again and then the next one is. Nothing is asked again once a byte of an answer has gone to the client.
 */
export function poolBackend(options: PoolOptions): Backend {
  const upstreams = options.upstreams.map((upstream) => new Upstream(upstream, options.patience))
  const [first] = upstreams
  if (first === undefined) throw new MemoryError('bad-option', 'There is no upstream to ask.', { param: 'upstreams' })
  const asked = whoIsAsked(upstreams)
  return {
    name: upstreams.map(({ base }) => base).join(', '),
    ask: (call) => askInTurn(suited(asked, call), call, options),
    models: (call) => (asked[spokenBy(call.headers)][0] ?? first).list(call),
    states: () => upstreams.map(({ name, state }) => ({ name, state })),
    close: async () => void (await Promise.all(upstreams.map((upstream) => upstream.close()))),
  }
}

function suited(asked: ReturnType<typeof whoIsAsked<Upstream>>, { dialect, body }: Call): readonly Upstream[] {
  const model = typeof body.model === 'string' ? body.model : ''
  const able = asked[protocolOf(dialect)].filter((upstream) => hasModel(upstream, model))
  if (able.length > 0) return able
  throw new Refusal(
    404,
    'model_not_found',
    `No upstream is configured for the model ${JSON.stringify(model.slice(0, 80))} in this protocol.`,
    'model',
  )
}

/** All but the last are asked once: whoever has another to turn to does not wait. */
async function askInTurn(upstreams: readonly Upstream[], call: Call, options: PoolOptions): Promise<Answer> {
  let retries = 0
  const passedOver: string[] = []
  for (let place = 0; place < upstreams.length; place++) {
    const upstream = upstreams[place] as Upstream
    const isLast = place === upstreams.length - 1
    // A client's own key was meant for the first of them; nobody else gets it.
    const own = upstream.origin === upstreams[0]?.origin ? call : { ...call, isGuarded: true }
    for (let tries = 1; ; tries++) {
      let answer: Answer | undefined
      let error: unknown
      try {
        answer = await upstream.ask(own)
      } catch (thrown) {
        error = thrown
      }
      const wait = isPassing(answer, error, isLast) ? waitAfter(answer, tries, options) : undefined
      const isFinal =
        wait === undefined || (isLast && (tries >= options.persistence.tries || wait > options.persistence.longest))
      if (isFinal && answer === undefined) throw error
      if (isFinal) return retries === 0 ? (answer as Answer) : { ...(answer as Answer), retries, passedOver }
      await letGo(answer)
      retries++
      if (!isLast) {
        passedOver.push(upstream.name)
        break
      }
      await options.pause(wait, call.signal)
    }
  }
  throw new MemoryError('upstream', 'No upstream has answered.')
}

const passing: ReadonlySet<number> = new Set([408, 409, 429, 500, 502, 503, 504, 529])

/** Whether asking again, or somebody else, may help. A server that took all the time there is has had its chance. */
function isPassing(answer: Answer | undefined, error: unknown, isLast: boolean): boolean {
  if (answer !== undefined) return passing.has(answer.status) && answer.headers['x-should-retry'] !== 'false'
  return error instanceof MemoryError && (error.code === 'upstream' || (error.code === 'timeout' && !isLast))
}

/** How long to wait before asking again: as long as the server says, else longer each time. */
function waitAfter(
  answer: Answer | undefined,
  tries: number,
  { persistence, random = Math.random }: PoolOptions,
): Millis {
  return askedToWait(answer) ?? persistence.wait * 2 ** (tries - 1) * (0.5 + random() / 2)
}

/** What the server says about when to come again. */
function askedToWait(answer: Answer | undefined): Millis | undefined {
  const exact = Number.parseFloat(answer?.headers['retry-after-ms'] ?? '')
  if (exact >= 0) return exact
  const text = answer?.headers['retry-after'] ?? ''
  const seconds = Number(text === '' ? Number.NaN : text)
  if (seconds >= 0) return seconds * 1_000
  // A number that makes no sense would be taken for a year.
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** An answer nobody reads leaves its connection to the next one if it has come whole; what is still to come may never come, and is not waited for. */
const letGo = async (answer: Answer | undefined): Promise<unknown> => answer?.body[Symbol.asyncIterator]().return?.()
