import { describe, expect } from 'vitest'
import { filesKey } from '../../src/domain/key.ts'
import { runSync } from '../../src/domain/work.ts'
import { FileFields } from '../../src/files/fields.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const key = filesKey('acme')
const secret = 'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890'
const card = 4_111_111_111_111_111
const mask = '⟨secret:0⟩'

const equalMasks = (masked: string): string => masked.replace(/⟨secret:\d+⟩/g, mask)

/** Masks a document; all masks are equal. */
async function maskDocument(kind: 'json' | 'csv', text: string, policy: 'mask' | 'keep' = 'mask'): Promise<string> {
  const masked = await createSecretMasker(policy, chars4).maskDocument(
    key,
    text,
    runSync(FileFields.locate(kind, text)),
  )
  return equalMasks(masked)
}

describe('maskDocument', () => {
  verifies(['R-02', 'X-08'], 'with secrets in several fields with escapes › masks each in its place', async () => {
    const build = (password: string, token: string): string =>
      `[{"a":"She said \\"password: ${password}\\"\\nand left"},{"b":"x"},{"c":"C:\\\\ ${token} \\u00e9"}]`
    expect(await maskDocument('json', build('wm7Fq2xL9', secret))).toBe(build(mask, mask))
    const csv = (password: string, token: string): string =>
      `a,b\n"say ""hi""\npassword: ${password}\nend",1\n2,"a ""b"" ${token} c"\n`
    expect(await maskDocument('csv', csv('wm7Fq2xL9', secret))).toBe(csv(mask, mask))
  })

  verifies('X-08', 'with a secret that only the value without escapes shows › masks it', async () => {
    const build = (password: string): string =>
      `[{"db":"postgres:\\/\\/bob:${password}@db\\/app"},{"url":"a?x=1\\u0026password\\u003d${password}"}]`
    expect(await maskDocument('json', build('wm7Fq2xL9'))).toBe(build(mask))
    const csv = (password: string): string => `a,b\n"x ""y""","He wrote password=""${password}"" there"\n`
    expect(await maskDocument('csv', csv('wm7Fq2xL9'))).toBe(csv(mask))
  })

  verifies(['R-02', 'X-08'], 'with a secret that recurs where nothing marks it › masks it in one field', async () => {
    const json = '{"password":"wm7Fq2xL9","note":"was wm7Fq2xL9","wm7Fq2xL9":1}'
    expect(await maskDocument('json', json)).toBe(`{"password":"${mask}","note":"was ${mask}","wm7Fq2xL9":1}`)
    // Two cells that look like one secret stay two cells.
    const csv = await maskDocument('csv', 'name,note,password\nann,x,"wm7F,q2xL9"\nwm7F,q2xL9,none\n')
    expect(csv).toBe(`name,note,password\nann,x,"${mask}"\n${mask},q2xL9,none\n`)
  })

  verifies(
    ['R-02', 'X-08'],
    'with a secret as a number, as a name and beside its name › masks nothing else',
    async () => {
      const build = (number: unknown, name: string, password: string): string =>
        `{"n":${number},"${name}":[1,"x"],"password":"${password}","note":"two words"}`
      expect(await maskDocument('json', build(card, secret, 'wm7Fq2xL9'))).toBe(build(mask, mask, mask))
    },
  )

  verifies(['R-02', 'X-08'], 'without secrets, or with the policy keep › returns the text', async () => {
    const plain = '{"a":"two\\nlines","b":"C:\\\\temp"}'
    expect(await maskDocument('json', plain)).toBe(plain)
    const kept = `{"a":"${secret}\\n"}`
    expect(await maskDocument('json', kept, 'keep')).toBe(kept)
  })

  verifies(
    ['R-02', 'X-08'],
    'longer than several windows › masks the same in each, and keeps all neighbours',
    async () => {
      const build = (token: string, number: unknown): string =>
        JSON.stringify(
          Array.from({ length: 2_000 }, (_, row) => ({
            row,
            note: `My walrus is called Miso. ${'x '.repeat(30)}`,
            token: row % 200 === 199 ? token : 'none',
            number: row % 250 === 249 ? number : row,
          })),
        )
      const text = build(secret, card)
      expect(text.length).toBeGreaterThan(200_000)
      expect(await maskDocument('json', text)).toBe(
        build(mask, mask).replaceAll(`"number":"${mask}"`, `"number":${mask}`),
      )
    },
  )
})

describe('maskLines', () => {
  const maskLines = async (text: string, policy: 'mask' | 'keep' = 'mask'): Promise<string> =>
    createSecretMasker(policy, chars4).maskLines(key, text)

  verifies(['R-02', 'X-08'], 'with secrets in some lines › masks them and keeps the lines', async () => {
    const text = `row 1\nrow 2: password: wm7Fq2xL9\n\nrow 3: ${secret}\n`
    expect(equalMasks(await maskLines(text))).toBe(`row 1\nrow 2: password: ${mask}\n\nrow 3: ${mask}\n`)
    expect(await maskLines(text, 'keep')).toBe(text)
  })

  verifies('R-02', 'with a name at the end of a line › keeps the next line', async () => {
    const text = 'note: my password:\nswordfish42'
    expect(await maskLines(text)).toBe(text)
    expect(await createSecretMasker('mask', chars4).maskText(key, text)).not.toBe(text)
  })
})
