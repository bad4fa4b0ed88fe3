import { afterAll, describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { openMemory } from '../../../src/index.ts'
import { newChange, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres.ts'
import { getPostgres } from '../../support/postgres.ts'
import { startProxy } from '../../support/postgresProxy.ts'

const server = await getPostgres()
const proxy = await startProxy(server.port)
const url = Object.assign(new URL(await server.createDatabase()), { port: String(proxy.port) }).href
const stores: PostgresStore[] = []
afterAll(async () => {
  for (const store of stores) await store.close()
  await proxy.close()
})
const open = async (): Promise<PostgresStore> => {
  const store = await postgresStore(url)
  stores.push(store)
  return store
}
const count = async (work: () => Promise<unknown>): Promise<number> => {
  proxy.reset()
  await work()
  return proxy.roundTrips
}
const key = parseKey('acme:ann')

describe('round trips › of a store operation', () => {
  it('are one each', async () => {
    const store = await open()
    const commit = (id: string) => store.commit(newChange(id, { append: [newMessage('a walrus')] }))
    const row = { namespace: ['a'], key: 'k' }
    const trips = {
      commit: await count(() => commit('1')),
      commitWithoutId: await count(async () => {
        const { id: _, ...change } = newChange('', { append: [newMessage('another walrus')] })
        await store.commit(change)
      }),
      repeatedCommit: await count(() => commit('1')),
      readHead: await count(() => store.readHead(key, 48)),
      unchangedHead: await count(() => store.readHead(key, 48)),
      threeHeads: await count(() =>
        Promise.all(['acme:ann', 'acme', 'acme:bob'].map((text) => store.readHead(parseKey(text), 48))),
      ),
      readMessages: await count(() => store.readMessages(key, { limit: 100 })),
      appendRecord: await count(() => store.appendRecord(key, { id: 'r', at: 1, body: '{}' }, 10)),
      records: await count(() => store.records(key, { limit: 10 })),
      list: await count(() => store.list({ limit: 10 })),
      writeRows: await count(() => store.table.writeRows('acme', 1, [{ ...row, value: 1 }])),
      readRows: await count(() => store.table.readRows('acme', [row])),
      listRows: await count(() => store.table.listRows('acme', { prefix: [], limit: 10 })),
      eraseEntries: await count(() => store.erase(key, { entries: ['m1'] })),
      erase: await count(() => store.erase(key)),
    }
    expect(trips).toEqual(Object.fromEntries(Object.keys(trips).map((name) => [name, 1])))
  })
})

describe('round trips › of reads that name a revision', () => {
  it('are none once the session was read, and see the writes of this process', async () => {
    const [store, other] = [await open(), await open()]
    const target = parseKey('acme:revised')
    const append = (from: PostgresStore, id: string, change = {}) =>
      from.commit(newChange(id, { key: target, append: [newMessage(id)], ...change }))
    await append(store, '1')
    const head = await store.readHead(target, 10)
    await append(other, '2')
    const contents = async () => (await store.readHead(target, 10, head.revision)).recent.map(({ content }) => content)
    expect(await count(async () => expect(await contents()).toEqual(['1']))).toBe(0)
    const page = { limit: 5, revision: head.revision }
    expect(await count(() => store.readMessages(target, page))).toBe(0)
    await append(store, '3')
    expect(await count(async () => expect(await contents()).toEqual(['1', '2', '3']))).toBe(1)
    await append(store, '4', { drop: ['m1'] })
    expect(await count(async () => expect(await contents()).toEqual(['2', '3', '4']))).toBe(1)
    expect(await count(contents)).toBe(0)
    await store.erase(target)
    expect(await contents()).toEqual([])
  })
})

describe('the cache of heads', () => {
  const long = (content: string) => newMessage(content.padEnd(500, '.'))

  it('behind by two messages › receives only these', async () => {
    const [store, other] = [await open(), await open()]
    const target = parseKey('acme:behind')
    const append = (from: PostgresStore, ...contents: readonly string[]) =>
      from.commit(newChange(contents.join(), { key: target, append: contents.map(long) }))
    await append(store, ...Array.from({ length: 100 }, (_, at) => `before ${at}`))
    await other.readHead(target, 48)
    await append(store, 'question')
    await append(store, 'reply')
    expect(await count(() => other.readHead(target, 48))).toBe(1)
    expect(proxy.receivedBytes).toBeGreaterThan(2 * 500)
    expect(proxy.receivedBytes).toBeLessThan(3 * 500)
    const { recent } = await other.readHead(target, 100, 0)
    expect(recent.map(({ content }) => content)).toEqual(
      (await store.readMessages(target, { limit: 100, newest: true })).map(({ content }) => content),
    )
  })

  it('of a session that this process begins › needs no read', async () => {
    const store = await open()
    const target = parseKey('acme:begun')
    await store.commit(newChange('1', { key: target, append: [newMessage('hello')] }))
    const read = async () => expect((await store.readHead(target, 48, 0)).recent[0]?.content).toBe('hello')
    expect(await count(read)).toBe(0)
  })

  it('keeps what it reads while a read finds no session', async () => {
    const [store, other] = [await open(), await open()]
    const target = parseKey('acme:kept')
    await store.commit(newChange('1', { key: target, append: [newMessage('hello')] }))
    await Promise.all([other.readHead(parseKey('acme:unknown'), 0), other.readHead(target, 48)])
    expect(await count(() => other.readHead(target, 48, 0))).toBe(0)
  })
})

describe('round trips › of a turn', () => {
  const question = { role: 'user' as const, content: 'What did we say about the walrus on ice number 3?' }
  const history = Array.from({ length: 200 }, (_, at) => ({
    role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: `Message ${at} about the walrus on ice number ${at % 9}, and more words to fill the budget of the context.`,
  }))

  let sessions = 0
  // A transaction of another test file on the same server makes stores read changes again.
  const options = { retry: 3 }
  for (const profile of ['thread', 'agent', 'summary'] as const)
    it(
      `with profile ${profile} › are two at most for reading, also in a process that has not seen the session`,
      options,
      async () => {
        const session = `acme:${profile}${sessions++}`
        const first = await openMemory({ store: await open(), profile, upkeep: false })
        await first.append(session, history)
        await first.append(session, [question])
        const second = await openMemory({ store: await open(), profile, upkeep: false })
        const context = (memory: typeof first) => count(() => memory.context(session, { budget: 2_000 }))
        const trips = { cold: await context(second), again: await context(second), inOther: await context(first) }
        await first.append(session, [question])
        const after = { inWriter: await context(first), inReader: await context(second) }
        for (const [name, number] of Object.entries({ ...trips, ...after }))
          expect(`${name} ${number <= 2 ? 'at most 2' : number}`).toBe(`${name} at most 2`)
        // Appending reads the head of the session and commits.
        expect(await count(() => first.append(session, [question]))).toBe(2)
      },
    )
})
