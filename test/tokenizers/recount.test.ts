import fc from 'fast-check'
import { countTokens as countOlder } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countNewer } from 'gpt-tokenizer/encoding/o200k_base'
import { expect } from 'vitest'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from '../text/hostile.ts'

const plain = { disallowedSpecial: new Set<string>() }
const cases = [
  { tokenizer: await exactTokenizer('cl100k_base'), published: (text: string) => countOlder(text, plain) },
  { tokenizer: await exactTokenizer('o200k_base'), published: (text: string) => countNewer(text, plain) },
]
/** Where gpt-tokenizer departs from OpenAI's. */
const departs = /[\ufeff\u0085\u017f]/
const edges = fc.constantFrom('', ' ', 'User: ', 'a', 'a ', "'s", '\n', '\n\n', '.\n', ' and', 'É', '\u0301')
const words = fc.array(
  fc.constantFrom('now', 'Paris', 'USA', "don't", 'x,', 'y.', '12', 'naïve', '(so)', 'iPhone', '-', '中文'),
  { maxLength: 300 },
)

verifies('C-01', 'what was just counted is counted again with other edges as if it were new', () => {
  const texts = fc.oneof(
    hostileText.filter((text) => !departs.test(text)),
    words.map((all) => all.join(' ')),
  )
  fc.assert(
    fc.property(texts, edges, edges, (text, before, after) => {
      for (const { tokenizer, published } of cases)
        for (const one of [text, before + text + after, text, text + after, before + text])
          expect(tokenizer.count(one)).toBe(published(one))
    }),
    { numRuns: 1_000 },
  )
})
