import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { formatKey, parseKey } from '../../../src/domain/key.ts'
import { newChange, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres.ts'
import { verifies } from '../../requirements/verifies.ts'
import { type CutPoint, type PostgresProxy, startProxy } from '../../support/postgresProxy.ts'
import { type PostgresServer, startPostgres } from '../../support/postgresServer.ts'

let server: PostgresServer & { remove(): Promise<void> }
let proxy: PostgresProxy
let url: string
beforeAll(async () => {
  server = await startPostgres()
  proxy = await startProxy(server.port)
  url = Object.assign(new URL(await server.createDatabase()), { port: String(proxy.port) }).href
  await (await postgresStore(url)).close()
})
afterAll(async () => {
  await proxy.close()
  await server.remove()
})

/** Commits without ids of their own, records and a head, as in a turn. */
async function runOperations(store: PostgresStore, name: string): Promise<readonly string[]> {
  const key = parseKey(`acme:${name}`)
  const acknowledged: string[] = []
  for (let at = 0; at < 4; at++) {
    const { epoch } = await store.readHead(key, 10)
    const { id: _, ...change } = newChange('', { key, epoch, append: [newMessage(`message ${at}`)] })
    const [message] = await store.commit(change)
    await store.appendRecord(key, { id: `r${at}`, at, body: '{}' }, 100)
    acknowledged.push(`${message?.id} ${message?.content}`)
  }
  return acknowledged
}

describe('connection › cut at any statement', () => {
  for (const point of ['request', 'answer'] as const satisfies readonly CutPoint[])
    verifies(
      'X-07',
      `${point === 'request' ? 'before it arrives' : 'before its answer'} › loses and repeats nothing`,
      async () => {
        const store = await postgresStore(url)
        for (let statement = 1; statement <= 12; statement++) {
          const name = `${point}${statement}`
          proxy.cutAt(statement, point)
          const acknowledged = await runOperations(store, name)
          const key = parseKey(`acme:${name}`)
          const stored = await store.readMessages(key, { limit: 100 })
          expect(stored.map(({ id, content }) => `${id} ${content}`)).toEqual(acknowledged)
          expect((await store.records(key, { limit: 100 })).map(({ id }) => id)).toEqual(['r3', 'r2', 'r1', 'r0'])
        }
        await store.close()
      },
    )

  it('during an erasure, which cannot be repeated silently › is reported', async () => {
    const store = await postgresStore(url)
    const key = parseKey('acme:erased')
    await store.commit(newChange('1', { key, append: [newMessage('a walrus')] }))
    proxy.cutAt(1, 'answer')
    await expect(store.erase(key)).rejects.toMatchObject({ code: 'not-durable' })
    expect((await store.readHead(key, 1)).messages).toBe(0)
    await store.close()
  })
})

describe('server › restarted in immediate mode', () => {
  verifies('X-07', 'in mid-transaction › acknowledged messages are stored once', async () => {
    const store = await postgresStore(`${url}?connect_timeout=60`)
    const acknowledged = new Map<string, string[]>()
    let isDone = false
    const write = async (writer: number): Promise<void> => {
      const key = parseKey(`acme:writer${writer}`)
      const contents: string[] = []
      acknowledged.set(formatKey(key), contents)
      for (let at = 0; !isDone; at++) {
        await store.commit(newChange(`op ${at}`, { key, append: [newMessage(`${writer} ${at}`)] }))
        contents.push(`${writer} ${at}`)
      }
    }
    const countAll = (): number => [...acknowledged.values()].reduce((sum, { length }) => sum + length, 0)
    const writers = [0, 1, 2, 3].map(write)
    for (let crash = 0; crash < 2; crash++) {
      const before = countAll()
      await expect.poll(countAll, { timeout: 30_000 }).toBeGreaterThan(before + 20)
      await server.crash()
    }
    const before = countAll()
    await expect.poll(countAll, { timeout: 30_000 }).toBeGreaterThan(before + 20)
    isDone = true
    await Promise.all(writers)
    for (const [name, contents] of acknowledged) {
      const stored = await store.readMessages(parseKey(name), { limit: 100_000 })
      expect(stored.map(({ content }) => content)).toEqual(contents)
    }
    await store.close()
  })

  it('while it is down › a write fails with a clear error, and works again afterwards', async () => {
    const store = await postgresStore(`${url}?connect_timeout=1`)
    const change = newChange('down', { key: parseKey('acme:down'), append: [newMessage('a walrus')] })
    await server.stop()
    const failure = await store.commit(change).then(
      () => undefined,
      (error: unknown) => error as MemoryError,
    )
    expect(failure).toBeInstanceOf(MemoryError)
    expect(failure?.code).toBe('busy')
    expect(failure?.message).toMatch(/cannot be reached.*nothing was stored/)
    await server.start()
    expect(await store.commit(change)).toHaveLength(1)
    await store.close()
  })
})
