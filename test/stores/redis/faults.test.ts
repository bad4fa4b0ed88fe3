import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { parseKey } from '../../../src/domain/key.ts'
import type { Store } from '../../../src/domain/ports.ts'
import type { SessionChange } from '../../../src/domain/session.ts'
import { newChange, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { startFaultProxy, type Verdict } from './faultProxy.ts'
import { newPrefix, startRedis } from './redisServer.ts'

const key = parseKey('acme:ann')

/** Appends a message in the current epoch. */
async function append(store: Store, content: string, overrides: Partial<SessionChange> = {}): Promise<void> {
  const { epoch } = await store.readHead(key, 0)
  await store.commit({
    ...newChange('', { epoch, append: [newMessage(content)], ...overrides }),
    id: undefined as never,
  })
}

const contents = async (store: Store): Promise<readonly string[]> =>
  (await store.readMessages(key, { limit: 999 })).map(({ content }) => content)

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: unknown) => (error instanceof MemoryError ? `${error.code}: ${error.message}` : String(error)),
  )

describe('redisStore › faults', () => {
  verifies('T-17', 'Redis ends and starts again › commands fail in time, then work again', async () => {
    const server = await startRedis()
    const store = await redisStore(server.url, { timeoutMs: 400 })
    await append(store, 'before')
    const { epoch } = await store.readHead(key, 0)
    await server.stop('SIGKILL')
    const began = performance.now()
    expect(await codeOf(store.readHead(key, 0))).toMatch(/^busy: Redis at 127\.0\.0\.1:\d+ cannot be reached/)
    expect(await codeOf(store.commit(newChange('a', { epoch })))).toMatch(/^busy: /)
    expect(performance.now() - began).toBeLessThan(8_000)
    await startRedis({ port: server.port })
    await expect.poll(() => codeOf(store.readHead(key, 0)), { timeout: 10_000 }).toBe('none')
    await store.close()
  })

  it('Redis hangs › commands fail after the time-out and succeed when it goes on', async () => {
    const server = await startRedis()
    const store = await redisStore(server.url, { timeoutMs: 300 })
    await append(store, 'before')
    server.process.kill('SIGSTOP')
    expect(await codeOf(store.readHead(key, 0))).toMatch(/^busy: /)
    server.process.kill('SIGCONT')
    await expect.poll(() => codeOf(store.readHead(key, 0)), { timeout: 10_000 }).toBe('none')
    expect(await contents(store)).toEqual(['before'])
    await store.close()
  })

  it('Redis cannot be reached at the beginning › opening fails in time', async () => {
    const server = await startRedis()
    await server.stop()
    expect(await codeOf(redisStore(server.url, { timeoutMs: 300 }))).toMatch(/^busy: Redis at .* \(ECONNREFUSED\)/)
  })

  it('the URL does not fit the server › opening fails with a remedy', async () => {
    const server = await startRedis()
    const withTls = redisStore(server.url.replace('redis:', 'rediss:'), { timeoutMs: 300 })
    expect(await codeOf(withTls)).toContain('that redis: or rediss: fits its port')
    const otherDatabase = redisStore(server.url.replace(/\/?$/, '/99'))
    expect(await codeOf(otherDatabase)).toMatch(/^bad-store: .* rejected a command: .*range\. Check the URL/)
    await server.stop()
  })

  verifies('T-17', 'Redis is restarted without its data › sessions are gone and late writers refused', async () => {
    const server = await startRedis()
    const [store, other] = [await redisStore(server.url), await redisStore(server.url)]
    await append(store, 'The walrus is called Bruno.')
    const { epoch: oldEpoch } = await store.readHead(key, 10)
    expect(await store.search(key, { text: 'walrus', limit: 1 })).toHaveLength(1)
    await server.stop('SIGKILL')
    await startRedis({ port: server.port })
    const late = () => codeOf(store.commit(newChange('late', { epoch: oldEpoch, append: [newMessage('late')] })))
    await expect.poll(() => codeOf(other.readHead(key, 0)), { timeout: 10_000 }).toBe('none')
    await expect.poll(late, { timeout: 10_000 }).toMatch(/^erased: Session acme:ann is gone: Redis was restarted/)
    await append(other, 'A new session.')
    expect(await late()).toMatch(/^erased: Session acme:ann is gone/)
    expect([await contents(store), await contents(other)]).toEqual([['A new session.'], ['A new session.']])
    expect((await store.readHead(key, 9)).recent.map(({ content }) => content)).toEqual(['A new session.'])
    expect(await store.search(key, { text: 'Bruno', limit: 1 })).toEqual([])
    expect((await other.list({ limit: 9 })).map((session) => session.key.id)).toEqual(['ann'])
    await store.close()
    await other.close()
  })

  verifies('T-17', 'Redis is out of memory › writes fail with the remedy, reads and erasures go on', async () => {
    const server = await startRedis()
    const store = await redisStore(server.url)
    await append(store, 'before')
    server.ask('CONFIG', 'SET', 'maxmemory', '1')
    expect(await codeOf(append(store, 'more'))).toMatch(
      /^disk-full: Redis at .* has reached its maxmemory; nothing was stored\. Raise maxmemory, or end sessions/,
    )
    expect(await contents(store)).toEqual(['before'])
    const { revision } = await store.readHead(key, 0)
    expect(await store.erase(key, { entries: ['m9'] })).toEqual([])
    expect((await store.readHead(key, 0)).revision).toBe(revision + 1)
    expect(await store.erase(key)).toEqual(['m1'])
    server.ask('CONFIG', 'SET', 'maxmemory', '0')
    await append(store, 'after')
    expect(await contents(store)).toEqual(['after'])
    await store.close()
  })

  verifies('X-07', 'connection is lost at any command › every operation fails or happens exactly once', async () => {
    const server = await startRedis()
    const proxy = await startFaultProxy(server.port)
    /** Runs a fixed list of operations; the command with this number is cut. Returns the number of commands. */
    const runWith = async (cutAt: number, verdict: Verdict): Promise<number> => {
      let commands = 0
      const store = await redisStore(proxy.url, { prefix: newPrefix(), timeoutMs: 2_000 })
      proxy.decide = ([name]) => (/^(EVAL|Z|H)/.test(name ?? '') && ++commands === cutAt ? verdict : 'pass')
      const stored: string[] = []
      for (const content of ['one', 'two', 'three']) {
        const outcome = await codeOf(append(store, content))
        expect(outcome).toMatch(/^(none|busy: )/)
        if (outcome === 'none') stored.push(content)
      }
      expect(await codeOf(store.appendRecord(key, { id: 'r', at: 1, body: '{}' }, 9))).toMatch(/^(none|busy: )/)
      proxy.decide = () => 'pass'
      // Reads and commits are repeated, so that none of them fails after a single loss.
      expect(stored).toEqual(['one', 'two', 'three'])
      expect(await contents(store)).toEqual(['one', 'two', 'three'])
      expect((await store.readHead(key, 0)).revision).toBe(3)
      const { epoch } = await store.readHead(key, 0)
      proxy.decide = ([name]) => (/^EVAL/.test(name ?? '') ? verdict : 'pass')
      expect(await codeOf(store.erase(key))).toMatch(/^(none|busy: )/)
      proxy.decide = () => 'pass'
      const after = await store.readHead(key, 0)
      // The erasure is cut too: it happens completely or not at all.
      expect([after.epoch, after.revision]).toEqual(verdict === 'cut-before' ? [epoch, 3] : [epoch + 1, 0])
      await store.close()
      return commands
    }
    const total = await runWith(0, 'pass')
    expect(total).toBeGreaterThan(7)
    for (let cutAt = 1; cutAt <= total; cutAt++)
      for (const verdict of ['cut-before', 'cut-after'] as const) await runWith(cutAt, verdict)
  })
})
