import { describe, expect, it } from 'vitest'
import {
  checkHost,
  checkOrigin,
  corsHeaders,
  type HostPolicy,
  isPreflight,
  parseHostPolicy,
  preflightHeaders,
} from '../../../src/server/http/hostPolicy.ts'
import { HttpError } from '../../../src/server/http/httpError.ts'

const localPolicy = parseHostPolicy({
  listenAddress: '127.0.0.1',
  hosts: ['Memory.test:4848'],
  origins: ['https://chat.example.com', 'chrome-extension://abcdefghijklmnop'],
})
const publicPolicy: HostPolicy = { listenAddress: '0.0.0.0', hosts: [], origins: [] }

const outcomeOf = (check: () => unknown): unknown => {
  try {
    return check() ?? 'fine'
  } catch (error) {
    return error instanceof HttpError ? `${error.status} ${error.code}: ${error.message}` : error
  }
}

describe('the Host header', () => {
  it('a loopback or configured name › is accepted', () => {
    for (const listening of ['127.0.0.1', '::1', 'localhost', '127.0.0.53'])
      for (const host of [
        'localhost',
        'localhost:4848',
        'LOCALHOST.:80',
        '127.0.0.1:4848',
        '127.9.8.7',
        '[::1]',
        '[::1]:4848',
        'memory.test',
        'MEMORY.test:1',
      ])
        expect([host, outcomeOf(() => checkHost(host, { ...localPolicy, listenAddress: listening }))]).toEqual([
          host,
          'fine',
        ])
  })

  it('any other name › is refused, against DNS rebinding', () => {
    const message =
      'This server does not answer to the host "evil.example:4848". Use localhost or 127.0.0.1, or add the name to the allowed hosts.'
    expect(outcomeOf(() => checkHost('evil.example:4848', localPolicy))).toBe(`421 misdirected_request: ${message}`)
    const others = [
      '',
      '127.0.0.1.evil.example',
      '127.evil.example',
      'localhost.evil.example',
      'evil.localhost',
      'memory.test.evil.example',
      '10.0.0.1',
      '[::2]',
    ]
    const broken = [
      'localhost:4848:1',
      'localhost@evil.example',
      'localhost/evil',
      'local host',
      '127.0.0.1:x',
      '[::1',
      '127.0.0',
      '2130706433',
      '127.0.0.256',
    ]
    for (const host of [undefined, ...others, ...broken])
      expect([host, outcomeOf(() => checkHost(host, localPolicy))]).toEqual([
        host,
        expect.stringMatching(/^421 misdirected_request: /),
      ])
  })

  it('with a public listener and no configured names › any name is accepted', () => {
    for (const host of ['memory.lan', '10.0.0.1:4848', undefined])
      expect(outcomeOf(() => checkHost(host, publicPolicy))).toBe('fine')
    const known = { ...publicPolicy, hosts: ['memory.lan'] }
    for (const host of ['memory.lan', '10.0.0.1:4848', '[2001:db8::1]:4848', 'localhost'])
      expect(outcomeOf(() => checkHost(host, known))).toBe('fine')
    expect(outcomeOf(() => checkHost('evil.example', known))).toMatch(/^421 /)
  })
})

describe('the Origin header', () => {
  const from = (headers: Record<string, string>, method = 'POST') =>
    outcomeOf(() => checkOrigin(method, { host: 'localhost:4848', ...headers }, localPolicy))

  it('of the server itself or a configured origin › is accepted', () => {
    for (const headers of [
      {},
      { origin: 'http://localhost:4848' },
      { origin: 'https://localhost:4848' },
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ])
      expect(from(headers)).toBe('fine')
    for (const origin of ['https://chat.example.com', 'chrome-extension://abcdefghijklmnop'])
      expect(from({ origin })).toBe(origin)
  })

  it('of any other origin › is refused', () => {
    const message = 'Web pages of https://evil.example may not use this server. Add that origin to the allowed origins.'
    expect(from({ origin: 'https://evil.example' })).toBe(`403 origin_not_allowed: ${message}`)
    const others = [
      'null',
      '',
      '*',
      'http://localhost',
      'http://localhost:3000',
      'http://localhost:48480',
      'http://chat.example.com',
      'https://chat.example.com.evil.example',
    ]
    for (const origin of [...others, 'chrome-extension://other', 'https://chat.example.com, https://evil.example'])
      expect([origin, from({ origin })]).toEqual([origin, expect.stringMatching(/^403 /)])
  })

  it('missing, with cross-site fetch metadata › is refused except for navigation', () => {
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    expect(from(link, 'GET')).toBe('fine')
    expect(from(link, 'POST')).toMatch(/^403 /)
    expect(from({ ...link, 'sec-fetch-dest': 'iframe' }, 'GET')).toMatch(/^403 /)
    expect(
      from({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }, 'GET'),
    ).toMatch(/^403 /)
    expect(from({ 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' }, 'GET')).toMatch(/^403 /)
  })

  it('preflight of an allowed origin › lists what is allowed', () => {
    const headers = {
      origin: 'https://chat.example.com',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization, content-type',
    }
    expect([
      isPreflight('OPTIONS', headers),
      isPreflight('POST', headers),
      isPreflight('OPTIONS', { origin: 'https://a.test' }),
    ]).toEqual([true, false, false])
    expect(preflightHeaders(headers.origin, { ...headers, 'access-control-request-private-network': 'true' })).toEqual({
      'access-control-allow-origin': 'https://chat.example.com',
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': 'authorization, content-type',
      'access-control-allow-private-network': 'true',
      'access-control-expose-headers': corsHeaders('x')['access-control-expose-headers'],
      'access-control-max-age': '600',
      vary: 'origin, access-control-request-headers, access-control-request-private-network',
    })
    expect(
      preflightHeaders(headers.origin, { ...headers, 'access-control-request-headers': 'a\r\nset-cookie: b' }),
    ).not.toHaveProperty('access-control-allow-headers')
    expect(corsHeaders('https://chat.example.com')).not.toHaveProperty('access-control-allow-credentials')
  })
})

describe('configured hosts and origins', () => {
  it('are validated at start', () => {
    const create = (part: Partial<HostPolicy>) => () => parseHostPolicy({ ...publicPolicy, ...part })
    for (const name of ['*', '*.example.com', 'https://a.test', 'a b', ''])
      expect(create({ hosts: [name] })).toThrow('it must be a name such as memory.example.com')
    for (const origin of ['*', 'null', 'https://*.example.com', 'https://a.test/', 'a.test', 'https://u@a.test'])
      expect(create({ origins: [origin] })).toThrow(
        'it must be an origin such as https://chat.example.com, without a path',
      )
  })
})
