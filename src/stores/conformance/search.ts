import { getEntryText } from '../../domain/entry.ts'
import { parseKey } from '../../domain/key.ts'
import type { EntryVector, IndexQuery, SearchIndex, SearchTarget, UnembeddedPage } from '../../domain/ports.ts'
import {
  type ConformanceChecks,
  expectEqual,
  key,
  newChange,
  newFact,
  newMessage,
  otherScope,
  otherSession,
  readSettledChanges,
} from './fixtures.ts'

/** Searching by words and by vectors. */
export const searchChecks: ConformanceChecks = {
  'search › by words › matches stems, best first, within the bounds': async (store) => {
    const lines = [
      'I adopted a cat called Miso.',
      'The weather is mild.',
      'Cats like warm places.',
      'We talked about trains.',
    ]
    await store.commit(newChange('a', { append: lines.map((line, at) => newMessage(line, { at: at * 10_000_000 })) }))
    const found = async (query: Parameters<SearchIndex['search']>[1]) =>
      (await store.search(key, query)).map((hit) => hit.entry.id)
    expectEqual((await found({ text: 'what is my cat called?', limit: 1 }))[0], 'm1')
    expectEqual(await found({ text: 'cat', before: 3, limit: 5 }), ['m1'])
    expectEqual(await found({ text: 'cat', from: 15_000_000, limit: 5 }), ['m3'])
    expectEqual(await found({ text: 'cat', kinds: ['fact'], limit: 5 }), [])
  },
  'search › in a scope or a session › returns hits of the whole scope or only of the session': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('The walrus sleeps on the ice all day long.')] }))
    await store.commit(
      newChange('b', {
        key: otherSession,
        append: [newMessage('A walrus!')],
        put: [newFact('f1', 'the walrus is called Bruno')],
      }),
    )
    await store.commit(newChange('c', { key: parseKey('acme'), put: [newFact('f2', 'feed the walrus at noon')] }))
    await store.commit(newChange('d', { key: otherScope, append: [newMessage('walrus walrus walrus')] }))
    const found = async (where: SearchTarget, more: Partial<IndexQuery> = {}) =>
      (await store.search(where, { text: 'walrus', limit: 9, ...more }))
        .map(({ key, entry }) => `${key.scope}:${key.id} ${entry.id}`)
        .sort()
    expectEqual(await found({ scope: 'acme' }), ['acme: f2', 'acme:ann m1', 'acme:bob f1', 'acme:bob m1'])
    expectEqual(await found({ scope: 'acme' }, { kinds: ['fact'] }), ['acme: f2', 'acme:bob f1'])
    expectEqual(await found(otherSession), ['acme:bob f1', 'acme:bob m1'])
    expectEqual(await found(parseKey('acme')), ['acme: f2'])
    expectEqual(await found({ scope: 'nobody' }), [])
  },
  'search › after appends, replacements, drops and erasures › returns the current entries': async (store) => {
    const found = async () =>
      (await store.search({ scope: 'acme' }, { text: 'walrus', limit: 9 }))
        .map(({ key, entry }) => `${key.id} ${entry.id}`)
        .sort()
    await store.commit(newChange('a', { append: [newMessage('a walrus')] }))
    expectEqual(await found(), ['ann m1'])
    await store.commit(
      newChange('b', { key: otherSession, append: [newMessage('one more walrus')], put: [newFact('f1', 'walrus')] }),
    )
    expectEqual(await found(), ['ann m1', 'bob f1', 'bob m1'])
    await store.commit(newChange('c', { key: otherSession, put: [newFact('f1', 'seal')] }))
    expectEqual(await found(), ['ann m1', 'bob m1'])
    await store.commit(newChange('d', { drop: ['m1'] }))
    expectEqual(await found(), ['bob m1'])
    await store.erase(otherSession)
    expectEqual(await found(), [])
  },
  'search › after drops › neither returns nor scores dropped messages': async (store) => {
    const lines = Array.from({ length: 5 }, (_, at) => newMessage(`walrus number ${at} eats clams`))
    const found = async (of: SearchTarget) =>
      (await store.search(of, { text: 'walrus', limit: 2 })).map(({ entry, score }) => [getEntryText(entry), score])
    await store.commit(newChange('a', { append: lines }))
    await found(key)
    await store.commit(
      newChange('b', { append: [newMessage('a lonely walrus remains')], drop: ['m1', 'm2', 'm3', 'm4'] }),
    )
    await store.commit(
      newChange('c', { key: otherScope, append: [...lines.slice(4), newMessage('a lonely walrus remains')] }),
    )
    expectEqual((await found(key)).length, 2)
    expectEqual(await found(key), await found(otherScope))
  },
  'search › in a session created again after erasure › returns only its new messages': async (store) => {
    const best = async (text: string) =>
      (await store.search(key, { text, limit: 9 })).map(({ entry }) => getEntryText(entry))[0]
    await store.commit(newChange('a', { append: [newMessage('the walrus sleeps'), newMessage('on the ice')] }))
    expectEqual(await best('walrus'), 'the walrus sleeps')
    await store.erase(key)
    await store.commit(
      newChange('b', {
        epoch: (await store.readHead(key, 0)).epoch,
        append: [newMessage('I like apples'), newMessage('and pears')],
      }),
    )
    expectEqual(
      [await best('walrus'), await best('apples'), await best('pears')],
      [undefined, 'I like apples', 'and pears'],
    )
  },
  'search › with data in other scopes › returns the same scores': async (store) => {
    const scores = async () =>
      (await store.search({ scope: 'acme' }, { text: 'walrus on ice', limit: 9 })).map(
        ({ entry, score }) => `${entry.id} ${score}`,
      )
    await store.commit(
      newChange('a', {
        append: [newMessage('The walrus sleeps.'), newMessage('Ice is cold.'), newMessage('Nothing here.')],
      }),
    )
    const alone = await scores()
    await store.commit(
      newChange('b', {
        key: otherScope,
        append: Array.from({ length: 50 }, (_, at) => newMessage(`walrus and ice ${at}`)),
      }),
    )
    expectEqual(await scores(), alone)
  },
  'changes › after a write or an erasure › lists written sessions and changes the lineage': async (store) => {
    const before = await store.changesSince({ scope: 'acme' }, 0)
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    const after = await readSettledChanges(store, before.stamp)
    expectEqual([after.sessions, after.lineage === before.lineage], [[key], true])
    expectEqual((await store.changesSince({ scope: 'acme' }, after.stamp)).sessions, [])
    expectEqual((await store.changesSince(otherSession, before.stamp)).sessions, [])
    await store.erase(key, { entries: ['m1'] })
    expectEqual((await store.changesSince({ scope: 'acme' }, after.stamp)).lineage === after.lineage, false)
    expectEqual(
      (await store.changesSince(key, after.stamp)).lineage === (await store.changesSince(otherSession, 0)).lineage,
      false,
    )
  },
  'search › by vector › ranks by cosine, filters by kind and time, and uses one embedder only': async (store) => {
    await store.commit(
      newChange('a', {
        append: [newMessage('east'), newMessage('north', { at: 5_000 }), newMessage('  ')],
        put: [newFact('f1', 'north-east')],
      }),
    )
    expectEqual((await listUnembedded(store, 'e')).map(({ id }) => id).sort(), ['f1', 'm1', 'm2'])
    expectEqual(await store.countVectors('e'), { done: 0, total: 3 })
    expectEqual(
      await store.storeVectors('e', [
        newVector('m1', 'east', 1, 0),
        newVector('m2', 'north', 0, 1),
        newVector('f1', 'north-east', 1, 1),
        newVector('m9', 'x', 1, 0),
      ]),
      3,
    )
    expectEqual(await store.countVectors('e'), { done: 3, total: 3 })
    const read = await store.readVectors(key, ['f1', 'm1', 'm3', 'm9'])
    expectEqual(
      read.map((vector) => vector && [vector.model, ...vector.values]),
      [['e', 1, 1], ['e', 1, 0], undefined, undefined],
    )
    expectEqual(await store.readVectors(otherSession, ['m1']), [undefined])
    const near = async (model: string, more: Partial<IndexQuery> = {}) =>
      (
        await store.search({ scope: 'acme' }, { vector: { model, values: Float32Array.of(2, 0.2) }, limit: 9, ...more })
      ).map(({ entry, score }) => `${entry.id} ${score.toFixed(3)}`)
    expectEqual(await near('e'), ['m1 0.995', 'f1 0.774', 'm2 0.100'])
    expectEqual(await near('e', { kinds: ['message'], from: 2_000 }), ['m2 0.100'])
    expectEqual(await near('another'), [])
  },
  'embed › with another embedder › replaces the vectors entry by entry': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('east'), newMessage('north')] }))
    await store.storeVectors('old', [newVector('m1', 'east', 1, 0), newVector('m2', 'north', 0, 1)])
    expectEqual((await listUnembedded(store, 'old')).length, 0)
    expectEqual(
      (await listUnembedded(store, 'new')).map(({ id, text }) => `${id} ${text}`),
      ['m1 east', 'm2 north'],
    )
    await store.storeVectors('new', [{ ...newVector('m1', 'east', 0, 1), values: Float32Array.of(0, 0, 1) }])
    expectEqual(
      [await store.countVectors('old'), await store.countVectors('new')],
      [
        { done: 1, total: 2 },
        { done: 1, total: 2 },
      ],
    )
    const found = await store.search(key, { vector: { model: 'new', values: Float32Array.of(0, 0, 1) }, limit: 9 })
    expectEqual(
      found.map(({ entry }) => entry.id),
      ['m1'],
    )
  },
  'embed › for changed or erased entries › stores nothing and old vectors are gone': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('east'), newMessage('north')], put: [newFact('f1', 'x')] }))
    await store.storeVectors('e', [
      newVector('m1', 'east', 1, 0),
      newVector('m2', 'north', 0, 1),
      newVector('f1', 'x', 1, 1),
    ])
    const near = async () =>
      (await store.search(key, { vector: { model: 'e', values: Float32Array.of(1, 0) }, limit: 9 }))
        .map(({ entry }) => entry.id)
        .sort()
    expectEqual(await near(), ['f1', 'm1', 'm2'])
    await store.commit(newChange('b', { put: [newFact('f1', 'says something else')] }))
    expectEqual(await store.storeVectors('e', [newVector('f1', 'x', 1, 1)]), 0)
    await store.erase(key, { entries: ['m1'] })
    expectEqual(await near(), ['m2'])
    expectEqual(await store.storeVectors('e', [newVector('m1', 'east', 1, 0)]), 0)
    await store.erase(key)
    const { epoch } = await store.readHead(key, 0)
    await store.commit(newChange('c', { epoch, append: [newMessage('new'), newMessage('newer')] }))
    expectEqual(await store.storeVectors('e', [newVector('m2', 'newer', 0, 1)]), 0)
    expectEqual(await near(), [])
  },
  'search › by words and vector › combines both rankings': async (store) => {
    await store.commit(
      newChange('a', {
        append: [newMessage('a walrus'), newMessage('a sea animal with tusks'), newMessage('the weather')],
      }),
    )
    await store.storeVectors('e', [
      newVector('m1', 'a walrus', 1, 0),
      newVector('m2', 'a sea animal with tusks', 1, 0.1),
      newVector('m3', 'the weather', 0, 1),
    ])
    const hits = await store.search(key, {
      text: 'walrus',
      vector: { model: 'e', values: Float32Array.of(1, 0) },
      limit: 2,
    })
    expectEqual(
      hits.map(({ entry }) => entry.id),
      ['m1', 'm2'],
    )
  },
}

const newVector = (id: string, text: string, ...values: number[]): EntryVector => ({
  key,
  id,
  epoch: 0,
  text,
  values: Float32Array.from(values),
})

/** Lists all entries without a vector, one per page. */
async function listUnembedded(store: SearchIndex, model: string): Promise<UnembeddedPage['entries']> {
  const entries: UnembeddedPage['entries'][number][] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page: UnembeddedPage = await store.listUnembedded(model, after, 1)
    entries.push(...page.entries)
    after = page.next
  }
  return entries
}
