import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  buildRequestHeaders,
  detectProtocol,
  keyHeaders,
  pickResponseHeaders,
  type UpstreamIdentity,
  type UpstreamProtocol,
} from '../../../src/server/auth/upstreamHeaders.ts'

const openai: UpstreamIdentity = { origin: 'https://api.openai.com', protocol: 'openai', key: 'sk-configured' }
const anthropic: UpstreamIdentity = {
  origin: 'https://api.anthropic.com',
  protocol: 'anthropic',
  key: 'sk-ant-configured',
}
const tk = `tk_7fK2mQ9x_${'s'.repeat(32)}`
const urlAt = (upstream: UpstreamIdentity) => new URL('/v1/any', upstream.origin)

describe('keyHeaders', () => {
  it("without Threadkeep keys prefers the client's key over the configured one", () => {
    const cases: readonly (readonly [UpstreamIdentity, Record<string, string>, Record<string, string>])[] = [
      [openai, { authorization: 'Bearer sk-client' }, { authorization: 'Bearer sk-client' }],
      [openai, { 'api-key': 'azure' }, { 'api-key': 'azure' }],
      [openai, { 'x-api-key': 'sk-ant-client' }, { authorization: 'Bearer sk-configured' }],
      [openai, { authorization: 'Bearer a', 'x-api-key': 'b' }, { authorization: 'Bearer a' }],
      [openai, {}, { authorization: 'Bearer sk-configured' }],
      [openai, { authorization: '' }, { authorization: 'Bearer sk-configured' }],
      [anthropic, { 'x-api-key': 'sk-ant-client' }, { 'x-api-key': 'sk-ant-client' }],
      [anthropic, { authorization: 'Bearer oauth' }, { authorization: 'Bearer oauth' }],
      [anthropic, {}, { 'x-api-key': 'sk-ant-configured' }],
      [{ ...openai, key: undefined }, {}, {}],
    ]
    for (const [upstream, client, sent] of cases) expect(keyHeaders(upstream, client, false)).toEqual(sent)
  })

  it("sends the client's x-api-key to an OpenAI upstream only for a request in Anthropic's protocol", () => {
    const client = { 'x-api-key': 'sk-client', 'openai-project': 'proj' }
    expect(keyHeaders(openai, client, false, 'anthropic')).toEqual({
      authorization: 'Bearer sk-client',
      'openai-project': 'proj',
    })
    expect(keyHeaders(openai, { ...client, authorization: 'Bearer a' }, false, 'anthropic')).toEqual({
      authorization: 'Bearer a',
      'openai-project': 'proj',
    })
    expect(keyHeaders({ ...openai, key: undefined }, client, false, 'openai')).toEqual({})
    expect(keyHeaders(openai, client, true, 'anthropic')).toEqual({ authorization: 'Bearer sk-configured' })
  })

  it("with Threadkeep keys never sends the client's key", () => {
    const client = { authorization: 'Bearer sk-client', 'x-api-key': 'sk-client', 'api-key': 'azure' }
    expect(keyHeaders(openai, client, true)).toEqual({ authorization: 'Bearer sk-configured' })
    expect(keyHeaders(anthropic, client, true)).toEqual({ 'x-api-key': 'sk-ant-configured' })
    expect(keyHeaders({ ...openai, key: undefined }, client, true)).toEqual({})
  })

  it("sends the account headers only with the client's own key", () => {
    const account = { 'openai-organization': 'org', 'openai-project': 'proj' }
    expect(keyHeaders(openai, { authorization: 'Bearer sk-client', ...account }, false)).toEqual({
      authorization: 'Bearer sk-client',
      ...account,
    })
    expect(keyHeaders(openai, account, false)).toEqual({ authorization: 'Bearer sk-configured' })
    expect(keyHeaders(openai, { authorization: 'Bearer sk-client', ...account }, true)).toEqual({
      authorization: 'Bearer sk-configured',
    })
  })

  it('never sends a Threadkeep key, in whichever header it is', () => {
    const names = [
      'authorization',
      'x-api-key',
      'api-key',
      'user-agent',
      'openai-beta',
      'anthropic-beta',
      'accept',
      'x-threadkeep-api-key',
      'openai-project',
    ]
    const placements = fc.constantFrom(
      (key: string) => key,
      (key: string) => `Bearer ${key}`,
      (key: string) => `a, ${key.toUpperCase()}`,
      (key: string) => key.slice(0, 9),
    )
    const client = fc.dictionary(
      fc.constantFrom(...names),
      fc.tuple(placements, fc.constantFrom(tk, 'sk-client')).map(([place, key]) => place(key)),
    )
    const protocol = fc.constantFrom<UpstreamProtocol>('openai', 'anthropic')
    fc.assert(
      fc.property(
        fc.constantFrom(openai, anthropic),
        client,
        fc.boolean(),
        protocol,
        (upstream, headers, hasCredentials, clientProtocol) => {
          const sent = buildRequestHeaders(upstream, urlAt(upstream), headers, hasCredentials, clientProtocol)
          expect(JSON.stringify(sent)).not.toMatch(/tk_/i)
          if (hasCredentials)
            expect(
              [sent.authorization, sent['x-api-key'], sent['api-key']].filter((key) => key?.includes('client')),
            ).toEqual([])
        },
      ),
    )
  })
})

describe('buildRequestHeaders', () => {
  it('throws for a URL at another origin', () => {
    for (const url of [
      'https://api.anthropic.com/v1',
      'http://api.openai.com/v1',
      'https://api.openai.com:8443/v1',
      'https://api.openai.com.evil.example/v1',
    ])
      expect(() => buildRequestHeaders(openai, new URL(url), {}, true)).toThrow(
        `The key for https://api.openai.com is not sent to ${new URL(url).origin}.`,
      )
  })
})

describe('detectProtocol', () => {
  it("returns anthropic for Anthropic's headers, else openai", () => {
    for (const client of [
      { 'x-api-key': 'sk-ant' },
      { 'anthropic-version': '2023-06-01', authorization: 'Bearer oauth' },
    ])
      expect(detectProtocol(client)).toBe('anthropic')
    for (const client of [{}, { authorization: 'Bearer sk' }, { 'api-key': 'azure' }])
      expect(detectProtocol(client)).toBe('openai')
  })
})

describe('forwarded headers', () => {
  it('are only those of the protocol', () => {
    const client = {
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'anthropic-beta': 'tools',
      'anthropic-version': '2024-01-01',
      connection: 'keep-alive',
      'content-length': '5',
      cookie: 'secret=1',
      forwarded: 'for=10.0.0.1',
      host: 'localhost',
      'openai-beta': 'assistants=v2',
      origin: 'https://chat.example.com',
      'proxy-authorization': 'Basic x',
      'transfer-encoding': 'chunked',
      'user-agent': 'test/1',
      'x-app': 'cli',
      'x-client-request-id': 'r1',
      'x-forwarded-for': '10.0.0.1',
      'x-threadkeep-key': 'acme:ann',
    }
    expect(buildRequestHeaders(openai, urlAt(openai), client, true)).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      authorization: 'Bearer sk-configured',
      'openai-beta': 'assistants=v2',
      'user-agent': 'test/1',
      'x-client-request-id': 'r1',
    })
    expect(buildRequestHeaders(anthropic, urlAt(anthropic), client, true)).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      'anthropic-beta': 'tools',
      'anthropic-version': '2024-01-01',
      'user-agent': 'test/1',
      'x-api-key': 'sk-ant-configured',
      'x-app': 'cli',
    })
    expect(buildRequestHeaders(anthropic, urlAt(anthropic), {}, true)).toMatchObject({
      'anthropic-version': '2023-06-01',
    })
    expect(buildRequestHeaders(openai, urlAt(openai), client, true, 'anthropic')).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      authorization: 'Bearer sk-configured',
      'anthropic-beta': 'tools',
      'anthropic-version': '2024-01-01',
      'user-agent': 'test/1',
      'x-app': 'cli',
    })
  })

  it('never contain a header that could select an address', () => {
    const evil = 'evil.example'
    const names = [
      'host',
      'forwarded',
      'x-forwarded-host',
      'x-original-host',
      'x-forwarded-server',
      'x-host',
      'x-original-url',
      'x-rewrite-url',
      'referer',
      'via',
    ]
    const gateways = [
      'x-upstream',
      'x-base-url',
      'x-target-url',
      'x-portkey-custom-host',
      'x-portkey-config',
      'helicone-target-url',
      'x-proxy-to',
      'location',
    ]
    for (const upstream of [openai, anthropic])
      for (const name of [
        ...names,
        ...gateways,
        'x-threadkeep-upstream',
        'x-threadkeep-key',
        'openai-base-url',
        'anthropic-base-url',
      ])
        for (const hasCredentials of [true, false])
          expect(
            JSON.stringify(buildRequestHeaders(upstream, urlAt(upstream), { [name]: evil }, hasCredentials)),
          ).not.toContain(evil)
  })
})

describe('pickResponseHeaders', () => {
  it('returns useful headers and hides the account', () => {
    const upstreamHeaders = {
      'content-type': 'application/json',
      'retry-after': '7',
      'set-cookie': ['a=1', 'b=2'],
      server: 'x',
      location: 'https://evil.example',
      'x-ratelimit-remaining-requests': '3',
      'openai-processing-ms': '5',
      'openai-organization': 'org',
      'openai-project': 'proj',
      'anthropic-ratelimit-requests-remaining': '4',
      'anthropic-organization-id': 'org',
      'request-id': 'r',
      'x-request-id': 'r',
      'transfer-encoding': 'chunked',
      'access-control-allow-origin': '*',
    }
    const [type, after] = [{ 'content-type': 'application/json' }, { 'retry-after': '7' }]
    expect(pickResponseHeaders('openai', upstreamHeaders)).toEqual({
      ...type,
      ...after,
      'x-ratelimit-remaining-requests': '3',
      'openai-processing-ms': '5',
    })
    expect(pickResponseHeaders('anthropic', upstreamHeaders)).toEqual({
      ...type,
      ...after,
      'anthropic-ratelimit-requests-remaining': '4',
      'request-id': 'r',
    })
  })
})
