import { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { describe, expect, it, vi } from 'vitest'
import type { Fact } from '../../src/domain/entry.ts'
import { key, newChange, newFact, newMessage } from '../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { Reader } from '../../src/stores/sqlite/read.ts'
import { examineFile, repairFile } from '../../src/stores/sqlite/repair.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { undoFormat4 } from './oldFormats.ts'
import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()
const packedPayload = '{"protocol":"messages","items":[{"thinking":"the seal naps"}]}'

const oldColumns = 'sequence, at, role, name, tokens, line_tokens, tokenizer, weight, "offset", calls, answers, content'

/** Creates a closed file whose message 2 has a payload and a branch and was stored last. */
async function createFile(): Promise<string> {
  const path = newPath()
  const store = sqliteStore(path)
  await store.commit(newChange('a', { append: [newMessage('one walrus')] }))
  await store.commit(newChange('b', { append: [newMessage('three')], from: { sequence: 3 } }))
  const reply = newMessage('two', { role: 'assistant', packedPayload, branch: 1 })
  await store.commit(newChange('c', { append: [reply], from: { sequence: 2 } }))
  await store.close()
  return path
}

const runSql = (path: string, sql: string): void => {
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}

describe('sqliteStore', () => {
  for (const { name, run } of storeConformance(async () => sqliteStore(newPath()))) it(name, run)

  it('with a filled slot and a payload › has no faults and returns both after reopening', async () => {
    const path = await createFile()
    expect((await examineFile(path)).faults).toEqual([])
    const store = sqliteStore(path)
    const { recent, gaps } = await store.readHead(key, 9)
    expect(recent.map(({ id, packedPayload, branch }) => [id, packedPayload, branch])).toEqual([
      ['m1', undefined, undefined],
      ['m2', packedPayload, 1],
      ['m3', undefined, undefined],
    ])
    expect(gaps).toEqual([])
    const [next] = await store.commit(newChange('d', { append: [newMessage('four')] }))
    expect(next?.offset).toBe(15)
    await store.close()
    expect((await examineFile(path)).faults).toEqual([])
  })

  it('with derived entries put into a session that was read before › has what the file has, without reading it', async () => {
    const path = newPath()
    const store = sqliteStore(path)
    const put = (operation: string, ...entries: Fact[]) => store.commit(newChange(operation, { put: entries }))
    await put('a', newFact('f1', 'one'), newFact('f2', 'two'))
    await store.readHead(key, 0)
    using reads = vi.spyOn(Reader.prototype, 'derived')
    await put('b', newFact('f3', 'three'), { ...newFact('f1', 'uno'), at: 7 })
    await put('c', { ...newFact('f1', 'eins'), supersededBy: undefined } as unknown as Fact, newFact('f4', 'four'))
    const { derived } = await store.readHead(key, 0)
    expect(reads).not.toHaveBeenCalled()
    const reopened = sqliteStore(path)
    expect(derived).toStrictEqual((await reopened.readHead(key, 0)).derived)
    expect(reads).toHaveBeenCalledOnce()
    expect(derived.map((entry) => entry.kind === 'fact' && entry.value)).toEqual(['eins', 'two', 'three', 'four'])
    await Promise.all([store.close(), reopened.close()])
  })

  it('with a changed payload or branch › quarantines the message', async () => {
    for (const change of ["payload = replace(payload, 'seal', 'Seal')", 'payload = NULL', 'branch = 3']) {
      const path = await createFile()
      runSql(path, `UPDATE message SET ${change} WHERE sequence = 2`)
      expect((await examineFile(path)).faults.map(({ kind, id }) => `${kind} ${id}`)).toEqual(['message m2'])
      const { actions, after } = await repairFile(path)
      expect([actions, after.faults]).toEqual([['m2 of acme:ann was quarantined'], []])
    }
  })

  it('with damaged counters › rebuilds them from the messages of filled slots', async () => {
    const path = await createFile()
    runSql(path, "UPDATE session SET gaps = '[[2,2]]', messages = 2")
    expect((await repairFile(path)).after.faults).toEqual([])
    const store = sqliteStore(path)
    expect([(await store.readHead(key, 0)).gaps, (await store.readHead(key, 0)).messages]).toEqual([[], 3])
    await store.close()
  })

  it('with a file of the format before payloads › examines, repairs and migrates it', async () => {
    const createOldFile = async (): Promise<string> => {
      const path = newPath()
      const store = sqliteStore(path)
      await store.commit(newChange('a', { append: [newMessage('one walrus'), newMessage('two')] }))
      await store.close()
      runSql(path, undoFormat4)
      return path
    }
    const [examined, damaged] = [await createOldFile(), await createOldFile()]
    expect((await examineFile(examined)).faults).toEqual([])
    // The checksum of a message without the new fields is that of the earlier format.
    const database = new DatabaseSync(examined)
    const { sum, ...cells } = database.prepare(`SELECT ${oldColumns}, sum FROM message`).get() as Record<
      string,
      unknown
    >
    database.close()
    expect(sum).toBe(crc32(Object.values(cells).join(' ')))
    const store = sqliteStore(examined)
    await store.commit(newChange('b', { append: [newMessage('three', { packedPayload, branch: 2 })] }))
    expect((await store.readMessages(key, { limit: 9 })).map(({ packedPayload }) => packedPayload)).toEqual([
      undefined,
      undefined,
      packedPayload,
    ])
    await store.close()
    runSql(damaged, "UPDATE message SET content = 'changed' WHERE sequence = 2")
    expect((await repairFile(damaged)).after.faults).toEqual([])
  })
})
