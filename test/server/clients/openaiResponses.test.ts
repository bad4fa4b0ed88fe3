import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { describe, expect } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, collectAll, user } from '../start.ts'
import { catchError, createHarness, describeFailedTurn, failedTurn, type Harness } from './harness.ts'
import { disconnectDuring, failWith, neverRespond, replyWith, replyWithCalls, stallDuring } from './modelServer.ts'

type ResponseRequest = OpenAI.Responses.ResponseCreateParamsNonStreaming

const key = 'demo:ann'
const client = ({ url }: Harness): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
const send = (harness: Harness, request: ResponseRequest) =>
  client(harness).responses.create({ model: 'test-model', ...request })

const weather: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'weather',
  strict: true,
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
}
const rome = { id: 'call_1', name: 'weather', input: { city: 'Rome' } }
const oslo = { id: 'call_2', name: 'weather', input: { city: 'Oslo' } }
/** A reply as the model sent it. */
const reply = (number: number, text: string) => ({
  type: 'message' as const,
  id: `msg_${number}`,
  role: 'assistant' as const,
  status: 'completed' as const,
  content: [{ type: 'output_text' as const, text, annotations: [] }],
})
const result = (call: string, output: string) => ({ type: 'function_call_output' as const, call_id: call, output })

const file = {
  type: 'input_file' as const,
  filename: 'a.txt',
  file_data: `data:text/plain;base64,${Buffer.from('Hi').toString('base64')}`,
}

describe('OpenAI SDK, Responses', () => {
  verifies(['S-03', 'T-02'], 'sends a request, and every field arrives unchanged', async () => {
    await using harness = await createHarness(replyWith('Grüße! 👋'))
    const request = {
      model: 'test-model',
      input: 'Hello',
      instructions: 'Be brief.',
      temperature: 0.5,
      prompt_cache_key: 'k',
      x_unknown: { deep: [1, null] },
    }
    const response = await send(harness, request)
    expect(response).toMatchObject({ output_text: 'Grüße! 👋', usage: { input_tokens: 21, output_tokens: 8 } })
    expect(harness.model.requests[0]?.body).toEqual(request)
    expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
    for (const store of [true, false]) {
      const input = [user('Hello'), reply(1, 'Grüße! 👋'), user('Again')]
      await send(harness, { ...request, input, store } as ResponseRequest)
      expect(harness.model.requests.at(-1)?.body).toEqual({ ...request, input, store })
    }
  })

  verifies(['S-03', 'T-02'], 'streams text and usage', async () => {
    await using harness = await createHarness(replyWith('Grüße aus Zürich 👋, es regnet.'))
    const stream = client(harness).responses.stream({ model: 'test-model', input: 'Hello' })
    const events = await collectAll(stream)
    expect(events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')).toBe(
      'Grüße aus Zürich 👋, es regnet.',
    )
    expect(await stream.finalResponse()).toMatchObject({
      output_text: 'Grüße aus Zürich 👋, es regnet.',
      usage: { input_tokens: 21, output_tokens: 8 },
    })
    expect(await harness.readTranscript(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
  })

  for (const store of [undefined, true, false]) {
    verifies(['S-03', 'T-15'], `continues a response with tool outputs alone, store ${store}`, async () => {
      await using harness = await createHarness([replyWithCalls(rome, oslo), replyWith('Rome is warmer.')])
      const request = { tools: [weather], ...(store === undefined ? {} : { store }) }
      const first = await send(harness, { ...request, input: 'Where is it warmer?' })
      expect(first.output).toMatchObject([
        { type: 'function_call', call_id: 'call_1', arguments: '{"city":"Rome"}' },
        { type: 'function_call', call_id: 'call_2', arguments: '{"city":"Oslo"}' },
      ])
      const input = [result('call_1', '21 °C'), result('call_2', '4 °C')]
      const second = await send(harness, { ...request, input, previous_response_id: first.id })
      expect(second.output_text).toBe('Rome is warmer.')
      // A response that the upstream did not store is continued from memory.
      const expected =
        store === false
          ? { input: [user('Where is it warmer?'), ...first.output, ...input] }
          : { input, previous_response_id: first.id }
      expect(harness.model.requests[1]?.body).toEqual({ model: 'test-model', ...request, ...expected })
      expect(await harness.readTranscript(key)).toEqual([
        'user: Where is it warmer?',
        'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
        'tool: 21 °C',
        'tool: 4 °C',
        'assistant: Rome is warmer.',
      ])
    })
  }

  verifies(['S-03', 'T-15'], 'resends all items of a tool loop with reasoning, and each is stored once', async () => {
    await using harness = await createHarness([
      replyWith({ thinking: 'Ask the tool.', calls: [rome] }),
      replyWith('It is warm.'),
      replyWith('Very.'),
    ])
    const request: ResponseRequest = {
      model: 'test-model',
      input: [user('How is Rome?')],
      tools: [weather],
      include: ['reasoning.encrypted_content'],
    }
    const input: OpenAI.Responses.ResponseInput = [user('How is Rome?')]
    const first = await send(harness, request)
    input.push(...(first.output as OpenAI.Responses.ResponseInputItem[]), result('call_1', '21 °C'))
    const second = await send(harness, { ...request, input })
    expect(harness.model.requests[1]?.body.input).toEqual(input)
    input.push(...(second.output as OpenAI.Responses.ResponseInputItem[]), user('Is it?'))
    expect((await send(harness, { ...request, input })).output_text).toBe('Very.')
    expect(await harness.readTranscript(key)).toEqual([
      'user: How is Rome?',
      'assistant: weather({"city":"Rome"})',
      'tool: 21 °C',
      'assistant: It is warm.',
      'user: Is it?',
      'assistant: Very.',
    ])
  })

  verifies('S-03', 'parses structured output', async () => {
    await using harness = await createHarness(replyWith('{"name":"Miso","lives":9}'))
    const format = zodTextFormat(z.object({ name: z.string(), lives: z.number() }), 'pet')
    const { output_parsed: parsed } = await client(harness).responses.parse({
      model: 'test-model',
      input: 'My cat?',
      text: { format },
    })
    expect(parsed).toEqual({ name: 'Miso', lives: 9 })
    expect(harness.model.requests[0]?.body.text.format).toMatchObject({
      type: 'json_schema',
      name: 'pet',
      strict: true,
    })
  })

  for (const store of [true, false]) {
    verifies(
      ['S-03', 'T-15'],
      `continues from a response id, also after a restart and from an earlier response, store ${store}`,
      async () => {
        await using harness = await createHarness([
          replyWith('A fine name.'),
          replyWith('Miso.'),
          replyWith('Still Miso.'),
          replyWith('Its other name?'),
        ])
        const first = await send(harness, { input: 'My cat is called Miso.', store })
        const second = await send(harness, { input: 'What is my cat called?', store, previous_response_id: first.id })
        await harness.restart()
        const third = await send(harness, { input: 'And now?', store, previous_response_id: second.id })
        expect(third.output_text).toBe('Still Miso.')
        const conversation = [
          user('My cat is called Miso.'),
          reply(1, 'A fine name.'),
          user('What is my cat called?'),
          reply(2, 'Miso.'),
          user('And now?'),
        ]
        const sentBody = (index: number) => harness.model.requests[index]?.body
        const base = { model: 'test-model', store }
        expect(sentBody(2)).toEqual(
          store ? { ...base, input: 'And now?', previous_response_id: second.id } : { ...base, input: conversation },
        )
        await send(harness, { input: 'It has another name.', store, previous_response_id: first.id })
        expect(sentBody(3)).toEqual(
          store
            ? { ...base, input: 'It has another name.', previous_response_id: first.id }
            : { ...base, input: [...conversation.slice(0, 2), user('It has another name.')] },
        )
        expect(await harness.readTranscript(key)).toEqual([
          'user: My cat is called Miso.',
          'assistant: A fine name.',
          'user: It has another name.',
          'assistant: Its other name?',
        ])
      },
    )
  }

  verifies('S-03', 'with an unknown previous response receives 404', async () => {
    await using harness = await createHarness()
    const error = await catchError(send(harness, { input: 'Hello', previous_response_id: 'resp_unknown' }))
    expect(error).toBeInstanceOf(OpenAI.NotFoundError)
    expect(error).toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
    expect(await harness.readTranscript(key)).toEqual([])
  })

  verifies('S-03', 'with a previous response and without input receives 400', async () => {
    await using harness = await createHarness(replyWith('Hello.'))
    const first = await send(harness, { input: 'Hi' })
    for (const input of [{ input: [] }, {}]) {
      const error = await catchError(send(harness, { previous_response_id: first.id, ...input }))
      expect(error).toMatchObject({ status: 400, code: 'missing_input', param: 'input' })
    }
    expect(harness.model.requests.length).toBe(1)
  })

  verifies('S-03', 'with an invalid conversation item receives its path', async () => {
    await using harness = await createHarness()
    const { id } = await client(harness).conversations.create({})
    const invalid = { type: 'function_call' as const, call_id: '', name: 'now', arguments: '' }
    const error = await catchError(client(harness).conversations.items.create(id, { items: [user('Hi'), invalid] }))
    expect(error).toMatchObject({
      status: 400,
      message: '400 items[1].call_id must be text that is not empty; it names the call.',
      param: 'items[1].call_id',
    })
  })

  verifies(['S-03', 'T-15'], 'supports conversations with items, also after a restart', async () => {
    await using harness = await createHarness([replyWith('A fine name.'), replyWith('Miso.')])
    const { id } = await client(harness).conversations.create({
      metadata: { topic: 'cats' },
      items: [{ type: 'message', role: 'user', content: 'Hello.' }],
    })
    await send(harness, { input: 'My cat is called Miso.', conversation: id })
    await harness.restart()
    expect((await send(harness, { input: 'What is my cat called?', conversation: { id } })).output_text).toBe('Miso.')
    const expectedInput = [
      user('Hello.'),
      user('My cat is called Miso.'),
      reply(1, 'A fine name.'),
      user('What is my cat called?'),
    ]
    expect(harness.model.requests[1]?.body).toEqual({ model: 'test-model', input: expectedInput })
    expect(await client(harness).conversations.retrieve(id)).toMatchObject({
      id,
      object: 'conversation',
      metadata: { topic: 'cats' },
    })
    const items = await collectAll(client(harness).conversations.items.list(id, { order: 'asc', limit: 2 }))
    const texts = items.map((item) =>
      item.type === 'message'
        ? [item.role, ...item.content.map((part) => ('text' in part ? part.text : part.type))]
        : item.type,
    )
    expect(texts).toEqual([
      ['user', 'Hello.'],
      ['user', 'My cat is called Miso.'],
      ['assistant', 'A fine name.'],
      ['user', 'What is my cat called?'],
      ['assistant', 'Miso.'],
    ])
    expect(await harness.readTranscript(key)).toEqual([])
    expect(await client(harness).conversations.delete(id)).toMatchObject({ id, deleted: true })
    expect(await catchError(client(harness).conversations.retrieve(id))).toBeInstanceOf(OpenAI.NotFoundError)
  })

  verifies(['S-03', 'T-15'], 'is remembered across a restart without any id', async () => {
    await using harness = await createHarness([replyWith('A fine name.'), replyWith('Miso.')])
    await send(harness, { input: 'My cat is called Miso.' })
    await harness.restart()
    expect((await send(harness, { input: 'What is my cat called?' })).output_text).toBe('Miso.')
    expect(harness.model.requests[1]?.body.input).toEqual([
      user('My cat is called Miso.'),
      reply(1, 'A fine name.'),
      user('What is my cat called?'),
    ])
  })

  for (const [status, errorClass] of [
    [400, OpenAI.BadRequestError],
    [401, OpenAI.AuthenticationError],
    [404, OpenAI.NotFoundError],
    [429, OpenAI.RateLimitError],
    [500, OpenAI.InternalServerError],
  ] as const) {
    verifies('S-03', `receives ${status} as its own error class, and ${describeFailedTurn(status)}`, async () => {
      await using harness = await createHarness(failWith(status, { 'retry-after': '30' }))
      for (const stream of [false, true]) {
        const error = await catchError(
          client(harness).responses.create({ model: 'test-model', input: 'Hello', stream }),
        )
        expect(error).toBeInstanceOf(errorClass)
        expect(error).toMatchObject({ status, code: `scripted_${status}` })
      }
      expect(await harness.readTranscript(key)).toEqual(failedTurn(status, 'Hello'))
    })
  }

  verifies('S-03', 'aborts a stream: the upstream request is aborted and the partial reply is not stored', async () => {
    await using harness = await createHarness([
      stallDuring('This is going to be long'),
      neverRespond,
      replyWith('Fine.'),
    ])
    const stream = await client(harness).responses.create({ model: 'test-model', input: 'Tell me all', stream: true })
    for await (const { type } of stream) if (type === 'response.output_text.delta') break
    expect(await harness.model.requests[0]?.outcome).toBe('aborted')
    const controller = new AbortController()
    const pending = catchError(
      client(harness).responses.create({ model: 'test-model', input: 'Or a little' }, { signal: controller.signal }),
    )
    const { outcome } = await harness.model.waitForRequest(1)
    controller.abort()
    expect(await pending).toBeInstanceOf(OpenAI.APIUserAbortError)
    expect(await outcome).toBe('aborted')
    expect((await send(harness, { input: 'Never mind' })).output_text).toBe('Fine.')
    expect(await harness.readTranscript(key)).toEqual([
      'user: Tell me all',
      'user: Or a little',
      'user: Never mind',
      'assistant: Fine.',
    ])
  })

  verifies('T-09', 'sends images and files to the model and stores placeholders', async () => {
    await using harness = await createHarness(replyWith({ thinking: 'Whiskers.', text: 'A cat.' }))
    const image = `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}`
    const imageInput = [
      {
        role: 'user' as const,
        content: [{ type: 'input_image' as const, image_url: image, detail: 'auto' as const }],
      },
    ]
    expect((await send(harness, { input: imageInput })).output_text).toBe('A cat.')
    expect(harness.model.requests[0]?.body.input).toEqual(imageInput)
    expect(await harness.readTranscript(key)).toEqual([
      'user: [image, 20 bytes, sha256 fe1a4ab1fb634703]',
      'assistant: A cat.',
    ])
    const fileInput = [...imageInput, assistant('A cat.'), { role: 'user' as const, content: [file] }]
    expect((await send(harness, { input: fileInput })).output_text).toBe('A cat.')
    expect(harness.model.requests[1]?.body.input).toEqual(fileInput)
    expect((await harness.readTranscript(key)).slice(2)).toEqual([
      'user: [file a.txt, text/plain, 2 bytes, sha256 3639efcd08abb273]',
      'assistant: A cat.',
    ])
  })

  verifies('T-09', 'with the profile support cannot attach files to a session', async () => {
    await using harness = await createHarness(replyWith('Hello.'), 'openai', [], { profile: 'support' })
    expect(await catchError(send(harness, { input: [{ role: 'user', content: [file] }] }))).toMatchObject({
      status: 400,
      message: '400 File uploads not allowed for ephemeral sessions',
    })
    expect(harness.model.requests).toEqual([])
  })

  verifies('T-09', 'sends an image again, and the model receives it', async () => {
    await using harness = await createHarness([replyWith('A cat.'), replyWith('Grey.')])
    const image = `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}`
    const imageMessage = {
      role: 'user' as const,
      content: [{ type: 'input_image' as const, image_url: image, detail: 'auto' as const }],
    }
    await send(harness, { input: [imageMessage] })
    await send(harness, { input: [imageMessage, assistant('A cat.'), user('What colour is it?')] })
    expect(harness.model.requests[1]?.body.input[0]).toEqual(imageMessage)
  })

  verifies('S-03', 'receives an error when a stream breaks, and the partial reply is not stored', async () => {
    await using harness = await createHarness([disconnectDuring('This is going to be long'), replyWith('Fine.')])
    const stream = await client(harness).responses.create({ model: 'test-model', input: 'Tell me all', stream: true })
    expect(await catchError(collectAll(stream))).toBeInstanceOf(OpenAI.APIError)
    expect((await send(harness, { input: 'Never mind' })).output_text).toBe('Fine.')
    expect(await harness.readTranscript(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  verifies(['S-03', 'T-15'], 'refers to stored items, and the model receives the references', async () => {
    await using harness = await createHarness([
      replyWith({ thinking: 'A cat.', text: 'A fine name.' }),
      replyWith('Miso.'),
      replyWith('Still Miso.'),
    ])
    const first = await send(harness, { input: 'My cat is called Miso.' })
    const references = first.output.map(({ id }) => ({ type: 'item_reference' as const, id: String(id) }))
    const input: OpenAI.Responses.ResponseInput = [
      user('My cat is called Miso.'),
      ...references,
      user('What is my cat called?'),
    ]
    expect((await send(harness, { input })).output_text).toBe('Miso.')
    expect(harness.model.requests[1]?.body.input).toEqual(input)
    await harness.restart()
    input.push({ type: 'item_reference', id: 'msg_2' }, user('And now?'))
    expect((await send(harness, { input })).output_text).toBe('Still Miso.')
    expect(harness.model.requests[2]?.body.input).toEqual(input)
    expect(await harness.readTranscript(key)).toEqual([
      'user: My cat is called Miso.',
      'assistant: A fine name.',
      'user: What is my cat called?',
      'assistant: Miso.',
      'user: And now?',
      'assistant: Still Miso.',
    ])
  })

  verifies('S-03', 'with a reference to an item that nobody stores receives the error of the upstream', async () => {
    await using harness = await createHarness()
    const reference = { type: 'item_reference' as const, id: 'msg_unknown' }
    const error = await catchError(send(harness, { input: [reference, user('What is my cat called?')] }))
    expect(error).toMatchObject({ status: 400, message: "400 Item with id 'msg_unknown' not found." })
    expect(await harness.readTranscript(key)).toEqual([])
  })
})
