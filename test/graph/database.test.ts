import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, type MockInstance, vi } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { GraphDatabase } from '../../src/graph/sqlite/database.ts'
import { SqliteGraph } from '../../src/graph/sqlite/graph.ts'
import { GraphWorkspaces } from '../../src/graph/sqlite/workspaces.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { useSlowClock } from '../support/slowClock.ts'
import { person, requireGraph } from './fixtures.ts'

const fresh = createTempPaths()

describe('graph database', () => {
  verifies('H-11', 'while another process writes can be read, and queues writes until it is done', async () => {
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    await graph.write('acme', { entities: [person('ann')] })
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    const writing = graph.write('acme', { entities: [person('bob')] })
    const ids = async () => (await graph.queryEntities('acme')).entities.map(({ id }) => id)
    // The write has been attempted by now and is waiting for the lock.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(await ids()).toEqual(['ann'])
    other.exec('COMMIT')
    other.close()
    expect(await writing).toMatchObject({ written: 1 })
    expect(await ids()).toEqual(['ann', 'bob'])
    await graph.close()
  })

  verifies(
    'R-03',
    'while another connection holds the lock on the file › a write leaves the event loop idle',
    async () => {
      const path = fresh()
      const database = new GraphDatabase(path)
      await database.write(() => database.run('CREATE TABLE note (text TEXT)'))
      const exec = vi.spyOn(database.database, 'exec')
      const other = new DatabaseSync(path)
      other.exec('BEGIN IMMEDIATE')
      const writing = database.write(() => database.run("INSERT INTO note VALUES ('seal')"))
      const utilizations: number[] = []
      // A process that waits for a processor counts as active. That does not repeat, a blocked attempt does.
      for (let round = 0; round < 3; round++) {
        const before = performance.eventLoopUtilization()
        await countCalls(exec, 'BEGIN IMMEDIATE', 10)
        utilizations.push(performance.eventLoopUtilization(before).utilization)
      }
      expect(Math.min(...utilizations)).toBeLessThan(0.5)
      other.exec('COMMIT')
      other.close()
      expect(await writing).toMatchObject({ changes: 1 })
      await database.close()
    },
  )

  it('caches readGraph until this or another connection writes', async () => {
    const file = fresh()
    const [one, two] = [await openGraph(`sqlite:${file}`), await openGraph(`sqlite:${file}`)]
    const names = async () => (await one.nodes.readGraph('acme')).entities.map(({ name }) => name)
    const node = (name: string) => [{ name, entityType: 'thing', observations: [] }]
    await one.nodes.createEntities('acme', node('a'))
    const read = await one.nodes.readGraph('acme')
    expect(await one.nodes.readGraph('acme')).toBe(read)
    await two.nodes.createEntities('acme', node('b'))
    expect(await names()).toEqual(['a', 'b'])
    await one.nodes.deleteEntities('acme', ['a'])
    expect(await names()).toEqual(['b'])
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    const writing = one.nodes.createEntities('acme', node('c'))
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    // Reads the graph again while the write waits for the lock.
    expect(await names()).toEqual(['b'])
    other.exec('COMMIT')
    other.close()
    await writing
    expect(await names()).toEqual(['b', 'c'])
    await one.erase('acme')
    expect(await names()).toEqual([])
    await Promise.all([one.close(), two.close()])
  })

  verifies('H-08', 'with one observation added to a thousand entities writes one row and its trigrams', async () => {
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    await graph.nodes.createEntities(
      'acme',
      Array.from({ length: 1_000 }, (_, at) => ({
        name: `n${at}`,
        entityType: 'thing',
        observations: [`it is number ${at}`],
      })),
    )
    const observer = new DatabaseSync(file)
    const rows = () =>
      observer
        .prepare(
          'SELECT (SELECT count(*) FROM graph_observation) AS rows, (SELECT group_concat(place) FROM graph_node) AS nodes',
        )
        .get()
    const before = rows()
    await graph.nodes.addObservations('acme', [{ entityName: 'n500', contents: ['seen'] }])
    expect(rows()).toEqual({ ...before, rows: 1_001 })
    // Pages are written for the row, for each index and for the trigrams, and none for the other nodes.
    const [{ log: pages }] = observer.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all() as [{ log: number }]
    expect(pages).toBe(0)
    await graph.nodes.addObservations('acme', [{ entityName: 'n500', contents: ['seen again'] }])
    const [{ log: written }] = observer.prepare('PRAGMA wal_checkpoint(PASSIVE)').all() as [{ log: number }]
    expect(written).toBeLessThan(20)
    observer.close()
    await graph.close()
  })

  verifies('H-11', 'on a full disk rejects a write completely, and works again when there is space', async () => {
    const database = new GraphDatabase(fresh())
    const graph = new SqliteGraph(database, new GraphWorkspaces(database), () => 1_000)
    await graph.write('acme', { entities: [person('ann')] })
    database.database.exec('PRAGMA max_page_count = 1')
    const large = { entities: [person('bob'), person('cy', { says: 'x'.repeat(1_000_000) })] }
    await expect(graph.write('acme', large)).rejects.toMatchObject({ code: 'disk-full' })
    expect((await graph.queryEntities('acme')).entities.map(({ id }) => id)).toEqual(['ann'])
    // The new connection does not have the limit.
    expect(await graph.write('acme', large)).toMatchObject({ written: 2 })
    expect((await graph.queryEntities('acme')).total).toBe(3)
    await graph.close()
  })

  it('with a transaction that begins when another one ends › reads after both', async () => {
    const database = new GraphDatabase()
    await database.write(() => database.run('CREATE TABLE note (text TEXT)'))
    const writeInTurns = (text: string, next = () => {}) =>
      database.writeInSteps(function* () {
        database.run('INSERT INTO note (text) VALUES (?)', text)
        for (let turn = 0; turn < 2; turn++) yield 2_000
        next()
      })
    using _ = useSlowClock()
    const later: Promise<unknown>[] = []
    await writeInTurns('seal', () => {
      const count = database.read(() => database.get<[number]>('SELECT count(*) FROM note'))
      later.push(count, writeInTurns('walrus'))
    })
    expect(await Promise.all(later)).toEqual([[2], undefined])
    await database.close()
  })

  verifies('X-05', 'wipes the file after a failed write, whatever has been opened since', async () => {
    const path = fresh()
    const database = new GraphDatabase(path)
    const isInFile = (): boolean =>
      readFileSync(path).includes('walrus') || readFileSync(`${path}-wal`).includes('walrus')
    await database.write(() => database.run('CREATE TABLE note (text TEXT)'))
    const write = (text: string) => database.write(() => database.run('INSERT INTO note (text) VALUES (?)', text))
    const fill = async (): Promise<void> => {
      database.database.exec('PRAGMA max_page_count = 1')
      await expect(write('b'.repeat(1_000_000))).rejects.toMatchObject({ code: 'disk-full' })
    }
    await write('walrus')
    await database.wipe()
    await fill()
    const others = [1, 2, 3, 4].map(() => openSync(fileURLToPath(import.meta.url), 'r'))
    await database.write(() => database.run('DELETE FROM note'))
    expect(isInFile()).toBe(true)
    await fill()
    await database.wipe()
    expect(isInFile()).toBe(false)
    for (const other of others) closeSync(other)
    await database.close()
  })

  verifies('X-05', 'ends all wipes that were asked for before it closes', async () => {
    const database = new GraphDatabase(fresh())
    await database.write(() => database.run('CREATE TABLE note (text TEXT)'))
    const wipes = [database.wipe(), database.wipe()]
    await database.close()
    expect(await Promise.allSettled(wipes)).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }])
  })

  verifies('X-05', 'with deletions › lets the next sweep wipe the file', async () => {
    // Passes take no time, so that the next one is due at once.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    const path = fresh()
    const store = sqliteStore(path)
    const graph = await requireGraph(store, () => 1_000)
    const sweep = () => store.capabilities.file?.wipeIfDue()
    const text = 'says walrus'
    const node = { name: 'a', entityType: 'thing', observations: [text] }
    const link = { from: 'a', to: 'b', relationType: text }
    const write = () => graph.write('acme', { entities: [person('ann', { text })] })
    const createNode = () => graph.nodes.createEntities('acme', [node])
    for (const [create, erase] of [
      [write, () => graph.erase('acme', undefined, { deferWipe: true })],
      [write, () => graph.forget('acme', ['WALRUS'], { deferWipe: true })],
      [write, () => graph.write('acme', { deleteEntities: ['ann'] })],
      [createNode, () => graph.nodes.deleteObservations('acme', [{ entityName: 'a', observations: [text] }])],
      [
        () => graph.nodes.addObservations('acme', [{ entityName: 'a', contents: [text] }]),
        () => graph.nodes.deleteEntities('acme', ['a']),
      ],
      [() => graph.nodes.createRelations('acme', [link]), () => graph.nodes.deleteRelations('acme', [link])],
    ] as const) {
      await create()
      await sweep()
      await erase()
      expect(findTraces('walrus', databaseFiles(path))).not.toEqual([])
      await sweep()
      expect(findTraces('walrus', databaseFiles(path))).toEqual([])
    }
    await Promise.all([graph.close(), store.close()])
    clock.mockRestore()
  })

  verifies('X-05', 'of a store that was closed › wipes the file by itself', async () => {
    const path = fresh()
    const store = sqliteStore(path)
    const graph = await requireGraph(store, () => 1_000)
    await graph.nodes.createEntities('acme', [{ name: 'a', entityType: 'thing', observations: ['walrus'] }])
    await store.close()
    expect(await graph.erase('acme')).toBe(1)
    expect(findTraces('walrus', databaseFiles(path))).toEqual([])
    await graph.close()
  })

  verifies('H-11', 'with a damaged row rejects with corrupt, and the row can be replaced', async () => {
    const path = fresh()
    const graph = await openGraph(`sqlite:${path}`)
    await graph.write('acme', { entities: [person('ann', { city: 'Oslo' })] })
    const damaging = new DatabaseSync(path)
    damaging.exec('UPDATE graph_entity SET body = substr(body, 1, 9)')
    damaging.close()
    await expect(graph.getEntity('acme', 'ann')).rejects.toMatchObject({ code: 'corrupt' })
    await graph.write('acme', { deleteEntities: ['ann'], entities: [person('ann', { city: 'Oslo' })] })
    expect(await graph.getEntity('acme', 'ann')).toMatchObject({ properties: { city: 'Oslo' } })
    await graph.close()
  })

  verifies('H-11', 'of a newer format is rejected', async () => {
    const file = fresh()
    await (await openGraph(`sqlite:${file}`)).close()
    const newer = new DatabaseSync(file)
    newer.exec("UPDATE meta SET value = 5 WHERE name = 'graph'")
    newer.close()
    await expect(openGraph(`sqlite:${file}`)).rejects.toMatchObject({
      code: 'bad-store',
      message: `The graph in ${file} was written by a newer Threadkeep (format 5; this version supports up to 4). Update Threadkeep.`,
    })
  })

  it('of format 1 is migrated on open, and searches give the same results', async () => {
    const file = fresh()
    const tea = { name: 'Ann', entityType: 'person', observations: ['likes green tea'] }
    const first = await openGraph(`sqlite:${file}`)
    await first.nodes.createEntities('acme', [tea])
    await first.close()
    const older = new DatabaseSync(file)
    for (const table of ['graph_node', 'graph_observation']) {
      older.exec(`DROP TABLE ${table}_words;
        CREATE VIRTUAL TABLE ${table}_words
          USING fts5 (lower, content = '${table}', content_rowid = 'place', tokenize = 'trigram case_sensitive 1', columnsize = 0);
        INSERT INTO ${table}_words (${table}_words, rank) VALUES ('secure-delete', 1);
        INSERT INTO ${table}_words (${table}_words) VALUES ('rebuild')`)
    }
    for (const table of ['entity', 'relationship', 'node', 'link']) older.exec(`DROP INDEX graph_${table}_home`)
    older.exec(`DROP INDEX graph_node_long; DROP INDEX graph_observation_long;
      UPDATE meta SET value = 1 WHERE name = 'graph'`)
    older.close()
    for (let opened = 0; opened < 2; opened++) {
      const graph = await openGraph(`sqlite:${file}`)
      expect((await graph.nodes.searchNodes('acme', 'GREEN tea')).entities).toEqual([tea])
      expect((await graph.nodes.searchNodes('acme', 'tea green')).entities).toEqual([])
      await graph.close()
    }
    const reader = new DatabaseSync(file, { readOnly: true })
    const migrated = reader
      .prepare("SELECT count(*) AS many FROM sqlite_schema WHERE name LIKE '%words' AND sql LIKE '%detail = none%'")
      .get()
    expect([migrated?.many, reader.prepare("SELECT value FROM meta WHERE name = 'graph'").get()?.value]).toEqual([2, 4])
    reader.close()
  })

  verifies(
    'R-03',
    'with a long text › keeps it out of the trigram index, which SQLite writes in one piece',
    async () => {
      const file = fresh()
      const graph = await openGraph(`sqlite:${file}`)
      const observations = ['a green walrus', `${'x'.repeat(10_000)} walrus`]
      await graph.nodes.createEntities('acme', [{ name: 'Miso', entityType: 'walrus', observations }])
      await graph.nodes.addObservations('acme', [{ entityName: 'Miso', contents: ['walrus '.repeat(2_000)] }])
      await graph.close()
      const reader = new DatabaseSync(file, { readOnly: true })
      const count = (sql: string) => reader.prepare(`SELECT count(*) AS many FROM ${sql}`).get()?.many
      expect(count(`graph_observation_words WHERE graph_observation_words MATCH '"wal"'`)).toBe(1)
      expect(count('graph_observation WHERE lower IS NULL')).toBe(2)
      reader.close()
    },
  )

  it('of another program is rejected, and so is an unknown URL', async () => {
    const file = fresh()
    const foreign = new DatabaseSync(file)
    foreign.exec('CREATE TABLE theirs (a)')
    foreign.close()
    await expect(openGraph(`sqlite:${file}`)).rejects.toMatchObject({ code: 'bad-store' })
    await expect(openGraph('mysql://user:secret@host')).rejects.toMatchObject({
      code: 'bad-option',
      param: 'store',
      message: expect.not.stringContaining('secret'),
    })
  })

  verifies(
    'R-03',
    'a write of thousands of nodes › while it runs › lets other work run, hides its rows, and keeps the order of writes',
    async () => {
      using _ = useSlowClock()
      for (const path of [undefined, fresh()]) {
        const database = new GraphDatabase(path)
        const graph = new SqliteGraph(database, new GraphWorkspaces(database), Date.now)
        const nodes = Array.from({ length: 4_000 }, (_, at) => node(`n${at}`))
        let turns = 0
        let isDone = false
        const writing = graph.nodes.createEntities('acme', nodes).finally(() => (isDone = true))
        let later: Promise<readonly { readonly name: string }[]> | undefined
        const reads: Promise<number>[] = []
        while (!isDone) {
          if (++turns === 5) later = graph.nodes.createEntities('acme', [node('n7'), node('last')])
          if (turns % 50 === 0) reads.push(graph.nodes.readGraph('acme').then(({ entities }) => entities.length))
          await new Promise((resolve) => setImmediate(resolve))
        }
        expect(turns).toBeGreaterThan(5)
        expect(await writing).toHaveLength(4_000)
        // A repeated name is known to the later write.
        expect((await later)?.map(({ name }) => name)).toEqual(['last'])
        const found = await Promise.all(reads)
        expect([found.length > 0, found.filter((count) => ![0, 4_000, 4_001].includes(count))]).toEqual([true, []])
        await graph.close()
      }
    },
  )

  verifies('R-03', 'a write of thousands of relations › with a fault in the middle › stores none of them', async () => {
    const database = new GraphDatabase()
    const graph = new SqliteGraph(database, new GraphWorkspaces(database), Date.now)
    const entities = [...Array.from({ length: 2_000 }, (_, at) => person(`p${at}`)), person('')]
    const failing = graph.write('acme', { entities })
    const other = graph.write('acme', { entities: [person('ann')] })
    await expect(failing).rejects.toThrow('id is empty')
    await expect(other).resolves.toMatchObject({ written: 1 })
    expect((await graph.queryEntities('acme')).total).toBe(1)
    await graph.close()
  })

  it('after a long write › moves its log into the file before the next write', async () => {
    using _ = useSlowClock()
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    const nodes = Array.from({ length: 4_000 }, (_, at) => node(`n${at}`))
    await graph.nodes.createEntities('acme', nodes)
    await graph.nodes.createEntities('acme', [node('last')])
    expect(statSync(`${file}-wal`).size).toBeLessThan(statSync(file).size / 4)
    expect((await graph.nodes.readGraph('acme')).entities).toHaveLength(4_001)
    await graph.close()
  })

  it('closes after a long write and the reads that wait for it', async () => {
    using _ = useSlowClock()
    for (const [url, count] of [
      ['ram:', 3_000],
      [`sqlite:${fresh()}`, 0],
    ] as const) {
      const graph = await openGraph(url)
      const writing = graph.nodes.createEntities(
        'acme',
        Array.from({ length: 3_000 }, (_, at) => node(`n${at}`)),
      )
      for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve))
      // Long reads of a file do not wait.
      const reading = Promise.all([graph.nodes.readGraph('acme'), graph.getEntity('acme', 'ann')])
      const closing = graph.close()
      expect(await writing).toHaveLength(3_000)
      expect((await reading)[0].entities.length).toBe(count)
      await closing
    }
  })
})

const node = (name: string) => ({ name, entityType: 'thing', observations: [`about ${name}`] })

/** Resolves when a method was called some times with an argument. */
const countCalls = (method: MockInstance<(sql: string) => void>, argument: string, times: number): Promise<void> =>
  new Promise((resolve) => {
    let left = times
    method.mockImplementation(function (this: DatabaseSync, sql) {
      if (sql === argument && --left === 0) resolve()
      return DatabaseSync.prototype.exec.call(this, sql)
    })
  })
