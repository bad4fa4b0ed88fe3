import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { AuditLog } from '../../src/mcp/files/audit.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, exitCodes } from './cliHarness.ts'

const { folder, run } = createCliHarness('audit', ['audit'], { THREADKEEP_STORE: 'ram:' })

/** Writes a log of three lines and returns the hash of the last one. */
async function writeLog(name: string): Promise<{ readonly file: string; readonly hash: string }> {
  const audit = new AuditLog(join(folder, name))
  const at = Date.UTC(2026, 0, 2)
  await audit.append({ at, user: 'ann', operation: 'read', path: '/app/a.txt', outcome: 'allowed' })
  await audit.append({
    at,
    user: 'eve',
    operation: 'write',
    path: '/etc/\u001b[2Jpasswd',
    outcome: 'refused',
    why: 'outside',
  })
  await audit.append({ at, user: 'bob', operation: 'list', path: '/app', outcome: 'allowed' })
  const { hash } = JSON.parse(readFileSync(`${audit.file}.head`, 'utf8')) as { hash: string }
  return { file: audit.file, hash }
}

describe('threadkeep audit', () => {
  verifies('H-09', 'verify › with an intact log › reports it as valid', async () => {
    const { hash } = await writeLog('threadkeep-audit.jsonl')
    const valid = `threadkeep-audit.jsonl is valid: 3 lines. Last hash: ${hash}.\n`
    expect(await run(['verify'])).toEqual({ code: 0, stdout: valid, stderr: '' })
    const json = { log: 'threadkeep-audit.jsonl', valid: true, lines: 3, hash, unfinished: false }
    expect(
      JSON.parse((await run(['verify', '--json'], '', { THREADKEEP_AUDIT_LOG: 'threadkeep-audit.jsonl' })).stdout),
    ).toEqual(json)
  })

  verifies('H-09', 'verify › with a changed line › reports the line and fails', async () => {
    const { file } = await writeLog('changed.jsonl')
    writeFileSync(file, readFileSync(file, 'utf8').replace('"eve"', '"ann"'))
    const invalid = 'changed.jsonl is invalid from line 2: it was changed.\n'
    expect(await run(['verify', '--log', 'changed.jsonl'])).toEqual({ code: 1, stdout: invalid, stderr: '' })
    const { code, stdout } = await run(['verify', '--log', 'changed.jsonl', '--json'])
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      { log: 'changed.jsonl', valid: false, lines: 1, line: 2, reason: 'was changed' },
    ])
  })

  verifies('H-09', 'verify › with a truncated or deleted log › reports the missing lines', async () => {
    const { file } = await writeLog('cut.jsonl')
    const lines = readFileSync(file, 'utf8').split('\n')
    truncateSync(file, (lines[0] ?? '').length + 1)
    const truncated = 'cut.jsonl is invalid from line 2: it is missing with everything after it: 2 of 3 lines.\n'
    expect(await run(['verify', '--log', 'cut.jsonl'])).toEqual({ code: 1, stdout: truncated, stderr: '' })
    rmSync(file)
    const deleted = 'cut.jsonl is invalid from line 1: it is missing with everything after it: 3 of 3 lines.\n'
    expect(await run(['verify', '--log', 'cut.jsonl'])).toEqual({ code: 1, stdout: deleted, stderr: '' })
  })

  verifies('H-09', 'show › lists operations with user and outcome, without control characters', async () => {
    await writeLog('shown.jsonl')
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
    expect(refused).toMatchObject({ log: 'shown.jsonl', valid: true, items: [{ user: 'eve', why: 'outside' }] })
    expect((await run(['show', '--log', 'shown.jsonl', '--user', 'nobody'])).stdout).toBe('No lines.\n')
  })

  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['verify', '--log', 'none.jsonl'], 'No audit log at none.jsonl. Set its path with --log FILE.'],
    [['show', '--log', 'none.jsonl'], 'No audit log at none.jsonl. Set its path with --log FILE.'],
    [['show', '--limit', '0'], 'limit is "0"; it must be a whole number, 1 or more.'],
    [['show', '--outcome', 'perhaps'], 'outcome is "perhaps"; it must be allowed, refused or failed.'],
    [['mend'], "unknown command 'mend'. See threadkeep audit --help."],
  ]
  for (const [args, message] of invalid)
    verifies('H-09', `invalid input prints one line and exits with 2: audit ${args.join(' ')}`, async () => {
      expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` })
    })

  for (const args of [[], ['verify'], ['show']])
    verifies('H-09', `--help prints usage, examples and exit codes: audit ${args.join(' ')}`, async () => {
      const { code, stdout } = await run([...args, '--help'])
      expect([code, stdout.startsWith('Usage: threadkeep audit ')]).toEqual([0, true])
      expect(stdout).toContain('\nExamples:\n  threadkeep audit ')
      expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`${exitCodes} A log that fails verification is a failure.`)
    })
})
