import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LedgerLine, type MemoryOptions, openMemory, profiles } from '../../src/index.ts'
import type { ProfileName } from '../../src/profiles/index.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { isCampaign } from './campaign.ts'

const key = 'acme:ann'
const topics = ['garden', 'invoice', 'holiday', 'engine', 'recipe', 'orchestra', 'marathon', 'library']
/** `#` is replaced by a number of its own: what is said twice is shown once. */
const sentence = fc
  .tuple(fc.constantFrom(...topics), fc.constantFrom(...topics))
  .map(([a, b]) => `The ${a} and the ${b} came up again on page #.`)
/** Texts of one sentence up to some 2,000 tokens. */
const text = fc.oneof(
  sentence,
  fc.array(sentence, { minLength: 3, maxLength: 12 }).map((list) => list.join(' ')),
  fc.array(sentence, { minLength: 40, maxLength: 140 }).map((list) => list.join('\n')),
)
const conversation = fc.array(text, { minLength: 4, maxLength: 60 }).map((texts) => {
  let page = 0
  return texts.map((each) => each.replace(/#/g, () => String(++page)))
})
const questions = ['What about the garden?', 'And the marathon of the orchestra?', 'ok', 'zzyzx?']

/** Profiles whose documents prescribe the short form of older messages: the budget counts once a message is left out. */
const prescribedForms: readonly string[] = ['ephemeral', 'agent']

async function openWith(texts: readonly string[], options: MemoryOptions = {}) {
  const memory = await openMemory(options)
  await memory.append(
    key,
    texts.map((content, at) => ({
      role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
      content,
      at: at * 60_000,
    })),
  )
  if (options.upkeep !== false) await memory.upkeep.whenIdle()
  return memory
}

describe('the budget', () => {
  for (const profile of Object.keys(profiles) as ProfileName[])
    verifies(
      'K-02',
      `of any conversation and question › in ${profile} › is used to 90 % of what there is, and never exceeded`,
      async () => {
        const exact = await tokenizerNamed('exact')
        const property = fc.asyncProperty(
          conversation,
          fc.constantFrom(...questions, undefined),
          fc.constantFrom(500, 1_000, 3_000, 8_000, 12_000, 20_000),
          async (texts, query, budget) => {
            await using memory = await openWith(texts, { profile })
            const { text, ledger } = await memory.context(key, query === undefined ? { budget } : { query, budget })
            const isUnshown = ({ verdict, band }: LedgerLine) =>
              (verdict === 'dropped' || verdict === 'covered') && band === 'none'
            expect(ledger.spent).toBeLessThanOrEqual(budget)
            expect(exact.count(text)).toBeLessThanOrEqual(budget)
            if (prescribedForms.includes(profile) && !ledger.lines.some(isUnshown)) return
            // A compaction of this profile makes the prompt small on purpose (C-03).
            if (profile === 'summary' && budget <= profiles.summary.budget) return
            expect(ledger.spent).toBeGreaterThanOrEqual(0.9 * Math.min(budget, ledger.history))
          },
        )
        await fc.assert(property, { numRuns: isCampaign ? 30 : 12 })
      },
      120_000,
    )

  it('left by messages that match the question › goes to others, which the ledger says', async () => {
    const texts = Array.from(
      { length: 400 },
      (_, at) => `Message ${at} is about nothing in particular, nothing at all.`,
    )
    await using memory = await openWith([...texts, 'The dentist is called Moreau.', ...texts.slice(0, 20)], {
      upkeep: false,
    })
    const { ledger, text } = await memory.context(key, { query: 'Who is the dentist?', budget: 2_000 })
    const reasons = ledger.lines.filter(({ band }) => band === 'recalled').map(({ why }) => why)
    expect(text).toContain('Moreau')
    expect(new Set(reasons)).toEqual(
      new Set([
        'relevant to the question',
        'close to messages that are relevant to the question',
        'fills the rest of the budget',
      ]),
    )
  })
})
