import { describe, expect } from 'vitest'
import { createUpkeep, openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'

/** A memory with a summary of three messages, of which two are long, and a function that counts the pauses of work. */
async function openWithSummary() {
  let pauses = 0
  const pause = (): undefined => {
    pauses++
  }
  const memory = await openMemory({ store: 'ram:', profile: 'summary', upkeep: createUpkeep({ pause }) })
  const long = Array.from({ length: 400 }, (_, at) => `Tram ${at} goes to src/line${at}.ts on ${1 + (at % 28)} May.`)
  const contents = ['My cat is called Tom.', long.join(' '), long.join('\n'), 'Thanks.', 'Bye.']
  await memory.append(
    key,
    contents.map((content) => ({ role: 'user' as const, content })),
  )
  await memory.upkeep.run(key, { summarise: true })
  const countPauses = async (work: () => Promise<unknown>): Promise<number> => {
    const before = pauses
    await work()
    return pauses - before
  }
  return { memory, countPauses }
}

describe('a summary of long messages', () => {
  verifies('R-03', 'is rebuilt after a message was forgotten › pauses', async () => {
    const { memory, countPauses } = await openWithSummary()
    expect(await countPauses(() => memory.forget({ key, messageId: 'm1' }))).toBeGreaterThan(100)
    const [summary] = await memory.upkeep.summaries(key)
    expect([summary?.by, summary?.text.includes('Tom')]).toEqual(['builtin', false])
    await memory.close()
  })

  verifies('R-03', 'is compared with what it omits › pauses', async () => {
    const { memory, countPauses } = await openWithSummary()
    expect(await countPauses(() => memory.upkeep.losses(key))).toBeGreaterThan(50)
    await memory.close()
  })
})
