import {
  Agent,
  type AgentInputItem,
  MemorySession,
  OpenAIConversationsSession,
  OpenAIProvider,
  Runner,
  tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { describe, expect } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { all, assistant, user } from '../start.ts'
import { calls, cuts, hangs, refuses, says, stalls } from './model.ts'
import { failure, openStage, type Stage } from './stage.ts'

const key = 'demo:ann'
const client = ({ url }: Stage): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })

/** Told of another base address alone; spans of a run would otherwise go to the provider's own service. */
const runner = (stage: Stage, useResponses: boolean): Runner =>
  new Runner({
    tracingDisabled: true,
    modelProvider: new OpenAIProvider({ useResponses, openAIClient: client(stage) }),
  })

const degrees: Record<string, string> = { Rome: '21 °C', Oslo: '4 °C' }
const weather = tool({
  name: 'weather',
  description: 'The weather in a city',
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => degrees[city] ?? 'unknown',
})
const rome = { id: 'call_1', name: 'weather', input: { city: 'Rome' } }
const oslo = { id: 'call_2', name: 'weather', input: { city: 'Oslo' } }
const loop = [
  'user: Where is it warmer?',
  'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
  'tool: 21 °C',
  'tool: 4 °C',
  'assistant: Rome is warmer.',
]
const guide = new Agent({ name: 'Guide', instructions: 'Be brief.', model: 'test-model', tools: [weather] })
const userItem = (text: string): AgentInputItem => ({ type: 'message', role: 'user', content: text })

for (const useResponses of [false, true]) {
  describe(`OpenAI's agents, with ${useResponses ? 'responses' : 'chat completions'}`, () => {
    verifies(
      ['S-03', 'T-02', 'T-15'],
      'run their own tool loop with calls made at once, and go on with their history',
      async () => {
        await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')])
        const result = await runner(stage, useResponses).run(guide, 'Where is it warmer?')
        expect(result.finalOutput).toBe('Rome is warmer.')
        expect(result.state.usage).toMatchObject({ requests: 2, inputTokens: 42, outputTokens: 16 })
        expect(await stage.said(key)).toEqual(loop)
        const more = await runner(stage, useResponses).run(guide, [...result.history, userItem('By how much?')])
        expect(more.finalOutput).toBe('By 17 degrees.')
        expect(await stage.said(key)).toEqual([...loop, 'user: By how much?', 'assistant: By 17 degrees.'])
      },
    )

    verifies(['S-03', 'T-02'], 'stream, however the bytes come', async () => {
      await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.')])
      const result = await runner(stage, useResponses).run(guide, 'Where is it warmer?', { stream: true })
      const pieces = await all(result.toTextStream())
      await result.completed
      expect(pieces.join('')).toBe('Rome is warmer.')
      expect(result.state.usage).toMatchObject({ requests: 2, inputTokens: 42, outputTokens: 16 })
      expect(await stage.said(key)).toEqual(loop)
    })

    verifies('S-03', 'hand over to each other, and say things in a shape', async () => {
      await using stage = await openStage([
        calls({ id: 'call_1', name: 'transfer_to_Vet', input: {} }),
        says('{"name":"Miso","lives":9}'),
      ])
      const vet = new Agent({
        name: 'Vet',
        model: 'test-model',
        outputType: z.object({ name: z.string(), lives: z.number() }),
      })
      const front = Agent.create({ name: 'Front', model: 'test-model', handoffs: [vet] })
      const { finalOutput } = await runner(stage, useResponses).run(front, 'How is my cat?')
      expect(finalOutput).toEqual({ name: 'Miso', lives: 9 })
      expect(await stage.said(key)).toEqual([
        'user: How is my cat?',
        'assistant: transfer_to_Vet({})',
        'tool: {"assistant":"Vet"}',
        'assistant: {"name":"Miso","lives":9}',
      ])
    })

    for (const [status, kind] of [
      [400, OpenAI.BadRequestError],
      [401, OpenAI.AuthenticationError],
      [404, OpenAI.NotFoundError],
      [429, OpenAI.RateLimitError],
      [500, OpenAI.InternalServerError],
    ] as const) {
      verifies('S-03', `tell ${status} by its own class, and the question is kept`, async () => {
        await using stage = await openStage(refuses(status, { 'retry-after': '30' }))
        const error = await failure(runner(stage, useResponses).run(guide, 'Hello'))
        expect(error).toBeInstanceOf(kind)
        expect(error).toMatchObject({ status, code: `scripted_${status}` })
        expect(await stage.said(key)).toEqual(['user: Hello'])
      })
    }

    verifies('S-03', 'stop: the model server is left at once, and the half reply is not kept', async () => {
      await using stage = await openStage([stalls('This is going to be long'), hangs, says('Fine.')])
      const stop = new AbortController()
      const result = await runner(stage, useResponses).run(guide, 'Tell me all', { stream: true, signal: stop.signal })
      for await (const piece of result.toTextStream()) if (piece !== '') stop.abort()
      await failure(result.completed)
      expect(await stage.model.requests[0]?.over).toBe('hung up')
      const later = new AbortController()
      const asked = failure(runner(stage, useResponses).run(guide, 'Or a little', { signal: later.signal }))
      const { over } = await stage.model.arrived(1)
      later.abort()
      expect(await asked).toBeInstanceOf(Error)
      expect(await over).toBe('hung up')
      expect((await runner(stage, useResponses).run(guide, 'Never mind')).finalOutput).toBe('Fine.')
      expect(await stage.said(key)).toEqual([
        'user: Tell me all',
        'user: Or a little',
        'user: Never mind',
        'assistant: Fine.',
      ])
    })

    verifies('S-03', 'are told that a stream was cut, and the half reply is not kept', async () => {
      await using stage = await openStage([cuts('This is going to be long'), says('Fine.')])
      const result = await runner(stage, useResponses).run(guide, 'Tell me all', { stream: true })
      expect(await failure(all(result.toTextStream()).then(() => result.completed))).toBeInstanceOf(OpenAI.APIError)
      expect((await runner(stage, useResponses).run(guide, 'Never mind')).finalOutput).toBe('Fine.')
      expect(await stage.said(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
    })

    verifies(
      ['S-03', 'T-15'],
      'are remembered across a restart, and once, with a session of their own beside',
      async () => {
        await using stage = await openStage([says('A fine name.'), says('Miso.'), says('Still Miso.')])
        const session = new MemorySession()
        await runner(stage, useResponses).run(guide, 'My cat is called Miso.', { session })
        await stage.restart()
        expect((await runner(stage, useResponses).run(guide, 'What is my cat called?', { session })).finalOutput).toBe(
          'Miso.',
        )
        expect((await runner(stage, useResponses).run(guide, 'And now?')).finalOutput).toBe('Still Miso.')
        const heard = JSON.stringify(stage.model.requests[2]?.body)
        expect(heard).toContain('My cat is called Miso.')
        expect(await stage.said(key)).toEqual([
          'user: My cat is called Miso.',
          'assistant: A fine name.',
          'user: What is my cat called?',
          'assistant: Miso.',
          'user: And now?',
          'assistant: Still Miso.',
        ])
      },
    )

    verifies('T-09', 'show pictures to the model; memory has a mark for each', async () => {
      await using stage = await openStage(says('A cat.'))
      const picture = `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}`
      const shown: AgentInputItem = {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image: picture },
        ],
      }
      expect((await runner(stage, useResponses).run(guide, [shown])).finalOutput).toBe('A cat.')
      expect(JSON.stringify(stage.model.requests[0]?.body)).toContain(picture)
      expect(await stage.said(key)).toEqual([
        'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
        'assistant: A cat.',
      ])
    })
  })
}

describe("OpenAI's agents, with what the server keeps for them", () => {
  verifies(['S-03', 'T-15'], 'go on from a response by its id, also after a restart', async () => {
    await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')])
    const first = await runner(stage, true).run(guide, 'Where is it warmer?')
    await stage.restart()
    const second = await runner(stage, true).run(guide, 'By how much?', {
      previousResponseId: String(first.lastResponseId),
    })
    expect(second.finalOutput).toBe('By 17 degrees.')
    expect(await stage.said(key)).toEqual([...loop, 'user: By how much?', 'assistant: By 17 degrees.'])
  })

  verifies(['S-03', 'T-15'], 'run their tool loop in a conversation, also after a restart', async () => {
    await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')])
    const { id } = await client(stage).conversations.create()
    await runner(stage, true).run(guide, 'Where is it warmer?', { conversationId: id })
    await stage.restart()
    expect((await runner(stage, true).run(guide, 'By how much?', { conversationId: id })).finalOutput).toBe(
      'By 17 degrees.',
    )
    expect(await stage.said(`demo:${id}`)).toEqual([...loop, 'user: By how much?', 'assistant: By 17 degrees.'])
    expect(stage.model.requests[2]?.body.input.at(0)).toEqual(user('Where is it warmer?'))
    expect(stage.model.requests[2]?.body.input.at(-2)).toEqual(assistant('Rome is warmer.'))
  })

  verifies(['S-03', 'T-15'], 'keep a session in conversations, also after a restart', async () => {
    await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')])
    const session = new OpenAIConversationsSession({ client: client(stage) })
    await runner(stage, true).run(guide, 'Where is it warmer?', { session })
    const conversationId = await session.getSessionId()
    expect(await stage.said(`demo:${conversationId}`)).toEqual(loop)
    await stage.restart()
    const again = new OpenAIConversationsSession({ client: client(stage), conversationId })
    expect((await runner(stage, true).run(guide, 'By how much?', { session: again })).finalOutput).toBe(
      'By 17 degrees.',
    )
    const line = [...loop, 'user: By how much?', 'assistant: By 17 degrees.']
    expect(await stage.said(`demo:${conversationId}`)).toEqual(line)
    // The runs themselves went to the session that the address names.
    expect(await stage.said(key)).toEqual(line)
    expect(await again.getItems(1)).toMatchObject([{ role: 'assistant', content: [{ text: 'By 17 degrees.' }] }])
    await again.clearSession()
    expect(await stage.said(`demo:${conversationId}`)).toEqual([])
  })
})
