import { describe, expect, it } from 'vitest'
import { key, newChange, newMessage } from '../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sharedStore } from '../../src/stores/sharedStore.ts'

describe('sharedStore', () => {
  for (const { name, run } of storeConformance(async () => sharedStore(ramStore()))) it(name, run)

  it('after close by one user stays open for the others', async () => {
    const store = ramStore()
    const [first, second] = [sharedStore(store), sharedStore(store)]
    await first.commit(newChange('a', { append: [newMessage('Hello')] }))
    await first.close()
    expect((await second.readMessages(key, { limit: 9 })).map(({ content }) => content)).toEqual(['Hello'])
    await store.close()
    expect(await second.readMessages(key, { limit: 9 })).toEqual([])
  })

  it('over a store with a memory limit forwards the limit', async () => {
    const store = ramStore({ maxBytes: 10 })
    const shared = sharedStore(store) as typeof store
    await shared.commit(newChange('a', { append: [newMessage('Hello')] }))
    expect(shared.capabilities.memoryLimit.memoryUsage).toEqual(store.capabilities.memoryLimit.memoryUsage)
    expect(shared.capabilities.memoryLimit.memoryUsage.usedBytes).toBeGreaterThan(10)
    expect(shared.capabilities.memoryLimit.evictionCandidate).toBeTypeOf('function')
  })
})
