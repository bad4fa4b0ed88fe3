import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { measureMessage } from '../../src/context/measureMessage.ts'
import { parseKey } from '../../src/domain/key.ts'
import { openMemory } from '../../src/index.ts'
import { ScopeIndex } from '../../src/search/scopeIndex.ts'
import { clip, clipMiddle } from '../../src/text/clip.ts'
import { extractTerms, hasTerms } from '../../src/text/words.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileTexts } from '../server/stalls/hostileTexts.ts'

const tokenizer = await exactTokenizer('o200k_base')
/** The same counts without the shared counter of labels and line breaks. */
const plain = { ...tokenizer }
const message = (content: string) => ({ role: 'user', content, at: 0 }) as const
const longText = hostileTexts['random words']?.(150_000) ?? ''

const cpuMs = (work: () => unknown): number => {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

describe('long messages', () => {
  verifies(
    'R-03',
    'append › a long message and short ones at once › stores them in the order of the calls',
    async () => {
      await using memory = await openMemory()
      const texts = ['first', `${longText} second`, 'third', `${longText} fourth`, 'fifth']
      await Promise.all(texts.map((content) => memory.append('acme:ann', [{ role: 'user', content }])))
      expect((await memory.transcript('acme:ann')).map(({ content }) => content)).toEqual(texts)
    },
  )

  verifies('R-03', 'append › a long message › stores the same costs and masks as at once', async () => {
    await using memory = await openMemory()
    const content = `my password is hunter2hunter2. ${longText}`
    const [long] = await memory.append('acme:ann', [{ role: 'user', content }])
    expect(long?.content).toMatch(/^my password is ⟨secret:\d+⟩\. /)
    expect(long).toMatchObject(
      measureMessage(memory.tokenizer, { ...message(long?.content ?? ''), at: long?.at ?? 0 }, 4_096),
    )
  })

  verifies('R-03', 'append › while a long message is prepared › lets other work run', async () => {
    await using memory = await openMemory()
    await memory.append('acme:ann', [{ role: 'user', content: 'Hello' }])
    let turns = 0
    let isDone = false
    const countTurns = (): void => {
      turns++
      if (!isDone) setImmediate(countTurns)
    }
    setImmediate(countTurns)
    await memory.append('acme:bob', [{ role: 'user', content: hostileTexts['secret-like words']?.(500_000) ?? '' }])
    isDone = true
    expect(turns).toBeGreaterThan(2)
  })

  it('cost the same with and without the shared counts of their parts', () => {
    for (const [name, create] of Object.entries(hostileTexts))
      for (const size of [1_500, 8_000])
        expect([name, measureMessage(tokenizer, message(create(size)))]).toEqual([
          name,
          measureMessage(plain, message(create(size))),
        ])
  })

  it('have the same number of terms however much of them is read', () => {
    const parts = fc.constantFrom('the', 'Cat', ' ', '\n', 'user.name', '猫', '-', 'x'.repeat(900), ' '.repeat(500))
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 30 }), fc.integer({ min: 1, max: 6 }), (words, count) => {
        const text = words.join('')
        expect(hasTerms(text, count)).toBe(extractTerms(text).length >= count)
      }),
    )
  })

  it('are cut in constant time, whatever they consist of', () => {
    for (const name of ['combining marks', 'zalgo', 'emoji sequences', 'lone surrogates', 'unbroken run']) {
      const text = hostileTexts[name]?.(1_000_000) ?? ''
      expect([name, cpuMs(() => [clip(text, 2_000), clipMiddle(text, 1_000, 1_000)]) < 100]).toEqual([name, true])
    }
  })

  it('are indexed in steps of at most a passage', () => {
    const index = new ScopeIndex()
    const steps = [
      ...index.addMessagesInSteps(parseKey('acme:ann'), [
        { sequence: 1, at: 0, role: 'user', content: longText, lineTokens: 1 },
      ]),
    ]
    expect([Math.max(...steps) < 2_000, steps.length > 100]).toEqual([true, true])
  })
})
