import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { filesKey } from '../../src/domain/key.ts'
import { runSync } from '../../src/domain/work.ts'
import { FileFields } from '../../src/files/fields.ts'
import { parseCsv } from '../../src/files/parsers/csv.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'

const key = filesKey('acme')
const masker = createSecretMasker('mask', chars4)
const withoutNumbers = (masked: string): string => masked.replace(/⟨secret:\d+⟩/g, '⟨secret⟩')

const mask = async (kind: 'json' | 'csv', text: string): Promise<string> =>
  masker.maskDocument(key, text, runSync(FileFields.locate(kind, text)))

const parseTable = async (csv: string): Promise<string> => (await parseCsv(csv, 1_000_000)) ?? ''

/** Parses JSON in which numbers may be masked. */
const parseMaskedJson = (json: string): readonly object[] =>
  JSON.parse(
    withoutNumbers(json).replace(/"(?:[^"\\]|\\.)*"|⟨secret⟩/g, (found) =>
      found === '⟨secret⟩' ? '"⟨secret⟩"' : found,
    ),
  ) as object[]

type Value = { readonly value: string | number; readonly secret?: string }
type Row = readonly (readonly [name: string, value: Value])[]

const harmless: readonly Value[] = [
  ...['12 Harbour Street', '030 123456', 'She said "yes", then left.', 'C:\\temp\\', 'two\nlines', '{"a": [1, 2]}'],
  ...['', ' ', '\\', '"', ',', 'x', 'grün\u2028😀', 'a,b;c\td|e', 0, -1, 2.5, 1e21, 1234.5678],
].map((value) => ({ value }))
const secretTexts: readonly Value[] = [
  ...['password: hunter22Xq', 'my password is hunter22Xq', 'machine x login bob password hunter22Xq'],
  ...['db.example.com:5432:app:bob:hunter22Xq', 'curl -u bob:hunter22Xq https://a.example', 'password="hunter22Xq"'],
  ...['password: hunter22Xq\\', 'password: hunter22Xq\nuser: bob', 'https://bob:hunter22Xq@a.example/'],
  ...['user,password\nbob,hunter22Xq\n', '{"password":"hunter22Xq"}', "--password 'hunter22Xq'"],
].map((value) => ({ value, secret: 'hunter22Xq' }))
const secretNumbers: readonly Value[] = [
  { value: 4111111111111111, secret: '41111111' },
  { value: -4539578763621486, secret: '45395787' },
]
const names = ['note', 'address', 'a.b', 'kept "name"', 'count', 'line\\']
const values = fc.constantFrom(...harmless, ...harmless, ...secretTexts, ...secretNumbers)
const tables: fc.Arbitrary<readonly Row[]> = fc.array(
  fc.uniqueArray(fc.tuple(fc.constantFrom(...names), values), {
    selector: ([name]) => name,
    minLength: 1,
    maxLength: 5,
  }),
  { minLength: 1, maxLength: 4 },
)

function expectNoSecret(text: string, rows: readonly Row[]): void {
  for (const [, { secret }] of rows.flat()) if (secret !== undefined) expect(text).not.toContain(secret)
}

/** Writes a table in which each row has all columns. */
function writeCsv(
  rows: readonly Row[],
  delimiter: string,
  quoteAll: boolean,
  show: (value: Value) => string | number,
): string {
  const write = (value: string | number): string =>
    quoteAll || /[\n",;\t|]/.test(`${value}`) ? `"${`${value}`.replaceAll('"', '""')}"` : `${value}`
  const cells = rows.map((row) => names.map((name) => show(new Map(row).get(name) ?? { value: 7 })))
  return [names.map((_, index) => `c${index}`), ...cells].map((row) => `${row.map(write).join(delimiter)}\n`).join('')
}

describe('FileFields', () => {
  it.each([
    ['json', JSON.stringify({ a: 'x"\n'.repeat(200_000) })],
    ['csv', `a,b\n1,"${'x""\n'.repeat(200_000)}"\n`],
  ] as const)('locate › in %s with a long field › takes short steps', (kind, text) => {
    expect(Math.max(...FileFields.locate(kind, text))).toBeLessThan(20_000)
    const fields = runSync(FileFields.locate(kind, text))
    const [field = { start: 0, end: 0 }] = fields.escapedFields
    const range = { start: 599_997, end: 599_999 }
    expect(Math.max(...fields.valueOf(field), ...fields.positionsIn(field, [range]))).toBeLessThan(20_000)
    expect(runSync(fields.valueOf(field)).slice(range.start, range.end)).toBe('x"')
    const [position] = runSync(fields.positionsIn(field, [range]))
    expect(text.slice(position?.start, position?.end)).toBe(kind === 'json' ? 'x\\"' : 'x""')
  })

  it('confine › with many secrets › pauses between them', async () => {
    let [confined, longest] = [0, 0]
    const pause = async (): Promise<void> => {
      longest = Math.max(longest, confined)
      confined = 0
    }
    const text = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => ({ password: `x7Q${index}abc` })))
    const fields = runSync(FileFields.locate('json', text))
    const confine = fields.confine.bind(fields)
    vi.spyOn(fields, 'confine').mockImplementation((match) => {
      confined++
      return confine(match)
    })
    await createSecretMasker('mask', chars4, pause).maskDocument(key, text, fields)
    expect(Math.max(longest, confined)).toBeLessThan(5_000)
  })

  it('confine › in any JSON document › keeps its structure and harmless neighbours, and no secret', () =>
    fc.assert(
      fc.asyncProperty(tables, fc.constantFrom(undefined, 1, 2, '\t'), async (rows, indent) => {
        const objects = rows.map((row) => Object.fromEntries(row.map(([name, { value }]) => [name, value])))
        const masked = await mask('json', JSON.stringify(objects, null, indent))
        expectNoSecret(masked, rows)
        const parsed = parseMaskedJson(masked)
        expect(parsed.map(Object.keys)).toEqual(objects.map(Object.keys))
        for (const [index, row] of rows.entries())
          for (const [name, { value, secret }] of row)
            if (secret === undefined) expect(parsed[index]).toHaveProperty([name], value)
      }),
      { seed: 1, numRuns: 500 },
    ))

  it('confine › in any table › keeps its cells and harmless neighbours, and no secret', () =>
    fc.assert(
      fc.asyncProperty(
        tables,
        fc.constantFrom(',', ';', '\t', '|'),
        fc.boolean(),
        async (rows, delimiter, quoteAll) => {
          const csv = writeCsv(rows, delimiter, quoteAll, ({ value }) => value)
          // Quotes are written twice in a cell, so that some secrets are found in the parsed lines only.
          const lines = withoutNumbers(await masker.maskLines(key, await parseTable(await mask('csv', csv))))
          expectNoSecret(lines, rows)
          const expected = await parseTable(
            writeCsv(rows, delimiter, quoteAll, ({ value, secret }) => (secret === undefined ? value : 'MASKED')),
          )
          const pattern = expected.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('MASKED', '[^\\n]*⟨secret⟩[^\\n]*')
          expect(lines).toMatch(new RegExp(`^${pattern}$`))
        },
      ),
      { seed: 1, numRuns: 500 },
    ))
})
