import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, vi } from 'vitest'
import { UnifiedAIService } from '../../src/adapters/ai-service.ts'
import { PersistentSessions } from '../../src/adapters/persistent-sessions.ts'
import { SessionMemory } from '../../src/adapters/session-memory.ts'
import * as browser from '../../src/browser.ts'
import { parseKey } from '../../src/domain/key.ts'
import { openGraph } from '../../src/graph/graph.ts'
import { Handoff } from '../../src/handoff/handoff.ts'
import { type Embedder, type Model, openMemory, profiles, ramStore } from '../../src/index.ts'
import { createLifecycle } from '../../src/lifecycle/lifecycle.ts'
import { createEmbeddingQueue } from '../../src/memory/embedding.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { Memory } from '../../src/memory.ts'
import { parseForeign } from '../../src/portable/format.ts'
import { importForeign } from '../../src/portable/importForeign.ts'
import { openStore } from '../../src/stores/open.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createUpkeep } from '../../src/upkeep/upkeep.ts'
import { importEntryPoints } from '../options/publicSignatures.ts'
import { readAll } from '../portable/byteStreams.ts'
import { verifies } from '../requirements/verifies.ts'
import { user } from '../server/start.ts'
import { root } from '../shape/source.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { Canaries } from './canaries.ts'
import { foreignFiles } from './foreignFiles.ts'

const fresh = createTempPaths()

type Attempts = readonly (() => unknown)[]

/** Calls of every method of `Memory` with a secret wherever text is accepted. */
const calls: Readonly<Record<string, (memory: Memory, secret: string) => Attempts>> = {
  append: (memory, secret) => [
    () => memory.append('acme:known', [{ ...user(`see ${secret}`), name: secret }], { operationId: secret }),
    () =>
      memory.append('acme:known', [
        {
          role: 'assistant',
          content: [
            { type: 'text', text: secret },
            { type: 'text', text: 'more' },
          ],
          tool_calls: [{ id: secret, function: { name: secret, arguments: `{"a":{"b":["${secret}"]}}` } }],
          payload: { protocol: 'chat', items: [{ [secret]: [{ note: secret }] }] },
        },
        { role: 'tool', tool_call_id: secret, content: secret },
      ]),
    () => memory.append('acme:known', [{ ...user('Hello.'), id: secret }]),
    () => memory.append(`acme:${secret}`, [user('Hello.')]),
    () => memory.append(`${secret}:known`, [user('Hello.')]),
    () =>
      memory.append('acme:known', [
        {
          role: 'user',
          content: [
            { type: 'text', text: `see ${secret.slice(0, 30)}` },
            { type: 'text', text: secret.slice(30) },
          ],
        },
      ]),
  ],
  replace: (memory, secret) => [
    () => memory.replace('acme:known', 'm1', { ...user(`see ${secret}`), name: secret }),
    () => memory.replace('acme:known', 'm1', { ...user('Hello.'), id: secret }),
    () => memory.replace('acme:known', secret, user('Hello.')),
  ],
  replaceFrom: (memory, secret) => [
    () => memory.replaceFrom('acme:known', 'm1', [user('Hello.'), { ...user(`see ${secret}`), name: secret }]),
    () => memory.replaceFrom('acme:known', secret, [user('Hello.')]),
  ],
  sessions: (memory, secret) => [() => memory.sessions({ metadata: { [secret]: secret }, after: secret })],
  // Rows are verbatim by specification: what a program puts into its table is not masked. Only the scope is checked.
  table: (memory, secret) => [() => memory.table(secret).put([], 'a', 1)],
  context: (memory, secret) => [() => memory.context('acme:known', { query: secret, person: secret })],
  remember: (memory, secret) => [
    () => memory.remember('acme', { category: 'domain', key: secret, value: { [secret]: secret }, messages: [secret] }),
    () => memory.remember('acme', { category: 'domain', key: 'a', value: 1, session: secret }),
    () => memory.remember('acme', { category: 'domain', key: 'a', value: 1, person: secret }),
    () => memory.remember(secret, { category: 'domain', key: 'a', value: 1 }),
  ],
  setMetadata: (memory, secret) => [
    () => memory.setMetadata('acme:known', { metadata: { [secret]: [secret] }, template: secret }),
    () => memory.setMetadata('acme:known', { person: secret }),
    () => memory.setMetadata(`acme:${secret}`, { metadata: 1 }),
  ],
  upkeep: ({ upkeep }, secret) => [
    () => upkeep.update('acme:known', { important_data: { entities: { note: secret } }, conversation_summary: secret }),
  ],
  lifecycle: ({ lifecycle }, secret) => [
    () => lifecycle.setMetadata(parseKey('acme:known'), { metadata: { note: secret } }),
  ],
  transfer: (memory, secret) => [() => memory.transfer('acme:known', `acme:${secret}`)],
  trace: (memory, secret) => [() => memory.trace('acme:known', { query: secret })],
  search: (memory, secret) => [() => memory.search('acme', secret)],
  transcript: (memory, secret) => [() => memory.transcript(`acme:${secret}`)],
  metadata: (memory, secret) => [() => memory.metadata(`acme:${secret}`)],
  epoch: (memory, secret) => [() => memory.epoch(`acme:${secret}`)],
  mask: (memory, secret) => [() => memory.mask('acme:known', secret)],
  maskMessage: (memory, secret) => [() => memory.maskMessage('acme:known', { at: 0, role: 'user', content: secret })],
  knowsSecrets: (memory, secret) => [() => memory.knowsSecrets('acme:known', secret)],
  forget: (memory, secret) => [() => memory.forget({ scope: 'acme', text: `none ${secret}` })],
  end: (memory, secret) => [() => memory.end(`acme:${secret}`)],
  // Imports and exports have tests of their own; the others take no text.
  ...Object.fromEntries(
    ['import', 'export', 'replay', 'health', 'embeddingProgress', 'sweep', 'close'].map((name) => [name, () => []]),
  ),
}

/** Makes all attempts, whether they succeed or not. */
async function attemptAll(attempts: Attempts): Promise<void> {
  for (const attempt of attempts)
    await Promise.resolve()
      .then(attempt)
      .catch(() => undefined)
}

/** An embedder and a model for upkeep that keep what they are sent. */
function createRecorders() {
  const texts: string[] = []
  const embedder: Embedder = {
    name: 'recorder',
    embed: async (sent) => {
      texts.push(...sent)
      return sent.map(() => Float32Array.of(1, 0))
    },
  }
  const model: Model = {
    name: 'recorder',
    async *reply(request) {
      texts.push(JSON.stringify(request))
      yield 'Noted.'
    },
  }
  return { texts, embedder, model }
}

/** Calls every method of a memory with secrets. Returns what was exported and what went to the embedder and the model. */
async function callAllMethods(memory: Memory, canaries: Canaries): Promise<void> {
  await memory.append('acme:known', [user('Hello.')])
  for (const [name, call] of Object.entries(calls)) await attemptAll(call(memory, canaries.create(name)))
  await memory.upkeep.tick(Date.now() + 86_400_000)
  await memory.upkeep.whenIdle()
}

/** Names of methods and functions that a class has, apart from private ones. */
const methodsOf = ({ prototype }: { prototype: object }): string[] =>
  Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor')

type Adapter = (canaries: Canaries) => Promise<void>

/** Calls of the adapters with secrets, and what must not contain them. */
const adapters: Readonly<Record<string, Adapter>> = {
  '.': async (canaries) => {
    const [file, { texts, embedder, model }] = [fresh(), createRecorders()]
    expect(methodsOf(Memory).toSorted()).toEqual(Object.keys(calls).toSorted())
    const memory = await openMemory({ store: `sqlite:${file}`, embedder, model })
    await callAllMethods(memory, canaries)
    const bundle = (await readAll(memory.export())).toString('utf8')
    await memory.close()
    expect(texts.length).toBeGreaterThan(5)
    expect([canaries.findIn(file), canaries.findInText(bundle), canaries.findInText(texts.join('\n'))]).toEqual([
      [],
      [],
      [],
    ])
  },
  './browser': async (canaries) => {
    const [file, { texts, embedder, model }] = [fresh(), createRecorders()]
    const options = {
      store: sqliteStore(file),
      embedder,
      embedding: createEmbeddingQueue,
      upkeep: createUpkeep({ model }),
      lifecycle: createLifecycle(),
    }
    // Without a masker, nothing that takes text out of RAM is accepted.
    const { store, upkeep, embedding } = options
    for (const given of [{ store }, { upkeep }, { model }, { embedder, embedding, store: ramStore() }])
      await expect(browser.openMemory(given)).rejects.toMatchObject({ code: 'bad-option', param: 'masker' })
    const memory = await browser.openMemory({ ...options, masker: createSecretMasker })
    await callAllMethods(memory, canaries)
    await memory.close()
    await options.store.close()
    expect([canaries.findIn(file), canaries.findInText(texts.join('\n'))]).toEqual([[], []])
  },
  './persistent-sessions': async (canaries) => {
    const file = fresh()
    const store = sqliteStore(file)
    const sessions = new PersistentSessions({ store, scope: 'acme' })
    const { id } = await sessions.addMessage('known', 'user', 'Hello.')
    const attempts: Readonly<Record<string, (secret: string) => Attempts>> = {
      addMessage: (secret) => [
        () => sessions.addMessage('known', 'user', `Use ${secret}.`, { name: secret }),
        () => sessions.addMessage(secret, 'user', 'Hello.'),
        () =>
          sessions.addMessage('known', 'assistant', '', {
            tool_calls: [{ id: secret, function: { name: secret, arguments: `{"key":"${secret}"}` } }],
          }),
        () => sessions.addMessage('known', 'tool', secret, { tool_call_id: secret }),
      ],
      getOrCreate: (secret) => [() => sessions.getOrCreate(secret)],
      compressMessages: (secret) => [
        () => sessions.compressMessages('known', id, secret),
        async () => sessions.compressMessages('known', (await sessions.addMessage('known', 'user', 'Hi.')).id, secret),
      ],
      getContextMessages: (secret) => [() => sessions.getContextMessages(secret)],
      delete: (secret) => [() => sessions.delete(secret)],
      list: () => [() => sessions.list()],
    }
    const internal = ['key', 'head', 'describeMessages', 'toSessionMessage', 'toSummaryMessage']
    expect(methodsOf(PersistentSessions).toSorted()).toEqual([...Object.keys(attempts), ...internal].toSorted())
    for (const [name, create] of Object.entries(attempts)) await attemptAll(create(canaries.create(name)))
    expect((await sessions.getOrCreate('known')).messageCount).toBeGreaterThan(3)
    await store.close()
    expect(canaries.findIn(file)).toEqual([])
  },
  // Text stays in RAM and goes to no other session; see the test of the modules that these adapters import.
  './session-memory': async (canaries) => {
    const memory = new SessionMemory()
    const secret = canaries.create('addUserMessageForKey')
    memory.addUserMessageForKey('a.example:1', `Use ${secret}.`)
    memory.addAssistantMessageForKey('a.example:1', secret)
    memory.getSession('b.example:1')
    memory.addUserMessage('Hello.')
    expect(memory.getContextStringForKey('a.example:1')).toContain(secret)
    expect(memory.getContextStringForKey('b.example:1')).not.toContain(secret)
    memory.clearTab(1)
    expect(memory.getContextStringForKey('a.example:1')).toBe('')
  },
  './ai-service': async (canaries) => {
    const sent: Record<string, string> = {}
    const service = new UnifiedAIService({
      memory: new SessionMemory(),
      modelFactory: ({ model = '' }) => ({
        name: model,
        async *reply(request) {
          sent[model] = `${sent[model]}${JSON.stringify(request)}`
          yield `It is ${JSON.stringify(request.messages).slice(-60)}.`
        },
      }),
    })
    const secret = canaries.create('processText')
    const ask = async (key: string, text: string): Promise<void> => {
      for await (const _ of service.processText({ key, text, isFollowUp: true }));
    }
    for (const model of ['a', 'b']) await service.initialize(`${model}.example:1`, { provider: 'local', model })
    await ask('a.example:1', `Use ${secret}.`)
    await ask('b.example:1', 'Which key did I use?')
    // The model of the session is the user's own, as in the prompts of a memory.
    expect(sent.a).toContain(secret)
    expect(sent.b).not.toContain(secret.slice(13, 30))
  },
}

/** Entry points that store and send no text of a conversation by themselves. */
const withoutText: Readonly<Record<string, string>> = {
  './conformance': 'tests a store with its own texts',
  './upkeep': 'is called by a memory with masked entries',
  './secrets': 'is the masker',
  './lifecycle': 'is called by a memory with masked entries',
  './word-table': 'reads a table of words',
  './embedding': 'is called by a memory with masked entries and questions',
  './replay': 'is called by a memory and stores nothing',
  './ram': 'is a store, which keeps what a memory has masked',
  './sqlite': 'is a store, which keeps what a memory has masked',
  './postgres': 'is a store, which keeps what a memory has masked',
  './redis': 'is a store, which keeps what a memory has masked',
  './encrypted': 'is a store, which keeps what a memory has masked',
}

/** Files that a source file imports, directly and indirectly, and the packages. */
function importsOf(file: string, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(file)) return found
  found.add(file)
  for (const [, target = ''] of readFileSync(file, 'utf8').matchAll(
    /^(?:import|export) (?!type\b)[^;']*? from '([^']+)'/gm,
  ))
    if (target.startsWith('.')) importsOf(join(file, '..', target), found)
    else found.add(target)
  return found
}

describe('a secret in any string', () => {
  verifies(['R-02', 'X-08'], 'of any entry point › is listed here', async () => {
    const names = [...(await importEntryPoints()).keys()]
    expect(names.toSorted()).toEqual([...Object.keys(adapters), ...Object.keys(withoutText)].toSorted())
    const files = readdirSync(`${root}src/adapters`).map((file) => `./${file.replace(/\.ts$/, '')}`)
    expect(files.filter((name) => adapters[name] === undefined)).toEqual([])
  })

  for (const [name, run] of Object.entries(adapters))
    verifies(['R-02', 'X-08'], `of any method of ${name} › is in no file, log, export or other session`, async () => {
      const lines: unknown[] = []
      const streams = [process.stdout, process.stderr].map((stream) =>
        vi.spyOn(stream, 'write').mockImplementation((line) => {
          lines.push(line)
          return true
        }),
      )
      const canaries = new Canaries()
      try {
        await run(canaries)
      } finally {
        for (const stream of streams) stream.mockRestore()
      }
      expect(canaries.findInText(lines.map(String).join('\n'))).toEqual([])
    })

  verifies(['R-02', 'E-02'], 'of a browser tab › cannot leave RAM, except for the model of its session', () => {
    const filesOf = (name: string): string[] =>
      [...importsOf(`${root}src/adapters/${name}.ts`)].map((file) => file.replace(`${root}src/`, ''))
    const tab = filesOf('session-memory')
    expect(tab.length).toBeGreaterThan(10)
    expect(
      tab.filter((file) => !file.endsWith('.ts') || /^(?:providers|server|cli|mcp|graph|files|portable)\//.test(file)),
    ).toEqual([])
    expect(tab.filter((file) => file.startsWith('stores/') && !file.startsWith('stores/ram/'))).toEqual([])
    const more = filesOf('ai-service').filter((file) => !tab.includes(file))
    expect(more.filter((file) => !/^(?:adapters|domain|providers|text)\//.test(file))).toEqual(['eventsource-parser'])
  })

  verifies(['R-02', 'X-08'], 'of any imported format › is in no file of the store', async () => {
    const file = fresh()
    const canaries = new Canaries()
    const store = await openStore(`sqlite:${file}`)
    const memory = await openMemory({ store })
    for (const [format, write] of Object.entries(foreignFiles))
      await importForeign(
        { memory, store, scope: 'acme' },
        parseForeign(format as keyof typeof foreignFiles, write(canaries.create(format))),
        { now: 1_000 },
      )
    const plain = await openMemory({ store: `sqlite:${fresh()}`, profile: { ...profiles.thread, secrets: 'keep' } })
    const secret = canaries.create('bundle')
    await plain.append('bob:known', [{ ...user(`Use ${secret}.`), name: secret }])
    await plain.remember('bob', { category: 'domain', key: `key ${secret}`, value: { note: secret } })
    await plain.setMetadata('bob:known', { metadata: { note: secret } })
    const bundle = await readAll(plain.export())
    expect(bundle.includes(secret)).toBe(true)
    await memory.import(async function* () {
      yield bundle
    })
    expect((await memory.transcript('bob:known')).length).toBe(1)
    await plain.close()
    await memory.close()
    expect(canaries.findIn(file)).toEqual([])
  })

  verifies(['R-02', 'X-08'], 'of a saved session and its directory › is in no file of either', async () => {
    const canaries = new Canaries()
    const openHandoff = async (file: string, secrets: 'keep' | 'mask') => {
      const memory = await openMemory({ profile: { ...profiles.handoff, secrets }, store: `sqlite:${file}` })
      const graph = await openGraph(`sqlite:${file}`, { masker: createSecretMasker(secrets, memory.tokenizer) })
      const handoff = new Handoff({ memory, graph, clock: Date.now })
      return {
        handoff,
        close: async () => {
          await handoff.close()
          await graph.close()
          await memory.close()
        },
      }
    }
    const save = (handoff: Handoff, secret: string) =>
      handoff.save('acme', {
        messages: [{ ...user(`Use ${secret}.`), name: secret }],
        title: `Title ${secret}`,
        workspaceState: { activeProject: secret, enabledMcps: [secret], settings: { [secret]: [secret] } },
        contextItems: [{ content: `Remember ${secret}.`, category: 'task' }],
        fileReferences: [{ path: `/tmp/${secret}.txt` }],
      })
    const listFiles = (folder: string): string[] =>
      readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true }).flatMap((entry) =>
        entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
      )
    const [masked, plain, imported] = [fresh(), fresh(), fresh()]
    const [maskedFolder, plainFolder, copiedFolder] = [fresh(''), fresh(''), fresh('')]

    const first = await openHandoff(masked, 'mask')
    await save(first.handoff, canaries.create('saved'))
    expect(await first.handoff.export('acme', { directory: maskedFolder, compress: false })).toMatchObject({
      sessions: 1,
    })
    await first.close()
    expect(canaries.findIn(masked, listFiles(maskedFolder))).toEqual([])

    const second = await openHandoff(plain, 'keep')
    await save(second.handoff, canaries.create('directory of a store that keeps secrets'))
    await second.handoff.export('acme', { directory: plainFolder, compress: false })
    await second.close()
    expect(canaries.findIn(plain, listFiles(plainFolder)).length).toBeGreaterThan(1)

    const third = await openHandoff(imported, 'mask')
    expect(await third.handoff.import({ directory: plainFolder })).toMatchObject({ sessions: 1, skipped: [] })
    await third.handoff.export('acme', { directory: copiedFolder, compress: false })
    const { context } = await third.handoff.restore('acme', {})
    await third.close()
    expect(context).toContain('⟨secret:')
    expect([canaries.findIn(imported, listFiles(copiedFolder)), canaries.findInText(context)]).toEqual([[], []])
  })
})
