import type { Store } from '../../domain/ports.ts'
import {
  type ConformanceChecks,
  contentOf,
  expectEqual,
  expectRejection,
  key,
  newChange,
  newFact,
  newMessage,
  otherSession,
  summarizeMessage,
} from './fixtures.ts'

const idsOf = (messages: readonly { readonly id: string; readonly externalId?: string }[]): string[] =>
  messages.map(({ id, externalId }) => `${id} ${externalId ?? '-'}`)

/** Runs a change that must be rejected and must not change anything. */
async function expectConflict(store: Store, change: Parameters<Store['commit']>[0]): Promise<void> {
  const before = await store.readHead(key, 9)
  await expectRejection('conflict', store.commit(change))
  expectEqual(await store.readHead(key, 9), before)
}

/** Ids that callers give to messages. */
export const externalIdChecks: ConformanceChecks = {
  'page, head and findMessages › after a commit with external ids › return them': async (store) => {
    const long = `${'x'.repeat(255)}é`
    const committed = await store.commit(
      newChange('a', {
        append: [
          newMessage('one', { externalId: 'msg-1' }),
          newMessage('two'),
          newMessage(' ', { role: 'assistant', externalId: long, packedPayload: '{"a":1}', branch: 2 }),
          newMessage('four', { externalId: 'Msg-1' }),
        ],
      }),
    )
    const expected = ['m1 msg-1', 'm2 -', `m3 ${long}`, 'm4 Msg-1']
    expectEqual(idsOf(committed), expected)
    expectEqual(idsOf(await store.readMessages(key, { limit: 9 })), expected)
    expectEqual(idsOf((await store.readHead(key, 9)).recent), expected)
    expectEqual(await store.findMessages(key, ['Msg-1', 'none', long, 'Msg-1']), [committed[2], committed[3]])
    expectEqual([await store.findMessages(key, []), await store.findMessages(otherSession, ['msg-1'])], [[], []])
    expectEqual('externalId' in (committed[1] as object), false)
  },
  'commit › with an external id that another message has › is rejected and changes nothing': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one', { externalId: 'x' })] }))
    await expectConflict(store, newChange('b', { append: [newMessage('two', { externalId: 'x' })] }))
    await expectConflict(
      store,
      newChange('c', { append: [newMessage('two', { externalId: 'y' }), newMessage('three', { externalId: 'y' })] }),
    )
    await store.commit(newChange('d', { key: otherSession, append: [newMessage('one', { externalId: 'x' })] }))
    expectEqual(idsOf(await store.findMessages(otherSession, ['x'])), ['m1 x'])
  },
  'commit › with an external id of a message that it drops › stores the message': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one', { externalId: 'x' })] }))
    await store.commit(newChange('b', { append: [newMessage('two', { externalId: 'x' })], drop: ['m1'] }))
    expectEqual((await store.findMessages(key, ['x'])).map(summarizeMessage), ['m2 2 5 two'])
    await store.erase(key, { entries: ['m2'] })
    expectEqual(await store.findMessages(key, ['x']), [])
    await store.commit(newChange('c', { append: [newMessage('three', { externalId: 'x' })] }))
    expectEqual(idsOf(await store.findMessages(key, ['x'])), ['m3 x'])
  },
  'commit › with an external id and a repeated change id › stores the message once': async (store) => {
    const change = newChange('a', { append: [newMessage('one', { externalId: 'x' })] })
    expectEqual([await store.commit(change), (await store.readHead(key, 0)).messages], [await store.commit(change), 1])
  },
}

/** Stores three messages, the second one with an external id. */
const storeThree = (store: Store) =>
  store.commit(
    newChange('a', {
      append: [
        newMessage('one walrus'),
        newMessage('two walrus', { externalId: 'x', weight: 7 }),
        newMessage('three', { role: 'assistant' }),
      ],
    }),
  )

/** Messages that take the place of stored ones. */
export const replacementChecks: ConformanceChecks = {
  'commit › with replacements › keeps id, sequence and offset and returns only appended messages': async (store) => {
    await storeThree(store)
    await store.readHead(key, 9)
    const message = newMessage('two seals', { at: 2_000, name: 'Zoë', externalId: 'y', weight: 9, branch: 1 })
    const added = await store.commit(
      newChange('b', { base: 1, replace: [{ id: 'm2', message }], append: [newMessage('four')] }),
    )
    expectEqual(added.map(summarizeMessage), ['m4 4 19 four'])
    const [, second, ...others] = await store.readMessages(key, { limit: 9 })
    expectEqual(second, { ...message, kind: 'message', id: 'm2', sequence: 2, offset: 5 })
    expectEqual(others.map(summarizeMessage), ['m3 3 12 three', 'm4 4 19 four'])
    const head = await store.readHead(key, 9)
    expectEqual(
      [head.recent.map(contentOf), head.messages, head.gaps, head.revision, head.lastUserMessage?.content],
      [['one walrus', 'two seals', 'three', 'four'], 4, [], 2, 'four'],
    )
    expectEqual([idsOf(await store.findMessages(key, ['x', 'y']))], [['m2 y']])
  },
  'head › after replacements › has the new first and last user message': async (store) => {
    await storeThree(store)
    await store.readHead(key, 1)
    const roleOf = async () => {
      const { firstMessage, lastUserMessage } = await store.readHead(key, 1)
      return [firstMessage?.content, lastUserMessage?.content]
    }
    await store.commit(
      newChange('b', { base: 1, replace: [{ id: 'm2', message: newMessage('reply', { role: 'assistant' }) }] }),
    )
    expectEqual(await roleOf(), ['one walrus', 'one walrus'])
    await store.commit(newChange('c', { base: 2, replace: [{ id: 'm1', message: newMessage('  ') }] }))
    expectEqual(await roleOf(), ['  ', undefined])
    await store.commit(newChange('d', { base: 3, replace: [{ id: 'm3', message: newMessage('asked') }] }))
    expectEqual(await roleOf(), ['  ', 'asked'])
  },
  'commit › with a lighter or heavier replacement › never moves the next offset back': async (store) => {
    await storeThree(store)
    await store.commit(newChange('b', { base: 1, replace: [{ id: 'm2', message: newMessage('two', { weight: 1 }) }] }))
    const [light] = await store.commit(newChange('c', { append: [newMessage('four')] }))
    await store.commit(newChange('d', { base: 3, replace: [{ id: 'm4', message: newMessage('4', { weight: 50 }) }] }))
    const [heavy] = await store.commit(newChange('e', { append: [newMessage('five')] }))
    expectEqual([light?.offset, heavy?.offset], [17, 67])
  },
  'commit › with replacements without base, of missing messages or twice › is rejected': async (store) => {
    await storeThree(store)
    const message = newMessage('new')
    await expectConflict(store, newChange('b', { replace: [{ id: 'm1', message }] }))
    await expectConflict(store, newChange('c', { base: 0, replace: [{ id: 'm1', message }] }))
    for (const id of ['m4', 'm0', 'f1', 'x'])
      await expectConflict(
        store,
        newChange(`d ${id}`, {
          base: 1,
          replace: [
            { id: 'm1', message },
            { id, message },
          ],
          put: [newFact('f1', 'x')],
        }),
      )
    const twice = [
      { id: 'm1', message },
      { id: 'm1', message },
    ]
    await expectConflict(store, newChange('e', { base: 1, replace: twice }))
    await expectConflict(
      store,
      newChange('f', { key: otherSession, base: 0, replace: [{ id: 'm1', message }], append: [message] }),
    )
    expectEqual((await store.readHead(otherSession, 0)).revision, 0)
  },
  'commit › with replacements that exchange external ids › applies them; a taken id is rejected': async (store) => {
    await storeThree(store)
    const replacement = (id: string, externalId: string) => ({ id, message: newMessage(`now ${id}`, { externalId }) })
    await expectConflict(store, newChange('b', { base: 1, replace: [replacement('m1', 'x')] }))
    await store.commit(newChange('c', { base: 1, replace: [replacement('m1', 'y')] }))
    await store.commit(newChange('d', { base: 2, replace: [replacement('m1', 'x'), replacement('m2', 'y')] }))
    expectEqual(idsOf(await store.findMessages(key, ['x', 'y'])), ['m1 x', 'm2 y'])
  },
  'commit › with replacements and a repeated change id › applies them once': async (store) => {
    await storeThree(store)
    const change = newChange('b', { base: 1, replace: [{ id: 'm1', message: newMessage('new') }] })
    expectEqual([await store.commit(change), await store.commit(change)], [[], []])
    expectEqual((await store.readHead(key, 0)).revision, 2)
  },
  'search and vectors › after replacements › have nothing of the old text': async (store) => {
    await storeThree(store)
    const found = async () =>
      (await store.search(key, { text: 'walrus', limit: 9 }))
        .filter(({ entry }) => entry.kind === 'message' && entry.content.includes('walrus'))
        .map(({ entry }) => entry.id)
        .sort()
    expectEqual(await found(), ['m1', 'm2'])
    const vector = (id: string, text: string) => ({ key, id, epoch: 0, text, values: Float32Array.of(1, 0) })
    await store.storeVectors('e', [vector('m1', 'one walrus'), vector('m2', 'two walrus')])
    const scope = { scope: key.scope }
    const before = await store.changesSince(scope, 0)
    await store.commit(newChange('b', { base: 1, replace: [{ id: 'm2', message: newMessage('two seals') }] }))
    expectEqual(await found(), ['m1'])
    expectEqual((await store.countVectors('e')).done, 1)
    expectEqual((await store.changesSince(scope, 0)).lineage === before.lineage, false)
    expectEqual(
      (await store.search(key, { text: 'seals', limit: 1 })).map(({ entry }) => entry.id),
      ['m2'],
    )
  },
  'commit › with a dropped suffix and new messages › replaces the suffix on the given revision': async (store) => {
    await storeThree(store)
    const suffix = { append: [newMessage('2', { externalId: 'x' }), newMessage('3')], drop: ['m2', 'm3'] }
    await expectConflict(store, newChange('b', { base: 0, ...suffix }))
    const added = await store.commit(newChange('c', { base: 1, ...suffix }))
    expectEqual(added.map(summarizeMessage), ['m4 4 17 2', 'm5 5 22 3'])
    expectEqual((await store.readHead(key, 9)).recent.map(contentOf), ['one walrus', '2', '3'])
  },
}
