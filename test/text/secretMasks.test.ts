import { describe, expect, it } from 'vitest'
import {
  findMasks,
  findSecrets,
  findSecretsInSteps,
  formatMask,
  maskSecrets,
  normalizeSecrets,
  normalizeSecretsInSteps,
  unmaskSecrets,
} from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'

const accessKey = 'ASIAHMLSGZTJBYKZLCZK'
const pemBlock = `-----BEGIN RSA PRIVATE KEY-----\n${'MIIEowIBAAKCAQEA7Q2M'.repeat(3)}\n-----END RSA PRIVATE KEY-----`
/** The password is seen only once the key behind it is hidden. */
const neighbours = `the password is swordfish.${accessKey}`
const found = (text: string): readonly string[] =>
  findSecrets(text).map(({ kind, start, end }) => `${kind} ${text.slice(start, end)}`)

/** Runs interruptible work; returns its result and the cost of each step. */
function run<T>(work: Generator<number, T>): { readonly value: T; readonly costs: readonly number[] } {
  const costs: number[] = []
  let step = work.next()
  for (; step.done !== true; step = work.next()) costs.push(step.value)
  return { value: step.value, costs }
}

describe('findSecrets', () => {
  verifies('X-08', 'with a secret that a neighbouring one hides › finds both, in order', () => {
    expect(found(neighbours)).toEqual(['password swordfish', `key ${accessKey}`])
    const filler = 'My walrus is called Miso. '.repeat(200)
    expect(found(`${filler}${neighbours} ${filler}`)).toEqual(['password swordfish', `key ${accessKey}`])
    expect(found(`${neighbours} ${filler}${neighbours}`)).toEqual([
      'password swordfish',
      `key ${accessKey}`,
      'password swordfish',
      `key ${accessKey}`,
    ])
  })

  verifies('X-08', 'with a secret inside another › returns the whole as one, of the kind of the first', () => {
    expect(found(`PASSWORD="${accessKey}!x"`)).toEqual([`password ${accessKey}!x`])
    expect(found(`PASSWORD="x1!${accessKey}"`)).toEqual([`password x1!${accessKey}`])
  })

  verifies('X-08', 'with a secret that begins inside another and ends after it › returns both as one', () => {
    expect(found(`PASSWORD="x1 ${pemBlock}" ok`)).toEqual([`password x1 ${pemBlock}`])
  })

  verifies('X-08', 'with a secret that begins at the end of another › returns both', () => {
    expect(found(pemBlock + pemBlock)).toEqual([`pem ${pemBlock}`, `pem ${pemBlock}`])
  })

  it('with masks of earlier secrets › takes none for a secret, and finds those beside it', () => {
    expect(found('password: ⟨secret:1⟩, token: ⟨secret:123456789012⟩')).toEqual([])
    expect(found(`⟨secret:1⟩${accessKey}⟨secret:2⟩`)).toEqual([`key ${accessKey}`])
  })
})

describe('findSecretsInSteps', () => {
  it('with up to 8,192 characters › is done at once; with more › pauses after each 8,192', () => {
    const stepsOf = (length: number): readonly number[] => run(findSecretsInSteps('x '.repeat(length / 2))).costs
    expect([0, 8_192, 8_194, 16_384, 16_386].map(stepsOf)).toEqual([[], [], [8_192], [8_192], [8_192, 8_192]])
  })

  it('with many hidden secrets › finds all of them, with pauses in each pass', () => {
    const count = 500
    const text = `${neighbours} ${'a '.repeat(60)}\n`.repeat(count)
    const { value, costs } = run(findSecretsInSteps(text))
    expect(value).toHaveLength(2 * count)
    expect(Math.max(...costs)).toBe(8_192)
    // The keys are found in the first pass, the passwords in the second one, and a third one finds nothing more.
    expect(costs).toHaveLength(3 * Math.floor(text.length / 8_192))
  })

  it('with a few secrets in a long text › searches again only around them', () => {
    const filler = 'x '.repeat(60_000)
    const text = `${neighbours} ${filler}${neighbours} ${filler}${neighbours}`
    const { value, costs } = run(findSecretsInSteps(text))
    expect([value.length, costs.length]).toEqual([6, Math.floor(text.length / 8_192)])
  })

  it('with a secret at the end of a step › finds it', () => {
    for (const at of [8_171, 8_182, 8_190, 8_192, 16_374]) {
      const text = `${' '.repeat(at)}${accessKey}${' '.repeat(500)}`
      expect(run(findSecretsInSteps(text)).value).toEqual([{ kind: 'key', start: at, end: at + accessKey.length }])
    }
  })
})

describe('masks', () => {
  it('formatMask and findMasks › with numbers of 1 to 12 digits › agree; other brackets are none', () => {
    const masks = [formatMask(0), formatMask(7), formatMask(999_999_999_999)]
    expect(masks).toEqual(['⟨secret:0⟩', '⟨secret:7⟩', '⟨secret:999999999999⟩'])
    expect(findMasks(`a ${masks.join(' b ')} c`)).toEqual(masks)
    for (const text of ['', 'plain', '⟨secret:⟩', '⟨secret:x⟩', '⟨secret:1234567890123⟩', '⟨secret:1'])
      expect(findMasks(text)).toEqual([])
  })

  it('maskSecrets › replaces each secret by its mask and keeps the rest', () => {
    const masked = maskSecrets(`a ${neighbours} b`, (secret) => `<${secret.length}>`)
    expect(masked).toBe('a the password is <9>.<20> b')
    expect(maskSecrets('plain', () => 'x')).toBe('plain')
    expect(maskSecrets(accessKey, () => 'x')).toBe('x')
  })

  it('unmaskSecrets › replaces the masks that are known', () => {
    const values = new Map([['⟨secret:1⟩', 'swordfish']])
    expect(unmaskSecrets('a ⟨secret:1⟩ b ⟨secret:2⟩ c ⟨secret:1⟩', (mask) => values.get(mask))).toBe(
      'a swordfish b ⟨secret:2⟩ c swordfish',
    )
  })

  it('normalizeSecrets › makes a text and its masked form equal', () => {
    const normalized = 'a the password is ⟨secret:0⟩.⟨secret:0⟩ b'
    const masked = 'a the password is ⟨secret:12⟩.⟨secret:34⟩ b'
    expect([normalizeSecrets(`a ${neighbours} b`), normalizeSecrets(masked)]).toEqual([normalized, normalized])
    expect(normalizeSecrets('plain')).toBe('plain')
    expect(run(normalizeSecretsInSteps('x '.repeat(6_000))).costs).toEqual([8_192])
  })
})
