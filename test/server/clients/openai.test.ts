import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { all, assistant, startServer, user } from '../start.ts'
import { calls, cuts, hangs, refuses, says, stalls } from './model.ts'
import { failure, openStage, type Stage } from './stage.ts'

const key = 'demo:ann'
const client = ({ url }: Stage, at = key): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1/${at}`, apiKey: 'sk-client', maxRetries: 0 })
const ask = async (
  stage: Stage,
  ...messages: OpenAI.ChatCompletionMessageParam[]
): Promise<string | null | undefined> =>
  (await client(stage).chat.completions.create({ model: 'test-model', messages })).choices[0]?.message.content

const weather = z.object({ city: z.string() })

describe('the openai client, with chat completions', () => {
  verifies(['S-03', 'T-02'], 'chats, and all it sends arrives as it was sent', async () => {
    await using stage = await openStage(says('Grüße! 👋'))
    const asked = {
      model: 'test-model',
      messages: [user('Hello')],
      temperature: 0.5,
      seed: 7,
      logit_bias: { '50256': -100 },
      x_unknown: { deep: [1, null] },
    }
    const { data, response } = await client(stage).chat.completions.create(asked).withResponse()
    expect(data.choices[0]?.message.content).toBe('Grüße! 👋')
    expect(data.usage).toMatchObject({ prompt_tokens: 21, completion_tokens: 8, total_tokens: 29 })
    expect(response.headers.get('x-threadkeep-memory')).toBe('on')
    expect(stage.model.requests[0]?.body).toEqual(asked)
    expect(stage.model.requests[0]?.headers.authorization).toBe('Bearer sk-client')
    expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
  })

  verifies(['S-03', 'T-02'], 'streams with usage, however the bytes come', async () => {
    await using stage = await openStage(says('Grüße aus Zürich 👋, es regnet.'))
    const stream = await client(stage).chat.completions.create({
      model: 'test-model',
      messages: [user('Hello')],
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await all(stream)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(
      'Grüße aus Zürich 👋, es regnet.',
    )
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 21, completion_tokens: 8 } })
    const runner = client(stage).chat.completions.stream({ model: 'test-model', messages: [user('Once more')] })
    expect(await runner.finalContent()).toBe('Grüße aus Zürich 👋, es regnet.')
    expect(await stage.said(key)).toEqual([
      'user: Hello',
      'assistant: Grüße aus Zürich 👋, es regnet.',
      'user: Once more',
      'assistant: Grüße aus Zürich 👋, es regnet.',
    ])
  })

  for (const stream of [false, true]) {
    verifies(
      ['S-03', 'T-02', 'T-15'],
      `runs its own tool loop with calls made at once${stream ? ', streamed' : ''}`,
      async () => {
        const rome = { id: 'call_1', name: 'weather', input: { city: 'Rome' } }
        const oslo = { id: 'call_2', name: 'weather', input: { city: 'Oslo' } }
        await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')])
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
        const asked = {
          model: 'test-model',
          messages: [user('Where is it warmer, in Rome or in Oslo?')],
          tools: [tool],
        }
        const { completions } = client(stage).chat
        const runner = stream ? completions.runTools({ ...asked, stream: true }) : completions.runTools(asked)
        expect(await runner.finalContent()).toBe('Rome is warmer.')
        expect(await ask(stage, user('By how much?'))).toBe('By 17 degrees.')
        const line = [
          'user: Where is it warmer, in Rome or in Oslo?',
          'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
          'tool: 21 °C',
          'tool: 4 °C',
          'assistant: Rome is warmer.',
          'user: By how much?',
          'assistant: By 17 degrees.',
        ]
        expect(await stage.said(key)).toEqual(line)
        expect(stage.model.requests.map(({ body }) => body.messages.length)).toEqual([1, 4, 6])
      },
    )
  }

  verifies('S-03', 'parses structured output', async () => {
    await using stage = await openStage(says('{"name":"Miso","lives":9}'))
    const pet = z.object({ name: z.string(), lives: z.number() })
    const parsed = await client(stage).chat.completions.parse({
      model: 'test-model',
      messages: [user('My cat is called Miso. Tell me about it.')],
      response_format: zodResponseFormat(pet, 'pet'),
    })
    expect(parsed.choices[0]?.message.parsed).toEqual({ name: 'Miso', lives: 9 })
    expect(stage.model.requests[0]?.body.response_format).toMatchObject({
      type: 'json_schema',
      json_schema: { name: 'pet', strict: true },
    })
  })

  for (const [status, kind] of [
    [400, OpenAI.BadRequestError],
    [401, OpenAI.AuthenticationError],
    [404, OpenAI.NotFoundError],
    [429, OpenAI.RateLimitError],
    [500, OpenAI.InternalServerError],
  ] as const) {
    for (const stream of [false, true]) {
      verifies(
        'S-03',
        `tells ${status} by its own class, and keeps the question${stream ? ': of a stream' : ''}`,
        async () => {
          await using stage = await openStage([refuses(status, { 'retry-after': '30' }), says('Here I am.')])
          const error = await failure(
            client(stage).chat.completions.create({ model: 'test-model', messages: [user('Hello')], stream }),
          )
          expect(error).toBeInstanceOf(kind)
          expect(error).toMatchObject({ status, code: `scripted_${status}`, requestID: expect.stringMatching(/^req_/) })
          expect((error as InstanceType<typeof kind>).headers.get('retry-after')).toBe('30')
          expect(await stage.said(key)).toEqual(['user: Hello'])
          expect(await ask(stage, user('Hello'))).toBe('Here I am.')
          expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Here I am.'])
        },
      )
    }
  }

  verifies(['S-03', 'T-15'], 'may ask again by itself, and what it asks is kept once', async () => {
    const busy = refuses(503, { 'retry-after-ms': '1' })
    await using stage = await openStage([busy, busy, busy, says('At last.')])
    const patient = new OpenAI({ baseURL: `${stage.url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 2 })
    const { choices } = await patient.chat.completions.create({ model: 'test-model', messages: [user('Hello?')] })
    expect(choices[0]?.message.content).toBe('At last.')
    expect(stage.model.requests).toHaveLength(4)
    expect(await stage.said(key)).toEqual(['user: Hello?', 'assistant: At last.'])
  })

  verifies('S-03', 'stops a stream: the model server is left at once, and the half reply is not kept', async () => {
    await using stage = await openStage([stalls('This is going to be long'), says('Fine.')])
    const stream = await client(stage).chat.completions.create({
      model: 'test-model',
      messages: [user('Tell me all')],
      stream: true,
    })
    for await (const { choices } of stream) if (choices[0]?.delta.content) break
    expect(await stage.model.requests[0]?.over).toBe('hung up')
    expect(await ask(stage, user('Never mind'))).toBe('Fine.')
    expect(await stage.said(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  verifies('S-03', 'stops waiting for an answer that has not begun', async () => {
    for (const stream of [false, true]) {
      await using stage = await openStage([hangs, says('Fine.')])
      const stop = new AbortController()
      const asked = failure(
        client(stage).chat.completions.create(
          { model: 'test-model', messages: [user('Hello')], stream },
          { signal: stop.signal },
        ),
      )
      const { over } = await stage.model.arrived(0)
      stop.abort()
      expect(await asked).toBeInstanceOf(OpenAI.APIUserAbortError)
      expect(await over).toBe('hung up')
      expect(await ask(stage, user('Hello'))).toBe('Fine.')
      expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Fine.'])
    }
  })

  verifies('S-03', 'is told that a stream was cut, and the half reply is not kept', async () => {
    await using stage = await openStage([cuts('This is going to be long'), says('Fine.')])
    const stream = await client(stage).chat.completions.create({
      model: 'test-model',
      messages: [user('Tell me all')],
      stream: true,
    })
    expect(await failure(all(stream))).toBeInstanceOf(OpenAI.APIError)
    expect(await ask(stage, user('Never mind'))).toBe('Fine.')
    expect(await stage.said(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  verifies(
    ['S-03', 'T-02', 'T-15'],
    'is remembered from turn to turn and across a restart, once, whether it resends its history or not',
    async () => {
      await using stage = await openStage([says('A fine name.'), says('Miso.'), says('Still Miso.'), says('Rex.')])
      await ask(stage, user('My cat is called Miso.'))
      expect(await ask(stage, user('What is my cat called?'))).toBe('Miso.')
      const told = [
        user('My cat is called Miso.'),
        assistant('A fine name.'),
        user('What is my cat called?'),
        assistant('Miso.'),
      ]
      expect(stage.model.requests[1]?.body.messages).toEqual(told.slice(0, 3))
      await stage.restart()
      expect(await ask(stage, user('And now?'))).toBe('Still Miso.')
      expect(stage.model.requests[2]?.body.messages).toEqual([...told, user('And now?')])
      await stage.restart()
      const more = [...told, user('And now?'), assistant('Still Miso.'), user('My dog is called Rex.')]
      expect(await ask(stage, ...more)).toBe('Rex.')
      expect(stage.model.requests[3]?.body.messages).toEqual(more)
      expect(await stage.said(key)).toEqual([
        ...more.map(({ role, content }) => `${role}: ${content}`),
        'assistant: Rex.',
      ])
    },
  )

  verifies('T-01', 'has a memory for each key', async () => {
    await using stage = await openStage()
    for (const at of ['acme:+15551234567', 'acme:2', 'acme', 'other:2']) {
      await client(stage, at).chat.completions.create({ model: 'test-model', messages: [user(`I am ${at}.`)] })
      await client(stage, encodeURIComponent(at)).chat.completions.create({
        model: 'test-model',
        messages: [user('Who am I?')],
      })
      expect(stage.model.requests.at(-1)?.body.messages.map(({ content }: { content: string }) => content)).toEqual([
        `I am ${at}.`,
        expect.stringMatching(/^Answer \d\.$/),
        'Who am I?',
      ])
    }
  })

  verifies('T-09', 'shows pictures and plays sounds to the model; memory has a mark for each', async () => {
    await using stage = await openStage([says('A cat.'), says('Purring.'), says('Yes.')])
    const image = {
      type: 'image_url' as const,
      image_url: { url: `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}` },
    }
    const sound = {
      type: 'input_audio' as const,
      input_audio: { data: Buffer.from('purr').toString('base64'), format: 'wav' as const },
    }
    const shown = { role: 'user' as const, content: [{ type: 'text' as const, text: 'What is this?' }, image] }
    const played = { role: 'user' as const, content: [sound] }
    await ask(stage, shown)
    await ask(stage, shown, assistant('A cat.'), played)
    await ask(stage, user('Are you sure?'))
    expect(stage.model.requests[0]?.body.messages).toEqual([shown])
    expect(stage.model.requests[1]?.body.messages.at(-1)).toEqual(played)
    expect(await stage.said(key)).toEqual([
      'user: What is this?\n[image, 20 bytes, sha256 fe1a4ab1fb634703]',
      'assistant: A cat.',
      'user: [audio, 4 bytes, sha256 b66358a34a718d2a]',
      'assistant: Purring.',
      'user: Are you sure?',
      'assistant: Yes.',
    ])
  })

  verifies(
    'T-09',
    'asks on about a picture that it sends again, or that it sent just before, and the model sees it',
    async () => {
      await using stage = await openStage([says('A cat.'), says('Grey.')])
      const image = {
        type: 'image_url' as const,
        image_url: { url: `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}` },
      }
      const shown = { role: 'user' as const, content: [image] }
      await ask(stage, shown, user('What is this?'))
      await ask(stage, shown, user('What is this?'), assistant('A cat.'), user('What colour is it?'))
      expect(stage.model.requests.map(({ body }) => body.messages[0])).toEqual([shown, shown])
      expect((await stage.said(key)).length).toBe(5)
    },
  )

  verifies(
    ['S-03', 'T-15'],
    'calls tools that are no functions, and functions that are no tools, and memory has them',
    async () => {
      await using server = await startServer()
      const custom = {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'code', input: 'print(1)' } }],
      }
      const outdated = { role: 'assistant', content: null, function_call: { name: 'now', arguments: '{}' } }
      const told = [
        user('What is it?'),
        custom,
        { role: 'tool', tool_call_id: 'c1', content: '1' },
        outdated,
        { role: 'function', name: 'now', content: '12:00' },
      ]
      for (const messages of [told.slice(0, 3), told])
        expect((await server.post(key, { model: 'any', messages })).status).toBe(200)
      const kept = await server.memory.transcript(key)
      expect(kept.filter(({ role }) => role === 'tool').map(({ content, answers }) => [content, answers])).toEqual([
        ['1', 'c1'],
        ['12:00', 'now'],
      ])
    },
  )

  verifies('S-03', 'is judged by the model server alone where memory takes no part', async () => {
    await using stage = await openStage()
    const odd = { role: 'wizard', content: 'Abracadabra' } as unknown as OpenAI.ChatCompletionMessageParam
    const plain = new OpenAI({ baseURL: `${stage.url}/v1`, apiKey: 'sk-client', maxRetries: 0 })
    const error = await failure(plain.chat.completions.create({ model: 'test-model', messages: [user('Hello'), odd] }))
    expect(error).toMatchObject({ status: 400, message: '400 messages[1] has the unknown role wizard' })
    expect(stage.model.requests.length).toBe(1)
    expect(await failure(ask(stage, user('Hello'), odd))).toMatchObject({ status: 400, code: 'bad-message' })
    expect(stage.model.requests.length).toBe(1)
  })

  verifies('T-09', 'may not bring files into a session', async () => {
    await using stage = await openStage()
    const file = {
      type: 'file' as const,
      file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${Buffer.from('%PDF').toString('base64')}` },
    }
    const error = await failure(ask(stage, { role: 'user', content: [file] }))
    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
    expect(error).toMatchObject({ message: '400 File uploads not allowed for ephemeral sessions' })
    expect(stage.model.requests).toEqual([])
  })

  it('lists models and makes embeddings', async () => {
    await using stage = await openStage()
    expect((await client(stage).models.list()).data.map(({ id }) => id)).toEqual(['test-model'])
    const { data } = await client(stage).embeddings.create({
      model: 'test-embedding',
      input: 'Hello',
      encoding_format: 'float',
    })
    expect(data[0]?.embedding).toEqual([0.25, -0.5, 1])
    expect(stage.model.requests[1]?.body).toEqual({ model: 'test-embedding', input: 'Hello', encoding_format: 'float' })
  })
})
