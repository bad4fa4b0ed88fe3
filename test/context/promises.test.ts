import fc from 'fast-check'
import { expect } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import type { Context } from '../../src/domain/ledger.ts'
import type { Index, Store, Tokenizer } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import type { ContextOptions } from '../../src/memory/contextBuilder.ts'
import { profiles } from '../../src/profiles/index.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { anyProfile } from './anyProfile.ts'
import { campaign, patience, seed } from './campaign.ts'
import {
  anthropicBudgetFaults,
  budgetFaults,
  capFaults,
  ephemeralFaults,
  newestFaults,
  orderFaults,
  receiptFaults,
  repeatFaults,
  turnFaults,
} from './checks.ts'
import { type Case, cases, profileNames } from './histories.ts'
import { bytesOf, heldBy, key, memoryOn, type Stage, stage } from './stage.ts'
import { anthropicFaults, openaiFaults } from './validity.ts'

const total = campaign ? 20_000 : 2_000

/** Tries a promise on many cases; a promise is broken when a case has any fault. The smallest such case is shown. */
async function hold<T>(
  name: string,
  scenes: fc.Arbitrary<T>,
  count: number,
  faultsOf: (scene: T) => Promise<readonly string[]>,
): Promise<void> {
  const began = performance.now()
  const own = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), seed)
  const property = fc.asyncProperty(scenes, async (scene) => {
    const faults = await faultsOf(scene)
    if (faults.length > 0) throw new Error(faults.slice(0, 20).join('\n'))
  })
  const { failed, errorInstance, counterexample, counterexamplePath } = await fc.check(property, {
    numRuns: count,
    seed: own,
    // a fault is made smaller for as long as this; a promise that cannot be tried in this time is not proved
    interruptAfterTimeLimit: patience / 2,
    markInterruptAsFailure: true,
  })
  if (failed)
    expect.fail(
      `seed ${own}, path ${counterexamplePath}: ${errorInstance}\n${JSON.stringify(counterexample?.[0])?.slice(0, 5_000)}`,
    )
  console.log(`${name}: ${count} cases, seed ${own}, ${Math.round(performance.now() - began)} ms`)
}

const exactly = exactTokenizer('o200k_base')

type Outcome = { readonly context: Context } | { readonly refusal: MemoryError }

async function ask({ memory, options }: Pick<Stage, 'memory' | 'options'>, budget = options.budget): Promise<Outcome> {
  try {
    return { context: await memory.context(key, { ...options, budget }) }
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return { refusal: error }
    throw error
  }
}

/** it fits and holds the newest turn, or the error names the smallest budget that would do. */
async function guaranteeFaults(set: Stage, exact: Tokenizer): Promise<string[]> {
  const { budget } = set.options
  const outcome = await ask(set)
  if ('context' in outcome)
    return [...budgetFaults(outcome.context, exact, budget), ...newestFaults(set, outcome.context)]
  const minimum = outcome.refusal.minimum ?? 0
  const faults = minimum > budget ? [] : [`a budget of ${budget} is refused, and ${minimum} is named`]
  const [enough, less] = [await ask(set, minimum), await ask(set, minimum - 1 || 1)]
  if ('refusal' in enough) faults.push(`the minimum ${minimum} is refused`)
  else
    faults.push(
      ...budgetFaults(enough.context, exact, minimum),
      ...newestFaults({ ...set, options: { ...set.options, budget: minimum } }, enough.context),
    )
  return 'context' in less && minimum > 1 ? [...faults, `less than the minimum ${minimum} does`] : faults
}

/** A store that answers and takes nothing. */
function readOnly(store: Store & Index): Store & Index {
  const refuse = () => Promise.reject(new Error('building a context wrote to the store'))
  return { ...store, commit: refuse, erase: refuse }
}

/** every entry once, sums right, nothing written, and the same bytes again, from what is remembered and from the store alone. */
async function accountFaults(set: Stage, profile: Profile, tokenizer: Tokenizer): Promise<string[]> {
  const before = await heldBy(set.store)
  const outcome = await ask({ ...set, memory: memoryOn(readOnly(set.store), profile, tokenizer) })
  if ('refusal' in outcome) return []
  const faults = [...receiptFaults(set, outcome.context), ...turnFaults(set, outcome.context)]
  const bytes = bytesOf(outcome.context)
  for (const again of [await ask(set), await ask(set)])
    if (!('context' in again) || bytesOf(again.context) !== bytes) faults.push('another time, other bytes')
  return before === (await heldBy(set.store)) ? faults : [...faults, 'the store has changed']
}

/** both providers take it. */
async function provisionFaults(set: Stage, exact: Tokenizer): Promise<string[]> {
  const outcome = await ask(set)
  const options: ContextOptions & { readonly provider: 'anthropic' } = { ...set.options, provider: 'anthropic' }
  const other = await set.memory.context(key, options).catch((error: unknown) => {
    if (!(error instanceof MemoryError) || error.code !== 'budget-too-small') throw error
  })
  return [
    ...('context' in outcome ? openaiFaults(outcome.context.messages).map((fault) => `openai: ${fault}`) : []),
    ...(other === undefined ? [] : anthropicFaults(other).map((fault) => `anthropic: ${fault}`)),
    ...(other === undefined ? [] : anthropicBudgetFaults(other, exact)),
  ]
}

/** All three promises about one case. */
async function brokenPromises(scene: Case, profile: Profile): Promise<string[]> {
  const exact = await exactly
  const set = await stage(scene, exact, profile)
  return [
    ...(await guaranteeFaults(set, exact)),
    ...(await accountFaults(set, profile, exact)),
    ...(await provisionFaults(set, exact)),
  ]
}

for (const profile of profileNames) {
  verifies(
    ['X-01', 'X-02', 'X-03'],
    `${profile}: whatever was said, the context fits, holds the newest turn, accounts for everything and is taken by providers`,
    () =>
      hold(profile, cases(profile), Math.ceil(total / profileNames.length), (scene) =>
        brokenPromises(scene, profiles[profile]),
      ),
    patience,
  )
}

verifies(
  ['X-01', 'X-02', 'X-03'],
  'so it is with any other profile the engine takes',
  () =>
    hold('any profile', fc.tuple(cases(), anyProfile), total / 4, ([scene, profile]) => brokenPromises(scene, profile)),
  patience,
)

verifies(
  'X-01',
  'counted by the bound a browser has, the context fits by the exact count too',
  async () => {
    const exact = await exactly
    await hold('upper bound', cases(), total / 5, async (scene) =>
      guaranteeFaults(await stage(scene, upperBound), exact),
    )
  },
  patience,
)

verifies(
  ['E-05', 'E-06', 'E-07', 'E-08', 'E-09'],
  'ephemeral keeps 50 messages and the first, reads in the order of the conversation, leaves out neither its first nor its newest message, and says nothing twice',
  async () => {
    const exact = await exactly
    await hold('ephemeral order', cases('ephemeral'), total / 5, async (scene) => {
      const set = await stage(scene, exact)
      const outcome = await ask(set)
      if ('refusal' in outcome) return capFaults(set, scene)
      return [
        ...capFaults(set, scene),
        ...orderFaults(set, outcome.context),
        ...repeatFaults(set, outcome.context),
        ...ephemeralFaults(set, outcome.context),
      ]
    })
  },
  patience,
)

verifies(
  'E-09',
  'no profile shows a message twice, nor a question that is asked again',
  async () => {
    const exact = await exactly
    const again = cases().map((scene): Case => ({ ...scene, query: 'newest' }))
    await hold('asked again', again, total / 10, async (scene) => {
      const set = await stage(scene, exact)
      const outcome = await ask(set)
      const plain = await ask(await stage({ ...scene, query: undefined }, exact))
      if ('refusal' in outcome || 'refusal' in plain)
        return 'refusal' in outcome === 'refusal' in plain ? [] : ['asked again, it is refused or not']
      return [
        ...repeatFaults(set, outcome.context),
        ...(bytesOf(outcome.context) === bytesOf(plain.context) ? [] : ['asked again, other bytes']),
      ]
    })
  },
  patience,
)
