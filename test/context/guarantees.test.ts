import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import type { Context } from '../../src/domain/ledger.ts'
import type { SearchIndex, Store, Tokenizer } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import type { ContextOptions } from '../../src/memory/contextBuilder.ts'
import { profiles } from '../../src/profiles/index.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { arbitraryProfile } from './arbitraryProfile.ts'
import { isCampaign, propertyTimeoutMs, seed } from './campaign.ts'
import { profileNames, type TestCase, testCases } from './cases.ts'
import {
  checkAnthropicBudget,
  checkBudget,
  checkEphemeral,
  checkMessageCap,
  checkNewestTurn,
  checkNoRepeats,
  checkOrder,
  checkReceipt,
  checkTurnOrder,
} from './contextChecks.ts'
import { createFixture, createMemory, dumpStore, type Fixture, key, serializeContext } from './harness.ts'
import { findAnthropicFaults, findOpenaiFaults } from './providerRules.ts'

const totalRuns = isCampaign ? 20_000 : 240

/** Runs a property on many cases and fails with the smallest case that has faults. */
async function assertNoFaults<T>(
  name: string,
  arbitrary: fc.Arbitrary<T>,
  numRuns: number,
  findFaults: (value: T) => Promise<readonly string[]>,
): Promise<void> {
  const ownSeed = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), seed)
  const property = fc.asyncProperty(arbitrary, async (value) => {
    const faults = await findFaults(value)
    if (faults.length > 0) throw new Error(faults.slice(0, 20).join('\n'))
  })
  const { failed, errorInstance, counterexample, counterexamplePath } = await fc.check(property, {
    numRuns,
    seed: ownSeed,
    // Ends shrinking before the test times out.
    interruptAfterTimeLimit: propertyTimeoutMs / 2,
    markInterruptAsFailure: true,
  })
  if (failed)
    expect.fail(
      `seed ${ownSeed}, path ${counterexamplePath}: ${errorInstance}\n${JSON.stringify(counterexample?.[0])?.slice(0, 5_000)}`,
    )
  console.log(`${name}: ${numRuns} cases, seed ${ownSeed}`)
}

const exactPromise = exactTokenizer('o200k_base')

type Outcome = { readonly context: Context } | { readonly error: MemoryError }

async function buildContext(
  { memory, options }: Pick<Fixture, 'memory' | 'options'>,
  budget = options.budget,
): Promise<Outcome> {
  try {
    return { context: await memory.context(key, { ...options, budget }) }
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return { error }
    throw error
  }
}

/** the context fits and contains the newest turn, or the error names the smallest budget that works. */
async function checkBudgetGuarantee(fixture: Fixture, exact: Tokenizer): Promise<string[]> {
  const { budget } = fixture.options
  const outcome = await buildContext(fixture)
  if ('context' in outcome)
    return [...checkBudget(outcome.context, exact, budget), ...checkNewestTurn(fixture, outcome.context)]
  const minimum = outcome.error.minimum ?? 0
  const faults = minimum > budget ? [] : [`a budget of ${budget} is rejected with the minimum ${minimum}`]
  const [atMinimum, below] = [await buildContext(fixture, minimum), await buildContext(fixture, minimum - 1 || 1)]
  if ('error' in atMinimum) faults.push(`the minimum ${minimum} is rejected`)
  else
    faults.push(
      ...checkBudget(atMinimum.context, exact, minimum),
      ...checkNewestTurn({ ...fixture, options: { ...fixture.options, budget: minimum } }, atMinimum.context),
    )
  return 'context' in below && minimum > 1 ? [...faults, `a budget below the minimum ${minimum} works`] : faults
}

/** Store that rejects all writes. */
function readOnly(store: Store & SearchIndex): Store & SearchIndex {
  const reject = () => Promise.reject(new Error('building a context wrote to the store'))
  return { ...store, commit: reject, erase: reject }
}

/** the receipt is complete, nothing is written, and the same request returns the same bytes, with and without caches. */
async function checkAccounting(fixture: Fixture, profile: Profile, tokenizer: Tokenizer): Promise<string[]> {
  const before = await dumpStore(fixture.store)
  const outcome = await buildContext({ ...fixture, memory: createMemory(readOnly(fixture.store), profile, tokenizer) })
  if ('error' in outcome) return []
  const faults = [...checkReceipt(fixture, outcome.context), ...checkTurnOrder(fixture, outcome.context)]
  const bytes = serializeContext(outcome.context)
  for (const repeated of [await buildContext(fixture), await buildContext(fixture)])
    if (!('context' in repeated) || serializeContext(repeated.context) !== bytes)
      faults.push('a repeated request returns other bytes')
  return before === (await dumpStore(fixture.store)) ? faults : [...faults, 'the store has changed']
}

/** both providers accept the context. */
async function checkProviders(fixture: Fixture, exact: Tokenizer): Promise<string[]> {
  const outcome = await buildContext(fixture)
  const options: ContextOptions & { readonly provider: 'anthropic' } = { ...fixture.options, provider: 'anthropic' }
  const anthropic = await fixture.memory.context(key, options).catch((error: unknown) => {
    if (!(error instanceof MemoryError) || error.code !== 'budget-too-small') throw error
  })
  return [
    ...('context' in outcome ? findOpenaiFaults(outcome.context.messages).map((fault) => `openai: ${fault}`) : []),
    ...(anthropic === undefined ? [] : findAnthropicFaults(anthropic).map((fault) => `anthropic: ${fault}`)),
    ...(anthropic === undefined ? [] : checkAnthropicBudget(anthropic, exact)),
  ]
}

async function checkAll(testCase: TestCase, profile: Profile): Promise<string[]> {
  const exact = await exactPromise
  const fixture = await createFixture(testCase, exact, profile)
  return [
    ...(await checkBudgetGuarantee(fixture, exact)),
    ...(await checkAccounting(fixture, profile, exact)),
    ...(await checkProviders(fixture, exact)),
  ]
}

describe('context', () => {
  for (const profile of profileNames) {
    verifies(
      ['X-01', 'X-02', 'X-03'],
      `with profile ${profile} and any history fits, contains the newest turn, lists every entry and is valid for providers`,
      () =>
        assertNoFaults(profile, testCases(profile), Math.ceil(totalRuns / profileNames.length), (testCase) =>
          checkAll(testCase, profiles[profile]),
        ),
      propertyTimeoutMs,
    )
  }

  verifies(
    ['X-01', 'X-02', 'X-03'],
    'with any valid profile gives the same guarantees',
    () =>
      assertNoFaults('any profile', fc.tuple(testCases(), arbitraryProfile), totalRuns / 4, ([testCase, profile]) =>
        checkAll(testCase, profile),
      ),
    propertyTimeoutMs,
  )

  verifies(
    'X-01',
    'with the upper-bound tokenizer fits by the exact count too',
    async () => {
      const exact = await exactPromise
      await assertNoFaults('upper bound', testCases(), totalRuns / 5, async (testCase) =>
        checkBudgetGuarantee(await createFixture(testCase, upperBound), exact),
      )
    },
    propertyTimeoutMs,
  )

  verifies(
    ['E-05', 'E-06', 'E-07', 'E-08', 'E-09'],
    'with profile ephemeral keeps 50 messages and the first, is in conversation order, shows the first and newest message, and repeats nothing',
    async () => {
      const exact = await exactPromise
      await assertNoFaults('ephemeral order', testCases('ephemeral'), totalRuns / 5, async (testCase) => {
        const fixture = await createFixture(testCase, exact)
        const outcome = await buildContext(fixture)
        if ('error' in outcome) return checkMessageCap(fixture, testCase)
        return [
          ...checkMessageCap(fixture, testCase),
          ...checkOrder(fixture, outcome.context),
          ...checkNoRepeats(fixture, outcome.context),
          ...checkEphemeral(fixture, outcome.context),
        ]
      })
    },
    propertyTimeoutMs,
  )

  verifies(
    'E-09',
    'with the newest turn as the query shows no message twice and returns the same bytes as without a query',
    async () => {
      const exact = await exactPromise
      const withQuery = testCases().map((testCase): TestCase => ({ ...testCase, query: 'newest' }))
      await assertNoFaults('asked again', withQuery, totalRuns / 10, async (testCase) => {
        const fixture = await createFixture(testCase, exact)
        const outcome = await buildContext(fixture)
        const withoutQuery = await buildContext(await createFixture({ ...testCase, query: undefined }, exact))
        if ('error' in outcome || 'error' in withoutQuery)
          return 'error' in outcome === 'error' in withoutQuery ? [] : ['only one of the two requests is rejected']
        return [
          ...checkNoRepeats(fixture, outcome.context),
          ...(serializeContext(outcome.context) === serializeContext(withoutQuery.context)
            ? []
            : ['the two requests return different bytes']),
        ]
      })
    },
    propertyTimeoutMs,
  )
})
