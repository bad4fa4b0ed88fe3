import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { verifies } from '../requirements/verifies.ts'
import { type Ended, start } from './command.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-keys-'))
afterAll(() => rmSync(folder, { recursive: true }))

const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  start('src/cli/main.ts', ['keys', ...args], env, '', folder).ended
const said = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}
const json = async (...args: string[]): Promise<Record<string, unknown>> =>
  JSON.parse(await said(...args, '--json')) as Record<string, unknown>

describe('the keys command', () => {
  verifies('S-02', 'makes, lists and revokes keys, which are shown once', async () => {
    expect(await said('list')).toBe('There are no keys in threadkeep-keys.json.\n')
    expect(readdirSync(folder)).toEqual([])
    const [key = '', told] = (
      await said('create', '--scope', 'acme', '--scope', 'example.com', '--name', 'web shop')
    ).split('\n')
    const id = key.slice(3, 11)
    expect(key).toMatch(/^tk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}$/)
    expect(told).toBe(
      `This key is shown this once; threadkeep-keys.json keeps only its hash. It is key ${id}, opens acme, example.com and never expires.`,
    )
    const file = join(folder, 'threadkeep-keys.json')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain(key)
    expect(await said('list')).toBe(`${id}  acme example.com  use  good  never used  web shop\n`)
    const server = new Credentials(file)
    expect(server.check(key, Date.now())).toMatchObject({
      id,
      scopes: ['acme', 'example.com'],
      rights: 'use',
      name: 'web shop',
    })
    await server.settled()
    expect(await said('revoke', id)).toBe(`Key ${id} is good for nothing from now on.\n`)
    expect(new Credentials(file).check(key, Date.now())).toBeUndefined()
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`
    expect(await said('list')).toMatch(
      new RegExp(`^${id}  acme example\\.com  use  revoked ${time}  last used ${time}  web shop\n$`),
    )
  })

  verifies('S-02', 'answers in JSON, and keeps keys where it is told to', async () => {
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
    expect(JSON.parse((await run(['list', '--json'], { THREADKEEP_KEYS: 'other.json' })).stdout)).toEqual({
      items: [credential],
    })
    expect(await json('revoke', key.slice(3, 11), '--file', 'other.json')).toMatchObject({
      id: key.slice(3, 11),
      revokedAt: expect.any(Number),
    })
  })

  for (const args of [[], ['create'], ['list'], ['revoke']]) {
    verifies('S-02', `explains itself, with examples and exit codes: keys ${args.join(' ')}`, async () => {
      const help = await said(...args, '--help')
      expect(help).toMatch(/^Usage: threadkeep keys /)
      expect(help).toContain('\nExamples:\n  threadkeep keys create ')
      expect(help).toContain('Exit codes: 0 fine, 1 failed, 2 wrong usage, 130 interrupted.')
    })
  }

  const expires = 'it must be a time to come, such as 90d, 12h, 30m or a date.'
  const wrong: readonly (readonly [args: readonly string[], message: string])[] = [
    [['create'], "required option '--scope <scope>' not specified (threadkeep --help tells more)"],
    [
      ['create', '--scope', 'acme:ann'],
      'scope is "acme:ann"; it must be a scope such as acme, without a session, or * for everything.',
    ],
    [['create', '--scope', 'acme', '--expires', '0d'], `expires is "0d"; ${expires}`],
    [['create', '--scope', 'acme', '--expires', '2020-01-01'], `expires is "2020-01-01"; ${expires}`],
    [
      ['create', '--scope', 'acme', '--expires', 'soon'],
      'expires is "soon"; it must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z.',
    ],
    [['revoke', 'nobody'], 'There is no key "nobody". threadkeep keys list tells which there are.'],
  ]
  for (const [args, message] of wrong) {
    verifies('S-02', `says in one line what is wrong with: keys ${args.join(' ')}`, async () => {
      expect(await run([...args], { THREADKEEP_KEYS: 'untouched.json' })).toEqual({
        code: 2,
        stdout: '',
        stderr: `threadkeep: ${message}\n`,
      })
      expect(readdirSync(folder)).not.toContain('untouched.json')
    })
  }

  it('does not take a damaged file for an empty one', async () => {
    writeFileSync(join(folder, 'damaged.json'), '{')
    const message =
      'The key file damaged.json is damaged: it is not JSON. Bring back a copy of it, or move it away and create new keys.'
    for (const args of [['list'], ['create', '--scope', 'acme'], ['revoke', 'x']])
      expect(await run([...args, '--file', 'damaged.json'])).toEqual({
        code: 1,
        stdout: '',
        stderr: `threadkeep: ${message}\n`,
      })
    expect(readFileSync(join(folder, 'damaged.json'), 'utf8')).toBe('{')
  })
})
