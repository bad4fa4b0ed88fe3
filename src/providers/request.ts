import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { shownAddress } from './address.ts'
import { readText, type Watched, watch } from './body.ts'
import { type Deadline, defaultTimeouts, pause, startDeadline, type Timeouts } from './deadline.ts'
import { type Check, networkCode, refused, unreachable, wordOf } from './failure.ts'
import { parseJson } from './json.ts'

/** Lets time pass between two tries; rejects when the signal says so. */
export type Wait = (ms: Millis, signal: AbortSignal) => Promise<void>

/** How requests are made, whatever they ask. */
export type Manner = {
  readonly timeouts?: Partial<Timeouts> | undefined
  readonly wait?: Wait | undefined
  /** How often a request is made at most while the upstream is busy or down; three times when left out. */
  readonly tries?: number | undefined
}

export type Posting = Manner & {
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  /** The model asked for, as errors name it. */
  readonly model: string
  readonly check: Check
  readonly signal?: AbortSignal | undefined
}

/** A successful answer whose body is under the request's deadline. */
export type Answer = Watched & { readonly where: string; readonly type: string }

type Failure = {
  readonly error: MemoryError
  readonly kind: 'busy' | 'down' | 'final'
  readonly after?: Millis | undefined
}

const mostTries = 3
const longestPause: Millis = 30_000
const longestComplaint = 65_536
/** Connections a server closes while they lie idle end like this on their next use. */
const stale: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/**
 * Posts JSON and resolves once a success is on its way, after up to two more tries when the upstream is busy or down.
 *
 * @example
 * const answer = await post(endpoint(baseUrl, '/chat/completions'), { headers, body, model, check, signal })
 */
export async function post(url: URL, posting: Posting): Promise<Answer> {
  const where = shownAddress(url)
  const times = { ...defaultTimeouts, ...posting.timeouts }
  const request = requestOf(posting)
  const deadline = startDeadline(where, times.total, posting.signal)
  try {
    const response = await persist(where, posting, deadline, () => {
      deadline.expect(
        times.first,
        `${where} did not answer within ${times.first} ms. Try again, or allow more time for the first byte.`,
      )
      return fetch(url, { ...request, signal: deadline.signal })
    })
    return { where, type: response.headers.get('content-type') ?? '', ...watch(response, where, deadline, times.idle) }
  } catch (error) {
    deadline.end()
    throw deadline.signal.aborted ? deadline.signal.reason : error
  }
}

function requestOf(posting: Posting): RequestInit {
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream, application/json',
    ...posting.headers,
  }
  for (const [name, value] of Object.entries(headers)) {
    // The platform's own error would quote the value, which may be a key.
    if (!/^[\x20-\x7e]*$/.test(value)) {
      throw new MemoryError(
        'bad-option',
        `The ${name} header holds characters that cannot be sent. Check ${posting.check.key} for stray line ends.`,
        {
          param: 'headers',
        },
      )
    }
  }
  // Not followed: a redirected POST loses its body, and the key would go to an address nobody named.
  return { method: 'POST', headers, body: JSON.stringify(posting.body), redirect: 'manual' }
}

async function persist(
  where: string,
  posting: Posting,
  deadline: Deadline,
  send: () => Promise<Response>,
): Promise<Response> {
  for (let tries = 1; ; tries++) {
    deadline.signal.throwIfAborted()
    const outcome = await attempt(where, posting, tries, send)
    if (outcome instanceof Response) return outcome
    deadline.met()
    const wait = pauseBefore(tries, posting.tries ?? mostTries, outcome)
    if (wait === undefined) throw outcome.error
    await (posting.wait ?? pause)(wait, deadline.signal)
  }
}

async function attempt(
  where: string,
  posting: Posting,
  tries: number,
  send: () => Promise<Response>,
): Promise<Response | Failure> {
  let response: Response
  try {
    response = await send()
  } catch (error) {
    return { error: unreachable(where, error, posting.check), kind: stale.has(networkCode(error)) ? 'down' : 'final' }
  }
  if (response.ok) return response
  const word = await complaint(response)
  const { model, check } = posting
  return {
    error: refused(where, { status: response.status, word, tries, model, check }),
    kind: kindOf(response.status, word),
    after: askedPause(response.headers),
  }
}

function kindOf(status: number, word: string): Failure['kind'] {
  if (status === 429) return word === 'insufficient_quota' ? 'final' : 'busy'
  return status >= 500 && status !== 501 ? 'down' : 'final'
}

/** How long to pause before the next try, or undefined if there should be none. */
function pauseBefore(tries: number, most: number, failure: Failure): Millis | undefined {
  if (tries >= most || failure.kind === 'final') return undefined
  const wait = failure.after ?? 500 * 3 ** (tries - 1)
  return wait <= longestPause ? wait : undefined
}

/** What a Retry-After header asks for: seconds, or a date, which is measured by the server's own clock. */
function askedPause(headers: Headers): Millis | undefined {
  const asked = headers.get('retry-after')?.trim() ?? ''
  if (/^\d{1,9}$/.test(asked)) return Number(asked) * 1_000
  const wait = asked.endsWith('GMT') ? Date.parse(asked) - Date.parse(headers.get('date') ?? '') : Number.NaN
  return Number.isNaN(wait) ? undefined : Math.max(0, wait)
}

/** The provider's word for its refusal, if it gives one in a body of reasonable size. */
async function complaint(response: Response): Promise<string> {
  if (response.body === null) return ''
  const text = await readText(response.body, longestComplaint).catch(() => '')
  return wordOf(parseJson(text ?? ''))
}
