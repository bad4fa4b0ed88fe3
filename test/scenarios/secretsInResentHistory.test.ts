import { describe, expect } from 'vitest'
import type { MessageInput } from '../../src/index.ts'
import { replyWith, respondWithStatus, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { findSecrets, secretSamples } from './plantedSecrets.ts'
import { startUpkeepModel } from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const now = Date.UTC(2026, 2, 2, 9)
const clock = (): number => now

describe('a client that resends a history with secrets', () => {
  verifies(['X-08', 'T-15'], 'causes no duplicates, also after a restart', async () => {
    await using upstream = await startUpstream(replyWith('Done.'))
    const memory = { store: `sqlite:${fresh()}`, clock }
    const history: { role: 'user' | 'assistant'; content: string }[] = []
    for (let start = 0; start < 3; start++) {
      await using server = await startServer({ upstream: upstream.url, memory })
      for (let turn = 0; turn < 8; turn++) {
        const { text } = secretSamples[(start * 8 + turn) * 5] ?? { text: 'Hello.' }
        history.push(user(text))
        await server.client(key).chat.completions.create({ model: 'any', messages: history })
        // The upstream receives the client's original text, and memory does not repeat its masked form.
        expect(upstream.requests.at(-1)?.body.messages).toEqual(history)
        history.push(assistant('Done.'))
        expect((await server.transcriptLines(key)).length).toBe(history.length)
      }
      expect([findSecrets((await server.transcriptLines(key)).join('\n')), server.faults]).toEqual([[], []])
    }
  })
})

const placeholderIn = (text = ''): string => /⟨secret:\d+⟩/.exec(text)?.[0] ?? ''

describe('a different secret in the same sentence', () => {
  const first = user('my password is hunter2aaa')
  const second = user('my password is hunter3bbb')

  async function openServer() {
    const upkeepModel = await startUpkeepModel()
    const server = await startServer({
      upstream: upkeepModel.url,
      memory: { store: `sqlite:${fresh()}`, clock },
    })
    const ask = async (messages: readonly MessageInput[]): Promise<number> =>
      (await server.postChat(key, { model: 'any', messages })).status
    const close = async (): Promise<void> => {
      await server.close()
      await upkeepModel.close()
    }
    return { upkeepModel, server, ask, [Symbol.asyncDispose]: close }
  }

  verifies('X-08', 'the first never answered › is stored as a new message', async () => {
    await using context = await openServer()
    context.upkeepModel.setOverride(() => respondWithStatus(500))
    expect(await context.ask([first])).toBe(500)
    context.upkeepModel.setOverride()
    expect(await context.ask([second])).toBe(200)
    const lines = await context.server.transcriptLines(key)
    expect(lines.map((line) => line.replace(/\d+/, 'N'))).toEqual([
      'user: my password is ⟨secret:N⟩',
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
    ])
    expect(placeholderIn(lines[0])).not.toBe(placeholderIn(lines[1]))
    expect(context.upkeepModel.requestsFor('chat').at(-1)?.body.messages.at(-1)).toEqual(second)
  })

  verifies('X-08', 'in a resent history › is stored as a new message, and a repeated secret is not', async () => {
    await using context = await openServer()
    context.upkeepModel.setOverride(() => respondWithStatus(500))
    await context.ask([first])
    expect((await context.server.transcriptLines(key)).length).toBe(1)
    context.upkeepModel.setOverride()
    await context.ask([first])
    expect((await context.server.transcriptLines(key)).length).toBe(2)
    const history = [first, { role: 'assistant', content: 'Noted.' } as const]
    await context.ask([...history, second])
    expect((await context.server.transcriptLines(key)).length).toBe(4)
    await context.ask([...history, second, { role: 'assistant', content: 'Noted.' }, first])
    const lines = await context.server.transcriptLines(key)
    expect([
      lines.length,
      placeholderIn(lines[4]) === placeholderIn(lines[0]),
      placeholderIn(lines[2]) === placeholderIn(lines[0]),
    ]).toEqual([6, true, false])
    expect(context.server.faults).toEqual([])
  })
})

const placeholdersIn = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => line.match(/⟨secret:\d+⟩/g) ?? [])

describe('a different secret in the same sentence, after a restart', () => {
  /** Sends the messages to a new server on the same file and returns the stored transcript. */
  async function sendToNewServer(
    file: string,
    messages: readonly ReturnType<typeof user | typeof assistant>[],
    isDown: boolean,
  ): Promise<readonly string[]> {
    await using upkeepModel = await startUpkeepModel(() => (isDown ? respondWithStatus(500) : undefined))
    await using server = await startServer({
      upstream: upkeepModel.url,
      memory: { store: `sqlite:${file}`, clock },
    })
    expect((await server.postChat(key, { model: 'any', messages })).status).toBe(isDown ? 500 : 200)
    const sent = upkeepModel.requestsFor('chat').at(-1)?.body.messages
    if (!isDown) expect(sent.slice(-messages.length)).toEqual(messages)
    expect(server.faults).toEqual([])
    return await server.transcriptLines(key)
  }

  const first = user('my password is hunter2aaa')
  const second = user('my password is hunter3bbb')
  const withoutNumbers = (lines: readonly string[]): readonly string[] => lines.map((line) => line.replace(/\d+/, 'N'))

  verifies('X-08', 'the first never answered › is stored', async () => {
    const file = fresh()
    expect(withoutNumbers(await sendToNewServer(file, [first], true))).toEqual(['user: my password is ⟨secret:N⟩'])
    const lines = await sendToNewServer(file, [second], false)
    expect(withoutNumbers(lines)).toEqual([
      'user: my password is ⟨secret:N⟩',
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
    ])
    expect(new Set(placeholdersIn(lines)).size).toBe(2)
  })

  verifies('X-08', 'in a resent history › is stored, and the history is not stored again', async () => {
    const file = fresh()
    expect((await sendToNewServer(file, [first], false)).length).toBe(2)
    const resent = [first, assistant('Noted.'), second]
    const lines = await sendToNewServer(file, resent, false)
    expect(withoutNumbers(lines)).toEqual([
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
    ])
    expect(new Set(placeholdersIn(lines)).size).toBe(2)
    const later = await sendToNewServer(file, [...resent, assistant('Noted.'), user('Thank you.')], false)
    expect(later).toEqual([...lines, 'user: Thank you.', 'assistant: Noted.'])
  })
})
