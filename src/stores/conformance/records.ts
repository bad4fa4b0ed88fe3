import type { AuxiliaryRecord } from '../../domain/ports.ts'
import {
  type ConformanceChecks,
  expectEqual,
  formatKeys,
  key,
  newChange,
  newMessage,
  otherSession,
} from './fixtures.ts'

const record = (number: number): AuxiliaryRecord => ({
  id: `r${number}`,
  at: 1_000 + number,
  body: JSON.stringify({ number, text: '\u0000 "Zoë"' }),
})
const stored = (number: number) => ({ ...record(number), number })

/** Auxiliary records of sessions. */
export const recordChecks: ConformanceChecks = {
  'appendRecord › for a session that does not exist › stores nothing': async (store) => {
    expectEqual(await store.appendRecord(key, record(1), 10), false)
    expectEqual(await store.records(key, { limit: 10 }), [])
    expectEqual(await store.list({ limit: 10 }), [])
  },
  'records › after several appends › are returned unchanged, newest first, page by page': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    for (let number = 1; number <= 9; number++) expectEqual(await store.appendRecord(key, record(number), 100), true)
    expectEqual(await store.records(key, { limit: 4 }), [9, 8, 7, 6].map(stored))
    expectEqual(await store.records(key, { before: 6, limit: 9 }), [5, 4, 3, 2, 1].map(stored))
    expectEqual(await store.records(otherSession, { limit: 9 }), [])
  },
  'appendRecord › beyond the number to keep › drops the oldest ones': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    for (let number = 1; number <= 40; number++) await store.appendRecord(key, record(number), 8)
    const numbers = (await store.records(key, { limit: 100 })).map(({ number }) => number)
    expectEqual(numbers.slice(0, 8), [40, 39, 38, 37, 36, 35, 34, 33])
    // A store may keep a few more, to drop them in blocks.
    expectEqual(numbers.length < 16, true)
  },
  'records › of a session › are not part of its head, transcript, list or search': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    const before = await store.readHead(key, 10)
    await store.appendRecord(key, { id: 'r1', at: 1, body: '"visible word"' }, 10)
    expectEqual(await store.readHead(key, 10), before)
    expectEqual((await store.readMessages(key, { limit: 10 })).length, 1)
    expectEqual(formatKeys(await store.list({ limit: 10 })), ['acme:ann'])
    expectEqual(await store.search({ scope: 'acme' }, { text: 'visible word', limit: 5 }), [])
  },
  'erase › of the records alone › leaves the session': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    await store.appendRecord(key, record(1), 10)
    expectEqual(await store.erase(key, { records: true }), [])
    expectEqual(await store.records(key, { limit: 10 }), [])
    expectEqual((await store.readHead(key, 10)).messages, 1)
  },
  'erase › of a session › erases its records for good': async (store) => {
    await store.commit(newChange('a', { append: [newMessage('one')] }))
    await store.appendRecord(key, record(1), 10)
    await store.erase(key)
    expectEqual(await store.records(key, { limit: 10 }), [])
    await store.commit(newChange('b', { epoch: 1, append: [newMessage('again')] }))
    expectEqual(await store.records(key, { limit: 10 }), [])
  },
}
