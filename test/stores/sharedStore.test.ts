import { describe, expect, it } from 'vitest'
import { key, newChange, said } from '../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { borrowed } from '../../src/stores/sharedStore.ts'

describe('sharedStore', () => {
  for (const { name, run } of storeConformance(async () => borrowed(ramStore()))) it(name, run)

  it('after close by one user stays open for the others', async () => {
    const store = ramStore()
    const [first, second] = [borrowed(store), borrowed(store)]
    await first.commit(newChange('a', { append: [said('Hello')] }))
    await first.close()
    expect((await second.page(key, { limit: 9 })).map(({ content }) => content)).toEqual(['Hello'])
    await store.close()
    expect(await second.page(key, { limit: 9 })).toEqual([])
  })

  it('over a store with a memory limit forwards the limit', async () => {
    const store = ramStore({ bytes: 10 })
    const shared = borrowed(store) as typeof store
    await shared.commit(newChange('a', { append: [said('Hello')] }))
    expect(shared.bytes).toEqual(store.bytes)
    expect(shared.bytes.used).toBeGreaterThan(10)
    expect(shared.overflowing).toBeTypeOf('function')
  })
})
