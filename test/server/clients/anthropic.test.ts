import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, collectAll, user } from '../start.ts'
import { catchError, createHarness, describeFailedTurn, failedTurn, type Harness } from './harness.ts'
import { disconnectDuring, failWith, neverRespond, replyWith, replyWithCalls, stallDuring } from './modelServer.ts'

type Turn = Anthropic.MessageParam

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const key = 'demo:ann'
const client = ({ url }: Harness): Anthropic =>
  new Anthropic({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-ant-client', maxRetries: 0 })
const createBody = (...messages: Turn[]) => ({ model: 'test-model', max_tokens: 500, messages })
const send = (harness: Harness, ...messages: Turn[]) => client(harness).messages.create(createBody(...messages))
const readText = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('')

/** Replies of the model in the form in which it sent them. */
const asReplied = (message: ReturnType<typeof user | typeof assistant>) =>
  message.role === 'assistant' ? { ...message, content: [{ type: 'text', text: message.content }] } : message

const rome = { id: 'toolu_1', name: 'weather', input: { city: 'Rome' } }
const oslo = { id: 'toolu_2', name: 'weather', input: { city: 'Oslo' } }
const result = (id: string, content: string) => ({ type: 'tool_result' as const, tool_use_id: id, content })

describe('Anthropic SDK', () => {
  verifies(['S-03', 'T-02'], 'sends a request, and every field arrives unchanged', async () => {
    await using harness = await createHarness(replyWith('Grüße! 👋'), 'anthropic')
    const system = [{ type: 'text' as const, text: 'Be brief.', cache_control: { type: 'ephemeral' as const } }]
    const body = {
      ...createBody(user('Hello')),
      system,
      temperature: 0.5,
      metadata: { user_id: 'u' },
      x_unknown: { deep: [1, null] },
    }
    const message = await client(harness).messages.create(body, {
      headers: { 'anthropic-beta': 'some-beta-1,other-beta-2' },
    })
    expect(readText(message)).toBe('Grüße! 👋')
    expect(message).toMatchObject({
      stop_reason: 'end_turn',
      usage: { input_tokens: 8, cache_read_input_tokens: 13, output_tokens: 8 },
    })
    const [request] = harness.model.requests
    expect(request?.body).toEqual(body)
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer sk-ant-client',
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'some-beta-1,other-beta-2',
    })
    expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
  })

  verifies(['S-03', 'T-02'], 'streams text and usage', async () => {
    await using harness = await createHarness(replyWith('Grüße aus Zürich 👋, es regnet.'), 'anthropic')
    const stream = client(harness).messages.stream(createBody(user('Hello')))
    const texts: string[] = []
    stream.on('text', (text) => texts.push(text))
    const message = await stream.finalMessage()
    expect(texts.join('')).toBe('Grüße aus Zürich 👋, es regnet.')
    expect(texts.length).toBeGreaterThan(3)
    expect(message).toMatchObject({
      stop_reason: 'end_turn',
      usage: { input_tokens: 8, cache_read_input_tokens: 13, output_tokens: 8 },
    })
    expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
  })

  for (const stream of [false, true]) {
    verifies(['S-03', 'T-15'], `runs a tool loop with parallel calls${stream ? ', streamed' : ''}`, async () => {
      await using harness = await createHarness(
        [replyWithCalls(rome, oslo), replyWith('Rome is warmer.'), replyWith('By 17 degrees.')],
        'anthropic',
      )
      const degrees: Record<string, string> = { Rome: '21 °C', Oslo: '4 °C' }
      const weather = betaZodTool({
        name: 'weather',
        description: 'The weather in a city',
        inputSchema: z.object({ city: z.string() }),
        run: ({ city }) => degrees[city] ?? 'unknown',
      })
      const messages = [user('Where is it warmer?')]
      const final = await client(harness)
        .beta.messages.toolRunner({ ...createBody(), messages, tools: [weather], stream })
        .runUntilDone()
      expect(final.content).toMatchObject([{ type: 'text', text: 'Rome is warmer.' }])
      expect(readText(await send(harness, user('By how much?')))).toBe('By 17 degrees.')
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
  }

  verifies(['S-03', 'T-15'], 'continues a turn in memory with tool results alone', async () => {
    await using harness = await createHarness([replyWithCalls(rome), replyWith('It is warm.')], 'anthropic')
    await send(harness, user('How is Rome?'))
    await harness.restart()
    expect(readText(await send(harness, { role: 'user', content: [result('toolu_1', '21 °C')] }))).toBe('It is warm.')
    expect(harness.model.requests[1]?.body.messages).toEqual([
      { role: 'user', content: 'How is Rome?' },
      { role: 'assistant', content: [{ type: 'tool_use', ...rome }] },
      { role: 'user', content: [result('toolu_1', '21 °C')] },
    ])
  })

  verifies('S-03', 'sends thinking back unchanged in a tool loop, and memory does not store it', async () => {
    const thinkingCall = replyWith({ thinking: 'Ask the tool.', text: 'Let me look.', calls: [rome] })
    for (const stream of [false, true]) {
      await using harness = await createHarness(
        [thinkingCall, replyWith({ thinking: 'Warm.', text: 'It is warm.' }), replyWith('Yes.')],
        'anthropic',
      )
      const { messages } = client(harness)
      const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
      const body = { ...createBody(), max_tokens: 4_000, thinking }
      const sendTurns = (...turns: Turn[]): Promise<Anthropic.Message> =>
        stream
          ? messages.stream({ ...body, messages: turns }).finalMessage()
          : messages.create({ ...body, messages: turns })
      const conversation: Turn[] = [user('How is Rome?')]
      const first = await sendTurns(...conversation)
      expect(first.content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use'])
      conversation.push(
        { role: 'assistant', content: first.content },
        { role: 'user', content: [result('toolu_1', '21 °C')] },
      )
      const second = await sendTurns(...conversation)
      expect(harness.model.requests[1]?.body.messages[1]).toEqual({
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Ask the tool.', signature: 'c2lnbmVk' },
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', ...rome },
        ],
      })
      conversation.push({ role: 'assistant', content: second.content }, user('Sure?'))
      expect(readText(await sendTurns(...conversation))).toBe('Yes.')
      expect(await harness.readTranscript(key)).toEqual([
        'user: How is Rome?',
        'assistant: Let me look. weather({"city":"Rome"})',
        'tool: 21 °C',
        'assistant: It is warm.',
        'user: Sure?',
        'assistant: Yes.',
      ])
    }
  })

  verifies('S-03', 'parses structured output', async () => {
    await using harness = await createHarness(replyWith('{"name":"Miso","lives":9}'), 'anthropic')
    const format = zodOutputFormat(z.object({ name: z.string(), lives: z.number() }))
    const { parsed_output: parsed } = await client(harness).messages.parse({
      ...createBody(user('My cat?')),
      output_config: { format },
    })
    expect(parsed).toEqual({ name: 'Miso', lives: 9 })
    expect(harness.model.requests[0]?.body.output_config.format).toMatchObject({ type: 'json_schema' })
  })

  for (const [status, errorClass, type] of [
    [400, Anthropic.BadRequestError, 'invalid_request_error'],
    [401, Anthropic.AuthenticationError, 'authentication_error'],
    [404, Anthropic.NotFoundError, 'not_found_error'],
    [429, Anthropic.RateLimitError, 'rate_limit_error'],
    [500, Anthropic.InternalServerError, 'api_error'],
    [529, Anthropic.InternalServerError, 'overloaded_error'],
  ] as const) {
    verifies('S-03', `receives ${status} as its own error class, and ${describeFailedTurn(status)}`, async () => {
      await using harness = await createHarness(failWith(status, { 'retry-after': '30' }), 'anthropic')
      for (const stream of [false, true]) {
        const error = await catchError(client(harness).messages.create({ ...createBody(user('Hello')), stream }))
        expect(error).toBeInstanceOf(errorClass)
        expect(error).toMatchObject({
          status,
          type,
          error: { type: 'error', error: { type, message: `Scripted ${status}.` } },
        })
        expect((error as InstanceType<typeof errorClass>).headers.get('retry-after')).toBe('30')
      }
      expect(await harness.readTranscript(key)).toEqual(failedTurn(status, 'Hello'))
    })
  }

  verifies(['S-03', 'T-09'], 'receives errors of Threadkeep in the Anthropic format', async () => {
    await using harness = await createHarness(replyWith('Hello.'), 'anthropic', [], { profile: 'support' })
    const document = {
      type: 'document' as const,
      source: { type: 'text' as const, media_type: 'text/plain' as const, data: 'Hi' },
    }
    const error = await catchError(send(harness, { role: 'user', content: [document] }))
    expect(error).toBeInstanceOf(Anthropic.BadRequestError)
    const message = 'File uploads not allowed for ephemeral sessions'
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      error: { type: 'error', error: { type: 'invalid_request_error', message } },
    })
    const invalidKey = new Anthropic({ baseURL: `${harness.url}/v1/a b`, apiKey: 'x', maxRetries: 0 })
    expect(await catchError(invalidKey.messages.create(createBody(user('Hello'))))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
    })
    expect(harness.model.requests).toEqual([])
  })

  verifies('S-03', 'aborts a request: the upstream request is aborted and a partial reply is not stored', async () => {
    await using harness = await createHarness(
      [stallDuring('This is going to be long'), neverRespond, disconnectDuring('Long, as I said'), replyWith('Fine.')],
      'anthropic',
    )
    const stream = client(harness).messages.stream(createBody(user('Tell me all')))
    stream.on('text', () => stream.abort())
    expect(await catchError(stream.done())).toBeInstanceOf(Anthropic.APIUserAbortError)
    expect(await harness.model.requests[0]?.outcome).toBe('aborted')
    const controller = new AbortController()
    const pending = catchError(
      client(harness).messages.create(createBody(user('Or a little')), { signal: controller.signal }),
    )
    const { outcome } = await harness.model.waitForRequest(1)
    controller.abort()
    expect(await pending).toBeInstanceOf(Anthropic.APIUserAbortError)
    expect(await outcome).toBe('aborted')
    const broken = await client(harness).messages.create({ ...createBody(user('Or anything')), stream: true })
    expect(await catchError(collectAll(broken))).toBeInstanceOf(Anthropic.APIError)
    expect(readText(await send(harness, user('Never mind')))).toBe('Fine.')
    expect(await harness.readTranscript(key)).toEqual([
      'user: Tell me all',
      'user: Or a little',
      'user: Or anything',
      'user: Never mind',
      'assistant: Fine.',
    ])
  })

  verifies(
    ['S-03', 'T-15'],
    'is remembered across turns and restarts without duplicates, with and without resent history',
    async () => {
      await using harness = await createHarness(
        [replyWith('A fine name.'), replyWith('Miso.'), replyWith('Still Miso.'), replyWith('Rex.')],
        'anthropic',
      )
      await send(harness, user('My cat is called Miso.'))
      expect(readText(await send(harness, user('What is my cat called?')))).toBe('Miso.')
      const conversation = [
        user('My cat is called Miso.'),
        assistant('A fine name.'),
        user('What is my cat called?'),
        assistant('Miso.'),
      ]
      expect(harness.model.requests[1]?.body.messages).toEqual(conversation.slice(0, 3).map(asReplied))
      await harness.restart()
      expect(readText(await send(harness, user('And now?')))).toBe('Still Miso.')
      expect(harness.model.requests[2]?.body.messages).toEqual([...conversation.map(asReplied), user('And now?')])
      await harness.restart()
      const history = [...conversation, user('And now?'), assistant('Still Miso.'), user('My dog is called Rex.')]
      expect(readText(await send(harness, ...history))).toBe('Rex.')
      expect(harness.model.requests[3]?.body.messages).toEqual(history)
      expect(await harness.readTranscript(key)).toEqual([
        ...history.map(({ role, content }) => `${role}: ${content}`),
        'assistant: Rex.',
      ])
    },
  )

  verifies('T-09', 'sends images to the model and stores placeholders', async () => {
    await using harness = await createHarness(replyWith('A cat.'), 'anthropic')
    const source = {
      type: 'base64' as const,
      media_type: 'image/png' as const,
      data: base64('not really a picture'),
    }
    const imageMessage = {
      role: 'user' as const,
      content: [
        { type: 'image' as const, source },
        { type: 'text' as const, text: 'What is this?' },
      ],
    }
    expect(readText(await send(harness, imageMessage))).toBe('A cat.')
    expect(harness.model.requests[0]?.body.messages).toEqual([imageMessage])
    expect(await harness.readTranscript(key)).toEqual([
      'user: [image, 20 bytes, sha256 fe1a4ab1fb634703]\nWhat is this?',
      'assistant: A cat.',
    ])
  })

  verifies('T-09', 'sends documents to the model, now and with the next turn, and stores placeholders', async () => {
    await using harness = await createHarness([replyWith('A letter.'), replyWith('To Ann.')], 'anthropic')
    const source = { type: 'base64' as const, media_type: 'application/pdf' as const, data: base64('%PDF-1.7') }
    const note = { type: 'text' as const, media_type: 'text/plain' as const, data: 'Dear Ann' }
    const question = {
      role: 'user' as const,
      content: [
        { type: 'document' as const, title: 'letter.pdf', source },
        { type: 'document' as const, source: note },
        { type: 'text' as const, text: 'What is this?' },
      ],
    }
    expect(readText(await send(harness, question))).toBe('A letter.')
    const conversation = [question, assistant('A letter.'), user('To whom?')]
    expect(readText(await send(harness, ...conversation))).toBe('To Ann.')
    expect(harness.model.requests.map(({ body }) => body.messages)).toEqual([[question], conversation])
    expect(await harness.readTranscript(key)).toEqual([
      'user: [file letter.pdf, application/pdf, 8 bytes, sha256 86edbaa24831badf]\n[file file, text/plain, 8 bytes, sha256 72639eff529c1904]\nWhat is this?',
      'assistant: A letter.',
      'user: To whom?',
      'assistant: To Ann.',
    ])
  })

  verifies('T-09', 'sends an image again, and the model receives it', async () => {
    await using harness = await createHarness([replyWith('A cat.'), replyWith('Grey.')], 'anthropic')
    const source = {
      type: 'base64' as const,
      media_type: 'image/png' as const,
      data: base64('not really a picture'),
    }
    const imageMessage = { role: 'user' as const, content: [{ type: 'image' as const, source }] }
    await send(harness, imageMessage)
    await send(harness, imageMessage, assistant('A cat.'), user('What colour is it?'))
    expect(harness.model.requests[1]?.body.messages[0]).toEqual(imageMessage)
  })

  verifies(['S-03', 'T-15'], 'starts a reply itself, and memory stores the complete reply', async () => {
    await using harness = await createHarness([replyWith(' 42.'), replyWith('Because.')], 'anthropic')
    await send(harness, user('What is it?'), assistant('The answer is'))
    const conversation = [user('What is it?'), assistant('The answer is 42.'), user('Why?')]
    expect(readText(await send(harness, ...conversation))).toBe('Because.')
    expect(harness.model.requests[1]?.body.messages).toEqual(conversation)
    expect(await harness.readTranscript(key)).toEqual([
      'user: What is it?',
      'assistant: The answer is 42.',
      'user: Why?',
      'assistant: Because.',
    ])
  })

  it('counts tokens and lists models', async () => {
    await using harness = await createHarness(replyWith('Hello.'), 'anthropic')
    const { max_tokens: _maxTokens, ...countable } = createBody(user('Hello'))
    expect(await client(harness).messages.countTokens(countable)).toEqual({ input_tokens: 2_095 })
    expect(harness.model.requests[0]).toMatchObject({ path: '/v1/messages/count_tokens', body: countable })
    expect((await client(harness).models.list()).data.map(({ id }) => id)).toEqual(['test-model'])
    expect(await harness.readTranscript(key)).toEqual([])
  })

  it('with an OpenAI upstream sends the Anthropic headers', async () => {
    await using harness = await createHarness(replyWith('Hello.'), 'openai')
    await client(harness).messages.create(createBody(user('Hello')), { headers: { 'anthropic-beta': 'some-beta-1' } })
    expect(harness.model.requests[0]?.path).toBe('/v1/messages')
    expect(harness.model.requests[0]?.headers).toMatchObject({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'some-beta-1',
    })
  })
})
