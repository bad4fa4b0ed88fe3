import fc from 'fast-check'
import { it } from 'vitest'
import { exactTokenizer } from '../../src/models/tokenizers.ts'
import { cases, type Case } from './histories.ts'
import { key, stage } from './stage.ts'
import { budgetFaults, newestFaults, orderFaults, receiptFaults, repeatFaults } from './checks.ts'
import { anthropicFaults, openaiFaults } from './validity.ts'
import { MemoryError } from '../../src/domain/error.ts'
const want = new RegExp(process.env.WANT ?? '.')
it('shrinks', async () => {
  const exact = await exactTokenizer('o200k_base')
  const r = await fc.check(fc.asyncProperty(cases(process.env.PROFILE as never), async (scene: Case) => {
    const set = await stage(scene, exact)
    const faults: string[] = []
    let out = ''
    try {
      const context = await set.memory.context(key, set.options)
      out = JSON.stringify(context, null, 1)
      faults.push(...budgetFaults(context, exact, scene.budget), ...newestFaults(set, context), ...receiptFaults(set, context), ...repeatFaults(set, context), ...orderFaults(set, context).filter(() => scene.profile === 'ephemeral'), ...openaiFaults(context.messages))
    } catch (error) {
      if (!(error instanceof MemoryError) || error.code !== 'budget-too-small') throw error
        const min = error.minimum as number
        const at = (budget: number) => set.memory.context(key, { ...set.options, budget }).then(() => 'ok', (e) => e.message)
        if (!(min > scene.budget)) faults.push('X1m minimum not larger')
        const m = await at(min)
        if (m !== 'ok') faults.push('minimum does not do ' + error.message + '|' + m)
        if (await at(min - 1) === 'ok') faults.push('less than minimum does ' + error.message)
    }
    try {
      faults.push(...anthropicFaults(await set.memory.context(key, { ...set.options, provider: 'anthropic' })))
    } catch (error) {
      if (!(error instanceof MemoryError) || error.code !== 'budget-too-small') throw error
    }
    const hit = faults.filter((f) => want.test(f))
    if (hit.length > 0) throw new Error(hit.join('\n') + '\n' + out + '\n' + JSON.stringify(set.transcript))
  }), { numRuns: Number(process.env.RUNS ?? 500), seed: Number(process.env.SEED ?? 1), interruptAfterTimeLimit: 60000, markInterruptAsFailure: false })
  console.log('runs', r.numRuns, 'shrinks', r.numShrinks, (JSON.stringify(r.counterexample) ?? '').slice(0, 6000), String((r as any).errorInstance?.message ?? (r as any).error ?? '').slice(0, 6000))
}, 100_000)
