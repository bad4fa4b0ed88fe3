import { describe, expect } from 'vitest'
import { measureMessage } from '../../src/context/measureMessage.ts'
import type { ParsedMessage } from '../../src/domain/chat.ts'
import type { Message } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { unpackPayload } from '../../src/domain/payload.ts'
import { createSecretMasker, type SecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const key = parseKey('acme:ann')
const secret = 'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890'
const newMasker = (policy: 'mask' | 'hide' | 'keep' = 'mask'): SecretMasker => createSecretMasker(policy, chars4)

describe('checkExternalIds', () => {
  verifies(['R-02', 'X-08'], 'with a secret as the id of any message › throws without the id', () => {
    expect(() => newMasker().checkExternalIds([{}, { externalId: 'm-1' }, { externalId: secret }])).toThrow(
      expect.objectContaining({
        code: 'bad-message',
        param: 'id',
        message:
          'The id of a message looks like a secret. Ids are stored unmasked: use one without a key, password or card number.',
      }),
    )
  })

  verifies('R-02', 'with ordinary ids, none, or the policy keep › accepts them', () => {
    expect(() => newMasker().checkExternalIds([{}, { externalId: 'm-1' }])).not.toThrow()
    expect(() => newMasker('keep').checkExternalIds([{ externalId: secret }])).not.toThrow()
  })
})

describe('lacksValues', () => {
  verifies('X-08', 'with a placeholder in any message of a prompt › is true, if prompts show values', () => {
    const [masked, plain] = [{ content: 'Use ⟨secret:12⟩.' }, [{ content: null }, { content: 'Hello.' }]]
    const lacks = (policy: 'mask' | 'hide' | 'keep', messages: readonly { readonly content: string | null }[]) =>
      newMasker(policy).lacksValues(messages)
    expect([lacks('mask', plain), lacks('mask', []), lacks('mask', [...plain, masked])]).toEqual([false, false, true])
    expect([lacks('hide', [masked]), lacks('keep', [masked])]).toEqual([false, false])
  })
})

describe('restoreMessage', () => {
  const toMessage = (message: ParsedMessage): Message => ({
    ...measureMessage(chars4, message),
    weight: 3,
    kind: 'message',
    id: 'm1',
    sequence: 1,
    offset: 7,
  })

  verifies('X-08', 'with a secret in the payload only › restores it for its session', async () => {
    const masker = newMasker()
    const payload = { protocol: 'chat', items: [{ role: 'user', content: 'Hello.', extra: [secret, 5] }] }
    const message: ParsedMessage = { at: 1, role: 'user', content: 'Hello.', payload }
    const masked = toMessage(await masker.maskMessage(key, message))
    expect(JSON.stringify(masked)).not.toContain(secret)
    const restored = masker.restoreMessage(key, masked)
    expect(unpackPayload(restored.packedPayload ?? '', restored.content)).toEqual(payload)
    expect(restored).toEqual(toMessage(message))
    const plain = toMessage({ ...message, payload: { protocol: 'chat', items: [{ extra: 5 }] } })
    expect(masker.restoreMessage(key, plain)).toBe(plain)
  })
})
