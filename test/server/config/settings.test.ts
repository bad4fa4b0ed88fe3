import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/server/config/configFile.ts'
import { type Config, parseConfig } from '../../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../../src/server/config/serverConfig.ts'
import {
  type ConfigSource,
  mergeSettings,
  redactSettings,
  toConfigSource,
} from '../../../src/server/config/settings.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTempPaths } from '../../stores/tempPaths.ts'

const fresh = createTempPaths()
const mergeFile = (file: Config, ...sources: readonly ConfigSource[]) =>
  mergeSettings([...sources, toConfigSource(parseConfig(file), 'file')], 'threadkeep.config.json')
const resolve = (config: unknown, environment: Readonly<Record<string, string>> = {}) =>
  resolveServerConfig(mergeFile(config as Config), environment)

describe('mergeSettings', () => {
  it('prefers flags over environment over file over defaults, and records the origin', () => {
    const flags: ConfigSource = new Map([['listen.port', { value: 1, from: 'flag', name: '--port' }]])
    const environment: ConfigSource = new Map([
      ['listen.port', { value: 2, from: 'environment', name: 'THREADKEEP_PORT' }],
      ['profile', { value: 'summary', from: 'environment', name: 'THREADKEEP_PROFILE' }],
    ])
    const { values, config } = mergeFile(
      { listen: { port: 3, host: '::1' }, profile: 'agent', limits: { requestsPerMinute: 9 } },
      flags,
      environment,
    )
    const { listen, profile, limits } = config
    expect({ listen, profile, limits }).toEqual({
      listen: { host: '::1', port: 1, allowedHosts: [], allowedOrigins: [] },
      profile: 'summary',
      limits: { bodyBytes: 33_554_432, fileBytes: 20_000_000, forwardBytes: 536_870_912, requestsPerMinute: 9 },
    })
    const origins = [...values].map(([field, setting]) => `${field} ${setting.name ?? setting.from}`)
    expect(origins.filter((line) => !line.endsWith(' default'))).toEqual([
      'listen.host file',
      'listen.port --port',
      'profile THREADKEEP_PROFILE',
      'limits.requestsPerMinute file',
    ])
  })

  verifies('T-08', 'has session memory on by default', () => {
    expect([mergeFile({}).config.sessions, mergeFile({}).profiles.session?.name]).toEqual([true, 'thread'])
    expect(mergeFile({ sessions: false }).profiles.session).toBeUndefined()
  })

  it('uses a RAM store when no profile is durable', () => {
    expect(mergeFile({}).config.store).toBe('sqlite:threadkeep.db')
    expect(mergeFile({ profile: 'support' }).config.store).toBe('sqlite:threadkeep.db')
    expect(mergeFile({ profile: 'ephemeral' }).config.store).toBe('ram:')
    expect(mergeFile({ profile: 'ephemeral', tenantProfile: 'thread' }).config.store).toBe('sqlite:threadkeep.db')
    expect(mergeFile({ profile: 'ephemeral', templates: { a: { profile: 'thread' } } }).config.store).toBe(
      'sqlite:threadkeep.db',
    )
  })
})

describe('redactSettings', () => {
  it('hides secrets', () => {
    const settings = mergeFile({
      store: 'redis://me:pass-1@host/0',
      upstreams: [{ base: 'https://example.com/v1?token=pass-2', key: 'pass-3' }],
      webhook: { url: 'https://me:pass-4@example.com/ended', secret: 'pass-5' },
    })
    const shown = redactSettings(settings)
    expect([shown.get('store')?.value, shown.get('upstreams')?.value, shown.get('webhook')?.value]).toEqual([
      'redis://***@host/0',
      [{ base: 'https://example.com/v1?***', key: '***' }],
      { url: 'https://***@example.com/ended', secret: '***' },
    ])
    expect(JSON.stringify([...shown])).not.toContain('pass-')
  })

  it.each([
    ['postgres://me:pass/1@host/a', 'postgres://***@host/a'],
    ['postgres:/me:pass-1@host/a', 'postgres:/***@host/a'],
    ['redis://:pass?1@host', 'redis://***@host'],
  ])('with the store %s, which is not a valid URL › hides the password', (store, shown) => {
    expect(redactSettings(mergeFile({ store })).get('store')?.value).toBe(shown)
  })
})

describe('resolveServerConfig', () => {
  it('reads secrets from the named variables', () => {
    const upstreams = [
      { base: 'http://localhost:11434/v1' },
      { name: 'openai', base: 'https://api.openai.com/v1', keyEnv: 'A_KEY' },
    ]
    expect(resolve({ upstreams }, { A_KEY: ' sk-1 ' }).upstreams).toMatchObject([
      { name: 'localhost:11434', protocol: 'openai', key: undefined },
      { name: 'openai', protocol: 'openai', key: 'sk-1' },
    ])
  })

  it('expects a configured key file to exist', () => {
    expect(resolve({}).keys).toEqual({ file: 'threadkeep-keys.json', isExpected: false })
    expect(resolve({ keys: { file: 'k.json' } }).keys).toEqual({ file: 'k.json', isExpected: true })
    expect(resolve({ keys: { file: 'k.json', required: false } }).keys.isExpected).toBe(false)
    expect(resolve({ keys: { required: true } }).keys.isExpected).toBe(true)
  })

  it('reads a price table from a file', () => {
    const [file, table] = [fresh('.json'), { asOf: '2026-11-01', models: { mine: { input: 1, output: 2 } } }]
    writeFileSync(file, JSON.stringify(table))
    expect([resolve({ prices: file }).prices, resolve({ prices: table }).prices, resolve({}).prices]).toEqual([
      table,
      table,
      undefined,
    ])
  })

  const address =
    'must be an http:// or https:// address without a user name and password, such as http://localhost:11434/v1.'
  const invalid: readonly (readonly [config: unknown, message: string])[] = [
    [
      { upstreams: [{ base: 'http://a', keyEnv: 'NOBODY' }] },
      'upstreams[0].keyEnv is "NOBODY"; it must be the name of a variable that is set.',
    ],
    [
      { upstreams: [{ base: 'http://a', key: 'sk-1', keyEnv: 'A' }] },
      'upstreams[0].key is …; it must be omitted when keyEnv is set.',
    ],
    [
      { upstreams: [{ base: 'http://a' }, { base: 'http://a/v1' }] },
      'upstreams[1].name is "a"; it must be different from the names of the others.',
    ],
    [{ upstreams: [{ base: 'localhost' }] }, `upstreams[0].base ${address}`],
    [
      { webhook: { url: 'https://example.com' } },
      'webhook.secretEnv is missing; it must be the name of the variable that holds the signing secret.',
    ],
    [
      { webhook: { url: 'http://example.com', secret: 'x' } },
      'it must be an https: URL without a user name and password, or http: on this machine.',
    ],
    [{ prices: 'nowhere.json' }, 'prices is "nowhere.json", which cannot be opened. Check the path and permissions.'],
    [{ listen: { allowedOrigins: ['*'] } }, 'it must be an origin such as https://chat.example.com, without a path.'],
    [{ store: 'sqlite:x.db', profile: 'ephemeral' }, 'Profile ephemeral is RAM-only and refuses a durable store.'],
  ]
  for (const [config, message] of invalid)
    it(`refuses ${JSON.stringify(config)}`, () => expect(() => resolve(config)).toThrow(message))
})

describe('readConfig', () => {
  const writeConfig = (extension: string, text: string): string => {
    const file = fresh(extension)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }

  it('reads JSON and modules, and resolves paths from their folder', async () => {
    const json = writeConfig(
      '.json',
      '{ "store": "sqlite:a.db", "storeKey": "file:k", "keys": { "file": "/etc/keys.json" }, "prices": "p.json", "embedder": "transformers:a/b@models" }',
    )
    const here = dirname(json)
    expect(await readConfig(json)).toEqual({
      store: `sqlite:${here}/a.db`,
      storeKey: `file:${here}/k`,
      keys: { file: '/etc/keys.json' },
      prices: `${here}/p.json`,
      embedder: `transformers:a/b@${here}/models`,
    })
    expect(
      await readConfig(writeConfig('.ts', 'const port: number = 8080\nexport default { listen: { port } }\n')),
    ).toEqual({ listen: { port: 8080 } })
    expect(await readConfig(writeConfig('.mjs', "export default { store: 'ram:' }\n"))).toEqual({ store: 'ram:' })
  })

  it('reads a changed module again', async () => {
    const file = writeConfig('.mjs', 'export default { budget: 1 }\n')
    expect(await readConfig(file)).toEqual({ budget: 1 })
    writeFileSync(file, 'export default { budget: 2 }\n')
    expect(await readConfig(file)).toEqual({ budget: 2 })
  })

  it('reports errors without quoting the file', async () => {
    const cases = [
      [
        '/nowhere/c.json',
        'The configuration /nowhere/c.json cannot be used: it cannot be opened. Check the path and permissions.',
      ],
      [
        writeConfig('.json', '{\n  "upstreams": "sk-secret",\n}'),
        'cannot be used: it is not valid JSON at line 3. Check commas and quotes.',
      ],
      [
        writeConfig('.mjs', 'export const config = {}\n'),
        'cannot be used: it has no default export. Write export default { … }.',
      ],
      [
        writeConfig('.mjs', 'const key = sk-secret\n'),
        'cannot be used: it cannot be loaded (ReferenceError). Run it with node to see the error.',
      ],
      [
        writeConfig('.json', '{ "stor": "ram:" }'),
        '.json: stor is not a field of the configuration. Use one of: listen, store, ',
      ],
    ] as const
    for (const [file, message] of cases) {
      const actual = await readConfig(file).catch((error: Error) => error.message)
      expect(actual).toContain(message)
      expect(actual).not.toContain('sk-secret')
    }
  })
})
