import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { all, assistant, user } from '../start.ts'
import { calls, cuts, hangs, refuses, says, stalls, thinks } from './model.ts'
import { failure, openStage, type Stage } from './stage.ts'

type Turn = Anthropic.MessageParam

const key = 'demo:ann'
const client = ({ url }: Stage): Anthropic =>
  new Anthropic({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-ant-client', maxRetries: 0 })
const asked = (...messages: Turn[]) => ({ model: 'test-model', max_tokens: 500, messages })
const ask = (stage: Stage, ...messages: Turn[]) => client(stage).messages.create(asked(...messages))
const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('')

const rome = { id: 'toolu_1', name: 'weather', input: { city: 'Rome' } }
const oslo = { id: 'toolu_2', name: 'weather', input: { city: 'Oslo' } }
const result = (id: string, content: string) => ({ type: 'tool_result' as const, tool_use_id: id, content })

describe("Anthropic's client", () => {
  verifies(['S-03', 'T-02'], 'asks, and all it sends arrives as it was sent', async () => {
    await using stage = await openStage(says('Grüße! 👋'), 'anthropic')
    const system = [{ type: 'text' as const, text: 'Be brief.', cache_control: { type: 'ephemeral' as const } }]
    const body = {
      ...asked(user('Hello')),
      system,
      temperature: 0.5,
      metadata: { user_id: 'u' },
      x_unknown: { deep: [1, null] },
    }
    const message = await client(stage).messages.create(body, {
      headers: { 'anthropic-beta': 'some-beta-1,other-beta-2' },
    })
    expect(textOf(message)).toBe('Grüße! 👋')
    expect(message).toMatchObject({
      stop_reason: 'end_turn',
      usage: { input_tokens: 8, cache_read_input_tokens: 13, output_tokens: 8 },
    })
    const [request] = stage.model.requests
    expect(request?.body).toEqual(body)
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer sk-ant-client',
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'some-beta-1,other-beta-2',
    })
    expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
  })

  verifies(['S-03', 'T-02'], 'streams with usage, however the bytes come', async () => {
    await using stage = await openStage(says('Grüße aus Zürich 👋, es regnet.'), 'anthropic')
    const stream = client(stage).messages.stream(asked(user('Hello')))
    const texts: string[] = []
    stream.on('text', (text) => texts.push(text))
    const message = await stream.finalMessage()
    expect(texts.join('')).toBe('Grüße aus Zürich 👋, es regnet.')
    expect(texts.length).toBeGreaterThan(3)
    expect(message).toMatchObject({
      stop_reason: 'end_turn',
      usage: { input_tokens: 8, cache_read_input_tokens: 13, output_tokens: 8 },
    })
    expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
  })

  for (const stream of [false, true]) {
    verifies(
      ['S-03', 'T-15'],
      `runs its own tool loop with calls made at once${stream ? ', streamed' : ''}`,
      async () => {
        await using stage = await openStage(
          [calls(rome, oslo), says('Rome is warmer.'), says('By 17 degrees.')],
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
        const final = await client(stage)
          .beta.messages.toolRunner({ ...asked(), messages, tools: [weather], stream })
          .runUntilDone()
        expect(final.content).toMatchObject([{ type: 'text', text: 'Rome is warmer.' }])
        expect(textOf(await ask(stage, user('By how much?')))).toBe('By 17 degrees.')
        expect(await stage.said(key)).toEqual([
          'user: Where is it warmer?',
          'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
          'tool: 21 °C',
          'tool: 4 °C',
          'assistant: Rome is warmer.',
          'user: By how much?',
          'assistant: By 17 degrees.',
        ])
      },
    )
  }

  verifies(['S-03', 'T-15'], 'gives results alone to the turn that memory has', async () => {
    await using stage = await openStage([calls(rome), says('It is warm.')], 'anthropic')
    await ask(stage, user('How is Rome?'))
    await stage.restart()
    expect(textOf(await ask(stage, { role: 'user', content: [result('toolu_1', '21 °C')] }))).toBe('It is warm.')
    expect(stage.model.requests[1]?.body.messages).toEqual([
      { role: 'user', content: 'How is Rome?' },
      { role: 'assistant', content: [{ type: 'tool_use', ...rome }] },
      { role: 'user', content: [result('toolu_1', '21 °C')] },
    ])
  })

  verifies(
    'S-03',
    'keeps its thinking in a tool loop: what the model thought goes back as it came, and is no part of memory',
    async () => {
      const thought = { does: 'say', said: { thinking: 'Ask the tool.', text: 'Let me look.', calls: [rome] } } as const
      for (const stream of [false, true]) {
        await using stage = await openStage([thought, thinks('Warm.', 'It is warm.'), says('Yes.')], 'anthropic')
        const { messages } = client(stage)
        const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
        const body = { ...asked(), max_tokens: 4_000, thinking }
        const send = (...turns: Turn[]): Promise<Anthropic.Message> =>
          stream
            ? messages.stream({ ...body, messages: turns }).finalMessage()
            : messages.create({ ...body, messages: turns })
        const talk: Turn[] = [user('How is Rome?')]
        const first = await send(...talk)
        expect(first.content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use'])
        talk.push(
          { role: 'assistant', content: first.content },
          { role: 'user', content: [result('toolu_1', '21 °C')] },
        )
        const second = await send(...talk)
        expect(stage.model.requests[1]?.body.messages[1]).toEqual({
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Ask the tool.', signature: 'c2lnbmVk' },
            { type: 'text', text: 'Let me look.' },
            { type: 'tool_use', ...rome },
          ],
        })
        talk.push({ role: 'assistant', content: second.content }, user('Sure?'))
        expect(textOf(await send(...talk))).toBe('Yes.')
        expect(await stage.said(key)).toEqual([
          'user: How is Rome?',
          'assistant: Let me look. weather({"city":"Rome"})',
          'tool: 21 °C',
          'assistant: It is warm.',
          'user: Sure?',
          'assistant: Yes.',
        ])
      }
    },
  )

  verifies('S-03', 'parses structured output', async () => {
    await using stage = await openStage(says('{"name":"Miso","lives":9}'), 'anthropic')
    const format = zodOutputFormat(z.object({ name: z.string(), lives: z.number() }))
    const { parsed_output: parsed } = await client(stage).messages.parse({
      ...asked(user('My cat?')),
      output_config: { format },
    })
    expect(parsed).toEqual({ name: 'Miso', lives: 9 })
    expect(stage.model.requests[0]?.body.output_config.format).toMatchObject({ type: 'json_schema' })
  })

  for (const [status, kind, type] of [
    [400, Anthropic.BadRequestError, 'invalid_request_error'],
    [401, Anthropic.AuthenticationError, 'authentication_error'],
    [404, Anthropic.NotFoundError, 'not_found_error'],
    [429, Anthropic.RateLimitError, 'rate_limit_error'],
    [500, Anthropic.InternalServerError, 'api_error'],
    [529, Anthropic.InternalServerError, 'overloaded_error'],
  ] as const) {
    verifies('S-03', `tells ${status} by its own class, and keeps the question`, async () => {
      await using stage = await openStage(refuses(status, { 'retry-after': '30' }), 'anthropic')
      for (const stream of [false, true]) {
        const error = await failure(client(stage).messages.create({ ...asked(user('Hello')), stream }))
        expect(error).toBeInstanceOf(kind)
        expect(error).toMatchObject({
          status,
          type,
          error: { type: 'error', error: { type, message: `Scripted ${status}.` } },
        })
        expect((error as InstanceType<typeof kind>).headers.get('retry-after')).toBe('30')
      }
      expect(await stage.said(key)).toEqual(['user: Hello'])
    })
  }

  verifies('S-03', "is told of what Threadkeep itself refuses in Anthropic's shape", async () => {
    await using stage = await openStage(says('Hello.'), 'anthropic')
    const document = {
      type: 'document' as const,
      source: { type: 'text' as const, media_type: 'text/plain' as const, data: 'Hi' },
    }
    const error = await failure(ask(stage, { role: 'user', content: [document] }))
    expect(error).toBeInstanceOf(Anthropic.BadRequestError)
    const message = 'File uploads not allowed for ephemeral sessions'
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      error: { type: 'error', error: { type: 'invalid_request_error', message } },
    })
    const lost = new Anthropic({ baseURL: `${stage.url}/v1/a b`, apiKey: 'x', maxRetries: 0 })
    expect(await failure(lost.messages.create(asked(user('Hello'))))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
    })
    expect(stage.model.requests).toEqual([])
  })

  verifies('S-03', 'stops: the model server is left at once, and the half reply is not kept', async () => {
    await using stage = await openStage(
      [stalls('This is going to be long'), hangs, cuts('Long, as I said'), says('Fine.')],
      'anthropic',
    )
    const stream = client(stage).messages.stream(asked(user('Tell me all')))
    stream.on('text', () => stream.abort())
    expect(await failure(stream.done())).toBeInstanceOf(Anthropic.APIUserAbortError)
    expect(await stage.model.requests[0]?.over).toBe('hung up')
    const stop = new AbortController()
    const waiting = failure(client(stage).messages.create(asked(user('Or a little')), { signal: stop.signal }))
    const { over } = await stage.model.arrived(1)
    stop.abort()
    expect(await waiting).toBeInstanceOf(Anthropic.APIUserAbortError)
    expect(await over).toBe('hung up')
    const cut = await client(stage).messages.create({ ...asked(user('Or anything')), stream: true })
    expect(await failure(all(cut))).toBeInstanceOf(Anthropic.APIError)
    expect(textOf(await ask(stage, user('Never mind')))).toBe('Fine.')
    expect(await stage.said(key)).toEqual([
      'user: Tell me all',
      'user: Or a little',
      'user: Or anything',
      'user: Never mind',
      'assistant: Fine.',
    ])
  })

  verifies(
    ['S-03', 'T-15'],
    'is remembered from turn to turn and across a restart, once, whether it resends its history or not',
    async () => {
      await using stage = await openStage(
        [says('A fine name.'), says('Miso.'), says('Still Miso.'), says('Rex.')],
        'anthropic',
      )
      await ask(stage, user('My cat is called Miso.'))
      expect(textOf(await ask(stage, user('What is my cat called?')))).toBe('Miso.')
      const told = [
        user('My cat is called Miso.'),
        assistant('A fine name.'),
        user('What is my cat called?'),
        assistant('Miso.'),
      ]
      expect(stage.model.requests[1]?.body.messages).toEqual(told.slice(0, 3))
      await stage.restart()
      expect(textOf(await ask(stage, user('And now?')))).toBe('Still Miso.')
      expect(stage.model.requests[2]?.body.messages).toEqual([...told, user('And now?')])
      await stage.restart()
      const more = [...told, user('And now?'), assistant('Still Miso.'), user('My dog is called Rex.')]
      expect(textOf(await ask(stage, ...more))).toBe('Rex.')
      expect(stage.model.requests[3]?.body.messages).toEqual(more)
      expect(await stage.said(key)).toEqual([
        ...more.map(({ role, content }) => `${role}: ${content}`),
        'assistant: Rex.',
      ])
    },
  )

  verifies('T-09', 'shows pictures to the model; memory has a mark for each', async () => {
    await using stage = await openStage(says('A cat.'), 'anthropic')
    const source = {
      type: 'base64' as const,
      media_type: 'image/png' as const,
      data: Buffer.from('not really a picture').toString('base64'),
    }
    const shown = {
      role: 'user' as const,
      content: [
        { type: 'image' as const, source },
        { type: 'text' as const, text: 'What is this?' },
      ],
    }
    expect(textOf(await ask(stage, shown))).toBe('A cat.')
    expect(stage.model.requests[0]?.body.messages).toEqual([shown])
    expect(await stage.said(key)).toEqual([
      'user: [image, 20 bytes, sha256 fe1a4ab1fb634703]\nWhat is this?',
      'assistant: A cat.',
    ])
  })

  verifies('T-09', 'asks on about a picture that it sends again, and the model sees it', async () => {
    await using stage = await openStage([says('A cat.'), says('Grey.')], 'anthropic')
    const source = {
      type: 'base64' as const,
      media_type: 'image/png' as const,
      data: Buffer.from('not really a picture').toString('base64'),
    }
    const shown = { role: 'user' as const, content: [{ type: 'image' as const, source }] }
    await ask(stage, shown)
    await ask(stage, shown, assistant('A cat.'), user('What colour is it?'))
    expect(stage.model.requests[1]?.body.messages[0]).toEqual(shown)
  })

  verifies(['S-03', 'T-15'], 'begins a reply itself, and memory has it whole', async () => {
    await using stage = await openStage([says(' 42.'), says('Because.')], 'anthropic')
    await ask(stage, user('What is it?'), assistant('The answer is'))
    const told = [user('What is it?'), assistant('The answer is 42.'), user('Why?')]
    expect(textOf(await ask(stage, ...told))).toBe('Because.')
    expect(stage.model.requests[1]?.body.messages).toEqual(told)
    expect(await stage.said(key)).toEqual([
      'user: What is it?',
      'assistant: The answer is 42.',
      'user: Why?',
      'assistant: Because.',
    ])
  })

  it('counts tokens and lists models', async () => {
    await using stage = await openStage(says('Hello.'), 'anthropic')
    const { max_tokens: _most, ...countable } = asked(user('Hello'))
    expect(await client(stage).messages.countTokens(countable)).toEqual({ input_tokens: 2_095 })
    expect(stage.model.requests[0]).toMatchObject({ path: '/v1/messages/count_tokens', body: countable })
    expect((await client(stage).models.list()).data.map(({ id }) => id)).toEqual(['test-model'])
    expect(await stage.said(key)).toEqual([])
  })

  it('asks a server that speaks both protocols, and what its protocol needs arrives there too', async () => {
    await using stage = await openStage(says('Hello.'), 'openai')
    await client(stage).messages.create(asked(user('Hello')), { headers: { 'anthropic-beta': 'some-beta-1' } })
    expect(stage.model.requests[0]?.path).toBe('/v1/messages')
    expect(stage.model.requests[0]?.headers).toMatchObject({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'some-beta-1',
    })
  })
})
