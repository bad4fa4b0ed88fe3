import type { Store } from '../../domain/ports.ts'
import {
  type ConformanceChecks,
  contentOf,
  expectEqual,
  expectRejection,
  formatKeys,
  key,
  newChange,
  newFact,
  newMessage,
  otherScope,
  otherSession,
  summarizeMessage,
} from './fixtures.ts'

/** Reading, writing and listing sessions. */
export const sessionChecks: ConformanceChecks = {
  'head › for a session without writes › is empty': async (store) => {
    const head = await store.readHead(key, 10)
    expectEqual(
      [
        head.revision,
        head.epoch,
        head.messages,
        head.lastSequence,
        head.recent,
        head.derived,
        head.firstMessage,
        head.lastUserMessage,
      ],
      [0, 0, 0, 0, [], [], undefined, undefined],
    )
    expectEqual(await store.readMessages(key, { limit: 10 }), [])
  },
  'commit › with new messages › assigns ids, consecutive sequence numbers and offsets': async (store) => {
    const first = await store.commit(newChange('a', { append: [newMessage('one', { weight: 3 }), newMessage('two')] }))
    const second = await store.commit(newChange('b', { append: [newMessage('three')] }))
    expectEqual([...first, ...second].map(summarizeMessage), ['m1 1 0 one', 'm2 2 3 two', 'm3 3 8 three'])
    expectEqual((await store.readMessages(key, { limit: 10 })).map(summarizeMessage), [
      'm1 1 0 one',
      'm2 2 3 two',
      'm3 3 8 three',
    ])
  },
  'page › after a commit › returns messages exactly as they were given': async (store) => {
    const unusual = newMessage('\u{1F469}\u200D\u{1F4BB} \u0000 "quoted" \n', {
      role: 'assistant',
      name: 'Zoë',
      toolCalls: [{ id: 'c1', name: 'look', arguments: '{"a":1}' }],
    })
    await store.commit(newChange('a', { append: [unusual, newMessage('result', { role: 'tool', toolCallId: 'c1' })] }))
    const [call, result] = await store.readMessages(key, { limit: 2 })
    expectEqual(call, { ...unusual, kind: 'message', id: 'm1', sequence: 1, offset: 0 })
    expectEqual(result?.toolCallId, 'c1')
  },
  'head › after a commit › has the first, last user and recent messages and the counts': async (store) => {
    await store.commit(
      newChange('a', {
        append: [
          newMessage('one'),
          newMessage('reply', { role: 'assistant' }),
          newMessage('two'),
          newMessage('  ', {}),
          newMessage('last', { role: 'assistant' }),
        ],
      }),
    )
    const head = await store.readHead(key, 2)
    expectEqual(
      [
        head.firstMessage?.content,
        head.lastUserMessage?.content,
        head.recent.map(contentOf),
        head.messages,
        head.lastSequence,
        head.revision,
      ],
      ['one', 'two', ['  ', 'last'], 5, 5, 1],
    )
  },
  'commit › with a repeated change id › stores the change once and returns the same messages': async (store) => {
    const once = await store.commit(newChange('a', { append: [newMessage('one')] }))
    await store.commit(newChange('b', { append: [newMessage('two')] }))
    const again = await store.commit(newChange('a', { append: [newMessage('one')] }))
    expectEqual(again.map(summarizeMessage), once.map(summarizeMessage))
    expectEqual(
      [(await store.readHead(key, 10)).recent.map(contentOf), (await store.readHead(key, 10)).revision],
      [['one', 'two'], 2],
    )
  },
  'commit › with concurrent appends › stores all of them in one order': async (store) => {
    await Promise.all(
      Array.from({ length: 40 }, (_, at) => store.commit(newChange(`op${at}`, { append: [newMessage(`${at}`)] }))),
    )
    const messages = await store.readMessages(key, { limit: 100 })
    expectEqual(
      messages.map((message) => message.sequence),
      Array.from({ length: 40 }, (_, at) => at + 1),
    )
    expectEqual(new Set(messages.map(contentOf)).size, 40)
  },
  'page › with bounds › reads forward and backward between them': async (store) => {
    await store.commit(newChange('a', { append: Array.from({ length: 9 }, (_, at) => newMessage(`${at + 1}`)) }))
    const read = async (range: Parameters<Store['readMessages']>[1]) =>
      (await store.readMessages(key, range)).map(contentOf).join('')
    expectEqual(
      [await read({ limit: 3 }), await read({ after: 3, limit: 3 }), await read({ before: 5, limit: 9 })],
      ['123', '456', '1234'],
    )
    expectEqual(
      [
        await read({ limit: 2, newest: true }),
        await read({ before: 5, limit: 2, newest: true }),
        await read({ after: 8, before: 3, limit: 5 }),
      ],
      ['89', '34', ''],
    )
  },
  'commit › with a stale base › rejects derived entries': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    await store.commit(newChange('b', { base: 1, put: [newFact('f1', 'x'), newFact('f2', 'y')] }))
    await expectRejection('conflict', store.commit(newChange('c', { base: 1, put: [newFact('f1', 'stale')] })))
    await store.commit(newChange('d', { base: 2, put: [newFact('f1', 'new')], drop: ['f2'] }))
    expectEqual((await store.readHead(key, 0)).derived, [newFact('f1', 'new')])
  },
  'commit › when rejected › stores nothing': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    await expectRejection(
      'conflict',
      store.commit(newChange('b', { base: 0, append: [newMessage('two')], put: [newFact('f1', 'x')] })),
    )
    expectEqual(
      [(await store.readHead(key, 10)).recent.map(contentOf), (await store.readHead(key, 10)).derived],
      [['one'], []],
    )
  },
  'commit › with dropped messages › leaves a gap and never reuses their numbers': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('1'), newMessage('2'), newMessage('3'), newMessage('4')] }))
    await store.commit(newChange('b', { append: [newMessage('5')], drop: ['m2', 'm3'] }))
    const head = await store.readHead(key, 10)
    expectEqual(
      [head.recent.map(contentOf), head.messages, head.lastSequence, head.gaps],
      [['1', '4', '5'], 3, 5, [[2, 3]]],
    )
  },
  'list › with expiredBy › uses the expiry time of the last change': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')], expiresAt: 2_000 }))
    await store.commit(newChange('b', { key: otherSession, append: [newMessage('one')], expiresAt: 3_000 }))
    expectEqual(formatKeys(await store.list({ expiredBy: 1_999, limit: 9 })), [])
    expectEqual(formatKeys(await store.list({ expiredBy: 2_000, limit: 9 })), ['acme:ann'])
    await store.commit(newChange('c', { append: [newMessage('two')], expiresAt: 9_000 }))
    expectEqual(formatKeys(await store.list({ expiredBy: 3_000, limit: 9 })), ['acme:bob'])
  },
  'list › with scope, after and limit › is ordered, filtered and paged': async (store) => {
    for (const session of [otherScope, otherSession, key])
      await store.commit(newChange(`a ${session.scope} ${session.id}`, { key: session, append: [newMessage('one')] }))
    expectEqual(formatKeys(await store.list({ limit: 9 })), ['acme:ann', 'acme:bob', 'zeta:ann'])
    expectEqual(formatKeys(await store.list({ scope: 'acme', limit: 9 })), ['acme:ann', 'acme:bob'])
    expectEqual(formatKeys(await store.list({ after: 'acme:ann', limit: 1 })), ['acme:bob'])
  },
  'head and search › for another session › return nothing of this one': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('secret')], put: [newFact('f1', 'secret')] }))
    await store.commit(newChange('b', { key: otherSession, append: [newMessage('hello')] }))
    const head = await store.readHead(otherSession, 10)
    expectEqual([head.recent.map(contentOf), head.derived], [['hello'], []])
    expectEqual(await store.search(otherSession, { text: 'secret', limit: 5 }), [])
    expectEqual(await store.search(otherScope, { text: 'secret', limit: 5 }), [])
  },
  'commit › with a later sequence number › leaves a gap': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('1')], from: { sequence: 3, offset: 40 } }))
    await store.commit(
      newChange('b', { append: [newMessage('2'), newMessage('3')], from: { sequence: 7, offset: 90 } }),
    )
    await store.commit(newChange('c', { from: { sequence: 12, offset: 120 } }))
    await expectRejection(
      'conflict',
      store.commit(newChange('d', { append: [newMessage('x')], from: { sequence: 8, offset: 0 } })),
    )
    await store.commit(newChange('e', { append: [newMessage('4')] }))
    expectEqual((await store.readMessages(key, { limit: 9 })).map(summarizeMessage), [
      'm3 3 40 1',
      'm7 7 90 2',
      'm8 8 95 3',
      'm12 12 120 4',
    ])
    const { gaps, lastSequence, messages, firstMessage } = await store.readHead(key, 0)
    expectEqual(
      [gaps, lastSequence, messages, firstMessage?.id],
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

/** Erasing sessions and entries, and rejecting late writers. */
export const erasureChecks: ConformanceChecks = {
  'erase › of a session › removes it and rejects late writers': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')], put: [newFact('f1', 'x')] }))
    expectEqual([...(await store.erase(key))].sort(), ['f1', 'm1'])
    expectEqual((await store.readHead(key, 10)).messages, 0)
    await expectRejection('erased', store.commit(newChange('late', { append: [newMessage('late')] })))
    await expectRejection('erased', store.commit(newChange('a', { append: [newMessage('one')] })))
    const { epoch } = await store.readHead(key, 0)
    await store.commit(newChange('new', { epoch, append: [newMessage('new')] }))
    expectEqual((await store.readHead(key, 10)).recent.map(contentOf), ['new'])
  },
  'erase › with expiredBy › removes the session only while it is expired': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')], expiresAt: 2_000 }))
    expectEqual(await store.erase(key, { expiredBy: 1_999 }), [])
    expectEqual([(await store.readHead(key, 0)).messages, (await store.readHead(key, 0)).epoch], [1, 0])
    expectEqual(await store.erase(key, { expiredBy: 2_000 }), ['m1'])
    expectEqual([(await store.readHead(key, 0)).messages, (await store.readHead(key, 0)).epoch], [0, 1])
    expectEqual(await store.erase(key, { expiredBy: 9_000 }), [])
    expectEqual((await store.readHead(key, 0)).epoch, 1)
  },
  'erase › of a message › removes it from pages, head, search and repeated commits': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('keep this'), newMessage('forget the walrus')] }))
    await store.search(key, { text: 'walrus', limit: 5 })
    expectEqual(await store.erase(key, { entries: ['m2', 'm9', 'm2'] }), ['m2'])
    const head = await store.readHead(key, 10)
    expectEqual(
      [head.recent.map(contentOf), head.lastUserMessage?.content, head.gaps],
      [['keep this'], 'keep this', [[2, 2]]],
    )
    expectEqual(await store.search(key, { text: 'walrus', limit: 5 }), [])
    expectEqual(
      (await store.commit(newChange('a', { append: [newMessage('keep this'), newMessage('forget the walrus')] }))).map(
        contentOf,
      ),
      ['keep this'],
    )
    await expectRejection('conflict', store.commit(newChange('b', { base: 1, put: [newFact('f1', 'walrus')] })))
  },
}
