import fc from 'fast-check'
import { expect } from 'vitest'
import type { Difference, Trace } from '../../src/context/replay.ts'
import type { Message } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import type { Verdict } from '../../src/domain/ledger.ts'
import { profiles } from '../../src/profiles/index.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { campaign, patience, seed } from './campaign.ts'
import { fatesOf } from './checks.ts'
import { cases, profileNames } from './histories.ts'
import { bytesOf, key, memoryOn, stage } from './stage.ts'

const runs = campaign ? 5_000 : 500
const pairs = fc.tuple(cases(), fc.constantFrom(...profileNames))
const kept = (trace: Trace): Trace => JSON.parse(JSON.stringify(trace)) as Trace

/** What it gives, or that the budget is too small for it. */
async function unlessRefused<T>(make: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await make()
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return undefined
    throw error
  }
}

/** Differences, message by message. */
function spread(differences: readonly Difference[], transcript: readonly Message[]): string[] {
  return differences.flatMap(({ entries: [first, last], count, was, is }) => {
    const ids = transcript.map((message) => message.id)
    const run = ids.slice(ids.indexOf(first), ids.indexOf(last) + 1)
    expect(run.length).toBe(count)
    return run.map((id) => changed(id, was, is))
  })
}

const changed = (id: string, was: Verdict | undefined, is: Verdict | undefined): string =>
  `${id} was ${was} and is ${is}`

verifies(
  'X-02',
  'a trace, kept as JSON and replayed under its own profile, gives the same bytes and no difference',
  async () => {
    const exact = await exactTokenizer('o200k_base')
    const property = fc.asyncProperty(cases(), async (scene) => {
      const { memory, options } = await stage(scene, exact)
      const context = await unlessRefused(() => memory.context(key, options))
      const trace = await unlessRefused(() => memory.trace(key, options))
      expect(trace?.ledger).toEqual(context?.ledger)
      if (trace === undefined || context === undefined) return
      for (const one of [trace, kept(trace)]) {
        const replayed = memory.replay(one, profiles[scene.profile])
        expect(replayed.differences).toEqual([])
        expect(bytesOf(replayed)).toBe(bytesOf(context))
      }
    })
    await fc.assert(property, { numRuns: runs, seed })
  },
  patience,
)

verifies(
  'X-02',
  'replayed under another profile, a trace gives what that profile shows, and names exactly the messages that fare differently',
  async () => {
    const exact = await exactTokenizer('o200k_base')
    const property = fc.asyncProperty(pairs, async ([drawn, other]) => {
      // what a profile does not see is not in its trace either
      const scene = profiles[drawn.profile].sees.includes('scope') ? drawn : { ...drawn, knowledge: [] }
      const { memory, store, options, transcript, derived } = await stage(scene, exact)
      const trace = await unlessRefused(() => memory.trace(key, options))
      if (trace === undefined) return
      const replayed = await unlessRefused(() => memory.replay(kept(trace), profiles[other]))
      const framing = options.framing ?? profiles[scene.profile].framing
      const shown = await unlessRefused(() =>
        memoryOn(store, profiles[other], exact).context(key, { ...options, framing }),
      )
      expect(replayed && bytesOf(replayed)).toBe(shown && bytesOf(shown))
      if (replayed === undefined) return
      const was = fatesOf(trace.ledger, transcript, derived).fates
      const is = fatesOf(replayed.ledger, transcript, [...scene.derived, ...scene.knowledge]).fates
      const expected = transcript.flatMap(({ id }) => {
        const [before, after] = [was.get(id)?.verdict, is.get(id)?.verdict]
        return before === after ? [] : [changed(id, before, after)]
      })
      expect(spread(replayed.differences, transcript)).toEqual(expected)
    })
    await fc.assert(property, { numRuns: runs, seed })
  },
  patience,
)
