import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitSentences } from '../../src/text/sentences.ts'

const split = (text: string): string[] => splitSentences(text).map((sentence) => sentence.text)

describe('splitSentences', () => {
  it('ends a sentence after its stop and closing characters', () =>
    expect(split('She said "go!" Then what? (He left.) I stayed... And so on')).toEqual([
      'She said "go!"',
      'Then what?',
      '(He left.)',
      'I stayed...',
      'And so on',
    ]))
  it('does not split at abbreviations, initials, decimals and file names', () =>
    expect(split('Dr. J. Wu, e.g. from the U.S. Army, paid 3.50 for a.ts vs. b.ts. Done.')).toEqual([
      'Dr. J. Wu, e.g. from the U.S. Army, paid 3.50 for a.ts vs. b.ts.',
      'Done.',
    ]))
  it('keeps the number of a list item with its sentence', () =>
    expect(split('1. First thing. More.\n2. Second')).toEqual(['1. First thing.', 'More.', '2. Second']))
  it('splits at line breaks', () => expect(split('one\ntwo\r\n\n  three  ')).toEqual(['one', 'two', 'three']))
  it('splits at full-width stops without a space', () =>
    expect(split('今日は雨。「行く？」はい！終わり')).toEqual(['今日は雨。', '「行く？」', 'はい！', '終わり']))
  it('splits fenced code into indented lines and drops the fences', () =>
    expect(split('Look. Here:\n```ts\nif (a) {\n  b. c. D()\n}\n```\nEnd.')).toEqual([
      'Look.',
      'Here:',
      'if (a) {',
      '  b. c. D()',
      '}',
      'End.',
    ]))
  it('splits a sentence of more than 600 characters at a space', () =>
    expect(split('word '.repeat(300)).map((part) => part.length)).toEqual([599, 599, 299]))
  it('returns spans that cover everything but white space and fences', () =>
    fc.assert(
      fc.property(
        fc
          .array(fc.constantFrom('a', 'B', ' ', '. ', '.', '!', '?', '\n', '"', '。', 'Dr. ', '12', '…'))
          .map((parts) => parts.join('')),
        (text) => {
          const sentences = splitSentences(text)
          let before = 0
          for (const { text: sentence, start, end } of sentences) {
            expect(text.slice(start, end)).toBe(sentence)
            expect(text.slice(before, start).trim()).toBe('')
            expect(sentence.trim()).not.toBe('')
            before = end
          }
          expect(text.slice(before).trim()).toBe('')
        },
      ),
    ))
})
