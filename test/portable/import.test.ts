import { describe, expect, it } from 'vitest'
import type { Fact } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { never } from '../../src/domain/session.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { said as line } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { file, gathered } from './bytes.ts'
import { storeWith, talk } from './memories.ts'

const fact: Fact = {
  kind: 'fact',
  id: 'f1',
  at: 5,
  field: 'key_decisions',
  key: '',
  value: 'x',
  importance: 5,
  sources: [],
}
const many = Array.from({ length: 1_201 }, (_, at) => `${at}`)

const bundleOf = (store: Store) => gathered(exportBundle(store))
const contents = async (store: Store, key: string) =>
  (await store.page(parseKey(key), { limit: 9 })).map(({ content }) => content)

describe('importing into a store that has other contents', () => {
  const bundle = async () => file(await bundleOf(await storeWith(talk('acme:ann', ['new']), talk('acme:bob', ['new']))))
  const there = () => storeWith(talk('acme:bob', ['old', 'older']))

  it('is refused by default, names them and leaves everything as it was', async () => {
    const store = await there()
    const before = await bundleOf(store)
    await expect(importBundle(store, await bundle())).rejects.toMatchObject({
      code: 'conflict',
      message:
        'The store has other contents for acme:bob. Nothing was imported. Skip or replace what the store has, or import into another scope.',
    })
    expect((await bundleOf(store)).equals(before)).toBe(true)
  })

  it('skips them if told so', async () => {
    const store = await there()
    expect(await importBundle(store, await bundle(), { onExisting: 'skip' })).toEqual({
      sessions: 1,
      messages: 1,
      entries: 0,
      unchanged: 0,
      skipped: ['acme:bob'],
      replaced: [],
    })
    expect([await contents(store, 'acme:ann'), await contents(store, 'acme:bob')]).toEqual([['new'], ['old', 'older']])
  })

  it('replaces them if told so', async () => {
    const store = await there()
    expect(await importBundle(store, await bundle(), { onExisting: 'replace' })).toMatchObject({
      sessions: 2,
      messages: 2,
      skipped: [],
      replaced: ['acme:bob'],
    })
    expect([await contents(store, 'acme:ann'), await contents(store, 'acme:bob')]).toEqual([['new'], ['new']])
  })

  it('refuses to guess what else it could do', async () =>
    expect(importBundle(ramStore(), await bundle(), { onExisting: 'merge' as 'skip' })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'onExisting',
    }))

  const other = talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5], [fact])
  it.each([
    ['another text', talk('acme:ann', ['a', 'b', 'C', 'd', 'e'], [2, 5], [fact])],
    ['another gap', talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [3, 5], [fact])],
    ['no gap', talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [5], [fact])],
    ['more messages', talk('acme:ann', ['a', 'b', 'c', 'd', 'e', 'f'], [2, 5], [fact])],
    ['more messages that are gone', talk('acme:ann', ['a', 'b', 'c', 'd', 'e', 'f'], [2, 5, 6], [fact])],
    ['a first message that is gone', talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [1, 2, 5], [fact])],
    ['a last message that is gone', talk('acme:ann', ['a', 'b', 'c', 'd'], [2, 4], [fact])],
    ['a last message that is not gone', talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2], [fact])],
    ['another entry', talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5], [{ ...fact, value: 'y' }])],
    ['one entry more', talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5], [fact, { ...fact, id: 'f2' }])],
    [
      'another beginning',
      { ...other, steps: [{ ...other.steps[0], at: 999 }, ...other.steps.slice(1)] } as typeof other,
    ],
  ])('sees %s', async (_, history) => {
    const store = await storeWith(history)
    const before = await bundleOf(store)
    await expect(importBundle(store, file(await bundleOf(await storeWith(other))))).rejects.toMatchObject({
      code: 'conflict',
    })
    expect((await bundleOf(store)).equals(before)).toBe(true)
  })

  it.each([
    ['fewer messages', talk('acme:ann', ['a', 'b', 'c'], [2])],
    ['fewer messages, the last one gone', talk('acme:ann', ['a', 'b'], [2])],
    ['fewer entries', talk('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5])],
    ['another expiry', { ...other, expiresAt: 9_000 }],
  ])('continues what is the same but for %s', async (_, history) => {
    const store = await storeWith(history)
    const wanted = await bundleOf(await storeWith(other))
    expect(await importBundle(store, file(wanted))).toMatchObject({ sessions: 1, replaced: [] })
    expect((await bundleOf(store)).equals(wanted)).toBe(true)
  })

  it('sets an expiry that is all that differs', async () => {
    const store = await storeWith({ ...talk('acme:ann', ['a']), expiresAt: 9_000 })
    await importBundle(store, file(await bundleOf(await storeWith(talk('acme:ann', ['a'])))))
    expect((await store.head(parseKey('acme:ann'), 0)).expiresAt).toBe(never)
  })

  it('takes the place of a session in which nothing was ever said', async () => {
    const store = ramStore()
    await store.commit({
      id: 'a',
      key: parseKey('acme:ann'),
      at: 5,
      epoch: 0,
      append: [],
      put: [],
      drop: [],
      expiresAt: never,
    })
    const wanted = await bundleOf(await storeWith(other))
    await importBundle(store, file(wanted))
    expect((await bundleOf(store)).equals(wanted)).toBe(true)
  })
})

describe('importing into another scope', () => {
  it('renames the scope of every session', async () => {
    const store = ramStore()
    await importBundle(store, file(await bundleOf(await storeWith(talk('acme', ['x']), talk('acme:ann', ['x'])))), {
      scope: 'zeta',
    })
    expect((await store.list({ limit: 9 })).map(({ key }) => `${key.scope} ${key.id}`)).toEqual(['zeta ', 'zeta ann'])
  })

  it('needs a bundle of one scope', async () => {
    const store = ramStore()
    const bundle = file(await bundleOf(await storeWith(talk('acme:ann', ['x']), talk('beta:ann', ['x']))))
    await expect(importBundle(store, bundle, { scope: 'zeta' })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'scope',
    })
    await expect(importBundle(store, bundle, { scope: 'no spaces' })).rejects.toMatchObject({ code: 'bad-key' })
    expect(await store.list({ limit: 9 })).toEqual([])
  })
})

describe('an import that was interrupted', () => {
  const histories = [talk('acme:ann', many, [3, 700, 1_201], [fact]), talk('acme:bob', []), talk('acme:eve', ['x'])]

  it('is continued by the next one, whichever change was the last', async () => {
    const wanted = await bundleOf(await storeWith(...histories))
    let failures = 0
    for (let allowed = 0; ; allowed++) {
      const store = ramStore()
      const whole = await importBundle(failingAfter(store, allowed), file(wanted)).then(
        () => true,
        () => false,
      )
      if (!whole) await importBundle(store, file(wanted))
      expect((await bundleOf(store)).equals(wanted)).toBe(true)
      if (whole) break
      failures++
    }
    expect(failures).toBe(10)
  })

  it('was stopped by its signal, says so and can be continued', async () => {
    const wanted = await bundleOf(await storeWith(...histories))
    const store = ramStore()
    const controller = new AbortController()
    const progress: number[] = []
    const stop = ({ messages }: { messages: number }) => {
      progress.push(messages)
      if (messages === 1_000) controller.abort()
    }
    await expect(
      importBundle(store, file(wanted), { signal: controller.signal, progress: stop }),
    ).rejects.toMatchObject({
      code: 'aborted',
      message:
        'The import was stopped by the caller. What was written stays; import the same bundle again to continue.',
    })
    expect(progress).toEqual([0, 500, 1_000])
    await expect(importBundle(store, file(wanted), { signal: controller.signal })).rejects.toMatchObject({
      message: 'The import was stopped by the caller. Nothing was written.',
    })
    await importBundle(store, file(wanted))
    expect((await bundleOf(store)).equals(wanted)).toBe(true)
  })

  it('does not run over somebody who writes meanwhile', async () => {
    const key = parseKey('acme:ann')
    const mine = { id: 'x', key, at: 5, epoch: 0, drop: [], expiresAt: never }
    const wanted = file(await bundleOf(await storeWith(talk('acme:ann', many))))
    for (const change of [
      { ...mine, append: [line('mine')], put: [] },
      { ...mine, append: [], put: [fact] },
    ]) {
      const store = ramStore()
      const meddle = ({ messages }: { messages: number }) => void (messages === 1_000 && store.commit(change))
      await expect(importBundle(store, wanted, { progress: meddle })).rejects.toMatchObject({ code: 'conflict' })
      const { asked, derived } = await store.head(key, 0)
      expect([asked?.content === 'mine', derived]).toEqual([change.append.length === 1, change.put])
    }
  })

  it('does not replace what somebody has written meanwhile', async () => {
    const store = await storeWith(talk('acme:ann', ['old']))
    const change = {
      id: 'x',
      key: parseKey('acme:ann'),
      at: 5,
      epoch: 0,
      append: [line('mine')],
      put: [],
      drop: [],
      expiresAt: never,
    }
    const wanted = file(await bundleOf(await storeWith(talk('acme:ann', ['new']))))
    const attempt = importBundle(store, wanted, { onExisting: 'replace', progress: () => void store.commit(change) })
    await expect(attempt).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('acme:ann was written to during the import'),
    })
    expect(await contents(store, 'acme:ann')).toEqual(['old', 'mine'])
  })

  it('had its bundle changed under its hands', async () => {
    const [one, two] = await Promise.all(
      ['a', 'b'].map(async (text) => bundleOf(await storeWith(talk('acme:ann', [text])))),
    )
    for (const second of [two as Buffer, (one as Buffer).subarray(0, 500)]) {
      const versions = [one as Buffer, second]
      const attempt = importBundle(ramStore(), () => file(versions.shift() as Buffer)())
      await expect(attempt).rejects.toMatchObject({
        code: 'bad-bundle',
        message: expect.stringContaining('changed while it was being imported'),
      })
    }
  })
})

/** The store, until it has taken this many changes. */
function failingAfter(store: Store, allowed: number): Store {
  let left = allowed
  return {
    ...store,
    commit: async (change) => {
      if (left-- <= 0) throw new Error('no room left on the disk')
      return store.commit(change)
    },
  }
}
