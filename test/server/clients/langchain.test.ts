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
import { all, assistant, user } from '../start.ts'
import { calls, cuts, hangs, refuses, says, stalls } from './model.ts'
import { failure, openStage, type Stage } from './stage.ts'

const key = 'demo:ann'
const chat = ({ url }: Stage, useResponsesApi: boolean): ChatOpenAI =>
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

/** What the model server was told in a request, whichever protocol it came by. */
const told = (stage: Stage, place: number): unknown => {
  const { messages, input } = stage.model.requests[place]?.body ?? {}
  return (messages ?? input).map(({ role, content }: { role: string; content: string }) => ({ role, content }))
}

for (const useResponsesApi of [false, true]) {
  describe(`LangChain, with ${useResponsesApi ? 'responses' : 'chat completions'}`, () => {
    verifies(['S-03', 'T-02'], 'chats', async () => {
      await using stage = await openStage(says('Grüße! 👋'))
      const reply = await chat(stage, useResponsesApi).invoke([
        new SystemMessage('Be brief.'),
        new HumanMessage('Hello'),
      ])
      expect(reply.text).toBe('Grüße! 👋')
      expect(reply.usage_metadata).toMatchObject({ input_tokens: 21, output_tokens: 8, total_tokens: 29 })
      expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
    })

    verifies(['S-03', 'T-02'], 'streams with usage, however the bytes come', async () => {
      await using stage = await openStage(says('Grüße aus Zürich 👋, es regnet.'))
      const chunks = await all(await chat(stage, useResponsesApi).stream('Hello'))
      expect(chunks.map((chunk) => chunk.text).join('')).toBe('Grüße aus Zürich 👋, es regnet.')
      const whole = chunks.reduce((sum: AIMessageChunk, chunk) => sum.concat(chunk))
      expect(whole.usage_metadata).toMatchObject({ input_tokens: 21, output_tokens: 8 })
      expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
    })

    verifies(['S-03', 'T-15'], 'runs a tool loop with calls made at once', async () => {
      await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')])
      const bound = chat(stage, useResponsesApi).bindTools([weather])
      const messages: BaseMessage[] = [new HumanMessage('Where is it warmer?')]
      const first = await bound.invoke(messages)
      messages.push(first)
      for (const call of first.tool_calls ?? []) messages.push((await weather.invoke(call as never)) as ToolMessage)
      const second = await bound.invoke(messages)
      expect(second.text).toBe('Rome is warmer.')
      messages.push(second, new HumanMessage('By how much?'))
      expect((await bound.invoke(messages)).text).toBe('By 17 degrees.')
      expect(await stage.said(key)).toEqual([
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
      await using stage = await openStage(says('{"name":"Miso","lives":9}'))
      const schema = z.object({ name: z.string(), lives: z.number() })
      const structured = chat(stage, useResponsesApi).withStructuredOutput(schema, {
        name: 'pet',
        method: 'jsonSchema',
      })
      expect(await structured.invoke('My cat?')).toEqual({ name: 'Miso', lives: 9 })
      expect(await stage.said(key)).toEqual(['user: My cat?', 'assistant: {"name":"Miso","lives":9}'])
    })

    for (const [status, kind, code] of [
      [400, OpenAI.BadRequestError, undefined],
      [401, OpenAI.AuthenticationError, 'MODEL_AUTHENTICATION'],
      [404, OpenAI.NotFoundError, 'MODEL_NOT_FOUND'],
      [429, OpenAI.RateLimitError, 'MODEL_RATE_LIMIT'],
      [500, OpenAI.InternalServerError, undefined],
    ] as const) {
      verifies('S-03', `tells ${status} by its own class, and keeps the question`, async () => {
        await using stage = await openStage(refuses(status, { 'retry-after': '30' }))
        const error = await failure(chat(stage, useResponsesApi).invoke('Hello'))
        expect(error).toBeInstanceOf(kind)
        expect(error).toMatchObject({
          status,
          code: `scripted_${status}`,
          ...(code === undefined ? {} : { lc_error_code: code }),
        })
        expect(await failure(chat(stage, useResponsesApi).stream('Hello'))).toBeInstanceOf(kind)
        expect(await stage.said(key)).toEqual(['user: Hello'])
      })
    }

    verifies('S-03', 'stops: the model server is left at once, and the half reply is not kept', async () => {
      await using stage = await openStage([stalls('This is going to be long'), hangs, says('Fine.')])
      const stop = new AbortController()
      const stream = await chat(stage, useResponsesApi).stream('Tell me all', { signal: stop.signal })
      const read = async (): Promise<void> => {
        for await (const chunk of stream) if (chunk.text !== '') stop.abort()
      }
      expect(await failure(read())).toMatchObject({ name: 'AbortError' })
      expect(await stage.model.requests[0]?.over).toBe('hung up')
      const later = new AbortController()
      const asked = failure(chat(stage, useResponsesApi).invoke('Or a little', { signal: later.signal }))
      const { over } = await stage.model.arrived(1)
      later.abort()
      expect(await asked).toBeInstanceOf(Error)
      expect(await over).toBe('hung up')
      expect((await chat(stage, useResponsesApi).invoke('Never mind')).text).toBe('Fine.')
      expect(await stage.said(key)).toEqual([
        'user: Tell me all',
        'user: Or a little',
        'user: Never mind',
        'assistant: Fine.',
      ])
    })

    verifies('S-03', 'is told that a stream was cut, and the half reply is not kept', async () => {
      await using stage = await openStage([cuts('This is going to be long'), says('Fine.')])
      const stream = await chat(stage, useResponsesApi).stream('Tell me all')
      expect(await failure(all(stream))).toBeInstanceOf(OpenAI.APIError)
      expect((await chat(stage, useResponsesApi).invoke('Never mind')).text).toBe('Fine.')
      expect(await stage.said(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
    })

    verifies(
      ['S-03', 'T-15'],
      'is remembered from turn to turn and across a restart, once, whether it resends its history or not',
      async () => {
        await using stage = await openStage([says('A fine name.'), says('Miso.'), says('Rex.')])
        const first = await chat(stage, useResponsesApi).invoke('My cat is called Miso.')
        await stage.restart()
        const second = await chat(stage, useResponsesApi).invoke('What is my cat called?')
        expect(second.text).toBe('Miso.')
        expect(told(stage, 1)).toEqual([
          user('My cat is called Miso.'),
          assistant('A fine name.'),
          user('What is my cat called?'),
        ])
        const history = [
          new HumanMessage('My cat is called Miso.'),
          first,
          new HumanMessage('What is my cat called?'),
          new AIMessage('Miso.'),
        ]
        expect(
          (await chat(stage, useResponsesApi).invoke([...history, new HumanMessage('My dog is called Rex.')])).text,
        ).toBe('Rex.')
        expect(await stage.said(key)).toEqual([
          'user: My cat is called Miso.',
          'assistant: A fine name.',
          'user: What is my cat called?',
          'assistant: Miso.',
          'user: My dog is called Rex.',
          'assistant: Rex.',
        ])
      },
    )

    verifies('T-09', 'shows pictures to the model; memory has a mark for each', async () => {
      await using stage = await openStage(says('A cat.'))
      const picture = Buffer.from('not really a picture').toString('base64')
      const shown = new HumanMessage({
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } },
        ],
      })
      expect((await chat(stage, useResponsesApi).invoke([shown])).text).toBe('A cat.')
      expect(JSON.stringify(stage.model.requests[0]?.body)).toContain(picture)
      expect(await stage.said(key)).toEqual([
        'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
        'assistant: A cat.',
      ])
    })
  })
}

describe('LangChain besides', () => {
  it('makes embeddings', async () => {
    await using stage = await openStage()
    const embeddings = new OpenAIEmbeddings({
      model: 'test-embedding',
      apiKey: 'sk-client',
      maxRetries: 0,
      configuration: { baseURL: `${stage.url}/v1/${key}` },
    })
    expect(await embeddings.embedQuery('Hello')).toEqual([0.25, -0.5, 1])
  })
})
