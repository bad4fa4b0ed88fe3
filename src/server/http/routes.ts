import { MemoryError } from '../../domain/error.ts'
import { type Key, parseKey } from '../../domain/key.ts'
import { Refusal } from './problem.ts'

/** What stands in the place of `{name}` in an address, decoded. */
export type Params = Readonly<Record<string, string>>

/** A form of address; `open` names what stands in the places it leaves open. */
type Pattern<T> = {
  readonly name: string
  readonly path: string
  readonly form: RegExp
  readonly open: readonly string[]
  readonly handler: T
}
/** Who answers, under which name and template of an address, with what the template left open. */
type Route<T> = Pick<Pattern<T>, 'name' | 'path' | 'handler'> & { readonly params: Params }

/** Finds who answers a request by its method and address, such as `POST /v1/{key}/chat/completions`. */
export class Router<T> {
  private readonly patterns = new Map<string, Pattern<T>[]>()

  constructor(handlers: Readonly<Record<string, T>>) {
    for (const [name, handler] of Object.entries(handlers)) {
      const [method = '', path = ''] = name.split(' ')
      const group = this.patterns.get(method) ?? []
      this.patterns.set(method, [...group, { name, path, form: formOf(path), open: openIn(path), handler }])
    }
  }

  /** The handler with what its pattern left open; what nobody answers is refused with what there is. */
  find(method: string, address: string): Route<T> {
    // Only the head of what is answered to a HEAD goes out: the platform sees to that.
    for (const { name, path, form, open, handler } of this.patterns.get(method === 'HEAD' ? 'GET' : method) ?? []) {
      const found = form.exec(address)
      if (found !== null) return { name, path, handler, params: paramsOf(open, found) }
    }
    throw this.unknown(method, address)
  }

  private unknown(method: string, path: string): Refusal {
    const methods = [...this.patterns].flatMap(([known, patterns]) =>
      patterns.some(({ form }) => form.test(path)) ? [known] : [],
    )
    if (methods.length > 0) {
      const message = `${path.slice(0, 200)} takes ${methods.join(' and ')}, not ${method}.`
      return new Refusal(405, 'method_not_allowed', message, null, { headers: { allow: methods.join(', ') } })
    }
    return new Refusal(
      404,
      'unknown_url',
      `Unknown request: ${method} ${path.slice(0, 200)}. GET /openapi.json tells what Threadkeep answers.`,
    )
  }
}

const places = /\{(\w+)\}/g
const openIn = (path: string): readonly string[] => [...path.matchAll(places)].map(([, name]) => name as string)

/** An address counts from its first slash on; nothing is no name of anything. */
const formOf = (path: string): RegExp =>
  new RegExp(`^[^/]*${path.replaceAll('.', '\\.').replaceAll(places, '([^/]+)')}$`)

function paramsOf(open: readonly string[], found: readonly string[]): Params {
  const params: Record<string, string> = {}
  for (let place = 0; place < open.length; place++) params[open[place] as string] = decoded(found[place + 1] as string)
  return params
}

/** Decoded once: what is still encoded after that is no key. */
function decoded(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch (cause) {
    throw new MemoryError(
      'bad-key',
      'The key in the address is not encoded properly. Write scope or scope:session, for example acme:+15551234567.',
      {
        param: 'key',
        cause,
      },
    )
  }
}

/** The key in an address; keys are checked here and nowhere later. */
export const keyIn = ({ key }: Params): Key | undefined => (key === undefined ? undefined : parseKey(key))
