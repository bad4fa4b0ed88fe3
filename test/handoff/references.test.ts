import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { difference, packed } from '../../src/handoff/references/lines.ts'
import { type FileReference, type Look, pathsIn, refer, resolve, type Seen } from '../../src/handoff/references.ts'
import { verifies } from '../requirements/verifies.ts'

const said = (content: string) => ({ content })
const called = (given: unknown) => ({
  content: '',
  calls: [{ id: 'c1', name: 'read', arguments: typeof given === 'string' ? given : JSON.stringify(given) }],
})
const there = (text: string): Seen => ({
  status: 'there',
  text,
  size: Buffer.byteLength(text),
  modified: Date.UTC(2026, 0, 2),
})
const seeing =
  (seen: Seen): Look =>
  async () =>
    seen

describe('the files a conversation names', () => {
  const named: readonly (readonly [text: string, paths: readonly string[]])[] = [
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
  for (const [text, paths] of named)
    verifies('H-05', `are ${JSON.stringify(paths)} in ${JSON.stringify(text)}`, () =>
      expect(pathsIn([said(text)])).toEqual(paths),
    )

  it('are also those tools were called with, as they are', () => {
    expect(pathsIn([called({ file_path: '/my work/über uns.md', content: 'see /other/x.ts' })])).toEqual([
      '/my work/über uns.md',
    ])
    expect(
      pathsIn([
        called({ path: 'file:///srv/a.ts' }),
        called({ uri: 'https://example.com/a.ts' }),
        called({ path: '/srv/folder' }),
      ]),
    ).toEqual(['/srv/a.ts'])
    expect([pathsIn([called('{"path":"a.t')]), pathsIn([called('[]')]), pathsIn([called({ path: 7 })])]).toEqual([
      [],
      [],
      [],
    ])
  })

  it('are told the last named first, 200 at most, whatever the length of the talk', () => {
    expect(pathsIn([said('a/one.ts'), said('a/two.ts'), said('a/one.ts')])).toEqual(['a/one.ts', 'a/two.ts'])
    const many = Array.from({ length: 300 }, (_, n) => said(`src/${n}.ts`))
    expect(pathsIn(many)).toEqual(Array.from({ length: 200 }, (_, n) => `src/${299 - n}.ts`))
    expect(pathsIn([said('src/old.ts'), said('x'.repeat(1_000_000))])).toEqual([])
    expect(pathsIn([said(`src/${'a'.repeat(2_000)}.ts`), called({ path: `/${'a/'.repeat(1_000)}b.ts` })])).toEqual([])
  })
})

describe('a reference to a file', () => {
  verifies('H-01', 'holds its path, hash, time and size, and none of its text', async () => {
    expect(await refer('src/app.ts', seeing(there('one\ntwo\n')))).toEqual({
      path: 'src/app.ts',
      hash: 'c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8',
      last_modified: '2026-01-02T00:00:00.000Z',
      size: 8,
      lines: 'dpLDrP8TM/',
    })
  })

  it('is not made of one that is missing or refused', async () => {
    expect([
      await refer('a.ts', seeing({ status: 'missing' })),
      await refer('a.ts', seeing({ status: 'refused' })),
    ]).toEqual([undefined, undefined])
  })

  const lines = Array.from({ length: 60 }, (_, n) => `line ${n + 1}`)
  const before = `${lines.join('\n')}\n`
  const edited = (edit: (lines: string[]) => string[]): string => `${edit([...lines]).join('\n')}\n`
  const changes: readonly (readonly [what: string, now: Seen, status: string, note: string | undefined])[] = [
    ['one that is the same', there(before), 'unchanged', undefined],
    ['one that is gone', { status: 'missing' }, 'missing', undefined],
    ['one that may not be read', { status: 'refused' }, 'refused', undefined],
    [
      'a line changed',
      there(edited((all) => all.with(39, 'changed!'))),
      'changed',
      '+1 −1 lines around 40: first changed lines: "changed!"',
    ],
    [
      'lines added',
      there(edited((all) => all.toSpliced(39, 0, ...'abcd'))),
      'changed',
      '+4 −0 lines around 40–43: first changed lines: "a", "b", "c"',
    ],
    ['lines removed', there(edited((all) => all.toSpliced(9, 3))), 'changed', '+0 −3 lines around 10'],
    ['a line moved', there(edited((all) => [...all.slice(1), 'line 1'])), 'changed', '+1 −1 lines around 1–60'],
    [
      'lines at both ends',
      there(edited((all) => ['first', ...all, 'last'])),
      'changed',
      '+2 −0 lines around 1–62: first changed lines: "first", "last"',
    ],
    [
      'other line ends',
      there(before.replaceAll('\n', '\r\n')),
      'changed',
      'only line ends or white space at the end of lines changed',
    ],
    [
      'a long line',
      there(edited((all) => all.with(0, `\t"${'x'.repeat(500)}`))),
      'changed',
      `+1 −1 lines around 1: first changed lines: "\\"${'x'.repeat(99)}…"`,
    ],
    ['all of it gone', there(''), 'changed', '+0 −60 lines around 1'],
  ]
  for (const [what, now, status, note] of changes)
    verifies('H-05', `finds ${what}`, async () => {
      const reference = (await refer('a.ts', seeing(there(before)))) as FileReference
      expect(await resolve(reference, seeing(now))).toEqual({
        path: 'a.ts',
        status,
        ...(note === undefined ? {} : { note }),
      })
    })

  it('tells sizes where lines are not known, and nothing where nothing is', async () => {
    const large = 'x\n'.repeat(5_001)
    const reference = (await refer('a.ts', seeing(there(large)))) as FileReference
    expect(reference.lines).toBe('')
    expect((await resolve(reference, seeing(there('y')))).note).toBe('10002 bytes then, 1 bytes now')
    const empty = (await refer('a.ts', seeing(there('')))) as FileReference
    expect((await resolve(empty, seeing(there('y')))).note).toBe('0 bytes then, 1 bytes now')
    const told = { path: 'a.ts', hash: 'abc', last_modified: '', size: 0, lines: '' }
    expect((await resolve(told, seeing(there('y')))).note).toBe('what it said before is not known')
  })

  it('counts what came and what went, for any two texts', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(text, text, (old, now) => {
        const note = difference(packed(old.join('\n')), now.join('\n')) ?? ''
        const [, come, gone] = /^\+(\d+) −(\d+) lines/.exec(note) ?? [note, '0', '0']
        expect(Number(come) - Number(gone)).toBe(now.length - old.length)
        expect(Number(come)).toBe(now.length - common(old, now))
      }),
    )
  })

  it('is compared at once however much changed', () => {
    const [old, now] = ['a', 'b'].map((mark) => Array.from({ length: 5_000 }, (_, n) => `${mark}${n}`).join('\n')) as [
      string,
      string,
    ]
    expect(difference(packed(old), now)).toBe('+5000 −5000 lines around 1–5000: first changed lines: "b0", "b1", "b2"')
  })
})

/** The length of the longest common subsequence, as it is defined. */
function common(one: readonly string[], other: readonly string[]): number {
  const [head, ...rest] = one
  if (head === undefined) return 0
  const at = other.indexOf(head)
  return Math.max(common(rest, other), at < 0 ? 0 : 1 + common(rest, other.slice(at + 1)))
}
