import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { parseKey, parseScope } from '../../src/domain/key.ts'
import { openGraph, openStoreGraph } from '../../src/graph/graph.ts'
import type { StoreGraph } from '../../src/graph/types.ts'
import { type Memory, openMemory, profiles } from '../../src/index.ts'
import { internalsOf } from '../../src/memory.ts'
import { BatchWriter } from '../../src/stores/sqlite/batchWriter.ts'
import { connectReader, prepareFile } from '../../src/stores/sqlite/connect.ts'
import { guardFile, releaseFile } from '../../src/stores/sqlite/fileGuard.ts'
import { wipeFile } from '../../src/stores/sqlite/wipe/wipeFile.ts'
import { WriteQueue } from '../../src/stores/sqlite/writeQueue.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { findDamage } from '../fault/storedSessions.ts'
import { writeKeyFile } from '../graph/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { useSlowClock } from '../support/slowClock.ts'
import { createTempPaths } from './tempPaths.ts'
import { databaseFiles, findTraces } from './traces.ts'

const newPath = createTempPaths()
const count = 300
const numbers = Array.from({ length: count }, (_, number) => number)
/** Text of different length for each number, so that SQLite splits pages unevenly. */
const textOf = (number: number, size = 50): string =>
  `walrus-${number}. ${'a fact about it, '.repeat((number * 7) % size)}`
const sessionOf = (number: number): string => `acme:${number % 3}`

/** Appends messages to three sessions in turn. */
async function fill(memory: Memory): Promise<void> {
  for (const number of numbers)
    await memory.append(sessionOf(number), [{ role: 'user', content: textOf(number) }], { operationId: textOf(number) })
}

/** Returns the numbers whose text is in the database or its log. */
function findTexts(file: string, among: readonly number[]): readonly number[] {
  const bytes = Buffer.concat(databaseFiles(file).flatMap((path) => readIfExists(path)))
  return among.filter((number) => bytes.includes(`walrus-${number}.`))
}

/** Counts the worker threads that are started from now on. */
function countThreads(): () => number {
  let count = 0
  const onWorker = (): void => void count++
  subscribe('worker_threads', onWorker)
  onTestFinished(() => void unsubscribe('worker_threads', onWorker))
  return () => count
}

function readIfExists(path: string): readonly Buffer[] {
  try {
    return [readFileSync(path)]
  } catch {
    return []
  }
}

const inSession = (session: number) => numbers.filter((number) => number % 3 === session)

/** Counts the passes that end. */
function countPasses(): () => Promise<number> {
  const submit = vi.spyOn(WriteQueue.prototype, 'submit')
  return async () => {
    const results = await Promise.all(submit.mock.results.map(({ value }) => value))
    return results.filter((result) => 'isWiped' in result && result.isWiped).length
  }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('forget', () => {
  verifies('X-05', 'of rows that SQLite moved to other pages before › leaves no copy of them', async () => {
    const file = newPath()
    const memory = await openMemory({ store: `sqlite:${file}` })
    await fill(memory)
    for (const session of [0, 1]) await memory.forget({ key: `acme:${session}` })
    expect(findTexts(file, [...inSession(0), ...inSession(1)])).toEqual([])
    expect(await memory.transcript('acme:2')).toHaveLength(inSession(2).length)
    await memory.close()
    expect(findTexts(file, [...inSession(0), ...inSession(1)])).toEqual([])
  })

  verifies(['X-05', 'H-09'], 'of a message in an encrypted file › leaves no copy of its ciphertext', async () => {
    const [file, storeKey] = [newPath(), writeKeyFile(newPath('.key'))]
    const options = { store: `sqlite:${file}`, storeKey }
    const filled = await openMemory(options)
    await filled.append(
      'acme:0',
      [textOf(1), textOf(2)].map((content) => ({ role: 'user', content })),
    )
    await filled.close()
    const database = new DatabaseSync(file, { readOnly: true })
    const [first, second] = database.prepare('SELECT content FROM message ORDER BY sequence').all()
    database.close()
    plantCopies(file, `${first?.content}`.slice(0, 60))
    const memory = await openMemory(options)
    await memory.forget({ key: 'acme:0', messageId: 'm1' })
    const bytes = Buffer.concat(databaseFiles(file).flatMap(readIfExists))
    expect([first, second].map((row) => bytes.includes(`${row?.content}`.slice(0, 60)))).toEqual([false, true])
    await memory.close()
  })

  verifies('X-05', 'with copies in pages of any table and index › leaves none of them', async () => {
    const file = newPath()
    expect(createWithCopies(file)).toBeGreaterThan(40)
    const memory = await openMemory({ store: `sqlite:${file}` })
    await memory.forget({ key: 'acme:none' })
    expect(findTraces(planted, databaseFiles(file))).toEqual([])
    await memory.close()
    expect(findDamage(file)).toEqual([])
  })

  verifies('X-05', 'of a workspace of a graph, without its store › leaves no copy', async () => {
    const file = newPath()
    createWithCopies(file)
    const graph = await openGraph(`sqlite:${file}`)
    await graph.erase('acme')
    expect(findTraces(planted, databaseFiles(file))).toEqual([])
    await graph.close()
  })

  it('of a session and of many workspaces at once › takes one thread for the file, and none is busy', async () => {
    const threads = countThreads()
    const file = newPath()
    const memory = await openMemory({ store: `sqlite:${file}` })
    await fill(memory)
    const graph = (await openStoreGraph(internalsOf(memory).store)) as StoreGraph
    const workspaces = Array.from({ length: 8 }, (_, number) => `workspace-${number}`)
    for (const workspace of workspaces)
      await graph.write(workspace, { entities: [{ type: 'fact', id: 'a', properties: {} }] })
    await Promise.all([...workspaces.map((name) => graph.erase(name)), memory.forget({ key: 'acme:0' })])
    expect([findTexts(file, inSession(0)), threads()]).toEqual([[], 1])
    await graph.close()
    await memory.close()
  })

  it('of workspaces without a store › takes one thread for all', async () => {
    const threads = countThreads()
    const graph = await openGraph(`sqlite:${newPath()}`)
    for (let number = 0; number < 3; number++) await graph.erase('acme')
    await Promise.all([graph.erase('acme'), graph.erase('globex')])
    expect(threads()).toBe(1)
    await graph.close()
  })

  verifies(
    'X-05',
    'with deferWipe › leaves copies to a sweep, which wipes once for all and not too often',
    async () => {
      const file = newPath()
      const passes = countPasses()
      const memory = await openMemory({ store: `sqlite:${file}` })
      await fill(memory)
      for (const session of [0, 1]) await memory.forget({ key: `acme:${session}` }, { deferWipe: true })
      expect([await passes(), findTexts(file, [...inSession(0), ...inSession(1)]).length > 0]).toEqual([0, true])
      await memory.sweep()
      expect([await passes(), findTexts(file, [...inSession(0), ...inSession(1)])]).toEqual([1, []])
      await memory.forget({ key: 'acme:2' }, { deferWipe: true })
      await memory.sweep()
      expect(await passes()).toBe(1)
      // Sweeps rest after a pass; then the next one runs only if something was erased.
      const { now } = performance
      for (const laterMs of [1e9, 2e9]) {
        vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + laterMs)
        await memory.sweep()
      }
      expect(await passes()).toBe(2)
      await memory.close()
    },
  )

  verifies('X-05', 'while the store closes › ends all passes that were asked for', async () => {
    const store = sqliteStore(newPath())
    const wipes = [store.capabilities.file?.wipe(), store.capabilities.file?.wipe()]
    await store.close()
    expect(await Promise.allSettled(wipes)).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }])
  })

  verifies('X-05', 'of many targets at once › shares passes over the file', async () => {
    const file = newPath()
    const memory = await openMemory({ store: `sqlite:${file}` })
    for (const number of numbers) await memory.append(`acme:s${number}`, [{ role: 'user', content: textOf(number) }])
    const passes = countPasses()
    await Promise.all(numbers.slice(0, 40).map((number) => memory.forget({ key: `acme:s${number}` })))
    expect(findTexts(file, numbers.slice(0, 40))).toEqual([])
    expect(await passes()).toBeLessThanOrEqual(10)
    await memory.close()
  })
})

describe('sweep', () => {
  verifies(['X-05', 'E-03'], 'of expired sessions › leaves no copy of them, with one pass', async () => {
    const file = newPath()
    createWithCopies(file)
    let now = Date.now()
    const profile = { ...profiles.thread, lifetime: { idle: 1_000, whenFull: 'evict' as const } }
    const memory = await openMemory({ store: `sqlite:${file}`, profile, clock: () => now })
    for (const number of numbers.slice(0, 20)) await memory.append(`acme:s${number}`, [{ role: 'user', content: 'x' }])
    now += 10_000
    const passes = countPasses()
    expect((await memory.sweep()).ended).toHaveLength(20)
    expect([await passes(), findTraces(planted, databaseFiles(file))]).toEqual([1, []])
    await memory.close()
  })
})

describe('a pass over a file', () => {
  /** Runs a pass that pauses after every page, with work in between. */
  async function wipeWith(file: string, work: (slice: number) => Promise<unknown>): Promise<number> {
    const identity = prepareFile(file)
    const database = connectReader(file, identity)
    const guarded = guardFile(database, file, identity)
    let slices = 0
    for (const _ of wipeFile(guarded, 0)) await work(slices++)
    database.close()
    releaseFile(guarded)
    return slices
  }

  verifies('X-05', 'while another connection writes, and has pages in its cache › leaves no copy', async () => {
    const file = newPath()
    createWithCopies(file)
    const memory = await openMemory({ store: `sqlite:${file}` })
    const append = () => memory.append('acme:0', [{ role: 'user', content: 'more' }])
    await append()
    expect(await wipeWith(file, append)).toBeGreaterThan(10)
    await append()
    await memory.close()
    expect(findTraces(planted, databaseFiles(file))).toEqual([])
    expect(findDamage(file)).toEqual([])
  })

  verifies('X-05', 'while another process reads an older state › waits for it, and leaves no copy', async () => {
    const file = newPath()
    createWithCopies(file)
    const reader = new DatabaseSync(file, { readOnly: true })
    const memory = await openMemory({ store: `sqlite:${file}` })
    let slices = 0
    await wipeWith(file, async (slice) => {
      slices = slice
      await memory.append('acme:0', [{ role: 'user', content: 'more' }])
      // Pages of the log after the first append cannot be moved to the database while it reads.
      if (slice === 2) reader.exec('BEGIN; SELECT count(*) FROM session')
      if (slice === 100) reader.exec('COMMIT')
    })
    expect(slices).toBeGreaterThan(100)
    reader.close()
    await memory.close()
    expect(findTraces(planted, databaseFiles(file))).toEqual([])
  })

  verifies('X-05', 'during which a write failed › begins again, and leaves no copy', async () => {
    const file = newPath()
    createWithCopies(file)
    const identity = prepareFile(file)
    const database = connectReader(file, identity)
    const guarded = guardFile(database, file, identity)
    const writer = new BatchWriter(guarded)
    using _ = useSlowClock()
    expect(writer.run([{ wipe: true }])).toMatchObject([{ isWiped: false }])
    const { exec } = DatabaseSync.prototype
    const failing = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
      if (sql === 'COMMIT') throw Object.assign(new Error('disk full'), { errcode: 13 })
      exec.call(this, sql)
    })
    expect(writer.run([{ eraseRows: parseScope('acme') }])).toMatchObject([{ error: { code: 'disk-full' } }])
    failing.mockRestore()
    const wipe = () => writer.run([{ wipe: true }])[0]
    for (let slice = wipe(); slice !== undefined && 'isWiped' in slice && !slice.isWiped; ) slice = wipe()
    writer.close()
    database.close()
    releaseFile(guarded)
    expect(findTraces(planted, databaseFiles(file))).toEqual([])
  })

  it('of a file with many pages › reads them into one buffer', async () => {
    const file = newPath()
    createWithCopies(file)
    const alloc = vi.spyOn(Buffer, 'alloc')
    await wipeWith(file, async () => undefined)
    const allocated = alloc.mock.calls.reduce((sum, [bytes]) => sum + bytes, 0)
    expect(statSync(file).size).toBeGreaterThan(1_000_000)
    expect(allocated).toBeLessThan(500_000)
  })

  it('with a damaged page › overwrites none of its rows and fails with corrupt', async () => {
    const file = newPath()
    const memory = await openMemory({ store: `sqlite:${file}` })
    await fill(memory)
    await memory.close()
    const [page = 0] = listPages(file, "name = 'message' AND pagetype = 'leaf'")
    const bytes = readFileSync(file)
    const start = bytes.indexOf('walrus-', page)
    const text = bytes.subarray(start, bytes.indexOf('.', start))
    // The cells seem to begin at the end of the page, so that all rows seem to be in the gap.
    bytes.writeUInt16BE(4_090, page + 5)
    writeFileSync(file, bytes)
    const store = sqliteStore(file)
    await expect(store.capabilities.file?.wipe()).rejects.toMatchObject({ code: 'corrupt' })
    await store.close()
    expect(
      readFileSync(file)
        .subarray(page, page + 4_096)
        .includes(text),
    ).toBe(true)
  })
})

const pageSize = 4_096
const planted = 'Planted-narwhal-copy'

/** A file with rows in all tables, in trees of several pages. */
const template = newPath()

beforeAll(async () => {
  const store = sqliteStore(template, { minSnapshotMessages: 1 })
  const memory = await openMemory({ store })
  const graph = await openGraph(`sqlite:${template}`)
  await fill(memory)
  for (const number of numbers) {
    await store.appendRecord(parseKey(sessionOf(number)), { id: `r${number}`, at: 1, body: textOf(number, 90) }, count)
    if (number % 3 === 0)
      await graph.nodes.createEntities('acme', [
        { name: `node ${number}`, entityType: 'thing', observations: [textOf(number)] },
      ])
  }
  await memory.search('acme', 'walrus', { limit: 1 })
  await graph.close()
  await memory.close()
})

/** Copies the template, with a text in the gaps of its pages. */
function createWithCopies(file: string): number {
  copyFileSync(template, file)
  return plantCopies(file, planted)
}

/**
 * Writes a text into the gaps of pages, where SQLite leaves copies of rows. Returns the number of pages. The page of
 * `meta` never holds content.
 */
function plantCopies(file: string, text: string): number {
  const bytes = readFileSync(file)
  const pages = listPages(file, "pagetype IN ('leaf', 'internal') AND name <> 'meta'").filter((start) => {
    const header = start === 0 ? 100 : start
    const gapStart = header + (isLeaf(bytes[header]) ? 8 : 12) + 2 * bytes.readUInt16BE(header + 3)
    const hasRoom = start + bytes.readUInt16BE(header + 5) - gapStart >= 256
    // Neither the next pointers, at the start of the gap, nor the next cells, at its end, overwrite it.
    if (hasRoom) bytes.write(text, gapStart + 100, 'latin1')
    return hasRoom
  })
  writeFileSync(file, bytes)
  return pages.length
}

const isLeaf = (type: number | undefined): boolean => type === 10 || type === 13

/** Lists pages by their offset in the file. */
function listPages(file: string, condition: string): readonly number[] {
  const database = new DatabaseSync(file, { readOnly: true })
  const rows = database.prepare(`SELECT pageno FROM dbstat WHERE ${condition} ORDER BY name, path`).all()
  database.close()
  return rows.map(({ pageno }) => (Number(pageno) - 1) * pageSize)
}
