import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, embed, generateText, isStepCount, type ModelMessage, Output, streamText, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { all, user } from '../start.ts'
import { calls, cuts, hangs, refuses, says, stalls } from './model.ts'
import { failure, openStage, type Stage } from './stage.ts'

const key = 'demo:ann'
const provider = ({ url }: Stage) =>
  createOpenAICompatible({
    name: 'threadkeep',
    baseURL: `${url}/v1/${key}`,
    apiKey: 'sk-client',
    includeUsage: true,
    supportsStructuredOutputs: true,
  })
const model = (stage: Stage) => provider(stage)('test-model')
const once = { maxRetries: 0 }

const degrees: Record<string, string> = { Rome: '21 °C', Oslo: '4 °C' }
const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
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

describe('the AI SDK', () => {
  verifies(['S-03', 'T-02'], 'generates text', async () => {
    await using stage = await openStage(says('Grüße! 👋'))
    const { text, usage } = await generateText({
      ...once,
      model: model(stage),
      instructions: 'Be brief.',
      prompt: 'Hello',
      temperature: 0.5,
    })
    expect([text, usage.inputTokens, usage.outputTokens]).toEqual(['Grüße! 👋', 21, 8])
    expect(stage.model.requests[0]?.body).toMatchObject({
      temperature: 0.5,
      messages: [{ role: 'system', content: 'Be brief.' }, user('Hello')],
    })
    expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
  })

  verifies(['S-03', 'T-02'], 'streams text with usage, however the bytes come', async () => {
    await using stage = await openStage(says('Grüße aus Zürich 👋, es regnet.'))
    const result = streamText({ ...once, model: model(stage), prompt: 'Hello' })
    const pieces = await all(result.textStream)
    expect(pieces.join('')).toBe('Grüße aus Zürich 👋, es regnet.')
    expect(pieces.length).toBeGreaterThan(3)
    expect(await result.usage).toMatchObject({ inputTokens: 21, outputTokens: 8, totalTokens: 29 })
    expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
  })

  verifies(
    ['S-03', 'T-15'],
    'runs its own tool loop with calls made at once, and goes on with its messages',
    async () => {
      await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')])
      const messages: ModelMessage[] = [user('Where is it warmer?')]
      const result = await generateText({
        ...once,
        model: model(stage),
        messages,
        tools: { weather },
        stopWhen: isStepCount(5),
      })
      expect(result.text).toBe('Rome is warmer.')
      expect(await stage.said(key)).toEqual(loop)
      messages.push(...result.responseMessages, user('By how much?'))
      expect((await generateText({ ...once, model: model(stage), messages, tools: { weather } })).text).toBe(
        'By 17 degrees.',
      )
      expect(await stage.said(key)).toEqual([...loop, 'user: By how much?', 'assistant: By 17 degrees.'])
    },
  )

  verifies(['S-03', 'T-15'], 'runs its own tool loop, streamed', async () => {
    await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.')])
    const result = streamText({
      ...once,
      model: model(stage),
      prompt: 'Where is it warmer?',
      tools: { weather },
      stopWhen: isStepCount(5),
    })
    expect(await result.text).toBe('Rome is warmer.')
    expect(await stage.said(key)).toEqual(loop)
  })

  verifies('S-03', 'parses structured output', async () => {
    await using stage = await openStage(says('{"name":"Miso","lives":9}'))
    const schema = z.object({ name: z.string(), lives: z.number() })
    const { output } = await generateText({
      ...once,
      model: model(stage),
      prompt: 'My cat?',
      output: Output.object({ schema }),
    })
    expect(output).toEqual({ name: 'Miso', lives: 9 })
    expect(stage.model.requests[0]?.body.response_format).toMatchObject({ type: 'json_schema' })
    expect(
      (
        await all(
          streamText({ ...once, model: model(stage), prompt: 'Again?', output: Output.object({ schema }) })
            .partialOutputStream,
        )
      ).at(-1),
    ).toEqual(output)
  })

  for (const status of [400, 401, 404, 429, 500]) {
    verifies('S-03', `tells ${status} by its own class, and keeps the question`, async () => {
      await using stage = await openStage(refuses(status, { 'retry-after': '30' }))
      const error = await failure(generateText({ ...once, model: model(stage), prompt: 'Hello' }))
      expect(APICallError.isInstance(error)).toBe(true)
      expect(error).toMatchObject({
        statusCode: status,
        isRetryable: status >= 429,
        message: `Scripted ${status}.`,
        responseHeaders: { 'retry-after': '30' },
      })
      const errors: unknown[] = []
      await streamText({
        ...once,
        model: model(stage),
        prompt: 'Hello',
        onError: (event) => void errors.push(event.error),
      }).consumeStream()
      expect(errors).toMatchObject([{ statusCode: status }])
      expect(await stage.said(key)).toEqual(['user: Hello'])
    })
  }

  verifies(['S-03', 'T-15'], 'may ask again by itself, and what it asks is kept once', async () => {
    const busy = refuses(503, { 'retry-after-ms': '1' })
    await using stage = await openStage([busy, busy, busy, says('At last.')])
    expect((await generateText({ model: model(stage), prompt: 'Hello?', maxRetries: 1 })).text).toBe('At last.')
    expect(stage.model.requests).toHaveLength(4)
    expect(await stage.said(key)).toEqual(['user: Hello?', 'assistant: At last.'])
  })

  verifies('S-03', 'stops: the model server is left at once, and the half reply is not kept', async () => {
    await using stage = await openStage([stalls('This is going to be long'), hangs, says('Fine.')])
    const stop = new AbortController()
    const { textStream } = streamText({ ...once, model: model(stage), prompt: 'Tell me all', abortSignal: stop.signal })
    for await (const piece of textStream) if (piece !== '') stop.abort()
    expect(await stage.model.requests[0]?.over).toBe('hung up')
    const later = new AbortController()
    const asked = failure(
      generateText({ ...once, model: model(stage), prompt: 'Or a little', abortSignal: later.signal }),
    )
    const { over } = await stage.model.arrived(1)
    later.abort()
    expect(await asked).toMatchObject({ name: 'AbortError' })
    expect(await over).toBe('hung up')
    expect((await generateText({ ...once, model: model(stage), prompt: 'Never mind' })).text).toBe('Fine.')
    expect(await stage.said(key)).toEqual([
      'user: Tell me all',
      'user: Or a little',
      'user: Never mind',
      'assistant: Fine.',
    ])
  })

  verifies('S-03', 'is told that a stream was cut, and the half reply is not kept', async () => {
    await using stage = await openStage([cuts('This is going to be long'), says('Fine.')])
    const errors: unknown[] = []
    await streamText({
      ...once,
      model: model(stage),
      prompt: 'Tell me all',
      onError: (event) => void errors.push(event.error),
    }).consumeStream()
    expect(JSON.stringify(errors)).toContain('chat/completions')
    expect((await generateText({ ...once, model: model(stage), prompt: 'Never mind' })).text).toBe('Fine.')
    expect(await stage.said(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  verifies(
    ['S-03', 'T-15'],
    'is remembered from turn to turn and across a restart, once, whether it resends its history or not',
    async () => {
      await using stage = await openStage([says('A fine name.'), says('Miso.'), says('Rex.')])
      const first = await generateText({ ...once, model: model(stage), prompt: 'My cat is called Miso.' })
      await stage.restart()
      const asked: ModelMessage = user('What is my cat called?')
      const second = await generateText({ ...once, model: model(stage), messages: [asked] })
      expect(second.text).toBe('Miso.')
      const told = [user('My cat is called Miso.'), { role: 'assistant', content: 'A fine name.' }, asked]
      expect(stage.model.requests[1]?.body.messages).toEqual(told)
      const messages = [
        user('My cat is called Miso.'),
        ...first.responseMessages,
        asked,
        ...second.responseMessages,
        user('My dog is called Rex.'),
      ]
      expect((await generateText({ ...once, model: model(stage), messages })).text).toBe('Rex.')
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
    const picture = { type: 'file' as const, mediaType: 'image/png', data: Buffer.from('not really a picture') }
    const messages: ModelMessage[] = [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] }]
    expect((await generateText({ ...once, model: model(stage), messages })).text).toBe('A cat.')
    expect(stage.model.requests[0]?.body.messages[0].content[1]).toEqual({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}` },
    })
    expect(await stage.said(key)).toEqual([
      'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
      'assistant: A cat.',
    ])
  })

  it('makes embeddings', async () => {
    await using stage = await openStage()
    const { embedding } = await embed({
      ...once,
      model: provider(stage).embeddingModel('test-embedding'),
      value: 'Hello',
    })
    expect(embedding).toEqual([0.25, -0.5, 1])
  })
})
