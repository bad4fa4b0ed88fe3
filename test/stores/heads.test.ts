import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { never } from '../../src/domain/session.ts'
import { said } from '../../src/stores/conformance/stage.ts'
import { connectReader } from '../../src/stores/sqlite/connect.ts'
import { Heads } from '../../src/stores/sqlite/heads.ts'
import { Reader } from '../../src/stores/sqlite/read.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { newFolder } from '../fault/folder.ts'

describe('sessions at hand in front of a database', () => {
  it('take no more than they may, however long their messages are, and are told the same', async () => {
    using folder = newFolder()
    const path = join(folder.path, 'heads.db')
    const store = sqliteStore(path)
    const keys = Array.from({ length: 20 }, (_, at) => parseKey(`acme:s${at}`))
    const change = { at: 1, epoch: 0, put: [], drop: [], expiresAt: never }
    for (const key of keys) await store.commit({ ...change, key, append: [said('x'.repeat(10_000)), said(key.id)] })
    await store.close()
    const database = connectReader(path)
    const heads = new Heads(new Reader(database, () => expect.fail('damaged')), 50_000)
    for (const key of [...keys, ...keys]) {
      expect(heads.head(key, 2).recent.map(({ content }) => content.slice(0, 3))).toEqual(['xxx', key.id])
      expect(heads.bytes).toBeGreaterThan(10_000)
      expect(heads.bytes).toBeLessThanOrEqual(50_000)
    }
    for (const key of keys) heads.drop(key)
    expect(heads.bytes).toBe(0)
    database.close()
  })
})
