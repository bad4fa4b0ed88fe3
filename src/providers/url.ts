import { MemoryError } from '../domain/error.ts'

/**
 * Builds the URL of an endpoint below a base URL and keeps the query of the base URL.
 *
 * @param suffix removed from the end of the base path when it is there already.
 * @throws MemoryError `bad-option` when the base URL is not http(s) or contains credentials.
 *
 * @example
 * buildEndpointUrl('http://localhost:11434/v1/', '/chat/completions').href // 'http://localhost:11434/v1/chat/completions'
 * buildEndpointUrl('https://api.anthropic.com/v1', '/v1/messages', '/v1').href // 'https://api.anthropic.com/v1/messages'
 */
export function buildEndpointUrl(baseUrl: string, path: string, suffix = ''): URL {
  const url = parseBaseUrl(baseUrl)
  const basePath = url.pathname.replace(/\/$/, '')
  url.pathname = (suffix !== '' && basePath.endsWith(suffix) ? basePath.slice(0, -suffix.length) : basePath) + path
  url.hash = ''
  return url
}

/** Formats a URL for error messages without its query, because some services expect the API key there. */
export const stripQuery = (url: URL): string => url.origin + url.pathname

function parseBaseUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new MemoryError(
      'bad-option',
      'baseUrl is not an http:// or https:// address. Use one such as http://localhost:11434/v1.',
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
