import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createFileReference,
  describeLineChanges,
  type FileInspection,
  type FileReference,
  findPaths,
  hashLines,
  type ReadFile,
  resolveFileReference,
} from '../../src/handoff/fileReferences.ts'
import { verifies } from '../requirements/verifies.ts'

const textMessage = (content: string) => ({ content })
const toolCall = (args: unknown) => ({
  content: '',
  toolCalls: [{ id: 'c1', name: 'read', arguments: typeof args === 'string' ? args : JSON.stringify(args) }],
})
const existing = (text: string): FileInspection => ({
  status: 'there',
  text,
  size: Buffer.byteLength(text),
  modified: Date.UTC(2026, 0, 2),
})
const readerOf =
  (file: FileInspection): ReadFile =>
  async () =>
    file

describe('findPaths', () => {
  const cases: readonly (readonly [text: string, paths: readonly string[]])[] = [
    ['See src/app.ts:12 and `./lib/x.py`.', ['./lib/x.py', 'src/app.ts']],
    ['In /etc/nginx/nginx.conf, line 4', ['/etc/nginx/nginx.conf']],
    ['README.md and package.json (not example.com, console.log or and/or)', ['package.json', 'README.md']],
    ['https://example.com/a.ts is an address', []],
    ['C:\\work\\main.ts, ~/notes/today.md', ['~/notes/today.md', 'C:\\work\\main.ts']],
    ['a/.env.local and build/Dockerfile', ['build/Dockerfile', 'a/.env.local']],
    ['src/components is a folder', []],
    ['src/app.ts, then src/app.ts again', ['src/app.ts']],
    ['', []],
  ]
  for (const [text, paths] of cases)
    verifies('H-05', `in ${JSON.stringify(text)} finds ${JSON.stringify(paths)}`, () =>
      expect(findPaths([textMessage(text)])).toEqual(paths),
    )

  it('in tool arguments finds paths verbatim', () => {
    expect(findPaths([toolCall({ file_path: '/my work/über uns.md', content: 'see /other/x.ts' })])).toEqual([
      '/my work/über uns.md',
    ])
    expect(
      findPaths([
        toolCall({ path: 'file:///srv/a.ts' }),
        toolCall({ uri: 'https://example.com/a.ts' }),
        toolCall({ path: '/srv/folder' }),
      ]),
    ).toEqual(['/srv/a.ts'])
    expect([
      findPaths([toolCall('{"path":"a.t')]),
      findPaths([toolCall('[]')]),
      findPaths([toolCall({ path: 7 })]),
    ]).toEqual([[], [], []])
  })

  it('returns the last mentioned first, at most 200, and limits the scanned text', () => {
    expect(findPaths([textMessage('a/one.ts'), textMessage('a/two.ts'), textMessage('a/one.ts')])).toEqual([
      'a/one.ts',
      'a/two.ts',
    ])
    const messages = Array.from({ length: 300 }, (_, n) => textMessage(`src/${n}.ts`))
    expect(findPaths(messages)).toEqual(Array.from({ length: 200 }, (_, n) => `src/${299 - n}.ts`))
    expect(findPaths([textMessage('src/old.ts'), textMessage('x'.repeat(1_000_000))])).toEqual([])
    expect(
      findPaths([textMessage(`src/${'a'.repeat(2_000)}.ts`), toolCall({ path: `/${'a/'.repeat(1_000)}b.ts` })]),
    ).toEqual([])
  })
})

describe('file reference', () => {
  verifies('H-01', 'contains path, hash, time, size and line hashes, but no text', async () => {
    expect(await createFileReference('src/app.ts', readerOf(existing('one\ntwo\n')))).toEqual({
      path: 'src/app.ts',
      hash: 'c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8',
      last_modified: '2026-01-02T00:00:00.000Z',
      size: 8,
      lines: 'dpLDrP8TM/',
    })
  })

  it('of a missing or refused file is not created', async () => {
    expect([
      await createFileReference('a.ts', readerOf({ status: 'missing' })),
      await createFileReference('a.ts', readerOf({ status: 'refused' })),
    ]).toEqual([undefined, undefined])
  })

  const lines = Array.from({ length: 60 }, (_, n) => `line ${n + 1}`)
  const before = `${lines.join('\n')}\n`
  const editLines = (edit: (lines: string[]) => string[]): string => `${edit([...lines]).join('\n')}\n`
  const changes: readonly (readonly [what: string, now: FileInspection, status: string, note: string | undefined])[] = [
    ['an unchanged file', existing(before), 'unchanged', undefined],
    ['a missing file', { status: 'missing' }, 'missing', undefined],
    ['a refused file', { status: 'refused' }, 'refused', undefined],
    [
      'a changed line',
      existing(editLines((all) => all.with(39, 'changed!'))),
      'changed',
      '+1 −1 lines around 40: first changed lines: "changed!"',
    ],
    [
      'added lines',
      existing(editLines((all) => all.toSpliced(39, 0, ...'abcd'))),
      'changed',
      '+4 −0 lines around 40–43: first changed lines: "a", "b", "c"',
    ],
    ['removed lines', existing(editLines((all) => all.toSpliced(9, 3))), 'changed', '+0 −3 lines around 10'],
    ['a moved line', existing(editLines((all) => [...all.slice(1), 'line 1'])), 'changed', '+1 −1 lines around 1–60'],
    [
      'lines added at both ends',
      existing(editLines((all) => ['first', ...all, 'last'])),
      'changed',
      '+2 −0 lines around 1–62: first changed lines: "first", "last"',
    ],
    [
      'changed line endings',
      existing(before.replaceAll('\n', '\r\n')),
      'changed',
      'only line endings or trailing whitespace changed',
    ],
    [
      'a long changed line',
      existing(editLines((all) => all.with(0, `\t"${'x'.repeat(500)}`))),
      'changed',
      `+1 −1 lines around 1: first changed lines: "\\"${'x'.repeat(99)}…"`,
    ],
    ['an emptied file', existing(''), 'changed', '+0 −60 lines around 1'],
  ]
  for (const [what, now, status, note] of changes)
    verifies('H-05', `resolves ${what}`, async () => {
      const reference = (await createFileReference('a.ts', readerOf(existing(before)))) as FileReference
      expect(await resolveFileReference(reference, readerOf(now))).toEqual({
        path: 'a.ts',
        status,
        ...(note === undefined ? {} : { note }),
      })
    })

  it('without line hashes reports sizes, or that the previous content is unknown', async () => {
    const large = 'x\n'.repeat(5_001)
    const reference = (await createFileReference('a.ts', readerOf(existing(large)))) as FileReference
    expect(reference.lines).toBe('')
    expect((await resolveFileReference(reference, readerOf(existing('y')))).note).toBe('10002 bytes then, 1 bytes now')
    const empty = (await createFileReference('a.ts', readerOf(existing('')))) as FileReference
    expect((await resolveFileReference(empty, readerOf(existing('y')))).note).toBe('0 bytes then, 1 bytes now')
    const unverified = { path: 'a.ts', hash: 'abc', last_modified: '', size: 0, lines: '' }
    expect((await resolveFileReference(unverified, readerOf(existing('y')))).note).toBe('previous content unknown')
  })

  it('counts added and removed lines of any two texts', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(text, text, (old, now) => {
        const note = describeLineChanges(hashLines(old.join('\n')), now.join('\n')) ?? ''
        const [, added, removed] = /^\+(\d+) −(\d+) lines/.exec(note) ?? [note, '0', '0']
        expect(Number(added) - Number(removed)).toBe(now.length - old.length)
        expect(Number(added)).toBe(now.length - commonLength(old, now))
      }),
    )
  })

  it('with 5000 changed lines falls back to a linear comparison', () => {
    const [old, now] = ['a', 'b'].map((mark) => Array.from({ length: 5_000 }, (_, n) => `${mark}${n}`).join('\n')) as [
      string,
      string,
    ]
    expect(describeLineChanges(hashLines(old), now)).toBe(
      '+5000 −5000 lines around 1–5000: first changed lines: "b0", "b1", "b2"',
    )
  })
})

/** Length of the longest common subsequence, by its recursive definition. */
function commonLength(one: readonly string[], other: readonly string[]): number {
  const [head, ...rest] = one
  if (head === undefined) return 0
  const index = other.indexOf(head)
  return Math.max(commonLength(rest, other), index < 0 ? 0 : 1 + commonLength(rest, other.slice(index + 1)))
}
