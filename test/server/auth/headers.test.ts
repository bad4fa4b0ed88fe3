import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  keyHeaders,
  type Protocol,
  requestHeaders,
  returnedHeaders,
  spokenBy,
  type Upstream,
} from '../../../src/server/auth/headers.ts'

const openai: Upstream = { origin: 'https://api.openai.com', protocol: 'openai', key: 'sk-house' }
const anthropic: Upstream = { origin: 'https://api.anthropic.com', protocol: 'anthropic', key: 'sk-ant-house' }
const tk = `tk_7fK2mQ9x_${'s'.repeat(32)}`
const at = (upstream: Upstream) => new URL('/v1/any', upstream.origin)

describe('the key a model server is asked with', () => {
  it("is the client's own where there are no Threadkeep keys, else the configured one", () => {
    const cases: readonly (readonly [Upstream, Record<string, string>, Record<string, string>])[] = [
      [openai, { authorization: 'Bearer sk-client' }, { authorization: 'Bearer sk-client' }],
      [openai, { 'api-key': 'azure' }, { 'api-key': 'azure' }],
      [openai, { 'x-api-key': 'sk-ant-client' }, { authorization: 'Bearer sk-house' }],
      [openai, { authorization: 'Bearer a', 'x-api-key': 'b' }, { authorization: 'Bearer a' }],
      [openai, {}, { authorization: 'Bearer sk-house' }],
      [openai, { authorization: '' }, { authorization: 'Bearer sk-house' }],
      [anthropic, { 'x-api-key': 'sk-ant-client' }, { 'x-api-key': 'sk-ant-client' }],
      [anthropic, { authorization: 'Bearer oauth' }, { authorization: 'Bearer oauth' }],
      [anthropic, {}, { 'x-api-key': 'sk-ant-house' }],
      [{ ...openai, key: undefined }, {}, {}],
    ]
    for (const [upstream, client, sent] of cases) expect(keyHeaders(upstream, client, false)).toEqual(sent)
  })

  it("is the client's Anthropic key for another server only where that one is asked in Anthropic's protocol", () => {
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
    expect(keyHeaders(openai, client, true, 'anthropic')).toEqual({ authorization: 'Bearer sk-house' })
  })

  it("is never the client's where there are Threadkeep keys", () => {
    const client = { authorization: 'Bearer sk-client', 'x-api-key': 'sk-client', 'api-key': 'azure' }
    expect(keyHeaders(openai, client, true)).toEqual({ authorization: 'Bearer sk-house' })
    expect(keyHeaders(anthropic, client, true)).toEqual({ 'x-api-key': 'sk-ant-house' })
    expect(keyHeaders({ ...openai, key: undefined }, client, true)).toEqual({})
  })

  it("is for the account of whoever's key it is", () => {
    const account = { 'openai-organization': 'org', 'openai-project': 'proj' }
    expect(keyHeaders(openai, { authorization: 'Bearer sk-client', ...account }, false)).toEqual({
      authorization: 'Bearer sk-client',
      ...account,
    })
    expect(keyHeaders(openai, account, false)).toEqual({ authorization: 'Bearer sk-house' })
    expect(keyHeaders(openai, { authorization: 'Bearer sk-client', ...account }, true)).toEqual({
      authorization: 'Bearer sk-house',
    })
  })

  it('is never a Threadkeep key, wherever a client puts one', () => {
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
    const ways = fc.constantFrom(
      (key: string) => key,
      (key: string) => `Bearer ${key}`,
      (key: string) => `a, ${key.toUpperCase()}`,
      (key: string) => key.slice(0, 9),
    )
    const client = fc.dictionary(
      fc.constantFrom(...names),
      fc.tuple(ways, fc.constantFrom(tk, 'sk-client')).map(([way, key]) => way(key)),
    )
    const protocol = fc.constantFrom<Protocol>('openai', 'anthropic')
    fc.assert(
      fc.property(
        fc.constantFrom(openai, anthropic),
        client,
        fc.boolean(),
        protocol,
        (upstream, headers, hasCredentials, spoken) => {
          const sent = requestHeaders(upstream, at(upstream), headers, hasCredentials, spoken)
          expect(JSON.stringify(sent)).not.toMatch(/tk_/i)
          if (hasCredentials)
            expect(
              [sent.authorization, sent['x-api-key'], sent['api-key']].filter((key) => key?.includes('client')),
            ).toEqual([])
        },
      ),
    )
  })

  it('goes to the address it was given for and to no other', () => {
    for (const url of [
      'https://api.anthropic.com/v1',
      'http://api.openai.com/v1',
      'https://api.openai.com:8443/v1',
      'https://api.openai.com.evil.example/v1',
    ])
      expect(() => requestHeaders(openai, new URL(url), {}, true)).toThrow(
        `The key for https://api.openai.com is not sent to ${new URL(url).origin}.`,
      )
  })
})

describe('the protocol of a client', () => {
  it("is Anthropic's if it has Anthropic's headers", () => {
    for (const client of [
      { 'x-api-key': 'sk-ant' },
      { 'anthropic-version': '2023-06-01', authorization: 'Bearer oauth' },
    ])
      expect(spokenBy(client)).toBe('anthropic')
    for (const client of [{}, { authorization: 'Bearer sk' }, { 'api-key': 'azure' }])
      expect(spokenBy(client)).toBe('openai')
  })
})

describe('what is passed on', () => {
  it('is what the protocol needs, and nothing else', () => {
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
    expect(requestHeaders(openai, at(openai), client, true)).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      authorization: 'Bearer sk-house',
      'openai-beta': 'assistants=v2',
      'user-agent': 'test/1',
      'x-client-request-id': 'r1',
    })
    expect(requestHeaders(anthropic, at(anthropic), client, true)).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      'anthropic-beta': 'tools',
      'anthropic-version': '2024-01-01',
      'user-agent': 'test/1',
      'x-api-key': 'sk-ant-house',
      'x-app': 'cli',
    })
    expect(requestHeaders(anthropic, at(anthropic), {}, true)).toMatchObject({ 'anthropic-version': '2023-06-01' })
    expect(requestHeaders(openai, at(openai), client, true, 'anthropic')).toEqual({
      accept: 'application/json',
      'accept-encoding': 'identity',
      authorization: 'Bearer sk-house',
      'anthropic-beta': 'tools',
      'anthropic-version': '2024-01-01',
      'user-agent': 'test/1',
      'x-app': 'cli',
    })
  })

  it('never chooses an address', () => {
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
            JSON.stringify(requestHeaders(upstream, at(upstream), { [name]: evil }, hasCredentials)),
          ).not.toContain(evil)
  })

  it('back to the client is what it can use, and not whose account it was', () => {
    const given = {
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
    expect(returnedHeaders('openai', given)).toEqual({
      ...type,
      ...after,
      'x-ratelimit-remaining-requests': '3',
      'openai-processing-ms': '5',
    })
    expect(returnedHeaders('anthropic', given)).toEqual({
      ...type,
      ...after,
      'anthropic-ratelimit-requests-remaining': '4',
      'request-id': 'r',
    })
  })
})
