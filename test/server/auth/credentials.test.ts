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
import { allows, soleScope } from '../../../src/server/auth/credential.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-gate-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
/** A file of its own for each test. */
const place = (): string => {
  const own = join(folder, String(files++))
  mkdirSync(own)
  return join(own, 'keys.json')
}
const hour = 3_600_000
const faultOf = (look: () => unknown): string => {
  try {
    look()
  } catch (error) {
    if (error instanceof MemoryError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'none'
}

describe('a key', () => {
  it('opens its scopes and no others, until it expires', async () => {
    const credentials = new Credentials(place())
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
    expect(credentials.check(key, 1999)).toEqual(credential)
    expect(
      ['acme', 'example.com', 'Acme', 'acm', 'acme2', '*', ''].filter((scope) => allows(credential, scope)),
    ).toEqual(['acme', 'example.com'])
    expect(credentials.check(key, 2000)).toBeUndefined()
  })

  it('for everything opens every scope and has none of its own', async () => {
    const { credential } = await new Credentials(place()).create({ scopes: ['acme', '*'], rights: 'admin' }, 0)
    expect([credential.scopes, credential.rights, allows(credential, 'any'), soleScope(credential)]).toEqual([
      ['*'],
      'admin',
      true,
      undefined,
    ])
  })

  it('is good for nothing once it is revoked, and stays so', async () => {
    const credentials = new Credentials(place())
    const [one, other] = [
      await credentials.create({ scopes: ['acme'] }, 0),
      await credentials.create({ scopes: ['acme'] }, 0),
    ]
    expect(await credentials.revoke(one.credential.id, 500)).toEqual({ ...one.credential, revokedAt: 500 })
    expect(await credentials.revoke(one.credential.id, 900)).toMatchObject({ revokedAt: 500 })
    expect([credentials.check(one.key, 501), credentials.check(other.key, 501)?.id]).toEqual([
      undefined,
      other.credential.id,
    ])
    await expect(credentials.revoke('nobody', 0)).rejects.toThrow(
      'There is no key "nobody". threadkeep keys list tells which there are.',
    )
  })

  it('that is not quite right is none', async () => {
    const credentials = new Credentials(place())
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
    expect(wrong.map((text) => credentials.check(text, 0))).toEqual(wrong.map(() => undefined))
    expect(credentials.check(key, 0)).toBeDefined()
  })

  it('is refused when it would be for nothing', async () => {
    const credentials = new Credentials(place())
    const create = (wanted: object) => credentials.create({ scopes: ['acme'], ...wanted }, 1000)
    await expect(create({ scopes: [] })).rejects.toThrow(
      'scope is missing: name what the key opens, such as acme, or * for everything.',
    )
    await expect(create({ scopes: ['acme:ann'] })).rejects.toThrow(
      'scope is "acme:ann"; it must be a scope such as acme',
    )
    await expect(create({ scopes: ['__proto__'] })).rejects.toThrow('is the reserved word __proto__')
    await expect(create({ expiresAt: 1000 })).rejects.toThrow('expires is 1000; it must be a time to come.')
    await expect(create({ name: 'a\u001b[2J' })).rejects.toThrow('none of them invisible')
    expect(credentials.isRequired(1000)).toBe(false)
  })
})

describe('the key file', () => {
  it('holds no key, and only its owner may read it', async () => {
    const file = place()
    const { key } = await new Credentials(file).create({ scopes: ['acme'] }, 0)
    expect(readFileSync(file, 'utf8')).not.toContain(key.slice(12))
    expect(readdirSync(join(file, '..'))).toEqual(['keys.json', 'keys.json.lock'])
    for (const name of ['', '.lock']) expect(statSync(file + name).mode & 0o777).toBe(0o600)
  })

  it('is looked at again once a second, so that others may change it', async () => {
    const file = place()
    const [server, command] = [new Credentials(file), new Credentials(file)]
    expect([server.isRequired(0), server.check(undefined, 0)]).toEqual([false, undefined])
    const { key, credential } = await command.create({ scopes: ['acme'] }, 0)
    expect([server.check(key, 999), server.isRequired(999)]).toEqual([undefined, false])
    expect([server.check(key, 1000), server.isRequired(1000)]).toEqual([credential, true])
    await server.settled()
    await command.revoke(credential.id, 1500)
    expect(server.check(key, 2500)).toBeUndefined()
    expect(server.isRequired(2500)).toBe(true)
  })

  it('is looked at again when the clock was set back', async () => {
    const file = place()
    const server = new Credentials(file)
    server.isRequired(10 * hour)
    const { key } = await new Credentials(file).create({ scopes: ['acme'] }, 0)
    expect(server.check(key, 0)).toBeDefined()
  })

  it('lets nobody in while it is damaged or gone, and says what to do', async () => {
    const file = place()
    const server = new Credentials(file)
    const { key } = await server.create({ scopes: ['acme'] }, 0)
    const [whole, advice] = [
      readFileSync(file, 'utf8'),
      'Bring back a copy of it, or move it away and create new keys.',
    ]
    const record = (JSON.parse(whole) as { keys: unknown[] }).keys[0]
    const list = (keys: unknown) => JSON.stringify({ format: 'threadkeep-keys', version: 1, keys })
    const damages: readonly (readonly [text: string, why: string])[] = [
      ['', 'it is not JSON'],
      [whole.slice(0, -20), 'it is not JSON'],
      ['{}', 'format is not as it was written'],
      [list(null), 'keys is not as it was written'],
      [list([{}]), 'keys.0.id is not as it was written'],
      [list([{ ...(record as object), rights: 'root' }]), 'keys.0.rights is not as it was written'],
      [list([{ ...(record as object), scopes: [] }]), 'keys.0.scopes is not as it was written'],
      [list([record, record]), 'two keys have the same id'],
    ]
    let now = 0
    for (const [text, why] of damages) {
      writeFileSync(file, text)
      now += 1000
      expect(faultOf(() => server.check(key, now))).toBe(`corrupt: The key file ${file} is damaged: ${why}. ${advice}`)
      expect(faultOf(() => server.isRequired(now + 1))).toContain('corrupt: ')
      await expect(server.create({ scopes: ['acme'] }, now)).rejects.toThrow(why)
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
    rmSync(file)
    const gone = `bad-store: The key file ${file} cannot be read (ENOENT), so no key is accepted. Bring it back, make it with threadkeep keys create, or look at its permissions.`
    expect(faultOf(() => server.isRequired(now + 1000))).toBe(gone)
    writeFileSync(file, whole)
    expect(server.check(key, now + 2000)).toBeDefined()
  })

  it('that is expected and not there, or there without any key, lets nobody in', async () => {
    const file = place()
    const expecting = new Credentials(file, { isExpected: true })
    expect(faultOf(() => expecting.isRequired(0))).toContain('cannot be read (ENOENT), so no key is accepted.')
    writeFileSync(file, JSON.stringify({ format: 'threadkeep-keys', version: 1, keys: [] }))
    expect(new Credentials(file).isRequired(0)).toBe(true)
  })

  it('loses nothing when many write at the same time', async () => {
    const file = place()
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, at) => new Credentials(file).create({ scopes: [`s${at}`] }, at)),
    )
    const ids = new Credentials(file).list(0).map(({ id }) => id)
    expect(ids.sort()).toEqual(made.map(({ credential }) => credential.id).sort())
  })

  it('waits for another process that is writing', async () => {
    const file = place()
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

  it('may be a link, and what a writer left that died is no hindrance', async () => {
    const file = place()
    const real = join(file, '..', 'real.json')
    await new Credentials(real).create({ scopes: ['acme'] }, 0)
    symlinkSync(real, file)
    writeFileSync(`${real}.unfinished`, '{')
    await new Credentials(file).create({ scopes: ['acme'] }, 0)
    expect(new Credentials(real).list(0)).toHaveLength(2)
    expect(readdirSync(join(file, '..')).sort()).toEqual(['keys.json', 'real.json', 'real.json.lock'])
  })

  it('that cannot be written is told as such', async () => {
    const file = join(folder, 'nowhere', 'keys.json')
    await expect(new Credentials(file).create({ scopes: ['acme'] }, 0)).rejects.toThrow(
      `${file} cannot be written (ENOENT); nothing was changed. Check its folder and permissions.`,
    )
  })
})

describe('the last use of a key', () => {
  it('is noted at most once an hour', async () => {
    const file = place()
    const server = new Credentials(file)
    const { key } = await server.create({ scopes: ['acme'] }, 0)
    const usedAfter = async (now: number): Promise<number | undefined> => {
      server.check(key, now)
      await server.settled()
      return new Credentials(file).list(now)[0]?.lastUsedAt
    }
    expect([await usedAfter(5), await usedAfter(hour), await usedAfter(hour + 5), await usedAfter(2 * hour)]).toEqual([
      5,
      5,
      hour + 5,
      hour + 5,
    ])
  })

  it('that cannot be noted is reported, and the key is good all the same', async () => {
    const file = place()
    const faults: unknown[] = []
    const server = new Credentials(file, { onFault: (error) => faults.push(error) })
    const { key } = await server.create({ scopes: ['acme'] }, 0)
    rmSync(`${file}.lock`)
    mkdirSync(`${file}.lock`)
    expect(server.check(key, 10)).toBeDefined()
    await server.settled()
    expect(server.check(key, 20)).toBeDefined()
    await server.settled()
    expect(faults.map((fault) => (fault as MemoryError).code)).toEqual(['not-durable'])
  })
})
