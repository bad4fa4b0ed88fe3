import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { openMemory, profiles, ramStore } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

const hello = { role: 'user' as const, content: 'Hello, my Walrus' }

describe('memory', () => {
  verifies('X-07', 'append › with a repeated operationId in a full session › returns the first result', async () => {
    const profile = {
      ...profiles.thread,
      lifetime: { ...profiles.thread.lifetime, messages: 2, whenFull: 'refuse' as const },
    }
    await using memory = await openMemory({ profile })
    const first = await memory.append('acme:ann', [hello, hello], { operationId: 'op1' })
    expect(await memory.append('acme:ann', [hello, hello], { operationId: 'op1' })).toEqual(first)
    await expect(memory.append('acme:ann', [hello], { operationId: 'op2' })).rejects.toMatchObject({ code: 'full' })
    await expect(memory.append('acme:ann', [hello])).rejects.toMatchObject({ code: 'full' })
  })

  it('search › in expired sessions › finds nothing', async () => {
    let now = 0
    await using memory = await openMemory({ profile: 'ephemeral', clock: () => now })
    await memory.append('acme:ann', [hello])
    expect((await memory.search('acme', 'walrus')).length).toBe(1)
    now = 25 * 3_600_000
    expect(await memory.search('acme', 'walrus')).toEqual([])
  })

  it('search › accepts any limit, and a larger one does not affect the next search', async () => {
    await using memory = await openMemory()
    await memory.append('acme:ann', [hello])
    const found = await memory.search('acme', 'walrus', { limit: Number.MAX_SAFE_INTEGER })
    expect(await memory.search('acme', 'walrus', { limit: 1 })).toEqual(found)
  })

  it('commit › repeated with the same id › keeps the vector', async () => {
    const store = ramStore()
    const key = parseKey('acme')
    const put = [
      { kind: 'fact' as const, id: 'f1', at: 1, field: 'f', key: '', value: 'x', importance: 1, sources: [] },
    ]
    const change = { id: 'op', key, at: 1, epoch: 0, append: [], put, drop: [], expiresAt: 9 }
    await store.commit(change)
    await store.storeVectors('e', [{ key, id: 'f1', epoch: 0, text: 'x', values: Float32Array.of(1) }])
    await store.commit(change)
    expect((await store.countVectors('e')).done).toBe(1)
  })
})
