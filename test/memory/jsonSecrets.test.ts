import { describe, expect } from 'vitest'
import type { Json } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const mask = '⟨secret:0⟩'

/** Masks a value; all masks are equal. */
async function maskJson(value: Json): Promise<unknown> {
  const masked = await createSecretMasker('mask', chars4).maskJson(parseKey('acme:ann'), value)
  return JSON.parse(JSON.stringify(masked).replace(/⟨secret:\d+⟩/g, mask))
}

describe('maskJson', () => {
  verifies('X-08', 'with a JSON Web Key whose private members are far from its type › masks them', async () => {
    // Each note alone is searched with the fields around it.
    const notes = Array.from({ length: 20 }, () => 'My walrus is called Miso. '.repeat(35))
    const build = (d: Json, q: Json, p: Json) => ({ kty: 'EC', notes, d, q, p })
    expect(await maskJson(build('walruses', 'miso-and-a-walrus', 5))).toEqual(build(mask, mask, 5))
    const harmless = build('walrus!', null, 12.5)
    expect(await maskJson(harmless)).toEqual(harmless)
    const publicKey = { ...build('walruses', 'x', 'x'), kty: 'none' }
    expect(await maskJson(publicKey)).toEqual(publicKey)
  })

  verifies('X-08', 'with a data URL of up to 999 encoded characters › masks the secrets in it', async () => {
    const secret = 'AKIAIOSFODNN7Q2MPVLE'
    const build = (length: number, value: string): string =>
      `data:image/svg+xml;charset=utf-8;base64,${'QU+D'.repeat(length / 4 - 6)}/+/${value}/`
    const [short, long] = [build(996, secret), build(1_000, secret)]
    expect([short.length > 1_000, await maskJson([short]), await maskJson([long])]).toEqual([
      true,
      [build(996, mask)],
      [long],
    ])
  })
})
