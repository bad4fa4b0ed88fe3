import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runInSlices, runSync, type Work } from '../../src/domain/work.ts'
import { renderHandoffInSteps } from '../../src/handoff/render/render.ts'
import { createUpkeep, type MessageInput, openMemory } from '../../src/index.ts'
import { LineAnalyzer } from '../../src/selection/conversationLines.ts'
import { selectPassagesInSteps } from '../../src/selection/selectPassages.ts'
import { chars4 as tokenizer } from '../../src/text/estimators.ts'
import { extractFacts, extractFactsInSteps } from '../../src/upkeep/extract/extract.ts'
import { markRedundantInSteps } from '../../src/upkeep/optimizer/redundancy.ts'
import { summarise, summariseInSteps } from '../../src/upkeep/summarise/summarise.ts'
import type { SummaryMessage } from '../../src/upkeep/summarise/summary.ts'
import { material, conversation as toMessages } from '../handoff/renderFixtures.ts'

const key = 'acme:ann'

/** Creates messages of slightly more than a thousand characters each. */
const conversation = (count: number): readonly SummaryMessage[] =>
  Array.from({ length: count }, (_, at) => ({
    ...{ id: `m${at + 1}`, sequence: at + 1, at, role: at % 2 === 0 ? ('user' as const) : ('assistant' as const) },
    content: `I prefer theme${at} in src/app${at}.ts. ${`We met in Berlin at harbour ${at} and talked. `.repeat(24)}`,
  }))

/** Counts pauses. */
const counter = () => {
  const counted = { pauses: 0, pause: async () => void counted.pauses++ }
  return counted
}

describe('runInSlices', () => {
  it('pauses after every 1,024 characters', async () => {
    function* steps(...characters: number[]): Work<string> {
      for (const some of characters) yield some
      return 'done'
    }
    for (const [characters, pauses] of [
      [[], 0],
      [[1_023], 0],
      [[1_023, 1], 1],
      [[600, 600, 600, 600], 2],
      [[1_000_000, 1], 1],
    ] as const) {
      const counted = counter()
      expect(await runInSlices(steps(...characters), counted.pause)).toBe('done')
      expect([characters, counted.pauses]).toEqual([characters, pauses])
      expect(runSync(steps(...characters))).toBe('done')
    }
  })

  it('waits for a pause that is due, and continues at once otherwise', async () => {
    const events: string[] = []
    function* work(name: string): Work<void> {
      for (const step of [1, 2]) {
        events.push(`${name} ${step}`)
        yield 2_000
      }
    }
    const resting = runInSlices(work('resting'), async () => undefined)
    const busy = runInSlices(work('busy'), () => undefined)
    expect(events).toEqual(['resting 1', 'busy 1', 'busy 2'])
    await Promise.all([resting, busy])
    expect(events).toEqual(['resting 1', 'busy 1', 'busy 2', 'resting 2'])
  })

  it('returns the same summary and facts as the synchronous functions', async () => {
    const messages = conversation(200)
    const [summing, finding] = [counter(), counter()]
    expect(await runInSlices(summariseInSteps(messages, undefined, { words: [100, 150] }), summing.pause)).toEqual(
      summarise(messages, undefined, { words: [100, 150] }),
    )
    expect(await runInSlices(extractFactsInSteps(messages), finding.pause)).toEqual(extractFacts(messages))
    // About 220,000 characters, processed once for facts (user messages only) and twice for a summary, which then
    // continues without the repeated sentences.
    expect([summing.pauses >= 12, finding.pauses >= 3]).toEqual([true, true])
  })

  it('gets steps of at most a few messages', () => {
    const steps: number[] = []
    const work = summariseInSteps(conversation(200), undefined, { words: [100, 150] })
    for (let step = work.next(); step.done !== true; step = work.next()) steps.push(step.value)
    expect(Math.max(...steps)).toBeLessThan(3_000)
  })

  it('pauses in a conversation of short messages as in one of long ones', async () => {
    const messages: readonly SummaryMessage[] = conversation(5_000).map((message, at) => ({
      ...message,
      content: `m${at} of ${(at * 7_919) % 4_999}.`,
    }))
    const counted = counter()
    await runInSlices(summariseInSteps(messages, undefined, { words: [8, 40] }), counted.pause)
    // At most 25 messages between two pauses in each of the steps.
    expect(counted.pauses).toBeGreaterThan(200)
  })

  it('returns the same if several computations take turns', () => {
    const texts = fc.array(
      fc.constantFrom(
        'We moved everything to 3 May.',
        'MySQL instead of Postgres.',
        'The build failed in src/app.ts.',
        'The build works now. 300 euros remain.',
        'Ana likes Oslo.',
        '```ts\nconst port = 8080 // open\n```',
        '$ npm test\n12 passed',
        '\u8ca0\u8377\u304c\u9ad8\u3044',
      ),
      { minLength: 1, maxLength: 12 },
    )
    const create = (contents: readonly string[]): readonly (() => Work<unknown>)[] => {
      const messages = toMessages(
        ...contents.map((content, at) => [at % 2 === 0 ? 'user' : 'assistant', content] as const),
      )
      const analyzer = new LineAnalyzer(tokenizer)
      const lines = messages.map(({ role, content }) => ({ role, text: content }))
      return [
        () => summariseInSteps(messages, undefined, { words: [8, 20] }),
        () => markRedundantInSteps(contents, 0.5),
        () => selectPassagesInSteps(lines, { budget: 40, question: 'Which port?' }, analyzer),
        () => renderHandoffInSteps(material({ messages }), { budget: 120, tokenizer }),
      ]
    }
    fc.assert(
      fc.property(fc.array(texts, { minLength: 2, maxLength: 3 }), (conversations) => {
        const works = conversations.flatMap(create)
        expect(takeTurns(works.map((work) => work()))).toEqual(works.map((work) => runSync(work())))
      }),
      { seed: 18, numRuns: 40 },
    )
  })
})

/** Runs computations one step of each after the other. */
function takeTurns(works: readonly Work<unknown>[]): readonly unknown[] {
  const results: unknown[] = works.map(() => undefined)
  const running = new Map(works.entries())
  while (running.size > 0)
    for (const [index, work] of running) {
      const step = work.next()
      if (step.done !== true) continue
      results[index] = step.value
      running.delete(index)
    }
  return results
}

describe('upkeep of a long conversation', () => {
  const incoming = (content: string, at: number): MessageInput => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content,
  })

  it('pauses in between and completes', async () => {
    const counted = counter()
    await using memory = await openMemory({ profile: 'summary', upkeep: createUpkeep({ pause: counted.pause }) })
    await memory.append(
      key,
      conversation(300).map(({ content }, at) => incoming(content, at)),
    )
    await memory.upkeep.whenIdle()
    const [summary] = await memory.upkeep.summaries(key)
    expect([summary?.covers[0], (summary?.covers[1] ?? 0) > 290]).toEqual([1, true])
    expect(counted.pauses).toBeGreaterThan(30)
  })

  it('summarises half a million characters per step until all are done', async () => {
    await using memory = await openMemory({
      profile: 'summary',
      upkeep: createUpkeep({ pause: async () => undefined }),
    })
    const long = `My bike is blue. ${'Well, well. '.repeat(4_000)}`
    await memory.append(key, [
      incoming('x'.repeat(600_000), 0),
      ...Array.from({ length: 25 }, (_, at) => incoming(long, at + 1)),
      incoming('So?', 26),
    ])
    await memory.upkeep.whenIdle()
    const [summary] = await memory.upkeep.summaries(key)
    expect([summary?.covers, summary?.version]).toEqual([[1, 26], 4])
  })

  it('reads 65,536 characters of a message and reports the message as lost', async () => {
    await using memory = await openMemory({
      profile: 'summary',
      upkeep: createUpkeep({ pause: async () => undefined }),
    })
    const filler = 'so it is '.repeat(8_000)
    await memory.append(key, [
      incoming(`I prefer dark mode. ${filler} I prefer metric units.`, 0),
      incoming('Fine.', 1),
      incoming('And now?', 2),
      incoming('Go on.', 3),
    ])
    await memory.upkeep.whenIdle()
    expect((await memory.upkeep.record(key)).important_data.user_preferences).toEqual({ theme: 'dark' })
    expect((await memory.upkeep.summaries(key)).map(({ lossyRanges }) => lossyRanges)).toEqual([[[1, 1]]])
  })
})
