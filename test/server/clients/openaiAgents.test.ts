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
import { collectAll, user } from '../start.ts'
import { isMemoryText, textOf } from '../turn/heldModel.ts'
import { catchError, createHarness, describeFailedTurn, failedTurn, type Harness } from './harness.ts'
import { disconnectDuring, failWith, neverRespond, replyWith, replyWithCalls, stallDuring } from './modelServer.ts'

const key = 'demo:ann'
const client = ({ url }: Harness): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })

/** Creates a runner with the harness as base URL. Tracing is disabled, because it would send spans to OpenAI. */
const createRunner = (harness: Harness, useResponses: boolean): Runner =>
  new Runner({
    tracingDisabled: true,
    modelProvider: new OpenAIProvider({ useResponses, openAIClient: client(harness) }),
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
const toolLoop = [
  'user: Where is it warmer?',
  'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
  'tool: 21 °C',
  'tool: 4 °C',
  'assistant: Rome is warmer.',
]
const guide = new Agent({ name: 'Guide', instructions: 'Be brief.', model: 'test-model', tools: [weather] })
const userItem = (text: string): AgentInputItem => ({ type: 'message', role: 'user', content: text })

for (const useResponses of [false, true]) {
  describe(`OpenAI Agents SDK, ${useResponses ? 'Responses' : 'chat completions'}`, () => {
    verifies(
      ['S-03', 'T-02', 'T-15'],
      'run a tool loop with parallel calls and continue with their history',
      async () => {
        await using harness = await createHarness([
          replyWithCalls(rome, oslo),
          replyWith('Rome is warmer.'),
          replyWith('By 17 degrees.'),
        ])
        const result = await createRunner(harness, useResponses).run(guide, 'Where is it warmer?')
        expect(result.finalOutput).toBe('Rome is warmer.')
        expect(result.state.usage).toMatchObject({ requests: 2, inputTokens: 42, outputTokens: 16 })
        expect(await harness.readTranscript(key)).toEqual(toolLoop)
        const more = await createRunner(harness, useResponses).run(guide, [...result.history, userItem('By how much?')])
        expect(more.finalOutput).toBe('By 17 degrees.')
        expect(await harness.readTranscript(key)).toEqual([
          ...toolLoop,
          'user: By how much?',
          'assistant: By 17 degrees.',
        ])
      },
    )

    verifies(['S-03', 'T-02'], 'stream tool calls and text', async () => {
      await using harness = await createHarness([replyWithCalls(rome, oslo), replyWith('Rome is warmer.')])
      const result = await createRunner(harness, useResponses).run(guide, 'Where is it warmer?', { stream: true })
      const chunks = await collectAll(result.toTextStream())
      await result.completed
      expect(chunks.join('')).toBe('Rome is warmer.')
      expect(result.state.usage).toMatchObject({ requests: 2, inputTokens: 42, outputTokens: 16 })
      expect(await harness.readTranscript(key)).toEqual(toolLoop)
    })

    verifies('S-03', 'hand off and return structured output', async () => {
      await using harness = await createHarness([
        replyWithCalls({ id: 'call_1', name: 'transfer_to_Vet', input: {} }),
        replyWith('{"name":"Miso","lives":9}'),
      ])
      const vet = new Agent({
        name: 'Vet',
        model: 'test-model',
        outputType: z.object({ name: z.string(), lives: z.number() }),
      })
      const receptionist = Agent.create({ name: 'Front', model: 'test-model', handoffs: [vet] })
      const { finalOutput } = await createRunner(harness, useResponses).run(receptionist, 'How is my cat?')
      expect(finalOutput).toEqual({ name: 'Miso', lives: 9 })
      expect(await harness.readTranscript(key)).toEqual([
        'user: How is my cat?',
        'assistant: transfer_to_Vet({})',
        'tool: {"assistant":"Vet"}',
        'assistant: {"name":"Miso","lives":9}',
      ])
    })

    for (const [status, errorClass] of [
      [400, OpenAI.BadRequestError],
      [401, OpenAI.AuthenticationError],
      [404, OpenAI.NotFoundError],
      [429, OpenAI.RateLimitError],
      [500, OpenAI.InternalServerError],
    ] as const) {
      verifies('S-03', `receive ${status} as their own error class, and ${describeFailedTurn(status)}`, async () => {
        await using harness = await createHarness(failWith(status, { 'retry-after': '30' }))
        const error = await catchError(createRunner(harness, useResponses).run(guide, 'Hello'))
        expect(error).toBeInstanceOf(errorClass)
        expect(error).toMatchObject({ status, code: `scripted_${status}` })
        expect(await harness.readTranscript(key)).toEqual(failedTurn(status, 'Hello'))
      })
    }

    verifies('S-03', 'abort a run: the upstream request is aborted and a partial reply is not stored', async () => {
      await using harness = await createHarness([
        stallDuring('This is going to be long'),
        neverRespond,
        replyWith('Fine.'),
      ])
      const controller = new AbortController()
      const result = await createRunner(harness, useResponses).run(guide, 'Tell me all', {
        stream: true,
        signal: controller.signal,
      })
      for await (const chunk of result.toTextStream()) if (chunk !== '') controller.abort()
      await catchError(result.completed)
      expect(await harness.model.requests[0]?.outcome).toBe('aborted')
      const second = new AbortController()
      const pending = catchError(
        createRunner(harness, useResponses).run(guide, 'Or a little', { signal: second.signal }),
      )
      const { outcome } = await harness.model.waitForRequest(1)
      second.abort()
      expect(await pending).toBeInstanceOf(Error)
      expect(await outcome).toBe('aborted')
      expect((await createRunner(harness, useResponses).run(guide, 'Never mind')).finalOutput).toBe('Fine.')
      expect(await harness.readTranscript(key)).toEqual([
        'user: Tell me all',
        'user: Or a little',
        'user: Never mind',
        'assistant: Fine.',
      ])
    })

    verifies('S-03', 'receive an error when a stream breaks, and the partial reply is not stored', async () => {
      await using harness = await createHarness([disconnectDuring('This is going to be long'), replyWith('Fine.')])
      const result = await createRunner(harness, useResponses).run(guide, 'Tell me all', { stream: true })
      expect(await catchError(collectAll(result.toTextStream()).then(() => result.completed))).toBeInstanceOf(
        OpenAI.APIError,
      )
      expect((await createRunner(harness, useResponses).run(guide, 'Never mind')).finalOutput).toBe('Fine.')
      expect(await harness.readTranscript(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
    })

    verifies(
      ['S-03', 'T-15'],
      'are remembered across a restart without duplicates, also with an SDK session',
      async () => {
        await using harness = await createHarness([
          replyWith('A fine name.'),
          replyWith('Miso.'),
          replyWith('Still Miso.'),
        ])
        const session = new MemorySession()
        await createRunner(harness, useResponses).run(guide, 'My cat is called Miso.', { session })
        await harness.restart()
        expect(
          (await createRunner(harness, useResponses).run(guide, 'What is my cat called?', { session })).finalOutput,
        ).toBe('Miso.')
        // Without the session it is a new conversation, for which memory recalls the earlier one.
        const question = 'Is my cat still called Miso?'
        expect((await createRunner(harness, useResponses).run(guide, question)).finalOutput).toBe('Still Miso.')
        const { messages, input } = harness.model.requests[2]?.body ?? {}
        const texts: string[] = (messages ?? input).map(({ content }: { content: unknown }) => textOf(content))
        expect(texts.filter((text) => !isMemoryText(text) && text !== 'Be brief.')).toEqual([question])
        expect(texts.filter(isMemoryText)).toEqual([expect.stringContaining('My cat is called Miso.')])
        expect(await harness.readTranscript(key)).toEqual([
          'user: My cat is called Miso.',
          'assistant: A fine name.',
          'user: What is my cat called?',
          'assistant: Miso.',
          `user: ${question}`,
          'assistant: Still Miso.',
        ])
      },
    )

    verifies('T-09', 'send images to the model and store placeholders', async () => {
      await using harness = await createHarness(replyWith('A cat.'))
      const image = `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}`
      const imageMessage: AgentInputItem = {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image },
        ],
      }
      expect((await createRunner(harness, useResponses).run(guide, [imageMessage])).finalOutput).toBe('A cat.')
      expect(JSON.stringify(harness.model.requests[0]?.body)).toContain(image)
      expect(await harness.readTranscript(key)).toEqual([
        'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
        'assistant: A cat.',
      ])
    })
  })
}

describe('OpenAI Agents SDK, server state', () => {
  verifies(['S-03', 'T-15'], 'continue from a response id, also after a restart', async () => {
    await using harness = await createHarness([
      replyWithCalls(rome, oslo),
      replyWith('Rome is warmer.'),
      replyWith('By 17 degrees.'),
    ])
    const first = await createRunner(harness, true).run(guide, 'Where is it warmer?')
    await harness.restart()
    const second = await createRunner(harness, true).run(guide, 'By how much?', {
      previousResponseId: String(first.lastResponseId),
    })
    expect(second.finalOutput).toBe('By 17 degrees.')
    // The upstream has the conversation.
    expect(harness.model.requests[2]?.body).toMatchObject({
      previous_response_id: first.lastResponseId,
      input: [user('By how much?')],
    })
    expect(await harness.readTranscript(key)).toEqual([...toolLoop, 'user: By how much?', 'assistant: By 17 degrees.'])
  })

  verifies(['S-03', 'T-15'], 'run a tool loop in a conversation, also after a restart', async () => {
    await using harness = await createHarness([
      replyWithCalls(rome, oslo),
      replyWith('Rome is warmer.'),
      replyWith('By 17 degrees.'),
    ])
    const { id } = await client(harness).conversations.create()
    await createRunner(harness, true).run(guide, 'Where is it warmer?', { conversationId: id })
    await harness.restart()
    expect((await createRunner(harness, true).run(guide, 'By how much?', { conversationId: id })).finalOutput).toBe(
      'By 17 degrees.',
    )
    expect(await harness.readTranscript(`demo:${id}`)).toEqual([
      ...toolLoop,
      'user: By how much?',
      'assistant: By 17 degrees.',
    ])
    expect(harness.model.requests[2]?.body.input.at(0)).toEqual(user('Where is it warmer?'))
    expect(harness.model.requests[2]?.body.input.at(-2)).toEqual({
      type: 'message',
      id: 'msg_2',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Rome is warmer.', annotations: [] }],
    })
  })

  verifies(['S-03', 'T-15'], 'store a session in a conversation, also after a restart', async () => {
    await using harness = await createHarness([
      replyWithCalls(rome, oslo),
      replyWith('Rome is warmer.'),
      replyWith('By 17 degrees.'),
    ])
    const session = new OpenAIConversationsSession({ client: client(harness) })
    await createRunner(harness, true).run(guide, 'Where is it warmer?', { session })
    const conversationId = await session.getSessionId()
    expect(await harness.readTranscript(`demo:${conversationId}`)).toEqual(toolLoop)
    await harness.restart()
    const reopened = new OpenAIConversationsSession({ client: client(harness), conversationId })
    expect((await createRunner(harness, true).run(guide, 'By how much?', { session: reopened })).finalOutput).toBe(
      'By 17 degrees.',
    )
    const transcript = [...toolLoop, 'user: By how much?', 'assistant: By 17 degrees.']
    expect(await harness.readTranscript(`demo:${conversationId}`)).toEqual(transcript)
    // The runs themselves belong to the session in the path.
    expect(await harness.readTranscript(key)).toEqual(transcript)
    expect(await reopened.getItems(1)).toMatchObject([{ role: 'assistant', content: [{ text: 'By 17 degrees.' }] }])
    await reopened.clearSession()
    expect(await harness.readTranscript(`demo:${conversationId}`)).toEqual([])
  })
})
