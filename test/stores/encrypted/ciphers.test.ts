import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { Cipher } from '../../../src/stores/encrypted/cipher.ts'
import {
  decryptDerived,
  decryptRecord,
  encryptDerived,
  encryptRecord,
} from '../../../src/stores/encrypted/entryCipher.ts'
import { unwrapKey, wrapKey } from '../../../src/stores/encrypted/keyEntry.ts'
import { copyKeyring, wipeKeyring } from '../../../src/stores/encrypted/keyring.ts'
import { encryptedStore, loadKeyring, parseKeyring, rotateKeys } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { annKey, bobKey, factWithSpan, hex, keyIds, nextChange, testKeyring } from './fixtures.ts'

const createCipher = (): Cipher => new Cipher(Buffer.alloc(32, 7))

describe('Cipher', () => {
  it('wipe › overwrites the key', () => {
    const key = Buffer.alloc(32, 7)
    new Cipher(key).wipe()
    expect(key).toEqual(Buffer.alloc(32))
  })

  it('with empty content › decrypts it; with a text too short for nonce and tag › returns undefined', () => {
    expect(createCipher().decrypt(createCipher().encrypt('', 'x'), 'x')).toEqual(Buffer.alloc(0))
    for (const length of [0, 1, 12, 27])
      expect(createCipher().decrypt(Buffer.alloc(length).toString('base64'), 'x')).toBeUndefined()
  })
})

describe('encrypted records and entries', () => {
  const record = { id: 'r1', at: 5, body: '{"a":1}' }

  it('of a record › is bound to its session, id and time', () => {
    const stored = { ...encryptRecord(record, annKey, createCipher()), number: 1 }
    expect(decryptRecord(stored, annKey, createCipher())).toEqual({ ...record, number: 1 })
    for (const [changed, key] of [
      [stored, bobKey],
      [{ ...stored, id: 'r2' }, annKey],
      [{ ...stored, at: 6 }, annKey],
      [{ ...stored, body: 'plain' }, annKey],
    ] as const)
      expect(() => decryptRecord(changed, key, createCipher())).toThrow(
        `Record ${changed.id} of acme:${key.id} was modified`,
      )
  })

  it('of a record that was stored before › can still be decrypted', () => {
    const body = 'KOV5uzYM1DnC5DhkF7CVKs/4PzumX18NUxhxECh7fWDu6/s='
    expect(decryptRecord({ ...record, body, number: 1 }, annKey, createCipher()).body).toBe(record.body)
  })

  it('of an entry from another session › keeps its sources and is bound to them', () => {
    const entry = { ...factWithSpan('f1', 'x'), sources: [{ message: 'm1', session: 'bob' }] }
    const stored = encryptDerived(entry, annKey, createCipher())
    expect(stored.sources).toEqual(entry.sources)
    expect(decryptDerived(stored, annKey, createCipher())).toEqual(entry)
    for (const sources of [[{ message: 'm1' }], [{ message: 'm1', session: 'eve' }]])
      expect(() => decryptDerived({ ...stored, sources }, annKey, createCipher())).toThrow('Entry f1 of acme:ann')
  })
})

describe('keys', () => {
  it('of a session › are rejected with text around them', () => {
    const keyring = testKeyring('old')
    const wrapped = wrapKey(new Uint8Array(32).fill(9), annKey, 1, keyring.current)
    expect(unwrapKey(wrapped, annKey, keyring)).toEqual(Buffer.alloc(32, 9))
    for (const ciphertext of [`x${wrapped.ciphertext}`, `${keyIds.old}.`, keyIds.old, ''])
      expect(() => unwrapKey({ ...wrapped, ciphertext }, annKey, keyring)).toThrow('The key of session acme:ann')
  })

  it('wipeKeyring › overwrites all keys, and leaves copies', () => {
    const keyring = testKeyring('old', 'new')
    const copy = copyKeyring(keyring)
    wipeKeyring(keyring)
    const bytesOf = ({ current, others }: typeof keyring) =>
      [current, ...others].map(({ bytes }) => Buffer.from(bytes).toString('hex'))
    expect([bytesOf(keyring), bytesOf(copy)]).toEqual([
      ['0'.repeat(64), '0'.repeat(64)],
      [hex.old, hex.new],
    ])
  })

  it('parseKeyring › with a key inside a longer word › rejects it', () => {
    const base64 = Buffer.from(hex.old, 'hex').toString('base64')
    for (const word of [`!${base64}`, `${base64}!`, `!${hex.old}`, `${hex.old}!`])
      expect(() => parseKeyring(word, 'x')).toThrow('Key 1 of x')
  })
})

describe('loadKeyring', () => {
  it('with options it does not know, or of a wrong type › throws', async () => {
    for (const options of [{ timeout: 5 }, { timeoutMs: 0 }, { env: 5 }])
      await expect(loadKeyring('env:KEY', options as never)).rejects.toMatchObject({
        code: 'bad-option',
      })
    await expect(loadKeyring('env:KEY', { timeout: 5 } as never)).rejects.toThrow('loadKeyring')
  })

  it('with a source inside other text › rejects it', async () => {
    for (const source of [' env:KEY', 'the env:KEY', '\nenv:KEY'])
      await expect(loadKeyring(source, { env: { KEY: hex.old } })).rejects.toThrow('The key source must be')
  })

  it.runIf(process.platform !== 'win32')('from a file or command with white space around › finds the key', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadkeep-'))
    const path = join(folder, 'key')
    writeFileSync(path, hex.old.padEnd(65_536), { mode: 0o600 })
    for (const source of [`file:${path}`, `command:  cat   ${path}  `, `command: ${JSON.stringify(['cat', path])}`])
      expect((await loadKeyring(source)).current.id).toBe(keyIds.old)
    writeFileSync(path, hex.old.padEnd(65_537))
    await expect(loadKeyring(`file:${path}`)).rejects.toThrow('has 65537 bytes, more than keys need')
    rmSync(folder, { recursive: true })
  })

  it('from a command that fails › reports the first 200 characters of its error output, if there is any', async () => {
    const failure = (output: string): Promise<unknown> => {
      const script = `process.stderr.write(${JSON.stringify(output)}); process.exitCode = 3`
      return loadKeyring(`command:${JSON.stringify([process.execPath, '-e', script])}`).catch(({ message }) => message)
    }
    const prefix = `The key command ${process.execPath} failed with code 3`
    expect(await failure(' \n')).toBe(`${prefix}.`)
    expect(await failure(`\n ${'x'.repeat(201)}`)).toBe(`${prefix}: ${'x'.repeat(200)}.`)
  })

  it.runIf(process.platform !== 'win32')('from a file of other users › prints a path that a shell reads', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadkeep-'))
    for (const [name, shown] of [
      ['key', join(folder, 'key')],
      ["ann's key", `'${join(folder, "ann'\\''s key")}'`],
    ] as const) {
      writeFileSync(join(folder, name), hex.old, { mode: 0o644 })
      await expect(loadKeyring(`file:${join(folder, name)}`)).rejects.toMatchObject({
        message: expect.stringMatching(new RegExp(`Run: chmod 600 ${shown.replace(/[\\.*+?^$]/g, '\\$&')}$`)),
      })
    }
    rmSync(folder, { recursive: true })
  })
})

describe('rotateKeys', () => {
  it('with a session that no longer exists › counts it as not wrapped', async () => {
    const inner = ramStore()
    const listed = { key: annKey, messages: 0, lastSequence: 0, touchedAt: 1, startedAt: 1, expiresAt: 9 }
    const list = async () => [listed] as never
    expect(await rotateKeys({ ...inner, list }, testKeyring('new', 'old'))).toEqual({ sessions: 1, rewrapped: 0 })
    expect((await inner.readHead(annKey, 0)).revision).toBe(0)
  })

  it('with a session that is erased meanwhile › looks again; with another fault › throws it', async () => {
    for (const code of ['erased', 'closed'] as const) {
      const inner = ramStore()
      const store = await encryptedStore(inner, testKeyring('old'))
      await store.commit(nextChange({ append: [newMessage('one')] }))
      let failures = 1
      const failing = {
        ...inner,
        commit: (change: Parameters<typeof inner.commit>[0]) => {
          if (failures-- > 0) throw new MemoryError(code, 'failed')
          return inner.commit(change)
        },
      }
      const rotated = rotateKeys(failing, testKeyring('new', 'old'))
      await (code === 'erased'
        ? expect(rotated).resolves.toEqual({ sessions: 1, rewrapped: 1 })
        : expect(rotated).rejects.toMatchObject({ code }))
    }
  })
})
