import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Parser } from 'htmlparser2'
import { describe, expect, it } from 'vitest'
import type { LabRow } from '../../src/evaluation/lab/lab.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, expectHelp } from './cliHarness.ts'

const { folder, run } = createCliHarness('lab')

/** Runs the command and returns its output. Standard error may contain progress. */
async function measure(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(['lab', ...args])
  expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
  return stdout
}
const measureJson = async <T>(...args: readonly string[]): Promise<T> => JSON.parse(await measure(...args, '--json'))

/** Parses a page and returns its tags with their attributes. */
function parseTags(html: string): { readonly name: string; readonly attributes: Readonly<Record<string, string>> }[] {
  const tags: { name: string; attributes: Record<string, string> }[] = []
  const parser = new Parser({ onopentag: (name, attributes) => tags.push({ name, attributes }) })
  parser.end(html)
  return tags
}

describe('threadkeep lab', () => {
  verifies('S-02', '--help prints usage, examples and exit codes', async () =>
    expectHelp(await measure('--help'), 'lab'),
  )

  verifies('H-16', 'every combination is generated, saved, restored and compared, with a page of plots', async () => {
    const { rows, report, seed } = await measureJson<{ rows: LabRow[]; report: string; seed: number }>(
      ...['--sizes', '400,800', '--types', 'chat,code', '--compression', 'none,zstd'],
      ...['--algorithm', 'handoff,thread,window', '--out', 'report.html'],
    )
    expect([report, seed]).toEqual(['report.html', 1])
    const combinations = rows.map(
      ({ size, type, compression, algorithm }) => `${size} ${type} ${compression} ${algorithm}`,
    )
    expect(new Set(combinations).size).toBe(24)
    for (const row of rows) {
      expect(row.isLossless).toBe(true)
      expect(row.tokens).toBeGreaterThan(0.6 * row.size)
      expect(row.restoredTokens).toBeLessThanOrEqual(row.budget)
      expect(row.similarity).toBeGreaterThan(0.1)
      for (const share of [row.similarity, row.factSurvival, row.plantedFacts]) {
        expect(share).toBeGreaterThanOrEqual(0)
        expect(share).toBeLessThanOrEqual(1)
      }
      for (const ms of [row.saveMs, row.exportMs, row.importMs, row.restoreMs]) expect(ms).toBeGreaterThan(0)
    }
    const bytesOf = (compression: string): number =>
      rows.filter((row) => row.compression === compression).reduce((sum, { exportBytes }) => sum + exportBytes, 0)
    expect(bytesOf('zstd')).toBeLessThan(0.6 * bytesOf('none'))

    const html = readFileSync(join(folder, 'report.html'), 'utf8')
    const tags = parseTags(html)
    const count = (name: string): number => tags.filter((tag) => tag.name === name).length
    expect([count('svg'), count('script'), count('link'), count('img')]).toEqual([8, 0, 0, 0])
    expect(count('tr')).toBe(1 + rows.length)
    expect(html).not.toMatch(/https?:|url\(|@import/)
    expect(html).toContain('prefers-color-scheme: dark')
    expect(html).toContain(
      'Every imported transcript is identical to the saved one. No restored text is over its budget.',
    )
    for (const { attributes } of tags.filter((tag) => tag.name === 'rect')) {
      const [x, width, height] = [attributes.x, attributes.width, attributes.height].map(Number) as [
        number,
        number,
        number,
      ]
      expect(x + width).toBeLessThanOrEqual(720)
      expect(height).toBeGreaterThanOrEqual(0)
      expect(height).toBeLessThanOrEqual(220)
    }
  })

  it('prints a table, and takes names of sizes and a budget', async () => {
    const text = await measure(
      ...[
        '--sizes',
        'small',
        '--types',
        'support',
        '--compression',
        'zstd',
        '--algorithm',
        'window,bm25',
        '--budget',
        '90',
      ],
    )
    const [header, ...rows] = text.trimEnd().split('\n')
    expect(header).toMatch(/^size {2}type +compression {2}algorithm {2}messages {2}tokens {2}budget {2}restored/)
    expect(rows).toHaveLength(2)
    expect(rows[0]).toMatch(/^1000 {2}support {2}zstd +window +\d+ +\d+ +90 /)
  })

  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['--sizes', 'huge'], 'sizes is "huge"; it must be a whole number, from 100 to 1000000.'],
    [['--sizes', ','], '--sizes is empty. Give at least one value, separated by commas.'],
    [['--types', 'chat,poem'], '--types has "poem". Use one or more of: chat, support, assistant, code, mixed.'],
    [['--compression', 'rar'], '--compression has "rar". Use one or more of: none, zstd.'],
    [
      ['--algorithm', 'random'],
      '--algorithm has "random". Use one or more of: handoff, ephemeral, support, summary, agent, thread, window, bm25.',
    ],
    [['--budget', '0'], 'budget is "0"; it must be a whole number, 1 or more.'],
    [
      [
        '--sizes',
        '100',
        '--types',
        'chat',
        '--compression',
        'none',
        '--algorithm',
        'window',
        '--out',
        'missing/x.html',
      ],
      'Cannot write missing/x.html (ENOENT). Name a file in an existing folder.',
    ],
  ]
  for (const [args, message] of invalid)
    verifies('S-02', `invalid input prints one line and exits with 2: lab ${args.join(' ')}`, async () =>
      expect(await run(['lab', ...args])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }),
    )
})
