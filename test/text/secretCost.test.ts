import { describe, expect, it } from 'vitest'
import { secretRules } from '../../src/text/secrets/scan.ts'
import { findSecrets, findSecretsInSteps } from '../../src/text/secrets.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from './hostileTexts.ts'
import { secretForms } from './namedSecretForms.ts'
import { createRandomSource } from './secretForms.ts'

const triggers = [...new Set(secretRules.flatMap((rule) => rule.triggers))]
const beginnings = secretForms.map(({ create, surroundings }) => {
  const [before] = surroundings[0] ?? ['']
  return before + create(createRandomSource(1)).slice(0, 12)
})
/** Repeated to build texts that cost as much as possible. */
const units = [
  ...triggers,
  ...triggers.map((trigger) => `${trigger} `),
  ...triggers.map((trigger) => `${trigger}=`),
  ...beginnings,
  ...[
    '7',
    '7 ',
    '1234 ',
    '4111 1111 1111 ',
    '4111-',
    '4111\u00a0',
    '123-45-',
    '12.',
    '< ',
    '_',
    '"',
    "'",
    '`',
    '\\',
    '-p ',
    'mysql -p -p ',
  ],
  ...[
    '-----BEGIN RSA PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n',
    '{"password":{"token":',
    'password:["',
    'password:{a:"',
    '"password":{"a":"b"},',
    'password: "',
    'password="a ',
    'Cookie: a=b; ',
  ],
  ...[
    'cookie=b; ',
    'password for password ',
    'password is ',
    'seed phrase is abc ',
    '://a:',
    '://a:b@',
    'token=token',
    'AccountKey=',
    '-eyJ',
  ],
]
const smallCharacters = isCampaign ? 125_000 : 5_000
const growth = 8
/** Linear cost grows as much as the text, quadratic cost by the square of it. */
const maxCostGrowth = 3 * growth
/** Smaller costs are mostly noise. */
const minMeasuredMs = 2
const attempts = 4

const fill = (unit: string, length: number): string => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)

function isLinear(unit: string): boolean {
  const [small, large] = [fill(unit, smallCharacters), fill(unit, smallCharacters * growth)]
  for (let attempt = 0; attempt < attempts; attempt++) {
    const smallMs = Math.max(
      minMeasuredMs,
      measureCpu(() => findSecrets(small)),
    )
    if (measureCpu(() => findSecrets(large)) <= maxCostGrowth * smallMs) return true
  }
  return false
}

describe('findSecrets › hostile text', () => {
  verifies('X-08', 'findSecrets › triggers, separators and unfinished secrets repeated › takes linear time', () => {
    expect(units.filter((unit) => !isLinear(unit))).toEqual([])
  })

  it.each([
    ['comments after the name of a file', `pgpass${'#'.repeat(60)}`],
    ['backslashes in a WiFi code', `WIFI:P:${'\\'.repeat(40)}\n`],
  ])('reads %s in few ways', (_, text) => {
    findSecrets(text.slice(0, 10))
    expect(measureCpu(() => findSecrets(text))).toBeLessThan(200)
  })

  it('reads the text around many types of one key a few times', () => {
    const text = `{"d":"AbCd3fGhIjK1"${',"kty":"RSA"'.repeat(1_300)}}`.repeat(8)
    expect(findSecrets(text)).toHaveLength(8)
    expect(measureCpu(() => findSecrets(text))).toBeLessThan(100)
  })

  it('finds the same in steps and at once, in texts with secrets at all positions', () => {
    const text = `${'x'.repeat(99_990)} my password is hunter2, ${'y '.repeat(60_000)}TOKEN=4f8a1c9d3e7b5a60\n`.repeat(
      3,
    )
    const steps = findSecretsInSteps(text)
    let [count, step] = [0, steps.next()]
    for (; step.done !== true; step = steps.next()) count++
    expect(count).toBeGreaterThan(5)
    expect(step.value).toEqual(findSecrets(text))
    expect(step.value.map(({ start, end }) => text.slice(start, end))).toEqual(
      [1, 2, 3].flatMap(() => ['hunter2', '4f8a1c9d3e7b5a60']),
    )
  })

  it('finds 200,000 secrets without exhausting the stack', () =>
    expect(findSecrets('PASSWORD=a1b2c3\n'.repeat(200_000)).length).toBe(200_000))
})
