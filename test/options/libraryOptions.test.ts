import { describe, expect } from 'vitest'
import { UnifiedAIService } from '../../src/adapters/ai-service.ts'
import { PersistentSessions } from '../../src/adapters/persistent-sessions.ts'
import { SessionMemory } from '../../src/adapters/session-memory.ts'
import * as browser from '../../src/browser.ts'
import type { Embedder, SearchIndex, Store } from '../../src/domain/ports.ts'
import * as library from '../../src/index.ts'
import { createEmbeddingQueue, EmbeddingQueue } from '../../src/memory/embedding.ts'
import type { Memory } from '../../src/memory.ts'
import { encryptedStore, loadKeyring, parseKeyring } from '../../src/stores/encrypted.ts'
import { PostgresStore, postgresStore } from '../../src/stores/postgres.ts'
import { redisStore } from '../../src/stores/redis.ts'
import { SqliteStore, sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { listPublicSignatures } from './publicSignatures.ts'

type Options = Record<string, unknown>
/** Calls a method with valid arguments and these options added. */
type Call = (options: Options) => unknown

const { MemoryError, openMemory, ramStore } = library
const fresh = createTempPaths()
const messages = [{ role: 'user' as const, content: 'My cat is called Miso.' }]
const embedder: Embedder = { name: 'none', embed: async (texts) => texts.map(() => new Float32Array(2)) }
const service = () => {
  const model = { name: 'm', reply: async function* () {} }
  return new UnifiedAIService({ memory: new SessionMemory(), modelFactory: () => model as never })
}
const sessions = () => new PersistentSessions({ store: ramStore(), scope: 'acme' })
/** The types forbid unknown options, which callers without types pass all the same. */
const as = <T>(value: unknown): T => value as T

const createMemory = async (): Promise<Memory> => {
  const memory = await openMemory({ profile: 'thread' })
  await memory.append('acme:ann', messages)
  await memory.remember('acme', { category: 'domain', key: 'cat', value: 'Miso' })
  return memory
}
const withMemory =
  (use: (memory: Memory, options: Options) => unknown): Call =>
  async (options) => {
    await using memory = await createMemory()
    await use(memory, options)
  }

const stores: Readonly<Record<string, () => Promise<Store & SearchIndex>>> = {
  ramStore: async () => ramStore(),
  'ramStore in a browser': async () => browser.ramStore(),
  sqliteStore: async () => sqliteStore(fresh()),
  // Options are checked before the server is asked.
  postgresStore: async () => new PostgresStore(as({ close: async () => undefined }), as({})),
  encryptedStore: async () =>
    encryptedStore(ramStore(), parseKeyring(Buffer.alloc(32, 1).toString('base64'), 'env:NAME')),
}
/** Calls a method of every store. Returns the first outcome that differs from the others, if there is one. */
const withStores =
  (use: (store: Store & SearchIndex, options: Options) => unknown): Call =>
  async (options) => {
    const outcomes: unknown[] = []
    for (const [name, open] of Object.entries(stores)) {
      const store = await open()
      outcomes.push(await outcomeOf((given) => use(store, given), options))
      await store.close()
      if (!(outcomes.at(-1) instanceof MemoryError)) throw new Error(`${name}: ${String(outcomes.at(-1))}`)
    }
    throw outcomes[0]
  }
const key = library.parseKey('acme:ann')

/** Calls of everything public that takes options, by the name of the function or method. */
const calls: Readonly<Record<string, Call>> = {
  openMemory: async (options) => (await openMemory(as(options))).close(),
  'openMemory of ./browser': async (options) => (await browser.openMemory(as(options))).close(),
  createLifecycle: (options) => library.createLifecycle(as(options)),
  createUpkeep: (options) => library.createUpkeep(as(options)),
  openaiEmbedder: (options) => library.openaiEmbedder({ model: 'm', ...options }),
  ollamaEmbedder: (options) => library.ollamaEmbedder({ model: 'm', ...options }),
  transformersEmbedder: (options) => library.transformersEmbedder({ model: 'm', ...options }),
  createEmbeddingQueue: (options) => createEmbeddingQueue(ramStore(), embedder, as(options)),
  EmbeddingQueue: (options) => new EmbeddingQueue(ramStore(), embedder, as(options)),
  ramStore: (options) => ramStore(as(options)),
  'ramStore of ./browser': (options) => browser.ramStore(as(options)),
  sqliteStore: (options) => sqliteStore('/tmp/never-created.db', as(options)),
  SqliteStore: (options) => new SqliteStore('/tmp/never-created.db', as(options)),
  loadKeyring: (options) => loadKeyring('env:NAME', as(options)),
  offlineModel: (options) => library.offlineModel(as(options)),
  parseProfile: (options) => library.parseProfile({ ...library.profiles.thread, ...options }),

  'Memory.append': withMemory((memory, options) => memory.append('acme:ann', messages, options)),
  'Memory.context': withMemory((memory, options) => memory.context('acme:ann', as(options))),
  'Memory.transcript': withMemory((memory, options) => memory.transcript('acme:ann', options)),
  'Memory.search': withMemory((memory, options) => memory.search('acme', 'cat', options)),
  'Memory.search by vector': withMemory((memory, options) =>
    memory.search('acme', as({ vector: [1], model: 'm', ...options })),
  ),
  'Memory.remember': withMemory((memory, options) =>
    memory.remember('acme', { category: 'domain', key: 'a', value: 'b', ...options }),
  ),
  'Memory.embeddingProgress': withMemory((memory, options) => memory.embeddingProgress(options)),
  'Memory.forget': withMemory((memory, options) => memory.forget(as({ key: 'acme:ann', ...options }))),
  'Memory.export': withMemory(async (memory, options) => {
    for await (const _ of memory.export(options));
  }),
  'Memory.export with encryption': withMemory(async (memory, options) => {
    for await (const _ of memory.export({ encryption: { passphrase: 'long enough', ...options } }));
  }),
  'Memory.import': withMemory((memory, options) => memory.import(() => memory.export(), options)),
  'Memory.replace': withMemory((memory, options) =>
    memory.replace('acme:ann', 'm1', { role: 'user', content: 'Hi' }, options),
  ),
  'Memory.replaceFrom': withMemory((memory, options) => memory.replaceFrom('acme:ann', 'm1', [], options)),
  'Memory.sessions': withMemory((memory, options) => memory.sessions(options)),
  'Memory.setMetadata': withMemory((memory, options) => memory.setMetadata('acme:ann', options)),
  'Memory.trace': withMemory((memory, options) => memory.trace('acme:ann', options)),
  'Memory.replay': withMemory(async (memory, options) =>
    memory.replay(await memory.trace('acme:ann'), as({ ...library.profiles.thread, ...options })),
  ),
  'Lifecycle.setMetadata': withMemory((memory, options) => memory.lifecycle.setMetadata(key, options)),

  'Upkeep.record': withMemory((memory, options) => memory.upkeep.record('acme:ann', options)),
  'Upkeep.update': withMemory((memory, options) => memory.upkeep.update('acme:ann', options)),
  'Upkeep.run': withMemory((memory, options) => memory.upkeep.run('acme:ann', options)),
  'Upkeep.facts': withMemory((memory, options) => memory.upkeep.facts('acme:ann', options)),
  'Upkeep.knowledge': withMemory((memory, options) => memory.upkeep.knowledge('acme', options)),
  'Upkeep.approve': withMemory((memory, options) => memory.upkeep.approve('acme', 'k1', options)),
  'Upkeep.restore': withMemory((memory, options) => memory.upkeep.restore('acme', 'k1', options)),

  'SqliteStore.readMessages': withStores((store, options) => store.readMessages(key, { limit: 1, ...options })),
  'SqliteStore.list': withStores((store, options) => store.list({ scope: 'acme', limit: 1, ...options })),
  'SqliteStore.erase': withStores((store, options) => store.erase(key, as(options))),
  'SqliteStore.records': withStores((store, options) => store.records(key, { limit: 1, ...options })),
  'SqliteStore.search': withStores((store, options) => store.search(key, { text: 'cat', limit: 1, ...options })),
  'SqliteStore.search in a target': withStores((store, options) =>
    store.search({ scope: 'acme', ...options }, { text: 'cat', limit: 1 }),
  ),
  'SqliteStore.changesSince': withStores((store, options) => store.changesSince({ scope: 'acme', ...options }, 0)),

  SessionMemory: (options) => new SessionMemory(as(options)),
  postgresStore: (options) => postgresStore('postgres://127.0.0.1:1/none', as(options)),
  redisStore: (options) => redisStore('redis://127.0.0.1:1', as(options)),
  'SessionMemory with dependencies': (options) => new SessionMemory({}, as(options)),
  PersistentSessions: (options) => new PersistentSessions(as({ store: ramStore(), scope: 'acme', ...options })),
  'PersistentSessions.addMessage': (options) => sessions().addMessage('a', 'user', 'Hi', as(options)),
  UnifiedAIService: (options) => new UnifiedAIService(as(options)),
  'UnifiedAIService.initialize': (options) => service().initialize('a:b', as({ provider: 'offline', ...options })),
  'UnifiedAIService.processText': async (options) => {
    for await (const _ of service().processText(as({ text: 'Hi', ...options })));
  },
}

/** Public functions that no caller gives options of his own, and the reason. */
const withoutOptions: Readonly<Record<string, string>> = {
  Memory: 'is created by openMemory, which checks the options',
  Upkeep: 'is created by createUpkeep, which checks the options',
  Lifecycle: 'is created by createLifecycle, which checks the options',
  'replayer.trace': 'is called by Memory.trace, which checks the options',
  'replayer.replay': 'is called by Memory.replay, which checks the profile',
  MemoryError: 'is thrown by the library',
  PostgresStore: 'is created by postgresStore, which checks the options',
  'PostgresStore.changesSince': 'is called with those of SqliteStore',
  'PostgresStore.erase': 'is called with those of SqliteStore',
  'PostgresStore.list': 'is called with those of SqliteStore',
  'PostgresStore.readMessages': 'is called with those of SqliteStore',
  'PostgresStore.records': 'is called with those of SqliteStore',
  'PostgresStore.search': 'is called with those of SqliteStore',
  'SecretMasker.maskDocument': 'is called by the indexer of files, with the fields it has found',
}

/** Types of parameters that are values, not options: texts, numbers, functions, entries, and objects with methods. */
const valueTypes: ReadonlySet<string> = new Set([
  ...['string', 'number', 'boolean', 'string | Key', 'number | string', 'Key', 'Scope', 'Millis', 'Framing'],
  ...[
    "Pick<Key, 'scope' | 'id'>",
    "Pick<NewMessage, 'externalId'>",
    '{ readonly content: string | null }',
    'ErrorCode',
    'UpkeepTrigger',
    'SessionEndReason',
    "Profile['secrets']",
    'Environment',
  ],
  ...['Json', 'T', 'Message', 'ParsedMessage', 'NewMessage', 'NewestMessage', 'DerivedEntry', 'Entry', 'SessionHead'],
  ...['MessageInput', "MessageInput['role']", "MessageInput['content']", 'EntryVector', 'EmbeddingProgress'],
  ...['EmbeddingCounts', 'SessionChange', 'AuxiliaryRecord', 'Uint8Array', 'Float32Array'],
  ...['Store', 'SearchIndex', 'Store & SearchIndex', 'Embedder', 'Tokenizer', 'Keyring', 'Pause', 'ExtensionEvents'],
])

/** True for a parameter such as `key: string | Key` or `now: Millis = 0`. */
function isValue(parameter: string): boolean {
  if (/^\w+\??: \(.*\) => /.test(parameter) || /^\w+ = (?:\d+|true|false)$/.test(parameter)) return true
  const type = parameter.replace(/^(?:\w+\??|\{[^}]*\}|\[[^\]]*\]): /, '').replace(/ = .*$/, '')
  return valueTypes.has(type.replace(/^readonly /, '').replace(/\[\]$/, ''))
}

const outcomeOf = async (call: Call, options: Options): Promise<unknown> => {
  try {
    await call(options)
    return 'accepted'
  } catch (error) {
    return error
  }
}
describe('library', () => {
  for (const [name, call] of Object.entries(calls))
    verifies('R-06', `${name} › with an unknown option › is refused and names it`, async () => {
      const error = await outcomeOf(call, { mesages: ['m1'] })
      expect(error).toMatchObject({ name: 'MemoryError', code: expect.stringMatching(/^bad-(option|profile)$/) })
      expect((error as Error).message).toContain('mesages')
      expect((error as Error).message).toMatch(/Use one of: |exactly one field|There are none/)
    })

  verifies('R-06', 'everything exported › takes no options, or refuses unknown ones', async () => {
    const signatures = await listPublicSignatures()
    const takingOptions = signatures.filter(({ parameters }) => !parameters.every(isValue)).map(({ name }) => name)
    const checked = [
      ...Object.keys(calls).filter((name) => !/ (?:by|with|in) /.test(name)),
      ...Object.keys(withoutOptions),
    ]
    expect(takingOptions.toSorted()).toEqual(checked.toSorted())
    expect(signatures.length).toBeGreaterThan(100)
  })

  const wrongOptions: readonly (readonly [name: string, options: Options])[] = [
    ...[null, 'abc', 1, Number.NaN, [1], {}].map((value) => ['Memory.forget', { messageIds: value }] as const),
    ...[null, 7, '', ['m1']].map((value) => ['Memory.forget', { messageId: value }] as const),
    ['Memory.forget', { messageIds: undefined }],
    ['Memory.forget', { messageId: 'm1', messageIds: ['m1'] }],
    ['Memory.forget', { scope: 'acme' }],
    ['Memory.forget', { text: 'Miso' }],
    ['Memory.forget', { person: 'ann' }],
    ...[null, 'x', -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map(
      (value) => ['Memory.transcript', { limit: value }] as const,
    ),
    ...[null, 'x', 0, Number.NaN].map((value) => ['Memory.search', { limit: value }] as const),
    ...[null, '2026', Number.NaN].map((value) => ['Memory.search', { from: value }] as const),
    ['Memory.search', { kinds: 'fact' }],
    ['Memory.search', { session: 7 }],
    ...[null, '9', 0, Number.NaN].map((value) => ['Memory.context', { budget: value }] as const),
    ['Memory.context', { person: null }],
    ['Memory.append', { operationId: 7 }],
    ['Memory.append', { epoch: Number.NaN }],
    ['Memory.append', { sequence: '3' }],
    ['Memory.remember', { messages: 'm1' }],
    ['Memory.remember', { by: null }],
    ['openMemory', { clock: 5 }],
    ['openMemory', { store: 5 }],
    ['openMemory', { profile: null }],
    ['Memory.export', { scope: 5 }],
    ['Memory.import', { onExisting: 'overwrite' }],
    ['Upkeep.facts', { asOf: 'yesterday' }],
    ['ramStore', { maxBytes: Number.NaN }],
    ['SessionMemory', { maxTokens: '2000' }],
    ['PersistentSessions', { secrets: 'show' }],
  ]
  for (const [name, options] of wrongOptions) {
    const [[option, value] = []] = Object.entries(options)
    verifies(
      'R-06',
      `${name} › with ${option} = ${String(JSON.stringify(value))} (${String(value)}) › is refused`,
      async () => {
        const error = await outcomeOf(calls[name] as Call, options)
        expect(error).toMatchObject({ name: 'MemoryError', code: expect.stringMatching(/^bad-(option|profile|key)$/) })
      },
    )
  }

  for (const value of [null, 'abc', 7, [], () => undefined])
    verifies('R-06', `forget › with ${typeof value} ${JSON.stringify(value)} as target › is refused`, async () => {
      await using memory = await createMemory()
      await expect(memory.forget(as(value))).rejects.toMatchObject({ code: 'bad-option' })
    })
})

describe('forget', () => {
  verifies(['R-06', 'X-05'], 'with an unknown or undefined selector › forgets nothing', async () => {
    await using memory = await createMemory()
    for (const selector of [{ messages: ['m1'] }, { messageID: 'm1' }, { messageIds: undefined }, { ids: [] }])
      await expect(memory.forget(as({ key: 'acme:ann', ...selector }))).rejects.toMatchObject({ code: 'bad-option' })
    expect(await memory.transcript('acme:ann')).toHaveLength(1)
  })

  verifies(['R-06', 'X-05'], 'with an empty list of messages › forgets nothing', async () => {
    await using memory = await createMemory()
    expect((await memory.forget({ key: 'acme:ann', messageIds: [] })).sessions).toEqual([])
    expect(await memory.transcript('acme:ann')).toHaveLength(1)
  })

  verifies('R-06', 'with a misspelt selector › suggests the right one', async () => {
    await using memory = await createMemory()
    await expect(memory.forget(as({ key: 'acme:ann', messageID: 'm1' }))).rejects.toThrow(
      'Unknown option of forget: "messageID". Did you mean messageId? Use one of: key, messageId, messageIds,',
    )
  })
})

describe('an option of a prototype', () => {
  verifies('R-06', 'of forget › is refused if it is unknown, and nothing is erased', async () => {
    await using memory = await createMemory()
    const target = Object.assign(Object.create({ messageId: 'm1' }), { key: 'acme:ann' })
    await expect(memory.forget(target)).rejects.toMatchObject({ code: 'bad-option', param: 'messageId' })
    expect(await memory.transcript('acme:ann')).toHaveLength(1)
  })
})
