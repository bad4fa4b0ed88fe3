import { MemoryError } from '../domain/error.ts'

/**
 * The address of a route below a base address, whose query is kept; `ending` is a part of the path that may have been
 * written at the end of the base already.
 *
 * @example
 * endpoint('http://localhost:11434/v1/', '/chat/completions').href // 'http://localhost:11434/v1/chat/completions'
 * endpoint('https://api.anthropic.com/v1', '/v1/messages', '/v1').href // 'https://api.anthropic.com/v1/messages'
 */
export function endpoint(base: string, route: string, ending = ''): URL {
  const url = parse(base)
  const path = url.pathname.replace(/\/$/, '')
  url.pathname = (ending !== '' && path.endsWith(ending) ? path.slice(0, -ending.length) : path) + route
  url.hash = ''
  return url
}

/** An address as errors show it: without its query, where some services want a key. */
export const shownAddress = (url: URL): string => url.origin + url.pathname

function parse(base: string): URL {
  const url = URL.canParse(base) ? new URL(base) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new MemoryError(
      'bad-option',
      'baseUrl is not an http:// or https:// address. Write one such as http://localhost:11434/v1.',
      { param: 'baseUrl' },
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new MemoryError(
      'bad-option',
      'baseUrl holds a user name or password, which cannot be sent that way. Pass the key as apiKey.',
      { param: 'baseUrl' },
    )
  }
  return url
}
