import { describe, expect, it } from 'vitest'
import { BoxKey } from '../../../src/stores/encrypted/box.ts'
import { openMessage, sealSaid } from '../../../src/stores/encrypted/seal.ts'
import { sealedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { ann, bob, change, fact, ring, said } from './stage.ts'

const sealed = {
  message: 'aKmAxXx9E1gied3KujgdZb+wkXCf2dxcoY5hPY1VHN2AYh4xMpfiKrWFcy+m2Eew4xbSCO5nG5KLdXQ=',
  key: '04bd7b688e6ae7b7.AL2LqhliCZkI7Rz1PvsgrHdOHhm5+YjOthnPRla4c+5hx/w6UKJwVENj/I/vwTwFqw/nZslHVbbu/srb',
  fact:
    'aSbj6gKFEGthFQ0wetn8M4xsoV4VICA9C7eVHwCSih3IbxC59qQT67Yxdjltx/BHw4GrcRlAiiytQYXBQhUgN/MAYtuXFIHx3vqFg0Rzg7zC/YDq9sgXrndy4TOyonRoEPOBLlgXpReR' +
    'UapapyZA3U7fEHaHyYmMzubFGoBkC/SEi6doo6YTyltkYROQ2pneHvMUimDud0HWHnC455LBo2/DmsIyOVFvbFNNNM8=',
}

describe('what was sealed once', () => {
  it('can be opened ever after', async () => {
    const inner = ramStore()
    const entry = (id: string, box: string, message: readonly { message: string }[]) => ({
      kind: 'sealed' as const,
      id,
      at: 1_000,
      box,
      sources: message,
    })
    const put = [entry('#key', sealed.key, []), entry('f1', sealed.fact, [{ message: 'm1' }])]
    await inner.commit(change({ append: [said(sealed.message)], put }))
    const { recent, derived } = await (await sealedStore(inner, ring('old'))).head(ann, 1)
    expect([recent[0]?.content, recent[0]?.name, derived]).toEqual(['one', 'Zoë', [fact('f1', 'x')]])
  })
})

describe('a box', () => {
  const secret = (): BoxKey => new BoxKey(Buffer.alloc(32, 7))

  it('is nonce, ciphertext and tag: 28 bytes more than what is in it', () => {
    const box = secret().seal('five!', 'bound')
    expect([
      Buffer.from(box, 'base64').length,
      secret().open(box, 'bound')?.toString(),
      secret().open(box, 'other'),
    ]).toEqual([33, 'five!', undefined])
  })

  it('does not open in another session, even under the same key', () => {
    const message = {
      ...sealSaid(said('one'), ann, secret()),
      kind: 'message' as const,
      id: 'm1',
      sequence: 1,
      offset: 0,
    }
    expect(openMessage(message, ann, secret()).content).toBe('one')
    expect(() => openMessage(message, bob, secret())).toThrow('Message m1 of acme:bob was changed')
  })

  it('is never made under a key that was wiped', () => {
    const wiped = secret()
    wiped.wipe()
    expect(() => wiped.seal('text', '')).toThrow(expect.objectContaining({ code: 'closed' }))
  })
})
