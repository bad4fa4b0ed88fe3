import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Difference, Trace } from '../../src/context/replay.ts'
import type { Message } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import type { Verdict } from '../../src/domain/ledger.ts'
import { profiles } from '../../src/profiles/index.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { isCampaign, propertyTimeoutMs, seed } from './campaign.ts'
import { profileNames, testCases } from './cases.ts'
import { linesByEntry } from './contextChecks.ts'
import { createFixture, createMemory, key, serializeContext } from './harness.ts'

const numRuns = isCampaign ? 5_000 : 60
const casesWithOtherProfile = fc.tuple(testCases(), fc.constantFrom(...profileNames))
const roundTrip = (trace: Trace): Trace => JSON.parse(JSON.stringify(trace)) as Trace

/** Returns undefined if the budget is too small. */
async function unlessTooSmall<T>(make: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await make()
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return undefined
    throw error
  }
}

/** Expands differences to one line per message. */
function expandDifferences(differences: readonly Difference[], transcript: readonly Message[]): string[] {
  return differences.flatMap(({ entries: [first, last], count, was, is }) => {
    const ids = transcript.map((message) => message.id)
    const run = ids.slice(ids.indexOf(first), ids.indexOf(last) + 1)
    expect(run.length).toBe(count)
    return run.map((id) => describeChange(id, was, is))
  })
}

const describeChange = (id: string, before: Verdict | undefined, after: Verdict | undefined): string =>
  `${id} was ${before} and is ${after}`

describe('replay', () => {
  verifies(
    'X-02',
    'with the same profile and a trace stored as JSON returns the same bytes and no differences',
    async () => {
      const exact = await exactTokenizer('o200k_base')
      const property = fc.asyncProperty(testCases(), async (testCase) => {
        const { memory, options } = await createFixture(testCase, exact)
        const context = await unlessTooSmall(() => memory.context(key, options))
        const trace = await unlessTooSmall(() => memory.trace(key, options))
        expect(trace?.ledger).toEqual(context?.ledger)
        if (trace === undefined || context === undefined) return
        for (const input of [trace, roundTrip(trace)]) {
          const replayed = memory.replay(input, profiles[testCase.profile])
          expect(replayed.differences).toEqual([])
          expect(serializeContext(replayed)).toBe(serializeContext(context))
        }
      })
      await fc.assert(property, { numRuns, seed })
    },
    propertyTimeoutMs,
  )

  verifies(
    'X-02',
    'with another profile returns the context of that profile and the messages whose verdicts differ',
    async () => {
      const exact = await exactTokenizer('o200k_base')
      const property = fc.asyncProperty(casesWithOtherProfile, async ([drawn, other]) => {
        // A trace contains only the entries that its profile may see.
        const testCase = profiles[drawn.profile].scopes.includes('scope') ? drawn : { ...drawn, knowledge: [] }
        const { memory, store, options, transcript, derived } = await createFixture(testCase, exact)
        const trace = await unlessTooSmall(() => memory.trace(key, options))
        if (trace === undefined) return
        const replayed = await unlessTooSmall(() => memory.replay(roundTrip(trace), profiles[other]))
        const framing = options.framing ?? profiles[testCase.profile].framing
        const context = await unlessTooSmall(() =>
          createMemory(store, profiles[other], exact).context(key, { ...options, framing }),
        )
        expect(replayed && serializeContext(replayed)).toBe(context && serializeContext(context))
        if (replayed === undefined) return
        const before = linesByEntry(trace.ledger, transcript, derived).lines
        const after = linesByEntry(replayed.ledger, transcript, [...testCase.derived, ...testCase.knowledge]).lines
        const expected = transcript.flatMap(({ id }) => {
          const [was, is] = [before.get(id)?.verdict, after.get(id)?.verdict]
          return was === is ? [] : [describeChange(id, was, is)]
        })
        expect(expandDifferences(replayed.differences, transcript)).toEqual(expected)
      })
      await fc.assert(property, { numRuns, seed })
    },
    propertyTimeoutMs,
  )
})
