import {
  AIMessage,
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  type ToolMessage,
} from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { collectAll, user } from '../start.ts'
import { catchError, createHarness, describeFailedTurn, failedTurn, type Harness } from './harness.ts'
import { disconnectDuring, failWith, neverRespond, replyWith, replyWithCalls, stallDuring } from './modelServer.ts'

const key = 'demo:ann'
const chat = ({ url }: Harness, useResponsesApi: boolean): ChatOpenAI =>
  new ChatOpenAI({
    model: 'test-model',
    apiKey: 'sk-client',
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: `${url}/v1/${key}` },
  })

const degrees: Record<string, string> = { Rome: '21 °C', Oslo: '4 °C' }
const weather = tool(async ({ city }: { city: string }) => degrees[city] ?? 'unknown', {
  name: 'weather',
  description: 'The weather in a city',
  schema: z.object({ city: z.string() }),
})
const rome = { id: 'call_1', name: 'weather', input: { city: 'Rome' } }
const oslo = { id: 'call_2', name: 'weather', input: { city: 'Oslo' } }

/** Reads the messages of a request to the model server, in either protocol. */
const readMessages = (harness: Harness, index: number): unknown => {
  const { messages, input } = harness.model.requests[index]?.body ?? {}
  return (messages ?? input).map(({ role, content }: { role: string; content: string }) => ({ role, content }))
}

for (const useResponsesApi of [false, true]) {
  describe(`LangChain, ${useResponsesApi ? 'Responses' : 'chat completions'}`, () => {
    verifies(['S-03', 'T-02'], 'sends a chat request', async () => {
      await using harness = await createHarness(replyWith('Grüße! 👋'))
      const reply = await chat(harness, useResponsesApi).invoke([
        new SystemMessage('Be brief.'),
        new HumanMessage('Hello'),
      ])
      expect(reply.text).toBe('Grüße! 👋')
      expect(reply.usage_metadata).toMatchObject({ input_tokens: 21, output_tokens: 8, total_tokens: 29 })
      expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
    })

    verifies(['S-03', 'T-02'], 'streams text and usage', async () => {
      await using harness = await createHarness(replyWith('Grüße aus Zürich 👋, es regnet.'))
      const chunks = await collectAll(await chat(harness, useResponsesApi).stream('Hello'))
      expect(chunks.map((chunk) => chunk.text).join('')).toBe('Grüße aus Zürich 👋, es regnet.')
      const complete = chunks.reduce((sum: AIMessageChunk, chunk) => sum.concat(chunk))
      expect(complete.usage_metadata).toMatchObject({ input_tokens: 21, output_tokens: 8 })
      expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
    })

    verifies(['S-03', 'T-15'], 'runs a tool loop with parallel calls', async () => {
      await using harness = await createHarness([
        replyWithCalls(rome, oslo),
        replyWith('Rome is warmer.'),
        replyWith('By 17 degrees.'),
      ])
      const modelWithTools = chat(harness, useResponsesApi).bindTools([weather])
      const messages: BaseMessage[] = [new HumanMessage('Where is it warmer?')]
      const first = await modelWithTools.invoke(messages)
      messages.push(first)
      for (const call of first.tool_calls ?? []) messages.push((await weather.invoke(call as never)) as ToolMessage)
      const second = await modelWithTools.invoke(messages)
      expect(second.text).toBe('Rome is warmer.')
      messages.push(second, new HumanMessage('By how much?'))
      expect((await modelWithTools.invoke(messages)).text).toBe('By 17 degrees.')
      expect(await harness.readTranscript(key)).toEqual([
        'user: Where is it warmer?',
        'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
        'tool: 21 °C',
        'tool: 4 °C',
        'assistant: Rome is warmer.',
        'user: By how much?',
        'assistant: By 17 degrees.',
      ])
    })

    verifies('S-03', 'parses structured output', async () => {
      await using harness = await createHarness(replyWith('{"name":"Miso","lives":9}'))
      const schema = z.object({ name: z.string(), lives: z.number() })
      const structuredModel = chat(harness, useResponsesApi).withStructuredOutput(schema, {
        name: 'pet',
        method: 'jsonSchema',
      })
      expect(await structuredModel.invoke('My cat?')).toEqual({ name: 'Miso', lives: 9 })
      expect(await harness.readTranscript(key)).toEqual(['user: My cat?', 'assistant: {"name":"Miso","lives":9}'])
    })

    for (const [status, errorClass, code] of [
      [400, OpenAI.BadRequestError, undefined],
      [401, OpenAI.AuthenticationError, 'MODEL_AUTHENTICATION'],
      [404, OpenAI.NotFoundError, 'MODEL_NOT_FOUND'],
      [429, OpenAI.RateLimitError, 'MODEL_RATE_LIMIT'],
      [500, OpenAI.InternalServerError, undefined],
    ] as const) {
      verifies('S-03', `receives ${status} as its own error class, and ${describeFailedTurn(status)}`, async () => {
        await using harness = await createHarness(failWith(status, { 'retry-after': '30' }))
        const error = await catchError(chat(harness, useResponsesApi).invoke('Hello'))
        expect(error).toBeInstanceOf(errorClass)
        expect(error).toMatchObject({
          status,
          code: `scripted_${status}`,
          ...(code === undefined ? {} : { lc_error_code: code }),
        })
        expect(await catchError(chat(harness, useResponsesApi).stream('Hello'))).toBeInstanceOf(errorClass)
        expect(await harness.readTranscript(key)).toEqual(failedTurn(status, 'Hello'))
      })
    }

    verifies(
      'S-03',
      'aborts a request: the upstream request is aborted and a partial reply is not stored',
      async () => {
        await using harness = await createHarness([
          stallDuring('This is going to be long'),
          neverRespond,
          replyWith('Fine.'),
        ])
        const controller = new AbortController()
        const stream = await chat(harness, useResponsesApi).stream('Tell me all', { signal: controller.signal })
        const readStream = async (): Promise<void> => {
          for await (const chunk of stream) if (chunk.text !== '') controller.abort()
        }
        expect(await catchError(readStream())).toMatchObject({ name: 'AbortError' })
        expect(await harness.model.requests[0]?.outcome).toBe('aborted')
        const second = new AbortController()
        const pending = catchError(chat(harness, useResponsesApi).invoke('Or a little', { signal: second.signal }))
        const { outcome } = await harness.model.waitForRequest(1)
        second.abort()
        expect(await pending).toBeInstanceOf(Error)
        expect(await outcome).toBe('aborted')
        expect((await chat(harness, useResponsesApi).invoke('Never mind')).text).toBe('Fine.')
        expect(await harness.readTranscript(key)).toEqual([
          'user: Tell me all',
          'user: Or a little',
          'user: Never mind',
          'assistant: Fine.',
        ])
      },
    )

    verifies('S-03', 'receives an error when a stream breaks, and the partial reply is not stored', async () => {
      await using harness = await createHarness([disconnectDuring('This is going to be long'), replyWith('Fine.')])
      const stream = await chat(harness, useResponsesApi).stream('Tell me all')
      expect(await catchError(collectAll(stream))).toBeInstanceOf(OpenAI.APIError)
      expect((await chat(harness, useResponsesApi).invoke('Never mind')).text).toBe('Fine.')
      expect(await harness.readTranscript(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
    })

    verifies(
      ['S-03', 'T-15'],
      'is remembered across turns and restarts without duplicates, with and without resent history',
      async () => {
        await using harness = await createHarness([replyWith('A fine name.'), replyWith('Miso.'), replyWith('Rex.')])
        const first = await chat(harness, useResponsesApi).invoke('My cat is called Miso.')
        await harness.restart()
        const second = await chat(harness, useResponsesApi).invoke('What is my cat called?')
        expect(second.text).toBe('Miso.')
        // The reply has the form in which the model sent it.
        const reply = useResponsesApi
          ? [{ type: 'output_text', text: 'A fine name.', annotations: [] }]
          : 'A fine name.'
        expect(readMessages(harness, 1)).toEqual([
          user('My cat is called Miso.'),
          { role: 'assistant', content: reply },
          user('What is my cat called?'),
        ])
        const history = [
          new HumanMessage('My cat is called Miso.'),
          first,
          new HumanMessage('What is my cat called?'),
          new AIMessage('Miso.'),
        ]
        expect(
          (await chat(harness, useResponsesApi).invoke([...history, new HumanMessage('My dog is called Rex.')])).text,
        ).toBe('Rex.')
        expect(await harness.readTranscript(key)).toEqual([
          'user: My cat is called Miso.',
          'assistant: A fine name.',
          'user: What is my cat called?',
          'assistant: Miso.',
          'user: My dog is called Rex.',
          'assistant: Rex.',
        ])
      },
    )

    verifies('T-09', 'sends images to the model and stores placeholders', async () => {
      await using harness = await createHarness(replyWith('A cat.'))
      const image = Buffer.from('not really a picture').toString('base64')
      const imageMessage = new HumanMessage({
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } },
        ],
      })
      expect((await chat(harness, useResponsesApi).invoke([imageMessage])).text).toBe('A cat.')
      expect(JSON.stringify(harness.model.requests[0]?.body)).toContain(image)
      expect(await harness.readTranscript(key)).toEqual([
        'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
        'assistant: A cat.',
      ])
    })
  })
}

describe('LangChain', () => {
  it('creates embeddings', async () => {
    await using harness = await createHarness()
    const embeddings = new OpenAIEmbeddings({
      model: 'test-embedding',
      apiKey: 'sk-client',
      maxRetries: 0,
      configuration: { baseURL: `${harness.url}/v1/${key}` },
    })
    expect(await embeddings.embedQuery('Hello')).toEqual([0.25, -0.5, 1])
  })
})
