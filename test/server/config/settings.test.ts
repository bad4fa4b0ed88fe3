import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/server/config/file.ts'
import { planOf } from '../../../src/server/config/plan.ts'
import { type Config, parseConfig } from '../../../src/server/config/schema.ts'
import { type Given, givenIn, settle } from '../../../src/server/config/settings.ts'
import { shownSettings } from '../../../src/server/config/shown.ts'
import { verifies } from '../../requirements/verifies.ts'
import { freshFiles } from '../../stores/tempPaths.ts'

const fresh = freshFiles()
const settled = (file: Config, ...sources: readonly Given[]) =>
  settle([...sources, givenIn(parseConfig(file), 'file')], 'threadkeep.config.json')
const planned = (config: unknown, environment: Readonly<Record<string, string>> = {}) =>
  planOf(settled(config as Config), environment)

describe('settings', () => {
  it('say of every value where it comes from: flag over environment over file over default', () => {
    const flags: Given = new Map([['listen.port', { value: 1, from: 'flag', name: '--port' }]])
    const environment: Given = new Map([
      ['listen.port', { value: 2, from: 'environment', name: 'THREADKEEP_PORT' }],
      ['profile', { value: 'summary', from: 'environment', name: 'THREADKEEP_PROFILE' }],
    ])
    const { given, config } = settled(
      { listen: { port: 3, host: '::1' }, profile: 'agent', limits: { perMinute: 9 } },
      flags,
      environment,
    )
    const { listen, profile, limits } = config
    expect({ listen, profile, limits }).toEqual({
      listen: { host: '::1', port: 1, names: [], origins: [] },
      profile: 'summary',
      limits: { body: 33_554_432, file: 20_000_000, perMinute: 9 },
    })
    const from = [...given].map(([field, setting]) => `${field} ${setting.name ?? setting.from}`)
    expect(from.filter((line) => !line.endsWith(' default'))).toEqual([
      'listen.host file',
      'listen.port --port',
      'profile THREADKEEP_PROFILE',
      'limits.perMinute file',
    ])
  })

  verifies('T-08', 'have session memory on unless it is turned off', () => {
    expect([settled({}).config.sessions, settled({}).ways.session?.name]).toEqual([true, 'thread'])
    expect(settled({ sessions: false }).ways.session).toBeUndefined()
  })

  it('make no file where nothing would be kept in it', () => {
    expect(settled({}).config.store).toBe('sqlite:threadkeep.db')
    expect(settled({ profile: 'support' }).config.store).toBe('sqlite:threadkeep.db')
    expect(settled({ profile: 'ephemeral' }).config.store).toBe('ram:')
    expect(settled({ profile: 'ephemeral', tenantProfile: 'thread' }).config.store).toBe('sqlite:threadkeep.db')
    expect(settled({ profile: 'ephemeral', templates: { a: { profile: 'thread' } } }).config.store).toBe(
      'sqlite:threadkeep.db',
    )
  })

  it('are shown without secrets', () => {
    const settings = settled({
      store: 'redis://me:pass-1@host/0',
      upstreams: [{ base: 'https://example.com/v1?token=pass-2', key: 'pass-3' }],
      webhook: { url: 'https://me:pass-4@example.com/ended', secret: 'pass-5' },
    })
    const shown = shownSettings(settings)
    expect([shown.get('store')?.value, shown.get('upstreams')?.value, shown.get('webhook')?.value]).toEqual([
      'redis://***@host/0',
      [{ base: 'https://example.com/v1?***', key: '***' }],
      { url: 'https://***@example.com/ended', secret: '***' },
    ])
    expect(JSON.stringify([...shown])).not.toContain('pass-')
  })
})

describe('a plan', () => {
  it('takes secrets from the variables that are named', () => {
    const upstreams = [
      { base: 'http://localhost:11434/v1' },
      { name: 'openai', base: 'https://api.openai.com/v1', keyEnv: 'A_KEY' },
    ]
    expect(planned({ upstreams }, { A_KEY: ' sk-1 ' }).upstreams).toMatchObject([
      { name: 'localhost:11434', protocol: 'openai', key: undefined },
      { name: 'openai', protocol: 'openai', key: 'sk-1' },
    ])
  })

  it('expects a file of keys that was named to be there', () => {
    expect(planned({}).keys).toEqual({ file: 'threadkeep-keys.json', isExpected: false })
    expect(planned({ keys: { file: 'k.json' } }).keys).toEqual({ file: 'k.json', isExpected: true })
    expect(planned({ keys: { file: 'k.json', required: false } }).keys.isExpected).toBe(false)
    expect(planned({ keys: { required: true } }).keys.isExpected).toBe(true)
  })

  it('reads a table of prices from a file', () => {
    const [file, table] = [fresh('.json'), { asOf: '2026-11-01', models: { mine: { input: 1, output: 2 } } }]
    writeFileSync(file, JSON.stringify(table))
    expect([planned({ prices: file }).prices, planned({ prices: table }).prices, planned({}).prices]).toEqual([
      table,
      table,
      undefined,
    ])
  })

  const address =
    'must be an http:// or https:// address without a user name and password, such as http://localhost:11434/v1.'
  const wrong: readonly (readonly [config: unknown, message: string])[] = [
    [
      { upstreams: [{ base: 'http://a', keyEnv: 'NOBODY' }] },
      'upstreams[0].keyEnv is "NOBODY"; it must be a variable that is set.',
    ],
    [
      { upstreams: [{ base: 'http://a', key: 'sk-1', keyEnv: 'A' }] },
      'upstreams[0].key is …; it must be left out where keyEnv names a variable.',
    ],
    [
      { upstreams: [{ base: 'http://a' }, { base: 'http://a/v1' }] },
      'upstreams[1].name is "a"; it must be different from the names of the others.',
    ],
    [{ upstreams: [{ base: 'localhost' }] }, `upstreams[0].base ${address}`],
    [
      { webhook: { url: 'https://example.com' } },
      'webhook.secretEnv is missing; it must be the name of the variable that holds the secret',
    ],
    [
      { webhook: { url: 'http://example.com', secret: 'x' } },
      'it must be an https: address, or http: on this machine.',
    ],
    [{ prices: 'nowhere.json' }, 'prices is "nowhere.json", which cannot be opened. Name a JSON file that is there.'],
    [{ listen: { origins: ['*'] } }, 'it must be an origin such as https://chat.example.com, without a path.'],
    [{ store: 'sqlite:x.db', profile: 'ephemeral' }, 'Profile ephemeral is RAM-only and refuses a durable store.'],
  ]
  for (const [config, message] of wrong)
    it(`is refused: ${JSON.stringify(config)}`, () => expect(() => planned(config)).toThrow(message))
})

describe('a configuration file', () => {
  const written = (end: string, text: string): string => {
    const file = fresh(end)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }

  it('is JSON or a module, and its paths begin where it is', async () => {
    const json = written(
      '.json',
      '{ "store": "sqlite:a.db", "storeKey": "file:k", "keys": { "file": "/etc/keys.json" }, "prices": "p.json" }',
    )
    const here = dirname(json)
    expect(await readConfig(json)).toEqual({
      store: `sqlite:${here}/a.db`,
      storeKey: `file:${here}/k`,
      keys: { file: '/etc/keys.json' },
      prices: `${here}/p.json`,
    })
    expect(
      await readConfig(written('.ts', 'const port: number = 8080\nexport default { listen: { port } }\n')),
    ).toEqual({ listen: { port: 8080 } })
    expect(await readConfig(written('.mjs', "export default { store: 'ram:' }\n"))).toEqual({ store: 'ram:' })
  })

  it('is read anew when a module has changed', async () => {
    const file = written('.mjs', 'export default { budget: 1 }\n')
    expect(await readConfig(file)).toEqual({ budget: 1 })
    writeFileSync(file, 'export default { budget: 2 }\n')
    expect(await readConfig(file)).toEqual({ budget: 2 })
  })

  it('says what is wrong with it, and repeats nothing of it', async () => {
    const cases = [
      [
        '/nowhere/c.json',
        'The configuration /nowhere/c.json cannot be used: it cannot be opened. Name a file that is there.',
      ],
      [
        written('.json', '{\n  "upstreams": "sk-secret",\n}'),
        'cannot be used: it is not JSON from line 3 on. Mind commas and quotes.',
      ],
      [
        written('.mjs', 'export const config = {}\n'),
        'cannot be used: it has no default export. Write export default { … }.',
      ],
      [
        written('.mjs', 'const key = sk-secret\n'),
        'cannot be used: it cannot be loaded (ReferenceError). Run it with node to see why.',
      ],
      [written('.json', '{ "stor": "ram:" }'), '.json: stor is unknown; the configuration has only listen, store, '],
    ] as const
    for (const [file, message] of cases) {
      const said = await readConfig(file).catch((error: Error) => error.message)
      expect(said).toContain(message)
      expect(said).not.toContain('sk-secret')
    }
  })
})
