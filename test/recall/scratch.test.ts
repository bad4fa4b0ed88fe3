import fc from 'fast-check'
import { it } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import { exactTokenizer } from '../../src/models/tokenizers.ts'
import { cases, profileNames } from './histories.ts'
import { bytesOf, heldBy, key, stage } from './stage.ts'
import { budgetFaults, newestFaults, orderFaults, receiptFaults, repeatFaults } from './checks.ts'
import { anthropicFaults, openaiFaults } from './validity.ts'

const runs = Number(process.env.RUNS ?? 300)
const seed = Number(process.env.SEED ?? 1)
for (const profile of profileNames) it(profile, async () => {
  const exact = await exactTokenizer('o200k_base')
  const time = { stage: 0, context: 0, check: 0, total: performance.now() }
  const tally = new Map<string, [number, string]>()
  let refused = 0
  for (const scene of fc.sample(cases(profile), { numRuns: runs, seed })) {
    const t0 = performance.now()
    const set = await stage(scene, exact)
    const t1 = performance.now()
    time.stage += t1 - t0
    const faults: string[] = []
    try {
      const context = await set.memory.context(key, set.options)
      time.context += performance.now() - t1
      const t2 = performance.now()
      faults.push(...budgetFaults(context, exact, scene.budget).map((f) => `X1b ${f}`))
      faults.push(...newestFaults(set, context).map((f) => `X1n ${f}`))
      faults.push(...receiptFaults(set, context).map((f) => `X2 ${f}`))
      faults.push(...repeatFaults(set, context).map((f) => `E9 ${f}`))
      if (profile === 'ephemeral') faults.push(...orderFaults(set, context).map((f) => `E6 ${f}`))
      faults.push(...openaiFaults(context.messages).map((f) => `X3o ${f}`))
      if (bytesOf(context) !== bytesOf(await set.memory.context(key, set.options))) faults.push('X2 not deterministic')
      time.check += performance.now() - t2
    } catch (error) {
      if (!(error instanceof MemoryError) || error.code !== 'budget-too-small') { faults.push('threw ' + (error as Error).stack); }
      else {
        refused++
        const min = error.minimum as number
        const at = (budget: number) => set.memory.context(key, { ...set.options, budget }).then(() => true, () => false)
        if (!(min > scene.budget)) faults.push('X1m minimum not larger')
        if (!await at(min)) faults.push('X1m minimum does not do')
        if (await at(min - 1)) faults.push('X1m less than minimum does')
      }
    }
    try {
      const a = await set.memory.context(key, { ...set.options, provider: 'anthropic' })
      faults.push(...anthropicFaults(a).map((f) => `X3a ${f}`))
    } catch (error) {
      if (!(error instanceof MemoryError) || error.code !== 'budget-too-small') { faults.push('threw ' + (error as Error).stack); }
    }
    for (const fault of new Set(faults.map((f) => f.replace(/"(?:[^"\\]|\\.)*"|[mdk]?[0-9]+/g, '#').slice(0,160)))) {
      const [n, first] = tally.get(fault) ?? [0, faults.find((f)=>f.replace(/"(?:[^"\\]|\\.)*"|[mdk]?[0-9]+/g, '#').slice(0,160)===fault)!.slice(0,300)]
      tally.set(fault, [n + 1, first])
    }
  }
  time.total = performance.now() - time.total
  console.log(profile, 'refused', refused, JSON.stringify(time), [...tally].map(([k, [n, first]]) => `\n  ${n}× ${first}`).join(''))
}, 600_000)
