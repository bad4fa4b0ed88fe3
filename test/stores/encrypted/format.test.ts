import { describe, expect, it } from 'vitest'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { Cipher } from '../../../src/stores/encrypted/cipher.ts'
import { decryptMessage, encryptMessage } from '../../../src/stores/encrypted/entryCipher.ts'
import { encryptedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { annKey, bobKey, factWithSpan, nextChange, testKeyring } from './fixtures.ts'

const stored = {
  message: 'aKmAxXx9E1gied3KujgdZb+wkXCf2dxcoY5hPY1VHN2AYh4xMpfiKrWFcy+m2Eew4xbSCO5nG5KLdXQ=',
  key: '04bd7b688e6ae7b7.AL2LqhliCZkI7Rz1PvsgrHdOHhm5+YjOthnPRla4c+5hx/w6UKJwVENj/I/vwTwFqw/nZslHVbbu/srb',
  fact:
    'aSbj6gKFEGthFQ0wetn8M4xsoV4VICA9C7eVHwCSih3IbxC59qQT67Yxdjltx/BHw4GrcRlAiiytQYXBQhUgN/MAYtuXFIHx3vqFg0Rzg7zC/YDq9sgXrndy4TOyonRoEPOBLlgXpReR' +
    'UapapyZA3U7fEHaHyYmMzubFGoBkC/SEi6doo6YTyltkYROQ2pneHvMUimDud0HWHnC455LBo2/DmsIyOVFvbFNNNM8=',
}

describe('the ciphertext format', () => {
  it('of stored ciphertexts can still be decrypted', async () => {
    const inner = ramStore()
    const entry = (id: string, box: string, sources: readonly { message: string }[]) => ({
      kind: 'encrypted' as const,
      id,
      at: 1_000,
      ciphertext: box,
      sources,
    })
    const put = [entry('#key', stored.key, []), entry('f1', stored.fact, [{ message: 'm1' }])]
    await inner.commit(nextChange({ append: [newMessage(stored.message)], put }))
    const { recent, derived } = await (await encryptedStore(inner, testKeyring('old'))).readHead(annKey, 1)
    expect([recent[0]?.content, recent[0]?.name, derived]).toEqual(['one', 'Zoë', [factWithSpan('f1', 'x')]])
  })
})

describe('Cipher', () => {
  const createCipher = (): Cipher => new Cipher(Buffer.alloc(32, 7))

  it('encrypt adds 28 bytes of nonce and tag', () => {
    const ciphertext = createCipher().encrypt('five!', 'bound')
    expect([
      Buffer.from(ciphertext, 'base64').length,
      createCipher().decrypt(ciphertext, 'bound')?.toString(),
      createCipher().decrypt(ciphertext, 'other'),
    ]).toEqual([33, 'five!', undefined])
  })

  it('decrypt fails in another session with the same key', () => {
    const message = {
      ...encryptMessage(newMessage('one'), annKey, createCipher()),
      kind: 'message' as const,
      id: 'm1',
      sequence: 1,
      offset: 0,
    }
    expect(decryptMessage(message, annKey, createCipher()).content).toBe('one')
    expect(() => decryptMessage(message, bobKey, createCipher())).toThrow('Message m1 of acme:bob was modified')
  })

  it('decrypt fails when the branch of a message was changed', () => {
    const position = { kind: 'message' as const, id: 'm1', sequence: 1, offset: 0 }
    const input = newMessage('one', { branch: 1, packedPayload: '{}' })
    const message = { ...encryptMessage(input, annKey, createCipher()), ...position }
    expect(decryptMessage(message, annKey, createCipher())).toEqual({ ...input, ...position })
    const { branch: _, ...without } = message
    for (const changed of [{ ...message, branch: 2 }, without])
      expect(() => decryptMessage(changed, annKey, createCipher())).toThrow('Message m1 of acme:ann was modified')
  })

  it('encrypt after wipe throws', () => {
    const wiped = createCipher()
    wiped.wipe()
    expect(() => wiped.encrypt('text', '')).toThrow(expect.objectContaining({ code: 'closed' }))
  })
})
