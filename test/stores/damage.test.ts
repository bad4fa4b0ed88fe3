import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { openMemory } from '../../src/index.ts'
import { connectReader } from '../../src/stores/sqlite/connect.ts'
import { examineDatabase } from '../../src/stores/sqlite/examine.ts'
import { repairFile } from '../../src/stores/sqlite/repair.ts'
import { migrate, migrations, rejectForeignDatabase } from '../../src/stores/sqlite/schema.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { undoFormat4 } from './oldFormats.ts'
import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()
const ann = parseKey('acme:ann')

/** Creates a closed store with two sessions and a summary in the first. */
async function createFilledStore(): Promise<string> {
  const file = newPath()
  const store = sqliteStore(file)
  const memory = await openMemory({ store, clock: () => 1_000 })
  for (const key of ['acme:ann', 'acme:bob']) {
    await memory.append(
      key,
      ['one walrus', 'two seals', 'three bears', 'four trains'].map((content) => ({
        role: 'user' as const,
        content: `${key} ${content}`,
      })),
    )
  }
  const { revision, epoch, expiresAt } = await store.readHead(ann, 0)
  await store.commit({
    id: 's',
    key: ann,
    at: 1_000,
    epoch,
    base: revision,
    append: [],
    put: [summary('four things')],
    drop: [],
    expiresAt,
  })
  await memory.close()
  return file
}

const summary = (text: string): Summary => {
  return {
    kind: 'summary',
    id: 's1',
    at: 1_000,
    tier: 'progressive',
    text,
    covers: [1, 4],
    endOffset: 20,
    version: 1,
    by: 'builtin',
    sources: [{ message: 'm1' }],
    lossyRanges: [],
  }
}

/** Changes bytes of a closed file, like a failing disk. */
function overwrite(file: string, from: string, to: string): void {
  const bytes = readFileSync(file)
  const offset = bytes.indexOf(from)
  if (offset < 0 || from.length !== to.length) throw new Error(`${from} is not in ${file}`)
  bytes.write(to, offset)
  writeFileSync(file, bytes)
}

async function listFaults(file: string): Promise<string[]> {
  const database = connectReader(file, 'checked')
  try {
    return (await examineDatabase(database, file)).faults.map(({ kind, key = '', id = '' }) =>
      `${kind} ${key} ${id}`.trim(),
    )
  } finally {
    database.close()
  }
}

describe('a damaged store', () => {
  verifies('H-11', 'with a damaged message quarantines it with a warning and keeps working', async () => {
    const file = await createFilledStore()
    overwrite(file, 'acme:ann two seals', 'acme:ann two sealZ')
    const warnings: string[] = []
    const store = sqliteStore(file, { onWarning: (warning) => warnings.push(warning) })
    await using memory = await openMemory({ store })
    expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm3', 'm4'])
    expect(warnings).toEqual([
      `m2 of acme:ann in ${file} is damaged and was quarantined; the rest of the session is intact. Run threadkeep doctor for details.`,
    ])
    expect((await memory.transcript('acme:bob')).length).toBe(4)
    await memory.append('acme:ann', [{ role: 'user', content: 'five' }])
    const head = await store.readHead(ann, 9)
    expect([head.recent.map(({ id }) => id), head.messages, head.gaps]).toEqual([['m1', 'm3', 'm4', 'm5'], 4, [[2, 2]]])
    const database = new DatabaseSync(file, { readOnly: true })
    expect(JSON.parse(String(database.prepare('SELECT row FROM quarantine').get()?.row))).toMatchObject({
      role: 'user',
      content: 'acme:ann two sealZ',
    })
    database.close()
  })

  verifies('C-12', 'with a damaged summary quarantines it and accepts a new one made from the messages', async () => {
    const file = await createFilledStore()
    overwrite(file, '"four things"', '"FOUR things"')
    const warnings: string[] = []
    await using store = disposable(sqliteStore(file, { onWarning: (warning) => warnings.push(warning) }))
    const damaged = await store.readHead(ann, 9)
    expect([damaged.derived, warnings.length, damaged.messages]).toEqual([[], 1, 4])
    // Quarantining increments the revision, so a writer must read the session again.
    await store.erase(ann, { entries: ['nothing'] })
    const { revision, epoch, expiresAt, recent } = await store.readHead(ann, 9)
    const text = recent.map(({ content }) => content).join(', ')
    await store.commit({
      id: 'again',
      key: ann,
      at: 1_000,
      epoch,
      base: revision,
      append: [],
      put: [summary(text)],
      drop: [],
      expiresAt,
    })
    expect((await store.readHead(ann, 0)).derived).toEqual([summary(text)])
  })

  verifies('H-11', 'repairFile reports, quarantines or rebuilds what is wrong', async () => {
    const file = await createFilledStore()
    overwrite(file, 'acme:bob three bears', 'acme:bob three bearZ')
    const database = new DatabaseSync(file)
    database.exec("UPDATE session SET messages = 9, gaps = '[[1,2]]' WHERE name = 'ann'")
    database.close()
    expect((await listFaults(file)).sort()).toEqual(['message acme:bob m3', 'session acme:ann'])
    const { before, actions, after } = await repairFile(file)
    expect(before.faults.length).toBe(2)
    expect(actions).toEqual([
      'm3 of acme:bob was quarantined',
      'the counters of acme:ann were rebuilt from its messages',
    ])
    expect([after.faults, after.quarantined, after.messages]).toEqual([[], 1, 7])
    await using memory = await openMemory({ store: `sqlite:${file}` })
    expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm2', 'm3', 'm4'])
    expect((await memory.search('acme', 'seals', { session: 'ann' }))[0]?.entry.id).toBe('m2')
  })

  verifies('H-11', 'with broken pages returns the readable messages, and a repair keeps the old file', async () => {
    const file = newPath()
    const memory = await openMemory({ store: `sqlite:${file}` })
    for (let session = 0; session < 30; session++) {
      await memory.append(
        `acme:s${session}`,
        Array.from({ length: 20 }, (_, at) => ({
          role: 'user' as const,
          content: `${session} ${at} ${'word '.repeat(40)}`,
        })),
      )
    }
    await memory.close()
    const pageCount = statSync(file).size / 4_096
    const descriptor = openSync(file, 'r+')
    for (const page of [Math.floor(pageCount / 2), Math.floor(pageCount / 2) + 1])
      writeSync(descriptor, Buffer.alloc(4_096, 0xa5), 0, 4_096, page * 4_096)
    const warnings: string[] = []
    const store = sqliteStore(file, { onWarning: (warning) => warnings.push(warning) })
    const countReadable = async (): Promise<number> => {
      const pages = await Promise.allSettled(
        Array.from({ length: 30 }, (_, session) => store.readMessages(parseKey(`acme:s${session}`), { limit: 20 })),
      )
      return pages.reduce((sum, page) => sum + (page.status === 'fulfilled' ? page.value.length : 0), 0)
    }
    expect(await countReadable()).toBeGreaterThan(400)
    await store.close()
    const { actions, after } = await repairFile(file)
    expect(actions[0]).toContain(`the damaged file is kept as ${file}.damaged-1`)
    expect([existsSync(`${file}.damaged-1`), after.faults]).toEqual([true, []])
    expect(after.messages).toBeGreaterThan(400)
    await using reopened = await openMemory({ store: `sqlite:${file}` })
    expect((await reopened.transcript('acme:s0')).length).toBe(20)
  })

  it('of which the structure is damaged › is replaced at its place when a link to it is repaired', async () => {
    const file = await createFilledStore()
    const link = newPath()
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(file, link)
    const database = new DatabaseSync(file)
    const { page } = database.prepare("SELECT rootpage AS page FROM sqlite_schema WHERE name = 'message'").get() ?? {}
    database.close()
    const descriptor = openSync(file, 'r+')
    writeSync(descriptor, Buffer.alloc(4_096, 0xa5), 0, 4_096, (Number(page) - 1) * 4_096)
    closeSync(descriptor)
    const { actions, after } = await repairFile(link)
    expect(actions[0]).toContain(`the damaged file is kept as ${file}.damaged-1`)
    expect([readlinkSync(link), after.faults]).toEqual([file, []])
    const store = sqliteStore(file)
    expect((await store.readHead(ann, 0)).derived).toEqual([summary('four things')])
    await store.close()
  })

  it('is distinguished from files of other programs', async () => {
    const text = newPath()
    writeFileSync(text, 'This is no database, but long enough to be taken for one. '.repeat(20))
    expect(() => sqliteStore(text)).toThrow(
      `${text} is not a Threadkeep store, or its header is damaged. Choose another file, or restore a backup.`,
    )
    const other = newPath()
    const database = new DatabaseSync(other)
    database.exec('CREATE TABLE mine (a)')
    database.close()
    expect(() => sqliteStore(other)).toThrow(`${other} is a database of another program. Choose another file.`)
    expect(() => sqliteStore(`${text}/x.db`)).toThrow(`${text}/x.db cannot be opened (`)
  })

  it('is not taken for one of another program while another process creates it', () => {
    const file = newPath()
    const [reader, creator] = [new DatabaseSync(file), new DatabaseSync(file)]
    creator.exec('PRAGMA journal_mode = WAL')
    const { prepare } = reader
    // The other process creates its tables after the mark was read.
    reader.prepare = (sql) => {
      if (sql.includes('sqlite_schema')) migrate(creator, file, migrations)
      return prepare.call(reader, sql)
    }
    expect(() => rejectForeignDatabase(reader, file)).not.toThrow()
    for (const database of [reader, creator]) database.close()
  })
})

describe('the file format', () => {
  verifies('H-11', 'is migrated from every earlier version, and a newer version is rejected', async () => {
    const file = await createFilledStore()
    const database = new DatabaseSync(file)
    database.exec(`PRAGMA user_version = ${migrations.length + 1}`)
    database.close()
    const message = `${file} was written by a newer Threadkeep (format ${migrations.length + 1}; this version supports up to ${migrations.length}). Update Threadkeep.`
    expect(() => sqliteStore(file)).toThrow(message)
    for (let from = 0; from < migrations.length; from++) {
      const old = new DatabaseSync(newPath())
      migrate(old, 'old', migrations.slice(0, from))
      migrate(old, 'old')
      expect(old.prepare('PRAGMA user_version').get()).toEqual({ user_version: migrations.length })
      old.close()
    }
  })

  it('of version 1 is read completely', async () => {
    const file = await createFilledStore()
    const database = new DatabaseSync(file)
    database.exec(`${undoFormat4} DROP TABLE snapshot; DROP TABLE record; PRAGMA user_version = 1`)
    database.close()
    await using memory = await openMemory({ store: sqliteStore(file, { minSnapshotMessages: 1 }) })
    expect((await memory.search('acme', 'walrus', { session: 'ann' })).map(({ entry }) => entry.id)).toEqual([
      'm1',
      'm2',
    ])
    expect((await memory.transcript('acme:bob')).length).toBe(4)
  })

  it('saves search indexes and rebuilds a damaged one', async () => {
    const file = await createFilledStore()
    const search = async (): Promise<string[]> => {
      await using memory = await openMemory({ store: sqliteStore(file, { minSnapshotMessages: 1 }) })
      return (await memory.search('acme', 'walrus')).map(({ key, entry, score }) => `${key} ${entry.id} ${score}`)
    }
    const first = await search()
    expect([first.length, await search()]).toEqual([4, first])
    const database = new DatabaseSync(file)
    expect(
      database
        .prepare("UPDATE snapshot SET data = cast(substr(data, 1, 40) || x'00' || substr(data, 42) AS BLOB)")
        .run().changes,
    ).toBe(1)
    database.close()
    expect(await search()).toEqual(first)
  })

  it('applies a migration completely or not at all', () => {
    const database = new DatabaseSync(newPath())
    migrate(database, 'x', ['CREATE TABLE one (a); INSERT INTO one VALUES (7)'])
    expect(() => migrate(database, 'x', ['', 'CREATE TABLE two (a); INSERT INTO nowhere VALUES (1)'])).toThrow(
      'no such table: nowhere',
    )
    expect(database.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'one' }])
    migrate(database, 'x', ['', 'ALTER TABLE one RENAME TO uno'])
    expect(database.prepare('SELECT * FROM uno').all()).toEqual([{ a: 7 }])
    database.close()
  })

  it('is backed up during writes', async () => {
    const store = sqliteStore(newPath())
    const memory = await openMemory({ store })
    await memory.append('acme:ann', [{ role: 'user', content: 'before' }])
    const copy = newPath()
    const writing = Promise.all(
      Array.from({ length: 20 }, (_, at) => memory.append('acme:bob', [{ role: 'user', content: `${at}` }])),
    )
    await store.backup(copy)
    await writing
    await expect(store.backup(copy)).rejects.toThrow(`${copy} already exists. Choose another file for the backup.`)
    await memory.close()
    await using restored = await openMemory({ store: `sqlite:${copy}` })
    expect((await restored.transcript('acme:ann')).map(({ content }) => content)).toEqual(['before'])
    expect(await listFaults(copy)).toEqual([])
  })
})

const disposable = <T extends { close(): Promise<void> }>(store: T): T & AsyncDisposable =>
  Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })
