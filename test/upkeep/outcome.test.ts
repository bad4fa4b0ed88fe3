import { describe, expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { runInSlices } from '../../src/domain/work.ts'
import { openMemory, ramStore } from '../../src/index.ts'
import { createOutcomeApplier, type StepOutcome } from '../../src/upkeep/outcome.ts'
import { revise } from '../../src/upkeep/revise.ts'
import { verifies } from '../requirements/verifies.ts'

const key = parseKey('acme:ann')

/** A session with one message, and an outcome with many facts of it. */
async function openSession(count: number) {
  const store = ramStore()
  const memory = await openMemory({ store, upkeep: false })
  await memory.append(key, [{ role: 'user', content: 'hello' }])
  const facts = Array.from({ length: count }, (_, at): StepOutcome['facts'][number] => ({
    ...{ field: 'key_decisions', key: '', value: `We use box ${at}`, importance: 5, at },
    source: { message: 'm1', span: [20 * at, 20 * at + 9] },
  }))
  const { epoch } = await store.readHead(key, 0)
  const outcome: StepOutcome = { basis: { epoch, messages: [1], summaries: [] }, put: [], drop: [], facts, notes: {} }
  return { store, memory, outcome, apply: createOutcomeApplier(outcome) }
}

describe('an outcome with many facts', () => {
  verifies('C-12', 'in a session that gets a message during every pause › is merged once and committed', async () => {
    const { store, memory, apply } = await openSession(2_000)
    let attempts = 0
    let pauses = 0
    const pause = async (): Promise<void> => {
      if (++pauses < 100) await memory.append(key, [{ role: 'user', content: 'ok' }])
    }
    const revised = await revise(store, key, (head) => {
      attempts++
      return runInSlices(apply(head, 1), pause)
    })
    expect([attempts, pauses < 100, revised?.put.length]).toEqual([2, true, 401])
  })

  verifies('C-12', 'in a session that gets another fact meanwhile › is merged with that', async () => {
    const { store, outcome, apply } = await openSession(300)
    const [other] = outcome.facts.map((fact) => ({ ...fact, importance: 9 }))
    if (other === undefined) throw new Error('no fact')
    const applyOther = createOutcomeApplier({ ...outcome, facts: [other] })
    let pauses = 0
    const pause = async (): Promise<void> => {
      if (pauses++ === 0) await revise(store, key, (head) => runInSlices(applyOther(head, 1), async () => undefined))
    }
    await revise(store, key, (head) => runInSlices(apply(head, 1), pause))
    const { derived } = await store.readHead(key, 0)
    const facts = derived.filter((entry) => entry.kind === 'fact')
    expect([facts.length, facts.filter(({ value }) => value === other.value).length]).toEqual([300, 1])
  })
})
