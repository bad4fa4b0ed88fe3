import { describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { refuses } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, user } from '../server/start.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { startScribe } from './stage.ts'

const fresh = freshFiles()
const key = 'acme:ann'
const start = Date.UTC(2026, 2, 2, 9)
const marksIn = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => line.match(/⟨secret:\d+⟩/g) ?? [])

describe('a secret that is to be forgotten', () => {
  for (const text of ['hunter2xyz', 'HUNTER2XYZ', 'unter2xy'])
    verifies(['X-05', 'X-08'], `takes along the message that holds it: ${text}`, async () => {
      await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
      await memory.append(key, [
        user('My password is hunter2xyz.'),
        assistant('Noted.'),
        user('My other password is hunter4abc.'),
      ])
      await memory.append('acme:bob', [user('My password is hunter9xyz.')])
      expect((await memory.forget({ scope: 'acme', text })).sessions).toEqual([{ key, entries: ['m1'] }])
      expect((await memory.context(key)).text).toBe('Assistant: Noted.\n\nUser: My other password is hunter4abc.')
      expect((await memory.context('acme:bob')).text).toBe('User: My password is hunter9xyz.')
    })
})

describe('another secret in the same sentence, after a restart', () => {
  /** Sends what was said to a server of its own on the same file, and tells what is stored then. */
  async function restarted(
    file: string,
    messages: readonly ReturnType<typeof user | typeof assistant>[],
    isDown: boolean,
  ): Promise<readonly string[]> {
    await using scribe = await startScribe(() => (isDown ? refuses(400) : undefined))
    await using server = await startServer({
      upstream: scribe.url,
      memory: { store: `sqlite:${file}`, clock: () => start },
    })
    expect((await server.post(key, { model: 'any', messages })).status).toBe(isDown ? 400 : 200)
    if (!isDown) expect(scribe.asked('chat').at(-1)?.body.messages.at(-1)).toEqual(messages.at(-1))
    expect(server.faults).toEqual([])
    return server.said(key)
  }

  const first = user('my password is hunter2aaa')
  const second = user('my password is hunter3bbb')
  const unnumbered = (lines: readonly string[]): readonly string[] => lines.map((line) => line.replace(/\d+/, 'N'))

  verifies('X-08', 'is stored, though the first was never answered', async () => {
    const file = fresh()
    expect(unnumbered(await restarted(file, [first], true))).toEqual(['user: my password is ⟨secret:N⟩'])
    const said = await restarted(file, [second], false)
    expect(unnumbered(said)).toEqual([
      'user: my password is ⟨secret:N⟩',
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
    ])
    expect(new Set(marksIn(said)).size).toBe(2)
  })

  verifies('X-08', 'is stored after a history that is resent, of which nothing is stored again', async () => {
    const file = fresh()
    expect((await restarted(file, [first], false)).length).toBe(2)
    const resent = [first, assistant('Noted.'), second]
    const said = await restarted(file, resent, false)
    expect(unnumbered(said)).toEqual([
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
    ])
    expect(new Set(marksIn(said)).size).toBe(2)
    const later = await restarted(file, [...resent, assistant('Noted.'), user('Thank you.')], false)
    expect(later).toEqual([...said, 'user: Thank you.', 'assistant: Noted.'])
  })
})
