import { existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { DerivedEntry, Message } from '../../src/domain/entry.ts'
import { formatKey, type Key, parseKey } from '../../src/domain/key.ts'
import type { Embedder } from '../../src/domain/ports.ts'
import { createUpkeep, type Memory, type MemoryOptions, openMemory } from '../../src/index.ts'
import type { Rederive } from '../../src/memory/forget.ts'
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from './tempPaths.ts'
import { databaseFiles, findTraces } from './traces.ts'

const newPath = createTempPaths()
const canary = 'Qx7-walrus-Zk93-canary'

/** Embeds a text as its bytes, so that leftover vectors can be found in the file. */
const byteEmbedder: Embedder = {
  name: 'bytes',
  embed: async (texts) =>
    texts.map((text) => Float32Array.from(Buffer.from(text.padEnd(32).slice(0, 32)), (byte) => byte)),
}

/** Searches the files for the vector of the canary message. */
async function hasVector(file: string): Promise<boolean> {
  const [vector] = await byteEmbedder.embed([`The code of the safe is ${canary}.`])
  return databaseFiles(file).some(
    (path) => existsSync(path) && readFileSync(path).includes(Buffer.from((vector as Float32Array).buffer)),
  )
}

/** Derives an entry that repeats every word of the messages: the worst case for erasure. */
function deriveVerbatim(
  entry: Pick<DerivedEntry, 'id' | 'kind'>,
  messages: readonly Message[],
  session: string | undefined,
): DerivedEntry | undefined {
  const [first, last] = [messages[0], messages.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const text = messages.map(({ content }) => content).join(' | ')
  const sources = messages.map(({ id }) => ({ message: id, ...(session === undefined ? {} : { session }) }))
  const common = { id: entry.id, at: last.at, sources }
  if (entry.kind === 'summary')
    return {
      ...common,
      kind: 'summary',
      tier: 'progressive',
      text,
      covers: [first.sequence, last.sequence],
      endOffset: 20,
      version: 1,
      by: 'builtin',
      lossyRanges: [],
    }
  if (entry.kind === 'fact')
    return { ...common, kind: 'fact', field: 'important_facts', key: 'said', value: text, importance: 5 }
  return {
    ...common,
    kind: 'knowledge',
    category: 'domain',
    key: 'said',
    value: text,
    confidence: 0.5,
    usedAt: last.at,
  }
}

const rederive: Rederive = async (entry, remaining) =>
  deriveVerbatim(entry, remaining, entry.kind === 'knowledge' ? 'ann' : undefined)

/** Counts the saved search indexes, which are compressed and cannot be searched for text. */
function countSnapshots(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return Number(database.prepare('SELECT count(*) AS count FROM snapshot').get()?.count)
  } finally {
    database.close()
  }
}

/** Searches a new export for the canary. */
async function exportHasCanary(memory: Memory): Promise<boolean> {
  const chunks: Uint8Array[] = []
  for await (const chunk of memory.export()) chunks.push(chunk)
  return Buffer.concat(chunks).includes(canary)
}

type Fixture = { readonly memory: Memory; readonly store: SqliteStore; readonly file: string }

async function openFixture(options: Pick<MemoryOptions, 'rederive' | 'upkeep'> = { rederive }): Promise<Fixture> {
  const file = newPath()
  const store = sqliteStore(file, { minSnapshotMessages: 1 })
  return { memory: await openMemory({ store, embedder: byteEmbedder, clock: () => 1_000, ...options }), store, file }
}

async function put(store: SqliteStore, key: Key, entries: readonly DerivedEntry[]): Promise<void> {
  const { revision, epoch, expiresAt } = await store.readHead(key, 0)
  await store.commit({
    id: `put ${revision}`,
    key,
    at: 1_000,
    epoch,
    base: revision,
    append: [],
    put: entries,
    drop: [],
    expiresAt,
  })
}

const ann = parseKey('acme:ann')
const scope = parseKey('acme')

/** Creates a conversation whose canary is in messages, derived entries, vectors, indexes and caches. */
async function openContaminated(options?: Pick<MemoryOptions, 'rederive' | 'upkeep'>): Promise<Fixture> {
  const fixture = await openFixture(options)
  const { memory, store } = fixture
  await memory.append('acme:ann', [
    { role: 'user', content: 'My cat is called Miso.' },
    { role: 'user', content: `The code of the safe is ${canary}.`, name: canary },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'save', arguments: `{"code":"${canary}"}` } }],
    },
    { role: 'user', content: 'Thank you.' },
  ])
  const messages = await memory.transcript('acme:ann')
  const derived = (kind: DerivedEntry['kind'], id: string, session?: string): DerivedEntry =>
    deriveVerbatim({ kind, id }, messages, session) as DerivedEntry
  await put(store, ann, [derived('summary', 's1'), derived('fact', 'f1')])
  await put(store, scope, [derived('knowledge', 'k1', 'ann')])
  for (const _ of [1, 2]) await store.storeVectors('bytes', await embedEverything(store))
  await memory.embeddingProgress({ settled: true })
  // Fills caches and search indexes.
  await memory.search('acme', `${canary} safe`, { limit: 5 })
  await memory.context('acme:ann')
  // The index is stored in the background.
  await expect.poll(() => countSnapshots(fixture.file)).toBe(1)
  return fixture
}

async function embedEverything(store: SqliteStore): Promise<Parameters<SqliteStore['storeVectors']>[1]> {
  const embedded: { key: Key; id: string; epoch: number; text: string; values: Float32Array }[] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { entries, next } = await store.listUnembedded('bytes', after, 9)
    const vectors = await byteEmbedder.embed(entries.map(({ text }) => text))
    embedded.push(...entries.map((entry, index) => ({ ...entry, values: vectors[index] as Float32Array })))
    after = next
  }
  return embedded
}

const traces = (file: string): string[] => findTraces(canary, databaseFiles(file))

describe('forget', () => {
  verifies(
    'X-05',
    'with a message leaves no trace in the file, the log, free pages, derived entries and search results',
    async () => {
      const { memory, store, file } = await openContaminated()
      // A snapshot is saved after the search has returned.
      await expect.poll(() => countSnapshots(file), { timeout: 10_000 }).toBe(1)
      expect([traces(file).length > 0, await exportHasCanary(memory)]).toEqual([true, true])
      const receipt = await memory.forget({ key: 'acme:ann', messageId: 'm2' })
      await memory.forget({ key: 'acme:ann', messageId: 'm3' })
      expect(receipt.sessions).toEqual([
        { key: 'acme', entries: ['k1'], rebuilt: ['k1'] },
        { key: 'acme:ann', entries: ['m2', 's1', 'f1'], rebuilt: ['s1', 'f1'] },
      ])
      expect([traces(file), countSnapshots(file), await exportHasCanary(memory)]).toEqual([[], 0, false])
      expect(await hasVector(file)).toBe(false)
      expect(JSON.stringify(await memory.search('acme', canary))).not.toContain(canary)
      expect(
        JSON.stringify([
          await store.readHead(ann, 9),
          await store.readHead(scope, 9),
          await memory.context('acme:ann'),
        ]),
      ).not.toContain(canary)
      expect(
        (await store.readHead(ann, 0)).derived.map((entry) => (entry.kind === 'summary' ? entry.text : '')),
      ).toContain('My cat is called Miso. | Thank you.')
      await memory.close()
      expect(traces(file)).toEqual([])
    },
  )

  verifies('X-05', 'without a rederive function removes derived entries and their vectors', async () => {
    const { memory, store, file } = await openContaminated({ upkeep: false })
    const [message] = await memory.search('acme', 'safe', { limit: 1 })
    expect(message?.entry.id).toBe('m2')
    expect(await hasVector(file)).toBe(true)
    expect(await memory.forget({ scope: 'acme', text: canary })).toEqual({
      at: 1_000,
      sessions: [
        { key: 'acme', entries: ['k1'] },
        { key: 'acme:ann', entries: ['m2', 'm3', 's1', 'f1'] },
      ],
    })
    expect([await hasVector(file), traces(file), (await store.readHead(ann, 0)).derived]).toEqual([false, [], []])
    await memory.close()
  })

  verifies('X-05', 'with a session or scope removes its key too and rejects late writers', async () => {
    for (const target of [{ key: `acme:${canary}` }, { scope: 'acme' }]) {
      const { memory, store, file } = await openFixture()
      const key = parseKey(`acme:${canary}`)
      await memory.append(key, [{ role: 'user', content: canary }], { operationId: 'op1' })
      const { epoch, expiresAt } = await store.readHead(key, 0)
      await memory.embeddingProgress({ settled: true })
      await memory.forget(target)
      const late = { id: 'late', key, at: 1_000, epoch, put: [], drop: [], expiresAt }
      const message = {
        at: 1,
        role: 'user',
        content: canary,
        tokens: 1,
        lineTokens: 1,
        tokenizer: 'x',
        weight: 1,
      } as const
      await expect(store.commit({ ...late, append: [message] })).rejects.toMatchObject({ code: 'erased' })
      await expect(store.commit({ ...late, id: 'op1', append: [message] })).rejects.toMatchObject({ code: 'erased' })
      expect(
        await store.storeVectors('bytes', [{ key, id: 'm1', epoch, text: canary, values: Float32Array.of(1) }]),
      ).toBe(0)
      expect([traces(file), await memory.transcript(key), await store.list({ limit: 9 })]).toEqual([[], [], []])
      await memory.close()
      expect(traces(file)).toEqual([])
    }
  })

  verifies('X-05', 'with a scope removes the rows of its table, their names and damaged copies', async () => {
    const { memory, store, file } = await openFixture()
    await store.table.writeRows('acme', 1_000, [
      { namespace: [canary], key: 'json', value: { note: canary } },
      { namespace: [], key: canary, value: Buffer.from(canary.repeat(500)) },
      { namespace: [], key: 'damaged', value: `${canary} in a damaged row` },
    ])
    await store.table.writeRows('acme', 2_000, [{ namespace: [], key: 'old', value: canary }])
    await store.table.writeRows('acme', 3_000, [{ namespace: [], key: 'old', value: 'new' }])
    await store.table.writeRows('zeta', 1_000, [{ namespace: [], key: 'kept', value: 'kept' }])
    const database = new DatabaseSync(file)
    database.exec("UPDATE table_row SET sum = sum + 1 WHERE value LIKE '%damaged%'")
    database.close()
    expect(await store.table.readRows('acme', [{ namespace: [], key: 'damaged' }])).toEqual([undefined])
    const named = Buffer.from(canary, 'utf16le').swap16()
    const hasName = () => databaseFiles(file).some((path) => existsSync(path) && readFileSync(path).includes(named))
    expect([traces(file).length > 0, hasName()]).toEqual([true, true])
    expect(await memory.forget({ scope: 'acme' })).toMatchObject({ sessions: [], rows: 3 })
    expect([traces(file), hasName()]).toEqual([[], false])
    expect(await store.table.listScopes('', 9)).toEqual(['zeta'])
    await memory.close()
    expect([traces(file), hasName()]).toEqual([[], false])
  })

  verifies('X-05', 'rejects changes that were in progress', async () => {
    const { memory, store, file } = await openContaminated()
    const read = await store.readHead(ann, 9)
    const summary = deriveVerbatim({ kind: 'summary', id: 's2' }, read.recent, undefined) as DerivedEntry
    await memory.forget({ scope: 'acme', text: canary })
    const late = {
      id: 'slow',
      key: ann,
      at: 1_000,
      epoch: read.epoch,
      base: read.revision,
      append: [],
      put: [summary],
      drop: [],
      expiresAt: read.expiresAt,
    }
    await expect(store.commit(late)).rejects.toMatchObject({ code: 'conflict' })
    expect(traces(file)).toEqual([])
    await memory.close()
  })

  it('cleans pages that were split, merged and rewritten', async () => {
    const { memory, store, file } = await openFixture({ upkeep: createUpkeep() })
    let state = 20_261_115
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return (state >> 8) % below
    }
    const words = (count: number): string => Array.from({ length: count }, () => random(1e9).toString(36)).join(' ')
    for (let turn = 0; turn < 300; turn++) {
      const key = parseKey(`acme:s${random(12)}`)
      const isMarked = random(8) === 0
      const [message] = await memory.append(key, [
        { role: 'user', content: `${words(1 + random(random(9) === 0 ? 1_500 : 40))}${isMarked ? canary : ''}` },
      ])
      const source = [{ message: message?.id ?? '' }]
      const entry = (): DerivedEntry => {
        return {
          kind: 'fact',
          id: `f${random(25)}`,
          at: 1,
          field: 'x',
          key: '',
          value: `${words(1 + random(80))}${isMarked ? canary : ''}`,
          importance: 1,
          sources: source,
        }
      }
      // Upkeep of the appended message writes to the session too.
      await memory.upkeep.whenIdle()
      await put(store, key, [entry(), entry()])
    }
    expect(traces(file).length).toBeGreaterThan(0)
    const { sessions } = await memory.forget({ scope: 'acme', text: canary })
    expect(sessions.map(({ key }) => formatKey(parseKey(key))).length).toBeGreaterThan(5)
    expect(traces(file)).toEqual([])
    await memory.close()
  })

  it('with an empty text throws', async () => {
    const { memory } = await openFixture()
    await expect(memory.forget({ scope: 'acme', text: ' ' })).rejects.toThrow(
      'text is empty. Pass the text to forget, or omit text to forget the whole scope.',
    )
    await memory.close()
  })
})
