import { mkdtempSync, readFileSync, realpathSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { Audit } from '../../src/mcp/files/audit.ts'
import { verifies } from '../requirements/verifies.ts'
import { type Ended, start } from './command.ts'

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-cli-audit-'))
afterAll(() => rmSync(folder, { recursive: true }))

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  start('src/cli/main.ts', ['audit', ...args], env, '', folder).ended

/** A log of three lines; the hash of the last one. */
async function written(name: string): Promise<{ readonly file: string; readonly hash: string }> {
  const audit = new Audit(join(folder, name))
  const at = Date.UTC(2026, 0, 2)
  await audit.note({ at, user: 'ann', operation: 'read', path: '/app/a.txt', outcome: 'allowed' })
  await audit.note({
    at,
    user: 'eve',
    operation: 'write',
    path: '/etc/\u001b[2Jpasswd',
    outcome: 'refused',
    why: 'outside',
  })
  await audit.note({ at, user: 'bob', operation: 'list', path: '/app', outcome: 'allowed' })
  const { hash } = JSON.parse(readFileSync(`${audit.file}.head`, 'utf8')) as { hash: string }
  return { file: audit.file, hash }
}

describe('the audit command', () => {
  verifies('H-09', 'says that a log is whole', async () => {
    const { hash } = await written('threadkeep-audit.jsonl')
    const whole = `threadkeep-audit.jsonl is whole: 3 lines. The last hash is ${hash}.\n`
    expect(await run(['verify'])).toEqual({ code: 0, stdout: whole, stderr: '' })
    const json = { log: 'threadkeep-audit.jsonl', whole: true, lines: 3, hash, unfinished: false }
    expect(
      JSON.parse((await run(['verify', '--json'], { THREADKEEP_AUDIT_LOG: 'threadkeep-audit.jsonl' })).stdout),
    ).toEqual(json)
  })

  verifies('H-09', 'says where a log was changed, and fails', async () => {
    const { file } = await written('changed.jsonl')
    writeFileSync(file, readFileSync(file, 'utf8').replace('"eve"', '"ann"'))
    const broken = 'changed.jsonl is broken at line 2, which was changed.\n'
    expect(await run(['verify', '--log', 'changed.jsonl'])).toEqual({ code: 1, stdout: broken, stderr: '' })
    const { code, stdout } = await run(['verify', '--log', 'changed.jsonl', '--json'])
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      { log: 'changed.jsonl', whole: false, lines: 1, line: 2, why: 'was changed' },
    ])
  })

  verifies('H-09', 'says that the end of a log was cut off, or that all of it is gone', async () => {
    const { file } = await written('cut.jsonl')
    const lines = readFileSync(file, 'utf8').split('\n')
    truncateSync(file, (lines[0] ?? '').length + 1)
    const cut = 'cut.jsonl is broken at line 2, which is gone, with everything after it: 2 of 3 lines.\n'
    expect(await run(['verify', '--log', 'cut.jsonl'])).toEqual({ code: 1, stdout: cut, stderr: '' })
    rmSync(file)
    const gone = 'cut.jsonl is broken at line 1, which is gone, with everything after it: 3 of 3 lines.\n'
    expect(await run(['verify', '--log', 'cut.jsonl'])).toEqual({ code: 1, stdout: gone, stderr: '' })
  })

  verifies('H-09', 'shows what was done, by whom, and nothing a terminal would obey', async () => {
    await written('shown.jsonl')
    const rows = [
      '2026-01-02T00:00:00.000Z  ann  read   allowed  /app/a.txt',
      '2026-01-02T00:00:00.000Z  eve  write  refused  /etc/\\u{1b}[2Jpasswd  outside',
      '2026-01-02T00:00:00.000Z  bob  list   allowed  /app',
    ]
    expect(await run(['show', '--log', 'shown.jsonl'])).toEqual({ code: 0, stdout: `${rows.join('\n')}\n`, stderr: '' })
    expect((await run(['show', '--log', 'shown.jsonl', '--limit', '1'])).stdout).toBe(
      '2026-01-02T00:00:00.000Z  bob  list  allowed  /app\n',
    )
    const refused = JSON.parse(
      (await run(['show', '--log', 'shown.jsonl', '--outcome', 'refused', '--json'])).stdout,
    ) as { items: unknown[] }
    expect(refused).toMatchObject({ log: 'shown.jsonl', whole: true, items: [{ user: 'eve', why: 'outside' }] })
    expect((await run(['show', '--log', 'shown.jsonl', '--user', 'nobody'])).stdout).toBe('No lines.\n')
  })

  const wrong: readonly (readonly [args: readonly string[], message: string])[] = [
    [['verify', '--log', 'none.jsonl'], 'There is no audit log at none.jsonl. Say where it is with --log FILE.'],
    [['show', '--log', 'none.jsonl'], 'There is no audit log at none.jsonl. Say where it is with --log FILE.'],
    [['show', '--limit', '0'], 'limit is "0"; it must be a whole number, 1 or more.'],
    [['show', '--outcome', 'perhaps'], 'outcome is "perhaps"; it must be allowed, refused or failed.'],
    [['mend'], "unknown command 'mend' (threadkeep --help tells more)"],
  ]
  for (const [args, message] of wrong)
    verifies('H-09', `says in one line what is wrong with: audit ${args.join(' ')}`, async () => {
      expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` })
    })

  for (const args of [[], ['verify'], ['show']])
    verifies('H-09', `explains itself, with examples and exit codes: audit ${args.join(' ')}`, async () => {
      const { code, stdout } = await run([...args, '--help'])
      expect([code, stdout.startsWith('Usage: threadkeep audit ')]).toEqual([0, true])
      expect(stdout).toContain('\nExamples:\n  threadkeep audit verify\n')
      expect(stdout).toContain(
        'Exit codes: 0 fine, 1 failed, 2 wrong usage, 130 interrupted. A log that is not whole counts as failed.',
      )
    })
})
