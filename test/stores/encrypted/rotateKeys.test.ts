import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { encryptedStore, type RotationProgress, rotateKeys } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { annKey, bobKey, contentsOf, factWithSpan, keyIds, nextChange, remoteStore, testKeyring } from './fixtures.ts'

const acme = parseKey('acme')

/** Creates two sessions and a scope memory, encrypted with the old key. */
async function createEncrypted(): Promise<Store & SearchIndex> {
  const inner = ramStore()
  const store = await encryptedStore(inner, testKeyring('old'))
  await store.commit(nextChange({ append: [newMessage('one')], expiresAt: 9_000 }))
  await store.commit(nextChange({ key: bobKey, append: [newMessage('two')] }))
  await store.commit(nextChange({ key: acme, put: [factWithSpan('f1', 'x')] }))
  return inner
}

describe('rotateKeys', () => {
  it('makes the old key unnecessary', async () => {
    const inner = await createEncrypted()
    await expect(encryptedStore(inner, testKeyring('new'))).rejects.toMatchObject({
      code: 'bad-secret',
      message: expect.stringContaining(keyIds.old),
    })
    const progress: RotationProgress[] = []
    expect(await rotateKeys(inner, testKeyring('new', 'old'), (step) => progress.push(step))).toEqual({
      sessions: 3,
      rewrapped: 3,
    })
    expect(progress.map(({ rewrapped }) => rewrapped)).toEqual([1, 2, 3])
    const store = await encryptedStore(inner, testKeyring('new'))
    expect(
      contentsOf([
        ...(await store.readMessages(annKey, { limit: 9 })),
        ...(await store.readMessages(bobKey, { limit: 9 })),
      ]),
    ).toEqual(['one', 'two'])
    expect((await store.readHead(acme, 0)).derived).toEqual([factWithSpan('f1', 'x')])
    await expect(encryptedStore(inner, testKeyring('old'))).rejects.toMatchObject({
      code: 'bad-secret',
      message: expect.stringContaining(keyIds.new),
    })
  })

  it('changes neither content nor expiry times', async () => {
    const inner = await createEncrypted()
    const [listed, messages] = [await inner.list({ limit: 9 }), await inner.readMessages(annKey, { limit: 9 })]
    await rotateKeys(inner, testKeyring('new', 'old'))
    expect([await inner.list({ limit: 9 }), await inner.readMessages(annKey, { limit: 9 })]).toEqual([listed, messages])
  })

  it('when repeated has nothing to do', async () => {
    const inner = await createEncrypted()
    await rotateKeys(inner, testKeyring('new', 'old'))
    expect(await rotateKeys(inner, testKeyring('new', 'old'))).toEqual({ sessions: 3, rewrapped: 0 })
    expect(await rotateKeys(inner, testKeyring('new'))).toEqual({ sessions: 3, rewrapped: 0 })
  })

  it('after an interruption resumes', async () => {
    const inner = await createEncrypted()
    const stop = ({ rewrapped }: RotationProgress): void => {
      if (rewrapped === 2) throw new Error('stopped')
    }
    await expect(rotateKeys(inner, testKeyring('new', 'old'), stop)).rejects.toThrow('stopped')
    const halfway = await encryptedStore(inner, testKeyring('new', 'old'))
    expect(
      contentsOf([
        ...(await halfway.readMessages(annKey, { limit: 9 })),
        ...(await halfway.readMessages(bobKey, { limit: 9 })),
      ]),
    ).toEqual(['one', 'two'])
    expect(await rotateKeys(inner, testKeyring('new', 'old'))).toEqual({ sessions: 3, rewrapped: 1 })
  })

  it('works during concurrent writes and erasures', async () => {
    const inner = remoteStore(await createEncrypted())
    const store = await encryptedStore(inner, testKeyring('new', 'old'))
    const writes = Array.from({ length: 20 }, (_, at) => store.commit(nextChange({ append: [newMessage(`${at}`)] })))
    const [{ sessions }] = await Promise.all([
      rotateKeys(inner, testKeyring('new', 'old')),
      store.erase(bobKey),
      ...writes,
    ])
    expect(sessions).toBeGreaterThanOrEqual(2)
    expect((await (await encryptedStore(inner, testKeyring('new'))).readMessages(annKey, { limit: 99 })).length).toBe(
      21,
    )
  })

  it('handles more sessions than one page', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('old'))
    for (let at = 0; at < 250; at++)
      await store.commit(nextChange({ key: parseKey(`acme:${at}`), append: [newMessage('x')] }))
    expect(await rotateKeys(inner, testKeyring('new', 'old'))).toEqual({ sessions: 250, rewrapped: 250 })
  })

  it('without the old key throws', async () => {
    await expect(rotateKeys(await createEncrypted(), testKeyring('new', 'foreign'))).rejects.toMatchObject({
      code: 'bad-secret',
      message:
        `Session acme is encrypted under key ${keyIds.old}, but the keys given are ${keyIds.new}, ${keyIds.foreign}. ` +
        'Add the missing key after the current one, separated by a space or a new line.',
    })
  })
})
