import { MemoryError } from '../domain/error.ts'
import { type Key, parseKey } from '../domain/key.ts'
import { Refusal } from './problem.ts'

/** What stands in the place of `{name}` in an address, decoded. */
export type Params = Readonly<Record<string, string>>

type Pattern<T> = { readonly name: string; readonly path: string; readonly segments: readonly Segment[]; readonly handler: T }
/** A piece of an address: the text itself, or the name of what stands there. */
type Segment = { readonly text: string; readonly open: string | undefined }
/** Who answers, under which name and template of an address, with what the template left open. */
type Route<T> = Pick<Pattern<T>, 'name' | 'path' | 'handler'> & { readonly params: Params }

/** Finds who answers a request by its method and address, such as `POST /v1/{key}/chat/completions`. */
export class Router<T> {
  private readonly patterns = new Map<string, Pattern<T>[]>()

  constructor(handlers: Readonly<Record<string, T>>) {
    for (const [name, handler] of Object.entries(handlers)) {
      const [method = '', path = ''] = name.split(' ')
      const segments = path.split('/').slice(1).map(segmentOf)
      const group = this.patterns.get(`${method} ${segments.length}`) ?? []
      this.patterns.set(`${method} ${segments.length}`, [...group, { name, path, segments, handler }])
    }
  }

  /** The handler with what its pattern left open; what nobody answers is refused with what there is. */
  find(method: string, address: string): Route<T> {
    const pieces = address.split('/')
    // Only the head of what is answered to a HEAD goes out: the platform sees to that.
    const answered = method === 'HEAD' ? 'GET' : method
    for (const { name, path, segments: wanted, handler } of this.patterns.get(`${answered} ${pieces.length - 1}`) ?? []) {
      if (fits(wanted, pieces)) return { name, path, handler, params: paramsOf(wanted, pieces) }
    }
    throw this.unknown(method, address, pieces)
  }

  private unknown(method: string, path: string, pieces: readonly string[]): Refusal {
    const methods = [...this.patterns.entries()].flatMap(([group, patterns]) =>
      patterns.some(({ segments: wanted }) => wanted.length === pieces.length - 1 && fits(wanted, pieces)) ? [group.split(' ')[0] as string] : [],
    )
    if (methods.length > 0) {
      const message = `${path.slice(0, 200)} takes ${methods.join(' and ')}, not ${method}.`
      return new Refusal(405, 'method_not_allowed', message, null, { headers: { allow: methods.join(', ') } })
    }
    return new Refusal(404, 'unknown_url', `Unknown request: ${method} ${path.slice(0, 200)}. GET /openapi.json tells what Threadkeep answers.`)
  }
}

const segmentOf = (text: string): Segment => ({ text, open: text.startsWith('{') ? text.slice(1, -1) : undefined })

/** Whether an address is of this form, from its first slash on; nothing is no name of anything. */
const fits = (wanted: readonly Segment[], pieces: readonly string[]): boolean =>
  wanted.every(({ text, open }, place) => (open === undefined ? text === pieces[place + 1] : pieces[place + 1] !== ''))

function paramsOf(wanted: readonly Segment[], pieces: readonly string[]): Params {
  const params: Record<string, string> = {}
  wanted.forEach(({ open }, place) => {
    if (open !== undefined) params[open] = decoded(pieces[place + 1] ?? '')
  })
  return params
}

/** Decoded once: what is still encoded after that is no key. */
function decoded(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch (cause) {
    throw new MemoryError('bad-key', 'The key in the address is not encoded properly. Write scope or scope:session, for example acme:+15551234567.', {
      param: 'key',
      cause,
    })
  }
}

/** The key in an address; keys are checked here and nowhere later. */
export const keyIn = ({ key }: Params): Key | undefined => (key === undefined ? undefined : parseKey(key))
