import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { type Ended, start } from './command.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-restore-'))
afterAll(() => rmSync(folder, { recursive: true }))

const run = (args: readonly string[], input = '', env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  start('src/cli/main.ts', args, { THREADKEEP_STORE: '', THREADKEEP_WORKSPACE: 'billing', ...env }, input, folder).ended
const json = async (...args: readonly string[]): Promise<Record<string, unknown>> => {
  const { code, stdout, stderr } = await run([...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

describe('threadkeep restore', () => {
  let saved = ''
  beforeAll(async () => {
    writeFileSync(join(folder, 'a.ts'), 'export const a = 1\n')
    const { stdout } = await run(
      ['save', '--json', '--allow', '.'],
      `User: The login page fails with E-4711, see ${join(folder, 'a.ts')}.\nAssistant: It is the umlaut.\n`,
    )
    saved = (JSON.parse(stdout) as { sessionId: string }).sessionId
  }, 30_000)

  verifies(['H-05', 'S-02'], 'explains itself', async () => {
    const { code, stdout } = await run(['restore', '--help'])
    expect([code, stdout.includes('\nExamples:\n  threadkeep restore'), stdout.includes('Exit codes: 0 fine')]).toEqual(
      [0, true, true],
    )
  })

  verifies('H-05', 'prints the text alone, and tells of the session and of files on the standard error', async () => {
    writeFileSync(join(folder, 'a.ts'), 'export const a = 2\n')
    const { code, stdout, stderr } = await run(['restore', '--budget', '2000', '--allow', '.'])
    expect([
      code,
      stdout.startsWith('# The login page fails'),
      /\nThis chat is session (session_\w+), which goes on from session_\w+\. Save it with threadkeep save --session \1\.\n$/.test(
        stdout,
      ),
    ]).toEqual([0, true, true])
    expect(stderr).toMatch(
      new RegExp(`^The new chat is session session_\\d{13}_[0-9a-f]{8}, which goes on from ${saved}; \\d+ tokens\\.\n`),
    )
    expect(stderr).toContain('a.ts is changed: ')
    expect(await json('restore', `billing:${saved}`, '--query', 'umlaut')).toMatchObject({
      continues: saved,
      budget: 8_000,
    })
    expect((await run(['restore'])).stderr).toContain('1 file was not looked at: --allow opens a folder to that.\n')
  })

  verifies('H-14', 'leaves behind how well the session came through, as sessions show tells', async () => {
    const { stdout } = await run(['sessions', 'show', `billing:${saved}`])
    expect((await run(['sessions', 'show', saved])).stdout).toBe(stdout)
    expect(stdout).toMatch(
      /\nsaved: \d+ items?, 1 file\nrestored .*Z into 8000 tokens: \d+ % of the meaning, 100 % of the facts\n/,
    )
    // Of all that was restored nothing was gone on with.
    expect(stdout).not.toContain('\nchain: ')
    expect(await json('sessions', 'show', `billing:${saved}`)).toMatchObject({
      saved: { sessionId: saved, preservation: { budget: 8_000, facts: 1 } },
    })
  })

  verifies('H-07', 'takes in what save has written to a directory, byte for byte', async () => {
    const { stdout } = await run(['save', '--directory', 'backup'])
    expect(stdout).toBe('2 messages of 1 session are in backup.\n')
    expect((await run(['restore', '--directory', 'backup', '--store', 'sqlite:copy.db'])).stdout).toBe(
      '2 messages of 1 session were taken in.\n',
    )
    expect((await run(['restore', '--directory', 'backup', '--store', 'sqlite:copy.db'])).stdout).toBe(
      '0 messages of 0 sessions were taken in.\n1 session was there already.\n',
    )
    await run(['save', '--directory', 'again', '--store', 'sqlite:copy.db'])
    const bytes = (name: string) =>
      readdirSync(join(folder, name), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'base64'))
    expect(bytes('again')).toEqual(bytes('backup'))
  })

  const wrong: readonly (readonly [args: readonly string[], message: string])[] = [
    [['--budget', '0'], 'budget is "0"; it must be a whole number, 1 or more.'],
    [
      ['session_1'],
      'There is no session "session_1" in this workspace. threadkeep sessions list tells which there are.',
    ],
    [
      ['--workspace', 'empty'],
      'No session was saved in this workspace yet. Save one with threadkeep save, or name another one with --workspace.',
    ],
    [['session_1', '--directory', 'x'], 'A session to restore and --directory do not go together; choose one.'],
    [['--store', 'sqlite:nowhere.db'], 'There is no store at nowhere.db. Say where it is with --store sqlite:PATH.'],
  ]
  for (const [args, message] of wrong)
    it(`says in one line what is wrong with: restore ${args.join(' ')}`, async () =>
      expect(await run(['restore', ...args])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }))

  it('tells a terminal nothing it would obey, whatever it is asked for', async () => {
    const { code, stderr } = await run(['restore', 'a\u202eb'])
    expect([code, stderr.includes('\u202e'), stderr.startsWith('threadkeep: ')]).toEqual([2, false, true])
  })
})
