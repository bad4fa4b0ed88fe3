import { textOf } from '../../domain/entry.ts'
import { parseKey } from '../../domain/key.ts'
import type { Embedded, Index, Query, Unembedded, Where } from '../../domain/ports.ts'
import { type Checks, change, fact, foreign, key, other, said, same } from './stage.ts'

/** Finding by words and by meaning. */
export const searching: Checks = {
  'search finds by word stems, best first, within bounds': async (store) => {
    const lines = [
      'I adopted a cat called Miso.',
      'The weather is mild.',
      'Cats like warm places.',
      'We talked about trains.',
    ]
    await store.commit(change('a', { append: lines.map((line, at) => said(line, { at: at * 10_000_000 })) }))
    const found = async (query: Parameters<Index['search']>[1]) =>
      (await store.search(key, query)).map((hit) => hit.entry.id)
    same((await found({ text: 'what is my cat called?', limit: 1 }))[0], 'm1')
    same(await found({ text: 'cat', before: 3, limit: 5 }), ['m1'])
    same(await found({ text: 'cat', from: 15_000_000, limit: 5 }), ['m3'])
    same(await found({ text: 'cat', kinds: ['fact'], limit: 5 }), [])
  },
  'a scope is searched as a whole, and a session alone': async (store) => {
    await store.commit(change('a', { append: [said('The walrus sleeps on the ice all day long.')] }))
    await store.commit(
      change('b', { key: other, append: [said('A walrus!')], put: [fact('f1', 'the walrus is called Bruno')] }),
    )
    await store.commit(change('c', { key: parseKey('acme'), put: [fact('f2', 'feed the walrus at noon')] }))
    await store.commit(change('d', { key: foreign, append: [said('walrus walrus walrus')] }))
    const found = async (where: Where, more: Partial<Query> = {}) =>
      (await store.search(where, { text: 'walrus', limit: 9, ...more }))
        .map(({ key, entry }) => `${key.scope}:${key.id} ${entry.id}`)
        .sort()
    same(await found({ scope: 'acme' }), ['acme: f2', 'acme:ann m1', 'acme:bob f1', 'acme:bob m1'])
    same(await found({ scope: 'acme' }, { kinds: ['fact'] }), ['acme: f2', 'acme:bob f1'])
    same(await found(other), ['acme:bob f1', 'acme:bob m1'])
    same(await found(parseKey('acme')), ['acme: f2'])
    same(await found({ scope: 'nobody' }), [])
  },
  'search follows what is added, changed, dropped and forgotten': async (store) => {
    const found = async () =>
      (await store.search({ scope: 'acme' }, { text: 'walrus', limit: 9 }))
        .map(({ key, entry }) => `${key.id} ${entry.id}`)
        .sort()
    await store.commit(change('a', { append: [said('a walrus')] }))
    same(await found(), ['ann m1'])
    await store.commit(change('b', { key: other, append: [said('one more walrus')], put: [fact('f1', 'walrus')] }))
    same(await found(), ['ann m1', 'bob f1', 'bob m1'])
    await store.commit(change('c', { key: other, put: [fact('f1', 'seal')] }))
    same(await found(), ['ann m1', 'bob m1'])
    await store.commit(change('d', { drop: ['m1'] }))
    same(await found(), ['bob m1'])
    await store.erase(other)
    same(await found(), [])
  },
  'what went takes no place in a search, and counts for no score': async (store) => {
    const lines = Array.from({ length: 5 }, (_, at) => said(`walrus number ${at} eats clams`))
    const found = async (of: Where) =>
      (await store.search(of, { text: 'walrus', limit: 2 })).map(({ entry, score }) => [textOf(entry), score])
    await store.commit(change('a', { append: lines }))
    await found(key)
    await store.commit(change('b', { append: [said('a lonely walrus remains')], drop: ['m1', 'm2', 'm3', 'm4'] }))
    await store.commit(change('c', { key: foreign, append: [...lines.slice(4), said('a lonely walrus remains')] }))
    same((await found(key)).length, 2)
    same(await found(key), await found(foreign))
  },
  'a session that is begun anew is searched as a new one': async (store) => {
    const best = async (text: string) =>
      (await store.search(key, { text, limit: 9 })).map(({ entry }) => textOf(entry))[0]
    await store.commit(change('a', { append: [said('the walrus sleeps'), said('on the ice')] }))
    same(await best('walrus'), 'the walrus sleeps')
    await store.erase(key)
    await store.commit(
      change('b', { epoch: (await store.head(key, 0)).epoch, append: [said('I like apples'), said('and pears')] }),
    )
    same([await best('walrus'), await best('apples'), await best('pears')], [undefined, 'I like apples', 'and pears'])
  },
  'what others hold changes no score': async (store) => {
    const scores = async () =>
      (await store.search({ scope: 'acme' }, { text: 'walrus on ice', limit: 9 })).map(
        ({ entry, score }) => `${entry.id} ${score}`,
      )
    await store.commit(
      change('a', { append: [said('The walrus sleeps.'), said('Ice is cold.'), said('Nothing here.')] }),
    )
    const alone = await scores()
    await store.commit(
      change('b', { key: foreign, append: Array.from({ length: 50 }, (_, at) => said(`walrus and ice ${at}`)) }),
    )
    same(await scores(), alone)
  },
  'changes tell which sessions to read again, and when something went': async (store) => {
    const before = await store.changes({ scope: 'acme' }, 0)
    await store.commit(change('a', { append: [said('one')] }))
    const after = await store.changes({ scope: 'acme' }, before.stamp)
    same([after.sessions, after.lineage === before.lineage], [[key], true])
    same((await store.changes({ scope: 'acme' }, after.stamp)).sessions, [])
    same((await store.changes(other, before.stamp)).sessions, [])
    await store.erase(key, { entries: ['m1'] })
    same((await store.changes({ scope: 'acme' }, after.stamp)).lineage === after.lineage, false)
    same((await store.changes(key, after.stamp)).lineage === (await store.changes(other, 0)).lineage, false)
  },
  'vectors are found by their cosine, by kind and time, of one embedder only': async (store) => {
    await store.commit(
      change('a', {
        append: [said('east'), said('north', { at: 5_000 }), said('  ')],
        put: [fact('f1', 'north-east')],
      }),
    )
    same((await rest(store, 'e')).map(({ id }) => id).sort(), ['f1', 'm1', 'm2'])
    same(await store.embedded('e'), { done: 0, total: 3 })
    same(
      await store.embed('e', [
        vector('m1', 'east', 1, 0),
        vector('m2', 'north', 0, 1),
        vector('f1', 'north-east', 1, 1),
        vector('m9', 'x', 1, 0),
      ]),
      3,
    )
    same(await store.embedded('e'), { done: 3, total: 3 })
    const near = async (model: string, more: Partial<Query> = {}) =>
      (
        await store.search({ scope: 'acme' }, { vector: { model, values: Float32Array.of(2, 0.2) }, limit: 9, ...more })
      ).map(({ entry, score }) => `${entry.id} ${score.toFixed(3)}`)
    same(await near('e'), ['m1 0.995', 'f1 0.774', 'm2 0.100'])
    same(await near('e', { kinds: ['message'], from: 2_000 }), ['m2 0.100'])
    same(await near('another'), [])
  },
  'a new embedder takes over, entry by entry': async (store) => {
    await store.commit(change('a', { append: [said('east'), said('north')] }))
    await store.embed('old', [vector('m1', 'east', 1, 0), vector('m2', 'north', 0, 1)])
    same((await rest(store, 'old')).length, 0)
    same(
      (await rest(store, 'new')).map(({ id, text }) => `${id} ${text}`),
      ['m1 east', 'm2 north'],
    )
    await store.embed('new', [{ ...vector('m1', 'east', 0, 1), values: Float32Array.of(0, 0, 1) }])
    same(
      [await store.embedded('old'), await store.embedded('new')],
      [
        { done: 1, total: 2 },
        { done: 1, total: 2 },
      ],
    )
    const found = await store.search(key, { vector: { model: 'new', values: Float32Array.of(0, 0, 1) }, limit: 9 })
    same(
      found.map(({ entry }) => entry.id),
      ['m1'],
    )
  },
  'vectors go with what they stand for, and do not come back late': async (store) => {
    await store.commit(change('a', { append: [said('east'), said('north')], put: [fact('f1', 'x')] }))
    await store.embed('e', [vector('m1', 'east', 1, 0), vector('m2', 'north', 0, 1), vector('f1', 'x', 1, 1)])
    const near = async () =>
      (await store.search(key, { vector: { model: 'e', values: Float32Array.of(1, 0) }, limit: 9 }))
        .map(({ entry }) => entry.id)
        .sort()
    same(await near(), ['f1', 'm1', 'm2'])
    await store.commit(change('b', { put: [fact('f1', 'says something else')] }))
    same(await store.embed('e', [vector('f1', 'x', 1, 1)]), 0)
    await store.erase(key, { entries: ['m1'] })
    same(await near(), ['m2'])
    same(await store.embed('e', [vector('m1', 'east', 1, 0)]), 0)
    await store.erase(key)
    const { epoch } = await store.head(key, 0)
    await store.commit(change('c', { epoch, append: [said('new'), said('newer')] }))
    same(await store.embed('e', [vector('m2', 'newer', 0, 1)]), 0)
    same(await near(), [])
  },
  'words and meaning are mixed': async (store) => {
    await store.commit(
      change('a', { append: [said('a walrus'), said('a sea animal with tusks'), said('the weather')] }),
    )
    await store.embed('e', [
      vector('m1', 'a walrus', 1, 0),
      vector('m2', 'a sea animal with tusks', 1, 0.1),
      vector('m3', 'the weather', 0, 1),
    ])
    const hits = await store.search(key, {
      text: 'walrus',
      vector: { model: 'e', values: Float32Array.of(1, 0) },
      limit: 2,
    })
    same(
      hits.map(({ entry }) => entry.id),
      ['m1', 'm2'],
    )
  },
}

const vector = (id: string, text: string, ...values: number[]): Embedded => ({
  key,
  id,
  epoch: 0,
  text,
  values: Float32Array.from(values),
})

/** Everything that has no vector yet. */
async function rest(store: Index, model: string): Promise<Unembedded['entries']> {
  const entries: Unembedded['entries'][number][] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const found: Unembedded = await store.unembedded(model, after, 1)
    entries.push(...found.entries)
    after = found.next
  }
  return entries
}
