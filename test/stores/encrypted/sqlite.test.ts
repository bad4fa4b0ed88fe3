import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../../src/stores/conformance.ts'
import { encryptedStore, rotateKeys } from '../../../src/stores/encrypted.ts'
import { sqliteStore } from '../../../src/stores/sqlite.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTempPaths } from '../tempPaths.ts'
import { annKey, contentsOf, factWithSpan, nextChange, testKeyring } from './fixtures.ts'

const newPath = createTempPaths()
const openEncrypted = (path: string, name: 'old' | 'new') =>
  encryptedStore(sqliteStore(path, { keyring: testKeyring(name) }), testKeyring(name))

describe('encryptedStore over SQLite', () => {
  for (const { name, run } of storeConformance(() => openEncrypted(newPath(), 'old'))) it(name, run)

  verifies('H-09', 'writes no plain text or vector to any file', async () => {
    const path = newPath()
    const store = await openEncrypted(path, 'old')
    const calls = [{ id: 'call-walrus', name: 'walrusTool', arguments: '{"find":"walrus"}' }]
    await store.commit(
      nextChange({
        append: [
          newMessage('my walrus', { name: 'Walrus', packedPayload: '{"items":["the walrus naps"]}', branch: 1 }),
          newMessage('', { role: 'assistant', toolCalls: calls }),
          newMessage(' ', { role: 'assistant', packedPayload: '{"items":["walrus"]}' }),
        ],
        put: [factWithSpan('f1', 'a walrus')],
      }),
    )
    await store.storeVectors('m', [
      { key: annKey, id: 'm1', epoch: 0, text: 'my walrus', values: Float32Array.of(0.123456, 0.654321) },
    ])
    expect((await store.search(annKey, { text: 'walrus', limit: 9 })).map(({ entry }) => entry.id).sort()).toEqual([
      'f1',
      'm1',
    ])
    const onDisk = (): readonly Buffer[] =>
      [path, `${path}-wal`].filter((file) => existsSync(file)).map((file) => readFileSync(file))
    const written = onDisk()
    await store.close()
    for (const bytes of [...written, ...onDisk()]) {
      expect(bytes.toString('latin1')).not.toMatch(/walrus/i)
      expect(bytes.includes(Buffer.from(Float32Array.of(0.123456, 0.654321).buffer))).toBe(false)
    }
    expect(Buffer.concat(written).toString('latin1')).toContain('acme')
  })

  it('reopens with its key, and with the new key after rotation', async () => {
    const path = newPath()
    const first = await openEncrypted(path, 'old')
    await first.commit(nextChange({ append: [newMessage('one')] }))
    await first.close()
    expect(() => sqliteStore(path, { keyring: testKeyring('new') })).toThrow(`${path} is encrypted under key`)
    const inner = sqliteStore(path, { keyring: testKeyring('new', 'old') })
    expect(await rotateKeys(inner, testKeyring('new', 'old'))).toEqual({ sessions: 1, rewrapped: 1 })
    await inner.close()
    const reopened = await openEncrypted(path, 'new')
    expect(contentsOf(await reopened.readMessages(annKey, { limit: 9 }))).toEqual(['one'])
    await reopened.close()
    expect(() => sqliteStore(path, { keyring: testKeyring('old') })).toThrow(`${path} is encrypted under key`)
  })
})
