import { describe, expect, it } from 'vitest'
import { openMemory, ramStore } from '../../src/index.ts'
import type { RecordUpdate } from '../../src/upkeep/updateRecord.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'
const start = Date.UTC(2026, 2, 2, 9)

/** Opens a memory with one message and a clock that the test sets. */
async function openWithMessage() {
  const time = { now: start }
  const memory = await openMemory({ profile: 'summary', store: ramStore(), clock: () => time.now })
  await memory.append(key, [{ role: 'user', content: 'Hello.' }])
  return { memory, time }
}

const turn = (number: number): string =>
  `Ticket TCK-${1_000 + number} is open. ${`We talked about the harbour number ${number}. `.repeat(40)}`

describe('upkeep.update', () => {
  verifies('C-04', 'initialises the record of a session, and the context shows it', async () => {
    const { memory } = await openWithMessage()
    const record = await memory.upkeep.update(key, {
      important_data: { user_preferences: { theme: 'dark' }, source_urls: ['https://example.org/a'] },
      conversation_summary: 'Ann plans a summer house.',
      summary_version: 1,
    })
    expect(record).toMatchObject({
      important_data: { user_preferences: { theme: 'dark' }, source_urls: ['https://example.org/a'], entities: [] },
      conversation_summary: 'Ann plans a summer house.',
      summary_version: 1,
      last_summarized_at: '2026-03-02T09:00:00.000Z',
      messages_summarized_count: 0,
      last_keep_window_index: 0,
    })
    expect(await memory.upkeep.record(key)).toEqual(record)
    const { text } = await memory.context(key)
    for (const shown of ['dark', 'https://example.org/a', 'Ann plans a summer house.', 'Hello.'])
      expect(text).toContain(shown)
    await memory.close()
  })

  verifies('C-04', 'marks what it stores as stated by the caller', async () => {
    const { memory } = await openWithMessage()
    await memory.upkeep.update(key, {
      important_data: { key_decisions: ['Use oak.'] },
      conversation_summary: 'Ann plans a summer house.',
    })
    const [[fact], [summary]] = [await memory.upkeep.facts(key), await memory.upkeep.summaries(key)]
    expect(fact?.sources).toEqual([{ message: expect.stringMatching(/^update\d+$/) }])
    expect(summary?.by).toBe('caller')
    await memory.close()
  })

  verifies(['C-04', 'C-06'], 'supersedes values by name, adds to lists once, and keeps the history', async () => {
    const { memory, time } = await openWithMessage()
    for (const theme of ['dark', 'light', 'dark']) {
      await memory.upkeep.update(key, { important_data: { user_preferences: { theme }, entities: ['Oslo'] } })
      time.now += 1_000
    }
    const { important_data: data } = await memory.upkeep.record(key)
    expect([data.user_preferences, data.entities]).toEqual([{ theme: 'dark' }, ['Oslo']])
    const earlier = await memory.upkeep.record(key, { asOf: start + 1_500 })
    expect(earlier.important_data.user_preferences).toEqual({ theme: 'light' })
    await memory.close()
  })

  verifies('C-04', 'gives a summary that the next compaction continues', async () => {
    const { memory } = await openWithMessage()
    await memory.upkeep.update(key, { conversation_summary: 'Ann decided to build the house in Porto with oak.' })
    for (let number = 0; number < 12; number++) {
      await memory.append(key, [{ role: number % 2 === 0 ? 'user' : 'assistant', content: turn(number) }])
      await memory.upkeep.whenIdle()
    }
    const record = await memory.upkeep.record(key)
    expect(record.summary_version).toBeGreaterThan(1)
    expect(record.messages_summarized_count).toBeGreaterThan(1)
    expect(record.conversation_summary).toContain('Porto')
    await memory.close()
  })

  verifies('C-04', 'replaces a summary without losing which messages it covers', async () => {
    const { memory } = await openWithMessage()
    for (let number = 0; number < 12; number++) {
      await memory.append(key, [{ role: number % 2 === 0 ? 'user' : 'assistant', content: turn(number) }])
      await memory.upkeep.whenIdle()
    }
    const before = await memory.upkeep.record(key)
    const after = await memory.upkeep.update(key, { conversation_summary: 'They talked about harbours.' })
    expect(after).toMatchObject({
      summary_version: before.summary_version + 1,
      last_keep_window_index: before.last_keep_window_index,
      messages_summarized_count: before.messages_summarized_count,
    })
    expect(before.messages_summarized_count).toBeGreaterThan(0)
    expect((await memory.upkeep.losses(key))[0]?.losses.length).toBeGreaterThan(0)
    await memory.close()
  })

  verifies(['C-04', 'X-09'], 'masks secrets', async () => {
    const { memory } = await openWithMessage()
    const secret = 'sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7b'
    const record = await memory.upkeep.update(key, {
      important_data: { custom_fields: { api_key: secret } },
      conversation_summary: `Ann uses ${secret} for the test.`,
    })
    expect(JSON.stringify(record)).not.toContain(secret)
    expect(JSON.stringify(record)).toContain('⟨secret:')
    await memory.close()
  })

  verifies('C-04', 'is undone by clear, and the messages stay', async () => {
    const { memory } = await openWithMessage()
    await memory.upkeep.update(key, { important_data: { entities: ['Oslo'] }, conversation_summary: 'A talk.' })
    await memory.upkeep.clear(key)
    expect(await memory.upkeep.record(key)).toMatchObject({
      important_data: { entities: [] },
      conversation_summary: '',
      summary_version: 0,
    })
    expect(await memory.transcript(key)).toHaveLength(1)
    await memory.close()
  })

  verifies(['C-04', 'C-06'], 'treats names such as __proto__ as data', async () => {
    const { memory } = await openWithMessage()
    const update = JSON.parse(
      '{"important_data":{"custom_fields":{"__proto__":"x","constructor":"y"}}}',
    ) as RecordUpdate
    const { important_data: data } = await memory.upkeep.update(key, update)
    expect(Object.keys(data.custom_fields)).toEqual(expect.arrayContaining(['constructor']))
    expect(Object.getPrototypeOf({})).toBe(Object.prototype)
    expect(({} as { x?: unknown }).x).toBeUndefined()
    await memory.close()
  })

  const wrong: readonly (readonly [string, unknown, string])[] = [
    ['an unknown field', { important: {} }, 'Unknown option of update: "important". Did you mean important_data?'],
    ['a computed field', { last_keep_window_index: 3 }, 'Unknown option of update: "last_keep_window_index"'],
    ['unknown data', { important_data: { mood: [] } }, 'important_data.mood is unknown'],
    ['a list for an object', { important_data: { user_preferences: ['dark'] } }, 'must be an object'],
    ['an object for a list', { important_data: { entities: { a: 1 } } }, 'must be a list'],
    ['an empty value', { important_data: { entities: [' '] } }, 'empty name or value'],
    ['an empty summary', { conversation_summary: ' ' }, 'conversation_summary must be text'],
    ['a version alone', { summary_version: 2 }, 'summary_version needs a conversation_summary'],
    ['a version of 0', { conversation_summary: 'A talk.', summary_version: 0 }, 'must be a whole number, 1 or more'],
    ['a huge value', { important_data: { entities: ['x'.repeat(5_000)] } }, 'more than 4000 characters'],
    ['too many values', { important_data: { entities: Array(201).fill('Oslo') } }, 'more than 200 values'],
    ['text', 'dark', 'update'],
  ]
  for (const [name, update, problem] of wrong)
    it(`with ${name} › is refused`, async () => {
      const { memory } = await openWithMessage()
      await expect(memory.upkeep.update(key, update as RecordUpdate)).rejects.toThrow(problem)
      expect(await memory.upkeep.facts(key)).toEqual([])
      await memory.close()
    })

  it('of a session that does not exist › is refused', async () => {
    const { memory } = await openWithMessage()
    await expect(memory.upkeep.update('acme:bob', { conversation_summary: 'A talk.' })).rejects.toThrow(
      'There is no session acme:bob. Append a message to it first.',
    )
    await memory.close()
  })
})
