import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { graphKey, type Key, parseKey } from '../../../src/domain/key.ts'
import type { Keyring } from '../../../src/domain/ports.ts'
import type { SessionChange } from '../../../src/domain/session.ts'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { Cipher } from '../../../src/stores/encrypted/cipher.ts'
import { encryptMessage } from '../../../src/stores/encrypted/entryCipher.ts'
import { wrapKey } from '../../../src/stores/encrypted/keyEntry.ts'
import { checkKeys, claimTask, readEncryption, retireKeys } from '../../../src/stores/sqlite/encryption.ts'
import { migrate, migrations } from '../../../src/stores/sqlite/schema.ts'
import { Writer } from '../../../src/stores/sqlite/write.ts'
import { undoFormat6 } from '../oldFormats.ts'
import { annKey, bobKey, factWithSpan, hex, keyIds, nextChange, testKeyring } from './fixtures.ts'

const path = 'memory.db'

/** Creates a database of the newest schema, marked for the keyring if there is one. */
function createDatabase(keyring?: Keyring): DatabaseSync {
  const database = new DatabaseSync(':memory:')
  migrate(database, path, migrations, claimTask(path, keyring))
  return database
}

function write(database: DatabaseSync, change: Partial<SessionChange>): void {
  const writer = new Writer(database)
  database.exec('BEGIN')
  writer.afterBegin()
  writer.commit(nextChange(change))
  writer.beforeCommit()
  database.exec('COMMIT')
}

/** Writes a session whose key is wrapped by a master key. */
function writeSession(database: DatabaseSync, key: Key, name: keyof typeof hex): void {
  const sessionKey = new Uint8Array(32).fill(9)
  const append = [encryptMessage(newMessage('walrus'), key, new Cipher(sessionKey))]
  write(database, { key, append, put: [wrapKey(sessionKey, key, 1_000, testKeyring(name).current)] })
}

/** Turns the database into one of the format before the marker. */
const removeMarker = (database: DatabaseSync): void => database.exec(undoFormat6)

/** Creates a database of the format before the marker. */
function createOldDatabase(...writes: readonly ((database: DatabaseSync) => void)[]): DatabaseSync {
  const database = createDatabase(testKeyring('old'))
  for (const run of writes) run(database)
  removeMarker(database)
  return database
}

const open = (database: DatabaseSync, keyring?: Keyring): void =>
  migrate(database, path, migrations, claimTask(path, keyring))
const proofIds = (database: DatabaseSync): readonly unknown[] =>
  database
    .prepare('SELECT id FROM master_key ORDER BY id')
    .all()
    .map(({ id }) => id)
const isMarked = (database: DatabaseSync): unknown =>
  database.prepare("SELECT value FROM meta WHERE name = 'encrypted'").get()?.value

const missingKey = {
  code: 'bad-secret',
  param: 'key',
  message: `${path} is encrypted; nothing was read or written. Give its key with --store-key, THREADKEEP_STORE_KEY or the option storeKey.`,
}
const plainFile = {
  code: 'bad-store',
  message: `${path} was written without encryption. Open it without a key and export it, then import it into a new store with a key.`,
}
const wrongKey = (expected: string, given: string) => ({
  code: 'bad-secret',
  message: `${path} is encrypted under key ${expected}, but the keys given are ${given}; nothing was read or written. Give the right key, or add it after the current one.`,
})
const errorOf = (run: () => unknown): unknown => {
  try {
    return run()
  } catch (error) {
    return error
  }
}

describe('readEncryption', () => {
  it('of an empty database or one without sessions › is unused', () => {
    expect([readEncryption(new DatabaseSync(':memory:')), readEncryption(createDatabase())]).toEqual([
      'unused',
      'unused',
    ])
  })

  it('of a database with a plain session › is plaintext, also without a marker', () => {
    const database = createDatabase()
    write(database, { append: [newMessage('one')], put: [factWithSpan('#key', 'x')] })
    const marked = readEncryption(database)
    removeMarker(database)
    expect([marked, readEncryption(database)]).toEqual(['plaintext', 'plaintext'])
  })

  it('of a database opened with a key › is encrypted before the first session', () => {
    expect(readEncryption(createDatabase(testKeyring('old')))).toBe('encrypted')
  })

  it('of the earlier format with the key of a session › is encrypted', () => {
    const writePlain = (database: DatabaseSync) => write(database, { key: bobKey, append: [newMessage('plain')] })
    const writeEncrypted = (database: DatabaseSync) => writeSession(database, annKey, 'old')
    expect([
      readEncryption(createOldDatabase(writePlain)),
      readEncryption(createOldDatabase(writePlain, writeEncrypted)),
    ]).toEqual(['plaintext', 'encrypted'])
  })

  it('of the earlier format › ignores a damaged key and uses the next one', () => {
    const writeDamaged = (old: DatabaseSync) => {
      writeSession(old, annKey, 'foreign')
      old.exec("UPDATE derived SET sum = sum + 1 WHERE id = '#key'")
    }
    const database = createOldDatabase(writeDamaged, (old) => writeSession(old, bobKey, 'old'))
    expect([readEncryption(createOldDatabase(writeDamaged)), readEncryption(database)]).toEqual([
      'plaintext',
      'encrypted',
    ])
    expect(() => checkKeys(database, path, testKeyring('old'))).not.toThrow()
    expect(() => checkKeys(database, path, testKeyring('foreign'))).toThrow(
      `Session acme:bob is encrypted under key ${keyIds.old}`,
    )
  })
})

describe('checkKeys', () => {
  it('without a key for an encrypted file › throws with the options to use', () => {
    expect(errorOf(() => checkKeys(createDatabase(testKeyring('old')), path, undefined))).toMatchObject(missingKey)
  })

  it('with a key for a plain file › throws with the way to encrypt it; without a key › accepts it', () => {
    const database = createDatabase()
    expect(() => checkKeys(database, path, testKeyring('old'))).not.toThrow()
    write(database, { append: [newMessage('one')] })
    expect(errorOf(() => checkKeys(database, path, testKeyring('old')))).toMatchObject(plainFile)
    expect(() => checkKeys(database, path, undefined)).not.toThrow()
  })

  it('with the right key, current or not › accepts the file', () => {
    const database = createDatabase(testKeyring('old'))
    for (const names of [['old'], ['new', 'old'], ['new', 'foreign', 'old']] as const)
      expect(() => checkKeys(database, path, testKeyring(...names))).not.toThrow()
  })

  it('with other keys › names the keys of the file and those given', () => {
    const database = createDatabase(testKeyring('old'))
    open(database, testKeyring('foreign', 'old'))
    expect(errorOf(() => checkKeys(database, path, testKeyring('new')))).toMatchObject(
      wrongKey(`${keyIds.foreign}, ${keyIds.old}`, keyIds.new),
    )
    retireKeys(database, keyIds.old)
    expect(errorOf(() => checkKeys(database, path, testKeyring('new', 'foreign')))).toMatchObject(
      wrongKey(keyIds.old, `${keyIds.new}, ${keyIds.foreign}`),
    )
  })

  it('with the proof of an earlier process › accepts the key', () => {
    const database = createDatabase(testKeyring('old'))
    const proof = 'jNqs6qt6eUvtiBfWbjb3yfQ8dHDk+EdvcA6GJFnb/Y1vYjGYb8DBF4Q5F3vdmy88'
    database.prepare('UPDATE master_key SET proof = ?').run(proof)
    expect(() => checkKeys(database, path, testKeyring('old'))).not.toThrow()
  })

  it('with another key under the id of the right one › throws', () => {
    const database = createDatabase(testKeyring('old'))
    const forged = { current: { id: keyIds.old, bytes: Buffer.from(hex.new, 'hex') }, others: [] }
    expect(errorOf(() => checkKeys(database, path, forged))).toMatchObject(wrongKey(keyIds.old, keyIds.old))
  })

  it('without proofs › accepts a file without sessions, and checks the key of a session', () => {
    const database = createDatabase(testKeyring('old'))
    database.exec('DELETE FROM master_key')
    expect(() => checkKeys(database, path, testKeyring('new'))).not.toThrow()
    writeSession(database, annKey, 'old')
    expect(() => checkKeys(database, path, testKeyring('new', 'old'))).not.toThrow()
    expect(errorOf(() => checkKeys(database, path, testKeyring('new')))).toMatchObject({
      code: 'bad-secret',
      message: expect.stringContaining(`Session acme:ann is encrypted under key ${keyIds.old}`),
    })
  })

  it('without proofs › accepts a session whose key is damaged, which must stay erasable', () => {
    const database = createDatabase(testKeyring('old'))
    database.exec('DELETE FROM master_key')
    const entry = wrapKey(new Uint8Array(32), parseKey('zeta:ann'), 1_000, testKeyring('old').current)
    write(database, { key: annKey, put: [entry] })
    expect(() => checkKeys(database, path, testKeyring('old'))).not.toThrow()
  })
})

describe('claimTask', () => {
  it('with a keyring › marks the file and adds one proof for each current key', () => {
    const database = createDatabase()
    expect([isMarked(database), proofIds(database)]).toEqual([0, []])
    for (const names of [['old'], ['old'], ['foreign', 'old'], ['old', 'foreign']] as const)
      open(database, testKeyring(...names))
    expect([isMarked(database), proofIds(database)]).toEqual([1, [keyIds.foreign, keyIds.old]])
  })

  it('that runs again after another process has marked the file › adds nothing', () => {
    const database = createDatabase(testKeyring('old'))
    claimTask(path, testKeyring('old')).run(database)
    expect([isMarked(database), proofIds(database)]).toEqual([1, [keyIds.old]])
  })

  it('without a keyring › is not due and leaves the file unmarked', () => {
    const database = createDatabase()
    expect(claimTask(path, undefined).isDue(database)).toBe(false)
    claimTask(path, undefined).run(database)
    expect([isMarked(database), proofIds(database)]).toEqual([0, []])
  })

  it('with a keyring › is due until the current key has a proof', () => {
    const database = createDatabase(testKeyring('old'))
    expect(claimTask(path, testKeyring('old', 'new')).isDue(database)).toBe(false)
    expect(claimTask(path, testKeyring('new', 'old')).isDue(database)).toBe(true)
  })

  it('with keys that do not fit › throws and changes nothing', () => {
    const database = createDatabase(testKeyring('old'))
    expect(errorOf(() => claimTask(path, undefined).run(database))).toMatchObject(missingKey)
    expect(errorOf(() => open(database, testKeyring('new')))).toMatchObject(wrongKey(keyIds.old, keyIds.new))
    expect(proofIds(database)).toEqual([keyIds.old])
  })

  it('with content that was written without the key › throws with the number of rows until it has a proof', () => {
    const database = createDatabase(testKeyring('old'))
    writeSession(database, annKey, 'old')
    write(database, { key: bobKey, append: [newMessage('plain')], put: [factWithSpan('f1', 'x')] })
    expect(() => open(database, testKeyring('new', 'old'))).not.toThrow()
    removeMarker(database)
    expect(errorOf(() => open(database, testKeyring('old')))).toMatchObject({
      code: 'bad-store',
      message: `${path} is encrypted, but holds content that was written without its key (3 rows). Run threadkeep doctor --store-key SOURCE to list it, and with --repair to encrypt it.`,
    })
    expect(database.prepare('PRAGMA user_version').get()?.user_version).toBe(5)
  })

  it('with a graph that was written without the key › marks the file, because no repair can encrypt the graph', () => {
    const database = createDatabase(testKeyring('old'))
    writeSession(database, annKey, 'old')
    write(database, { key: graphKey(annKey.scope), put: [] })
    removeMarker(database)
    open(database, testKeyring('old'))
    expect([isMarked(database), proofIds(database)]).toEqual([1, [keyIds.old]])
  })
})

describe('retireKeys', () => {
  it('with a current key › deletes the proofs of all others', () => {
    const database = createDatabase(testKeyring('old'))
    open(database, testKeyring('new', 'old'))
    retireKeys(database, keyIds.new)
    expect(proofIds(database)).toEqual([keyIds.new])
    expect(errorOf(() => checkKeys(database, path, testKeyring('old')))).toMatchObject(wrongKey(keyIds.new, keyIds.old))
  })
})
