import { describe, expect } from 'vitest'
import { UnifiedAIService } from '../../../src/adapters/ai-service.ts'
import { SessionMemory } from '../../../src/adapters/session-memory.ts'
import { verifies } from '../../requirements/verifies.ts'
import { collectAll } from '../start.ts'
import { catchError, createHarness, type Harness } from './harness.ts'
import { failWith, replyWith, stallDuring } from './modelServer.ts'

const tab = 'example.com:42'

/** Creates a service with the harness as base URL. */
async function createService(
  { url }: Harness,
  provider: string,
  memory = new SessionMemory(),
): Promise<UnifiedAIService> {
  const service = new UnifiedAIService({ memory })
  // Like the Anthropic SDK, the service takes the base URL without the version.
  await service.initialize(tab, { provider, apiKey: 'key', model: 'test-model', baseUrl: `${url}/v1/${tab}` })
  return service
}

describe('UnifiedAIService with the server', () => {
  for (const provider of ['openai', 'xai', 'local', 'anthropic'] as const) {
    const protocol = provider === 'anthropic' ? 'anthropic' : 'openai'

    verifies(['E-15', 'S-03'], `streams replies and is remembered after a restart: ${provider}`, async () => {
      const reply = 'About bees 🐝, and why they dance.'
      await using harness = await createHarness([replyWith(reply), replyWith('Honey bees.')], protocol)
      const chunks = await collectAll(
        (await createService(harness, provider)).processText({ text: 'What is this article about?' }),
      )
      expect(chunks.join('')).toBe(reply)
      await harness.restart()
      // A new service with an empty memory of its own.
      expect(
        (await collectAll((await createService(harness, provider)).processText({ text: 'Which bees?' }))).join(''),
      ).toBe('Honey bees.')
      expect(harness.model.requests[1]?.body.messages).toEqual([
        { role: 'user', content: 'What is this article about?' },
        { role: 'assistant', content: protocol === 'anthropic' ? [{ type: 'text', text: reply }] : reply },
        { role: 'user', content: 'Which bees?' },
      ])
      expect(await harness.readTranscript(tab)).toEqual([
        'user: What is this article about?',
        'assistant: About bees 🐝, and why they dance.',
        'user: Which bees?',
        'assistant: Honey bees.',
      ])
    })

    verifies('E-15', `stores a question once after an error and an aborted reply: ${provider}`, async () => {
      await using harness = await createHarness(
        [failWith(400), stallDuring('About bees, at length'), replyWith('About bees.')],
        protocol,
      )
      const memory = new SessionMemory()
      const service = await createService(harness, provider, memory)
      expect(await catchError(collectAll(service.processText({ text: 'What is this?' })))).toMatchObject({
        name: 'MemoryError',
        code: 'upstream',
      })
      for await (const chunk of service.processText({ text: 'What is this?' })) if (chunk !== '') break
      expect(await harness.model.requests[1]?.outcome).toBe('aborted')
      expect(await harness.readTranscript(tab)).toEqual(['user: What is this?'])
      expect((await collectAll(service.processText({ text: 'What is this?' }))).join('')).toBe('About bees.')
      expect(await harness.readTranscript(tab)).toEqual(['user: What is this?', 'assistant: About bees.'])
    })
  }
})
