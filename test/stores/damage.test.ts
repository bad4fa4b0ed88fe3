import { existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { openMemory } from '../../src/index.ts'
import { connectReader } from '../../src/stores/sqlite/connect.ts'
import { examine } from '../../src/stores/sqlite/examine.ts'
import { repair } from '../../src/stores/sqlite/repair.ts'
import { migrate, steps } from '../../src/stores/sqlite/schema.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from './places.ts'

const fresh = freshFiles()
const ann = parseKey('acme:ann')

/** A store with two sessions and a summary in the first, closed. */
async function filled(): Promise<string> {
  const file = fresh()
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
  const { revision, epoch, expiresAt } = await store.head(ann, 0)
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
    reach: 20,
    version: 1,
    by: 'builtin',
    sources: [{ message: 'm1' }],
    lost: [],
  }
}

/** Changes bytes of a closed file the way a failing disk would: behind everybody's back. */
function overwrite(file: string, from: string, to: string): void {
  const bytes = readFileSync(file)
  const at = bytes.indexOf(from)
  if (at < 0 || from.length !== to.length) throw new Error(`${from} is not in ${file}`)
  bytes.write(to, at)
  writeFileSync(file, bytes)
}

async function look(file: string): Promise<string[]> {
  const database = connectReader(file)
  try {
    return (await examine(database, file)).faults.map(({ what, key = '', id = '' }) => `${what} ${key} ${id}`.trim())
  } finally {
    database.close()
  }
}

describe('a damaged store', () => {
  verifies('H-11', 'puts a damaged message aside with a warning, and the rest goes on', async () => {
    const file = await filled()
    overwrite(file, 'acme:ann two seals', 'acme:ann two sealZ')
    const warnings: string[] = []
    const store = sqliteStore(file, { onWarning: (warning) => warnings.push(warning) })
    await using memory = await openMemory({ store })
    expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm3', 'm4'])
    expect(warnings).toEqual([
      `m2 of acme:ann in ${file} is damaged and was put aside; the rest of the session is sound. threadkeep doctor tells more.`,
    ])
    expect((await memory.transcript('acme:bob')).length).toBe(4)
    await memory.append('acme:ann', [{ role: 'user', content: 'five' }])
    const head = await store.head(ann, 9)
    expect([head.recent.map(({ id }) => id), head.messages, head.gaps]).toEqual([['m1', 'm3', 'm4', 'm5'], 4, [[2, 2]]])
    const kept = new DatabaseSync(file, { readOnly: true })
    expect(JSON.parse(String(kept.prepare('SELECT row FROM quarantine').get()?.row))).toMatchObject({
      role: 'user',
      content: 'acme:ann two sealZ',
    })
    kept.close()
  })

  verifies('C-12', 'puts a damaged record aside and makes it anew from the messages', async () => {
    const file = await filled()
    overwrite(file, '"four things"', '"FOUR things"')
    const warnings: string[] = []
    await using store = disposable(sqliteStore(file, { onWarning: (warning) => warnings.push(warning) }))
    const damaged = await store.head(ann, 9)
    expect([damaged.derived, warnings.length, damaged.messages]).toEqual([[], 1, 4])
    // what is put aside counts as a change, so that whoever makes it anew reads the session again
    await store.erase(ann, { entries: ['nothing'] })
    const { revision, epoch, expiresAt, recent } = await store.head(ann, 9)
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
    expect((await store.head(ann, 0)).derived).toEqual([summary(text)])
  })

  verifies('H-11', 'is examined and repaired: what is wrong is named, put aside or made anew', async () => {
    const file = await filled()
    overwrite(file, 'acme:bob three bears', 'acme:bob three bearZ')
    const database = new DatabaseSync(file)
    database.exec(
      "UPDATE session SET messages = 9, gaps = '[[1,2]]' WHERE name = 'ann'; UPDATE message SET terms = 'nonsense' WHERE session = 1 AND sequence = 2",
    )
    database.close()
    expect((await look(file)).sort()).toEqual(['message acme:bob m3', 'session acme:ann', 'words acme:ann m2'])
    const { before, done, after } = await repair(file)
    expect(before.faults.length).toBe(3)
    expect(done).toEqual([
      'm3 of acme:bob was put aside',
      'acme:ann was counted again from its messages',
      '1 messages can be found by their words again',
    ])
    expect([after.faults, after.quarantined, after.messages]).toEqual([[], 1, 7])
    await using memory = await openMemory({ store: `sqlite:${file}` })
    expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m1', 'm2', 'm3', 'm4'])
    expect((await memory.search('acme', 'seals', { session: 'ann' }))[0]?.entry.id).toBe('m2')
  })

  verifies('H-11', 'with broken pages still gives what can be read, and a repair keeps the old file', async () => {
    const file = fresh()
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
    const pages = statSync(file).size / 4_096
    const descriptor = openSync(file, 'r+')
    for (const page of [Math.floor(pages / 2), Math.floor(pages / 2) + 1])
      writeSync(descriptor, Buffer.alloc(4_096, 0xa5), 0, 4_096, page * 4_096)
    const warnings: string[] = []
    const store = sqliteStore(file, { onWarning: (warning) => warnings.push(warning) })
    const readable = async (): Promise<number> => {
      const counts = await Promise.allSettled(
        Array.from({ length: 30 }, (_, session) => store.page(parseKey(`acme:s${session}`), { limit: 20 })),
      )
      return counts.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value.length : 0), 0)
    }
    expect(await readable()).toBeGreaterThan(400)
    await store.close()
    const { done, after } = await repair(file)
    expect(done[0]).toContain(`the damaged file is kept as ${file}.damaged-1`)
    expect([existsSync(`${file}.damaged-1`), after.faults]).toEqual([true, []])
    expect(after.messages).toBeGreaterThan(400)
    await using again = await openMemory({ store: `sqlite:${file}` })
    expect((await again.transcript('acme:s0')).length).toBe(20)
  })

  it('is told from a file that is none of ours', async () => {
    const text = fresh()
    writeFileSync(text, 'This is no database, but long enough to be taken for one. '.repeat(20))
    expect(() => sqliteStore(text)).toThrow(
      `${text} is not a Threadkeep store, or is damaged at its beginning. Choose another file, or bring back a backup.`,
    )
    const other = fresh()
    const database = new DatabaseSync(other)
    database.exec('CREATE TABLE mine (a)')
    database.close()
    expect(() => sqliteStore(other)).toThrow(`${other} is a database of another program. Choose another file.`)
    expect(() => sqliteStore(`${text}/x.db`)).toThrow(`${text}/x.db cannot be opened (`)
  })
})

describe('the format of a store', () => {
  verifies('H-11', 'moves forward from every earlier one, and a newer one is refused', async () => {
    const file = await filled()
    const database = new DatabaseSync(file)
    database.exec(`PRAGMA user_version = ${steps.length + 1}`)
    database.close()
    const message = `${file} was written by a newer Threadkeep (format ${steps.length + 1}; this one knows up to ${steps.length}). Update Threadkeep.`
    expect(() => sqliteStore(file)).toThrow(message)
    for (let from = 0; from < steps.length; from++) {
      const old = new DatabaseSync(fresh())
      migrate(old, 'old', steps.slice(0, from))
      migrate(old, 'old')
      expect(old.prepare('PRAGMA user_version').get()).toEqual({ user_version: steps.length })
      old.close()
    }
  })

  it('of the first release is read by this one, with everything in it', async () => {
    const file = await filled()
    const database = new DatabaseSync(file)
    database.exec('DROP TABLE snapshot; PRAGMA user_version = 1')
    database.close()
    await using memory = await openMemory({ store: sqliteStore(file, { worthKeeping: 1 }) })
    expect((await memory.search('acme', 'walrus', { session: 'ann' })).map(({ entry }) => entry.id)).toEqual([
      'm1',
      'm2',
    ])
    expect((await memory.transcript('acme:bob')).length).toBe(4)
  })

  it('keeps indexes, and makes a damaged one anew', async () => {
    const file = await filled()
    const search = async (): Promise<string[]> => {
      await using memory = await openMemory({ store: sqliteStore(file, { worthKeeping: 1 }) })
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

  it('takes a step wholly or not at all', () => {
    const database = new DatabaseSync(fresh())
    migrate(database, 'x', ['CREATE TABLE one (a); INSERT INTO one VALUES (7)'])
    expect(() => migrate(database, 'x', ['', 'CREATE TABLE two (a); INSERT INTO nowhere VALUES (1)'])).toThrow(
      'no such table: nowhere',
    )
    expect(database.prepare('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'one' }])
    migrate(database, 'x', ['', 'ALTER TABLE one RENAME TO uno'])
    expect(database.prepare('SELECT * FROM uno').all()).toEqual([{ a: 7 }])
    database.close()
  })

  it('is copied while it is being written to', async () => {
    const store = sqliteStore(fresh())
    const memory = await openMemory({ store })
    await memory.append('acme:ann', [{ role: 'user', content: 'before' }])
    const copy = fresh()
    const writing = Promise.all(
      Array.from({ length: 20 }, (_, at) => memory.append('acme:bob', [{ role: 'user', content: `${at}` }])),
    )
    await store.backup(copy)
    await writing
    await expect(store.backup(copy)).rejects.toThrow(`${copy} exists already. Choose another file for the backup.`)
    await memory.close()
    await using restored = await openMemory({ store: `sqlite:${copy}` })
    expect((await restored.transcript('acme:ann')).map(({ content }) => content)).toEqual(['before'])
    expect(await look(copy)).toEqual([])
  })
})

const disposable = <T extends { close(): Promise<void> }>(store: T): T & AsyncDisposable =>
  Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })
