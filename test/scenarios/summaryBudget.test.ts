import { describe, expect } from 'vitest'
import type { Summary } from '../../src/domain/entry.ts'
import { createUpkeep, openMemory, profiles } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { appendAlternating, countWords } from './sampleTurns.ts'
import { openRecordingMemory, runTurnsUntil, startUpkeepModel } from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const hour = 3_600_000
const start = Date.UTC(2026, 2, 2, 9)

const ticket = (place: number): string =>
  `Ticket TCK-${1_000 + place} about service-${place} was closed by Ann. ${'plain words follow here and there. '.repeat(20)}`

describe('the summary of a thread whose budget is too small to show it', () => {
  const small = { ...profiles.thread, budget: 8_000 }

  for (const by of ['a model', 'no model'] as const)
    verifies('C-07', `${by} › still grows from version to version`, async () => {
      await using upkeepModel = await startUpkeepModel()
      await using memory = await openRecordingMemory({
        profile: small,
        store: 'ram:',
        ...(by === 'a model' ? { model: upkeepModel.model } : {}),
      })
      const ranges = [
        [100, 150],
        [200, 250],
        [300, 350],
      ] as const
      let turn = 0
      for (const [place, [minWords, maxWords]] of ranges.entries()) {
        turn += await runTurnsUntil(memory, key, place + 1, turn)
        const [summary] = await memory.upkeep.summaries(key)
        const words = countWords(summary?.text ?? '')
        expect([summary?.version, summary?.by === 'builtin', words >= minWords, words <= maxWords]).toEqual([
          place + 1,
          by === 'no model',
          true,
          true,
        ])
      }
      expect(memory.health().degraded).toEqual([])
    })

  verifies('C-07', 'after the budget was reduced › is not replaced by a shorter one', async () => {
    const store = `sqlite:${fresh()}`
    const summaryAt = async (budget: number, count: number): Promise<Summary | undefined> => {
      await using memory = await openMemory({ store, profile: { ...profiles.thread, budget } })
      await appendAlternating(memory, count, ticket)
      return (await memory.upkeep.summaries(key))[0]
    }
    const large = await summaryAt(16_000, 140)
    const later = await summaryAt(8_000, 40)
    expect(later?.version).toBeGreaterThan(large?.version ?? Number.NaN)
    expect(countWords(later?.text ?? '')).toBeGreaterThan(countWords(large?.text ?? ''))
    expect(later?.text).toContain('Ticket TCK-1000 about service-0 was closed by Ann.')
  })
})

describe('summaries under a tight budget', () => {
  verifies('T-04', 'after twelve hours of long messages › are all shown, shortened', async () => {
    let now = start
    await using memory = await openMemory({ profile: 'support', clock: () => now })
    for (let town = 0; town < 12; town++) {
      const order = (place: number, item: number): string =>
        `Order ORD-${town}${place}${item}77 of customer ${1_000 * town + 20 * place + item} goes to Town ${town}.`
      await appendAlternating(memory, 20, (place) =>
        Array.from({ length: 16 }, (_, item) => order(place, item)).join(' '),
      )
      now += hour
    }
    const summaries = await memory.upkeep.summaries(key)
    const { text, ledger } = await memory.context(key)
    const [memoryPart = ''] = text.split('</memory>')
    expect(summaries.map(({ covers }) => covers)).toEqual(
      Array.from({ length: 10 }, (_, place) => [20 * place + 1, 20 * place + 20]),
    )
    const towns = summaries.flatMap((_, town) =>
      new RegExp(`Order ORD-${town}\\d+77 of customer \\d+ goes to Town ${town}\\.`).test(memoryPart) ? [town] : [],
    )
    expect(towns).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    const earlier = ledger.lines.filter(({ band }) => band === 'earlier')
    expect(earlier.every(({ verdict }) => verdict === 'shortened')).toBe(true)
    expect(earlier.reduce((sum, { count }) => sum + count, 0)).toBe(10)
  })

  verifies(['C-07', 'X-01'], 'are shown at every budget that fits their sentences', async () => {
    // Upkeep without a delay, so that the result does not depend on speed.
    await using memory = await openMemory({ profile: 'summary', upkeep: createUpkeep() })
    const lines = '\nplain words follow here and there'.repeat(3)
    await appendAlternating(
      memory,
      120,
      (place) =>
        `Ticket TCK-${1_000 + place} about service-${place} was closed by Ann in Rotterdam\nInvoice INV-${5_000 + place} is open${lines}`,
    )
    const shown = new Map<string, number>()
    for (let budget = 1_400; budget < 2_200; budget++) {
      const { ledger } = await memory.context(key, { budget })
      const line = ledger.lines.find(({ entries }) => entries?.[0] === 'summary')
      const verdict = line?.verdict === 'dropped' && budget - ledger.spent <= 60 ? 'no room' : `${line?.verdict}`
      shown.set(verdict, (shown.get(verdict) ?? 0) + 1)
    }
    expect([shown.has('shortened'), shown.has('whole'), shown.get('dropped')]).toEqual([true, true, undefined])
  })
})
