import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { storeConformance } from '../../../src/stores/conformance.ts'
import { rotate, sealedStore } from '../../../src/stores/encrypted.ts'
import { sqliteStore } from '../../../src/stores/sqlite.ts'
import { verifies } from '../../requirements/verifies.ts'
import { ann, change, contents, fact, ring, said } from './stage.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const fresh = (): string => join(folder, `${++files}.db`)

describe('a sealed store over SQLite', () => {
  for (const { name, run } of storeConformance(() => sealedStore(sqliteStore(fresh()), ring('old')))) it(name, run)

  verifies('H-09', 'what is at rest is encrypted: no file on the disk holds a word of it', async () => {
    const path = fresh()
    const store = await sealedStore(sqliteStore(path), ring('old'))
    const calls = [{ id: 'call-walrus', name: 'walrusTool', arguments: '{"find":"walrus"}' }]
    await store.commit(
      change({
        append: [said('my walrus', { name: 'Walrus' }), said('', { role: 'assistant', calls })],
        put: [fact('f1', 'a walrus')],
      }),
    )
    await store.embed('m', [
      { key: ann, id: 'm1', epoch: 0, text: 'my walrus', values: Float32Array.of(0.123456, 0.654321) },
    ])
    expect((await store.search(ann, { text: 'walrus', limit: 9 })).map(({ entry }) => entry.id).sort()).toEqual([
      'f1',
      'm1',
    ])
    const onDisk = (): readonly Buffer[] =>
      [path, `${path}-wal`].flatMap((one) =>
        readdirSync(folder).includes(one.slice(folder.length + 1)) ? [readFileSync(one)] : [],
      )
    const written = onDisk()
    await store.close()
    for (const bytes of [...written, ...onDisk()]) {
      expect(bytes.toString('latin1')).not.toMatch(/walrus/i)
      expect(bytes.includes(Buffer.from(Float32Array.of(0.123456, 0.654321).buffer))).toBe(false)
    }
    expect(Buffer.concat(written).toString('latin1')).toContain('acme')
  })

  it('is opened again with its key, and with a new one after rotating', async () => {
    const path = fresh()
    const first = await sealedStore(sqliteStore(path), ring('old'))
    await first.commit(change({ append: [said('one')] }))
    await first.close()
    const inner = sqliteStore(path)
    await expect(sealedStore(inner, ring('new'))).rejects.toMatchObject({ code: 'bad-secret' })
    expect(await rotate(inner, ring('new', 'old'))).toEqual({ sessions: 1, rewrapped: 1 })
    await inner.close()
    const again = await sealedStore(sqliteStore(path), ring('new'))
    expect(contents(await again.page(ann, { limit: 9 }))).toEqual(['one'])
    await again.close()
  })
})
