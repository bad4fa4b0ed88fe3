import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness } from './cliHarness.ts'

const { folder, run, json } = createCliHarness('restore', [], { THREADKEEP_WORKSPACE: 'billing' })

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

  verifies(['H-05', 'S-02'], '--help prints usage, examples and exit codes', async () => {
    const { code, stdout } = await run(['restore', '--help'])
    expect([
      code,
      stdout.includes('\nExamples:\n  threadkeep restore'),
      stdout.includes('Exit codes: 0 success'),
    ]).toEqual([0, true, true])
  })

  verifies(
    'H-05',
    'prints the text to standard output, and the session and file changes to standard error',
    async () => {
      writeFileSync(join(folder, 'a.ts'), 'export const a = 2\n')
      const { code, stdout, stderr } = await run(['restore', '--budget', '2000', '--allow', '.'])
      expect([
        code,
        stdout.startsWith('Continued from another chat.') && stdout.split('The login page fails').length === 2,
        /\nThis chat is session (session_\w+), which goes on from session_\w+\. Save it with threadkeep save --session \1\.\n$/.test(
          stdout,
        ),
      ]).toEqual([0, true, true])
      expect(stderr).toMatch(
        new RegExp(`^New session session_\\d{13}_[0-9a-f]{8} continues ${saved}: \\d+ tokens\\.\n`),
      )
      expect(stderr).toContain('a.ts: changed, ')
      expect(await json('restore', `billing:${saved}`, '--query', 'umlaut')).toMatchObject({
        continues: saved,
        budget: 8_000,
      })
      expect((await run(['restore'])).stderr).toContain('1 file not inspected. Allow a folder with --allow.\n')
    },
  )

  verifies('H-14', 'records how much was preserved, shown by sessions show', async () => {
    const { stdout } = await run(['sessions', 'show', `billing:${saved}`])
    expect((await run(['sessions', 'show', saved])).stdout).toBe(stdout)
    expect(stdout).toMatch(
      /\nsaved: \d+ items?, 1 file\nrestored .*Z into 8000 tokens: wording similarity 100 %, facts preserved 100 %\n/,
    )
    // No restored session was continued.
    expect(stdout).not.toContain('\nchain: ')
    expect(await json('sessions', 'show', `billing:${saved}`)).toMatchObject({
      saved: { sessionId: saved, preservation: { budget: 8_000, facts: 1 } },
    })
  })

  verifies('H-07', '--directory imports what save --directory wrote, byte for byte', async () => {
    const { stdout } = await run(['save', '--directory', 'backup'])
    expect(stdout).toBe('Exported 2 messages of 1 session to backup.\n')
    expect((await run(['restore', '--directory', 'backup', '--store', 'sqlite:copy.db'])).stdout).toBe(
      'Imported 2 messages of 1 session.\n',
    )
    expect((await run(['restore', '--directory', 'backup', '--store', 'sqlite:copy.db'])).stdout).toBe(
      'Imported 0 messages of 0 sessions.\n1 session unchanged.\n',
    )
    await run(['save', '--directory', 'again', '--store', 'sqlite:copy.db'])
    const readFiles = (name: string) =>
      readdirSync(join(folder, name), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'base64'))
    expect(readFiles('again')).toEqual(readFiles('backup'))
  })

  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['--budget', '0'], 'budget is "0"; it must be a whole number, 1 or more.'],
    [
      ['session_1'],
      'There is no session "session_1" in this workspace. Run threadkeep sessions list to see all sessions.',
    ],
    [
      ['--workspace', 'empty'],
      'No session was saved in this workspace yet. Save one with threadkeep save, or choose another workspace with --workspace.',
    ],
    [['session_1', '--directory', 'x'], 'A session and --directory cannot be combined. Choose one.'],
    [
      ['--store', 'sqlite:nowhere.db'],
      'No store at nowhere.db. Start one with threadkeep chat or threadkeep serve, or set its path with --store sqlite:PATH.',
    ],
  ]
  for (const [args, message] of invalid)
    it(`invalid input prints one line and exits with 2: restore ${args.join(' ')}`, async () =>
      expect(await run(['restore', ...args])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }))

  it('strips control characters from error messages', async () => {
    const { code, stderr } = await run(['restore', 'a\u202eb'])
    expect([code, stderr.includes('\u202e'), stderr.startsWith('threadkeep: ')]).toEqual([2, false, true])
  })
})
