import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { allowsScope, onlyScope } from '../../../src/server/auth/credential.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-credentials-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
/** The path of a new key file. */
const newKeyFile = (): string => {
  const own = join(folder, String(files++))
  mkdirSync(own)
  return join(own, 'keys.json')
}
const hourMs = 3_600_000
const errorOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    if (error instanceof MemoryError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'none'
}

describe('a key', () => {
  it('allows its scopes only, until it expires', async () => {
    const credentials = new Credentials(newKeyFile())
    const { key, credential } = await credentials.create(
      { scopes: ['acme', 'example.com', 'acme'], name: 'shop', expiresAt: 2000 },
      1000,
    )
    expect(key).toMatch(/^tk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}$/)
    expect(credential).toEqual({
      id: key.slice(3, 11),
      name: 'shop',
      scopes: ['acme', 'example.com'],
      rights: 'use',
      createdAt: 1000,
      expiresAt: 2000,
    })
    expect(credentials.authenticate(key, 1999)).toEqual(credential)
    expect(
      ['acme', 'example.com', 'Acme', 'acm', 'acme2', '*', ''].filter((scope) => allowsScope(credential, scope)),
    ).toEqual(['acme', 'example.com'])
    expect(credentials.authenticate(key, 2000)).toBeUndefined()
  })

  it('with scope * allows every scope and has no sole scope', async () => {
    const { credential } = await new Credentials(newKeyFile()).create({ scopes: ['acme', '*'], rights: 'admin' }, 0)
    expect([credential.scopes, credential.rights, allowsScope(credential, 'any'), onlyScope(credential)]).toEqual([
      ['*'],
      'admin',
      true,
      undefined,
    ])
  })

  it('that is revoked stays refused', async () => {
    const credentials = new Credentials(newKeyFile())
    const [one, other] = [
      await credentials.create({ scopes: ['acme'] }, 0),
      await credentials.create({ scopes: ['acme'] }, 0),
    ]
    expect(await credentials.revoke(one.credential.id, 500)).toEqual({ ...one.credential, revokedAt: 500 })
    expect(await credentials.revoke(one.credential.id, 900)).toMatchObject({ revokedAt: 500 })
    expect([credentials.authenticate(one.key, 501), credentials.authenticate(other.key, 501)?.id]).toEqual([
      undefined,
      other.credential.id,
    ])
    await expect(credentials.revoke('nobody', 0)).rejects.toThrow(
      'There is no key "nobody". Run threadkeep keys list to see the keys.',
    )
  })

  it('with any change is refused', async () => {
    const credentials = new Credentials(newKeyFile())
    const { key } = await credentials.create({ scopes: ['acme'] }, 0)
    const wrong = [
      undefined,
      '',
      'tk_',
      key.slice(0, -1),
      `${key}0`,
      ` ${key}`,
      key.toUpperCase(),
      key.replace('tk_', ''),
      '__proto__',
      `${key}\n`,
    ]
    expect(wrong.map((text) => credentials.authenticate(text, 0))).toEqual(wrong.map(() => undefined))
    expect(credentials.authenticate(key, 0)).toBeDefined()
  })

  it('is not created with invalid options', async () => {
    const credentials = new Credentials(newKeyFile())
    const create = (options: object) => credentials.create({ scopes: ['acme'], ...options }, 1000)
    await expect(create({ scopes: [] })).rejects.toThrow(
      'scope is missing. Name the scopes the key may use, such as acme, or * for all.',
    )
    await expect(create({ scopes: ['acme:ann'] })).rejects.toThrow(
      'scope is "acme:ann"; it must be a scope such as acme',
    )
    await expect(create({ scopes: ['__proto__'] })).rejects.toThrow('is the reserved word __proto__')
    await expect(create({ expiresAt: 1000 })).rejects.toThrow('expires is 1000; it must be a time in the future.')
    await expect(create({ name: 'a\u001b[2J' })).rejects.toThrow('without control characters')
    expect(credentials.isRequired(1000)).toBe(false)
  })
})

describe('the key file', () => {
  it('contains no key and is readable by its owner only', async () => {
    const file = newKeyFile()
    const { key } = await new Credentials(file).create({ scopes: ['acme'] }, 0)
    expect(readFileSync(file, 'utf8')).not.toContain(key.slice(12))
    expect(readdirSync(join(file, '..'))).toEqual(['keys.json', 'keys.json.lock'])
    for (const name of ['', '.lock']) expect(statSync(file + name).mode & 0o777).toBe(0o600)
  })

  it('is read again once a second, so that changes of other processes apply', async () => {
    const file = newKeyFile()
    const [server, command] = [new Credentials(file), new Credentials(file)]
    expect([server.isRequired(0), server.authenticate(undefined, 0)]).toEqual([false, undefined])
    const { key, credential } = await command.create({ scopes: ['acme'] }, 0)
    expect([server.authenticate(key, 999), server.isRequired(999)]).toEqual([undefined, false])
    expect([server.authenticate(key, 1000), server.isRequired(1000)]).toEqual([credential, true])
    await server.settled()
    await command.revoke(credential.id, 1500)
    expect(server.authenticate(key, 2500)).toBeUndefined()
    expect(server.isRequired(2500)).toBe(true)
  })

  it('is read again when the clock was set back', async () => {
    const file = newKeyFile()
    const server = new Credentials(file)
    server.isRequired(10 * hourMs)
    const { key } = await new Credentials(file).create({ scopes: ['acme'] }, 0)
    expect(server.authenticate(key, 0)).toBeDefined()
  })

  it('that is damaged or missing refuses every key with a remedy', async () => {
    const file = newKeyFile()
    const server = new Credentials(file)
    const { key } = await server.create({ scopes: ['acme'] }, 0)
    const [intact, remedy] = [
      readFileSync(file, 'utf8'),
      'Restore a backup, or move the file away and create new keys.',
    ]
    const record = (JSON.parse(intact) as { keys: unknown[] }).keys[0]
    const list = (keys: unknown) => JSON.stringify({ format: 'threadkeep-keys', version: 1, keys })
    const damages: readonly (readonly [text: string, why: string])[] = [
      ['', 'it is not JSON'],
      [intact.slice(0, -20), 'it is not JSON'],
      ['{}', 'format is invalid'],
      [list(null), 'keys is invalid'],
      [list([{}]), 'keys.0.id is invalid'],
      [list([{ ...(record as object), rights: 'root' }]), 'keys.0.rights is invalid'],
      [list([{ ...(record as object), scopes: [] }]), 'keys.0.scopes is invalid'],
      [list([record, record]), 'two keys have the same id'],
    ]
    let now = 0
    for (const [text, why] of damages) {
      writeFileSync(file, text)
      now += 1000
      expect(errorOf(() => server.authenticate(key, now))).toBe(
        `corrupt: The key file ${file} is damaged: ${why}. ${remedy}`,
      )
      expect(errorOf(() => server.isRequired(now + 1))).toContain('corrupt: ')
      await expect(server.create({ scopes: ['acme'] }, now)).rejects.toThrow(why)
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
    rmSync(file)
    const missing = `bad-store: The key file ${file} cannot be read (ENOENT), so no key is accepted. Restore it, create it with threadkeep keys create, or check its permissions.`
    expect(errorOf(() => server.isRequired(now + 1000))).toBe(missing)
    writeFileSync(file, intact)
    expect(server.authenticate(key, now + 2000)).toBeDefined()
  })

  it('that is expected but missing, or has no keys, refuses every key', async () => {
    const file = newKeyFile()
    const expecting = new Credentials(file, { fileExpected: true })
    expect(errorOf(() => expecting.isRequired(0))).toContain('cannot be read (ENOENT), so no key is accepted.')
    writeFileSync(file, JSON.stringify({ format: 'threadkeep-keys', version: 1, keys: [] }))
    expect(new Credentials(file).isRequired(0)).toBe(true)
  })

  it('keeps all keys of concurrent writers', async () => {
    const file = newKeyFile()
    const created = await Promise.all(
      Array.from({ length: 8 }, (_, at) => new Credentials(file).create({ scopes: [`s${at}`] }, at)),
    )
    const ids = new Credentials(file).list(0).map(({ id }) => id)
    expect(ids.sort()).toEqual(created.map(({ credential }) => credential.id).sort())
  })

  it('that another process has locked is written afterwards', async () => {
    const file = newKeyFile()
    const other = new DatabaseSync(`${file}.lock`)
    other.exec('BEGIN EXCLUSIVE')
    let isDone = false
    const created = new Credentials(file).create({ scopes: ['acme'] }, 0).finally(() => (isDone = true))
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    expect([isDone, readdirSync(join(file, '..'))]).toEqual([false, ['keys.json.lock', 'keys.json.lock-journal']])
    other.close()
    await created
    expect(isDone).toBe(true)
  })

  it('may be a symbolic link, and a temporary file of a crashed writer is replaced', async () => {
    const file = newKeyFile()
    const real = join(file, '..', 'real.json')
    await new Credentials(real).create({ scopes: ['acme'] }, 0)
    symlinkSync(real, file)
    writeFileSync(`${real}.unfinished`, '{')
    await new Credentials(file).create({ scopes: ['acme'] }, 0)
    expect(new Credentials(real).list(0)).toHaveLength(2)
    expect(readdirSync(join(file, '..')).sort()).toEqual(['keys.json', 'real.json', 'real.json.lock'])
  })

  it('that cannot be written causes an error with a remedy', async () => {
    const file = join(folder, 'nowhere', 'keys.json')
    await expect(new Credentials(file).create({ scopes: ['acme'] }, 0)).rejects.toThrow(
      `${file} cannot be written (ENOENT); nothing was changed. Check its folder and permissions.`,
    )
  })
})

describe('the last use of a key', () => {
  it('is recorded at most once an hour', async () => {
    const file = newKeyFile()
    const server = new Credentials(file)
    const { key } = await server.create({ scopes: ['acme'] }, 0)
    const usedAfter = async (now: number): Promise<number | undefined> => {
      server.authenticate(key, now)
      await server.settled()
      return new Credentials(file).list(now)[0]?.lastUsedAt
    }
    expect([
      await usedAfter(5),
      await usedAfter(hourMs),
      await usedAfter(hourMs + 5),
      await usedAfter(2 * hourMs),
    ]).toEqual([5, 5, hourMs + 5, hourMs + 5])
  })

  it('that cannot be recorded is reported, and the key stays valid', async () => {
    const file = newKeyFile()
    const faults: unknown[] = []
    const server = new Credentials(file, { onFault: (error) => faults.push(error) })
    const { key } = await server.create({ scopes: ['acme'] }, 0)
    rmSync(`${file}.lock`)
    mkdirSync(`${file}.lock`)
    expect(server.authenticate(key, 10)).toBeDefined()
    await server.settled()
    expect(server.authenticate(key, 20)).toBeDefined()
    await server.settled()
    expect(faults.map((fault) => (fault as MemoryError).code)).toEqual(['not-durable'])
  })
})
