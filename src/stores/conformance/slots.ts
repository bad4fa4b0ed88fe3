import { isBlank, type NewMessage } from '../../domain/entry.ts'
import type { SearchIndex, SearchTarget, Store } from '../../domain/ports.ts'
import {
  type ConformanceChecks,
  contentOf,
  expectEqual,
  expectRejection,
  key,
  newChange,
  newFact,
  newMessage,
  summarizeMessage,
} from './fixtures.ts'

const packedPayload = JSON.stringify({
  protocol: 'messages',
  count: 2,
  items: [{ thinking: 'the walrus naps', signature: 'ab+/=', text: '\ud800 \u0000 "Zoë"' }, null, 1.5],
})

/** Original payloads and branches of messages. */
export const payloadChecks: ConformanceChecks = {
  'page, head and search › after a commit with payloads and branches › return them unchanged': async (store) => {
    const inputs = [
      newMessage('I like apples', { packedPayload }),
      newMessage('', { role: 'assistant', packedPayload, branch: 1 }),
      newMessage('and pears', { packedPayload, branch: 3 }),
      newMessage('plain', { role: 'assistant' }),
    ]
    const committed = await store.commit(newChange('a', { append: inputs }))
    const expected = inputs.map((input, index) => ({
      ...input,
      kind: 'message',
      id: `m${index + 1}`,
      sequence: index + 1,
      offset: 5 * index,
    }))
    expectEqual(committed, expected)
    expectEqual(await store.readMessages(key, { limit: 9 }), expected)
    const head = await store.readHead(key, 3)
    expectEqual([head.firstMessage, head.lastUserMessage, head.recent], [expected[0], expected[2], expected.slice(1)])
    expectEqual(
      (await store.search(key, { text: 'pears', limit: 1 })).map(({ entry }) => entry),
      [expected[2]],
    )
    const [last] = (await store.readMessages(key, { after: 3, limit: 1 })) as readonly object[]
    expectEqual(
      Object.keys(last ?? {}).filter((name) => name === 'branch' || name === 'packedPayload'),
      [],
    )
  },
  'search › for words of a payload › finds nothing': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('I like apples', { packedPayload })] }))
    expectEqual(await store.search(key, { text: 'walrus naps', limit: 5 }), [])
  },
}

/** Reads the parts of a session that depend on the order of its messages. */
async function describeSession(store: Store) {
  const { messages, lastSequence, gaps, firstMessage, lastUserMessage, recent } = await store.readHead(key, 3)
  return {
    messages,
    lastSequence,
    gaps,
    first: firstMessage?.content,
    lastUser: lastUserMessage?.content,
    recent: recent.map(contentOf),
    all: (await store.readMessages(key, { limit: 99 })).map(contentOf),
  }
}

/** Stores messages 1 and 4 and leaves 2 and 3 unused. */
async function reserveTwo(store: Store): Promise<void> {
  await store.commit(newChange('a', { append: [newMessage('one walrus', { weight: 3 })] }))
  await store.commit(newChange('b', { append: [newMessage('four')], from: { sequence: 4 } }))
}

/** Messages that are stored later under reserved sequence numbers. */
export const slotChecks: ConformanceChecks = {
  'commit › into reserved slots › stores the messages in sequence order': async (store) => {
    await reserveTwo(store)
    await store.readHead(key, 9)
    const third = newMessage('three', { role: 'assistant', weight: 7 })
    const filled = await store.commit(newChange('c', { append: [third], from: { sequence: 3 } }))
    expectEqual(filled.map(summarizeMessage), ['m3 3 3 three'])
    expectEqual((await store.readHead(key, 0)).gaps, [[2, 2]])
    await store.commit(newChange('d', { append: [newMessage('two')], from: { sequence: 2 } }))
    expectEqual(await describeSession(store), {
      messages: 4,
      lastSequence: 4,
      gaps: [],
      first: 'one walrus',
      lastUser: 'four',
      recent: ['two', 'three', 'four'],
      all: ['one walrus', 'two', 'three', 'four'],
    })
    const [next] = await store.commit(newChange('e', { append: [newMessage('five')] }))
    // All weights count, also those of the messages that were stored later.
    expectEqual(next && summarizeMessage(next), 'm5 5 20 five')
  },
  'commit › with a user message into a slot after the last user message › makes it the last one': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    const reply = newMessage('three', { role: 'assistant' })
    await store.commit(newChange('b', { append: [reply], from: { sequence: 3 } }))
    await store.commit(newChange('c', { append: [newMessage('two')], from: { sequence: 2 } }))
    expectEqual((await store.readHead(key, 0)).lastUserMessage?.content, 'two')
  },
  'commit › into a slot with a repeated change id › stores the message once': async (store) => {
    await reserveTwo(store)
    const change = newChange('c', { append: [newMessage('two')], from: { sequence: 2 } })
    const once = await store.commit(change)
    expectEqual(await store.commit(change), once)
    expectEqual((await store.readHead(key, 0)).messages, 3)
  },
  'commit › into a taken slot, with several messages or none › is rejected and changes nothing': async (store) => {
    await reserveTwo(store)
    const before = await store.readHead(key, 9)
    const two = [newMessage('x'), newMessage('y')]
    for (const [sequence, append] of [
      [1, two.slice(1)],
      [4, two.slice(1)],
      [2, two],
      [2, []],
      [0, two.slice(1)],
    ] as const)
      await expectRejection(
        'conflict',
        store.commit(newChange(`c ${sequence} ${append.length}`, { append, from: { sequence } })),
      )
    expectEqual(await store.readHead(key, 9), before)
  },
  'commit › into a slot with other changes › applies all of them': async (store) => {
    await reserveTwo(store)
    await store.commit(
      newChange('c', { append: [newMessage('two')], from: { sequence: 2 }, put: [newFact('f1', 'x')], drop: ['m1'] }),
    )
    const { derived, gaps, firstMessage, messages } = await store.readHead(key, 0)
    expectEqual(
      [derived.map(({ id }) => id), gaps, firstMessage?.content, messages],
      [
        ['f1'],
        [
          [1, 1],
          [3, 3],
        ],
        'two',
        2,
      ],
    )
  },
  'search › after a slot was filled › finds the message at its place': async (store) => {
    await reserveTwo(store)
    // Search also returns neighbours of a hit, which need not contain the word.
    const found = async (where: SearchTarget, before = 99) =>
      (await store.search(where, { text: 'walrus', limit: 5, before }))
        .map(({ entry }) => entry.id)
        .filter((id) => id !== 'm4')
        .sort()
    expectEqual(await found(key), ['m1'])
    expectEqual(await found({ scope: key.scope }), ['m1'])
    await store.commit(newChange('c', { append: [newMessage('three walruses')], from: { sequence: 3 } }))
    expectEqual([await found(key), await found(key, 3), await found(key, 4)], [['m1', 'm3'], ['m1'], ['m1', 'm3']])
    expectEqual(await found({ scope: key.scope }), ['m1', 'm3'])
    expectEqual((await store.listUnembedded('e', '', 9)).entries.map(({ id }) => id).sort(), ['m1', 'm3', 'm4'])
  },
  'commit › into a slot between messages that overlap › never starts after its successor': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('2'), newMessage('3')], from: { sequence: 2 } }))
    await store.commit(newChange('b', { append: [newMessage('1', { weight: 9 })], from: { sequence: 1 } }))
    await store.commit(newChange('c', { drop: ['m2'] }))
    const [filled] = await store.commit(newChange('d', { append: [newMessage('two')], from: { sequence: 2 } }))
    expectEqual(filled && summarizeMessage(filled), 'm2 2 5 two')
    expectEqual(
      (await store.readMessages(key, { limit: 9 })).map(({ offset }) => offset),
      [0, 5, 5],
    )
  },
  'commit › into a slot after which no message exists › is an append and keeps the lineage': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one walrus')] }))
    // Reserves 2, 3 and 4.
    await store.commit(newChange('b', { from: { sequence: 5 } }))
    const lineages = async () => [
      (await store.changesSince(key, 0)).lineage,
      (await store.changesSince({ scope: key.scope }, 0)).lineage,
    ]
    const found = async () =>
      (await store.search(key, { text: 'walrus', limit: 5 })).map(({ entry }) => entry.id).sort()
    const fill = (sequence: number) =>
      store.commit(newChange(`c ${sequence}`, { append: [newMessage(`walrus ${sequence}`)], from: { sequence } }))
    const before = await lineages()
    expectEqual([await found(), (await store.readHead(key, 9)).recent.map(contentOf)], [['m1'], ['one walrus']])
    for (const sequence of [2, 4]) await fill(sequence)
    expectEqual([await lineages(), await found()], [before, ['m1', 'm2', 'm4']])
    expectEqual((await describeSession(store)).all, ['one walrus', 'walrus 2', 'walrus 4'])
    expectEqual((await describeSession(store)).recent, ['one walrus', 'walrus 2', 'walrus 4'])
    await fill(3)
    const after = await lineages()
    expectEqual(
      [after[0] === before[0], after[1] === before[1], await found()],
      [false, false, ['m1', 'm2', 'm3', 'm4']],
    )
    expectEqual((await describeSession(store)).all, ['one walrus', 'walrus 2', 'walrus 3', 'walrus 4'])
  },
  'commit › with random appends, reservations, fills and drops › matches a simple model': async (store) => {
    for (let seed = 1; seed <= 12; seed++) {
      await compareWithModel(store, seed)
      await store.erase(key)
    }
  },
}

/** Runs random changes of a session and compares what the store returns with a map of messages by sequence number. */
async function compareWithModel(store: Store & SearchIndex, seed: number): Promise<void> {
  let state = seed
  const random = (end: number): number => {
    state = (state * 48_271) % 2_147_483_647
    return state % end
  }
  const { epoch } = await store.readHead(key, 0)
  const model = new Map<number, NewMessage>()
  let last = 0
  for (let step = 1; step <= 25; step++) {
    const message = newMessage(random(6) === 0 ? ' ' : `walrus ${step}`, {
      role: random(2) === 0 ? 'user' : 'assistant',
      weight: random(9),
    })
    const unused = Array.from({ length: last }, (_, index) => index + 1).filter((sequence) => !model.has(sequence))
    const isFill = unused.length > 0 && random(2) === 0
    const sequence = isFill ? (unused[random(unused.length)] as number) : last + 1 + random(4)
    const dropped = 1 + random(40)
    await store.commit(
      newChange(`${seed} ${step}`, { epoch, append: [message], from: { sequence }, drop: [`m${dropped}`] }),
    )
    model.set(sequence, message)
    last = Math.max(last, sequence)
    model.delete(dropped)
    await expectModel(store, model, last, random(last + 1))
  }
}

async function expectModel(
  store: Store & SearchIndex,
  model: ReadonlyMap<number, NewMessage>,
  last: number,
  after: number,
): Promise<void> {
  const ordered = [...model].sort(([left], [right]) => left - right)
  const ids = ordered.map(([sequence]) => `m${sequence}`)
  const head = await store.readHead(key, 4)
  const users = ordered.filter(([, { role, content }]) => role === 'user' && !isBlank(content))
  const inGaps = head.gaps.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, index) => from + index))
  const unused = Array.from({ length: last }, (_, index) => index + 1).filter((sequence) => !model.has(sequence))
  expectEqual(
    [head.messages, head.lastSequence, inGaps, head.firstMessage?.id, head.recent.map(({ id }) => id)],
    [ids.length, last, unused, ids[0], ids.slice(-4)],
  )
  expectEqual(head.lastUserMessage?.sequence, users.at(-1)?.[0])
  const pageIds = async (range: Parameters<Store['readMessages']>[1]) =>
    (await store.readMessages(key, range)).map(({ id }) => id)
  expectEqual(await pageIds({ limit: 99 }), ids)
  const window = ordered.filter(([sequence]) => sequence > after && sequence < after + 9).map(([at]) => `m${at}`)
  expectEqual(await pageIds({ after, before: after + 9, limit: 3 }), window.slice(0, 3))
  expectEqual(await pageIds({ after, before: after + 9, limit: 3, newest: true }), window.slice(-3))
  const found = await store.search(key, { text: 'walrus', before: after + 1, limit: 99 })
  const expected = ordered.filter(([at, { content }]) => at <= after && !isBlank(content)).map(([at]) => `m${at}`)
  expectEqual(found.map(({ entry }) => entry.id).sort(), expected.sort())
}
