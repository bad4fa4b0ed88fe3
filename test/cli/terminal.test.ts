import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import stringWidth from 'fast-string-width'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { confirmOperation } from '../../src/cli/terminal/confirm.ts'
import { createOutFile, writeOutFile } from '../../src/cli/terminal/outFile.ts'
import { createProgress, formatDuration } from '../../src/cli/terminal/progress.ts'
import { formatTable, truncateText } from '../../src/cli/terminal/table.ts'
import { wrapWords } from '../../src/cli/terminal/wordWrap.ts'
import { verifies } from '../requirements/verifies.ts'

const textOf = (lines: ReturnType<typeof formatTable>): string[] =>
  lines.map((line) => (typeof line === 'string' ? line : line.text))

describe('formatTable', () => {
  it('aligns columns, numbers to the right', () =>
    expect(
      textOf(
        formatTable(
          [
            ['name', 'count'],
            ['a', '1'],
            ['long name', '20'],
          ],
          { header: true, numeric: new Set([1]) },
        ),
      ),
    ).toEqual(['name       count', 'a              1', 'long name     20']))
  it('counts wide characters as two columns', () =>
    expect(
      textOf(
        formatTable([
          ['日本語', 'x'],
          ['ab', 'y'],
        ]),
      ),
    ).toEqual(['日本語  x', 'ab      y']))
  it('in a terminal › shortens the widest text column to the width', () => {
    const lines = textOf(
      formatTable(
        [
          ['m1', '日本語'.repeat(30), 'why'],
          ['m2', 'short', 'because'],
        ],
        { width: 60 },
      ),
    )
    expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThanOrEqual(60)
    expect(lines[0]).toMatch(/…\s+why$/)
    expect(lines[1]).toContain('short')
  })
  it('in a narrow terminal › shortens several columns', () => {
    const [line = ''] = textOf(
      formatTable([['a'.repeat(50), 'b'.repeat(40), '12']], { width: 40, numeric: new Set([2]) }),
    )
    expect(stringWidth(line)).toBeLessThanOrEqual(40)
    expect(line).toMatch(/^a+… {2}b+… {2}12$/)
  })
  it('in a pipe › shortens nothing, and removes line breaks and control characters', () =>
    expect(textOf(formatTable([['x\u001b[31m\ny', 'z'.repeat(500)]]))).toEqual([`x[31m y  ${'z'.repeat(500)}`]))
})

describe('truncateText', () => {
  it('keeps whole characters', () => {
    expect(truncateText('👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦', 5)).toBe('👩‍👩‍👧‍👦👩‍👩‍👧‍👦…')
    expect(truncateText('abc', 3)).toBe('abc')
    expect(truncateText('abcd', 3)).toBe('ab…')
  })
})

describe('wrapWords', () => {
  it('breaks lines between words and keeps its own line breaks', () => {
    expect(wrapWords('one two three\n\nfour', 8)).toBe('one two \nthree\n\nfour')
    expect(wrapWords('aaaaaaaaaaaa b', 5)).toBe('aaaaaaaaaaaa b')
    expect(wrapWords('日本 日本', 6)).toBe('日本 \n日本')
    expect(wrapWords('x  y\n', Number.POSITIVE_INFINITY)).toBe('x  y\n')
  })
})

describe('createProgress', () => {
  const record = (options: Parameters<typeof createProgress>[0] = {}, isTTY = true) => {
    const written: string[] = []
    let now = 0
    const stream = { isTTY, columns: 80, write: (text: string) => written.push(text) }
    const progress = createProgress({ stream, environment: {}, now: () => now, ...options })
    return { written, progress, advance: (ms: number) => (now += ms) }
  }

  verifies(['S-02', 'P-04'], 'in a terminal › shows count, rate and time left on one line', () => {
    const { written, progress, advance } = record()
    progress.count('Importing messages', 0, 10_000)
    advance(50)
    progress.count('Importing messages', 100, 10_000)
    advance(1_950)
    progress.count('Importing messages', 2_500, 10_000)
    progress[Symbol.dispose]()
    expect(written).toEqual([
      `\r\u001b[K${'░'.repeat(16)}   0 %  Importing messages 0 of 10,000`,
      `\r\u001b[K${'█'.repeat(4)}${'░'.repeat(12)}  25 %  Importing messages 2,500 of 10,000, 1,250/s, 6 s left`,
      '\r\u001b[K',
    ])
  })
  it('without a total › shows count and rate', () => {
    const { written, progress, advance } = record()
    progress.count('Rotating keys of sessions', 0)
    advance(2_000)
    progress.count('Rotating keys of sessions', 9)
    expect(written[1]).toBe('\r\u001b[KRotating keys of sessions 9, 4.5/s')
    progress[Symbol.dispose]()
  })
  it('a step › shows the time', () => {
    vi.useFakeTimers()
    try {
      const { written, progress, advance } = record()
      progress.step('Deleting')
      advance(3_000)
      vi.advanceTimersByTime(100)
      progress.clear()
      expect(written).toEqual(['\r\u001b[KDeleting … 0 s', '\r\u001b[KDeleting … 3 s', '\r\u001b[K'])
      progress[Symbol.dispose]()
    } finally {
      vi.useRealTimers()
    }
  })
  it('is never wider than the terminal', () => {
    const { written, progress } = record()
    progress.count('x'.repeat(200), 1, 2)
    expect(stringWidth(written[0]?.slice('\r\u001b[K'.length) ?? '')).toBeLessThan(80)
    progress[Symbol.dispose]()
  })
  verifies(['S-02', 'P-04'], 'in a pipe, with --json, in CI and in a dumb terminal › writes nothing', () => {
    const cases = [
      record({}, false),
      record({ json: true }),
      record({ environment: { CI: 'true' } }),
      record({ environment: { TERM: 'dumb' } }),
    ]
    for (const { written, progress } of cases) {
      progress.count('a', 1, 2)
      progress.step('b')
      progress.clear()
      expect(written).toEqual([])
    }
    const colourless = record({ environment: { NO_COLOR: '1', CI: 'false' } })
    colourless.progress.count('a', 1, 2)
    expect(colourless.written).toHaveLength(1)
    colourless.progress[Symbol.dispose]()
  })
  it('formats durations', () =>
    expect([900, 59_000, 125_000, 3_780_000].map(formatDuration)).toEqual(['1 s', '59 s', '2 min 5 s', '1 h 3 min']))
})

describe('output files', () => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-out-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'a.txt')
  const write = (text: string, force = false) => writeOutFile([Buffer.from(text)], file, 'out', { force })

  verifies('P-04', 'an existing file › is replaced only with --force', async () => {
    await write('one')
    await expect(write('two')).rejects.toMatchObject({
      code: 'bad-option',
      message: `${file} exists. Choose another file with --out, or replace it with --force.`,
    })
    expect(readFileSync(file, 'utf8')).toBe('one')
    await write('two', true)
    expect(readFileSync(file, 'utf8')).toBe('two')
    expect(readdirSync(folder)).toEqual(['a.txt'])
  })
  verifies('P-04', 'a file that appears meanwhile › is not replaced', async () => {
    const late = join(folder, 'late.txt')
    const writing = createOutFile(late, 'out', {}, async (temporary) => {
      writeFileSync(temporary, 'ours')
      writeFileSync(late, 'theirs')
    })
    await expect(writing).rejects.toThrow(`${late} exists.`)
    expect(readFileSync(late, 'utf8')).toBe('theirs')
    expect(readdirSync(folder).filter((name) => name.endsWith('.unfinished'))).toEqual([])
  })
  it('a failure › leaves the old file and no temporary one', async () => {
    const failing = async function* () {
      yield Buffer.from('half')
      throw new Error('disk')
    }
    await expect(writeOutFile(failing(), file, 'out', { force: true })).rejects.toThrow('disk')
    expect(readFileSync(file, 'utf8')).toBe('two')
    expect(readdirSync(folder).filter((name) => name.endsWith('.unfinished'))).toEqual([])
  })
  it('a folder, and a file in a missing folder › are refused', async () => {
    await expect(writeOutFile([], folder, 'out', {})).rejects.toThrow(`${folder} is a folder.`)
    await expect(writeOutFile([], join(folder, 'no/x'), 'out', {})).rejects.toThrow(/Cannot write .*no\/x \(ENOENT\)\./)
    expect(existsSync(join(folder, 'no'))).toBe(false)
  })
})

describe('confirmOperation', () => {
  const request = { value: { wouldForget: 1 }, lines: ['Would delete x'], question: 'Delete?', otherwise: 'Kept.' }
  const capture = async (flags: Parameters<typeof confirmOperation>[0]) => {
    const written: string[] = []
    const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0)
    const result = await confirmOperation(flags, request).catch((error: unknown) => error)
    spy.mockRestore()
    return [result, written.join('')]
  }

  verifies('P-04', 'without a terminal › lists what would go and needs --yes', async () => {
    const refused = { code: 'bad-option', message: 'Kept. Add --yes to confirm.', param: 'yes' }
    expect(await capture({})).toEqual([expect.objectContaining(refused), 'Would delete x\n'])
    expect(await capture({ json: true })).toEqual([expect.objectContaining(refused), '{"wouldForget":1}\n'])
    expect(await capture({ yes: true })).toEqual([true, ''])
    expect(await capture({ dryRun: true })).toEqual([false, 'Would delete x\n'])
    expect(await capture({ yes: true, dryRun: true })).toEqual([false, 'Would delete x\n'])
  })
})
