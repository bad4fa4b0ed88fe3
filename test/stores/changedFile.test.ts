import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { BatchWriter } from '../../src/stores/sqlite/batchWriter.ts'
import { connectReader, prepareFile } from '../../src/stores/sqlite/connect.ts'
import { guardFile, releaseFile } from '../../src/stores/sqlite/fileGuard.ts'
import { examineFile } from '../../src/stores/sqlite/repair.ts'
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { useSlowClock } from '../support/slowClock.ts'
import { annKey, contentsOf, nextChange } from './encrypted/fixtures.ts'
import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()

type OpenedStore = { readonly path: string; readonly store: SqliteStore; readonly warnings: string[] }

/** Opens a store in a folder of its own and appends messages to it. */
async function openFilled(...contents: readonly string[]): Promise<OpenedStore> {
  const path = join(newPath(''), 'live.db')
  const warnings: string[] = []
  const store = sqliteStore(path, { onWarning: (warning) => warnings.push(warning) })
  for (const content of contents) await append(store, content)
  return { path, store, warnings }
}

const append = (store: SqliteStore, content: string) => store.commit(nextChange({ append: [newMessage(content)] }))

async function readContents(path: string): Promise<readonly string[]> {
  const store = sqliteStore(path)
  const contents = contentsOf(await store.readMessages(annKey, { limit: 99 }))
  await store.close()
  return contents
}

const recoveredOf = (path: string): readonly string[] =>
  existsSync(dirname(path)) ? readdirSync(dirname(path)).filter((name) => name.includes('.db.recovered-')) : []

/** Another store, closed, as one file. */
async function createOther(): Promise<string> {
  const { path, store } = await openFilled('other')
  await store.close()
  return path
}

/** Moves a database, but not its log, and leaves a link: SQLite looks for the log beside the file. */
function moveBehindLink(path: string): void {
  renameSync(path, `${path}.moved`)
  symlinkSync(`${path}.moved`, path)
}

function replaceWithGarbage(path: string): void {
  writeFileSync(`${path}.x`, 'garbage')
  renameSync(`${path}.x`, path)
}

/** Ways to take the file from a running process. All content is still in the open file, unless it is overwritten. */
const changes: readonly (readonly [name: string, change: (path: string) => Promise<void>, isRecovered: boolean])[] = [
  ['deleted', async (path) => rmSync(path), true],
  ['renamed', async (path) => renameSync(path, `${path}.old`), true],
  ['replaced by another store', async (path) => renameSync(await createOther(), path), true],
  ['moved behind a link', async (path) => moveBehindLink(path), true],
  ['replaced by garbage', async (path) => replaceWithGarbage(path), true],
  ['without its log', async (path) => rmSync(`${path}-wal`), true],
  ['without the index of its log', async (path) => rmSync(`${path}-shm`), true],
  ['overwritten with another store', async (path) => copyFileSync(await createOther(), path), false],
  ['overwritten with garbage', async (path) => writeFileSync(path, 'garbage'.repeat(9_999)), false],
  ['truncated', async (path) => truncateSync(path), false],
]

describe('a database file that was opened by a symbolic link', () => {
  async function openByLink(): Promise<OpenedStore & { readonly link: string }> {
    const { path, store: first, warnings } = await openFilled('one')
    await first.close()
    const link = join(dirname(path), 'link.db')
    symlinkSync(path, link)
    return { path, link, warnings, store: sqliteStore(link, { onWarning: (warning) => warnings.push(warning) }) }
  }

  it('is written and read again', async () => {
    const { path, link, store } = await openByLink()
    await append(store, 'two')
    await store.close()
    expect([await readContents(link), await readContents(path)]).toEqual([
      ['one', 'two'],
      ['one', 'two'],
    ])
  })

  it('out of a folder that is a link too › is written and read again', async () => {
    const { path, store: first } = await openFilled('one')
    await first.close()
    const folder = join(dirname(path), 'volumes', 'one')
    mkdirSync(folder, { recursive: true })
    symlinkSync(join('..', '..', basename(path)), join(folder, 'store.db'))
    symlinkSync(folder, join(dirname(path), 'data'))
    const link = join(dirname(path), 'data', 'store.db')
    const store = sqliteStore(link)
    await append(store, 'two')
    await store.close()
    expect([await readContents(link), await readContents(path)]).toEqual([
      ['one', 'two'],
      ['one', 'two'],
    ])
  })

  it('that then leads elsewhere › is not written', async () => {
    const { link, store } = await openByLink()
    await append(store, 'two')
    rmSync(link)
    symlinkSync(await createOther(), link)
    await expect(append(store, 'three')).rejects.toMatchObject({ code: 'file-changed' })
    await store.close()
  })

  verifies('R-05', 'overwritten › is closed, and its log is set aside', async () => {
    const { path, store, warnings } = await openByLink()
    await append(store, 'two')
    copyFileSync(await createOther(), path)
    await store.close()
    expect(existsSync(`${path}-wal.recovered-1`)).toBe(true)
    expect(warnings).toEqual([expect.stringContaining(`moved to ${path}-wal.recovered-1`)])
    expect(await readContents(path)).toEqual(['other'])
  })

  for (const name of ['link', 'path'] as const)
    verifies('R-05', `deleted and recovered › is not begun anew when the ${name} is opened`, async () => {
      const opened = await openByLink()
      rmSync(opened.path)
      await expect(append(opened.store, 'two')).rejects.toMatchObject({ code: 'file-changed' })
      await opened.store.close()
      expect(() => sqliteStore(opened[name])).toThrow(
        `${opened.path} is missing, but its content was recovered to live.db.recovered-1.`,
      )
      renameSync(`${opened.path}.recovered-1`, opened.path)
      expect(await readContents(opened.link)).toEqual(['one'])
    })

  it('of another program, in use › is refused and left as it is', () => {
    const path = join(newPath(''), 'foreign.db')
    mkdirSync(dirname(path), { recursive: true })
    const foreign = new DatabaseSync(path)
    foreign.exec('PRAGMA journal_mode = WAL; CREATE TABLE notes (text)')
    const link = join(dirname(path), 'link.db')
    symlinkSync(path, link)
    expect(() => sqliteStore(link)).toThrow('is a database of another program')
    expect(foreign.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'notes' }])
    foreign.close()
  })
})

describe('a database file of a running process', () => {
  for (const [name, change, isRecovered] of changes)
    verifies('R-05', `${name} › is noticed before anything is acknowledged or read`, async () => {
      const { path, store, warnings } = await openFilled('one', 'two')
      await change(path)
      for (const attempt of [
        () => append(store, 'three'),
        () => store.readMessages(annKey, { limit: 9 }),
        () => store.readHead(annKey, 1),
        () => store.list({ limit: 9 }),
        () => store.search(annKey, { text: 'one', limit: 9 }),
        () => store.appendRecord(annKey, { id: 'r', at: 1, body: '{}' }, 9),
        () => store.erase(annKey),
      ])
        await expect(attempt()).rejects.toMatchObject({ code: 'file-changed' })
      expect(() => store.capabilities.file?.check()).toThrow('while it was open')
      await store.close()
      expect(warnings[0]).toContain(path)
      const copies = recoveredOf(path)
      expect(copies.length).toBe(isRecovered ? 1 : 0)
      for (const copy of copies) expect(await readContents(join(dirname(path), copy))).toEqual(['one', 'two'])
    })

  for (const [name, read] of [
    ['readMessages', (store) => store.readMessages(annKey, { limit: 9 })],
    ['readHead', (store) => store.readHead(annKey, 1)],
    ['list', (store) => store.list({ limit: 9 })],
    ['search', (store) => store.search(annKey, { text: 'one', limit: 9 })],
  ] as readonly (readonly [string, (store: SqliteStore) => Promise<unknown>])[])
    verifies('R-05', `deleted before a call of ${name} › is noticed by the read itself`, async () => {
      const { path, store } = await openFilled('one')
      rmSync(path)
      await expect(read(store)).rejects.toMatchObject({ code: 'file-changed' })
      await store.close()
      expect(recoveredOf(path)).toEqual(['live.db.recovered-1'])
    })

  verifies('R-05', 'deleted in the middle of a transaction › acknowledges nothing of it', async () => {
    const { path, store } = await openFilled('one')
    await store.close()
    const identity = prepareFile(path)
    const database = connectReader(path, identity)
    const file = guardFile(database, path, identity)
    const writer = new BatchWriter(file)
    const task = {
      get commit() {
        rmSync(path, { force: true })
        return { ...nextChange({ append: [newMessage('two')] }) }
      },
    }
    expect(writer.run([task])).toMatchObject([{ error: { code: 'file-changed' } }])
    writer.close()
    database.close()
    releaseFile(file)
  })

  verifies('R-05', 'overwritten with an older backup of itself › is noticed', async () => {
    const { path, store } = await openFilled('one')
    const copy = newPath()
    await store.backup(copy)
    await append(store, 'two')
    // The erasure moves the log into the database.
    await append(store, 'three')
    await store.erase({ ...annKey, id: 'nobody' })
    await append(store, 'four')
    copyFileSync(copy, path)
    await expect(append(store, 'five')).rejects.toMatchObject({ code: 'file-changed' })
    await expect(store.readMessages(annKey, { limit: 9 })).rejects.toMatchObject({ code: 'file-changed' })
    await store.close()
    // The log of the lost content is not applied to the restored one.
    expect(await readContents(path)).toEqual(['one'])
    expect((await examineFile(path)).faults).toEqual([])
  })

  verifies('R-05', 'with its folder deleted › is noticed, and recovered once the folder exists again', async () => {
    const { path, store } = await openFilled('one')
    rmSync(dirname(path), { recursive: true })
    await expect(append(store, 'two')).rejects.toMatchObject({ code: 'file-changed' })
    mkdirSync(dirname(path))
    await expect(append(store, 'two')).rejects.toMatchObject({ code: 'file-changed' })
    await store.close()
    expect(recoveredOf(path)).toEqual(['live.db.recovered-1'])
  })

  verifies('R-05', 'moved and put back › is used again without a restart', async () => {
    const { path, store } = await openFilled('one')
    renameSync(path, `${path}.old`)
    await expect(append(store, 'two')).rejects.toMatchObject({ code: 'file-changed' })
    renameSync(`${path}.old`, path)
    await append(store, 'two')
    expect(contentsOf(await store.readMessages(annKey, { limit: 9 }))).toEqual(['one', 'two'])
    await store.close()
    expect(await readContents(path)).toEqual(['one', 'two'])
  })

  verifies('R-05', 'deleted while writes are on their way › acknowledges only what the copy holds', async () => {
    const { path, store } = await openFilled('first')
    const contents = Array.from({ length: 300 }, (_, index) => `message ${index}`)
    const pending = contents.map(async (content, index) => {
      if (index % 60 === 59) await new Promise((resolve) => setImmediate(resolve))
      if (index === 150) rmSync(path)
      return append(store, content)
    })
    const outcomes = await Promise.allSettled(pending)
    const acknowledged = contents.filter((_, index) => outcomes[index]?.status === 'fulfilled')
    await expect(append(store, 'last')).rejects.toMatchObject({ code: 'file-changed' })
    await store.close()
    const [copy = ''] = recoveredOf(path)
    const stored = new Set(await readContents(join(dirname(path), copy)))
    expect(acknowledged.filter((content) => !stored.has(content))).toEqual([])
  })

  it('deleted and recovered › is not begun anew at the next start', async () => {
    const { path, store } = await openFilled('one')
    rmSync(path)
    await expect(append(store, 'two')).rejects.toMatchObject({ code: 'file-changed' })
    await store.close()
    expect(() => sqliteStore(path)).toThrow(
      `${path} is missing, but its content was recovered to live.db.recovered-1. Rename that file to ${basename(path)}`,
    )
    expect(existsSync(path)).toBe(false)
    renameSync(`${path}.recovered-1`, path)
    expect(await readContents(path)).toEqual(['one'])
  })

  it('written and checkpointed by several connections › is not taken for a changed one', async () => {
    const { path, store } = await openFilled('one')
    const second = sqliteStore(path)
    const graph = await openGraph(`sqlite:${path}`)
    for (let round = 0; round < 30; round++) {
      await Promise.all([
        append(store, `a${round} ${'x'.repeat(9_000)}`),
        append(second, `b${round} ${'y'.repeat(9_000)}`),
        graph.write('acme', { entities: [{ type: 't', id: `e${round}`, properties: { text: 'z'.repeat(9_000) } }] }),
      ])
      if (round % 10 === 0) await second.erase({ ...annKey, id: `gone-${round}` })
      await Promise.all([store.readHead(annKey, 3), second.readHead(annKey, 3)])
    }
    await Promise.all([store.close(), second.close(), graph.close()])
    expect((await readContents(path)).length).toBe(61)
  })

  verifies('R-05', 'of a graph › is guarded too', async () => {
    const path = newPath()
    const graph = await openGraph(`sqlite:${path}`)
    await graph.write('acme', { entities: [{ type: 't', id: 'e1', properties: {} }] })
    renameSync(path, `${path}.old`)
    await expect(graph.write('acme', { entities: [{ type: 't', id: 'e2', properties: {} }] })).rejects.toMatchObject({
      code: 'file-changed',
    })
    await expect(graph.queryEntities('acme')).rejects.toMatchObject({ code: 'file-changed' })
    renameSync(`${path}.old`, path)
    await graph.write('acme', { entities: [{ type: 't', id: 'e2', properties: {} }] })
    expect((await graph.queryEntities('acme')).total).toBe(2)
    await graph.close()
  })

  verifies('R-05', 'of a graph, moved in the middle of a long write › acknowledges nothing of it', async () => {
    const path = newPath()
    const graph = await openGraph(`sqlite:${path}`)
    await graph.nodes.createEntities('acme', [{ name: 'first', entityType: 'note', observations: [] }])
    using _ = useSlowClock()
    const nodes = Array.from({ length: 2_000 }, (_, at) => ({ name: `n${at}`, entityType: 'note', observations: [] }))
    const writing = graph.nodes.createEntities('acme', nodes)
    const outcome = writing.then(
      () => 'acknowledged',
      ({ code }) => code,
    )
    const database = new DatabaseSync(path)
    const isLocked = (): boolean => {
      try {
        database.exec('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK')
        return false
      } catch {
        return true
      }
    }
    while (!isLocked()) await new Promise((resolve) => setImmediate(resolve))
    database.close()
    renameSync(path, `${path}.old`)
    expect(await outcome).toBe('file-changed')
    renameSync(`${path}.old`, path)
    await graph.close()
  })

  it('keeps its bytes through openMemory when it is replaced', async () => {
    const path = newPath()
    const memory = await openMemory({ store: sqliteStore(path, { onWarning: () => undefined }) })
    await memory.append('acme:ann', [{ role: 'user', content: 'Hello.' }])
    const other = await createOther()
    const bytes = readFileSync(other)
    renameSync(other, path)
    await expect(memory.append('acme:ann', [{ role: 'user', content: 'Lost?' }])).rejects.toMatchObject({
      code: 'file-changed',
    })
    await memory.close()
    expect(readFileSync(path).equals(bytes)).toBe(true)
  })
})
