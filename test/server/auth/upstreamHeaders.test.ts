import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  buildRequestHeaders,
  detectProtocol,
  joinQueries,
  pickForwardedResponseHeaders,
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

const keyNames = ['authorization', 'x-api-key', 'api-key', 'openai-organization', 'openai-project']

/** The headers of a request that contain its key and account. */
function keyHeaders(
  upstream: UpstreamIdentity,
  client: Record<string, string>,
  hasCredentials: boolean,
  clientProtocol?: UpstreamProtocol,
): Record<string, string> {
  const sent = buildRequestHeaders(upstream, urlAt(upstream), client, hasCredentials, clientProtocol)
  return Object.fromEntries(Object.entries(sent).filter(([name]) => keyNames.includes(name)))
}

describe('key headers', () => {
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

/** Headers that concern the connection, this server or a browser's page. */
const local = {
  connection: 'keep-alive, x-hop',
  'content-length': '5',
  cookie: 'secret=1',
  expect: '100-continue',
  forwarded: 'for=10.0.0.1',
  host: 'localhost',
  'keep-alive': 'timeout=5',
  origin: 'https://chat.example.com',
  'proxy-authorization': 'Basic x',
  'sec-fetch-site': 'same-origin',
  te: 'trailers',
  'transfer-encoding': 'chunked',
  upgrade: 'h2c',
  via: '1.1 proxy',
  'cf-connecting-ip': '10.0.0.1',
  'x-forwarded-for': '10.0.0.1',
  'x-hop': '1',
  'x-real-ip': '10.0.0.1',
  'x-threadkeep-key': 'acme:ann',
}
/** Headers of real clients and gateways. */
const arriving = {
  accept: 'application/json',
  'anthropic-beta': 'tools',
  'anthropic-version': '2024-01-01',
  'helicone-property-app': 'shop',
  'http-referer': 'https://shop.example.com',
  'idempotency-key': 'stainless-node-retry-1',
  'openai-beta': 'assistants=v2',
  session_id: 's1',
  traceparent: '00-1-2-01',
  'user-agent': 'test/1',
  'x-app': 'cli',
  'x-client-request-id': 'r1',
  'x-stainless-lang': 'js',
  'x-title': 'Shop',
}
/** Headers with which a gateway selects another address, credential or account. */
const steering = {
  'anthropic-base-url': 'https://evil.example',
  'anthropic-workspace-id': 'w1',
  'cf-aig-authorization': 'Bearer x',
  'chatgpt-account-id': 'a1',
  'helicone-auth': 'Bearer x',
  'helicone-target-url': 'https://evil.example',
  'x-goog-api-key': 'g',
  'x-host': 'evil.example',
  'x-portkey-config': 'pc-1',
  'x-portkey-custom-host': 'https://evil.example',
  'x-proxy-to': 'https://evil.example',
  'x-upstream': 'https://evil.example',
}

describe('forwarded headers', () => {
  it('with the configured key › are all headers except local and steering ones', () => {
    const client = { ...local, ...arriving, ...steering, 'accept-encoding': 'gzip', 'content-type': 'text/plain' }
    const sent = { ...arriving, 'accept-encoding': 'identity' }
    for (const clientProtocol of ['openai', 'anthropic'] as const) {
      expect(buildRequestHeaders(openai, urlAt(openai), client, true, clientProtocol)).toEqual({
        ...sent,
        authorization: 'Bearer sk-configured',
      })
      expect(buildRequestHeaders(anthropic, urlAt(anthropic), client, true, clientProtocol)).toEqual({
        ...sent,
        'x-api-key': 'sk-ant-configured',
      })
    }
    expect(buildRequestHeaders(anthropic, urlAt(anthropic), {}, true)).toMatchObject({
      'anthropic-version': '2023-06-01',
    })
  })

  it("with the client's own key, or without any › include steering headers", () => {
    const own = { ...steering, authorization: 'Bearer sk-client' }
    expect(buildRequestHeaders(openai, urlAt(openai), { ...local, ...own }, false)).toEqual({
      ...own,
      'accept-encoding': 'identity',
    })
    const keyless = { ...openai, key: undefined }
    expect(buildRequestHeaders(keyless, urlAt(openai), steering, false)).toMatchObject(steering)
    expect(buildRequestHeaders(keyless, urlAt(openai), steering, true)).toEqual({ 'accept-encoding': 'identity' })
    expect(buildRequestHeaders(openai, urlAt(openai), steering, false)).toEqual({
      'accept-encoding': 'identity',
      authorization: 'Bearer sk-configured',
    })
  })

  it('of a body that is relayed verbatim › include its description and accept-encoding', () => {
    const body = { 'content-type': 'multipart/form-data; boundary=x', 'content-encoding': 'gzip', 'repr-digest': 'd' }
    const client = { ...local, ...body, 'accept-encoding': 'br' }
    const authorization = 'Bearer sk-configured'
    expect(buildRequestHeaders(openai, urlAt(openai), client, true, 'openai', 'verbatim')).toEqual({
      ...body,
      'accept-encoding': 'br',
      authorization,
    })
    expect(buildRequestHeaders(openai, urlAt(openai), client, true)).toEqual({
      'accept-encoding': 'identity',
      authorization,
    })
  })

  it('of any client › arrive unless they are local, credentials or steering', () => {
    const words = ['x', 'trace', 'id', 'meta', 'beta', 'title', 'app', 'v2', 'stainless', 'helicone', 'user', 'tag']
    const name = fc.array(fc.constantFrom(...words), { minLength: 2, maxLength: 4 }).map((parts) => parts.join('-'))
    const value = fc.stringMatching(/^[a-z0-9 ;=,./:]{1,40}$/).filter((text) => text.trim() === text)
    fc.assert(
      fc.property(
        fc.dictionary(name, value),
        fc.subarray(Object.keys({ ...local, ...steering })),
        fc.constantFrom(openai, anthropic),
        fc.boolean(),
        (client, extra, upstream, hasCredentials) => {
          const others = { ...local, ...steering } as Record<string, string>
          const refused = Object.fromEntries(extra.map((header) => [header, others[header] ?? '']))
          const sent = buildRequestHeaders(upstream, urlAt(upstream), { ...client, ...refused }, hasCredentials)
          expect(sent).toMatchObject(client)
          expect(Object.keys(sent).filter((header) => extra.includes(header) && header !== 'x-hop')).toEqual([])
        },
      ),
    )
  })

  it('with the configured key › never contain a header that could select an address', () => {
    const evil = 'evil.example'
    const names = ['host', 'forwarded', 'x-forwarded-host', 'x-original-host', 'x-forwarded-server', 'x-host']
    const others = [
      'x-original-url',
      'x-rewrite-url',
      'via',
      'x-base-url',
      'x-target-url',
      'location',
      'openai-base-url',
    ]
    for (const upstream of [openai, anthropic])
      for (const name of [...names, ...others, ...Object.keys(steering), 'x-threadkeep-upstream', 'x-threadkeep-key'])
        for (const hasCredentials of [true, false])
          expect(
            JSON.stringify(buildRequestHeaders(upstream, urlAt(upstream), { [name]: evil }, hasCredentials)),
          ).not.toContain(evil)
  })
})

describe('joinQueries', () => {
  it("sends the client's query as it is", () => {
    for (const query of ['beta=true', 'a=%20+%2B&&b', 'include[]=x&include[]=y', 'q=1?2', '='])
      expect(joinQueries('', query)).toBe(`?${query}`)
    expect(joinQueries('', '')).toBe('')
  })

  it('the base URL sets a parameter › it comes first and cannot be replaced', () => {
    expect(joinQueries('?api-version=1', 'beta=true')).toBe('?api-version=1&beta=true')
    expect(joinQueries('?api-version=1', 'api-version=2&x=1&api%2Dversion=3')).toBe('?api-version=1&x=1')
    expect(joinQueries('?api-version=1', '')).toBe('?api-version=1')
    expect(joinQueries('?api-version=1', 'api-version=2')).toBe('?api-version=1')
  })

  it('a parameter contains a Threadkeep key › is not sent', () => {
    expect(joinQueries('', `key=${tk}&a=1`)).toBe('?a=1')
    expect(joinQueries('', `key=${tk.replace('_', '%5F')}`)).toBe('')
  })
})

describe('pickForwardedResponseHeaders', () => {
  it('returns all headers except those of the connection, this server and the account', () => {
    const relayed = {
      'content-disposition': 'attachment; filename="a.jsonl"',
      'content-encoding': 'gzip',
      'content-length': '9',
      'content-range': 'bytes 0-8/10',
      'content-type': 'application/jsonl',
      etag: '"1"',
      'openai-processing-ms': '5',
      'request-id': 'r',
      'x-ratelimit-remaining-requests': '3',
    }
    const withheld = {
      'access-control-allow-origin': '*',
      'anthropic-organization-id': 'org',
      connection: 'close, x-hop',
      'content-security-policy': 'default-src *',
      date: 'now',
      location: 'https://evil.example',
      'openai-organization': 'org',
      'set-cookie': ['a=1', 'b=2'],
      'transfer-encoding': 'chunked',
      'x-hop': '1',
      'x-request-id': 'r',
      'x-threadkeep-memory': 'on',
    }
    expect(pickForwardedResponseHeaders({ ...relayed, ...withheld })).toEqual(relayed)
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
