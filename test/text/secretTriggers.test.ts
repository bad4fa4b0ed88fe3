import fc from 'fast-check'
import { expect } from 'vitest'
import type { ListReader, SecretMatch } from '../../src/text/secrets/rule.ts'
import { scanRange, secretRules } from '../../src/text/secrets/scan.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from './hostileTexts.ts'
import { cardNumbers, keyFormats, namedSecrets, statedSecrets } from './secretFormats.ts'

/** `scanRange` without its table: compares each trigger of each rule at each position. */
function findByComparison(text: string): readonly SecretMatch[] {
  const found: SecretMatch[] = []
  for (const { triggers, find } of secretRules) {
    let reached = 0
    let list: ListReader | undefined
    for (let at = 0; at < text.length; at++) {
      const isHere = triggers.some(
        (trigger) => text.slice(at, at + trigger.length).toLowerCase() === trigger.toLowerCase(),
      )
      if (!isHere || at < reached) continue
      found.push(...(list?.read(text, at) ?? []))
      if (list !== undefined && (!list.isDone || at < list.at)) continue
      const result = find(text, at)
      if (typeof result === 'number') reached = result
      else if ('read' in result) list = result
      else if ('reached' in result) {
        found.push(...result.matches)
        reached = result.reached
      } else {
        found.push(...result)
        reached = result.at(-1)?.end ?? 0
      }
    }
    found.push(...(list?.read(text, text.length) ?? []))
  }
  return found
}
const sort = (matches: readonly SecretMatch[]): readonly SecretMatch[] =>
  [...matches].sort(
    (left, right) => left.start - right.start || left.end - right.end || (left.kind < right.kind ? -1 : 1),
  )

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
  fc.constantFrom(...secretRules.flatMap(({ triggers }) => triggers)),
  fc.constantFrom(
    '⟨secret:1⟩',
    'shopping',
    'the key',
    'passion',
    'PIN 4821',
    'log in',
    'a code 12',
    'curl -u a:b9',
    '密码',
  ),
  hostileText,
)
const texts = fc
  .array(fc.tuple(fragments, fc.constantFrom('', ' ', '\n', ': ', '"')), { maxLength: 6 })
  .map((parts) => parts.flat().join(''))

verifies(
  'X-08',
  'scanRange › triggers anywhere in a text › tries the same rules as a comparison at each position',
  () => {
    const withoutNumbers = (text: string): readonly SecretMatch[] => {
      const numbers = new Set(scanRange(text.replace(/[^\d\s.-]/g, '⟨'), 0, text.length).map(({ start }) => start))
      return scanRange(text, 0, text.length).filter(({ kind, start }) => kind !== 'card' && !numbers.has(start))
    }
    const check = (text: string): void => {
      const expected = new Set(sort(findByComparison(text)).map((match) => JSON.stringify(match)))
      const actual = sort(withoutNumbers(text)).map((match) => JSON.stringify(match))
      expect([text, actual.filter((match) => !expected.has(match))]).toEqual([text, []])
      const all = new Set(scanRange(text, 0, text.length).map((match) => JSON.stringify(match)))
      expect([text, [...expected].filter((match) => !all.has(match))]).toEqual([text, []])
    }
    fc.assert(fc.property(texts, check), { numRuns: isCampaign ? 600 : 150 })
    for (const text of formats) check(text)
  },
)
