import { hash } from 'node:crypto'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AuditEvent, AuditLog } from '../../src/mcp/files/audit.ts'
import { type AuditLine, type ChainState, nextLine, verifyAuditLog } from '../../src/mcp/files/auditChain.ts'
import { FileAccess } from '../../src/mcp/files/fileAccess.ts'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { createFilesFixture } from './filesFixture.ts'

function createLog() {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-audit-'))
  const file = join(folder, 'deep', 'audit.log')
  return {
    folder,
    file,
    audit: new AuditLog(file),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
const event = (path: string): AuditEvent => ({ at: 0, user: 'ann', operation: 'read', path, outcome: 'allowed' })
const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1)

describe('audit log', () => {
  verifies(['H-09', 'X-08'], 'with a secret as user, in a path or in a reason › masks it', async () => {
    using log = createLog()
    const secret = `gh${'p_'}${'aB3dE5gH7jK9'.repeat(3)}`
    await log.audit.append({ ...event(`/app/${secret}`), user: secret, outcome: 'refused', why: `no file ${secret}` })
    const [line = ''] = linesOf(log.file)
    expect(JSON.parse(line)).toMatchObject({
      user: '⟨secret:0⟩',
      path: '/app/⟨secret:0⟩',
      why: 'no file ⟨secret:0⟩',
    })
  })

  verifies('H-09', 'has one line per operation, linked to the previous line by its hash', async () => {
    using log = createLog()
    await log.audit.append({
      at: 1_767_312_000_000,
      user: 'ann',
      operation: 'read',
      path: '/app/a.txt',
      outcome: 'refused',
      why: 'outside',
    })
    await log.audit.append(event('/app/b.txt'))
    const first =
      '"operation":"read","outcome":"refused","path":"/app/a.txt","previous":"","user":"ann","why":"outside"}'
    const one = hash('sha256', `{"at":"2026-01-02T00:00:00.000Z",${first}`)
    const second = `"operation":"read","outcome":"allowed","path":"/app/b.txt","previous":"${one}","user":"ann"}`
    const two = hash('sha256', `${one}{"at":"1970-01-01T00:00:00.000Z",${second}`)
    expect(linesOf(log.file)).toEqual([
      `{"at":"2026-01-02T00:00:00.000Z","hash":"${one}",${first}`,
      `{"at":"1970-01-01T00:00:00.000Z","hash":"${two}",${second}`,
    ])
    expect([log.file, `${log.file}.head`, `${log.file}.lock`].map((file) => statSync(file).mode & 0o777)).toEqual([
      0o600, 0o600, 0o600,
    ])
    expect(await verifyAuditLog(log.file)).toEqual({ valid: true, lines: 2, hash: two, unfinished: false })
  })

  verifies('H-09', 'escapes control characters and line breaks', async () => {
    using log = createLog()
    const path = `a\n{"at":"x"}\\u{a}\u001b[2J\u009b1m\u202e\u2028\ud83d\0${'x'.repeat(5_000)}`
    await log.audit.append({ ...event(path), user: 'an\rn' })
    const [line = '', ...more] = linesOf(log.file)
    expect(more).toEqual([])
    const { user, path: loggedPath } = JSON.parse(line) as { user: string; path: string }
    expect(user).toBe('an\\u{d}n')
    expect(
      loggedPath.startsWith('a\\u{a}{"at":"x"}\\u{5c}u{a}\\u{1b}[2J\\u{9b}1m\\u{202e}\\u{2028}\\u{d83d}\\u{0}xxx'),
    ).toBe(true)
    expect(loggedPath.length).toBeLessThan(1_100)
    expect(await verifyAuditLog(log.file)).toMatchObject({ valid: true, lines: 1 })
  })

  verifies(
    'H-09',
    'stays valid with two processes that write 200 lines each',
    async () => {
      using log = createLog()
      const writers = ['ann', 'bob'].map(
        (user) => startProgram('test/mcp/auditWriter.ts', [log.file, user, '200']).result,
      )
      expect((await Promise.all(writers)).map(({ code, stderr }) => [code, stderr])).toEqual([
        [0, ''],
        [0, ''],
      ])
      const paths = new Map<string, string[]>()
      expect(
        await verifyAuditLog(log.file, ({ user, path }) => paths.set(user, [...(paths.get(user) ?? []), path])),
      ).toMatchObject({ valid: true, lines: 400 })
      for (const user of ['ann', 'bob'])
        expect(paths.get(user)).toEqual(Array.from({ length: 200 }, (_, n) => `/${user}/${n}`))
    },
    120_000,
  )

  verifies(
    'H-09',
    'continues after a writer was killed and keeps its lines',
    async () => {
      using log = createLog()
      const writer = startProgram('test/mcp/auditWriter.ts', [log.file, 'ann', '100000'])
      await writer.waitForOutput('/ann/20\n')
      writer.process.kill('SIGKILL')
      await writer.result
      await log.audit.append({ ...event('/after'), user: 'bob' })
      const paths: string[] = []
      expect(await verifyAuditLog(log.file, ({ path }) => paths.push(path))).toMatchObject({
        valid: true,
        unfinished: false,
      })
      expect(paths).toEqual([...paths.slice(0, -1).map((_, n) => `/ann/${n}`), '/after'])
    },
    60_000,
  )

  for (const [what, torn] of [
    ['half a line', '{"at":"2026-01-02T0'],
    ['half a line that ends inside a character', Buffer.from('{"at":"ü').subarray(0, -1)],
    ['half a line twice', '{"at":\n{"at"'],
    ['half a line and a newline', '{"at":\n'],
  ] as const)
    verifies('H-09', `continues after a crash left ${what}, and records its hash`, async () => {
      using log = createLog()
      await log.audit.append(event('/one'))
      appendFileSync(log.file, torn)
      expect(await verifyAuditLog(log.file)).toMatchObject({ valid: true, lines: 1, unfinished: true })
      await log.audit.append(event('/two'))
      await log.audit.append(event('/three'))
      expect(await verifyAuditLog(log.file)).toMatchObject({ valid: true, lines: 3, unfinished: false })
      expect(readFileSync(log.file).includes(torn)).toBe(true)
      writeFileSync(log.file, readFileSync(log.file, 'latin1').replace('{"at"', '{"as"'), 'latin1')
      expect(await verifyAuditLog(log.file)).toMatchObject({ valid: false })
    })

  it('continues after a line without its newline and without its head record', async () => {
    using log = createLog()
    await log.audit.append(event('/one'))
    const head = readFileSync(`${log.file}.head`)
    await log.audit.append(event('/two'))
    writeFileSync(`${log.file}.head`, head)
    truncateSync(log.file, statSync(log.file).size - 1)
    await log.audit.append(event('/three'))
    expect(linesOf(log.file).map((line) => (JSON.parse(line) as AuditEvent).path)).toEqual(['/one', '/two', '/three'])
    expect(await verifyAuditLog(log.file)).toMatchObject({ valid: true, lines: 3 })
  })

  it('rejects lines while the head file cannot be written, and continues when it can', async () => {
    using log = createLog()
    await log.audit.append(event('/one'))
    mkdirSync(`${log.file}.head.unfinished`)
    for (let n = 0; n < 5; n++)
      await expect(log.audit.append(event('/two'))).rejects.toThrow(
        'The audit log cannot be written (EISDIR), so nothing was done.',
      )
    expect(linesOf(log.file)).toHaveLength(2)
    rmdirSync(`${log.file}.head.unfinished`)
    await log.audit.append(event('/three'))
    expect(await verifyAuditLog(log.file)).toMatchObject({ valid: true, lines: 3 })
  })

  verifies(
    'H-09',
    'starts again when the log and its head file are moved away, and the moved log can be verified',
    async () => {
      using log = createLog()
      await log.audit.append(event('/one'))
      renameSync(log.file, `${log.file}.1`)
      await expect(log.audit.append(event('/two'))).rejects.toThrow(
        'move the log and its .head file away to start a new one.',
      )
      renameSync(`${log.file}.head`, `${log.file}.1.head`)
      await log.audit.append(event('/two'))
      const paths: string[] = []
      for (const file of [`${log.file}.1`, log.file])
        expect(await verifyAuditLog(file, ({ path }) => paths.push(path))).toMatchObject({ valid: true, lines: 1 })
      expect(paths).toEqual(['/one', '/two'])
    },
  )

  const damages: readonly (readonly [what: string, damage: (file: string) => void, message: string])[] = [
    [
      'a truncated log',
      (file) => truncateSync(file, statSync(file).size - 200),
      'The audit log has lost lines at its end, so nothing was done.',
    ],
    ['an emptied log', (file) => truncateSync(file), 'The audit log has lost lines at its end, so nothing was done.'],
    ['a deleted log', (file) => rmSync(file), 'The audit log has lost lines at its end, so nothing was done.'],
    ['a missing head file', (file) => rmSync(`${file}.head`), 'The audit log has no .head file, so nothing was done.'],
    [
      'a damaged head file',
      (file) => writeFileSync(`${file}.head`, '{'),
      'The audit log has a damaged .head file, so nothing was done.',
    ],
    [
      'an invalid head file',
      (file) => writeFileSync(`${file}.head`, '{"count":-1,"bytes":-100,"hash":""}'),
      'The audit log has a damaged .head file, so nothing was done.',
    ],
    [
      'a foreign line at its end',
      (file) => appendFileSync(file, '{"at":1}\n'),
      'The audit log has a line that does not continue the line before it',
    ],
    [
      'a link in its place',
      (file) => {
        renameSync(file, `${file}.old`)
        symlinkSync(`${file}.old`, file)
      },
      'The audit log cannot be written (ELOOP), so nothing was done.',
    ],
    [
      'a folder in its place',
      (file) => {
        rmSync(file)
        mkdirSync(file)
      },
      'The audit log cannot be written (EISDIR), so nothing was done.',
    ],
  ]
  for (const [what, damage, message] of damages)
    verifies('H-09', `with ${what} blocks all file operations`, async () => {
      using fixture = createFilesFixture()
      const { files, at } = fixture
      await files.read('ann', 'hello.txt')
      damage(fixture.audit.file)
      await expect(files.read('ann', 'hello.txt')).rejects.toThrow(message)
      await expect(files.write('ann', 'hello.txt', 'x')).rejects.toThrow(message)
      await expect(files.createDirectory('ann', 'new')).rejects.toThrow(message)
      await expect(files.read('ann', '/etc/passwd')).rejects.toThrow(message)
      expect((await files.look('ann', 'hello.txt')).status).toBe('refused')
      expect(readFileSync(at('app/hello.txt'), 'utf8')).toBe('Hello.\n')
      expect(statSync(at('app/new'), { throwIfNoEntry: false })).toBeUndefined()
    })

  it('without a folder for it blocks all file operations', async () => {
    using fixture = createFilesFixture()
    const files = new FileAccess({
      allow: [fixture.at('app')],
      write: true,
      audit: new AuditLog(fixture.at('app/hello.txt/audit.log')),
      clock: () => 0,
    })
    await expect(files.read('ann', 'hello.txt')).rejects.toMatchObject({ code: 'not-durable' })
  })
})

type Tampering = (lines: readonly string[], at: number, other: number) => readonly string[]
const tamperings: Readonly<Record<string, Tampering>> = {
  'a changed character': (lines, at, other) => lines.with(at, changeCharacter(lines[at] ?? '', other)),
  'a removed line': (lines, at) => lines.toSpliced(at, 1),
  'a repeated line': (lines, at) => lines.toSpliced(at, 0, lines[at] ?? ''),
  'two swapped lines': (lines, at, other) => {
    const to = (at + 1 + (other % (lines.length - 1))) % lines.length
    return lines.with(at, lines[to] ?? '').with(to, lines[at] ?? '')
  },
  'an empty line': (lines, at) => lines.toSpliced(at, 0, ''),
  'an invalid line': (lines, at) => lines.toSpliced(at, 0, 'nonsense'),
  'a truncated end': (lines, at) => lines.slice(0, at),
  'a truncated last line': (lines, _, other) => lines.with(-1, (lines.at(-1) ?? '').slice(0, -1 - (other % 100))),
}

function changeCharacter(line: string, at: number): string {
  const index = at % line.length
  return line.slice(0, index) + (line[index] === 'f' ? 'e' : 'f') + line.slice(index + 1)
}

describe('verifyLog', () => {
  for (const [what, tamper] of Object.entries(tamperings))
    verifies('H-09', `detects ${what}`, async () => {
      using log = createLog()
      for (let n = 0; n < 8; n++) await log.audit.append({ ...event(`/app/${n}.txt`), at: n, why: `number ${n}` })
      const lines = linesOf(log.file)
      await fc.assert(
        fc.asyncProperty(fc.nat(7), fc.nat(1_000), async (at, other) => {
          const tampered = tamper(lines, at, other)
          writeFileSync(log.file, tampered.map((line) => `${line}\n`).join(''))
          const verdict = await verifyAuditLog(log.file)
          const first = [...lines, undefined].findIndex((line, index) => line !== tampered[index]) + 1
          // The line itself or the next one, where a changed hash is detected.
          expect(verdict.valid === false && verdict.line - first).toBeOneOf([0, 1])
        }),
        { numRuns: 60 },
      )
      writeFileSync(log.file, lines.map((line) => `${line}\n`).join(''))
      expect(await verifyAuditLog(log.file)).toMatchObject({ valid: true, lines: 8 })
    })

  verifies('H-09', 'detects a log that was replaced as a whole', async () => {
    using log = createLog()
    using forged = createLog()
    for (const path of ['/a', '/b']) await log.audit.append(event(path))
    for (const path of ['/a', '/c', '/d']) await forged.audit.append(event(path))
    writeFileSync(log.file, readFileSync(forged.file))
    expect(await verifyAuditLog(log.file)).toEqual({
      valid: false,
      lines: 2,
      line: 2,
      reason: 'is not the line that was written here',
    })
    rmSync(`${log.file}.head`)
    expect(await verifyAuditLog(log.file)).toEqual({
      valid: false,
      lines: 3,
      line: 4,
      reason: 'may be missing: the .head file with the end of the log is missing',
    })
  })

  verifies('H-09', 'detects a correctly linked line that the server would not write', async () => {
    using log = createLog()
    await log.audit.append(event('/a'))
    const state = JSON.parse(readFileSync(`${log.file}.head`, 'utf8')) as ChainState
    const forged = { at: '', user: 7, operation: 'read', path: '/b', outcome: 'allowed' } as unknown as AuditLine
    appendFileSync(log.file, nextLine(state, forged, false).text)
    expect(await verifyAuditLog(log.file)).toEqual({ valid: false, lines: 1, line: 2, reason: 'was changed' })
    await expect(log.audit.append(event('/c'))).rejects.toThrow(
      'The audit log has a line that was changed, so nothing was done.',
    )
  })

  for (const [what, bytes, why] of [
    ['one long line', 'x'.repeat(10_000_000), 'is too long for a log line'],
    ['many short lines', `${'x'.repeat(49)}\n`.repeat(40_000), 'is not a valid log line'],
  ] as const)
    it(`stops early at ${what}`, async () => {
      using log = createLog()
      await log.audit.append(event('/a'))
      appendFileSync(log.file, bytes)
      expect(await verifyAuditLog(log.file)).toMatchObject({ valid: false, line: 2, reason: why })
    })
})
