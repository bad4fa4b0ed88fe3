import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifies } from '../../requirements/verifies.ts'
import { all, assistant, user } from '../start.ts'
import { calls, cuts, hangs, refuses, says, stalls, thinks } from './model.ts'
import { failure, openStage, type Stage } from './stage.ts'

type Asked = OpenAI.Responses.ResponseCreateParamsNonStreaming

const key = 'demo:ann'
const client = ({ url }: Stage): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
const ask = (stage: Stage, asked: Asked) => client(stage).responses.create({ model: 'test-model', ...asked })

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
const result = (call: string, output: string) => ({ type: 'function_call_output' as const, call_id: call, output })

describe('the openai client, with responses', () => {
  verifies(['S-03', 'T-02'], 'asks, and all it sends arrives as it was sent; nothing is kept elsewhere', async () => {
    await using stage = await openStage(says('Grüße! 👋'))
    const asked = {
      model: 'test-model',
      input: 'Hello',
      instructions: 'Be brief.',
      temperature: 0.5,
      prompt_cache_key: 'k',
      x_unknown: { deep: [1, null] },
    }
    const response = await ask(stage, asked)
    expect(response).toMatchObject({ output_text: 'Grüße! 👋', usage: { input_tokens: 21, output_tokens: 8 } })
    expect(stage.model.requests[0]?.body).toEqual({ ...asked, input: [user('Hello')], store: false })
    expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße! 👋'])
  })

  verifies(['S-03', 'T-02'], 'streams with usage, however the bytes come', async () => {
    await using stage = await openStage(says('Grüße aus Zürich 👋, es regnet.'))
    const stream = client(stage).responses.stream({ model: 'test-model', input: 'Hello' })
    const events = await all(stream)
    expect(events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')).toBe(
      'Grüße aus Zürich 👋, es regnet.',
    )
    expect(await stream.finalResponse()).toMatchObject({
      output_text: 'Grüße aus Zürich 👋, es regnet.',
      usage: { input_tokens: 21, output_tokens: 8 },
    })
    expect(await stage.said(key)).toEqual(['user: Hello', 'assistant: Grüße aus Zürich 👋, es regnet.'])
  })

  verifies(['S-03', 'T-15'], 'goes on with results alone from the response that made the calls', async () => {
    await using stage = await openStage([calls(rome, oslo), says('Rome is warmer.')])
    const first = await ask(stage, { input: 'Where is it warmer?', tools: [weather] })
    expect(first.output).toMatchObject([
      { type: 'function_call', call_id: 'call_1', arguments: '{"city":"Rome"}' },
      { type: 'function_call', call_id: 'call_2', arguments: '{"city":"Oslo"}' },
    ])
    const input = [result('call_1', '21 °C'), result('call_2', '4 °C')]
    const second = await ask(stage, { input, tools: [weather], previous_response_id: first.id })
    expect(second.output_text).toBe('Rome is warmer.')
    expect(stage.model.requests[1]?.body.input).toEqual([
      user('Where is it warmer?'),
      { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"city":"Rome"}' },
      { type: 'function_call', call_id: 'call_2', name: 'weather', arguments: '{"city":"Oslo"}' },
      ...input,
    ])
    expect(await stage.said(key)).toEqual([
      'user: Where is it warmer?',
      'assistant: weather({"city":"Rome"}) weather({"city":"Oslo"})',
      'tool: 21 °C',
      'tool: 4 °C',
      'assistant: Rome is warmer.',
    ])
  })

  verifies(
    ['S-03', 'T-15'],
    'resends all items of a tool loop, with the reasoning among them, and none is kept twice',
    async () => {
      await using stage = await openStage([
        { does: 'say', said: { thinking: 'Ask the tool.', calls: [rome] } },
        says('It is warm.'),
        says('Very.'),
      ])
      const asked: Asked = {
        model: 'test-model',
        input: [user('How is Rome?')],
        tools: [weather],
        include: ['reasoning.encrypted_content'],
      }
      const input: OpenAI.Responses.ResponseInput = [user('How is Rome?')]
      const first = await ask(stage, asked)
      input.push(...(first.output as OpenAI.Responses.ResponseInputItem[]), result('call_1', '21 °C'))
      const second = await ask(stage, { ...asked, input })
      expect(stage.model.requests[1]?.body.input).toEqual(input)
      input.push(...(second.output as OpenAI.Responses.ResponseInputItem[]), user('Is it?'))
      expect((await ask(stage, { ...asked, input })).output_text).toBe('Very.')
      expect(await stage.said(key)).toEqual([
        'user: How is Rome?',
        'assistant: weather({"city":"Rome"})',
        'tool: 21 °C',
        'assistant: It is warm.',
        'user: Is it?',
        'assistant: Very.',
      ])
    },
  )

  verifies('S-03', 'parses structured output', async () => {
    await using stage = await openStage(says('{"name":"Miso","lives":9}'))
    const format = zodTextFormat(z.object({ name: z.string(), lives: z.number() }), 'pet')
    const { output_parsed: parsed } = await client(stage).responses.parse({
      model: 'test-model',
      input: 'My cat?',
      text: { format },
    })
    expect(parsed).toEqual({ name: 'Miso', lives: 9 })
    expect(stage.model.requests[0]?.body.text.format).toMatchObject({ type: 'json_schema', name: 'pet', strict: true })
  })

  verifies(
    ['S-03', 'T-15'],
    'goes on from a response by its id, also after a restart, and elsewhere from an earlier one',
    async () => {
      await using stage = await openStage([
        says('A fine name.'),
        says('Miso.'),
        says('Still Miso.'),
        says('Its other name?'),
      ])
      const first = await ask(stage, { input: 'My cat is called Miso.', store: true })
      const second = await ask(stage, { input: 'What is my cat called?', previous_response_id: first.id })
      await stage.restart()
      const third = await ask(stage, { input: 'And now?', previous_response_id: second.id })
      expect(third.output_text).toBe('Still Miso.')
      const told = [
        user('My cat is called Miso.'),
        assistant('A fine name.'),
        user('What is my cat called?'),
        assistant('Miso.'),
        user('And now?'),
      ]
      expect(stage.model.requests[2]?.body.input).toEqual(told)
      await ask(stage, { input: 'It has another name.', previous_response_id: first.id })
      expect(stage.model.requests[3]?.body.input).toEqual([...told.slice(0, 2), user('It has another name.')])
      expect(await stage.said(key)).toEqual([
        'user: My cat is called Miso.',
        'assistant: A fine name.',
        'user: It has another name.',
        'assistant: Its other name?',
      ])
    },
  )

  verifies('S-03', 'is told when the response it wants to go on from is not there', async () => {
    await using stage = await openStage()
    const error = await failure(ask(stage, { input: 'Hello', previous_response_id: 'resp_nobody' }))
    expect(error).toBeInstanceOf(OpenAI.NotFoundError)
    expect(error).toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
    expect(await stage.said(key)).toEqual([])
  })

  verifies('S-03', 'is told when it has nothing to say to the response it goes on from', async () => {
    await using stage = await openStage(says('Hello.'))
    const first = await ask(stage, { input: 'Hi' })
    for (const input of [{ input: [] }, {}]) {
      const error = await failure(ask(stage, { previous_response_id: first.id, ...input }))
      expect(error).toMatchObject({ status: 400, code: 'missing_input', param: 'input' })
    }
    expect(stage.model.requests.length).toBe(1)
  })

  verifies('S-03', 'is told which item of a conversation cannot be read', async () => {
    await using stage = await openStage()
    const { id } = await client(stage).conversations.create({})
    const broken = { type: 'function_call' as const, call_id: '', name: 'now', arguments: '' }
    const error = await failure(client(stage).conversations.items.create(id, { items: [user('Hi'), broken] }))
    expect(error).toMatchObject({
      status: 400,
      message: '400 items[1].call_id must be text that is not empty; it names the call.',
      param: 'items[1].call_id',
    })
  })

  verifies(['S-03', 'T-15'], 'has conversations with items, also after a restart', async () => {
    await using stage = await openStage([says('A fine name.'), says('Miso.')])
    const { id } = await client(stage).conversations.create({
      metadata: { topic: 'cats' },
      items: [{ type: 'message', role: 'user', content: 'Hello.' }],
    })
    await ask(stage, { input: 'My cat is called Miso.', conversation: id })
    await stage.restart()
    expect((await ask(stage, { input: 'What is my cat called?', conversation: { id } })).output_text).toBe('Miso.')
    const asked = [
      user('Hello.'),
      user('My cat is called Miso.'),
      assistant('A fine name.'),
      user('What is my cat called?'),
    ]
    expect(stage.model.requests[1]?.body.input).toEqual(asked)
    expect(await client(stage).conversations.retrieve(id)).toMatchObject({
      id,
      object: 'conversation',
      metadata: { topic: 'cats' },
    })
    const items = await all(client(stage).conversations.items.list(id, { order: 'asc', limit: 2 }))
    const said = items.map((item) =>
      item.type === 'message'
        ? [item.role, ...item.content.map((part) => ('text' in part ? part.text : part.type))]
        : item.type,
    )
    expect(said).toEqual([
      ['user', 'Hello.'],
      ['user', 'My cat is called Miso.'],
      ['assistant', 'A fine name.'],
      ['user', 'What is my cat called?'],
      ['assistant', 'Miso.'],
    ])
    expect(await stage.said(key)).toEqual([])
    expect(await client(stage).conversations.delete(id)).toMatchObject({ id, deleted: true })
    expect(await failure(client(stage).conversations.retrieve(id))).toBeInstanceOf(OpenAI.NotFoundError)
  })

  verifies(['S-03', 'T-15'], 'is remembered without naming anything, across a restart', async () => {
    await using stage = await openStage([says('A fine name.'), says('Miso.')])
    await ask(stage, { input: 'My cat is called Miso.' })
    await stage.restart()
    expect((await ask(stage, { input: 'What is my cat called?' })).output_text).toBe('Miso.')
    expect(stage.model.requests[1]?.body.input).toEqual([
      user('My cat is called Miso.'),
      assistant('A fine name.'),
      user('What is my cat called?'),
    ])
  })

  for (const [status, kind] of [
    [400, OpenAI.BadRequestError],
    [401, OpenAI.AuthenticationError],
    [404, OpenAI.NotFoundError],
    [429, OpenAI.RateLimitError],
    [500, OpenAI.InternalServerError],
  ] as const) {
    verifies('S-03', `tells ${status} by its own class`, async () => {
      await using stage = await openStage(refuses(status, { 'retry-after': '30' }))
      for (const stream of [false, true]) {
        const error = await failure(client(stage).responses.create({ model: 'test-model', input: 'Hello', stream }))
        expect(error).toBeInstanceOf(kind)
        expect(error).toMatchObject({ status, code: `scripted_${status}` })
      }
      expect(await stage.said(key)).toEqual(['user: Hello'])
    })
  }

  verifies('S-03', 'stops a stream: the model server is left at once, and the half reply is not kept', async () => {
    await using stage = await openStage([stalls('This is going to be long'), hangs, says('Fine.')])
    const stream = await client(stage).responses.create({ model: 'test-model', input: 'Tell me all', stream: true })
    for await (const { type } of stream) if (type === 'response.output_text.delta') break
    expect(await stage.model.requests[0]?.over).toBe('hung up')
    const stop = new AbortController()
    const asked = failure(
      client(stage).responses.create({ model: 'test-model', input: 'Or a little' }, { signal: stop.signal }),
    )
    const { over } = await stage.model.arrived(1)
    stop.abort()
    expect(await asked).toBeInstanceOf(OpenAI.APIUserAbortError)
    expect(await over).toBe('hung up')
    expect((await ask(stage, { input: 'Never mind' })).output_text).toBe('Fine.')
    expect(await stage.said(key)).toEqual([
      'user: Tell me all',
      'user: Or a little',
      'user: Never mind',
      'assistant: Fine.',
    ])
  })

  verifies('T-09', 'shows pictures to the model; memory has a mark for each, and no files', async () => {
    await using stage = await openStage(thinks('Whiskers.', 'A cat.'))
    const picture = `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}`
    const shown = [
      {
        role: 'user' as const,
        content: [{ type: 'input_image' as const, image_url: picture, detail: 'auto' as const }],
      },
    ]
    expect((await ask(stage, { input: shown })).output_text).toBe('A cat.')
    expect(stage.model.requests[0]?.body.input).toEqual(shown)
    expect(await stage.said(key)).toEqual(['user: [image, 20 bytes, sha256 fe1a4ab1fb634703]', 'assistant: A cat.'])
    const file = {
      type: 'input_file' as const,
      filename: 'a.txt',
      file_data: `data:text/plain;base64,${Buffer.from('Hi').toString('base64')}`,
    }
    expect(await failure(ask(stage, { input: [{ role: 'user', content: [file] }] }))).toMatchObject({
      status: 400,
      message: '400 File uploads not allowed for ephemeral sessions',
    })
  })

  verifies('T-09', 'asks on about a picture that it sends again, and the model sees it', async () => {
    await using stage = await openStage([says('A cat.'), says('Grey.')])
    const picture = `data:image/png;base64,${Buffer.from('not really a picture').toString('base64')}`
    const shown = {
      role: 'user' as const,
      content: [{ type: 'input_image' as const, image_url: picture, detail: 'auto' as const }],
    }
    await ask(stage, { input: [shown] })
    await ask(stage, { input: [shown, assistant('A cat.'), user('What colour is it?')] })
    expect(stage.model.requests[1]?.body.input[0]).toEqual(shown)
  })

  verifies('S-03', 'is told that a stream was cut, and the half reply is not kept', async () => {
    await using stage = await openStage([cuts('This is going to be long'), says('Fine.')])
    const stream = await client(stage).responses.create({ model: 'test-model', input: 'Tell me all', stream: true })
    expect(await failure(all(stream))).toBeInstanceOf(OpenAI.APIError)
    expect((await ask(stage, { input: 'Never mind' })).output_text).toBe('Fine.')
    expect(await stage.said(key)).toEqual(['user: Tell me all', 'user: Never mind', 'assistant: Fine.'])
  })

  it('compares nothing with what it only refers to', async () => {
    await using stage = await openStage([says('A fine name.'), says('Miso.')])
    const first = await ask(stage, { input: 'My cat is called Miso.' })
    const reference = { type: 'item_reference' as const, id: String(first.output[0]?.id) }
    expect((await ask(stage, { input: [reference, user('What is my cat called?')] })).output_text).toBe('Miso.')
    expect(stage.model.requests[1]?.body.input).toEqual([
      user('My cat is called Miso.'),
      assistant('A fine name.'),
      user('What is my cat called?'),
    ])
  })
})
