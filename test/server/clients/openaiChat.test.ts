import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, collectAll, startServer, user } from '../start.ts'
import { isMemoryText } from '../turn/heldModel.ts'
import { catchError, createHarness, describeFailedTurn, failedTurn, type Harness } from './harness.ts'
import { disconnectDuring, failWith, neverRespond, replyWith, replyWithCalls, stallDuring } from './modelServer.ts'

const key = 'demo:ann'
const client = ({ url }: Harness, sessionKey = key): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1/${sessionKey}`, apiKey: 'sk-client', maxRetries: 0 })
const send = async (
  harness: Harness,
  ...messages: OpenAI.ChatCompletionMessageParam[]
): Promise<string | null | undefined> =>
  (await client(harness).chat.completions.create({ model: 'test-model', messages })).choices[0]?.message.content

const weather = z.object({ city: z.string() })
const file = {
  type: 'file' as const,
  file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${Buffer.from('%PDF').toString('base64')}` },
}
/** A document in the place of an image. */
const dataUrl = { type: 'image_url' as const, image_url: { url: 'data:text/plain,secret' } }

describe('OpenAI SDK, chat completions', () => {
  verifies(['S-03', 'T-02'], 'sends a request, and every field arrives unchanged', async () => {
    await using harness = await createHarness(replyWith('Grüße! 👋'))
    const request = {
      model: 'test-model',
      messages: [user('Hello')],
      temperature: 0.5,
      seed: 7,
      logit_bias: { '50256': -100 },
      x_unknown: { deep: [1, null] },
    }
    const { data, response } = await client(harness).chat.completions.create(request).withResponse()
    expect(data.choices[0]?.message.content).toBe('Grüße! 👋')
    expect(data.usage).toMatchObject({ prompt_tokens: 21, completion_tokens: 8, total_tokens: 29 })
    expect(response.headers.get('x-threadkeep-memory')).toBe('on')
    expect(harness.model.requests[0]?.body).toEqual(request)
    expect(harness.model.requests[0]?.headers.authorization).toBe('Bearer sk-client')
    expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
  })

  verifies(['S-03', 'T-02'], 'streams text and usage', async () => {
    await using harness = await createHarness(replyWith('Grüße aus Zürich 👋, es regnet.'))
    const stream = await client(harness).chat.completions.create({
      model: 'test-model',
      messages: [user('Hello')],
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collectAll(stream)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(
      'Grüße aus Zürich 👋, es regnet.',
    )
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 21, completion_tokens: 8 } })
    const runner = client(harness).chat.completions.stream({ model: 'test-model', messages: [user('Once more')] })
    expect(await runner.finalContent()).toBe('Grüße aus Zürich 👋, es regnet.')
    expect(await harness.readTranscript(key)).toEqual([
      'user: Hello',
      'assistant: Grüße aus Zürich 👋, es regnet.',
      'user: Once more',
      'assistant: Grüße aus Zürich 👋, es regnet.',
    ])
  })

  for (const stream of [false, true]) {
    verifies(
      ['S-03', 'T-02', 'T-15'],
      `runs a tool loop with parallel calls${stream ? ', streamed' : ''}`,
      async () => {
        const rome = { id: 'call_1', name: 'weather', input: { city: 'Rome' } }
        const oslo = { id: 'call_2', name: 'weather', input: { city: 'Oslo' } }
        await using harness = await createHarness([
          replyWithCalls(rome, oslo),
          replyWith('Rome is warmer.'),
          replyWith('By 17 degrees.'),
        ])
        const degrees: Record<string, string> = { Rome: '21 °C', Oslo: '4 °C' }
        const tool = {
          type: 'function' as const,
          function: {
            name: 'weather',
            description: 'The weather in a city',
            parameters: z.toJSONSchema(weather) as Record<string, unknown>,
            parse: (text: string) => weather.parse(JSON.parse(text)),
            function: async ({ city }: z.infer<typeof weather>) => degrees[city] ?? 'unknown',
          },
        }
        const request = {
          model: 'test-model',
          messages: [user('Where is it warmer, in Rome or in Oslo?')],
          tools: [tool],
        }
        const { completions } = client(harness).chat
        const runner = stream ? completions.runTools({ ...request, stream: true }) : completions.runTools(request)
        expect(await runner.finalContent()).toBe('Rome is warmer.')
        const conversation = [...runner.messages, user('By how much?')]
        expect(await send(harness, ...conversation)).toBe('By 17 degrees.')
        const transcript = [
          'user: Where is it warmer, in Rome or in Oslo?',
          'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
          'tool: 21 °C',
          'tool: 4 °C',
          'assistant: Rome is warmer.',
          'user: By how much?',
          'assistant: By 17 degrees.',
        ]
        expect(await harness.readTranscript(key)).toEqual(transcript)
        expect(harness.model.requests.map(({ body }) => body.messages.length)).toEqual([1, 4, 6])
        expect(harness.model.requests[2]?.body.messages).toEqual(conversation)
      },
    )
  }

  verifies('S-03', 'parses structured output', async () => {
    await using harness = await createHarness(replyWith('{"name":"Miso","lives":9}'))
    const pet = z.object({ name: z.string(), lives: z.number() })
    const parsed = await client(harness).chat.completions.parse({
      model: 'test-model',
      messages: [user('My cat is called Miso. Tell me about it.')],
      response_format: zodResponseFormat(pet, 'pet'),
    })
    expect(parsed.choices[0]?.message.parsed).toEqual({ name: 'Miso', lives: 9 })
    expect(harness.model.requests[0]?.body.response_format).toMatchObject({
      type: 'json_schema',
      json_schema: { name: 'pet', strict: true },
    })
  })

  for (const [status, errorClass] of [
    [400, OpenAI.BadRequestError],
    [401, OpenAI.AuthenticationError],
    [404, OpenAI.NotFoundError],
    [429, OpenAI.RateLimitError],
    [500, OpenAI.InternalServerError],
  ] as const) {
    for (const stream of [false, true]) {
      verifies(
        'S-03',
        `receives ${status} as its own error class, and ${describeFailedTurn(status)}${stream ? ', streamed' : ''}`,
        async () => {
          await using harness = await createHarness([
            failWith(status, { 'retry-after': '30' }),
            replyWith('Here I am.'),
          ])
          const error = await catchError(
            client(harness).chat.completions.create({ model: 'test-model', messages: [user('Hello')], stream }),
          )
          expect(error).toBeInstanceOf(errorClass)
          expect(error).toMatchObject({ status, code: `scripted_${status}`, requestID: expect.stringMatching(/^req_/) })
          expect((error as InstanceType<typeof errorClass>).headers.get('retry-after')).toBe('30')
          expect(await harness.readTranscript(key)).toEqual(failedTurn(status, 'Hello'))
          expect(await send(harness, user('Hello'))).toBe('Here I am.')
          expect(harness.model.requests.at(-1)?.body.messages).toEqual([user('Hello')])
          expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Here I am.'])
        },
      )
    }
  }

  verifies(['S-03', 'T-15'], 'retries by itself, and the question is stored once', async () => {
    const unavailable = failWith(503, { 'retry-after-ms': '1' })
    await using harness = await createHarness([unavailable, unavailable, unavailable, replyWith('At last.')])
    const retryingClient = new OpenAI({ baseURL: `${harness.url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 2 })
    const { choices } = await retryingClient.chat.completions.create({
      model: 'test-model',
      messages: [user('Hello?')],
    })
    expect(choices[0]?.message.content).toBe('At last.')
    expect(harness.model.requests).toHaveLength(4)
    expect(await harness.readTranscript(key)).toEqual(['user: Hello?', 'assistant: At last.'])
  })

  verifies('S-03', 'aborts a stream: the upstream request is aborted and the partial reply is not stored', async () => {
    await using harness = await createHarness([stallDuring('This is going to be long'), replyWith('Fine.')])
    const stream = await client(harness).chat.completions.create({
      model: 'test-model',
      messages: [user('Tell me all')],
      stream: true,
    })
    for await (const { choices } of stream) if (choices[0]?.delta.content) break
    expect(await harness.model.requests[0]?.outcome).toBe('aborted')
    expect(await send(harness, user('Never mind'))).toBe('Fine.')
    expect(await harness.readTranscript(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  verifies('S-03', 'aborts a request before the response', async () => {
    for (const stream of [false, true]) {
      await using harness = await createHarness([neverRespond, replyWith('Fine.')])
      const controller = new AbortController()
      const pending = catchError(
        client(harness).chat.completions.create(
          { model: 'test-model', messages: [user('Hello')], stream },
          { signal: controller.signal },
        ),
      )
      const { outcome } = await harness.model.waitForRequest(0)
      controller.abort()
      expect(await pending).toBeInstanceOf(OpenAI.APIUserAbortError)
      expect(await outcome).toBe('aborted')
      expect(await send(harness, user('Hello'))).toBe('Fine.')
      expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Fine.'])
    }
  })

  verifies('S-03', 'receives an error when a stream breaks, and the partial reply is not stored', async () => {
    await using harness = await createHarness([disconnectDuring('This is going to be long'), replyWith('Fine.')])
    const stream = await client(harness).chat.completions.create({
      model: 'test-model',
      messages: [user('Tell me all')],
      stream: true,
    })
    expect(await catchError(collectAll(stream))).toBeInstanceOf(OpenAI.APIError)
    expect(await send(harness, user('Never mind'))).toBe('Fine.')
    expect(await harness.readTranscript(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  verifies(
    ['S-03', 'T-02', 'T-15'],
    'is remembered across turns and restarts without duplicates, with and without resent history',
    async () => {
      await using harness = await createHarness([
        replyWith('A fine name.'),
        replyWith('Miso.'),
        replyWith('Still Miso.'),
        replyWith('Rex.'),
      ])
      await send(harness, user('My cat is called Miso.'))
      expect(await send(harness, user('What is my cat called?'))).toBe('Miso.')
      const conversation = [
        user('My cat is called Miso.'),
        assistant('A fine name.'),
        user('What is my cat called?'),
        assistant('Miso.'),
      ]
      expect(harness.model.requests[1]?.body.messages).toEqual(conversation.slice(0, 3))
      await harness.restart()
      expect(await send(harness, user('And now?'))).toBe('Still Miso.')
      expect(harness.model.requests[2]?.body.messages).toEqual([...conversation, user('And now?')])
      await harness.restart()
      const history = [...conversation, user('And now?'), assistant('Still Miso.'), user('My dog is called Rex.')]
      expect(await send(harness, ...history)).toBe('Rex.')
      expect(harness.model.requests[3]?.body.messages).toEqual(history)
      expect(await harness.readTranscript(key)).toEqual([
        ...history.map(({ role, content }) => `${role}: ${content}`),
        'assistant: Rex.',
      ])
    },
  )

  verifies(
    ['S-03', 'T-15'],
    'after resending its history begins a new conversation with a single question',
    async () => {
      await using harness = await createHarness([
        replyWith('A fine name.'),
        replyWith('Miso.'),
        replyWith('Miso again.'),
      ])
      const question = user('What is my cat called?')
      await send(harness, user('My cat is called Miso.'))
      await send(harness, user('My cat is called Miso.'), assistant('A fine name.'), question)
      expect(await send(harness, user('Who is Miso?'))).toBe('Miso again.')
      const [own, ...added] = harness.model.requests[2]?.body.messages ?? []
      expect(own).toEqual(user('Who is Miso?'))
      expect(added).toEqual([{ role: 'system', content: expect.stringContaining('My cat is called Miso.') }])
      expect(isMemoryText(added[0].content)).toBe(true)
      expect((await harness.readTranscript(key)).slice(-3)).toEqual([
        'assistant: Miso.',
        'user: Who is Miso?',
        'assistant: Miso again.',
      ])
    },
  )

  verifies('T-01', 'has a separate memory for each key', async () => {
    await using harness = await createHarness()
    for (const sessionKey of ['acme:+15551234567', 'acme:2', 'acme', 'other:2']) {
      await client(harness, sessionKey).chat.completions.create({
        model: 'test-model',
        messages: [user(`I am ${sessionKey}.`)],
      })
      await client(harness, encodeURIComponent(sessionKey)).chat.completions.create({
        model: 'test-model',
        messages: [user('Who am I?')],
      })
      expect(harness.model.requests.at(-1)?.body.messages.map(({ content }: { content: string }) => content)).toEqual([
        `I am ${sessionKey}.`,
        expect.stringMatching(/^Answer \d\.$/),
        'Who am I?',
      ])
    }
  })

  verifies('T-09', 'sends images and audio to the model and stores placeholders', async () => {
    await using harness = await createHarness([replyWith('A cat.'), replyWith('Purring.'), replyWith('Yes.')])
    const image = {
      type: 'image_url' as const,
      image_url: { url: `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}` },
    }
    const audio = {
      type: 'input_audio' as const,
      input_audio: { data: Buffer.from('purr').toString('base64'), format: 'wav' as const },
    }
    const imageMessage = { role: 'user' as const, content: [{ type: 'text' as const, text: 'What is this?' }, image] }
    const audioMessage = { role: 'user' as const, content: [audio] }
    await send(harness, imageMessage)
    await send(harness, imageMessage, assistant('A cat.'), audioMessage)
    await send(harness, user('Are you sure?'))
    expect(harness.model.requests[0]?.body.messages).toEqual([imageMessage])
    expect(harness.model.requests[1]?.body.messages.at(-1)).toEqual(audioMessage)
    expect(await harness.readTranscript(key)).toEqual([
      'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
      'assistant: A cat.',
      'user: [audio, 4 bytes, sha256 b66358a34a718d2a]',
      'assistant: Purring.',
      'user: Are you sure?',
      'assistant: Yes.',
    ])
  })

  verifies('T-09', 'sends an image again, or with the question after it, and the model receives it', async () => {
    await using harness = await createHarness([replyWith('A cat.'), replyWith('Grey.')])
    const image = {
      type: 'image_url' as const,
      image_url: { url: `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}` },
    }
    const imageMessage = { role: 'user' as const, content: [image] }
    await send(harness, imageMessage, user('What is this?'))
    await send(harness, imageMessage, user('What is this?'), assistant('A cat.'), user('What colour is it?'))
    expect(harness.model.requests.map(({ body }) => body.messages[0])).toEqual([imageMessage, imageMessage])
    expect((await harness.readTranscript(key)).length).toBe(5)
  })

  verifies(['S-03', 'T-15'], 'stores custom tool calls and deprecated function calls', async () => {
    await using server = await startServer()
    const customCall = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'code', input: 'print(1)' } }],
    }
    const functionCall = { role: 'assistant', content: null, function_call: { name: 'now', arguments: '{}' } }
    const conversation = [
      user('What is it?'),
      customCall,
      { role: 'tool', tool_call_id: 'c1', content: '1' },
      functionCall,
      { role: 'function', name: 'now', content: '12:00' },
    ]
    for (const messages of [conversation.slice(0, 3), conversation])
      expect((await server.postChat(key, { model: 'any', messages })).status).toBe(200)
    const stored = await server.memory.transcript(key)
    expect(
      stored.filter(({ role }) => role === 'tool').map(({ content, toolCallId }) => [content, toolCallId]),
    ).toEqual([
      ['1', 'c1'],
      ['12:00', 'now'],
    ])
  })

  verifies('S-03', 'without memory is validated by the model server alone', async () => {
    await using harness = await createHarness()
    const invalid = { role: 'wizard', content: 'Abracadabra' } as unknown as OpenAI.ChatCompletionMessageParam
    const withoutMemory = new OpenAI({ baseURL: `${harness.url}/v1`, apiKey: 'sk-client', maxRetries: 0 })
    const error = await catchError(
      withoutMemory.chat.completions.create({ model: 'test-model', messages: [user('Hello'), invalid] }),
    )
    expect(error).toMatchObject({ status: 400, message: '400 messages[1] has the unknown role wizard' })
    expect(harness.model.requests.length).toBe(1)
    expect(await catchError(send(harness, user('Hello'), invalid))).toMatchObject({ status: 400, code: 'bad-message' })
    expect(harness.model.requests.length).toBe(1)
  })

  for (const profile of ['support', 'ephemeral']) {
    verifies('T-09', `with the profile ${profile} cannot attach files to a session`, async () => {
      await using harness = await createHarness(replyWith('Hello.'), 'openai', [], { profile, store: 'ram:' })
      for (const part of [file, dataUrl]) {
        const error = await catchError(send(harness, { role: 'user', content: [part] }))
        expect(error).toBeInstanceOf(OpenAI.BadRequestError)
        expect(error).toMatchObject({ message: '400 File uploads not allowed for ephemeral sessions' })
      }
      expect(harness.model.requests).toEqual([])
      expect(await harness.readTranscript(key)).toEqual([])
    })
  }

  for (const profile of ['thread', 'summary', 'agent', 'handoff']) {
    verifies('T-09', `with the profile ${profile} sends files to the model and stores placeholders`, async () => {
      await using harness = await createHarness([replyWith('A letter.'), replyWith('To Ann.')], 'openai', [], {
        profile,
      })
      const question = { role: 'user' as const, content: [file, dataUrl] }
      const conversation = [question, assistant('A letter.'), user('To whom?')]
      await send(harness, question)
      expect(await send(harness, ...conversation)).toBe('To Ann.')
      expect(harness.model.requests.map(({ body }) => body.messages)).toEqual([[question], conversation])
      expect(await harness.readTranscript(key)).toEqual([
        'user: [file a.pdf, application/pdf, 4 bytes, sha256 315d429b7714cedb]\n[file, text/plain, 6 bytes, sha256 2bb80d537b1da3e3]',
        'assistant: A letter.',
        'user: To whom?',
        'assistant: To Ann.',
      ])
    })
  }

  it('lists models and creates embeddings', async () => {
    await using harness = await createHarness()
    expect((await client(harness).models.list()).data.map(({ id }) => id)).toEqual(['test-model'])
    const { data } = await client(harness).embeddings.create({
      model: 'test-embedding',
      input: 'Hello',
      encoding_format: 'float',
    })
    expect(data[0]?.embedding).toEqual([0.25, -0.5, 1])
    expect(harness.model.requests[1]?.body).toEqual({
      model: 'test-embedding',
      input: 'Hello',
      encoding_format: 'float',
    })
  })
})
