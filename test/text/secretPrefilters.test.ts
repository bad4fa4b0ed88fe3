import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  findCards,
  findKnownFormats,
  findNamedSecrets,
  findPemBlocks,
  findRequestSecrets,
  findStatedSecrets,
  maskPattern,
  type SecretMatch,
} from '../../src/text/secretPatterns.ts'
import { findSecrets, mayContainKeys } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from './hostileTexts.ts'
import { cardNumbers, keyFormats, namedSecrets, statedSecrets } from './secretFormats.ts'

const detectors = [findPemBlocks, findKnownFormats, findRequestSecrets, findCards, findStatedSecrets, findNamedSecrets]

/** `findSecrets` without prefilters: every detector runs on every text. */
function findWithoutPrefilters(text: string): SecretMatch[] {
  const found: SecretMatch[] = []
  let rest = text.replace(maskPattern, ({ length }) => '⟨'.repeat(length))
  for (let pass = 0; pass < 4; pass++) {
    const more = mergeOverlapping(detectors.flatMap((find) => find(rest)))
    found.push(...more)
    for (const { start, end } of more) rest = rest.slice(0, start) + '⟨'.repeat(end - start) + rest.slice(end)
  }
  return mergeOverlapping(found)
}

function mergeOverlapping(found: readonly SecretMatch[]): SecretMatch[] {
  const merged: SecretMatch[] = []
  for (const secret of [...found].sort((left, right) => left.start - right.start || right.end - left.end)) {
    const last = merged.at(-1)
    if (last === undefined || secret.start >= last.end) merged.push(secret)
    else if (secret.end > last.end) merged[merged.length - 1] = { ...last, end: secret.end }
  }
  return merged
}

const formats = [
  ...keyFormats.map(({ secret }) => secret),
  ...[...namedSecrets, ...statedSecrets, ...cardNumbers].map(({ text }) => text),
]
const format = fc.constantFrom(...formats)
const upTo80 = fc.nat({ max: 80 })
/** Secrets, parts of secrets and other text: the rest of a truncated secret must be judged the same way. */
const fragments = fc.oneof(
  format,
  fc.tuple(format, upTo80, upTo80).map(([text, from, length]) => text.slice(from, from + length)),
  format.map((text) => text.toUpperCase()),
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
  .array(fc.tuple(fragments, fc.constantFrom('', ' ', '\n', ': ', '"')), { maxLength: 6 })
  .map((parts) => parts.flat().join(''))

verifies('X-08', 'findSecrets finds the same with and without prefilters', () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(findSecrets(text)).toEqual(findWithoutPrefilters(text))
    }),
    { numRuns: 3_000 },
  )
  for (const text of formats) expect([text, findSecrets(text)]).toEqual([text, findWithoutPrefilters(text)])
})

it('mayContainKeys is true for runs of 20 key characters at any position', () => {
  expect(['', 'a'.repeat(19), `${'a'.repeat(19)} ${'b'.repeat(19)}`, 'é'.repeat(30)].map(mayContainKeys)).toEqual([
    false,
    false,
    false,
    false,
  ])
  expect(['a'.repeat(20), `x ${'-'.repeat(20)}`, `${'b'.repeat(19)} ${'%'.repeat(20)} c`].map(mayContainKeys)).toEqual([
    true,
    true,
    true,
  ])
  fc.assert(
    fc.property(texts, (text) => {
      expect(mayContainKeys(text)).toBe(/[\w~.+/:=%-]{20}/.test(text))
    }),
  )
})
