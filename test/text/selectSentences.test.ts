import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { selectSentences } from '../../src/text/selectSentences.ts'
import { splitSentences } from '../../src/text/sentences.ts'
import { verifies } from '../requirements/verifies.ts'

const within = (most: number) => (text: string) => text.length <= most

describe('selectSentences', () => {
  const talk =
    'Hey there! Good to see you. I moved to Lisbon on 3 May 2023. That sounds really great. My sister Ana did not come. Well, anyway.'

  verifies('H-13', 'prefers dates, numbers, names, first person and negations', () => {
    expect(selectSentences(talk, within(50))).toBe('... I moved to Lisbon on 3 May 2023. ...')
    expect(selectSentences(talk, within(75))).toBe(
      '... I moved to Lisbon on 3 May 2023. ... My sister Ana did not come. ...',
    )
  })
  it('returns a text that fits unchanged', () => expect(selectSentences(`\n${talk}\n`, () => true)).toBe(`\n${talk}\n`))
  it('keeps the white space between neighbours', () =>
    expect(selectSentences('Okay with me.\n\nUse port 9100 today.\n\nNever use 9200. Ok then.', within(48))).toBe(
      '... Use port 9100 today.\n\nNever use 9200. ...',
    ))
  it('selects a repeated sentence once', () =>
    expect(selectSentences('Deploy at 9. Deploy at 9. Deploy at 9. Hm.', within(39))).toBe('Deploy at 9. ... Hm.'))
  it('drops the fences around selected lines of code', () => {
    const text = 'Intro words.\n```ts\nconst port = 9100\n```\nOutro words here.'
    expect(selectSentences(text, within(40))).toBe('Intro words.\nconst port = 9100 ...')
  })
  it('skips a sentence that is too long', () => {
    const text = `On 3 May 2023 Ana and I signed 40 of 50 papers in Lisbon ${'and Porto '.repeat(20)}. Short one.`
    expect(selectSentences(text, within(20))).toBe('... Short one.')
  })
  it('finds the only sentence that fits after many that do not', () => {
    const text = `${Array.from({ length: 50 }, (_, place) => `On ${place} May 2023 Ana ${'signed papers '.repeat(5)}${place}.`).join(' ')} Fine.`
    expect(selectSentences(text, within(12))).toBe('... Fine.')
  })
  it('returns an empty text if nothing fits', () => {
    expect(selectSentences(talk, () => false)).toBe('')
    expect(selectSentences(' \n', () => true)).toBe('')
  })
  it('calls fits only a few times', () => {
    let asked = 0
    const text = Array.from({ length: 20_000 }, (_, place) => `Line ${place} has word${place} in it.`).join('\n')
    selectSentences(text, (candidate) => {
      asked++
      return candidate.length <= 2_000
    })
    expect(asked).toBeLessThan(80)
  })
  verifies('H-13', 'returns sentences of the source in their order that fit', () => {
    const bits = [
      'I went to Rome.',
      'Yes.',
      'It cost 300 euros!',
      'Why?',
      'see src/a.ts',
      'Not now.',
      'Ana left on Monday.',
      'ok',
    ]
    const texts = fc.array(fc.tuple(fc.constantFrom(...bits), fc.constantFrom('\n', '\n\n', '\n  ')), { maxLength: 40 })
    fc.assert(
      fc.property(texts, fc.nat(300), (parts, most) => {
        const text = parts.map((part) => part.join('')).join('')
        const kept = selectSentences(text, within(most))
        expect(kept.length).toBeLessThanOrEqual(most)
        const source = splitSentences(text).map((sentence) => sentence.text)
        let from = 0
        for (const sentence of kept.split(/ ?\.\.\. ?|\n/).map((part) => part.trim())) {
          if (sentence === '') continue
          const place = source.indexOf(sentence, from)
          expect(place).toBeGreaterThanOrEqual(from)
          from = place + 1
        }
        if (source.some((sentence) => sentence.length + 8 <= most)) expect(kept).not.toBe('')
      }),
      { numRuns: 500 },
    )
  })
})
