import { describe, expect, it } from 'vitest'
import type { DerivedEntry, EncryptedEntry } from '../../../src/domain/entry.ts'
import { type Key, parseKey } from '../../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { encryptedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { annKey, bobKey, contentsOf, factWithSpan, keyIds, nextChange, testKeyring } from './fixtures.ts'

const zeta = parseKey('zeta:ann')

/** Creates an inner store with the messages `one` and `two`, encrypted with the old key. */
async function createEncrypted(): Promise<Store & SearchIndex> {
  const inner = ramStore()
  await (await encryptedStore(inner, testKeyring('old'))).commit(
    nextChange({ append: [newMessage('one'), newMessage('two')], put: [factWithSpan('f1', 'x')] }),
  )
  return inner
}

const readEncrypted = async (inner: Store, key: Key, id: string): Promise<EncryptedEntry> =>
  (await inner.readHead(key, 0)).derived.find((entry: DerivedEntry) => entry.id === id) as EncryptedEntry

/** Changes one character in the middle. */
function tamper(text: string): string {
  const middle = text.length >> 1
  return `${text.slice(0, middle)}${text[middle] === 'A' ? 'B' : 'A'}${text.slice(middle + 1)}`
}

describe('encryptedStore with the wrong keys', () => {
  const message =
    `Session acme:ann is encrypted under key ${keyIds.old}, but the keys given are ${keyIds.new}, ${keyIds.foreign}. ` +
    'Add the missing key after the current one, separated by a space or a new line.'

  it('throws on opening and names the missing key', async () => {
    await expect(encryptedStore(await createEncrypted(), testKeyring('new', 'foreign'))).rejects.toMatchObject({
      code: 'bad-secret',
      param: 'key',
      message,
    })
  })

  it('throws on reading or writing a session encrypted later with another key', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('new', 'foreign'))
    await (await encryptedStore(inner, testKeyring('old'))).commit(nextChange({ append: [newMessage('one')] }))
    for (const attempt of [
      () => store.readHead(annKey, 0),
      () => store.readMessages(annKey, { limit: 1 }),
      () => store.commit(nextChange({ append: [newMessage('two')] })),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ code: 'bad-secret', message })
    }
    expect((await inner.readHead(annKey, 0)).messages).toBe(1)
  })

  it('works if the right key is among them', async () => {
    const store = await encryptedStore(await createEncrypted(), testKeyring('foreign', 'new', 'old'))
    expect(contentsOf(await store.readMessages(annKey, { limit: 9 }))).toEqual(['one', 'two'])
  })
})

describe('a modified ciphertext', () => {
  const corrupt = (what: string) => ({
    code: 'corrupt',
    message: `${what} was modified, or copied from elsewhere, and cannot be decrypted. Restore it from a backup or forget it.`,
  })

  it('is rejected until the message is erased', async () => {
    const inner = await createEncrypted()
    const [first] = await inner.readMessages(annKey, { limit: 1 })
    const ciphertext = first?.content ?? ''
    for (const content of [tamper(ciphertext), ciphertext.slice(0, -8), ciphertext.slice(0, 8), 'plain text']) {
      const forged = ramStore()
      await forged.commit(
        nextChange({
          append: [
            { ...newMessage(''), content },
            newMessage((await inner.readMessages(annKey, { after: 1, limit: 1 }))[0]?.content ?? ''),
          ],
        }),
      )
      await forged.commit(nextChange({ put: [await readEncrypted(inner, annKey, '#key')] }))
      const store = await encryptedStore(forged, testKeyring('new', 'old'))
      await expect(store.readMessages(annKey, { limit: 9 })).rejects.toMatchObject(corrupt('Message m1 of acme:ann'))
      await expect(store.readHead(annKey, 9)).rejects.toMatchObject(corrupt('Message m1 of acme:ann'))
      expect(await store.erase(annKey, { entries: ['m1'] })).toEqual(['m1'])
      expect(contentsOf((await store.readHead(annKey, 9)).recent)).toEqual(['two'])
    }
  })

  it.each([
    ['another session', { key: bobKey }],
    ['another scope', { key: zeta }],
  ])('copied to %s is rejected', async (_, elsewhere) => {
    const inner = await createEncrypted()
    const store = await encryptedStore(inner, testKeyring('old'))
    await store.commit(nextChange({ ...elsewhere, append: [newMessage('own')] }))
    const { id } = elsewhere.key
    const [message] = await inner.readMessages(annKey, { limit: 1 })
    await inner.commit(nextChange({ ...elsewhere, append: [{ ...newMessage(''), content: message?.content ?? '' }] }))
    await expect(store.readMessages(elsewhere.key, { limit: 9 })).rejects.toMatchObject(
      corrupt(`Message m2 of ${elsewhere.key.scope}:${id}`),
    )
    await inner.commit(nextChange({ ...elsewhere, put: [await readEncrypted(inner, annKey, 'f1')], drop: ['m2'] }))
    await expect(store.readHead(elsewhere.key, 0)).rejects.toMatchObject(
      corrupt(`Entry f1 of ${elsewhere.key.scope}:${id}`),
    )
  })

  it.each([
    ['role', { role: 'assistant' as const }],
    ['time', { at: 2_000 }],
    ['token count', { tokens: 4 }],
    ['line token count', { lineTokens: 4 }],
    ['tokenizer', { tokenizer: 'other' }],
    ['weight', { weight: 4 }],
  ])('with another %s is rejected', async (_, other) => {
    const inner = await createEncrypted()
    const store = await encryptedStore(inner, testKeyring('old'))
    const [message] = await inner.readMessages(annKey, { limit: 1 })
    await inner.commit(nextChange({ append: [{ ...newMessage(message?.content ?? ''), ...other }] }))
    await expect(store.readMessages(annKey, { limit: 9 })).rejects.toMatchObject(corrupt('Message m3 of acme:ann'))
  })

  it('with another id, time or sources is rejected, and so is an unencrypted entry', async () => {
    const inner = await createEncrypted()
    const store = await encryptedStore(inner, testKeyring('old'))
    const entry = await readEncrypted(inner, annKey, 'f1')
    for (const forged of [
      { ...entry, id: 'f2' },
      { ...entry, at: 9 },
      { ...entry, sources: [{ message: 'm2' }] },
      factWithSpan('f1', 'forged'),
    ]) {
      await inner.commit(nextChange({ put: [forged] }))
      await expect(store.readHead(annKey, 0)).rejects.toMatchObject(corrupt(`Entry ${forged.id} of acme:ann`))
      await inner.commit(nextChange({ put: [entry], drop: ['f2'] }))
    }
    expect((await store.readHead(annKey, 0)).derived).toEqual([factWithSpan('f1', 'x')])
  })
})

describe('a session key', () => {
  const corrupt = (name: string) => ({
    code: 'corrupt',
    message: `The key of session ${name} was modified, or copied from another session, so the session cannot be decrypted. Restore it from a backup or forget it.`,
  })

  it('copied to another session or scope is rejected', async () => {
    for (const [key, name] of [
      [bobKey, 'acme:bob'],
      [zeta, 'zeta:ann'],
    ] as const) {
      const inner = await createEncrypted()
      const store = await encryptedStore(inner, testKeyring('old'))
      await inner.commit(nextChange({ key, put: [await readEncrypted(inner, annKey, '#key')] }))
      await expect(store.readHead(key, 0)).rejects.toMatchObject(corrupt(name))
    }
  })

  it('that was modified, truncated or labelled with another master key is rejected', async () => {
    const inner = await createEncrypted()
    const entry = await readEncrypted(inner, annKey, '#key')
    for (const box of [
      tamper(entry.ciphertext),
      entry.ciphertext.slice(0, 30),
      'nothing',
      entry.ciphertext.replace(keyIds.old, keyIds.new),
    ]) {
      await inner.commit(nextChange({ put: [{ ...entry, ciphertext: box }] }))
      const store = await encryptedStore(inner, testKeyring('old', 'new'))
      await expect(store.readHead(annKey, 0)).rejects.toMatchObject(corrupt('acme:ann'))
      await store.commit(nextChange({ key: bobKey, append: [newMessage('unharmed')] }))
    }
    expect(await (await encryptedStore(inner, testKeyring('old', 'new'))).erase(annKey)).toEqual(['m1', 'm2', 'f1'])
  })

  it('missing in an unencrypted session is reported', async () => {
    const inner = ramStore()
    await inner.commit(nextChange({ append: [newMessage('plain')] }))
    await expect(encryptedStore(inner, testKeyring('old'))).rejects.toMatchObject({
      code: 'bad-store',
      message:
        'Session acme:ann was written without encryption. Open the store without a key and export it, then import it into a new store with a key.',
    })
  })
})
