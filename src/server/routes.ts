import { MemoryError } from '../domain/error.ts'
import { type Key, parseKey } from '../domain/key.ts'
import { Refusal } from './problem.ts'

/** What a request is for. */
export type Route =
  | { readonly to: 'health' }
  | { readonly to: 'optimizer'; readonly where: string | undefined }
  | { readonly to: 'models' }
  | { readonly to: 'chat'; readonly key: Key }

const known = 'POST /v1/{key}/chat/completions, GET /v1/{key}/models, GET /v1/models, GET /learning/optimizer/status and GET /healthz'

/** Reads method and address of a request; keys are checked here and nowhere later. */
export function routeOf(method: string, target: string): Route {
  const path = target.split('?', 1)[0] ?? ''
  const [root, ...parts] = path.split('/').slice(1)
  const [key, ...verb] = parts
  if (method === 'GET' && path === '/healthz') return { to: 'health' }
  if (method === 'GET' && path === '/learning/optimizer/status') return { to: 'optimizer', where: keyIn(target) }
  if (method === 'GET' && path === '/v1/models') return { to: 'models' }
  if (root === 'v1' && key !== undefined) {
    if (method === 'POST' && verb.join('/') === 'chat/completions') return { to: 'chat', key: keyOf(key) }
    if (method === 'GET' && verb.join('/') === 'models') {
      keyOf(key)
      return { to: 'models' }
    }
  }
  throw new Refusal(404, 'unknown_url', `Unknown request: ${method} ${path.slice(0, 200)}. Threadkeep answers ${known}.`)
}

/** The session or scope a request asks about, if it names one. */
function keyIn(target: string): string | undefined {
  return new URL(target, 'http://localhost').searchParams.get('key') ?? undefined
}

/** Decoded once: what is still encoded after that is no key. */
function keyOf(segment: string): Key {
  let text: string
  try {
    text = decodeURIComponent(segment)
  } catch (cause) {
    throw new MemoryError('bad-key', 'The key in the address is not encoded properly. Write scope or scope:session, for example acme:+15551234567.', {
      param: 'key',
      cause,
    })
  }
  return parseKey(text)
}
