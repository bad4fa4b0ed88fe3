import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, embed, generateText, isStepCount, type ModelMessage, Output, streamText, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { collectAll, user } from '../start.ts'
import { catchError, createHarness, describeFailedTurn, failedTurn, type Harness } from './harness.ts'
import { disconnectDuring, failWith, neverRespond, replyWith, replyWithCalls, stallDuring } from './modelServer.ts'

const key = 'demo:ann'
const provider = ({ url }: Harness) =>
  createOpenAICompatible({
    name: 'threadkeep',
    baseURL: `${url}/v1/${key}`,
    apiKey: 'sk-client',
    includeUsage: true,
    supportsStructuredOutputs: true,
  })
const model = (harness: Harness) => provider(harness)('test-model')
const noRetries = { maxRetries: 0 }

const degrees: Record<string, string> = { Rome: '21 °C', Oslo: '4 °C' }
const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
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

describe('AI SDK', () => {
  verifies(['S-03', 'T-02'], 'generates text', async () => {
    await using harness = await createHarness(replyWith('Grüße! 👋'))
    const { text, usage } = await generateText({
      ...noRetries,
      model: model(harness),
      instructions: 'Be brief.',
      prompt: 'Hello',
      temperature: 0.5,
    })
    expect([text, usage.inputTokens, usage.outputTokens]).toEqual(['Grüße! 👋', 21, 8])
    expect(harness.model.requests[0]?.body).toMatchObject({
      temperature: 0.5,
      messages: [{ role: 'system', content: 'Be brief.' }, user('Hello')],
    })
    expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
  })

  verifies(['S-03', 'T-02'], 'streams text and usage', async () => {
    await using harness = await createHarness(replyWith('Grüße aus Zürich 👋, es regnet.'))
    const result = streamText({ ...noRetries, model: model(harness), prompt: 'Hello' })
    const chunks = await collectAll(result.textStream)
    expect(chunks.join('')).toBe('Grüße aus Zürich 👋, es regnet.')
    expect(chunks.length).toBeGreaterThan(3)
    expect(await result.usage).toMatchObject({ inputTokens: 21, outputTokens: 8, totalTokens: 29 })
    expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
  })

  verifies(['S-03', 'T-15'], 'runs a tool loop with parallel calls and continues with its messages', async () => {
    await using harness = await createHarness([
      replyWithCalls(rome, oslo),
      replyWith('Rome is warmer.'),
      replyWith('By 17 degrees.'),
    ])
    const messages: ModelMessage[] = [user('Where is it warmer?')]
    const result = await generateText({
      ...noRetries,
      model: model(harness),
      messages,
      tools: { weather },
      stopWhen: isStepCount(5),
    })
    expect(result.text).toBe('Rome is warmer.')
    expect(await harness.readTranscript(key)).toEqual(toolLoop)
    messages.push(...result.responseMessages, user('By how much?'))
    expect((await generateText({ ...noRetries, model: model(harness), messages, tools: { weather } })).text).toBe(
      'By 17 degrees.',
    )
    expect(await harness.readTranscript(key)).toEqual([...toolLoop, 'user: By how much?', 'assistant: By 17 degrees.'])
  })

  verifies(['S-03', 'T-15'], 'runs a tool loop, streamed', async () => {
    await using harness = await createHarness([replyWithCalls(rome, oslo), replyWith('Rome is warmer.')])
    const result = streamText({
      ...noRetries,
      model: model(harness),
      prompt: 'Where is it warmer?',
      tools: { weather },
      stopWhen: isStepCount(5),
    })
    expect(await result.text).toBe('Rome is warmer.')
    expect(await harness.readTranscript(key)).toEqual(toolLoop)
  })

  verifies('S-03', 'parses structured output', async () => {
    await using harness = await createHarness(replyWith('{"name":"Miso","lives":9}'))
    const schema = z.object({ name: z.string(), lives: z.number() })
    const { output } = await generateText({
      ...noRetries,
      model: model(harness),
      prompt: 'My cat?',
      output: Output.object({ schema }),
    })
    expect(output).toEqual({ name: 'Miso', lives: 9 })
    expect(harness.model.requests[0]?.body.response_format).toMatchObject({ type: 'json_schema' })
    expect(
      (
        await collectAll(
          streamText({ ...noRetries, model: model(harness), prompt: 'Again?', output: Output.object({ schema }) })
            .partialOutputStream,
        )
      ).at(-1),
    ).toEqual(output)
  })

  for (const status of [400, 401, 404, 429, 500]) {
    verifies('S-03', `receives ${status} as its own error class, and ${describeFailedTurn(status)}`, async () => {
      await using harness = await createHarness(failWith(status, { 'retry-after': '30' }))
      const error = await catchError(generateText({ ...noRetries, model: model(harness), prompt: 'Hello' }))
      expect(APICallError.isInstance(error)).toBe(true)
      expect(error).toMatchObject({
        statusCode: status,
        isRetryable: status >= 429,
        message: `Scripted ${status}.`,
        responseHeaders: { 'retry-after': '30' },
      })
      const errors: unknown[] = []
      await streamText({
        ...noRetries,
        model: model(harness),
        prompt: 'Hello',
        onError: (event) => void errors.push(event.error),
      }).consumeStream()
      expect(errors).toMatchObject([{ statusCode: status }])
      expect(await harness.readTranscript(key)).toEqual(failedTurn(status, 'Hello'))
    })
  }

  verifies(['S-03', 'T-15'], 'retries by itself, and the question is stored once', async () => {
    const unavailable = failWith(503, { 'retry-after-ms': '1' })
    await using harness = await createHarness([unavailable, unavailable, unavailable, replyWith('At last.')])
    expect((await generateText({ model: model(harness), prompt: 'Hello?', maxRetries: 1 })).text).toBe('At last.')
    expect(harness.model.requests).toHaveLength(4)
    expect(await harness.readTranscript(key)).toEqual(['user: Hello?', 'assistant: At last.'])
  })

  verifies('S-03', 'aborts a request: the upstream request is aborted and a partial reply is not stored', async () => {
    await using harness = await createHarness([
      stallDuring('This is going to be long'),
      neverRespond,
      replyWith('Fine.'),
    ])
    const controller = new AbortController()
    const { textStream } = streamText({
      ...noRetries,
      model: model(harness),
      prompt: 'Tell me all',
      abortSignal: controller.signal,
    })
    for await (const chunk of textStream) if (chunk !== '') controller.abort()
    expect(await harness.model.requests[0]?.outcome).toBe('aborted')
    const second = new AbortController()
    const pending = catchError(
      generateText({ ...noRetries, model: model(harness), prompt: 'Or a little', abortSignal: second.signal }),
    )
    const { outcome } = await harness.model.waitForRequest(1)
    second.abort()
    expect(await pending).toMatchObject({ name: 'AbortError' })
    expect(await outcome).toBe('aborted')
    expect((await generateText({ ...noRetries, model: model(harness), prompt: 'Never mind' })).text).toBe('Fine.')
    expect(await harness.readTranscript(key)).toEqual([
      'user: Tell me all',
      'user: Or a little',
      'user: Never mind',
      'assistant: Fine.',
    ])
  })

  verifies('S-03', 'receives an error when a stream breaks, and the partial reply is not stored', async () => {
    await using harness = await createHarness([disconnectDuring('This is going to be long'), replyWith('Fine.')])
    const errors: unknown[] = []
    await streamText({
      ...noRetries,
      model: model(harness),
      prompt: 'Tell me all',
      onError: (event) => void errors.push(event.error),
    }).consumeStream()
    expect(JSON.stringify(errors)).toContain('chat/completions')
    expect((await generateText({ ...noRetries, model: model(harness), prompt: 'Never mind' })).text).toBe('Fine.')
    expect(await harness.readTranscript(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  verifies(
    ['S-03', 'T-15'],
    'is remembered across turns and restarts without duplicates, with and without resent history',
    async () => {
      await using harness = await createHarness([replyWith('A fine name.'), replyWith('Miso.'), replyWith('Rex.')])
      const first = await generateText({ ...noRetries, model: model(harness), prompt: 'My cat is called Miso.' })
      await harness.restart()
      const question: ModelMessage = user('What is my cat called?')
      const second = await generateText({ ...noRetries, model: model(harness), messages: [question] })
      expect(second.text).toBe('Miso.')
      const conversation = [user('My cat is called Miso.'), { role: 'assistant', content: 'A fine name.' }, question]
      expect(harness.model.requests[1]?.body.messages).toEqual(conversation)
      const messages = [
        user('My cat is called Miso.'),
        ...first.responseMessages,
        question,
        ...second.responseMessages,
        user('My dog is called Rex.'),
      ]
      expect((await generateText({ ...noRetries, model: model(harness), messages })).text).toBe('Rex.')
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
    const image = { type: 'file' as const, mediaType: 'image/png', data: Buffer.from('not really a picture') }
    const messages: ModelMessage[] = [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }]
    expect((await generateText({ ...noRetries, model: model(harness), messages })).text).toBe('A cat.')
    expect(harness.model.requests[0]?.body.messages[0].content[1]).toEqual({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}` },
    })
    expect(await harness.readTranscript(key)).toEqual([
      'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
      'assistant: A cat.',
    ])
  })

  it('creates embeddings', async () => {
    await using harness = await createHarness()
    const { embedding } = await embed({
      ...noRetries,
      model: provider(harness).embeddingModel('test-embedding'),
      value: 'Hello',
    })
    expect(embedding).toEqual([0.25, -0.5, 1])
  })
})
