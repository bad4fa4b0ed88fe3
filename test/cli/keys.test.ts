import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness, exitCodes } from './cliHarness.ts'

const { folder, run, output, json } = createCliHarness('keys', ['keys'])

describe('threadkeep keys', () => {
  verifies('S-02', 'create, list and revoke a key; the key is shown once', async () => {
    expect(await output('list')).toBe('No keys in threadkeep-keys.json.\n')
    expect(readdirSync(folder)).toEqual([])
    const [key = '', created] = (
      await output('create', '--scope', 'acme', '--scope', 'example.com', '--name', 'web shop')
    ).split('\n')
    const id = key.slice(3, 11)
    expect(key).toMatch(/^tk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}$/)
    expect(created).toBe(
      `Created key ${id}: opens acme, example.com, never expires. Copy it now; threadkeep-keys.json stores only its hash.`,
    )
    const file = join(folder, 'threadkeep-keys.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain(key)
    expect(await output('list')).toBe(`${id}  acme example.com  use  valid  never used  web shop\n`)
    const server = new Credentials(file)
    expect(server.authenticate(key, Date.now())).toMatchObject({
      id,
      scopes: ['acme', 'example.com'],
      rights: 'use',
      name: 'web shop',
    })
    await server.settled()
    expect(await output('revoke', id, '--yes')).toBe(`Revoked key ${id}.\n`)
    expect(new Credentials(file).authenticate(key, Date.now())).toBeUndefined()
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`
    expect(await output('list')).toMatch(
      new RegExp(`^${id}  acme example\\.com  use  revoked ${time}  last used ${time}  web shop\n$`),
    )
  })

  verifies('S-02', '--json prints JSON, --file and THREADKEEP_KEYS choose the key file', async () => {
    const made = await json('create', '--file', 'other.json', '--scope', '*', '--admin', '--expires', '90d')
    const { key, ...credential } = made as { key: string; createdAt: number }
    expect(credential).toEqual({
      id: key.slice(3, 11),
      name: '',
      scopes: ['*'],
      rights: 'admin',
      createdAt: credential.createdAt,
      expiresAt: credential.createdAt + 90 * 86_400_000,
    })
    expect(await json('list', '--file', 'other.json')).toEqual({ items: [credential] })
    expect(JSON.parse((await run(['list', '--json'], '', { THREADKEEP_KEYS: 'other.json' })).stdout)).toEqual({
      items: [credential],
    })
    expect(await json('revoke', key.slice(3, 11), '--file', 'other.json', '--yes')).toMatchObject({
      id: key.slice(3, 11),
      revokedAt: expect.any(Number),
    })
  })

  for (const args of [[], ['create'], ['list'], ['revoke']]) {
    verifies('S-02', `--help prints usage, examples and exit codes: keys ${args.join(' ')}`, async () => {
      const help = await output(...args, '--help')
      expect(help).toMatch(/^Usage: threadkeep keys /)
      expect(help).toContain('\nExamples:\n  threadkeep keys ')
      expect(help).toContain(exitCodes)
    })
  }

  const expires = 'it must be in the future, such as 90d, 12h, 30m or a date.'
  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['create'], "required option '--scope <scope>' not specified. See threadkeep keys create --help."],
    [
      ['create', '--scope', 'acme:ann'],
      'scope is "acme:ann"; it must be a scope such as acme, without a session, or * for all.',
    ],
    [['create', '--scope', 'acme', '--expires', '0d'], `expires is "0d"; ${expires}`],
    [['create', '--scope', 'acme', '--expires', '2020-01-01'], `expires is "2020-01-01"; ${expires}`],
    [
      ['create', '--scope', 'acme', '--expires', 'soon'],
      'expires is "soon"; it must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z.',
    ],
    [['revoke', 'nobody'], 'There is no key "nobody". Run threadkeep keys list to see the keys.'],
  ]
  for (const [args, message] of invalid) {
    verifies('S-02', `invalid input prints one line and exits with 2: keys ${args.join(' ')}`, async () => {
      expect(await run(args, '', { THREADKEEP_KEYS: 'untouched.json' })).toEqual({
        code: 2,
        stdout: '',
        stderr: `threadkeep: ${message}\n`,
      })
      expect(readdirSync(folder)).not.toContain('untouched.json')
    })
  }

  it('with a damaged key file fails and leaves it unchanged', async () => {
    writeFileSync(join(folder, 'damaged.json'), '{')
    const message =
      'The key file damaged.json is damaged: it is not JSON. Restore a backup, or move the file away and create new keys.'
    for (const args of [['list'], ['create', '--scope', 'acme'], ['revoke', 'x']])
      expect(await run([...args, '--file', 'damaged.json'])).toEqual({
        code: 1,
        stdout: '',
        stderr: `threadkeep: ${message}\n`,
      })
    expect(readFileSync(join(folder, 'damaged.json'), 'utf8')).toBe('{')
  })
})
