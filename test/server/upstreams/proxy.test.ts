import type OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { agent } from '../../../src/profiles/agent.ts'
import { encodeEventStream } from '../../providers/protocols.ts'
import { replyWith, sendRaw, startUpstream } from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, collectAll, slowStore, startServer, user } from '../start.ts'

const system = (content: string) => ({ role: 'system' as const, content })
const weather: OpenAI.ChatCompletionFunctionTool = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'Weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
}
const toolCalls = [
  { id: 'call_1', type: 'function' as const, function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
]
const completion = (message: unknown, reason = 'stop'): string =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: reason }],
  })
const chunk = (delta: unknown, reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`

describe('proxy', () => {
  verifies('T-02', 'adds memory to the request, relays the reply and stores it', async () => {
    await using upstream = await startUpstream(replyWith('Hello', ' from', ' upstream.'))
    await using server = await startServer({ upstream: upstream.url })
    const { chat } = server.client('demo:me')
    const first = await chat.completions.create({ model: 'gpt-test', messages: [user('My cat is called Miso.')] })
    expect(first.choices[0]?.message.content).toBe('Hello from upstream.')
    const second = await collectAll(
      await chat.completions.create({ model: 'gpt-test', messages: [user('What is my cat called?')], stream: true }),
    )
    expect(second.map((event) => event.choices[0]?.delta.content ?? '').join('')).toBe('Hello from upstream.')
    const conversation = [
      user('My cat is called Miso.'),
      assistant('Hello from upstream.'),
      user('What is my cat called?'),
    ]
    expect(upstream.requests[1]?.body).toEqual({ model: 'gpt-test', messages: conversation, stream: true })
    expect(await server.transcriptLines('demo:me')).toEqual(
      [...conversation, assistant('Hello from upstream.')].map(({ role, content }) => `${role}: ${content}`),
    )
  })

  it('relays a stream unchanged, however it is split', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['Grüße', ' 🌍', ' 世界'], split: true })
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.postChat('demo:me', { model: 'm', messages: [user('Hello')], stream: true })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(await response.text()).toBe(encodeEventStream('openai', ['Grüße', ' 🌍', ' 世界'], true))
    expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello', 'assistant: Grüße 🌍 世界'])
  })

  it('passes instructions, unknown fields and the model name through unchanged', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    const fields = {
      model: 'vendor/some-model@2',
      temperature: 0.25,
      stop: ['\n'],
      'x-vendor': { deep: [1, null, 'ä'] },
      metadata: { __threadkeep: '1' },
    }
    const instructions = [
      { ...system('You are a pirate.'), name: 'boss', cache_control: { type: 'ephemeral' } },
      { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }] },
    ]
    await server.postChat('demo:me', { ...fields, messages: [...instructions, user('My cat is called Miso.')] })
    const last = { ...user('What is my cat called?'), name: 'ann', extra: true }
    await server.postChat('demo:me', { ...fields, messages: [...instructions, last] })
    expect(upstream.requests[1]?.path).toBe('/v1/chat/completions')
    expect(upstream.requests[1]?.body).toEqual({
      ...fields,
      messages: [...instructions, user('My cat is called Miso.'), assistant('Hello from upstream.'), last],
    })
    expect(await server.transcriptLines('demo:me')).toEqual([
      'user: My cat is called Miso.',
      'assistant: Hello from upstream.',
      'user: What is my cat called?',
      'assistant: Hello from upstream.',
    ])
  })

  it('keeps instructions in place, wherever they are', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.postChat('demo:me', { messages: [user('Hi')] })
    const messages = [system('A'), user('Hi'), assistant('Hello from upstream.'), system('B'), user('Bye'), system('C')]
    await server.postChat('demo:me', { messages })
    expect(upstream.requests[1]?.body.messages).toEqual(messages)
  })

  it('forwards the client key, else the configured key, and no header of the connection', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-server' })
    const headers = {
      'openai-organization': 'org',
      'openai-project': 'proj',
      cookie: 'secret=1',
      'x-title': 'Shop',
      'x-forwarded-for': '10.0.0.1',
    }
    await server.postChat('demo:me', { messages: [user('one')] }, { ...headers, authorization: 'Bearer sk-client' })
    await server.postChat('demo:me', { messages: [user('two')] })
    const [first, second] = upstream.requests.map((request) => request.headers)
    expect(first).toMatchObject({
      authorization: 'Bearer sk-client',
      'openai-organization': 'org',
      'openai-project': 'proj',
      'content-type': 'application/json',
      'x-title': 'Shop',
    })
    for (const name of ['cookie', 'x-forwarded-for', 'x-threadkeep-key']) expect(first).not.toHaveProperty(name)
    expect(second).toMatchObject({ authorization: 'Bearer sk-server' })
  })

  it('without any key sends no authorization header', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.postChat('demo:me', { messages: [user('one')] })
    expect(upstream.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  it('lists the models of the upstream', async () => {
    const list = { object: 'list', data: [{ id: 'm-1', object: 'model', created: 1, owned_by: 'us' }] }
    await using upstream = await startUpstream(sendRaw('application/json', JSON.stringify(list)))
    await using server = await startServer({ upstream: upstream.url })
    expect((await server.client('demo:me').models.list()).data).toEqual(list.data)
    expect(upstream.requests[0]).toMatchObject({
      method: 'GET',
      path: '/v1/models',
      headers: { authorization: 'Bearer sk-client' },
    })
  })

  it('returns a single model from the model list', async () => {
    const model = { id: 'vendor/m-1', object: 'model', created: 1, owned_by: 'us' }
    await using upstream = await startUpstream(
      sendRaw('application/json', JSON.stringify({ object: 'list', data: [model] })),
    )
    await using server = await startServer({ upstream: upstream.url })
    expect(await server.client('demo:me').models.retrieve('vendor/m-1')).toEqual(model)
    for (const path of ['/v1/models', '/v1/demo:me/models', '/v1/demo:me/v1/models']) {
      expect(await server.requestJson(`GET ${path}/vendor%2Fm-1`)).toEqual({ status: 200, body: model })
      expect(await server.requestJson(`GET ${path}/..%2Fm-1`)).toMatchObject({
        status: 404,
        body: { error: { code: 'model_not_found', param: 'model' } },
      })
    }
    expect(new Set(upstream.requests.map(({ path }) => path))).toEqual(new Set(['/v1/models']))
  })

  it('answers HEAD like GET without the body', async () => {
    await using server = await startServer()
    const [get, head] = [
      await fetch(`${server.url}/v1/models`),
      await fetch(`${server.url}/v1/models`, { method: 'HEAD' }),
    ]
    expect(['content-type', 'content-length'].map((name) => head.headers.get(name))).toEqual([
      'application/json',
      get.headers.get('content-length'),
    ])
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect((await fetch(`${server.url}/v1/chat/completions`, { method: 'HEAD' })).status).toBe(405)
  })

  it('without memory relays any JSON response unchanged', async () => {
    for (const body of [
      '{"id":"x",  "choices":[],"prompt_filter_results":[]}',
      '{"job":"queued"}',
      '{"error":"none"}',
    ]) {
      await using upstream = await startUpstream(sendRaw('application/json', body))
      await using server = await startServer({ upstream: upstream.url })
      const request = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [user('Hi')] }),
      }
      const response = await fetch(`${server.url}/v1/chat/completions`, request)
      expect([response.status, response.headers.get('x-threadkeep-memory'), await response.text()]).toEqual([
        200,
        'none',
        body,
      ])
      expect((await server.postChat('demo:me', { messages: [user('Hi')] })).status).toBe(502)
    }
  })

  it('with an unrequested stream relays it once complete and stores the reply', async () => {
    const body = encodeEventStream('openai', ['Once', ' upon'], true)
    await using upstream = await startUpstream(sendRaw('text/event-stream', body))
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.postChat('demo:me', { messages: [user('Hello')] })
    expect([response.headers.get('content-length'), await response.text()]).toEqual([
      String(Buffer.byteLength(body)),
      body,
    ])
    expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello', 'assistant: Once upon'])
  })

  it('supports tool calls with the whole history and with the tool result alone', async () => {
    await using upstream = await startUpstream(({ body }) =>
      body.messages.at(-1).role === 'tool'
        ? sendRaw('application/json', completion({ role: 'assistant', content: 'It rains.' }))
        : sendRaw(
            'application/json',
            completion({ role: 'assistant', content: null, tool_calls: toolCalls }, 'tool_calls'),
          ),
    )
    await using server = await startServer({ upstream: upstream.url })
    const result = { role: 'tool' as const, tool_call_id: 'call_1', content: '{"sky":"rain"}' }
    for (const key of ['demo:whole', 'demo:newest']) {
      const { chat } = server.client(key)
      const first = await chat.completions.create({
        model: 'm',
        messages: [user('Weather in Oslo?')],
        tools: [weather],
      })
      const call = first.choices[0]?.message
      expect(call?.tool_calls).toEqual(toolCalls)
      const history = key === 'demo:whole' && call !== undefined ? [user('Weather in Oslo?'), call] : []
      const second = await chat.completions.create({ model: 'm', messages: [...history, result], tools: [weather] })
      expect(second.choices[0]?.message.content).toBe('It rains.')
      expect(upstream.requests.at(-1)?.body).toMatchObject({
        tools: [weather],
        messages: [user('Weather in Oslo?'), { role: 'assistant', content: null, tool_calls: toolCalls }, result],
      })
      expect(await server.transcriptLines(key)).toEqual([
        'user: Weather in Oslo?',
        'assistant: ',
        'tool: {"sky":"rain"}',
        'assistant: It rains.',
      ])
      expect((await server.memory.transcript(key))[1]?.toolCalls).toEqual([
        { id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
      ])
    }
  })

  it('assembles streamed tool calls', async () => {
    const callDelta = (index: number, fields: object) => chunk({ tool_calls: [{ index, ...fields }] })
    const body = [
      chunk({ role: 'assistant', content: 'Let me ', tool_calls: null }),
      chunk({ content: 'see.' }),
      callDelta(0, { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
      callDelta(0, { function: { arguments: '{"city":' } }),
      callDelta(1, { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '{"city":"Bergen"}' } }),
      callDelta(0, { function: { arguments: '"Oslo"}' } }),
      chunk({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ].join('')
    await using upstream = await startUpstream(sendRaw('text/event-stream', body))
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.postChat('demo:me', { messages: [user('Weather?')], stream: true })
    expect(await response.text()).toBe(body)
    expect((await server.memory.transcript('demo:me'))[1]).toMatchObject({
      content: 'Let me see.',
      toolCalls: [
        { id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
        { id: 'call_2', name: 'weather', arguments: '{"city":"Bergen"}' },
      ],
    })
  })

  it('sends an image to the model and stores a placeholder', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.postChat('demo:me', { messages: [user('Hi')] })
    const imageMessage = {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      ],
    }
    await server.postChat('demo:me', { messages: [imageMessage] })
    expect(upstream.requests[1]?.body.messages).toEqual([user('Hi'), assistant('Hello from upstream.'), imageMessage])
    expect((await server.transcriptLines('demo:me'))[2]).toBe(
      'user: What is this?\n[image, 3 bytes, sha256 709e80c88487a241]',
    )
  })

  it('with concurrent identical requests stores the message once', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['Hm'] })
    await using server = await startServer({ upstream: upstream.url, memory: { store: slowStore() } })
    const streams = await Promise.all(
      [1, 2, 3].map(() =>
        server.client('demo:me').chat.completions.create({ model: 'm', messages: [user('Hello?')], stream: true }),
      ),
    )
    expect(await server.transcriptLines('demo:me')).toEqual(['user: Hello?'])
    for (const stream of streams) stream.controller.abort()
    expect(await Promise.all(upstream.requests.map((request) => request.outcome))).toEqual([
      'hung up',
      'hung up',
      'hung up',
    ])
  })

  it('stores the reply before the client receives its end', async () => {
    const store = slowStore()
    await using upstream = await startUpstream(replyWith('Hello', ' there.'))
    await using server = await startServer({ upstream: upstream.url, memory: { store } })
    const isStored = async (key: string) => (await store.readMessages(parseKey(key), { limit: 9 })).length === 2
    await server.postChat('demo:whole', { messages: [user('Hi')] })
    expect(await isStored('demo:whole')).toBe(true)
    const reader = (await server.postChat('demo:stream', { messages: [user('Hi')], stream: true })).body
      ?.pipeThrough(new TextDecoderStream())
      .getReader()
    for (let seen = ''; !seen.includes('[DONE]'); ) seen += (await reader?.read())?.value ?? ''
    expect(await isStored('demo:stream')).toBe(true)
  })

  it('does not store a reply to a session that was forgotten meanwhile', async () => {
    const forgets: (() => Promise<unknown>)[] = []
    await using upstream = await startUpstream(() => {
      for (const forget of forgets) void forget()
      return replyWith('Too late')
    })
    await using server = await startServer({ upstream: upstream.url })
    forgets.push(() => server.memory.forget({ key: 'demo:me' }))
    for (const stream of [false, true]) {
      const response = await server.postChat('demo:me', { messages: [user('Hello')], stream })
      expect(await response.text()).toContain('Too late')
      expect(await server.transcriptLines('demo:me')).toEqual([])
    }
    // The session is created again with another message.
    forgets[0] = async () => {
      await server.memory.forget({ key: 'demo:me' })
      await server.memory.append('demo:me', [user('Something else')])
    }
    await server.postChat('demo:me', { messages: [user('Hello')] })
    expect(await server.transcriptLines('demo:me')).toEqual(['user: Something else'])
    expect(server.faults).toEqual([])
  })
})

describe('token budget', () => {
  const createText = (words: number): string => Array.from({ length: words }, (_, index) => `word${index}`).join(' ')
  const withBudget = (budget: number) => ({ profile: { ...agent, budget } })

  it('is spent on client instructions and tools before memory', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url, memory: withBudget(400) })
    for (let turn = 0; turn < 20; turn++)
      await server.memory.append('demo:me', [user(`Turn ${turn}: ${createText(10)}`), assistant('Noted.')])
    const plain = await server.postChat('demo:me', { messages: [user('And now?')] })
    const withTools = await server.postChat('demo:me', {
      messages: [system(createText(60)), user('And then?')],
      tools: [weather],
    })
    const readTokens = (response: Response) => Number(response.headers.get('x-threadkeep-tokens')?.split('/')[0])
    for (const response of [plain, withTools]) {
      expect(response.headers.get('x-threadkeep-tokens')).toMatch(/^\d+\/400$/)
      expect(readTokens(response)).toBeLessThanOrEqual(400)
      expect(response.headers.get('x-threadkeep-degraded')).toBeNull()
    }
    expect(upstream.requests[1]?.body.messages[0]).toEqual(system(createText(60)))
    expect(upstream.requests[1]?.body.messages.length).toBeLessThan(upstream.requests[0]?.body.messages.length)
  })

  it('exceeded by the newest turn passes the request through unchanged and reports it', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url, memory: withBudget(100) })
    const calls = { role: 'assistant', content: null, tool_calls: toolCalls }
    const result = (content: string) => ({ role: 'tool', tool_call_id: 'call_1', content })
    const cases = {
      'a long question': [user('Hi'), assistant('Hello.'), user(createText(200))],
      'long instructions': [system(createText(200)), user('Hi')],
      'a long tool result': [user('Weather?'), calls, result(createText(200))],
      'tools that use up the budget': [system(createText(20)), user('Hi')],
    }
    for (const [index, [name, messages]] of Object.entries(cases).entries()) {
      const tools = name.startsWith('tools') ? { tools: [weather, weather, weather, weather] } : {}
      const response = await server.postChat(`demo:${index}`, { messages, ...tools })
      expect([name, response.status, response.headers.get('x-threadkeep-degraded')]).toEqual([name, 200, 'budget'])
      expect(upstream.requests[index]?.body).toEqual({ messages, ...tools })
      const [spent, budget] = response.headers.get('x-threadkeep-tokens')?.split('/').map(Number) ?? []
      expect(spent).toBeGreaterThan(budget ?? 0)
    }
    // The message is stored in full.
    expect((await server.transcriptLines('demo:0'))[2]).toBe(`user: ${createText(200)}`)
  })

  it('with messages that memory cannot show passes the request through unchanged', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    for (const [messages, degraded] of [
      // The client's own conversation needs nothing from memory.
      [[user('Hi'), assistant('Hello.'), user('')], null],
      [[user('Hi'), assistant(' ')], 'messages'],
      [[system('Say something.')], 'messages'],
      [[user('')], 'messages'],
    ] as const) {
      const response = await server.postChat('demo:me', { messages })
      expect([messages, response.status, response.headers.get('x-threadkeep-degraded')]).toEqual([
        messages,
        200,
        degraded,
      ])
      expect(upstream.requests.at(-1)?.body.messages).toEqual(messages)
    }
  })

  it('with a request without a turn stores nothing', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.postChat('demo:me', { messages: [system('Say something.')] })
    expect(await server.transcriptLines('demo:me')).toEqual([])
  })
})
