import { describe, expect } from 'vitest'
import { UnifiedAIService } from '../../src/adapters/ai-service.ts'
import { PersistentSessions } from '../../src/adapters/persistent-sessions.ts'
import { SessionMemory } from '../../src/adapters/session-memory.ts'
import type { Embedder } from '../../src/domain/ports.ts'
import * as library from '../../src/index.ts'
import { Lifecycle } from '../../src/lifecycle/lifecycle.ts'
import { createEmbeddingQueue } from '../../src/memory/embedding.ts'
import { Memory } from '../../src/memory.ts'
import { loadKeyring } from '../../src/stores/encrypted.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { Upkeep } from '../../src/upkeep/upkeep.ts'
import { verifies } from '../requirements/verifies.ts'

type Options = Record<string, unknown>
/** Calls a method with valid arguments and these options added. */
type Call = (options: Options) => unknown

const { openMemory, ramStore } = library
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

/** Methods with options. The others take only positional arguments, which the test below lists. */
const memoryMethods: Readonly<Record<string, Call>> = {
  append: withMemory((memory, options) => memory.append('acme:ann', messages, options)),
  context: withMemory((memory, options) => memory.context('acme:ann', as(options))),
  transcript: withMemory((memory, options) => memory.transcript('acme:ann', options)),
  search: withMemory((memory, options) => memory.search('acme', 'cat', options)),
  remember: withMemory((memory, options) =>
    memory.remember('acme', { category: 'domain', key: 'a', value: 'b', ...options }),
  ),
  embeddingProgress: withMemory((memory, options) => memory.embeddingProgress(options)),
  forget: withMemory((memory, options) => memory.forget(as({ key: 'acme:ann', ...options }))),
  export: withMemory(async (memory, options) => {
    for await (const _ of memory.export(options));
  }),
  import: withMemory((memory, options) => memory.import(() => memory.export(), options)),
  setMetadata: withMemory((memory, options) => memory.setMetadata('acme:ann', options)),
  trace: withMemory((memory, options) => memory.trace('acme:ann', options)),
  replay: withMemory(async (memory, options) =>
    memory.replay(await memory.trace('acme:ann'), as({ ...library.profiles.thread, ...options })),
  ),
}
const memoryWithoutOptions = ['health', 'epoch', 'sweep', 'end', 'transfer', 'metadata', 'knowsSecrets', 'maskMessage']
const otherMemoryNames = ['constructor', 'upkeep', 'lifecycle', 'mask', 'close']

const upkeepMethods: Readonly<Record<string, Call>> = {
  record: withMemory((memory, options) => memory.upkeep.record('acme:ann', options)),
  update: withMemory((memory, options) => memory.upkeep.update('acme:ann', options)),
  facts: withMemory((memory, options) => memory.upkeep.facts('acme:ann', options)),
  knowledge: withMemory((memory, options) => memory.upkeep.knowledge('acme', options)),
  approve: withMemory((memory, options) => memory.upkeep.approve('acme', 'k1', options)),
  restore: withMemory((memory, options) => memory.upkeep.restore('acme', 'k1', options)),
}
const upkeepWithoutOptions = [
  ...['constructor', 'notify', 'storeReminders', 'invalidate', 'whenReady', 'tick', 'whenIdle', 'health', 'stop'],
  ...['rederive', 'clear', 'summaries', 'losses', 'optimizerStatus', 'head', 'learn'],
]
const lifecycleWithoutOptions = [
  ...['constructor', 'prepareForWrite', 'refresh', 'admit', 'evictOverflow', 'end', 'sweep', 'metadata', 'transfer'],
  ...[
    'auxiliaryData',
    'whenIdle',
    'stop',
    'write',
    'eraseOrphans',
    'endAll',
    'endExpired',
    'auxiliaryKeysIn',
    'failingDeliveries',
  ],
]

const exportedFunctions: Readonly<Record<string, Call>> = {
  openMemory: async (options) => (await openMemory(as(options))).close(),
  createLifecycle: (options) => library.createLifecycle(as(options)),
  createUpkeep: (options) => library.createUpkeep(as(options)),
  openaiEmbedder: (options) => library.openaiEmbedder({ model: 'm', ...options }),
  ollamaEmbedder: (options) => library.ollamaEmbedder({ model: 'm', ...options }),
  transformersEmbedder: (options) => library.transformersEmbedder({ model: 'm', ...options }),
  ramStore: (options) => ramStore(as(options)),
  parseProfile: (options) => library.parseProfile({ ...library.profiles.thread, ...options }),
}
const exportsWithoutOptions = [
  'MemoryError',
  'Memory',
  'formatKey',
  'parseKey',
  'profiles',
  'createEmbedder',
  'offlineModel',
  'tokenizerFor',
]

const otherEntryPoints: Readonly<Record<string, Call>> = {
  sqliteStore: (options) => sqliteStore('/tmp/never-created.db', as(options)),
  loadKeyring: (options) => loadKeyring('env:NAME', as(options)),
  createEmbeddingQueue: (options) => createEmbeddingQueue(ramStore(), embedder, as(options)),
  'search by vector': withMemory((memory, options) =>
    memory.search('acme', as({ vector: [1], model: 'm', ...options })),
  ),
  'encryption of an export': withMemory(async (memory, options) => {
    for await (const _ of memory.export({ encryption: { passphrase: 'long enough', ...options } }));
  }),
  'Store.erase': (options) => ramStore().erase(library.parseKey('acme:ann'), as(options)),
  SessionMemory: (options) => new SessionMemory(as(options)),
  'SessionMemory dependencies': (options) => new SessionMemory({}, as(options)),
  PersistentSessions: (options) => new PersistentSessions(as({ store: ramStore(), scope: 'acme', ...options })),
  'PersistentSessions.addMessage': (options) => sessions().addMessage('a', 'user', 'Hi', as(options)),
  UnifiedAIService: (options) => new UnifiedAIService(as(options)),
  'UnifiedAIService.initialize': (options) => service().initialize('a:b', as({ provider: 'offline', ...options })),
  'UnifiedAIService.processText': async (options) => {
    for await (const _ of service().processText(as({ text: 'Hi', ...options })));
  },
}

const all = { ...memoryMethods, ...upkeepMethods, ...exportedFunctions, ...otherEntryPoints }
const outcomeOf = async (call: Call, options: Options): Promise<unknown> => {
  try {
    await call(options)
    return 'accepted'
  } catch (error) {
    return error
  }
}
const methodsOf = ({ prototype }: { prototype: object }): string[] => Object.getOwnPropertyNames(prototype).sort()

describe('library', () => {
  for (const [name, call] of Object.entries(all))
    verifies('R-06', `${name} › with an unknown option › is refused and names it`, async () => {
      const error = await outcomeOf(call, { mesages: ['m1'] })
      expect(error).toMatchObject({ name: 'MemoryError', code: expect.stringMatching(/^bad-(option|profile)$/) })
      expect((error as Error).message).toContain('mesages')
      expect((error as Error).message).toMatch(/Use one of: |exactly one field/)
    })

  verifies('R-06', 'every public method › is checked or takes no options', () => {
    expect(methodsOf(Memory)).toEqual(
      [...Object.keys(memoryMethods), ...memoryWithoutOptions, ...otherMemoryNames].sort(),
    )
    expect(methodsOf(Upkeep)).toEqual([...Object.keys(upkeepMethods), ...upkeepWithoutOptions].sort())
    expect(methodsOf(Lifecycle).filter((name) => !lifecycleWithoutOptions.includes(name))).toEqual(['setMetadata'])
    expect(Object.keys(library).sort()).toEqual([...Object.keys(exportedFunctions), ...exportsWithoutOptions].sort())
  })

  const wrongOptions: readonly (readonly [name: string, options: Options])[] = [
    ...[null, 'abc', 1, Number.NaN, [1], {}].map((value) => ['forget', { messageIds: value }] as const),
    ...[null, 7, '', ['m1']].map((value) => ['forget', { messageId: value }] as const),
    ['forget', { messageIds: undefined }],
    ['forget', { messageId: 'm1', messageIds: ['m1'] }],
    ['forget', { scope: 'acme' }],
    ['forget', { text: 'Miso' }],
    ['forget', { person: 'ann' }],
    ...[null, 'x', -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map(
      (value) => ['transcript', { limit: value }] as const,
    ),
    ...[null, 'x', 0, Number.NaN].map((value) => ['search', { limit: value }] as const),
    ...[null, '2026', Number.NaN].map((value) => ['search', { from: value }] as const),
    ['search', { kinds: 'fact' }],
    ['search', { session: 7 }],
    ...[null, '9', 0, Number.NaN].map((value) => ['context', { budget: value }] as const),
    ['context', { person: null }],
    ['append', { operationId: 7 }],
    ['append', { epoch: Number.NaN }],
    ['append', { sequence: '3' }],
    ['remember', { messages: 'm1' }],
    ['remember', { by: null }],
    ['openMemory', { clock: 5 }],
    ['openMemory', { store: 5 }],
    ['openMemory', { profile: null }],
    ['export', { scope: 5 }],
    ['import', { onExisting: 'overwrite' }],
    ['facts', { asOf: 'yesterday' }],
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
        const error = await outcomeOf(all[name as keyof typeof all] as Call, options)
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
