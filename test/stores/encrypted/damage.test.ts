import { describe, expect, it } from 'vitest'
import type { Derived, Sealed } from '../../../src/domain/entry.ts'
import { type Key, parseKey } from '../../../src/domain/key.ts'
import type { Index, Store } from '../../../src/domain/ports.ts'
import { sealedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { ann, bob, change, contents, fact, ids, ring, said } from './stage.ts'

const zeta = parseKey('zeta:ann')

/** An inner store in which Ann said `one` and `two`, under the old key. */
async function written(): Promise<Store & Index> {
  const inner = ramStore()
  await (await sealedStore(inner, ring('old'))).commit(
    change({ append: [said('one'), said('two')], put: [fact('f1', 'x')] }),
  )
  return inner
}

const derivedOf = async (inner: Store, key: Key, id: string): Promise<Sealed> =>
  (await inner.head(key, 0)).derived.find((entry: Derived) => entry.id === id) as Sealed

/** The text with another character in its middle. */
function bent(text: string): string {
  const middle = text.length >> 1
  return `${text.slice(0, middle)}${text[middle] === 'A' ? 'B' : 'A'}${text.slice(middle + 1)}`
}

describe('a wrong key', () => {
  const message =
    `Session acme:ann is sealed under key ${ids.old}, but the keys given are ${ids.new}, ${ids.foreign}. ` +
    'Add the missing key behind the current one, parted by a space or a new line.'

  it('is refused when the store is opened, with the key that is missing', async () => {
    await expect(sealedStore(await written(), ring('new', 'foreign'))).rejects.toMatchObject({
      code: 'bad-secret',
      param: 'key',
      message,
    })
  })

  it('is refused when a session under it is met later', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('new', 'foreign'))
    await (await sealedStore(inner, ring('old'))).commit(change({ append: [said('one')] }))
    for (const attempt of [
      () => store.head(ann, 0),
      () => store.page(ann, { limit: 1 }),
      () => store.commit(change({ append: [said('two')] })),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ code: 'bad-secret', message })
    }
    expect((await inner.head(ann, 0)).messages).toBe(1)
  })

  it('is no hindrance beside the right one', async () => {
    const store = await sealedStore(await written(), ring('foreign', 'new', 'old'))
    expect(contents(await store.page(ann, { limit: 9 }))).toEqual(['one', 'two'])
  })
})

describe('a box that was tampered with', () => {
  const lost = (what: string) => ({
    code: 'corrupt',
    message: `${what} was changed, or moved here from elsewhere, and cannot be opened. Restore it from a backup or forget it.`,
  })

  it('is refused where its text was changed or cut, until it is forgotten', async () => {
    const inner = await written()
    const [first] = await inner.page(ann, { limit: 1 })
    const box = first?.content ?? ''
    for (const content of [bent(box), box.slice(0, -8), box.slice(0, 8), 'plain text']) {
      const forged = ramStore()
      await forged.commit(
        change({
          append: [{ ...said(''), content }, said((await inner.page(ann, { after: 1, limit: 1 }))[0]?.content ?? '')],
        }),
      )
      await forged.commit(change({ put: [await derivedOf(inner, ann, '#key')] }))
      const store = await sealedStore(forged, ring('new', 'old'))
      await expect(store.page(ann, { limit: 9 })).rejects.toMatchObject(lost('Message m1 of acme:ann'))
      await expect(store.head(ann, 9)).rejects.toMatchObject(lost('Message m1 of acme:ann'))
      expect(await store.erase(ann, { entries: ['m1'] })).toEqual(['m1'])
      expect(contents((await store.head(ann, 9)).recent)).toEqual(['two'])
    }
  })

  it.each([
    ['another session', { key: bob }],
    ['another scope', { key: zeta }],
  ])('is refused in %s', async (_, elsewhere) => {
    const inner = await written()
    const store = await sealedStore(inner, ring('old'))
    await store.commit(change({ ...elsewhere, append: [said('own')] }))
    const { id } = elsewhere.key
    const [message] = await inner.page(ann, { limit: 1 })
    await inner.commit(change({ ...elsewhere, append: [{ ...said(''), content: message?.content ?? '' }] }))
    await expect(store.page(elsewhere.key, { limit: 9 })).rejects.toMatchObject(
      lost(`Message m2 of ${elsewhere.key.scope}:${id}`),
    )
    await inner.commit(change({ ...elsewhere, put: [await derivedOf(inner, ann, 'f1')], drop: ['m2'] }))
    await expect(store.head(elsewhere.key, 0)).rejects.toMatchObject(lost(`Entry f1 of ${elsewhere.key.scope}:${id}`))
  })

  it.each([
    ['speaker', { role: 'assistant' as const }],
    ['time', { at: 2_000 }],
    ['cost', { tokens: 4 }],
    ['cost of a line', { lineTokens: 4 }],
    ['tokenizer', { tokenizer: 'other' }],
    ['weight', { weight: 4 }],
  ])('is refused beside another %s', async (_, other) => {
    const inner = await written()
    const store = await sealedStore(inner, ring('old'))
    const [message] = await inner.page(ann, { limit: 1 })
    await inner.commit(change({ append: [{ ...said(message?.content ?? ''), ...other }] }))
    await expect(store.page(ann, { limit: 9 })).rejects.toMatchObject(lost('Message m3 of acme:ann'))
  })

  it('is refused under the id, the time or the sources of another entry, and in place of one that was never sealed', async () => {
    const inner = await written()
    const store = await sealedStore(inner, ring('old'))
    const entry = await derivedOf(inner, ann, 'f1')
    for (const forged of [
      { ...entry, id: 'f2' },
      { ...entry, at: 9 },
      { ...entry, sources: [{ message: 'm2' }] },
      fact('f1', 'forged'),
    ]) {
      await inner.commit(change({ put: [forged] }))
      await expect(store.head(ann, 0)).rejects.toMatchObject(lost(`Entry ${forged.id} of acme:ann`))
      await inner.commit(change({ put: [entry], drop: ['f2'] }))
    }
    expect((await store.head(ann, 0)).derived).toEqual([fact('f1', 'x')])
  })
})

describe('the key of a session', () => {
  const lost = (name: string) => ({
    code: 'corrupt',
    message: `The key of session ${name} was changed, or moved here from another session, so that nothing in it can be opened. Restore it from a backup or forget it.`,
  })

  it('is refused in another session of the scope, and in another scope', async () => {
    for (const [key, name] of [
      [bob, 'acme:bob'],
      [zeta, 'zeta:ann'],
    ] as const) {
      const inner = await written()
      const store = await sealedStore(inner, ring('old'))
      await inner.commit(change({ key, put: [await derivedOf(inner, ann, '#key')] }))
      await expect(store.head(key, 0)).rejects.toMatchObject(lost(name))
    }
  })

  it('is refused where it was changed, cut or put under the id of another key', async () => {
    const inner = await written()
    const entry = await derivedOf(inner, ann, '#key')
    for (const box of [bent(entry.box), entry.box.slice(0, 30), 'nothing', entry.box.replace(ids.old, ids.new)]) {
      await inner.commit(change({ put: [{ ...entry, box }] }))
      const store = await sealedStore(inner, ring('old', 'new'))
      await expect(store.head(ann, 0)).rejects.toMatchObject(lost('acme:ann'))
      await store.commit(change({ key: bob, append: [said('unharmed')] }))
    }
    expect(await (await sealedStore(inner, ring('old', 'new'))).erase(ann)).toEqual(['m1', 'm2', 'f1'])
  })

  it('is missed in a session that was written without encryption', async () => {
    const inner = ramStore()
    await inner.commit(change({ append: [said('plain')] }))
    await expect(sealedStore(inner, ring('old'))).rejects.toMatchObject({
      code: 'bad-store',
      message:
        'Session acme:ann was written without encryption. Open the store without a key and export it, then import it into a new store with a key.',
    })
  })
})
