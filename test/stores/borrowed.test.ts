import { describe, expect, it } from 'vitest'
import { borrowed } from '../../src/stores/borrowed.ts'
import { change, key, said } from '../../src/stores/conformance/stage.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { ramStore } from '../../src/stores/ram.ts'

describe('a borrowed store', () => {
  for (const { name, run } of storeConformance(async () => borrowed(ramStore()))) it(name, run)

  it('stays open when one who has borrowed it closes it', async () => {
    const store = ramStore()
    const [first, second] = [borrowed(store), borrowed(store)]
    await first.commit(change('a', { append: [said('Hello')] }))
    await first.close()
    expect((await second.page(key, { limit: 9 })).map(({ content }) => content)).toEqual(['Hello'])
    await store.close()
    expect(await second.page(key, { limit: 9 })).toEqual([])
  })

  it('keeps its bound', async () => {
    const store = ramStore({ bytes: 10 })
    const lent = borrowed(store) as typeof store
    await lent.commit(change('a', { append: [said('Hello')] }))
    expect(lent.bytes).toEqual(store.bytes)
    expect(lent.bytes.used).toBeGreaterThan(10)
    expect('overflowing' in lent).toBe(true)
  })
})
