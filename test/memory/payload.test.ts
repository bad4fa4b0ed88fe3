import { describe, expect, it } from 'vitest'
import { parseMessageId } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { packPayload, unpackPayload } from '../../src/domain/payload.ts'
import { type MessageInput, openMemory, profiles, ramStore } from '../../src/index.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { tokenizerFor } from '../../src/tokenizers/tokenizers.ts'
import { containsText } from '../../src/upkeep/rederive.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'
const secret = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'
const thoughts = 'I remember that walruses rest on ice floes between dives.'
const reply: MessageInput = {
  role: 'assistant',
  content: 'They sleep on the ice.',
  payload: {
    protocol: 'messages',
    items: [{ role: 'assistant', content: [{ type: 'thinking', thinking: thoughts, signature: 'c2ln' }] }],
  },
}

describe('append with a payload', () => {
  it('stores it packed, and counts what it adds to the text', async () => {
    await using memory = await openMemory()
    const { payload, ...plain } = reply
    const [withPayload, without] = await memory.append(key, [reply, plain])
    expect(withPayload).not.toHaveProperty('payload')
    expect(without).not.toHaveProperty('packedPayload')
    expect(unpackPayload(withPayload?.packedPayload ?? '', withPayload?.content ?? '')).toEqual(payload)
    const added = memory.tokenizer.count(thoughts)
    expect((withPayload?.tokens ?? 0) - (without?.tokens ?? 0)).toBe(added)
    expect((withPayload?.weight ?? 0) - (without?.weight ?? 0)).toBe(added)
    expect(withPayload?.lineTokens).toBe(without?.lineTokens)
  })

  verifies('R-03', 'with over 8,000,000 characters beside the text › is refused', async () => {
    await using memory = await openMemory()
    const items = [{ role: 'assistant', content: [{ type: 'thinking', thinking: 'x'.repeat(8_000_001) }] }]
    await expect(memory.append(key, [{ ...reply, payload: { protocol: 'messages', items } }])).rejects.toMatchObject({
      code: 'bad-message',
      message: expect.stringContaining('has 8000001 characters beside its text'),
    })
    expect(await memory.transcript(key)).toEqual([])
  })

  it('of a call that the other fields contain › counts no token twice', async () => {
    await using memory = await openMemory()
    const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"place":"ice\\nfloe"}' } }
    const plain = { role: 'assistant' as const, content: 'Looking.', tool_calls: [call] }
    const items = [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: { place: 'ice\nfloe' } }] },
    ]
    const [first, second] = await memory.append(key, [plain, { ...plain, payload: { protocol: 'messages', items } }])
    expect(second?.tokens).toBe(first?.tokens)
  })

  it('with secrets › masks them with the placeholders of the content and restores them', async () => {
    await using memory = await openMemory({ profile: { ...profiles.thread, secrets: 'mask' } })
    const items = [
      { text: `use ${secret} now`, split: ['my password is', 'hunter2!x'] },
      { input: { password: 'horse7staple', pin: 4711 }, [secret]: 1 },
    ]
    const content = `use ${secret} now, my password is hunter2!x`
    const [stored] = await memory.append(key, [{ role: 'user', content, payload: { protocol: 'chat', items } }])
    expect(JSON.stringify(stored)).not.toMatch(/ghp_abc|hunter2|horse7staple/)
    const [mark] = stored?.content.match(/⟨secret:\d+⟩/) ?? []
    expect(JSON.stringify(unpackPayload(stored?.packedPayload ?? '', stored?.content ?? ''))).toContain(
      `use ${mark} now`,
    )
  })

  it('with a secret only in the payload › masks it', async () => {
    await using memory = await openMemory()
    for (const item of [{ thinking: `the token is ${secret}` }, { input: { password: 'correct-horse' } }]) {
      const [stored] = await memory.append(key, [{ ...reply, payload: { protocol: 'messages', items: [item] } }])
      expect(stored?.packedPayload).toContain('⟨secret:')
      expect(stored?.packedPayload).not.toMatch(/ghp_abc|correct-horse/)
    }
  })
})

describe('SecretMasker', () => {
  it('restoreMessage › with a masked payload › restores content and payload', async () => {
    const masker = createSecretMasker('mask', await tokenizerFor('gpt-4o'))
    await using memory = await openMemory({ masker: () => masker })
    const payload = { protocol: 'chat', items: [{ text: `use ${secret} now, whatever the walrus says` }, { n: 1 }] }
    const content = `Hello. use ${secret} now, whatever the walrus says`
    const [stored] = await memory.append(key, [{ role: 'user', content, payload }])
    if (stored === undefined) throw new Error('nothing was stored')
    expect(stored.content).not.toContain(secret)
    const restored = masker.restoreMessage(parseKey(key), stored)
    expect(restored.content).toBe(content)
    expect(restored).not.toHaveProperty('payload')
    expect(unpackPayload(restored.packedPayload ?? '', restored.content)).toEqual(payload)
    const damaged = masker.restoreMessage(parseKey(key), { ...stored, packedPayload: '{"items":[{"$content":[0,9]}]}' })
    expect([damaged.content, damaged.packedPayload]).toEqual([content, undefined])
  })
})

describe('forget by text', () => {
  it('that only a payload contains › erases the message and nothing else', async () => {
    const store = ramStore()
    await using memory = await openMemory({ store })
    await memory.append(key, [{ role: 'user', content: 'Where do they sleep?' }, reply])
    for (const text of ['role', 'assistant', 'thinking', '$content', 'protocol'])
      expect((await memory.forget({ scope: 'acme', text })).sessions).toEqual([])
    expect((await memory.forget({ scope: 'acme', text: 'ICE FLOES' })).sessions).toEqual([{ key, entries: ['m2'] }])
    expect((await memory.transcript(key)).map(({ id }) => parseMessageId(id))).toEqual([1])
  })

  it('in a reference to the content or in a damaged payload › is found', () => {
    const common = { kind: 'message', id: 'm1', sequence: 1, offset: 0, at: 1, role: 'user' } as const
    const tokens = { tokens: 1, lineTokens: 1, tokenizer: 'test', weight: 1 }
    const payload = { protocol: 'chat', items: [{ text: thoughts, note: 'seal "Bo"' }] }
    const packedPayload = packPayload(payload, thoughts)
    const message = { ...common, ...tokens, content: thoughts, packedPayload }
    expect([containsText(message, 'seal "bo"'), containsText(message, 'otter')]).toEqual([true, false])
    expect(containsText({ ...message, packedPayload: '{"otter' }, 'otter')).toBe(true)
  })
})
