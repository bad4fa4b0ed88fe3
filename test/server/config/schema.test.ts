import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { durationOf } from '../../../src/server/config/duration.ts'
import { parseConfig } from '../../../src/server/config/schema.ts'
import { root } from '../../shape/source.ts'

const refusal = (value: unknown): string => {
  try {
    return `taken: ${JSON.stringify(parseConfig(value))}`
  } catch (error) {
    return error instanceof MemoryError && error.code === 'bad-option' ? error.message : `no refusal: ${error}`
  }
}

describe('a duration', () => {
  for (const [text, millis] of [
    ['500ms', 500],
    ['30s', 30_000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    [' 7d ', 604_800_000],
    [1, 1],
  ] as const) {
    it(`may be ${text}`, () => expect(durationOf(text)).toBe(millis))
  }
  for (const wrong of ['', '24', 'h', '1.5h', '-1h', '1w', '0s', 0, -1, 1.5, Number.NaN, null, undefined, {}]) {
    it(`is not ${JSON.stringify(wrong)}`, () => expect(durationOf(wrong)).toBeUndefined())
  }
})

describe('a configuration', () => {
  it('may be empty', () => expect(parseConfig({})).toEqual({}))

  it('holds times in milliseconds, however they are written', () =>
    expect(
      parseConfig({
        sweepEvery: '1m',
        timeouts: { first: '5m', idle: 1_000 },
        templates: { sales: { idle: '2h', age: '3d' } },
      }),
    ).toEqual({
      sweepEvery: 60_000,
      timeouts: { first: 300_000, idle: 1_000 },
      templates: { sales: { idle: 7_200_000, age: 259_200_000 } },
    }))

  it('is in order in the example', () => {
    const example: unknown = JSON.parse(readFileSync(`${root}examples/threadkeep.config.json`, 'utf8'))
    expect(parseConfig(example).templates).toEqual({
      sales: { profile: 'short', idle: 7_200_000, preamble: 'You sell lamps. Be brief.' },
    })
  })

  const duration = 'a number of milliseconds, or text such as 500ms, 30s, 15m, 24h or 7d'
  const wrong: readonly (readonly [value: unknown, message: string])[] = [
    [{ listen: { prot: 1 } }, 'listen.prot is unknown; listen has only host, port, names, origins.'],
    [
      { upstreams: [{ bas: 'x' }] },
      'upstreams[0].bas is unknown; upstreams[0] has only name, base, protocol, key, keyEnv, models, rename.',
    ],
    [
      { templates: { a: { profil: 'x' } } },
      'templates.a.profil is unknown; templates.a has only profile, idle, age, preamble, budget.',
    ],
    [{ listen: { port: '80' } }, 'listen.port is "80"; it must be a whole number, from 0 to 65535.'],
    [{ listen: 4848 }, 'listen is 4848; it must be an object with host, port, names, origins.'],
    [{ sweepEvery: 'soon' }, `sweepEvery is "soon"; it must be ${duration}.`],
    [{ limits: { perMinute: 0 } }, 'limits.perMinute is 0; it must be a whole number, 1 or more.'],
    [{ secrets: 'some' }, 'secrets is "some"; it must be one of mask, hide, keep.'],
    [{ log: { level: 'loud' } }, 'log.level is "loud"; it must be one of debug, info, warn, error, silent.'],
    [{ defaultScope: 'acme:ann' }, 'defaultScope is "acme:ann"; it must be a tenant such as acme, without a session.'],
    [{ templates: { 'a b': {} } }, 'templates.a b is {}; it must be named with letters, digits and _ . -.'],
    [{ upstreams: [{ protocol: 'openai' }] }, 'upstreams[0].base is missing; it must be text.'],
    [{ prices: 5 }, 'prices is 5; it must be the path of a JSON file, or a table of prices.'],
    ['text', expect.stringMatching(/^The configuration is "text"; it must be an object with listen, store, /)],
  ]
  for (const [value, message] of wrong)
    it(`is refused: ${JSON.stringify(value)}`, () => expect(refusal(value)).toEqual(message))

  it('names every field there is when one is unknown', () =>
    expect(refusal({ upstream: [] })).toBe(
      'upstream is unknown; the configuration has only listen, store, storeKey, profile, budget, tenantProfile, sessions, profiles, templates, upstreams, upkeep, secrets, defaultScope, keys, limits, timeouts, retries, webhook, prices, log, mcp, sweepEvery.',
    ))

  it('repeats no secret in what it says is wrong', () => {
    const secret = 'whsec_c2VjcmV0'
    for (const value of [
      { webhook: secret },
      { webhook: { url: 'https://example.com', secret: [secret] } },
      { upstreams: secret },
      { upstreams: [secret] },
      { upstreams: [{ base: 'x', key: [secret] }] },
    ])
      expect(refusal(value)).toMatch(/ is …; it must be /)
  })
})
