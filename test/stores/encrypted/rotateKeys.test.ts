import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { Index, Store } from '../../../src/domain/ports.ts'
import { said } from '../../../src/stores/conformance/fixtures.ts'
import { type RotationProgress, rotate, sealedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { annKey, bobKey, contentsOf, factWithSpan, keyIds, nextChange, remoteStore, ring } from './fixtures.ts'

const acme = parseKey('acme')

/** Creates two sessions and a scope memory, encrypted with the old key. */
async function createEncrypted(): Promise<Store & Index> {
  const inner = ramStore()
  const store = await sealedStore(inner, ring('old'))
  await store.commit(nextChange({ append: [said('one')], expiresAt: 9_000 }))
  await store.commit(nextChange({ key: bobKey, append: [said('two')] }))
  await store.commit(nextChange({ key: acme, put: [factWithSpan('f1', 'x')] }))
  return inner
}

describe('rotateKeys', () => {
  it('makes the old key unnecessary', async () => {
    const inner = await createEncrypted()
    await expect(sealedStore(inner, ring('new'))).rejects.toMatchObject({
      code: 'bad-secret',
      message: expect.stringContaining(keyIds.old),
    })
    const progress: RotationProgress[] = []
    expect(await rotate(inner, ring('new', 'old'), (step) => progress.push(step))).toEqual({
      sessions: 3,
      rewrapped: 3,
    })
    expect(progress.map(({ rewrapped }) => rewrapped)).toEqual([1, 2, 3])
    const store = await sealedStore(inner, ring('new'))
    expect(
      contentsOf([...(await store.page(annKey, { limit: 9 })), ...(await store.page(bobKey, { limit: 9 }))]),
    ).toEqual(['one', 'two'])
    expect((await store.head(acme, 0)).derived).toEqual([factWithSpan('f1', 'x')])
    await expect(sealedStore(inner, ring('old'))).rejects.toMatchObject({
      code: 'bad-secret',
      message: expect.stringContaining(keyIds.new),
    })
  })

  it('changes neither content nor expiry times', async () => {
    const inner = await createEncrypted()
    const [listed, messages] = [await inner.list({ limit: 9 }), await inner.page(annKey, { limit: 9 })]
    await rotate(inner, ring('new', 'old'))
    expect([await inner.list({ limit: 9 }), await inner.page(annKey, { limit: 9 })]).toEqual([listed, messages])
  })

  it('when repeated has nothing to do', async () => {
    const inner = await createEncrypted()
    await rotate(inner, ring('new', 'old'))
    expect(await rotate(inner, ring('new', 'old'))).toEqual({ sessions: 3, rewrapped: 0 })
    expect(await rotate(inner, ring('new'))).toEqual({ sessions: 3, rewrapped: 0 })
  })

  it('after an interruption resumes', async () => {
    const inner = await createEncrypted()
    const stop = ({ rewrapped }: RotationProgress): void => {
      if (rewrapped === 2) throw new Error('stopped')
    }
    await expect(rotate(inner, ring('new', 'old'), stop)).rejects.toThrow('stopped')
    const halfway = await sealedStore(inner, ring('new', 'old'))
    expect(
      contentsOf([...(await halfway.page(annKey, { limit: 9 })), ...(await halfway.page(bobKey, { limit: 9 }))]),
    ).toEqual(['one', 'two'])
    expect(await rotate(inner, ring('new', 'old'))).toEqual({ sessions: 3, rewrapped: 1 })
  })

  it('works during concurrent writes and erasures', async () => {
    const inner = remoteStore(await createEncrypted())
    const store = await sealedStore(inner, ring('new', 'old'))
    const writes = Array.from({ length: 20 }, (_, at) => store.commit(nextChange({ append: [said(`${at}`)] })))
    const [{ sessions }] = await Promise.all([rotate(inner, ring('new', 'old')), store.erase(bobKey), ...writes])
    expect(sessions).toBeGreaterThanOrEqual(2)
    expect((await (await sealedStore(inner, ring('new'))).page(annKey, { limit: 99 })).length).toBe(21)
  })

  it('handles more sessions than one page', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('old'))
    for (let at = 0; at < 250; at++)
      await store.commit(nextChange({ key: parseKey(`acme:${at}`), append: [said('x')] }))
    expect(await rotate(inner, ring('new', 'old'))).toEqual({ sessions: 250, rewrapped: 250 })
  })

  it('without the old key throws', async () => {
    await expect(rotate(await createEncrypted(), ring('new', 'foreign'))).rejects.toMatchObject({
      code: 'bad-secret',
      message:
        `Session acme is encrypted under key ${keyIds.old}, but the keys given are ${keyIds.new}, ${keyIds.foreign}. ` +
        'Add the missing key after the current one, separated by a space or a new line.',
    })
  })
})
