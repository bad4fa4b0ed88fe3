import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cardsIn } from '../../src/text/secrets/cards.ts'
import { type FoundSecret, marks } from '../../src/text/secrets/found.ts'
import { hasLongRun } from '../../src/text/secrets/longRun.ts'
import { namedSecretsIn } from '../../src/text/secrets/named.ts'
import { pemBlocksIn } from '../../src/text/secrets/pem.ts'
import { requestSecretsIn } from '../../src/text/secrets/requests.ts'
import { shapesIn } from '../../src/text/secrets/shapes.ts'
import { toldSecretsIn } from '../../src/text/secrets/told.ts'
import { findSecrets } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from './hostile.ts'
import { cards, contexts, sayings, shapes } from './secretFormats.ts'

/** The search without a cheap look before anything: every pattern is tried on every text. */
function thorough(text: string): FoundSecret[] {
  const found: FoundSecret[] = []
  let rest = text.replace(marks, ({ length }) => '⟨'.repeat(length))
  for (let pass = 0; pass < 4; pass++) {
    const more = joined(
      [pemBlocksIn, shapesIn, requestSecretsIn, cardsIn, toldSecretsIn, namedSecretsIn].flatMap((find) => find(rest)),
    )
    found.push(...more)
    for (const { start, end } of more) rest = rest.slice(0, start) + '⟨'.repeat(end - start) + rest.slice(end)
  }
  return joined(found)
}

function joined(found: readonly FoundSecret[]): FoundSecret[] {
  const kept: FoundSecret[] = []
  for (const secret of [...found].sort((left, right) => left.start - right.start || right.end - left.end)) {
    const last = kept.at(-1)
    if (last === undefined || secret.start >= last.end) kept.push(secret)
    else if (secret.end > last.end) kept[kept.length - 1] = { ...last, end: secret.end }
  }
  return kept
}

const formats = [...shapes.map(({ secret }) => secret), ...[...contexts, ...sayings, ...cards].map(({ text }) => text)]
const whole = fc.constantFrom(...formats)
const upTo = fc.nat({ max: 80 })
/** Secrets, parts of them, and other text in between: what is left of a cut one must be judged alike. */
const pieces = fc.oneof(
  whole,
  fc.tuple(whole, upTo, upTo).map(([text, from, length]) => text.slice(from, from + length)),
  whole.map((text) => text.toUpperCase()),
  fc.constantFrom(
    '⟨secret:1⟩',
    'shopping',
    'the key',
    'passion',
    'PIN 4821',
    'otp',
    'log in',
    'a code 12',
    'Basic',
    'curl -u a:b9',
    '4111 1111',
  ),
  hostileText,
)
const texts = fc
  .array(fc.tuple(pieces, fc.constantFrom('', ' ', '\n', ': ', '"')), { maxLength: 6 })
  .map((parts) => parts.flat().join(''))

verifies(
  'X-08',
  'nothing is missed by looking first whether there may be any: every pattern tried on every text finds the same',
  () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(findSecrets(text)).toEqual(thorough(text))
      }),
      { numRuns: 3_000 },
    )
    for (const text of formats) expect([text, findSecrets(text)]).toEqual([text, thorough(text)])
  },
)

it('a run is long from twenty characters on, wherever it stands', () => {
  expect(['', 'a'.repeat(19), `${'a'.repeat(19)} ${'b'.repeat(19)}`, 'é'.repeat(30)].map(hasLongRun)).toEqual([
    false,
    false,
    false,
    false,
  ])
  expect(['a'.repeat(20), `x ${'-'.repeat(20)}`, `${'b'.repeat(19)} ${'%'.repeat(20)} c`].map(hasLongRun)).toEqual([
    true,
    true,
    true,
  ])
  fc.assert(
    fc.property(texts, (text) => {
      expect(hasLongRun(text)).toBe(/[\w~.+/:=%-]{20}/.test(text))
    }),
  )
})
