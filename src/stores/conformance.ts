import type { Fact, Message, Said } from '../domain/entry.ts'
import { type ErrorCode, MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import { type Change, never } from '../domain/session.ts'

/** One promise of the `Store` and `Index` ports; `run` throws when the store breaks it. */
export type StorePromise = { readonly name: string; readonly run: () => Promise<void> }

type Open = () => Promise<Store & Index>

/**
 * Everything a store promises, as checks for any test runner. Each check opens a store of its own, empty.
 *
 * @example
 * for (const { name, run } of storeConformance(() => openMyStore())) it(name, run)
 */
export function storeConformance(open: Open): readonly StorePromise[] {
  return Object.entries(promises).map(([name, check]) => ({
    name,
    run: async () => {
      const store = await open()
      try {
        await check(store)
      } finally {
        await store.close()
      }
    },
  }))
}

const key = parseKey('acme:ann')
const other = parseKey('acme:bob')
const foreign = parseKey('zeta:ann')

const said = (content: string, more: Partial<Said> = {}): Said => ({
  at: 1_000,
  role: 'user',
  content,
  tokens: 5,
  lineTokens: 5,
  tokenizer: 'test',
  weight: 5,
  ...more,
})
const change = (id: string, more: Partial<Change> = {}): Change => ({ id, key, at: 1_000, epoch: 0, append: [], put: [], drop: [], expiresAt: never, ...more })
const fact = (id: string, value: string): Fact => ({
  kind: 'fact',
  id,
  at: 1_000,
  field: 'important_facts',
  key: '',
  value,
  importance: 5,
  sources: [{ message: 'm1' }],
})

const promises: Readonly<Record<string, (store: Store & Index) => Promise<void>>> = {
  'a session nobody wrote to has an empty head': async (store) => {
    const head = await store.head(key, 10)
    same([head.revision, head.epoch, head.messages, head.last, head.recent, head.derived, head.first, head.asked], [0, 0, 0, 0, [], [], undefined, undefined])
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
      change('a', { append: [said('one'), said('reply', { role: 'assistant' }), said('two'), said('  ', {}), said('last', { role: 'assistant' })] }),
    )
    const head = await store.head(key, 2)
    same([head.first?.content, head.asked?.content, head.recent.map(content), head.messages, head.last, head.revision], ['one', 'two', ['  ', 'last'], 5, 5, 1])
  },
  'the same change twice is once, with the same answer': async (store) => {
    const once = await store.commit(change('a', { append: [said('one')] }))
    await store.commit(change('b', { append: [said('two')] }))
    const again = await store.commit(change('a', { append: [said('one')] }))
    same(again.map(outline), once.map(outline))
    same([(await store.head(key, 10)).recent.map(content), (await store.head(key, 10)).revision], [['one', 'two'], 2])
  },
  'concurrent appends are all kept, in one order': async (store) => {
    await Promise.all(Array.from({ length: 40 }, (_, at) => store.commit(change(`op${at}`, { append: [said(`${at}`)] }))))
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
    same([await read({ limit: 3 }), await read({ after: 3, limit: 3 }), await read({ before: 5, limit: 9 })], ['123', '456', '1234'])
    same(
      [await read({ limit: 2, newest: true }), await read({ before: 5, limit: 2, newest: true }), await read({ after: 8, before: 3, limit: 5 })],
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
    for (const one of [foreign, other, key]) await store.commit(change(`a ${one.scope} ${one.id}`, { key: one, append: [said('one')] }))
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
  'a forgotten session is gone and late writers are refused': async (store) => {
    await store.commit(change('a', { append: [said('one')], put: [fact('f1', 'x')] }))
    same([...(await store.erase(key))].sort(), ['f1', 'm1'])
    same((await store.head(key, 10)).messages, 0)
    await refused('erased', store.commit(change('late', { append: [said('late')] })))
    await refused('erased', store.commit(change('a', { append: [said('one')] })))
    const { epoch } = await store.head(key, 0)
    await store.commit(change('new', { epoch, append: [said('new')] }))
    same((await store.head(key, 10)).recent.map(content), ['new'])
  },
  'a session is ended only while it is over': async (store) => {
    await store.commit(change('a', { append: [said('one')], expiresAt: 2_000 }))
    same(await store.erase(key, { expiredBy: 1_999 }), [])
    same([(await store.head(key, 0)).messages, (await store.head(key, 0)).epoch], [1, 0])
    same(await store.erase(key, { expiredBy: 2_000 }), ['m1'])
    same([(await store.head(key, 0)).messages, (await store.head(key, 0)).epoch], [0, 1])
    same(await store.erase(key, { expiredBy: 9_000 }), [])
    same((await store.head(key, 0)).epoch, 1)
  },
  'a forgotten message is gone from pages, head, search and repeated answers': async (store) => {
    await store.commit(change('a', { append: [said('keep this'), said('forget the walrus')] }))
    await store.search(key, { text: 'walrus', limit: 5 })
    same(await store.erase(key, { entries: ['m2', 'm9'] }), ['m2'])
    const head = await store.head(key, 10)
    same([head.recent.map(content), head.asked?.content, head.gaps], [['keep this'], 'keep this', [[2, 2]]])
    same(await store.search(key, { text: 'walrus', limit: 5 }), [])
    same((await store.commit(change('a', { append: [said('keep this'), said('forget the walrus')] }))).map(content), ['keep this'])
    await refused('conflict', store.commit(change('b', { base: 1, put: [fact('f1', 'walrus')] })))
  },
  'search finds by word stems, best first, within bounds': async (store) => {
    const lines = ['I adopted a cat called Miso.', 'The weather is mild.', 'Cats like warm places.', 'We talked about trains.']
    await store.commit(change('a', { append: lines.map((line, at) => said(line, { at: at * 10_000_000 })) }))
    const found = async (query: Parameters<Index['search']>[1]) => (await store.search(key, query)).map((hit) => hit.entry.id)
    same((await found({ text: 'what is my cat called?', limit: 1 }))[0], 'm1')
    same(await found({ text: 'cat', before: 3, limit: 5 }), ['m1'])
    same(await found({ text: 'cat', from: 15_000_000, limit: 5 }), ['m3'])
    same(await found({ text: 'cat', kinds: ['fact'], limit: 5 }), [])
  },
}

const content = (message: Message): string => message.content
const outline = (message: Message): string => `${message.id} ${message.sequence} ${message.offset} ${message.content}`
const names = (listed: readonly { key: { scope: string; id: string } }[]): string[] => listed.map((one) => `${one.key.scope}:${one.key.id}`)

function same(actual: unknown, expected: unknown): void {
  const [a, b] = [canonical(actual), canonical(expected)]
  if (a !== b) throw new Error(`expected ${b}\n but got ${a}`)
}

/** Plain data as text that does not depend on the order of fields. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner === undefined
        ? null
        : inner,
  )
}

async function refused(code: ErrorCode, attempt: Promise<unknown>): Promise<void> {
  const outcome = await attempt.then(
    () => 'accepted',
    (error: unknown) => (error instanceof MemoryError ? error.code : String(error)),
  )
  same(outcome, code)
}
