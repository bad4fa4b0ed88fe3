import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Message } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type SqliteStore, sqliteStore } from '../../src/stores/sqlite.ts'

const key = parseKey('acme:long')
const count = 2_500
const unlimited = Number.MAX_SAFE_INTEGER

describe('a session of more messages than are read at a time', () => {
  let folder: string
  let store: SqliteStore
  const numbers = (messages: readonly Message[]): readonly number[] => messages.map(({ sequence }) => sequence)
  const range = (from: number, to: number): readonly number[] =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index)
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pages-'))
    store = sqliteStore(join(folder, 'memory.db'))
    const append = range(1, count).map((number) => ({
      role: 'user' as const,
      content: `message ${number}`,
      at: 1,
      tokens: 3,
      lineTokens: 3,
      tokenizer: 'test',
      weight: 3,
    }))
    await store.commit({ key, at: 1, epoch: 0, append, put: [], drop: [], expiresAt: noExpiry })
  })
  afterAll(async () => {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('is read whole and in order, with any limit', async () => {
    for (const limit of [1_000, 1_001, 2_000, count, unlimited]) {
      const size = Math.min(limit, count)
      expect(numbers((await store.readHead(key, limit)).recent)).toEqual(range(count - size + 1, count))
      expect(numbers(await store.readMessages(key, { limit, newest: true }))).toEqual(range(count - size + 1, count))
      expect(numbers(await store.readMessages(key, { limit }))).toEqual(range(1, size))
    }
    const between = { after: 300, before: 2_001, limit: unlimited }
    expect(numbers(await store.readMessages(key, between))).toEqual(range(301, 2_000))
    expect(numbers(await store.readMessages(key, { ...between, newest: true }))).toEqual(range(301, 2_000))
  })

  it('is read in one state while messages are erased', async () => {
    const reading = store.readMessages(key, { limit: unlimited })
    await store.erase(key, { entries: ['m1', 'm2400'] })
    const left = numbers(await store.readMessages(key, { limit: unlimited }))
    expect(left).toHaveLength(count - 2)
    expect([range(1, count), left]).toContainEqual(numbers(await reading))
  })
})
