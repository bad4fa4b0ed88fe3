import { existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { Derived, Message } from '../../src/domain/entry.ts'
import { formatKey, type Key, parseKey } from '../../src/domain/key.ts'
import type { Embedder } from '../../src/domain/ports.ts'
import { type Memory, type MemoryOptions, openMemory, upkeepWith } from '../../src/index.ts'
import type { Rederive } from '../../src/memory/forget.ts'
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from './places.ts'
import { databaseFiles, tracesOf } from './traces.ts'

const fresh = freshFiles()
const canary = 'Qx7-walrus-Zk93-canary'

/** A vector that is the text itself, so that what is left of it can be found by its bytes. */
const bytes: Embedder = {
  name: 'bytes',
  embed: async (texts) =>
    texts.map((text) => Float32Array.from(Buffer.from(text.padEnd(32).slice(0, 32)), (byte) => byte)),
}

/** Whether the vector of the message with the canary lies anywhere. */
async function hasVector(file: string): Promise<boolean> {
  const [vector] = await bytes.embed([`The code of the safe is ${canary}.`])
  return databaseFiles(file).some(
    (one) => existsSync(one) && readFileSync(one).includes(Buffer.from((vector as Float32Array).buffer)),
  )
}

/** Sums up by repeating every word: whatever a summariser could carry over, this one does. */
function repeated(
  entry: Pick<Derived, 'id' | 'kind'>,
  messages: readonly Message[],
  home: string | undefined,
): Derived | undefined {
  const [first, last] = [messages[0], messages.at(-1)]
  if (first === undefined || last === undefined) return undefined
  const text = messages.map(({ content }) => content).join(' | ')
  const sources = messages.map(({ id }) => ({ message: id, ...(home === undefined ? {} : { session: home }) }))
  const common = { id: entry.id, at: last.at, sources }
  if (entry.kind === 'summary')
    return {
      ...common,
      kind: 'summary',
      tier: 'progressive',
      text,
      covers: [first.sequence, last.sequence],
      reach: 20,
      version: 1,
      by: 'builtin',
      lost: [],
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

const rederive: Rederive = async (entry, left) => repeated(entry, left, entry.kind === 'knowledge' ? 'ann' : undefined)

/** How many indexes are kept in a file; they are compressed, so that no text could be found in them by its bytes. */
function snapshotsIn(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return Number(database.prepare('SELECT count(*) AS many FROM snapshot').get()?.many)
  } finally {
    database.close()
  }
}

/** Whether an export made now holds the canary. */
async function isExported(memory: Memory): Promise<boolean> {
  const pieces: Uint8Array[] = []
  for await (const piece of memory.export()) pieces.push(piece)
  return Buffer.concat(pieces).includes(canary)
}

type Stage = { readonly memory: Memory; readonly store: SqliteStore; readonly file: string }

async function opened(options: Pick<MemoryOptions, 'rederive' | 'upkeep'> = { rederive }): Promise<Stage> {
  const file = fresh()
  const store = sqliteStore(file, { worthKeeping: 1 })
  return { memory: await openMemory({ store, embedder: bytes, clock: () => 1_000, ...options }), store, file }
}

async function put(store: SqliteStore, key: Key, entries: readonly Derived[]): Promise<void> {
  const { revision, epoch, expiresAt } = await store.head(key, 0)
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

/** A conversation with a canary in the middle that has reached every place it can. */
async function contaminated(options?: Pick<MemoryOptions, 'rederive' | 'upkeep'>): Promise<Stage> {
  const stage = await opened(options)
  const { memory, store } = stage
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
  const derived = (kind: Derived['kind'], id: string, home?: string): Derived =>
    repeated({ kind, id }, messages, home) as Derived
  await put(store, ann, [derived('summary', 's1'), derived('fact', 'f1')])
  await put(store, scope, [derived('knowledge', 'k1', 'ann')])
  for (const _ of [1, 2]) await store.embed('bytes', await everythingUnembedded(store))
  await memory.embedded({ settled: true })
  // caches and indexes have seen it
  await memory.search('acme', `${canary} safe`, { limit: 5 })
  await memory.context('acme:ann')
  return stage
}

async function everythingUnembedded(store: SqliteStore): Promise<Parameters<SqliteStore['embed']>[1]> {
  const made: { key: Key; id: string; epoch: number; text: string; values: Float32Array }[] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { entries, next } = await store.unembedded('bytes', after, 9)
    const vectors = await bytes.embed(entries.map(({ text }) => text))
    made.push(...entries.map((entry, at) => ({ ...entry, values: vectors[at] as Float32Array })))
    after = next
  }
  return made
}

const traces = (file: string): string[] => tracesOf(canary, databaseFiles(file))

describe('forgetting', () => {
  verifies(
    'X-05',
    'leaves no trace of a message in the file, its log, its free pages, what was derived from it, and what is found',
    async () => {
      const { memory, store, file } = await contaminated()
      expect([traces(file).length > 0, snapshotsIn(file), await isExported(memory)]).toEqual([true, 1, true])
      const receipt = await memory.forget({ key: 'acme:ann', messageId: 'm2' })
      await memory.forget({ key: 'acme:ann', messageId: 'm3' })
      expect(receipt.sessions).toEqual([
        { key: 'acme', entries: ['k1'], renewed: ['k1'] },
        { key: 'acme:ann', entries: ['m2', 's1', 'f1'], renewed: ['s1', 'f1'] },
      ])
      expect([traces(file), snapshotsIn(file), await isExported(memory)]).toEqual([[], 0, false])
      expect(await hasVector(file)).toBe(false)
      expect(JSON.stringify(await memory.search('acme', canary))).not.toContain(canary)
      expect(
        JSON.stringify([await store.head(ann, 9), await store.head(scope, 9), await memory.context('acme:ann')]),
      ).not.toContain(canary)
      expect((await store.head(ann, 0)).derived.map((entry) => (entry.kind === 'summary' ? entry.text : ''))).toContain(
        'My cat is called Miso. | Thank you.',
      )
      await memory.close()
      expect(traces(file)).toEqual([])
    },
  )

  verifies('X-05', 'removes what cannot be made anew, and takes vectors with it', async () => {
    const { memory, store, file } = await contaminated({ upkeep: false })
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
    expect([await hasVector(file), traces(file), (await store.head(ann, 0)).derived]).toEqual([false, [], []])
    await memory.close()
  })

  verifies('X-05', 'a session or a scope goes with its key, and late writers change nothing', async () => {
    for (const target of [{ key: `acme:${canary}` }, { scope: 'acme' }]) {
      const { memory, store, file } = await opened()
      const key = parseKey(`acme:${canary}`)
      await memory.append(key, [{ role: 'user', content: canary }], { operationId: 'op1' })
      const { epoch, expiresAt } = await store.head(key, 0)
      await memory.embedded({ settled: true })
      await memory.forget(target)
      const late = { id: 'late', key, at: 1_000, epoch, put: [], drop: [], expiresAt }
      const said = {
        at: 1,
        role: 'user',
        content: canary,
        tokens: 1,
        lineTokens: 1,
        tokenizer: 'x',
        weight: 1,
      } as const
      await expect(store.commit({ ...late, append: [said] })).rejects.toMatchObject({ code: 'erased' })
      await expect(store.commit({ ...late, id: 'op1', append: [said] })).rejects.toMatchObject({ code: 'erased' })
      expect(await store.embed('bytes', [{ key, id: 'm1', epoch, text: canary, values: Float32Array.of(1) }])).toBe(0)
      expect([traces(file), await memory.transcript(key), await store.list({ limit: 9 })]).toEqual([[], [], []])
      await memory.close()
      expect(traces(file)).toEqual([])
    }
  })

  verifies('X-05', 'a change that was under way when something was forgotten is refused', async () => {
    const { memory, store, file } = await contaminated()
    const read = await store.head(ann, 9)
    const summary = repeated({ kind: 'summary', id: 's2' }, read.recent, undefined) as Derived
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

  it('cleans pages that were split, merged and rewritten before', async () => {
    const { memory, store, file } = await opened({ upkeep: upkeepWith() })
    let state = 20_261_115
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return (state >> 8) % below
    }
    const words = (many: number): string => Array.from({ length: many }, () => random(1e9).toString(36)).join(' ')
    for (let turn = 0; turn < 300; turn++) {
      const key = parseKey(`acme:s${random(12)}`)
      const isMarked = random(8) === 0
      const [message] = await memory.append(key, [
        { role: 'user', content: `${words(1 + random(random(9) === 0 ? 1_500 : 40))}${isMarked ? canary : ''}` },
      ])
      const source = [{ message: message?.id ?? '' }]
      const entry = (): Derived => {
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
      await put(store, key, [entry(), entry()])
    }
    expect(traces(file).length).toBeGreaterThan(0)
    const { sessions } = await memory.forget({ scope: 'acme', text: canary })
    expect(sessions.map(({ key }) => formatKey(parseKey(key))).length).toBeGreaterThan(5)
    expect(traces(file)).toEqual([])
    await memory.close()
  })

  it('needs to be told what', async () => {
    const { memory } = await opened()
    await expect(memory.forget({ scope: 'acme', text: ' ' })).rejects.toThrow(
      'text is empty. Pass the text to forget, or omit text to forget the whole scope.',
    )
    await memory.close()
  })
})
