import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { Index, Store } from '../../../src/domain/ports.ts'
import { type Rotation, rotate, sealedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { ann, bob, change, contents, distant, fact, ids, ring, said } from './stage.ts'

const acme = parseKey('acme')

/** Two sessions and the memory of their scope, under the old key. */
async function written(): Promise<Store & Index> {
  const inner = ramStore()
  const store = await sealedStore(inner, ring('old'))
  await store.commit(change({ append: [said('one')], expiresAt: 9_000 }))
  await store.commit(change({ key: bob, append: [said('two')] }))
  await store.commit(change({ key: acme, put: [fact('f1', 'x')] }))
  return inner
}

describe('rotating keys', () => {
  it('makes the old key needless, which it was not before', async () => {
    const inner = await written()
    await expect(sealedStore(inner, ring('new'))).rejects.toMatchObject({
      code: 'bad-secret',
      message: expect.stringContaining(ids.old),
    })
    const seen: Rotation[] = []
    expect(await rotate(inner, ring('new', 'old'), (so) => seen.push(so))).toEqual({ sessions: 3, rewrapped: 3 })
    expect(seen.map(({ rewrapped }) => rewrapped)).toEqual([1, 2, 3])
    const store = await sealedStore(inner, ring('new'))
    expect(contents([...(await store.page(ann, { limit: 9 })), ...(await store.page(bob, { limit: 9 }))])).toEqual([
      'one',
      'two',
    ])
    expect((await store.head(acme, 0)).derived).toEqual([fact('f1', 'x')])
    await expect(sealedStore(inner, ring('old'))).rejects.toMatchObject({
      code: 'bad-secret',
      message: expect.stringContaining(ids.new),
    })
  })

  it('changes neither what was said nor when a session is over', async () => {
    const inner = await written()
    const [listed, messages] = [await inner.list({ limit: 9 }), await inner.page(ann, { limit: 9 })]
    await rotate(inner, ring('new', 'old'))
    expect([await inner.list({ limit: 9 }), await inner.page(ann, { limit: 9 })]).toEqual([listed, messages])
  })

  it('is done once: a second time there is nothing to do', async () => {
    const inner = await written()
    await rotate(inner, ring('new', 'old'))
    expect(await rotate(inner, ring('new', 'old'))).toEqual({ sessions: 3, rewrapped: 0 })
    expect(await rotate(inner, ring('new'))).toEqual({ sessions: 3, rewrapped: 0 })
  })

  it('goes on where it was stopped', async () => {
    const inner = await written()
    const stop = ({ rewrapped }: Rotation): void => {
      if (rewrapped === 2) throw new Error('stopped')
    }
    await expect(rotate(inner, ring('new', 'old'), stop)).rejects.toThrow('stopped')
    const halfway = await sealedStore(inner, ring('new', 'old'))
    expect(contents([...(await halfway.page(ann, { limit: 9 })), ...(await halfway.page(bob, { limit: 9 }))])).toEqual([
      'one',
      'two',
    ])
    expect(await rotate(inner, ring('new', 'old'))).toEqual({ sessions: 3, rewrapped: 1 })
  })

  it('goes on while others write, and forget', async () => {
    const inner = distant(await written())
    const store = await sealedStore(inner, ring('new', 'old'))
    const busy = Array.from({ length: 20 }, (_, at) => store.commit(change({ append: [said(`${at}`)] })))
    const [{ sessions }] = await Promise.all([rotate(inner, ring('new', 'old')), store.erase(bob), ...busy])
    expect(sessions).toBeGreaterThanOrEqual(2)
    expect((await (await sealedStore(inner, ring('new'))).page(ann, { limit: 99 })).length).toBe(21)
  })

  it('walks through more sessions than it reads at once', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('old'))
    for (let at = 0; at < 250; at++) await store.commit(change({ key: parseKey(`acme:${at}`), append: [said('x')] }))
    expect(await rotate(inner, ring('new', 'old'))).toEqual({ sessions: 250, rewrapped: 250 })
  })

  it('needs the old key', async () => {
    await expect(rotate(await written(), ring('new', 'foreign'))).rejects.toMatchObject({
      code: 'bad-secret',
      message:
        `Session acme is sealed under key ${ids.old}, but the keys given are ${ids.new}, ${ids.foreign}. ` +
        'Add the missing key behind the current one, parted by a space or a new line.',
    })
  })
})
