import type { Store } from '../../domain/ports.ts'
import {
  type Checks,
  change,
  content,
  fact,
  foreign,
  key,
  names,
  other,
  outline,
  refused,
  said,
  same,
} from './stage.ts'

/** Reading and writing sessions. */
export const writing: Checks = {
  'a session nobody wrote to has an empty head': async (store) => {
    const head = await store.head(key, 10)
    same(
      [head.revision, head.epoch, head.messages, head.last, head.recent, head.derived, head.first, head.asked],
      [0, 0, 0, 0, [], [], undefined, undefined],
    )
    same(await store.page(key, { limit: 10 }), [])
  },
  'messages get ids, gap-free sequence numbers and summed weights': async (store) => {
    const first = await store.commit(change('a', { append: [said('one', { weight: 3 }), said('two')] }))
    const second = await store.commit(change('b', { append: [said('three')] }))
    same([...first, ...second].map(outline), ['m1 1 0 one', 'm2 2 3 two', 'm3 3 8 three'])
    same((await store.page(key, { limit: 10 })).map(outline), ['m1 1 0 one', 'm2 2 3 two', 'm3 3 8 three'])
  },
  'a message comes back exactly as it was given': async (store) => {
    const strange = said('\u{1F469}\u200D\u{1F4BB} \u0000 "quoted" \n', {
      role: 'assistant',
      name: 'Zoë',
      calls: [{ id: 'c1', name: 'look', arguments: '{"a":1}' }],
    })
    await store.commit(change('a', { append: [strange, said('result', { role: 'tool', answers: 'c1' })] }))
    const [call, result] = await store.page(key, { limit: 2 })
    same(call, { ...strange, kind: 'message', id: 'm1', sequence: 1, offset: 0 })
    same(result?.answers, 'c1')
  },
  'the head tells first, newest question, recent messages and counts': async (store) => {
    await store.commit(
      change('a', {
        append: [
          said('one'),
          said('reply', { role: 'assistant' }),
          said('two'),
          said('  ', {}),
          said('last', { role: 'assistant' }),
        ],
      }),
    )
    const head = await store.head(key, 2)
    same(
      [head.first?.content, head.asked?.content, head.recent.map(content), head.messages, head.last, head.revision],
      ['one', 'two', ['  ', 'last'], 5, 5, 1],
    )
  },
  'the same change twice is once, with the same answer': async (store) => {
    const once = await store.commit(change('a', { append: [said('one')] }))
    await store.commit(change('b', { append: [said('two')] }))
    const again = await store.commit(change('a', { append: [said('one')] }))
    same(again.map(outline), once.map(outline))
    same([(await store.head(key, 10)).recent.map(content), (await store.head(key, 10)).revision], [['one', 'two'], 2])
  },
  'concurrent appends are all kept, in one order': async (store) => {
    await Promise.all(
      Array.from({ length: 40 }, (_, at) => store.commit(change(`op${at}`, { append: [said(`${at}`)] }))),
    )
    const messages = await store.page(key, { limit: 100 })
    same(
      messages.map((message) => message.sequence),
      Array.from({ length: 40 }, (_, at) => at + 1),
    )
    same(new Set(messages.map(content)).size, 40)
  },
  'pages run forward and backward between bounds': async (store) => {
    await store.commit(change('a', { append: Array.from({ length: 9 }, (_, at) => said(`${at + 1}`)) }))
    const read = async (range: Parameters<Store['page']>[1]) => (await store.page(key, range)).map(content).join('')
    same(
      [await read({ limit: 3 }), await read({ after: 3, limit: 3 }), await read({ before: 5, limit: 9 })],
      ['123', '456', '1234'],
    )
    same(
      [
        await read({ limit: 2, newest: true }),
        await read({ before: 5, limit: 2, newest: true }),
        await read({ after: 8, before: 3, limit: 5 }),
      ],
      ['89', '34', ''],
    )
  },
  'derived entries are put and dropped by compare-and-set': async (store) => {
    await store.commit(change('a', { append: [said('one')] }))
    await store.commit(change('b', { base: 1, put: [fact('f1', 'x'), fact('f2', 'y')] }))
    await refused('conflict', store.commit(change('c', { base: 1, put: [fact('f1', 'stale')] })))
    await store.commit(change('d', { base: 2, put: [fact('f1', 'new')], drop: ['f2'] }))
    same((await store.head(key, 0)).derived, [fact('f1', 'new')])
  },
  'a refused change leaves nothing behind': async (store) => {
    await store.commit(change('a', { append: [said('one')] }))
    await refused('conflict', store.commit(change('b', { base: 0, append: [said('two')], put: [fact('f1', 'x')] })))
    same([(await store.head(key, 10)).recent.map(content), (await store.head(key, 10)).derived], [['one'], []])
  },
  'dropped messages leave a gap and their numbers are not given again': async (store) => {
    await store.commit(change('a', { append: [said('1'), said('2'), said('3'), said('4')] }))
    await store.commit(change('b', { append: [said('5')], drop: ['m2', 'm3'] }))
    const head = await store.head(key, 10)
    same([head.recent.map(content), head.messages, head.last, head.gaps], [['1', '4', '5'], 3, 5, [[2, 3]]])
  },
  'expiry is absolute and set by each change': async (store) => {
    await store.commit(change('a', { append: [said('one')], expiresAt: 2_000 }))
    await store.commit(change('b', { key: other, append: [said('one')], expiresAt: 3_000 }))
    same(names(await store.list({ expiredBy: 1_999, limit: 9 })), [])
    same(names(await store.list({ expiredBy: 2_000, limit: 9 })), ['acme:ann'])
    await store.commit(change('c', { append: [said('two')], expiresAt: 9_000 }))
    same(names(await store.list({ expiredBy: 3_000, limit: 9 })), ['acme:bob'])
  },
  'lists are ordered, paged and kept to a scope': async (store) => {
    for (const one of [foreign, other, key])
      await store.commit(change(`a ${one.scope} ${one.id}`, { key: one, append: [said('one')] }))
    same(names(await store.list({ limit: 9 })), ['acme:ann', 'acme:bob', 'zeta:ann'])
    same(names(await store.list({ scope: 'acme', limit: 9 })), ['acme:ann', 'acme:bob'])
    same(names(await store.list({ after: 'acme:ann', limit: 1 })), ['acme:bob'])
  },
  'sessions do not see each other': async (store) => {
    await store.commit(change('a', { append: [said('secret')], put: [fact('f1', 'secret')] }))
    await store.commit(change('b', { key: other, append: [said('hello')] }))
    const head = await store.head(other, 10)
    same([head.recent.map(content), head.derived], [['hello'], []])
    same(await store.search(other, { text: 'secret', limit: 5 }), [])
    same(await store.search(foreign, { text: 'secret', limit: 5 }), [])
  },
  'a message may be put at a later number, which leaves a gap': async (store) => {
    await store.commit(change('a', { append: [said('1')], from: { sequence: 3, offset: 40 } }))
    await store.commit(change('b', { append: [said('2'), said('3')], from: { sequence: 7, offset: 90 } }))
    await store.commit(change('c', { from: { sequence: 12, offset: 120 } }))
    await refused('conflict', store.commit(change('d', { append: [said('x')], from: { sequence: 11, offset: 0 } })))
    await store.commit(change('e', { append: [said('4')] }))
    same((await store.page(key, { limit: 9 })).map(outline), ['m3 3 40 1', 'm7 7 90 2', 'm8 8 95 3', 'm12 12 120 4'])
    const { gaps, last, messages, first } = await store.head(key, 0)
    same(
      [gaps, last, messages, first?.id],
      [
        [
          [1, 2],
          [4, 6],
          [9, 11],
        ],
        12,
        4,
        'm3',
      ],
    )
  },
}
