import { describe, expect, it } from 'vitest'
import { type Incoming, openMemory, upkeepWith } from '../../src/index.ts'
import { extractFacts, extracting } from '../../src/upkeep/extract.ts'
import { summarise, summarising, type Told } from '../../src/upkeep/summarise.ts'
import { finished, paced, type Work } from '../../src/upkeep/work.ts'

const key = 'acme:ann'

/** A conversation of so many messages of a thousand characters or a little more. */
const talk = (many: number): readonly Told[] =>
  Array.from({ length: many }, (_, at) => ({
    ...{ id: `m${at + 1}`, sequence: at + 1, at, role: at % 2 === 0 ? ('user' as const) : ('assistant' as const) },
    content: `I prefer theme${at} in src/app${at}.ts. ${`We met in Berlin at harbour ${at} and talked. `.repeat(24)}`,
  }))

/** Counts how often others were let have their turn. */
const counter = () => {
  const counted = { pauses: 0, pause: async () => void counted.pauses++ }
  return counted
}

describe('work that may be interrupted', () => {
  it('pauses each time 32,768 characters are gone through', async () => {
    function* steps(...characters: number[]): Work<string> {
      for (const some of characters) yield some
      return 'done'
    }
    for (const [characters, pauses] of [
      [[], 0],
      [[32_767], 0],
      [[32_767, 1], 1],
      [[20_000, 20_000, 20_000, 20_000], 2],
      [[1_000_000, 1], 1],
    ] as const) {
      const counted = counter()
      expect(await paced(steps(...characters), counted.pause)).toBe('done')
      expect([characters, counted.pauses]).toEqual([characters, pauses])
      expect(finished(steps(...characters))).toBe('done')
    }
  })

  it('comes to the same as in one go: a summary, and important data', async () => {
    const messages = talk(200)
    const [summing, finding] = [counter(), counter()]
    expect(await paced(summarising(messages, undefined, { words: [100, 150] }), summing.pause)).toEqual(
      summarise(messages, undefined, { words: [100, 150] }),
    )
    expect(await paced(extracting(messages), finding.pause)).toEqual(extractFacts(messages))
    // Some 220,000 characters: looked through once for facts of the user's, five times for a summary.
    expect([summing.pauses >= 25, finding.pauses >= 3]).toEqual([true, true])
  })

  it('is at most a few messages at a time', () => {
    const steps: number[] = []
    const work = summarising(talk(200), undefined, { words: [100, 150] })
    for (let step = work.next(); step.done !== true; step = work.next()) steps.push(step.value)
    expect(Math.max(...steps)).toBeLessThan(3_000)
  })
})

describe('upkeep of much that was said at once', () => {
  const said = (content: string, at: number): Incoming => ({ role: at % 2 === 0 ? 'user' : 'assistant', content })

  it('lets others have their turn meanwhile, and is done in the end', async () => {
    const counted = counter()
    await using memory = await openMemory({ profile: 'summary', upkeep: upkeepWith({ pause: counted.pause }) })
    await memory.append(
      key,
      talk(300).map(({ content }, at) => said(content, at)),
    )
    await memory.upkeep.settled()
    const [summary] = await memory.upkeep.summaries(key)
    expect([summary?.covers[0], (summary?.covers[1] ?? 0) > 290]).toEqual([1, true])
    expect(counted.pauses).toBeGreaterThan(30)
  })

  it('takes in half a million characters at a time, and then the rest', async () => {
    await using memory = await openMemory({ profile: 'summary', upkeep: upkeepWith({ pause: async () => undefined }) })
    const long = `My bike is blue. ${'Well, well. '.repeat(4_000)}`
    await memory.append(key, [
      said('x'.repeat(600_000), 0),
      ...Array.from({ length: 25 }, (_, at) => said(long, at + 1)),
      said('So?', 26),
    ])
    await memory.upkeep.settled()
    const [summary] = await memory.upkeep.summaries(key)
    expect([summary?.covers, summary?.version]).toEqual([[1, 26], 4])
  })

  it('looks at 65,536 characters of a message, and tells where there was more', async () => {
    await using memory = await openMemory({ profile: 'summary', upkeep: upkeepWith({ pause: async () => undefined }) })
    const filler = 'so it is '.repeat(8_000)
    await memory.append(key, [
      said(`I prefer dark mode. ${filler} I prefer metric units.`, 0),
      said('Fine.', 1),
      said('And now?', 2),
      said('Go on.', 3),
    ])
    await memory.upkeep.settled()
    expect((await memory.upkeep.record(key)).important_data.user_preferences).toEqual({ theme: 'dark' })
    expect((await memory.upkeep.summaries(key)).map(({ lost }) => lost)).toEqual([[[1, 1]]])
  })
})
