import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { parseConfig, parseDuration } from '../../../src/server/config/schema.ts'
import { root } from '../../shape/source.ts'

const errorOf = (value: unknown): string => {
  try {
    return `accepted: ${JSON.stringify(parseConfig(value))}`
  } catch (error) {
    return error instanceof MemoryError && error.code === 'bad-option' ? error.message : `unexpected error: ${error}`
  }
}

describe('parseDuration', () => {
  for (const [text, millis] of [
    ['500ms', 500],
    ['30s', 30_000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    [' 7d ', 604_800_000],
    [1, 1],
  ] as const) {
    it(`accepts ${text}`, () => expect(parseDuration(text)).toBe(millis))
  }
  for (const invalid of ['', '24', 'h', '1.5h', '-1h', '1w', '0s', 0, -1, 1.5, Number.NaN, null, undefined, {}]) {
    it(`refuses ${JSON.stringify(invalid)}`, () => expect(parseDuration(invalid)).toBeUndefined())
  }
})

describe('parseConfig', () => {
  it('accepts an empty configuration', () => expect(parseConfig({})).toEqual({}))

  it('converts durations to milliseconds', () =>
    expect(
      parseConfig({
        sweepInterval: '1m',
        timeouts: { firstByte: '5m', idle: 1_000 },
        templates: { sales: { idle: '2h', age: '3d' } },
      }),
    ).toEqual({
      sweepInterval: 60_000,
      timeouts: { firstByte: 300_000, idle: 1_000 },
      templates: { sales: { idle: 7_200_000, age: 259_200_000 } },
    }))

  it('accepts the example file', () => {
    const example: unknown = JSON.parse(readFileSync(`${root}examples/threadkeep.config.json`, 'utf8'))
    expect(parseConfig(example).templates).toEqual({
      sales: { profile: 'short', idle: 7_200_000, preamble: 'You sell lamps. Be brief.' },
    })
  })

  const duration = 'a number of milliseconds, or text such as 500ms, 30s, 15m, 24h or 7d'
  const invalid: readonly (readonly [value: unknown, message: string])[] = [
    [
      { listen: { prot: 1 } },
      'listen.prot is not a field of listen. Use one of: host, port, allowedHosts, allowedOrigins.',
    ],
    [
      { upstreams: [{ bas: 'x' }] },
      'upstreams[0].bas is not a field of upstreams[0]. Use one of: name, base, protocol, key, keyEnv, models, rename.',
    ],
    [
      { templates: { a: { profil: 'x' } } },
      'templates.a.profil is not a field of templates.a. Use one of: profile, idle, age, preamble, budget.',
    ],
    [{ listen: { port: '80' } }, 'listen.port is "80"; it must be a whole number, from 0 to 65535.'],
    [{ listen: 4848 }, 'listen is 4848; it must be an object with host, port, allowedHosts, allowedOrigins.'],
    [{ sweepInterval: 'soon' }, `sweepInterval is "soon"; it must be ${duration}.`],
    [{ limits: { requestsPerMinute: 0 } }, 'limits.requestsPerMinute is 0; it must be a whole number, 1 or more.'],
    [{ secrets: 'some' }, 'secrets is "some"; it must be one of mask, hide, keep.'],
    [{ log: { level: 'loud' } }, 'log.level is "loud"; it must be one of debug, info, warn, error, silent.'],
    [{ defaultScope: 'acme:ann' }, 'defaultScope is "acme:ann"; it must be a tenant such as acme, without a session.'],
    [{ templates: { 'a b': {} } }, 'templates.a b is {}; it must be named with letters, digits and _ . -.'],
    [{ upstreams: [{ protocol: 'openai' }] }, 'upstreams[0].base is missing; it must be text.'],
    [{ prices: 5 }, 'prices is 5; it must be the path of a JSON file, or a price table.'],
    ['text', expect.stringMatching(/^The configuration is "text"; it must be an object with listen, store, /)],
  ]
  for (const [value, message] of invalid)
    it(`refuses ${JSON.stringify(value)}`, () => expect(errorOf(value)).toEqual(message))

  it('lists all fields when one is unknown', () =>
    expect(errorOf({ upstream: [] })).toBe(
      'upstream is not a field of the configuration. Use one of: listen, store, storeKey, profile, budget, history, contextWindows, tenantProfile, sessions, profiles, templates, upstreams, forward, upkeep, embedder, secrets, defaultScope, keys, limits, timeouts, retries, webhook, prices, log, mcp, sweepInterval, shutdown.',
    ))

  it('shows no secret in errors', () => {
    const secret = 'whsec_c2VjcmV0'
    expect(errorOf({ embedder: `openai:m@https://ann:${secret}@example.com` })).toMatch(
      /^embedder is "openai:m@…"; it must be ollama:MODEL, /,
    )
    for (const value of [
      { webhook: secret },
      { webhook: { url: 'https://example.com', secret: [secret] } },
      { upstreams: secret },
      { upstreams: [secret] },
      { upstreams: [{ base: 'x', key: [secret] }] },
    ])
      expect(errorOf(value)).toMatch(/ is …; it must be /)
  })
})
