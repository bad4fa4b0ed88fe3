import type { Json } from '../../domain/entry.ts'
import type { Store, TableKey, TableRow, TableWrite } from '../../domain/ports.ts'
import {
  type ConformanceChecks,
  expectEqual,
  expectRejection,
  key,
  newChange,
  newMessage,
  readSettledChanges,
} from './fixtures.ts'

const row = (namespace: readonly string[], name = 'k'): TableKey => ({ namespace, key: name })
const write = (
  namespace: readonly string[],
  name: string,
  value: TableWrite['value'],
  expected?: number,
): TableWrite => ({ ...row(namespace, name), value, ...(expected !== undefined && { expected }) })

const nameOf = ({ namespace, key: name }: TableKey): string => JSON.stringify([...namespace, name])
const list = async (store: Store, prefix: readonly string[], after?: TableKey, limit = 99): Promise<string[]> =>
  (await store.table.listRows('acme', { prefix, limit, ...(after && { after }) })).map(nameOf)

/** Reads values; bytes are shown as a list of numbers in an object. */
async function readValues(store: Store, keys: readonly TableKey[]): Promise<unknown[]> {
  const rows = await store.table.readRows('acme', keys)
  return rows.map((found) => (found?.value instanceof Uint8Array ? { bytes: [...found.value] } : found?.value))
}

const describeRow = (found: TableRow | undefined): string =>
  found === undefined
    ? 'none'
    : `${found.createdAt} ${found.updatedAt} ${found.revision} ${JSON.stringify(found.value)}`

/** Names in order: by parts of the namespace, then by key, each by UTF-16 code units. */
const orderedNames: readonly TableKey[] = [
  row([], '\u0000'),
  row([], 'a'),
  row([], '\uffff'),
  row(['A'], 'z'),
  row(['a'], '\u0000a'),
  row(['a'], 'B'),
  row(['a'], 'b'),
  row(['a'], '\u{1F469}'),
  row(['a'], '\ufb01'),
  row(['a', '\u0001'], 'k'),
  row(['a', 'a'], 'k'),
  row(['a', 'a', 'a'], 'a'),
  row(['a', 'b'], 'a'),
  row(['a!'], 'k'),
  row(['aa'], 'k'),
  row(['\ud800'], 'k'),
  row(['\ud801'], 'k'),
  row(['\u{1F469}'], 'k'),
  row(['\ufb01'], 'k'),
  row(['\uffff', '\uffff'], '\uffff'),
]

/** Rows beside sessions. */
export const tableChecks: ConformanceChecks = {
  'table › after writes › returns JSON and bytes exactly': async (store) => {
    const values: readonly (Json | Uint8Array)[] = [
      null,
      true,
      -1.5e-7,
      'text \u0000 \ud800 \u{1F469} "quoted"',
      [1, [], {}, null],
      JSON.parse('{"b":1,"a":{"__proto__":2,"":[]},"2":0,"1":0}') as Json,
      new Uint8Array(),
      Uint8Array.from({ length: 256 }, (_, at) => at),
      Buffer.from('{"not":"JSON"}'),
    ]
    const keys = values.map((_, at) => row(['values'], `${at}`))
    await store.table.writeRows(
      'acme',
      1_000,
      keys.map((name, at) => ({ ...name, value: values[at] as Json })),
    )
    const rows = await store.table.readRows('acme', keys)
    expectEqual(
      rows.map((found) => (found?.value instanceof Uint8Array ? [...found.value] : JSON.stringify(found?.value))),
      values.map((value) => (value instanceof Uint8Array ? [...value] : JSON.stringify(value))),
    )
    expectEqual(await store.table.listRows('acme', { prefix: [], limit: 99 }), rows)
  },
  'table › with a value of 16 MB › returns it': async (store) => {
    const bytes = new Uint8Array(16_000_000).fill(7)
    bytes[15_999_999] = 9
    await store.table.writeRows('acme', 1_000, [write([], 'bytes', bytes)])
    const [found] = await store.table.readRows('acme', [row([], 'bytes')])
    const value = found?.value as Uint8Array
    expectEqual([value.length, value[0], value[15_999_999]], [16_000_000, 7, 9])
  },
  'table › with a changed object or buffer › still holds the written value': async (store) => {
    const [object, bytes] = [{ a: 1 }, Uint8Array.of(1)]
    await store.table.writeRows('acme', 1_000, [write([], 'o', object), write([], 'b', bytes)])
    object.a = 2
    bytes[0] = 2
    const [first] = await store.table.readRows('acme', [row([], 'o')])
    Object.assign(first?.value as object, { a: 3 })
    expectEqual(await readValues(store, [row([], 'o'), row([], 'b')]), [{ a: 1 }, { bytes: [1] }])
  },
  'table › after several writes › has the times and the revision of each row': async (store) => {
    const read = async () => (await store.table.readRows('acme', [row(['n'], 'a'), row(['n'], 'b')])).map(describeRow)
    await store.table.writeRows('acme', 1_000, [write(['n'], 'a', 1), write(['n'], 'b', 1)])
    await store.table.writeRows('acme', 2_000.5, [write(['n'], 'a', 2)])
    expectEqual(await read(), ['1000 2000.5 2 2', '1000 1000 1 1'])
    await store.table.writeRows('acme', 3_000, [
      write(['n'], 'a', undefined),
      { ...write(['n'], 'b', 3), createdAt: 500 },
      write(['n'], 'none', undefined),
    ])
    expectEqual(await read(), ['none', '500 3000 2 3'])
    await store.table.writeRows('acme', 4_000, [write(['n'], 'a', 4)])
    expectEqual(await read(), ['4000 4000 1 4', '500 3000 2 3'])
  },
  'table › with an unexpected revision › rejects all writes': async (store) => {
    const keys = [row([], 'a'), row([], 'b'), row([], 'c')]
    await store.table.writeRows('acme', 1_000, [write([], 'a', 1, 0), write([], 'b', 1)])
    for (const writes of [
      [write([], 'c', 2), write([], 'a', 2, 0)],
      [write([], 'b', undefined), write([], 'a', 2, 2)],
      [write([], 'a', undefined, 3), write([], 'b', 2)],
      [write([], 'a', 2), write([], 'c', 2, 1)],
    ])
      await expectRejection('conflict', store.table.writeRows('acme', 2_000, writes))
    expectEqual(await readValues(store, keys), [1, 1, undefined])
    await store.table.writeRows('acme', 2_000, [
      write([], 'a', 2, 1),
      write([], 'b', undefined, 1),
      write([], 'c', 2, 0),
    ])
    expectEqual(await readValues(store, keys), [2, undefined, 2])
  },
  'table › with concurrent writes on one revision › accepts one': async (store) => {
    await store.table.writeRows('acme', 1_000, [write([], 'a', 0)])
    const outcomes = await Promise.allSettled(
      Array.from({ length: 9 }, (_, at) => store.table.writeRows('acme', 2_000, [write([], 'a', at, 1)])),
    )
    expectEqual(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  },
  'table › with names of any characters › lists rows by namespace, then key': async (store) => {
    await store.table.writeRows(
      'acme',
      1_000,
      [...orderedNames].reverse().map((name) => ({ ...name, value: nameOf(name) })),
    )
    expectEqual(await list(store, []), orderedNames.map(nameOf))
    expectEqual(await readValues(store, orderedNames), orderedNames.map(nameOf))
    const paged: string[] = []
    for (let after: TableKey | undefined; ; ) {
      const page = await store.table.listRows('acme', { prefix: [], limit: 3, ...(after && { after }) })
      paged.push(...page.map(nameOf))
      if (page.length < 3) break
      after = page.at(-1)
    }
    expectEqual(paged, orderedNames.map(nameOf))
  },
  'table › with a prefix › lists the rows of that namespace and its extensions': async (store) => {
    await store.table.writeRows(
      'acme',
      1_000,
      orderedNames.map((name) => ({ ...name, value: 1 })),
    )
    const under = (prefix: readonly string[]) =>
      orderedNames.filter(({ namespace }) => prefix.every((part, at) => namespace[at] === part)).map(nameOf)
    for (const prefix of [['a'], ['a', 'a'], ['a', 'a', 'a'], ['\ud800'], ['\uffff'], ['b'], ['a', '\u0001']])
      expectEqual(await list(store, prefix), under(prefix))
    expectEqual(await list(store, ['a'], row(['a'], '\ufb01'), 2), under(['a']).slice(5, 7))
    expectEqual(await list(store, ['a'], row([], 'a')), under(['a']))
    expectEqual(await list(store, ['a'], row(['a!'])), [])
    expectEqual(await list(store, ['a'], row(['a', 'a'], 'none')), under(['a']).slice(7))
    expectEqual(await list(store, [], undefined, 0), [])
  },
  'table › with invalid names, unknown fields or a repeated row › rejects them': async (store) => {
    const invalid: readonly TableKey[] = [
      row([''], 'k'),
      row(['a\u0000'], 'k'),
      row(['x'.repeat(257)], 'k'),
      row(Array.from({ length: 17 }, () => 'x')),
      row([], ''),
      row([], 'x'.repeat(513)),
    ]
    for (const name of invalid) {
      await expectRejection('bad-option', store.table.writeRows('acme', 1_000, [{ ...name, value: 1 }]))
      await expectRejection('bad-option', store.table.readRows('acme', [name]))
    }
    await expectRejection('bad-option', store.table.listRows('acme', { prefix: [''], limit: 9 }))
    await expectRejection('bad-option', store.table.writeRows('acme', 1, [write([], 'a', 1), write([], 'a', 2)]))
    const misspelt = { ...write([], 'a', 1), expcted: 0 }
    await expectRejection('bad-option', store.table.writeRows('acme', 1, [misspelt]))
    let deep: Json = 1
    for (let depth = 0; depth < 5_000; depth++) deep = [deep]
    for (const value of [deep, (() => undefined) as unknown as Json])
      await expectRejection('bad-option', store.table.writeRows('acme', 1, [write([], 'a', value)]))
    const longest = row(
      Array.from({ length: 16 }, () => 'x'.repeat(256)),
      'y'.repeat(512),
    )
    await store.table.writeRows('acme', 1_000, [{ ...longest, value: 1 }])
    expectEqual(await list(store, []), [nameOf(longest)])
  },
  'table › of another scope › has no row of this one': async (store) => {
    await store.table.writeRows('acme', 1_000, [write(['n'], 'k', 'acme')])
    await store.table.writeRows('zeta', 1_000, [write(['n'], 'k', 'zeta', 0)])
    expectEqual(await readValues(store, [row(['n'])]), ['acme'])
    expectEqual(await store.table.readRows('acm', [row(['n'])]), [undefined])
    expectEqual(await store.table.listRows('acme2', { prefix: [], limit: 9 }), [])
    expectEqual(
      (await store.table.listRows('zeta', { prefix: [], limit: 9 })).map(({ value }) => value),
      ['zeta'],
    )
  },
  'table › with rows of several scopes › lists the scopes that have rows': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    for (const scope of ['zeta', 'a.b', 'B', 'beta'])
      await store.table.writeRows(scope, 1_000, [write([], 'a', 1), write(['n'], 'b', 1)])
    await store.table.writeRows('beta', 1_000, [write([], 'a', undefined), write(['n'], 'b', undefined)])
    expectEqual(await store.table.listScopes('', 9), ['B', 'a.b', 'zeta'])
    expectEqual([await store.table.listScopes('B', 1), await store.table.listScopes('zeta', 9)], [['a.b'], []])
  },
  'table › after eraseRows › is empty for this scope only': async (store) => {
    await store.table.writeRows('acme', 1_000, [write(['n'], 'a', 1), write([], 'b', Uint8Array.of(1))])
    await store.table.writeRows('zeta', 1_000, [write(['n'], 'a', 1)])
    expectEqual([await store.table.eraseRows('acme'), await store.table.eraseRows('acme')], [2, 0])
    expectEqual([await list(store, []), await readValues(store, [row(['n'], 'a')])], [[], [undefined]])
    expectEqual((await store.table.listRows('zeta', { prefix: [], limit: 9 })).length, 1)
    await store.table.writeRows('acme', 2_000, [write(['n'], 'a', 2, 0)])
    expectEqual((await store.table.readRows('acme', [row(['n'], 'a')])).map(describeRow), ['2000 2000 1 2'])
  },
  'table › beside sessions › neither appears in them nor goes with them': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    const before = await readSettledChanges(store, 0)
    await store.table.writeRows('acme', 1_000, [write(['n'], 'walrus', 'walrus')])
    await store.table.writeRows('zeta', 1_000, [write(['n'], 'walrus', 'walrus')])
    expectEqual(
      (await store.list({ limit: 9 })).map((item) => item.key),
      [key],
    )
    expectEqual(await store.search({ scope: 'acme' }, { text: 'walrus', limit: 9 }), [])
    expectEqual((await store.changesSince({ scope: 'acme' }, before.stamp)).sessions, [])
    await store.erase(key)
    expectEqual(await list(store, []), [nameOf(row(['n'], 'walrus'))])
  },
}
