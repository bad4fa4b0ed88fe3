import { describe, expect } from 'vitest'
import { UnifiedAIService } from '../../../src/adapters/ai-service.ts'
import { SessionMemory } from '../../../src/adapters/session-memory.ts'
import { verifies } from '../../requirements/verifies.ts'
import { all } from '../start.ts'
import { refuses, says, stalls } from './model.ts'
import { failure, openStage, type Stage } from './stage.ts'

const tab = 'example.com:42'

/** A service that was told nothing but another base address. */
async function serviceAt({ url }: Stage, provider: string, memory = new SessionMemory()): Promise<UnifiedAIService> {
  const service = new UnifiedAIService({ memory })
  // Anthropic's address is given without the version, as its own clients take it.
  await service.initialize(tab, { provider, apiKey: 'key', model: 'test-model', baseUrl: `${url}/v1/${tab}` })
  return service
}

describe('the unified AI service behind the server', () => {
  for (const provider of ['openai', 'xai', 'local', 'anthropic'] as const) {
    const protocol = provider === 'anthropic' ? 'anthropic' : 'openai'

    verifies(['E-15', 'S-03'], `streams answers and is remembered, also after a restart: ${provider}`, async () => {
      await using stage = await openStage([says('About bees 🐝, and why they dance.'), says('Honey bees.')], protocol)
      const chunks = await all((await serviceAt(stage, provider)).processText({ text: 'What is this article about?' }))
      expect(chunks.join('')).toBe('About bees 🐝, and why they dance.')
      await stage.restart()
      // Another popup, whose own memory is empty.
      expect((await all((await serviceAt(stage, provider)).processText({ text: 'Which bees?' }))).join('')).toBe(
        'Honey bees.',
      )
      expect(stage.model.requests[1]?.body.messages).toEqual([
        { role: 'user', content: 'What is this article about?' },
        { role: 'assistant', content: 'About bees 🐝, and why they dance.' },
        { role: 'user', content: 'Which bees?' },
      ])
      expect(await stage.said(tab)).toEqual([
        'user: What is this article about?',
        'assistant: About bees 🐝, and why they dance.',
        'user: Which bees?',
        'assistant: Honey bees.',
      ])
    })

    verifies('E-15', `keeps a question once whatever becomes of its answer: ${provider}`, async () => {
      await using stage = await openStage(
        [refuses(400), stalls('About bees, at length'), says('About bees.')],
        protocol,
      )
      const memory = new SessionMemory()
      const service = await serviceAt(stage, provider, memory)
      expect(await failure(all(service.processText({ text: 'What is this?' })))).toMatchObject({
        name: 'MemoryError',
        code: 'upstream',
      })
      for await (const chunk of service.processText({ text: 'What is this?' })) if (chunk !== '') break
      expect(await stage.model.requests[1]?.over).toBe('hung up')
      expect(await stage.said(tab)).toEqual(['user: What is this?'])
      expect((await all(service.processText({ text: 'What is this?' }))).join('')).toBe('About bees.')
      expect(await stage.said(tab)).toEqual(['user: What is this?', 'assistant: About bees.'])
    })
  }
})
