import { describe, expect, it } from 'vitest'
import { generateDataset } from '../../src/evaluation/generate/generate.ts'
import { mapJsonStrings } from '../../src/text/json.ts'
import { findSecrets } from '../../src/text/secrets.ts'
import { isCampaign, propertyTimeoutMs, seed } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { secretForms } from './namedSecretForms.ts'
import { createRandomSource, type SecretForm } from './secretForms.ts'

const valuesPerForm = isCampaign ? 100_000 : 300
const maxFalseShare = 0.001
const maxMissedShare = 0.0001

/** True when every character of the secret is inside a match. */
function isFound(text: string, start: number, end: number): boolean {
  let reached = start
  for (const match of findSecrets(text)) {
    if (match.start > reached) break
    reached = Math.max(reached, match.end)
  }
  return reached >= end
}

/** Texts with random values of a form that are not found. */
function findMisses({ create, surroundings }: SecretForm, count: number, from: number): readonly string[] {
  const random = createRandomSource(from)
  const missed: string[] = []
  for (let index = 0; index < count; index++) {
    const value = create(random)
    const [before, after] = random.pick(surroundings)
    if (!isFound(before + value + after, before.length, before.length + value.length))
      missed.push(before + value + after)
  }
  return missed
}

describe('findSecrets › conversations without secrets', () => {
  verifies(
    ['R-02', 'X-08'],
    'findSecrets › generated conversations › finds a secret in at most 0.1 % of the texts',
    () => {
      const texts: string[] = []
      mapJsonStrings(
        [1, 3, 5].map((seed) => generateDataset(seed, isCampaign ? 80_000 : 8_000).conversations),
        (text) => {
          texts.push(text)
          return text
        },
      )
      expect(texts.length).toBeGreaterThan(1_000)
      const found = texts.filter((text) => findSecrets(text).length > 0)
      expect([found.length <= texts.length * maxFalseShare, found]).toEqual([true, found])
    },
  )
})

describe('findSecrets › random values of known forms', () => {
  it('covers at least 60 forms', () => expect(secretForms.length).toBeGreaterThanOrEqual(60))

  verifies(
    ['R-02', 'X-08'],
    `findSecrets › ${valuesPerForm} random values of each form › misses at most 0.01 %`,
    () => {
      const results = secretForms.map((form, number) => ({
        name: form.name,
        missed: findMisses(form, valuesPerForm, seed + number),
      }))
      if (isCampaign) {
        const rows = results.map(
          ({ name, missed }) =>
            `| ${name} | ${missed.length} | ${((100 * missed.length) / valuesPerForm).toFixed(4)} % |`,
        )
        console.log(
          [`| form (${valuesPerForm} values, seed ${seed}) | missed | share |`, '|---|---|---|', ...rows].join('\n'),
        )
      }
      const failed = results.filter(({ missed }) => missed.length > valuesPerForm * maxMissedShare)
      const report = failed.map(({ name, missed }) => ({
        name,
        seed,
        count: missed.length,
        examples: missed.slice(0, 3),
      }))
      expect(report).toEqual([])
    },
    propertyTimeoutMs,
  )
})
