import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Summary } from '../../src/domain/entry.ts'
import type { Key } from '../../src/domain/key.ts'
import type { Context } from '../../src/domain/ledger.ts'
import type { SessionHead } from '../../src/domain/session.ts'
import { type Memory, type MemoryOptions, openMemory, ramStore } from '../../src/index.ts'
import { openaiModel } from '../../src/providers/openai.ts'
import { SessionModels } from '../../src/server/upstreams/sessionModels.ts'
import { isCampaign, seed } from '../context/campaign.ts'
import { type RecordedRequest, replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, user } from '../server/start.ts'
import { purposeOf } from './upkeepHarness.ts'

const key = 'acme:+15551234567'
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
/** The start of an hour. */
const start = Date.UTC(2026, 2, 2, 9)
let now = start

const open = (options: MemoryOptions = {}): Promise<Memory> =>
  openMemory({ profile: 'support', store: 'ram:', clock: () => now, ...options })

/** A customer and an agent; each message contains its number. */
const messageAt = (number: number) =>
  number % 2 === 1
    ? user(
        `Message ${number}: my parcel ${4_000 + number} was to come on Monday, and it has not. Where may it be by now, and who could tell me more?`,
      )
    : assistant(
        `Message ${number}: I have asked the depot for parcel ${3_999 + number}. They will look for it and call you back as soon as they know.`,
      )

/** Appends this many messages and waits for upkeep. */
async function appendRange(memory: Memory, first: number, last: number): Promise<void> {
  for (let number = first; number <= last; number++) await memory.append(key, [messageAt(number)])
  await memory.upkeep.whenIdle()
}

const tiers = (summaries: readonly Summary[]): string[] =>
  summaries.map(({ tier, covers }) => `${tier} ${covers[0]}–${covers[1]}`)
const coveredRanges = async (memory: Memory): Promise<string[]> => tiers(await memory.upkeep.summaries(key))

/** Numbers of the messages shown whole, as turns. */
const shownWhole = ({ messages }: Context): number[] =>
  messages.flatMap(({ content }) => {
    const number = Number(/^Message (\d+): /.exec(content ?? '')?.[1])
    return content === messageAt(number).content ? [number] : []
  })
const numbers = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, at) => first + at)

/** Asserts that each summary has at most a fifth of the tokens it covers. */
async function expectFifth(memory: Memory): Promise<void> {
  const transcript = await memory.transcript(key)
  for (const { text, covers } of await memory.upkeep.summaries(key)) {
    const replaced = transcript.slice(covers[0] - 1, covers[1]).reduce((sum, { tokens }) => sum + tokens, 0)
    expect(memory.tokenizer.count(text) / replaced).toBeLessThanOrEqual(0.2)
    expect(text).not.toBe('')
  }
}

describe('messages of a session', () => {
  verifies(
    'T-04',
    'stay whole up to 49; the 50th triggers a summary of the first 20, the 70th of the next 20',
    async () => {
      now = start
      await using memory = await open()
      await appendRange(memory, 1, 49)
      expect(await coveredRanges(memory)).toEqual([])
      expect(shownWhole(await memory.context(key))).toEqual(numbers(1, 49))

      await appendRange(memory, 50, 50)
      expect(await coveredRanges(memory)).toEqual(['hour 1–20'])
      const shown = await memory.context(key)
      expect(shownWhole(shown)).toEqual(numbers(21, 50))
      const [summary] = await memory.upkeep.summaries(key)
      expect(shown.messages[0]).toMatchObject({
        role: 'user',
        content: expect.stringContaining(`[CONVERSATION SUMMARY]\n${summary?.text}\n</memory>\n[RECENT MESSAGES]`),
      })

      await appendRange(memory, 51, 69)
      expect(await coveredRanges(memory)).toEqual(['hour 1–20'])
      expect(shownWhole(await memory.context(key))).toEqual(numbers(21, 69))
      await appendRange(memory, 70, 70)
      expect(await coveredRanges(memory)).toEqual(['hour 1–40'])
      expect(shownWhole(await memory.context(key))).toEqual(numbers(41, 70))
      expect((await memory.transcript(key)).map(({ content }) => content)).toEqual(
        numbers(1, 70).map((number) => messageAt(number).content),
      )
    },
  )

  verifies('T-04', 'in any hours › 30 to 49 stay whole, and summaries cover whole batches in order', async () => {
    const steps = fc.array(fc.constantFrom(0, 0, 0, minute, 20 * minute, hour, 3 * hour, -hour), {
      minLength: 60,
      maxLength: 200,
    })
    const check = async (minutes: readonly number[]): Promise<void> => {
      now = start
      await using memory = await open({ store: 'ram:' })
      for (const [place, step] of minutes.entries()) {
        // Stays within the session lifetime of seven days.
        now = Math.min(start + 160 * hour, Math.max(start, now + step))
        await appendRange(memory, place + 1, place + 1)
        const count = place + 1
        const summaries = [...(await memory.upkeep.summaries(key))].sort((a, b) => a.covers[0] - b.covers[0])
        const covered = summaries.reduce((last, { covers }) => (covers[0] === last + 1 ? covers[1] : Number.NaN), 0)
        expect([covered % 20, count - covered]).toEqual([0, count < 50 ? count : 30 + ((count - 50) % 20)])
        expect(shownWhole(await memory.context(key))).toEqual(numbers(covered + 1, count))
      }
      await expectFifth(memory)
    }
    await fc.assert(fc.asyncProperty(steps, check), { seed, numRuns: isCampaign ? 500 : 6 })
  })

  verifies(
    'T-04',
    'are summarised to at most 20 % of their tokens, by the built-in rules and by a verbose model',
    async () => {
      now = start
      const verbose = replyWith(
        `The customer waits for parcels 4001 and 4003, ${'and the clerk will call back, '.repeat(60)}as was said.`,
      )
      await using upstream = await startUpstream(verbose)
      for (const model of [undefined, openaiModel({ baseUrl: upstream.url, model: 'talker' })]) {
        await using memory = await open(model === undefined ? {} : { model })
        await appendRange(memory, 1, 90)
        expect(await coveredRanges(memory)).toEqual(['hour 1–60'])
        await expectFifth(memory)
      }
      expect(upstream.requests.length).toBeGreaterThan(0)
    },
  )
})

describe('a call with more results than a batch has messages', () => {
  verifies('T-04', 'is summarised and does not block later summaries', async () => {
    now = start
    await using memory = await open()
    const calls = numbers(1, 25).map((number) => ({
      id: `call${number}`,
      type: 'function',
      function: { name: 'look', arguments: `{"depot":${number}}` },
    }))
    const results = calls.map(({ id }) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: `No parcel was found for ${id}.`,
    }))
    await memory.append(key, [
      user('Look in every depot.'),
      { role: 'assistant', content: '', tool_calls: calls },
      ...results,
    ])
    await appendRange(memory, 28, 127)
    const { ledger } = await memory.context(key)
    const isMessage = (id = ''): boolean => /^m\d/.test(id)
    expect(ledger.lines.filter(({ verdict, entries }) => verdict === 'dropped' && isMessage(entries?.[0]))).toEqual([])
    const last = (await memory.upkeep.summaries(key)).at(-1)?.covers[1] ?? 0
    expect([last >= 127 - 49, last <= 127 - 30]).toEqual([true, true])
  })
})

describe('hourly summaries', () => {
  verifies('T-04', 'one per hour: batches of an hour share it', async () => {
    now = start
    await using memory = await open()
    await appendRange(memory, 1, 40)
    now = start + hour
    await appendRange(memory, 41, 90)
    const summaries = await memory.upkeep.summaries(key)
    expect(tiers(summaries)).toEqual(['hour 1–40', 'hour 41–60'])
    expect(summaries.map(({ id, version }) => [id, version])).toEqual([
      [`hour${start / hour}`, 2],
      [`hour${start / hour + 1}`, 1],
    ])
  })

  verifies('T-04', 'a day old › are merged into one session summary, repeatedly and in order', async () => {
    now = start
    await using memory = await open()
    await appendRange(memory, 1, 40)
    now = start + 2 * hour
    await appendRange(memory, 41, 90)
    expect(await coveredRanges(memory)).toEqual(['hour 1–40', 'hour 41–60'])

    now = start + day
    await appendRange(memory, 91, 91)
    expect(await coveredRanges(memory)).toEqual(['hour 1–40', 'hour 41–60'])
    now = start + day + hour
    await appendRange(memory, 92, 92)
    expect(await coveredRanges(memory)).toEqual(['session 1–40', 'hour 41–60'])
    const texts = (await memory.upkeep.summaries(key)).map(({ text }) => text)
    expect((await memory.context(key)).messages[0]?.content).toContain(
      `[CONVERSATION SUMMARY]\n${texts.join('\n')}\n</memory>`,
    )

    now = start + day + 3 * hour
    await appendRange(memory, 93, 110)
    expect(await coveredRanges(memory)).toEqual(['session 1–80'])
    await appendRange(memory, 111, 130)
    expect(await coveredRanges(memory)).toEqual(['session 1–80', 'hour 81–100'])
    expect(shownWhole(await memory.context(key))).toEqual(numbers(101, 130))
    await expectFifth(memory)
  })

  verifies(['T-04', 'C-11'], 'without a sentence that fits › are never merged into nothing', async () => {
    now = start
    await using memory = await open()
    for (const number of numbers(1, 60)) {
      const name = `Zeph${String.fromCharCode(96 + (number % 26))}rin`
      await memory.append(key, [
        user(`The parcel for ${name} has not come, and nobody at the depot knows where it may be by now.`),
      ])
    }
    await memory.upkeep.whenIdle()
    expect((await memory.upkeep.summaries(key)).map(({ tier, text }) => [tier, text === ''])).toEqual([['hour', false]])
    for (const later of [day - minute, day + hour]) {
      now = start + later
      await memory.append(key, [user('Is anybody there?')])
      await memory.upkeep.whenIdle()
    }
    expect((await memory.upkeep.summaries(key)).map(({ tier, text }) => [tier, text === ''])).toEqual([
      ['session', false],
    ])
  })

  verifies('T-04', 'are also merged when the host sweeps', async () => {
    now = start
    await using memory = await open()
    await appendRange(memory, 1, 50)
    now = start + day - minute
    await memory.append(key, [messageAt(51)])
    await memory.upkeep.whenIdle()
    now = start + day + hour
    await memory.sweep(now)
    await memory.upkeep.whenIdle()
    expect(await coveredRanges(memory)).toEqual(['session 1–20'])
  })
})

describe('a model server that never answers', () => {
  verifies('T-05', 'delays neither append nor context', async () => {
    now = start
    const asked = Promise.withResolvers<RecordedRequest>()
    await using upstream = await startUpstream((request) => {
      asked.resolve(request)
      return { does: 'hang' }
    })
    const memory = await open({ model: openaiModel({ baseUrl: upstream.url, model: 'silent' }) })
    for (const number of numbers(1, 60)) await memory.append(key, [messageAt(number)])
    const request = await asked.promise
    await memory.append(key, [messageAt(61)])
    expect(shownWhole(await memory.context(key))).toEqual(numbers(1, 61))
    expect(memory.health()).toMatchObject({ running: 1, done: 0 })
    await memory.close()
    expect(await request.outcome).toBe('hung up')
    expect(upstream.requests.length).toBe(1)
  })

  verifies('T-05', 'for summaries › does not delay the reply', async () => {
    now = start
    const asked = Promise.withResolvers<RecordedRequest>()
    await using upstream = await startUpstream((request) => {
      if (purposeOf(request) === 'chat') return replyWith('They will call you back.')
      asked.resolve(request)
      return { does: 'hang' }
    })
    const models = new SessionModels({ upstreams: upstream.url })
    const options = {
      profile: 'support',
      store: 'ram:',
      clock: () => now,
      model: (of: Key) => models.get(of),
    } as const
    const server = await startServer({ upstream: upstream.url, upkeepModels: models, memory: options })
    const reply = async (number: number): Promise<string | null | undefined> =>
      (await server.client(key).chat.completions.create({ model: 'clerk-1', messages: [messageAt(number)] })).choices[0]
        ?.message.content
    for (let number = 1; number < 50; number += 2) expect(await reply(number)).toBe('They will call you back.')
    expect((await asked.promise).body.model).toBe('clerk-1')
    for (let number = 51; number < 60; number += 2) expect(await reply(number)).toBe('They will call you back.')
    expect([(await server.transcriptLines(key)).length, server.faults]).toEqual([60, []])
    await server.close()
    expect(await (await asked.promise).outcome).toBe('hung up')
  })
})

describe('tenant and session', () => {
  verifies('T-05', 'are read in parallel', async () => {
    const [store, sessions] = [ramStore(), ramStore()]
    const began = { tenant: Promise.withResolvers<void>(), session: Promise.withResolvers<void>() }
    /** Answers once the other read has started as well. */
    const waitForEachOther = (
      own: PromiseWithResolvers<void>,
      other: PromiseWithResolvers<void>,
      head: Promise<SessionHead>,
    ): Promise<SessionHead> => {
      own.resolve()
      return other.promise.then(() => head)
    }
    await using memory = await open({
      store: {
        ...store,
        readHead: (at, recent) =>
          recent === 0
            ? waitForEachOther(began.tenant, began.session, store.readHead(at, recent))
            : store.readHead(at, recent),
      },
      sessions: {
        ...sessions,
        readHead: (at, recent) =>
          recent > 1
            ? waitForEachOther(began.session, began.tenant, sessions.readHead(at, recent))
            : sessions.readHead(at, recent),
      },
    })
    await memory.append(key, [messageAt(1)])
    expect(shownWhole(await memory.context(key))).toEqual([1])
  })
})
