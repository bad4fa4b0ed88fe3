import { afterEach, describe, expect, it, vi } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import type { Store } from '../../../src/domain/ports.ts'
import type { SessionChange } from '../../../src/domain/session.ts'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { Cipher } from '../../../src/stores/encrypted/cipher.ts'
import { EncryptedSessions } from '../../../src/stores/encrypted/sessions.ts'
import { encryptedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { verifies } from '../../requirements/verifies.ts'
import { countTurns, useSlowClock } from '../../support/slowClock.ts'
import { annKey, bobKey, contentsOf, factWithSpan, hex, nextChange, testKeyring } from './fixtures.ts'

const sessionsOver = (inner: Store): EncryptedSessions => new EncryptedSessions(inner, testKeyring('old'))
const record = { id: 'r1', at: 5, body: '{"a":1}' }

/** A store with one message in each of the sessions of Ann and Bob. */
async function createInner() {
  const inner = ramStore()
  const store = await encryptedStore(inner, testKeyring('old'))
  await store.commit(nextChange({ append: [newMessage('one')] }))
  await store.commit(nextChange({ key: bobKey, append: [newMessage('two')] }))
  return inner
}

afterEach(() => vi.restoreAllMocks())

describe('EncryptedSessions', () => {
  it('reads the key of a session once, and again after the session was erased', async () => {
    const inner = await createInner()
    const readHead = vi.spyOn(inner, 'readHead')
    const sessions = sessionsOver(inner)
    const readsOf = async (run: () => Promise<unknown>): Promise<number> => {
      readHead.mockClear()
      await run()
      return readHead.mock.calls.length
    }
    expect(await readsOf(() => sessions.readMessages(annKey, { limit: 9 }))).toBe(1)
    expect(await readsOf(() => sessions.readMessages(annKey, { limit: 9 }))).toBe(0)
    expect(await readsOf(() => sessions.commit(nextChange({ append: [newMessage('more')] })))).toBe(0)
    expect(await readsOf(() => sessions.appendRecord(annKey, record, 9))).toBe(0)
    expect(await readsOf(() => sessions.records(bobKey, { limit: 9 }))).toBe(0)
    await sessions.erase(annKey, { entries: ['m1'] })
    expect(await readsOf(() => sessions.readMessages(annKey, { limit: 9 }))).toBe(0)
    await sessions.erase(annKey)
    expect(await readsOf(() => sessions.readMessages(annKey, { limit: 9 }))).toBe(1)
    const created = nextChange({ epoch: 1, append: [newMessage('new')] })
    expect(await readsOf(() => sessions.commit(created))).toBe(1)
    expect(await readsOf(() => sessions.commit(nextChange({ epoch: 1, append: [newMessage('x')] })))).toBe(0)
  })

  verifies('R-03', 'reads and writes many entries in steps, and decrypts entries in memory once', async () => {
    const inner = ramStore()
    const sessions = sessionsOver(inner)
    const put = Array.from({ length: 50 }, (_, at) => factWithSpan(`f${at}`, 'seal'))
    const append = Array.from({ length: 300 }, (_, at) => newMessage(`${at}`))
    using _ = useSlowClock()
    expect((await countTurns(sessions.commit(nextChange({ append, put })))).turns).toBeGreaterThan(200)
    expect((await countTurns(sessions.readMessages(annKey, { limit: 300 }))).turns).toBeGreaterThan(100)
    expect((await countTurns(sessions.readHead(annKey, 9))).turns).toBeGreaterThan(20)
    const decrypt = vi.spyOn(Cipher.prototype, 'decrypt')
    await sessions.commit(nextChange({ put: [factWithSpan('f7', 'walrus')] }))
    const { derived } = await sessions.readHead(annKey, 0)
    expect(derived.flatMap((entry) => (entry.kind === 'fact' ? [entry.value] : []))).toEqual(
      put.map(({ id }) => (id === 'f7' ? 'walrus' : 'seal')),
    )
    // The changed entry, the first message and the last one of the user.
    expect(decrypt).toHaveBeenCalledTimes(3)
  })

  verifies('R-03', 'writes long payloads, calls and derived entries in steps', async () => {
    const sessions = sessionsOver(ramStore())
    const long = 'x'.repeat(3_000)
    const numbers = Array.from({ length: 30 }, (_, at) => at)
    const toolCalls = [{ id: 'c', name: 'read', arguments: long }]
    const payloads = numbers.map(() => ({ ...newMessage('seal'), packedPayload: long }))
    const calls = numbers.map(() => ({ ...newMessage('seal'), toolCalls }))
    const put = numbers.map((at) => factWithSpan(`f${at}`, long))
    const replace = payloads.map((message, at) => ({ id: `m${at + 1}`, message }))
    await sessions.commit(nextChange({ append: numbers.map(() => newMessage('seal')) }))
    using _ = useSlowClock()
    const countTurnsOf = async (change: Partial<SessionChange>): Promise<number> =>
      (await countTurns(sessions.commit(nextChange(change)))).turns
    expect(await countTurnsOf({ base: 1, replace })).toBeGreaterThan(10)
    expect(await countTurnsOf({ put })).toBeGreaterThan(10)
    // The messages are also decrypted in steps.
    for (const append of [payloads, calls]) expect(await countTurnsOf({ append })).toBeGreaterThan(25)
  })

  it('with a long change that is being encrypted › writes later ones of its session after it, and nothing once closed', async () => {
    const sessions = sessionsOver(ramStore())
    const append = Array.from({ length: 300 }, (_, at) => newMessage(`${at}`))
    const put = Array.from({ length: 300 }, (_, at) => factWithSpan(`f${at}`, 'seal'))
    await sessions.commit(nextChange({ append: [newMessage('first')] }))
    using _ = useSlowClock()
    const writes = [nextChange({ append }), nextChange({ append: [newMessage('short')] }), nextChange({ put })]
    await Promise.all(writes.map((change) => sessions.commit(change)))
    expect(contentsOf(await sessions.readMessages(annKey, { limit: 999 })).at(-1)).toBe('short')
    const late = sessions.commit(nextChange({ put }))
    const outcome = expect(late).rejects.toMatchObject({ code: 'closed', message: expect.not.stringContaining('/') })
    await sessions.close()
    await outcome
  })

  it('verifyKeys › reads only the first session', async () => {
    const inner = await createInner()
    const list = vi.spyOn(inner, 'list')
    await sessionsOver(inner).verifyKeys()
    expect(list.mock.calls).toEqual([[{ limit: 1 }]])
  })

  it('appendRecord › to a session that was not read before › encrypts and returns the record', async () => {
    const inner = await createInner()
    expect(await sessionsOver(inner).appendRecord(bobKey, record, 9)).toBe(true)
    expect(await sessionsOver(inner).records(bobKey, { limit: 9 })).toEqual([{ ...record, number: 1 }])
    expect(JSON.stringify(await inner.records(bobKey, { limit: 9 }))).not.toContain('"a":1')
  })

  verifies('X-05', 'erase › with a filter of several fields › is refused and erases nothing', async () => {
    const sessions = sessionsOver(await createInner())
    for (const filter of [
      { entries: ['m1'], remains: true },
      { entries: ['m1'], session: 'ann' },
    ])
      await expect(sessions.erase(annKey, filter as never)).rejects.toMatchObject({ code: 'bad-option' })
    expect(contentsOf(await sessions.readMessages(annKey, { limit: 9 }))).toEqual(['one'])
  })
})

describe('EncryptedSessions during the work of another process', () => {
  it('readMessages › of a session that is created meanwhile › returns its messages', async () => {
    const inner = ramStore()
    const other = await encryptedStore(inner, testKeyring('old'))
    let isFirst = true
    const sessions = sessionsOver({
      ...inner,
      readMessages: async (key, range) => {
        if (isFirst) await other.commit(nextChange({ append: [newMessage('theirs')] }))
        isFirst = false
        return inner.readMessages(key, range)
      },
    })
    expect(contentsOf(await sessions.readMessages(annKey, { limit: 9 }))).toEqual(['theirs'])
  })

  it('readMessages › of a session that is erased, created again and erased meanwhile › returns none', async () => {
    const inner = await createInner()
    const other = await encryptedStore(inner, testKeyring('old'))
    let isFirst = true
    const sessions = sessionsOver({
      ...inner,
      readMessages: async (key, range) => {
        if (!isFirst) return inner.readMessages(key, range)
        isFirst = false
        await other.erase(annKey)
        await other.commit(nextChange({ epoch: 1, append: [newMessage('theirs')] }))
        const messages = await inner.readMessages(key, range)
        await other.erase(annKey)
        return messages
      },
    })
    expect(await sessions.readMessages(annKey, { limit: 9 })).toEqual([])
  })

  it('records › of a session that is erased meanwhile › returns none', async () => {
    const inner = await createInner()
    await sessionsOver(inner).appendRecord(annKey, record, 9)
    const sessions = sessionsOver({
      ...inner,
      records: async (key, range) => {
        const records = await inner.records(key, range)
        await inner.erase(annKey)
        return records
      },
    })
    expect(await sessions.records(annKey, { limit: 9 })).toEqual([])
  })

  it('commit › that fails while another process creates the session › throws the error and writes nothing', async () => {
    for (const error of [
      new MemoryError('full', 'The disk is full.'),
      Object.assign(new Error(), { code: 'conflict' }),
    ]) {
      const inner = ramStore()
      const other = await encryptedStore(inner, testKeyring('old'))
      let isFirst = true
      const sessions = sessionsOver({
        ...inner,
        commit: async (change) => {
          if (!isFirst) return inner.commit(change)
          isFirst = false
          await other.commit(nextChange({ append: [newMessage('theirs')] }))
          throw error
        },
      })
      await expect(sessions.commit(nextChange({ append: [newMessage('mine')] }))).rejects.toBe(error)
      expect(contentsOf(await other.readMessages(annKey, { limit: 9 }))).toEqual(['theirs'])
    }
  })
})

describe('EncryptedSessions.close', () => {
  verifies('H-09', 'overwrites the keys of all sessions and its own master keys, and no others', async () => {
    const inner = await createInner()
    const keyring = testKeyring('old')
    const sessions = new EncryptedSessions(inner, keyring)
    const copy = sessions.copyKeyring()
    for (const key of [annKey, bobKey]) await sessions.readMessages(key, { limit: 9 })
    const { keyring: own } = sessions as unknown as { readonly keyring: typeof keyring }
    const wipe = vi.spyOn(Cipher.prototype, 'wipe')
    await sessions.close()
    expect(wipe).toHaveBeenCalledTimes(2)
    const bytesOf = ({ current }: typeof keyring) => Buffer.from(current.bytes).toString('hex')
    expect([bytesOf(own), bytesOf(copy), bytesOf(keyring)]).toEqual(['0'.repeat(64), hex.old, hex.old])
    expect(() => sessions.copyKeyring()).toThrow(expect.objectContaining({ code: 'closed' }))
    await sessions.close()
    expect(wipe).toHaveBeenCalledTimes(2)
  })

  verifies('H-09', 'during the first commit of a session › overwrites its key when the commit is done', async () => {
    const inner = ramStore()
    const [started, pending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const sessions = sessionsOver({
      ...inner,
      commit: async (change) => {
        started.resolve()
        await pending.promise
        return inner.commit(change)
      },
    })
    const wipe = vi.spyOn(Cipher.prototype, 'wipe')
    const commit = sessions.commit(nextChange({ append: [newMessage('one')], put: [factWithSpan('f1', 'x')] }))
    await started.promise
    await sessions.close()
    expect(wipe).toHaveBeenCalledTimes(0)
    pending.resolve()
    await commit
    expect(wipe).toHaveBeenCalledTimes(1)
  })
})
